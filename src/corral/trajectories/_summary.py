"""From fitted flights to a plain dict, which the page and JSON are made of.

Keys of the summary:

- ``run``: counts and settings of the run;
- ``clusters``: label, size, median length, ends and lines of each cluster;
- ``outliers``: the strangest first: id, kind, cluster, score, length, gaps, reasons,
  line;
- ``kinds``: how many outliers are of which kind;
- ``skipped``: id and reason of flights that were set apart;
- ``map``: size of the view, graticule and scale.
"""

from collections import Counter
from typing import Any

import numpy as np

import corral
from corral.report._words import clip
from corral.trajectories._kinds import KINDS, OutlierKind
from corral.trajectories._map import (
    WIDTH,
    Plane,
    choose_scale,
    draw_graticule,
    draw_line,
    make_plane,
    say_place,
    simplify,
)
from corral.trajectories._resample import ResampledTracks
from corral.trajectories._sphere import distances_km, to_degrees, to_points, unwrap

# What a page can hold and a reader can look at; 3 MB at the very most.
MAX_DRAWN = 3000
MAX_OUTLIERS = 1000
_MAX_SKIPPED = 200
_MAX_PIECES = 100

# A pixel of a wide screen is ten units: lines of clusters may be off by more than those
# of single flights.
_CLUSTER_TOLERANCE = 15.0
_OUTLIER_TOLERANCE = 6.0

# Jumps of less are errors of the position.
_NOISE_KM = 3.0


def summarize_flights(
    resampled: ResampledTracks,
    model: Any,
    kinds: list[OutlierKind],
    *,
    command: str | None = None,
) -> dict[str, Any]:
    """Collect what was found, for a page or as JSON.

    Parameters
    ----------
    resampled : ResampledTracks
    model : COR
        Fitted to ``resampled.X``.
    kinds : list of OutlierKind
        From :func:`classify_outliers`.
    command : str, default=None
        The command line that made it.

    Returns
    -------
    summary : dict
        JSON-ready; its keys are described at the top of the module.
    """
    ranked = sorted(kinds, key=lambda each: -model.outlier_scores_[each.row])
    listed = ranked[:MAX_OUTLIERS]
    rows = [each.row for each in listed]
    lines = _full_lines(resampled, rows)
    plane = _choose_plane(resampled, model.labels_, lines)
    named = Counter(each.kind for each in kinds)
    return {
        "run": _describe_run(resampled, model, command),
        "clusters": _describe_clusters(resampled, model.labels_, plane),
        "outliers": [
            _describe_outlier(resampled, model, each, line, plane)
            for each, line in zip(listed, lines, strict=True)
        ],
        "kinds": {kind: named[kind] for kind in KINDS},
        "skipped": [
            {"id": clip(each.id), "reason": each.reason}
            for each in resampled.skipped[:_MAX_SKIPPED]
        ],
        "map": {
            "width": WIDTH,
            "height": plane.height,
            "km": plane.km,
            "scale_km": choose_scale(plane),
            "graticule": draw_graticule(plane),
        },
    }


def _describe_run(
    resampled: ResampledTracks, model: Any, command: str | None
) -> dict[str, Any]:
    return {
        "version": corral.__version__,
        "command": command,
        "n_flights": len(resampled),
        "n_positions": len(resampled.tracks.time),
        "n_skipped": len(resampled.skipped),
        "n_dropped": dict(resampled.n_dropped),
        "n_with_gaps": int((resampled.gap_share > 0.1).sum()),
        "n_points": resampled.latitude.shape[1],
        "by": resampled.by,
        "n_clusters": int(len(np.unique(model.labels_[model.labels_ >= 0]))),
        "n_outliers": int((model.labels_ == -1).sum()),
        "seed": model.random_state if isinstance(model.random_state, int) else None,
    }


def _choose_plane(
    resampled: ResampledTracks, labels: np.ndarray, lines: list[np.ndarray]
) -> Plane:
    kept = labels >= 0
    outliers = np.concatenate([np.empty((0, 3)), *lines])
    return make_plane(
        (resampled.latitude[kept], resampled.longitude[kept]),
        (outliers[:, 0], outliers[:, 1]),
    )


