"""Tracks of unequal length -> vectors of equal length."""

import math
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from corral.trajectories._sphere import (
    EARTH_RADIUS_KM,
    distances_km,
    interpolate,
    local_frame,
    middle_longitude,
    to_degrees,
    to_points,
    unwrap,
)
from corral.trajectories._tracks import Tracks, keep_positions

# A step is a gap if it takes so many times the median step of its flight, and so many
# times what four in five steps of all flights take: where reports come at odd times,
# the median alone would call every tenth step a gap.
_GAP_MEDIANS = 10
_GAP_LONG_STEPS = 5
_LONG_STEP = 0.8

# No flight is so many times as fast as the median flight: a jet in a strong wind is
# twice as fast as one on its way to land.
_SPEED_LIMIT = 3


class Skipped(NamedTuple):
    """A track that was set apart.

    Attributes
    ----------
    id : str
        Name of the flight.
    reason : str
        Why, in words.
    """

    id: str
    reason: str


@dataclass(frozen=True)
class ResampledTracks:
    """Flights as vectors of equal length.

    Attributes
    ----------
    X : ndarray of shape (n_flights, 3 * n_points + 1)
        East, north and up of the first point, then of the second, and so on, in
        kilometres from the middle of all flights. The Euclidean distance of two points
        is the straight line through the earth between them, which is their great-circle
        distance but for 0.1 % at 1,000 km; so it is right everywhere, at the date line
        and at the poles, too. The last column is ``jump_km`` times the root of
        ``n_points``: a jump counts as much as if all points lay so far away, because
        either of its sides does.
    ids : list of str
        Name of each flight.
    latitude, longitude : ndarray of shape (n_flights, n_points)
        The same points in degrees. Longitudes run on over the date line, so they may
        be below -180 or above 180.
    length_km : ndarray of shape (n_flights,)
        Length of the path.
    jump_km : ndarray of shape (n_flights,)
        How far the longest step is beyond what can be flown in the time; 0 for nearly
        all flights.
    speed_limit : float
        What can be flown: 3 times the median speed of all flights, in km per second.
    gap_share : ndarray of shape (n_flights,)
        Share of the flight without positions: that part of X was interpolated.
    skipped : list of Skipped
        Flights that are not in X, with the reason.
    tracks : Tracks
        The positions behind X: known, in the order of time, each time once.
    n_dropped : dict of str to int
        Positions that were left out, by the reason: "unknown" or "same time".
    by : {"path", "time"}
        How the points are spaced.
    """

    X: np.ndarray
    ids: list[str]
    latitude: np.ndarray
    longitude: np.ndarray
    length_km: np.ndarray
    jump_km: np.ndarray
    speed_limit: float
    gap_share: np.ndarray
    skipped: list[Skipped]
    tracks: Tracks
    n_dropped: dict[str, int]
    by: str

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def points(self) -> np.ndarray:
        """The places in X, as an array of shape (n_flights, n_points, 3)."""
        return self.X[:, :-1].reshape(len(self.X), -1, 3)

    @property
    def feature_names(self) -> list[str]:
        """Names of the columns of X."""
        places = [
            f"{direction} {point}"
            for point in range(1, self.latitude.shape[1] + 1)
            for direction in ("east", "north", "up")
        ]
        return [*places, "jump"]


