"""Flights drawn at random, and errors planted among flights."""

from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from corral.trajectories._sphere import (
    EARTH_RADIUS_KM,
    interpolate,
    local_frame,
    to_degrees,
    to_points,
    wrap,
)
from corral.trajectories._tracks import Tracks

# Ground speed of a jet, km per second.
_SPEED = 0.23

# Which error makes which kind of outlier.
ERRORS = {"mixed": "mixed", "truncated": "partial", "shifted": "out of range"}


class PlantedTracks(NamedTuple):
    """Tracks, and what was planted among them.

    Attributes
    ----------
    tracks : Tracks
    errors : ndarray of str, of shape (n_tracks,)
        "mixed", "truncated", "shifted", or "" for flights as they were.
    """

    tracks: Tracks
    errors: np.ndarray


def make_tracks(
    n_tracks=600,
    *,
    n_routes=6,
    center=(37.0, -95.0),
    extent_km=1500.0,
    spread_km=15.0,
    random_state=None,
):
    """Draw flights on a few routes between airports.

    Flights of a route leave the great circle by two smooth bends of their own. They
    report every 20 to 60 seconds, and one in twenty has a gap.

    Parameters
    ----------
    n_tracks : int, default=600
        Number of flights.
    n_routes : int, default=6
        Number of routes, each flown in one direction.
    center : tuple of (float, float), default=(37.0, -95.0)
        Latitude and longitude in the middle of the airports.
    extent_km : float, default=1500.0
        Airports lie so far from the middle, or up to 30 % nearer.
    spread_km : float, default=15.0
        Standard deviation of the bends.
    random_state : int, RandomState instance or None, default=None
        Seed of all draws.

    Returns
    -------
    tracks : Tracks

    Examples
    --------
    >>> from corral.trajectories import make_tracks
    >>> tracks = make_tracks(3, n_routes=2, random_state=0)
    >>> tracks.ids
    ['R1-0001', 'R2-0002', 'R1-0003']
    """
    rng = _generator(random_state)
    routes = _draw_routes(rng, n_routes, center, extent_km)
    drawn = [
        _draw_flight(rng, routes[flight % n_routes], spread_km)
        for flight in range(n_tracks)
    ]
    return _join(
        [f"R{flight % n_routes + 1}-{flight + 1:04d}" for flight in range(n_tracks)],
        drawn,
    )


def plant_errors(tracks, n_errors, *, kinds=tuple(ERRORS), random_state=None):
    """Spoil some flights, as failures of sensors and of transmission do.

    - "mixed": two flights in one. Somewhere between 35 % and 65 % of its time the first
      goes on as the second, or the reports of the second's middle third are mixed in.
      The second is one of those farther from the first than half of all flights.
    - "truncated": only a fifth to a half of the path is left, from the start or the
      end.
    - "shifted": all positions are moved in one direction by half to all of the median
      length of the flights.

    Parameters
    ----------
    tracks : Tracks
    n_errors : int
        Number of flights to spoil; each kind gets the same number, or one more.
    kinds : sequence of str, default=("mixed", "truncated", "shifted")
        Kinds of errors.
    random_state : int, RandomState instance or None, default=None
        Seed of all draws.

    Returns
    -------
    planted : PlantedTracks
        The flights in their order, and the kind of error of each.
    """
    if n_errors > len(tracks):
        raise ValueError(
            f"n_errors={n_errors} should be at most the number of tracks, "
            f"{len(tracks)}."
        )
    rng = _generator(random_state)
    flights = [_flight(tracks, track) for track in range(len(tracks))]
    median_km = float(np.median([_length_km(flight) for flight in flights]))
    spoil = {
        "mixed": lambda flight: _mix(rng, flight, _far_one(rng, flight, flights)),
        "truncated": lambda flight: _truncate(rng, flight),
        "shifted": lambda flight: _shift(rng, flight, median_km),
    }
    errors = np.full(len(tracks), "", dtype="<U9")
    spoiled = list(flights)
    for number, track in enumerate(rng.permutation(len(tracks))[:n_errors]):
        errors[track] = kinds[number % len(kinds)]
        spoiled[track] = spoil[errors[track]](flights[track])
    return PlantedTracks(_join(tracks.ids, spoiled), errors)


class _Flight(NamedTuple):
    time: np.ndarray
    points: np.ndarray  # unit vectors


def _generator(random_state) -> np.random.Generator:
    return np.random.default_rng(check_random_state(random_state).randint(2**31))


