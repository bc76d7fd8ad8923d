"""Tracks: positions of many flights, one flight after the other."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from corral.trajectories._sphere import wrap


@dataclass(frozen=True)
class Tracks:
    """Positions of flights; flight i has rows ``offsets[i]`` to ``offsets[i + 1]``.

    Attributes
    ----------
    ids : list of str
        Name of each flight; no two are the same.
    time : ndarray of shape (n_positions,)
        Seconds from any moment; NaN means unknown.
    latitude, longitude : ndarray of shape (n_positions,)
        Degrees; NaN means unknown.
    offsets : ndarray of int, of shape (n_tracks + 1,)
        Where each flight starts, and where the last one ends.
    """

    ids: list[str]
    time: np.ndarray
    latitude: np.ndarray
    longitude: np.ndarray
    offsets: np.ndarray

    def __post_init__(self) -> None:
        offsets = read_offsets(self.offsets, len(self.time))
        if len(offsets) != len(self.ids) + 1:
            raise ValueError(
                f"offsets has {len(offsets):,} numbers for {len(self.ids):,} flights. "
                "It should have one more than there are flights."
            )
        object.__setattr__(self, "offsets", offsets)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def counts(self) -> np.ndarray:
        """Number of positions of each flight."""
        return np.diff(self.offsets)

    def take(self, tracks: Sequence[int] | np.ndarray) -> "Tracks":
        """Return some of the flights, in the order asked for.

        Parameters
        ----------
        tracks : array-like of int
            Numbers of the flights.

        Returns
        -------
        part : Tracks
        """
        tracks = np.asarray(tracks, dtype=np.intp)
        counts = self.counts[tracks]
        offsets = np.append(0, np.cumsum(counts))
        rows = np.arange(offsets[-1]) + np.repeat(
            self.offsets[tracks] - offsets[:-1], counts
        )
        return Tracks(
            [self.ids[track] for track in tracks],
            self.time[rows],
            self.latitude[rows],
            self.longitude[rows],
            offsets,
        )


def read_offsets(
    offsets: np.ndarray, n_positions: int, name: str = "offsets"
) -> np.ndarray:
    """Return where flights start as whole numbers, or say what they should be.

    Parameters
    ----------
    offsets : array-like of shape (n_tracks + 1,)
    n_positions : int
        Where the last flight ends.
    name : str, default="offsets"
        What they are, the beginning of a sentence.

    Returns
    -------
    offsets : ndarray of int, of shape (n_tracks + 1,)
    """
    given = np.asarray(offsets)
    if given.ndim == 1 and given.dtype.kind in "iuf":
        # NaN becomes a number, which is not equal to it.
        with np.errstate(invalid="ignore"):
            whole = given.astype(np.intp)
        steps = np.diff(whole, prepend=0, append=n_positions)
        are_ends = not steps[0] and not steps[-1]
        if are_ends and (steps >= 0).all() and np.array_equal(whole, given):
            return whole
    raise ValueError(
        f"{name} should be whole numbers that rise from 0 to {n_positions}, the number "
        "of positions."
    )


def group_tracks(
    names: Sequence[str], time: np.ndarray, latitude: np.ndarray, longitude: np.ndarray
) -> Tracks:
    """Collect positions that come in any order into tracks.

    Parameters
    ----------
    names : sequence of str, of length n_positions
        Flight of each position. Flights keep the order in which they first appear.
    time : array-like of shape (n_positions,)
        Seconds from any moment.
    latitude, longitude : array-like of shape (n_positions,)
        Degrees.

    Returns
    -------
    tracks : Tracks
        The positions of a flight keep their order.

    Examples
    --------
    >>> from corral.trajectories import group_tracks
    >>> tracks = group_tracks(["a", "b", "a"], [0, 0, 9], [50, 60, 51], [8, 9, 8])
    >>> tracks.ids, tracks.latitude.tolist()
    (['a', 'b'], [50.0, 51.0, 60.0])
    """
    numbers: dict[str, int] = {}
    track = np.array(
        [numbers.setdefault(str(name), len(numbers)) for name in names], dtype=np.intp
    )
    return group_numbered(list(numbers), track, time, latitude, longitude)


def group_numbered(
    ids: list[str],
    track: np.ndarray,
    time: np.ndarray,
    latitude: np.ndarray,
    longitude: np.ndarray,
) -> Tracks:
    """Collect positions whose flights have numbers.

    Parameters
    ----------
    ids : list of str
        Names of the flights.
    track : ndarray of int, of shape (n_positions,)
        Number of the flight of each position.
    time, latitude, longitude : array-like of shape (n_positions,)

    Returns
    -------
    tracks : Tracks
    """
    order = np.argsort(track, kind="stable")
    counts = np.bincount(track, minlength=len(ids))
    return check_tracks(
        Tracks(
            ids,
            np.asarray(time, dtype=np.float64)[order],
            np.asarray(latitude, dtype=np.float64)[order],
            np.asarray(longitude, dtype=np.float64)[order],
            np.append(0, np.cumsum(counts)),
        )
    )


def check_tracks(tracks: Tracks) -> Tracks:
    """Return tracks whose positions are on the earth, or say which is not.

    Parameters
    ----------
    tracks : Tracks

    Returns
    -------
    tracks : Tracks
        With longitudes from -180 to 180.
    """
    _check_range(tracks, tracks.latitude, "latitude", -90, 90)
    # Both -180..180 and 0..360 are in use.
    _check_range(tracks, tracks.longitude, "longitude", -180, 360)
    return Tracks(
        tracks.ids,
        tracks.time,
        tracks.latitude,
        wrap(tracks.longitude),
        tracks.offsets,
    )


def _check_range(
    tracks: Tracks, values: np.ndarray, name: str, low: int, high: int
) -> None:
    wrong = np.flatnonzero((values < low) | (values > high))
    if len(wrong) == 0:
        return
    track = int(np.searchsorted(tracks.offsets, wrong[0], side="right")) - 1
    n_others = len(wrong) - 1
    noun = "position is" if n_others == 1 else "positions are"
    others = f" {n_others:,} other {noun} wrong, too." if n_others else ""
    raise ValueError(
        f"Flight '{tracks.ids[track]}' has {name} {values[wrong[0]]:g}, which should "
        f"be from {low} to {high} degrees.{others} Mend the positions or leave them "
        "empty."
    )


def keep_positions(tracks: Tracks, rows: np.ndarray) -> Tracks:
    """Return tracks with some of their positions, in the order asked for.

    Parameters
    ----------
    tracks : Tracks
    rows : ndarray of int
        Positions; those of one flight stay together, and flights keep their order.

    Returns
    -------
    part : Tracks
        Flights may be left without positions.
    """
    track = np.searchsorted(tracks.offsets, rows, side="right") - 1
    counts = np.bincount(track, minlength=len(tracks))
    return Tracks(
        tracks.ids,
        tracks.time[rows],
        tracks.latitude[rows],
        tracks.longitude[rows],
        np.append(0, np.cumsum(counts)),
    )