def resample_tracks(
    tracks: Tracks,
    n_points: int = 50,
    *,
    by: Literal["path", "time"] = "path",
    min_points: int = 5,
    max_gap: float | None = None,
) -> ResampledTracks:
    """Turn tracks of unequal length into vectors of equal length.

    Positions that are unknown or that repeat a time are left out and counted, and the
    others are put in the order of time. Between positions a flight follows the great
    circle.

    Parameters
    ----------
    tracks : Tracks
        From :func:`read_tracks` or :func:`group_tracks`.
    n_points : int, default=50
        Number of points of each vector; the first and the last are the ends of the
        track.
    by : {"path", "time"}, default="path"
        Whether points are evenly spaced along the path or in time. Along the path,
        speed and delays do not count; in time, they do.
    min_points : int, default=5
        Tracks with fewer positions are set apart in ``skipped``.
    max_gap : float, default=None
        A step of more seconds than this is a gap. None means 10 times the median step
        of the flight, or 5 times what four in five steps of all flights take, whichever
        is longer.

    Returns
    -------
    resampled : ResampledTracks

    Examples
    --------
    >>> from corral.trajectories import group_tracks, resample_tracks
    >>> tracks = group_tracks(["a"] * 3, [0, 10, 20], [0, 1, 4], [8, 8, 8])
    >>> resample_tracks(tracks, 5, min_points=2).latitude.round(3)
    array([[0., 1., 2., 3., 4.]])
    >>> resample_tracks(tracks, 5, by="time", min_points=2).latitude.round(3)
    array([[0. , 0.5, 1. , 2.5, 4. ]])
    """
    _check_settings(n_points, by, min_points, max_gap)
    clean, n_dropped = _clean(tracks)
    kept, skipped = _set_apart(clean, min_points)
    points = to_points(kept.latitude, kept.longitude)
    steps = _Steps(
        _within(np.diff(kept.time, prepend=0.0), kept),
        _within(distances_km(np.roll(points, 1, axis=0), points), kept),
    )
    way = steps.seconds if by == "time" else _path_or_time(steps, kept)
    even = _place(points, way, kept, n_points)
    middle, frame = local_frame(even.reshape(-1, 3))
    latitude, longitude = to_degrees(even)
    starts = np.arange(len(kept)) * n_points
    meridian = middle_longitude(longitude.ravel())
    places = EARTH_RADIUS_KM * (even - middle) @ frame.T
    speed_limit = _SPEED_LIMIT * _median_speed(steps, kept)
    beyond = steps.km - speed_limit * steps.seconds
    jumps = np.maximum.reduceat(beyond, kept.offsets[:-1]).clip(0)
    return ResampledTracks(
        X=np.column_stack([places.reshape(len(kept), -1), math.sqrt(n_points) * jumps]),
        ids=kept.ids,
        latitude=latitude,
        longitude=unwrap(longitude.ravel(), starts, meridian).reshape(latitude.shape),
        length_km=_sums(steps.km, kept),
        jump_km=jumps,
        speed_limit=speed_limit,
        gap_share=_gap_shares(steps.seconds, way, kept, max_gap),
        skipped=skipped,
        tracks=kept,
        n_dropped=n_dropped,
        by=by,
    )


class _Steps(NamedTuple):
    # From the position before; 0 for the first of a track.
    seconds: np.ndarray
    km: np.ndarray


def _check_settings(
    n_points: int, by: str, min_points: int, max_gap: float | None
) -> None:
    if n_points < 2:
        raise ValueError(f"n_points={n_points} should be 2 or more.")
    if by not in ("path", "time"):
        raise ValueError(f"by={by!r} is not known. Choose one of 'path', 'time'.")
    if min_points < 2:
        raise ValueError(f"min_points={min_points} should be 2 or more.")
    if max_gap is not None and not max_gap > 0:
        raise ValueError(f"max_gap={max_gap} should be above 0.")


def _clean(tracks: Tracks) -> tuple[Tracks, dict[str, int]]:
    """Leave out unknown positions, sort by time, keep the first of each time."""
    track = np.repeat(np.arange(len(tracks)), tracks.counts)
    known = np.flatnonzero(
        np.isfinite(tracks.time + tracks.latitude + tracks.longitude)
    )
    # Stable, so that the first of a time is the first of the file.
    order = known[np.lexsort([tracks.time[known], track[known]])]
    same = (np.diff(track[order], prepend=-1) == 0) & (
        np.diff(tracks.time[order], prepend=np.nan) == 0
    )
    n_dropped = {
        "unknown": len(tracks.time) - len(known),
        "same time": int(same.sum()),
    }
    return keep_positions(tracks, order[~same]), n_dropped