def _draw_routes(rng, n_routes: int, center, extent_km: float):
    # Airports on a ring, evenly spaced but for a little, so that routes differ.
    n_airports = max(3, n_routes)
    angles = 2 * np.pi * (np.arange(n_airports) + rng.uniform(0, 0.4)) / n_airports
    radii = extent_km * rng.uniform(0.7, 1.0, n_airports)
    airports = _around(center, radii * np.cos(angles), radii * np.sin(angles))
    hop = 1 + np.arange(n_routes) % max(1, n_airports // 2)
    starts = np.arange(n_routes) % n_airports
    return [
        (airports[start], airports[(start + step) % n_airports])
        for start, step in zip(starts, hop, strict=True)
    ]


def _around(center, east_km: np.ndarray, north_km: np.ndarray) -> np.ndarray:
    """Return the points so far east and north of a place."""
    up, frame = local_frame(to_points(*np.array(center)[:, None]))
    angle = np.hypot(east_km, north_km) / EARTH_RADIUS_KM
    toward = np.arctan2(north_km, east_km)
    ahead = np.cos(toward)[:, None] * frame[0] + np.sin(toward)[:, None] * frame[1]
    return np.cos(angle)[:, None] * up + np.sin(angle)[:, None] * ahead


def _draw_flight(rng, route: np.ndarray, spread_km: float) -> _Flight:
    start, end = route
    length = EARTH_RADIUS_KM * np.arccos(np.clip(start @ end, -1, 1))
    duration = length / _SPEED * rng.uniform(0.95, 1.1)
    times = np.cumsum(rng.uniform(20, 60, size=max(8, int(duration / 40))))
    times *= duration / times[-1]
    shares = times / duration
    bend = sum(
        rng.normal(0, spread_km) * np.sin(np.pi * waves * shares) for waves in (1, 2)
    )
    n = len(shares)
    line = interpolate(np.tile(start, (n, 1)), np.tile(end, (n, 1)), shares)
    side = np.cross(start, end)
    points = line + (bend / EARTH_RADIUS_KM)[:, None] * side / np.linalg.norm(side)
    points += rng.normal(0, 0.1 / EARTH_RADIUS_KM, points.shape)
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    kept = np.ones(n, dtype=bool)
    if rng.random() < 0.05:
        gap = rng.uniform(0.2, 0.6)
        kept = (shares < gap) | (shares > gap + 0.2)
    return _Flight(times[kept], points[kept])


def _flight(tracks: Tracks, track: int) -> _Flight:
    rows = slice(tracks.offsets[track], tracks.offsets[track + 1])
    points = to_points(tracks.latitude[rows], tracks.longitude[rows])
    return _Flight(tracks.time[rows], points)


def _join(ids: list[str], flights: list[_Flight]) -> Tracks:
    latitude, longitude = to_degrees(np.concatenate([each.points for each in flights]))
    counts = [len(each.time) for each in flights]
    return Tracks(
        ids,
        np.concatenate([each.time for each in flights]),
        latitude,
        wrap(longitude),
        np.append(0, np.cumsum(counts)),
    )


def _length_km(flight: _Flight) -> float:
    steps = np.linalg.norm(np.diff(flight.points, axis=0), axis=1)
    return EARTH_RADIUS_KM * float(steps.sum())


def _far_one(rng, flight: _Flight, flights: list[_Flight]) -> _Flight:
    """Return one of the half of (at most 50 drawn) flights that is farthest away."""
    drawn = rng.choice(len(flights), size=min(50, len(flights)), replace=False)
    middle = flight.points[len(flight.points) // 2]
    ends = flight.points[[0, -1]]

    def distance(other: _Flight) -> float:
        own = other.points[len(other.points) // 2]
        return float(
            np.linalg.norm(own - middle)
            + np.linalg.norm(other.points[[0, -1]] - ends, axis=1).sum()
        )

    ranked = sorted((flights[each] for each in drawn), key=distance)
    return ranked[rng.integers(len(ranked) // 2, len(ranked))]


def _mix(rng, first: _Flight, second: _Flight) -> _Flight:
    clock_1, clock_2 = _clock(first), _clock(second)
    if rng.random() < 0.5:
        switch = rng.uniform(0.35, 0.65)
        kept_1, kept_2 = clock_1 <= switch, clock_2 > switch
    else:
        switch = 1 / 3
        kept_1 = np.full(len(clock_1), True)
        kept_2 = (clock_2 > 1 / 3) & (clock_2 < 2 / 3)
    # Both are at the same share of their flights at the same moment.
    late = _moment(first, switch) - _moment(second, switch)
    time = np.concatenate([first.time[kept_1], second.time[kept_2] + late])
    points = np.concatenate([first.points[kept_1], second.points[kept_2]])
    order = np.argsort(time, kind="stable")
    return _Flight(time[order], points[order])


def _moment(flight: _Flight, share: float) -> float:
    return flight.time[0] + share * (flight.time[-1] - flight.time[0])


def _clock(flight: _Flight) -> np.ndarray:
    return (flight.time - flight.time[0]) / (flight.time[-1] - flight.time[0])


def _truncate(rng, flight: _Flight) -> _Flight:
    steps = np.linalg.norm(np.diff(flight.points, axis=0), axis=1)
    shares = np.append(0, np.cumsum(steps)) / max(steps.sum(), 1e-300)
    left = rng.uniform(0.2, 0.5)
    kept = shares <= left if rng.random() < 0.5 else shares >= 1 - left
    # A flight of few reports keeps its nearest five at that end.
    if kept.sum() < 5:
        at_start = bool(kept[0])
        kept[:] = False
        kept[slice(0, 5) if at_start else slice(-5, None)] = True
    return _Flight(flight.time[kept], flight.points[kept])


def _shift(rng, flight: _Flight, median_km: float) -> _Flight:
    """Turn the earth under the flight: distances within it stay as they are."""
    middle, frame = local_frame(flight.points)
    toward = rng.uniform(0, 2 * np.pi)
    ahead = np.cos(toward) * frame[0] + np.sin(toward) * frame[1]
    angle = median_km * rng.uniform(0.5, 1.0) / EARTH_RADIUS_KM
    axis = np.cross(middle, ahead)
    points = flight.points
    turned = (
        points * np.cos(angle)
        + np.cross(axis, points) * np.sin(angle)
        + (points @ axis)[:, None] * axis * (1 - np.cos(angle))
    )
    return _Flight(flight.time, turned)