def _full_lines(resampled: ResampledTracks, rows: list[int]) -> list[np.ndarray]:
    """Return latitude, longitude as in ``resampled``, and time of all positions."""
    if not rows:
        return []
    tracks = resampled.tracks.take(rows)
    middle = float(np.median(resampled.longitude))
    longitude = unwrap(tracks.longitude, tracks.offsets[:-1], middle)
    positions = np.column_stack([tracks.latitude, longitude, tracks.time])
    return np.split(positions, tracks.offsets[1:-1])


def _describe_clusters(
    resampled: ResampledTracks, labels: np.ndarray, plane: Plane
) -> list[dict[str, Any]]:
    n_kept = int((labels >= 0).sum())
    every = max(1, -(-n_kept // MAX_DRAWN))
    return [
        _describe_cluster(
            resampled, np.flatnonzero(labels == label), label, every, plane
        )
        for label in np.unique(labels[labels >= 0]).tolist()
    ]


def _describe_cluster(
    resampled: ResampledTracks,
    members: np.ndarray,
    label: int,
    every: int,
    plane: Plane,
) -> dict[str, Any]:
    drawn = members[::every]
    lines = [
        _draw(
            resampled.latitude[row], resampled.longitude[row], plane, _CLUSTER_TOLERANCE
        )
        for row in drawn
    ]
    latitude, longitude = _mean_track(resampled, members)
    return {
        "label": label,
        "size": len(members),
        "n_drawn": len(drawn),
        "length_km": float(np.median(resampled.length_km[members])),
        "start": say_place(latitude[0], longitude[0]),
        "end": say_place(latitude[-1], longitude[-1]),
        "line": "".join(lines),
        "mean": _draw(latitude, longitude, plane, _OUTLIER_TOLERANCE),
        "place": plane.place(latitude[-1:], longitude[-1:])[0].round().tolist(),
    }


def _mean_track(
    resampled: ResampledTracks, members: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean of each point on the sphere, next to the flights of the map."""
    points = to_points(resampled.latitude[members], resampled.longitude[members])
    latitude, longitude = to_degrees(points.mean(axis=0))
    middle = float(np.median(resampled.longitude[members]))
    return latitude, unwrap(longitude, np.array([0]), middle)


def _describe_outlier(
    resampled: ResampledTracks,
    model: Any,
    kind: OutlierKind,
    line: np.ndarray,
    plane: Plane,
) -> dict[str, Any]:
    pieces = _split_at_jumps(line, resampled.speed_limit)
    ends = [
        np.stack([before[-1], after[0]])
        for before, after in zip(pieces[:-1], pieces[1:], strict=True)
    ]
    return {
        "id": clip(kind.id),
        "row": kind.row,
        "kind": kind.kind,
        "cluster": kind.cluster,
        "score": float(model.outlier_scores_[kind.row]),
        "length_km": float(resampled.length_km[kind.row]),
        "gap_share": float(resampled.gap_share[kind.row]),
        "reasons": list(kind.reasons),
        "line": _draw_pieces(pieces, plane),
        "jumps": _draw_pieces(ends, plane),
        "start": plane.place(line[:1, 0], line[:1, 1])[0].round().tolist(),
    }


def _split_at_jumps(line: np.ndarray, speed_limit: float) -> list[np.ndarray]:
    """Cut a flight where it jumps by more than a noisy position explains."""
    points = to_points(line[:, 0], line[:, 1])
    steps = distances_km(points[:-1], points[1:])
    beyond = steps - speed_limit * np.diff(line[:, 2])
    return np.split(line, np.flatnonzero(beyond > _NOISE_KM) + 1)


def _draw_pieces(pieces: list[np.ndarray], plane: Plane) -> str:
    shown = pieces[:: -(-len(pieces) // _MAX_PIECES)] if pieces else []
    return "".join(
        _draw(piece[:, 0], piece[:, 1], plane, _OUTLIER_TOLERANCE) for piece in shown
    )


def _draw(
    latitude: np.ndarray, longitude: np.ndarray, plane: Plane, tolerance: float
) -> str:
    return draw_line(simplify(plane.place(latitude, longitude), tolerance))