def _set_apart(tracks: Tracks, min_points: int) -> tuple[Tracks, list[Skipped]]:
    enough = tracks.counts >= min_points
    if not enough.any():
        raise ValueError(
            f"All {len(tracks):,} flights have fewer than {min_points} known positions,"
            f" the longest {max(tracks.counts, default=0)}. Lower min_points, or "
            "check which column names the flight."
        )
    skipped = [
        Skipped(
            tracks.ids[track],
            f"{_positions(tracks.counts[track])}, fewer than {min_points}",
        )
        for track in np.flatnonzero(~enough)
    ]
    return tracks.take(np.flatnonzero(enough)), skipped


def _positions(count: int) -> str:
    return f"{count} known position{'' if count == 1 else 's'}"


def _within(steps: np.ndarray, tracks: Tracks) -> np.ndarray:
    steps[tracks.offsets[:-1]] = 0
    return steps


def _sums(values: np.ndarray, tracks: Tracks) -> np.ndarray:
    return np.add.reduceat(values, tracks.offsets[:-1])


def _path_or_time(steps: _Steps, tracks: Tracks) -> np.ndarray:
    """Return lengths of steps, or seconds for flights that do not move."""
    moves = np.repeat(_sums(steps.km, tracks) > 0, tracks.counts)
    return np.where(moves, steps.km, steps.seconds)


def _place(
    points: np.ndarray, way: np.ndarray, tracks: Tracks, n_points: int
) -> np.ndarray:
    """Return points evenly spaced on the way, of shape (n_tracks, n_points, 3)."""
    sums = np.cumsum(way)
    starts, lasts = tracks.offsets[:-1], tracks.offsets[1:] - 1
    totals = sums[lasts] - sums[starts]
    shares = (sums - np.repeat(sums[starts], tracks.counts)) / np.repeat(
        totals, tracks.counts
    )
    # One search serves all flights: flight i has the numbers from 2i to 2i + 1.
    flights = np.arange(len(tracks))
    places = shares + 2 * np.repeat(flights, tracks.counts)
    wanted = np.linspace(0, 1, n_points) + 2 * flights[:, None]
    after = np.searchsorted(places, wanted).clip((starts + 1)[:, None], lasts[:, None])
    spans = places[after] - places[after - 1]
    inside = (wanted - places[after - 1]) / np.where(spans > 0, spans, 1)
    return interpolate(
        points[after - 1].reshape(-1, 3),
        points[after].reshape(-1, 3),
        inside.clip(0, 1).ravel(),
    ).reshape(*wanted.shape, 3)


def _median_speed(steps: _Steps, tracks: Tracks) -> float:
    return float(np.median(_sums(steps.km, tracks) / _sums(steps.seconds, tracks)))


def _gap_shares(
    seconds: np.ndarray, way: np.ndarray, tracks: Tracks, max_gap: float | None
) -> np.ndarray:
    if max_gap is None:
        inner = np.delete(seconds, tracks.offsets[:-1])
        least = _GAP_LONG_STEPS * np.quantile(inner, _LONG_STEP, method="lower")
        limits = np.maximum(_GAP_MEDIANS * _medians(seconds, tracks), least)
        limits = np.repeat(limits, tracks.counts)
    else:
        limits = np.full(len(seconds), max_gap)
    return _sums(np.where(seconds > limits, way, 0), tracks) / _sums(way, tracks)


def _medians(seconds: np.ndarray, tracks: Tracks) -> np.ndarray:
    return np.array(
        [
            np.median(seconds[start + 1 : end])
            for start, end in zip(tracks.offsets[:-1], tracks.offsets[1:], strict=True)
        ]
    )
