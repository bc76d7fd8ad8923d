"""What kind of outlier a flight is: out of range, partial, mixed, or of unusual shape.

The measure of all rules is the *corridor* of a cluster: all places within a tolerance
of the path of one of its flights. The tolerance is the cluster's own: flights of one
half of it are measured against the other half, and 99 of 100 points lie within the
tolerance. The *way* of a cluster is the same with the heading as well: to fly 45
degrees off the heading of a flight counts as much as to be a tolerance away from it.
"""

import math
from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree

from corral.trajectories._resample import ResampledTracks

KINDS = ("out of range", "partial", "mixed", "unusual shape")

# Flights of a cluster that its corridor is made of, points on the path of each, and
# points that its tolerance is measured with: enough to stand for all, and few enough
# for half a second.
_MAX_FLIGHTS = 500
_PATH_POINTS = 200
_MAX_MEASURED = 3000

# Share of the points of one half of a cluster within its tolerance of the other.
_WITHIN = 0.99

# A flight follows a way or a corridor if at most this share of its points is off it.
_OUTSIDE = 0.1

# Each part of a mixed flight is at least this share of it.
_PART = 0.2

# A flight is short or long if it is beyond this share of the flights of its cluster.
_RARE_LENGTH = 0.05

# Only flights with less than this share of the length of nearly all are called short;
# long ones exceed it in the same way.
_SHORT = 0.8

# A heading so many degrees off counts as much as to be a tolerance away.
_TURN = 45

# A flight is partial if more than this share of its way is a gap.
_GAP = 0.5


class OutlierKind(NamedTuple):
    """What kind of outlier a flight is, and why.

    Attributes
    ----------
    row : int
        Row of the flight in ``ResampledTracks.X``.
    id : str
        Name of the flight.
    kind : str
        One of "out of range", "partial", "mixed" and "unusual shape".
    cluster : int
        The cluster that it was compared with: its nearest, or the one it follows.
    reasons : list of str
        Why, in words; the first reason decided.
    """

    row: int
    id: str
    kind: str
    cluster: int
    reasons: list[str]


def classify_outliers(
    resampled: ResampledTracks,
    labels: np.ndarray,
    nearest_labels: np.ndarray | None = None,
) -> list[OutlierKind]:
    """Say what kind of outlier each flight that was set aside is.

    The first rule that holds decides:

    1. *mixed*: a jump that is longer than the tolerance of its nearest cluster;
    2. *partial*: more than half of its way is a gap, or it follows the way of a cluster
       and has less than 80 % of the length that 95 % of its flights reach;
    3. *mixed*: it follows no way, but a first part of at least a fifth follows the way
       of one cluster and the rest that of another;
    4. *unusual shape*: it stays within the corridor of a cluster;
    5. *out of range*: all others, for they leave the corridors.

    The corridor of a cluster is all that lies within a tolerance of the path of one of
    its flights, and its way is the same with the heading as well. The tolerance comes
    from the cluster itself: of the points of its flights, 99 % lie within the tolerance
    of the path of another one. A flight follows a way, or stays within a corridor, if
    at most a tenth of its points lies outside.

    Parameters
    ----------
    resampled : ResampledTracks
        From :func:`resample_tracks`.
    labels : array-like of shape (n_flights,)
        Cluster of each flight, -1 for outliers, from any method.
    nearest_labels : array-like of shape (n_flights,), default=None
        Nearest cluster of each flight. None means the one with the nearest mean.

    Returns
    -------
    kinds : list of OutlierKind
        One for each outlier, in the order of the rows.
    """
    labels = np.asarray(labels)
    if labels.shape != (len(resampled),):
        raise ValueError(
            f"labels has shape {labels.shape}, which should be ({len(resampled)},): "
            "one for each flight."
        )
    rows = np.flatnonzero(labels == -1)
    clusters = np.unique(labels[labels >= 0])
    if len(clusters) == 0:
        raise ValueError(
            "labels has no cluster, so outliers cannot be compared with one. Set aside "
            "fewer flights."
        )
    if len(rows) == 0:
        return []
    corridors = [_corridor(resampled, labels, cluster) for cluster in clusters]
    if nearest_labels is None:
        nearest = _nearest_means(resampled, corridors, rows)
    else:
        nearest = np.searchsorted(clusters, np.asarray(nearest_labels)[rows])
        nearest = nearest.clip(max=len(clusters) - 1)
    courses = [_measure(resampled.points[rows], corridor) for corridor in corridors]
    return [
        _classify(
            resampled,
            int(row),
            corridors,
            int(nearest[i]),
            _Course(
                *(np.stack([each[field][i] for each in courses]) for field in range(4))
            ),
        )
        for i, row in enumerate(rows)
    ]


