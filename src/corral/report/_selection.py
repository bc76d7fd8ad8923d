"""Why a number of clusters and of outliers was chosen, and how sure the labels are."""

import numpy as np

from corral._criteria import MIN_TOLD
from corral._curves import (
    Curve,
    cluster_curve,
    gap_curve,
    outlier_curves,
)
from corral._doubts import count_doubts, say_doubts
from corral._selection import Selection
from corral.report._schema import (
    Candidate,
    Confidence,
    CurveOfK,
    Points,
    SelectionSummary,
)

# Candidates that are listed: so many more or fewer clusters, and so many other numbers
# of outliers.
_MORE_CLUSTERS = 3
_OTHER_OUTLIERS = 3

# Columns of the table of candidates that are no criteria.
_NO_CRITERIA = {"n_clusters", "n_outliers", "is_chosen"}


def describe_selection(estimator) -> SelectionSummary | None:
    """Describe how the numbers of a fit were chosen; None if they were given."""
    selection = getattr(estimator, "selection_", None)
    if selection is None:
        return None
    return {
        "n_clusters": selection.n_clusters_,
        "n_outliers": selection.n_outliers_,
        "runner_up": None if selection.runner_up is None else [*selection.runner_up],
        "reason": selection.reason,
        "told": _points(cluster_curve(selection, "told")),
        "told_threshold": MIN_TOLD,
        "gaps": _points(gap_curve(selection)),
        "gap_threshold": float(selection.gap_threshold),
        "objectives": [
            CurveOfK(n_clusters=k, points=_as_lists(curve))
            for k, curve in outlier_curves(selection, "objective").items()
        ],
        "n_searched": selection.n_searched,
        "n_candidates": len(selection.columns["is_chosen"]),
        "candidates": [_candidate(selection, row) for row in _beside(selection)],
    }


def describe_confidence(estimator) -> Confidence | None:
    """Describe how sure the labels of a fit are; None if that is not known."""
    doubts = count_doubts(estimator)
    if doubts is None:
        return None
    return {
        "n_sure": doubts.n_sure,
        "n_kept_in_doubt": doubts.n_kept_in_doubt,
        "n_aside_in_doubt": doubts.n_aside_in_doubt,
        "words": say_doubts(doubts),
    }


def _beside(selection: Selection) -> list[int]:
    """Return the rows of the chosen candidate and of those that are nearest to it."""
    columns = selection.columns
    clusters, outliers = columns["n_clusters"], columns["n_outliers"]
    n_clusters, n_outliers = selection.n_clusters_, selection.n_outliers_
    is_near = (outliers == n_outliers) & (
        np.abs(clusters - n_clusters) <= _MORE_CLUSTERS
    )
    others = np.flatnonzero((clusters == n_clusters) & (outliers != n_outliers))
    gaps = np.nan_to_num(columns.get("gap", np.zeros(len(clusters)))[others])
    widest = others[np.argsort(-gaps, kind="stable")[:_OTHER_OUTLIERS]]
    is_near[widest] = True
    if selection.runner_up is not None:
        k, o = selection.runner_up
        is_near |= (clusters == k) & (outliers == o)
    rows = np.flatnonzero(is_near)
    return rows[np.lexsort((clusters[rows], outliers[rows]))].tolist()


def _candidate(selection: Selection, row: int) -> Candidate:
    columns = selection.columns
    pair = int(columns["n_clusters"][row]), int(columns["n_outliers"][row])
    values = {
        name: _finite(values[row])
        for name, values in columns.items()
        if name not in _NO_CRITERIA
    }
    return {
        "n_clusters": pair[0],
        "n_outliers": pair[1],
        "criteria": values,
        "is_chosen": bool(columns["is_chosen"][row]),
        "is_runner_up": pair == selection.runner_up,
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None


def _points(curve: Curve | None) -> Points | None:
    return None if curve is None else _as_lists(curve)


def _as_lists(curve: Curve) -> Points:
    return {"numbers": curve.numbers.tolist(), "values": curve.values.tolist()}