class _Corridor(NamedTuple):
    cluster: int
    places: KDTree  # of points on the paths
    headings: np.ndarray  # there
    ways: KDTree  # of points and headings
    tolerance_km: float
    turn_km: float  # what a heading weighs
    way_tolerance: float
    mean: np.ndarray  # (n_points, 3)
    shortest_km: float
    longest_km: float


class _Course(NamedTuple):
    # Each of shape (n_clusters, n_points), for one flight.
    distances: np.ndarray
    is_outside: np.ndarray  # the corridor
    is_astray: np.ndarray  # off the way
    turns: np.ndarray  # degrees, from the heading of the nearest point of a path


def _corridor(
    resampled: ResampledTracks, labels: np.ndarray, cluster: int
) -> _Corridor:
    members = np.flatnonzero(labels == cluster)
    chosen = members[:: -(-len(members) // _MAX_FLIGHTS)]
    paths = _paths(resampled.points[chosen])
    headings = _headings(paths)
    tolerance = _tolerance(paths)
    turn = tolerance / (2 * math.sin(math.radians(_TURN) / 2))
    ways = np.concatenate([paths, turn * headings], axis=2)
    return _Corridor(
        int(cluster),
        KDTree(paths.reshape(-1, 3)),
        headings.reshape(-1, 3),
        KDTree(ways.reshape(-1, 6)),
        tolerance,
        turn,
        _tolerance(ways),
        resampled.points[members].mean(axis=0),
        *np.quantile(resampled.length_km[members], [_RARE_LENGTH, 1 - _RARE_LENGTH]),
    )


def _paths(points: np.ndarray) -> np.ndarray:
    """Return more points on straight lines between points of (n, n_points, 3)."""
    n_points = points.shape[1]
    n_parts = max(1, -(-_PATH_POINTS // (n_points - 1)))
    places = np.linspace(0, n_points - 1, n_parts * (n_points - 1) + 1)
    before = np.minimum(places.astype(int), n_points - 2)
    share = (places - before)[:, None]
    return (1 - share) * points[:, before] + share * points[:, before + 1]


def _headings(points: np.ndarray) -> np.ndarray:
    """Return unit vectors along paths, or zero where a flight stays."""
    ahead = np.gradient(points, axis=1)
    lengths = np.linalg.norm(ahead, axis=2, keepdims=True)
    return ahead / np.where(lengths > 0, lengths, 1)


def _tolerance(paths: np.ndarray) -> float:
    """Return how far points of a flight are from the paths of others."""
    if len(paths) == 1:
        # Nothing but the distance of its points is known.
        return float(np.linalg.norm(np.diff(paths[0], axis=0), axis=1).max())
    halves = [paths[start::2].reshape(-1, paths.shape[2]) for start in (0, 1)]
    across = [
        KDTree(there).query(here[:: -(-len(here) // _MAX_MEASURED)])[0]
        for here, there in (halves, halves[::-1])
    ]
    return float(np.quantile(np.concatenate(across), _WITHIN))


def _measure(points: np.ndarray, corridor: _Corridor) -> _Course:
    """Compare flights, (n, n_points, 3), with a cluster; fields are (n, n_points)."""
    headings = _headings(points)
    distances, nearest = corridor.places.query(points)
    ways = np.concatenate([points, corridor.turn_km * headings], axis=2)
    cosines = (headings * corridor.headings[nearest]).sum(axis=2)
    return _Course(
        distances,
        distances > corridor.tolerance_km,
        corridor.ways.query(ways)[0] > corridor.way_tolerance,
        np.degrees(np.arccos(cosines.clip(-1, 1))),
    )


def _nearest_means(
    resampled: ResampledTracks, corridors: list[_Corridor], rows: np.ndarray
) -> np.ndarray:
    means = np.stack([corridor.mean for corridor in corridors])
    apart = [((resampled.points[row] - means) ** 2).sum(axis=(1, 2)) for row in rows]
    return np.array([np.argmin(each) for each in apart], dtype=np.intp)


def _classify(
    resampled: ResampledTracks,
    row: int,
    corridors: list[_Corridor],
    nearest: int,
    course: _Course,
) -> OutlierKind:
    """Apply the rules in their order."""
    way = _followed(course.is_astray, nearest)
    place = _followed(course.is_outside, nearest)
    compared = next((each for each in (way, place) if each is not None), nearest)
    corridor = corridors[compared]
    length, gap = resampled.length_km[row], resampled.gap_share[row]
    halves = "" if way is not None else _two_ways(course.is_astray, corridors)

    def found(kind: str, *reasons: str) -> OutlierKind:
        said = [reason for reason in reasons if reason]
        return OutlierKind(row, resampled.ids[row], kind, corridor.cluster, said)

    if resampled.jump_km[row] > corridors[nearest].tolerance_km:
        return found("mixed", _say_jump(resampled.jump_km[row]), halves)
    if gap > _GAP:
        return found("partial", f"no positions for {gap:.0%} of its way")
    if way is not None and length < _SHORT * corridor.shortest_km:
        return found("partial", _say_short(length, corridor), _say_gap(gap))
    if halves:
        return found("mixed", halves, _say_gap(gap))
    if place is not None:
        reasons = [
            _say_turned(resampled.points[row], course.turns[compared], corridor),
            _say_short(length, corridor),
            _say_long(length, corridor),
            _say_gap(gap),
        ]
        return found("unusual shape", *reasons, _say_nothing(reasons, corridor))
    share = float(course.is_outside[nearest].mean())
    return found(
        "out of range",
        _say_outside(course.distances[nearest], share, corridor),
        _say_gap(gap),
    )


def _followed(is_off: np.ndarray, nearest: int) -> int | None:
    """Return the cluster that a flight follows: its nearest, else the best, or None."""
    shares = is_off.mean(axis=1)
    best = nearest if shares[nearest] <= _OUTSIDE else int(np.argmin(shares))
    return best if shares[best] <= _OUTSIDE else None


def _two_ways(is_astray: np.ndarray, corridors: list[_Corridor]) -> str:
    """Say which two ways a flight follows one after the other, if it does."""
    n_points = is_astray.shape[1]
    before = np.cumsum(is_astray, axis=1)
    after = before[:, -1:] - before
    # A split after point s has s + 1 points before it.
    splits = np.arange(n_points)
    splits = splits[
        (splits + 1 >= _PART * n_points) & (splits + 1 <= (1 - _PART) * n_points)
    ]
    if len(splits) == 0:
        return ""
    astray = before[:, splits].min(axis=0) + after[:, splits].min(axis=0)
    best = splits[np.argmin(astray)]
    if astray.min() > _OUTSIDE * n_points:
        return ""
    first = corridors[np.argmin(before[:, best])].cluster
    second = corridors[np.argmin(after[:, best])].cluster
    share = (best + 1) / n_points
    return f"the first {share:.0%} follow cluster {first}, the rest cluster {second}"


def _say_jump(jump_km: float) -> str:
    return f"jumps {jump_km:,.0f} km farther than it could fly in the time"


def _say_short(length: float, corridor: _Corridor) -> str:
    if length >= _SHORT * corridor.shortest_km:
        return ""
    return (
        f"{length:,.0f} km long, where 95% of the flights of cluster "
        f"{corridor.cluster} have more than {corridor.shortest_km:,.0f} km"
    )


def _say_long(length: float, corridor: _Corridor) -> str:
    if _SHORT * length <= corridor.longest_km:
        return ""
    return (
        f"{length:,.0f} km long, where 95% of the flights of cluster "
        f"{corridor.cluster} have less than {corridor.longest_km:,.0f} km"
    )


def _say_turned(points: np.ndarray, turns: np.ndarray, corridor: _Corridor) -> str:
    forward = np.linalg.norm(points - corridor.mean)
    backward = np.linalg.norm(points[::-1] - corridor.mean)
    if backward < forward / 2:
        return f"flies the way of cluster {corridor.cluster} backwards"
    share = float((turns > _TURN).mean())
    if share <= _OUTSIDE:
        return ""
    return (
        f"on {share:.0%} of its way, its heading is more than {_TURN} degrees off that "
        f"of the flights of cluster {corridor.cluster} around it"
    )


def _say_nothing(reasons: list[str], corridor: _Corridor) -> str:
    if any(reasons):
        return ""
    return (
        f"stays within the corridor of cluster {corridor.cluster}, but no flight of it "
        "is like it from start to end"
    )


def _say_gap(gap: float) -> str:
    return f"no positions for {gap:.0%} of its way" if gap > _OUTSIDE else ""


def _say_outside(distances: np.ndarray, share: float, corridor: _Corridor) -> str:
    return (
        f"{share:.0%} of its way lies outside the corridor of cluster "
        f"{corridor.cluster}, up to {distances.max():,.0f} km from its flights "
        f"(usual: up to {corridor.tolerance_km:,.1f} km)"
    )
