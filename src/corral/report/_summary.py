"""From a fitted estimator to a plain dict: what a report says, without how it looks."""

from collections.abc import Sequence

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse

from corral._consensus import take_rows
from corral._detector import unwrap
from corral.report._agreement import describe_agreement
from corral.report._clusters import count_categories, describe_clusters, profile_rows
from corral.report._map import choose_rows, part_ties, place, project
from corral.report._outcome import Outcome, read_outcome
from corral.report._reasons import Apart, Wording, find_apart
from corral.report._reproduce import (
    has_seed,
    list_settings,
    list_versions,
    write_python,
)
from corral.report._rows import Rows, read_rows
from corral.report._schema import Reason, RowMap, Run, Scores, StrangeRow, Summary
from corral.report._selection import describe_confidence, describe_selection
from corral.report._words import clip, show_value

# The score curve is drawn through at most about this many ranks.
_MAX_CURVE_POINTS = 300

# So many of a row's own values are listed, and so many reasons on the map.
_MAX_VALUES = 30
_MAP_REASONS = 3

# Longer lines of Python and commands are cut.
_MAX_LINE = 4000

# Wide rows are compared with their clusters only as long as these are no more cells.
_MAX_CELLS = 2**24


def summarize(
    estimator,
    X=None,
    *,
    feature_names: Sequence[str] | None = None,
    ids: Sequence[str] | None = None,
    values=None,
    command: str | None = None,
    python: str | None = None,
    is_training: bool = True,
    n_all: int | None = None,
    n_strangest: int = 200,
    extra_partitions=None,
) -> Summary:
    """Collect what a report says about a fitted estimator.

    Parameters
    ----------
    estimator : COR, or any method of :func:`corral.all_methods`
        Fitted. What a method cannot tell is left out.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features), \
            default=None
        The rows as they were given to the estimator. With them the summary tells what
        makes a cluster different and what sets a strange row apart, and has a map.
    feature_names : sequence of str, default=None
        Names for the columns of X. None takes the names seen in the fit, or those of
        a data frame, or else numbers the columns.
    ids : sequence of str, default=None
        What the user calls the rows. None numbers them from 0.
    values : data frame, default=None
        The user's own values of the same rows, where X was encoded or scaled; any data
        frame that narwhals knows. A sparse matrix is as good as None.
    command : str, default=None
        The command that made the result, to be shown.
    python : str, default=None
        The line of Python that made the result. None writes that of the estimator.
    is_training : bool, default=True
        Whether the rows are those of the fit. Others are judged anew by ``predict``
        and ``score_samples``.
    n_all : int, default=None
        How many rows there are in all, if these are a random part of them.
    n_strangest : int, default=200
        How many of the rows with the highest scores to describe.
    extra_partitions : array-like of shape (n_samples, n_extra), default=None
        Labels that were given to ``fit`` along with X. Without them, the agreement of
        the partitions is left out.

    Returns
    -------
    summary : dict
        Ready for JSON. Its keys are described in ``corral.report._schema``.
    """
    if n_strangest < 0:
        raise ValueError(f"n_strangest={n_strangest} should be 0 or more.")
    inner = unwrap(estimator)
    outcome = read_outcome(inner, X, is_training=is_training)
    names = RowNames(ids, values, outcome.n_samples)
    strange = outcome.order[:n_strangest]
    drawn = choose_rows(outcome, n_strangest)
    rows, profile, reasons, agreement = None, None, None, None
    if X is not None:
        rows = _read(inner, X, feature_names, outcome)
        profile = profile_rows(inner, rows, outcome, is_training=is_training)
        asked = np.union1d(strange, drawn[: _MAX_CELLS // max(len(rows.names), 1)])
        apart = find_apart(
            inner, X, rows, asked, outcome, profile, extra_partitions=extra_partitions
        )
        reasons = _Reasons(rows, outcome, asked, apart, names.values)
        agreement = describe_agreement(
            inner, X, outcome, extra_partitions=extra_partitions
        )
    sure = _Sure(inner, is_training=is_training)
    history = np.asarray(getattr(inner, "objective_history_", []), dtype=np.float64)
    return {
        "run": _run(inner, outcome, rows, names.values, is_training, n_all),
        "selection": describe_selection(inner) if is_training else None,
        "confidence": describe_confidence(inner) if is_training else None,
        "clusters": describe_clusters(
            outcome, rows, profile, names.values, sure.stability
        ),
        "map": _map(inner, outcome, rows, drawn, names, reasons),
        "scores": describe_scores(outcome),
        "strangest": _strangest(outcome, strange, names, reasons, sure),
        "agreement": agreement,
        "objective_history": history.tolist(),
        "settings": list_settings(inner),
        "versions": list_versions(),
        "python": clip(python or write_python(estimator), _MAX_LINE),
        "command": None if command is None else clip(command, _MAX_LINE),
        "is_seeded": has_seed(estimator),
    }


def _read(estimator, X, feature_names, outcome: Outcome) -> Rows:
    if feature_names is None:
        feature_names = getattr(estimator, "feature_names_in_", None)
    rows = read_rows(
        X,
        names=feature_names,
        categorical_features=getattr(estimator, "categorical_features", None),
        are_labels=getattr(estimator, "_is_precomputed", False),
    )
    if rows.n_samples != outcome.n_samples:
        raise ValueError(
            f"X has {rows.n_samples} rows but the estimator was fitted on "
            f"{outcome.n_samples}. Give the rows of the fit, or is_training=False."
        )
    return rows


class RowNames:
    """What the user calls the rows, and what they hold.

    Attributes
    ----------
    values : narwhals data frame or None
    """

    def __init__(self, ids, values, n_samples: int) -> None:
        self.values = None
        # A sparse matrix has no values that a user would know.
        if values is not None and not sparse.issparse(values):
            self.values = nw.from_native(values, eager_only=True)
        self._ids = ids
        for name, given in (("ids", ids), ("values", self.values)):
            if given is not None and len(given) != n_samples:
                raise ValueError(
                    f"{name} has {len(given)} entries but there are {n_samples} rows."
                )

    def ids_of(self, rows: np.ndarray) -> list[str]:
        """Return the ids of some rows."""
        if self._ids is None:
            return [str(row) for row in rows.tolist()]
        return [clip(self._ids[row]) for row in rows.tolist()]

    def values_of(self, rows: np.ndarray) -> list[dict[str, str]]:
        """Return the values of some rows as short texts, by column."""
        if self.values is None:
            return [{} for _ in rows]
        some = self.values.select(self.values.columns[:_MAX_VALUES])
        native = take_rows(some.to_native(), rows)
        names = [clip(name) for name in some.columns]
        return [
            dict(zip(names, map(show_value, cells), strict=True))
            for cells in nw.from_native(native, eager_only=True).rows()
        ]


class _Reasons:
    """What sets the rows apart that were asked for, by row."""

    def __init__(
        self,
        rows: Rows,
        outcome: Outcome,
        asked: np.ndarray,
        apart: Apart,
        values: nw.DataFrame | None,
    ) -> None:
        whole = "its cluster" if outcome.n_clusters else "the other rows"
        counts = count_categories(rows, outcome)
        self._words = Wording(rows, counts, whole, ~outcome.is_outlier, values)
        self._outcome = outcome
        self._place = {row: j for j, row in enumerate(asked.tolist())}
        self._apart = apart

    def kept(self, row: int) -> list[tuple[str, float]]:
        """Return the columns of a row that are worth a word."""
        j = self._place.get(row)
        if j is None:
            return []
        return self._words.keep(
            row,
            int(self._outcome.nearest[row]),
            self._apart.names[j],
            self._apart.differences[j],
        )

    def in_words(self, row: int) -> list[Reason]:
        """Return the reasons of a row."""
        nearest = int(self._outcome.nearest[row])
        return self._words.reasons(row, nearest, self.kept(row))

    def disagreement(self, row: int) -> float | None:
        """Return the share of the partitions that disagree; None if unknown."""
        if self._apart.disagreement is None:
            return None
        return float(self._apart.disagreement[self._place[row]])

    def is_number(self, name: str) -> bool:
        """Return whether a name is that of a column of numbers."""
        return self._words.is_number(name)


class _Sure:
    """How sure a fit is of its rows and clusters, where it knows.

    Attributes
    ----------
    stability : ndarray of shape (n_clusters,) or None
    """

    def __init__(self, estimator, *, is_training: bool) -> None:
        def read(name: str) -> np.ndarray | None:
            return getattr(estimator, name, None) if is_training else None

        self._outlier = read("outlier_confidence_")
        self._label = read("label_confidence_")
        self.stability = read("cluster_stability_")

    def of_row(self, row: int) -> tuple[float | None, float | None]:
        """Return the probability of being set aside, and of the nearest cluster."""
        outlier, label = (
            None if values is None else _finite(values[row])
            for values in (self._outlier, self._label)
        )
        return outlier, label


def _run(
    estimator,
    outcome: Outcome,
    rows: Rows | None,
    values: nw.DataFrame | None,
    is_training: bool,
    n_all: int | None,
) -> Run:
    has_features = not getattr(estimator, "_is_precomputed", False)
    return {
        "method": type(estimator).__name__,
        "kind": "joint" if outcome.n_clusters else "detector",
        "is_training": is_training,
        "n_samples": outcome.n_samples,
        "n_all": n_all,
        "n_features": int(estimator.n_features_in_) if has_features else None,
        "n_clusters": outcome.n_clusters,
        "n_outliers": int(outcome.is_outlier.sum()),
        "n_partitions": _whole(estimator, "n_partitions_"),
        "n_codes": _whole(estimator, "n_codes_"),
        "n_iter": _whole(estimator, "n_iter_"),
        "objective": _finite(getattr(estimator, "objective_", None)),
        "n_missing": {
            clip(name): count
            for name, count in (rows.count_missing(values) if rows else {}).items()
        },
    }


def _whole(estimator, name: str) -> int | None:
    value = getattr(estimator, name, None)
    return None if value is None else int(value)


def _finite(value) -> float | None:
    return float(value) if value is not None and np.isfinite(value) else None


def describe_scores(outcome: Outcome) -> Scores:
    """Return the curve of the scores, thinned, and where it is cut."""
    scores = np.sort(outcome.scores)[::-1]
    n_outliers = int(outcome.is_outlier.sum())
    ranks = _curve_ranks(len(scores), n_outliers)
    return {
        "ranks": ranks.tolist(),
        "values": scores[ranks - 1].tolist(),
        "cut": outcome.cut if n_outliers else None,
        "n_at_cut": _count_at_cut(outcome),
    }


def _count_at_cut(outcome: Outcome) -> int:
    """Count the outliers that tie with rows that are kept."""
    if outcome.cut is None:
        return 0
    return int((outcome.is_outlier & (outcome.scores <= outcome.cut)).sum())


def _curve_ranks(n_samples: int, n_outliers: int) -> np.ndarray:
    """Choose ranks evenly on a logarithmic scale, and both sides of the cut."""
    if n_samples <= _MAX_CURVE_POINTS:
        return np.arange(1, n_samples + 1)
    ranks = np.geomspace(1, n_samples, _MAX_CURVE_POINTS).round().astype(int)
    at_cut = np.clip([n_outliers, n_outliers + 1], 1, n_samples)
    return np.union1d(ranks, at_cut)


def _strangest(
    outcome: Outcome,
    strange: np.ndarray,
    names: RowNames,
    reasons: _Reasons | None,
    sure: _Sure,
) -> list[StrangeRow]:
    ids, values = names.ids_of(strange), names.values_of(strange)
    return [
        {
            "row": row,
            "id": ids[j],
            "score": float(outcome.scores[row]),
            "is_outlier": bool(outcome.labels[row] == -1),
            "nearest_label": int(outcome.nearest[row]),
            "disagreement": None if reasons is None else reasons.disagreement(row),
            "outlier_confidence": sure.of_row(row)[0],
            "label_confidence": sure.of_row(row)[1],
            "reasons": [] if reasons is None else reasons.in_words(row),
            "values": values[j],
        }
        for j, row in enumerate(strange.tolist())
    ]


def _map(
    estimator,
    outcome: Outcome,
    rows: Rows | None,
    drawn: np.ndarray,
    names: RowNames,
    reasons: _Reasons | None,
) -> RowMap | None:
    if rows is None or reasons is None:
        return None
    is_kept = ~outcome.is_outlier[drawn]
    projection = project(
        rows.take(drawn),
        is_kept,
        outcome.scores[drawn],
        use_directions=getattr(estimator, "metric", None) == "cosine",
    )
    if projection is None:
        return None
    points, is_shifted = part_ties(place(projection.points, is_kept).round(4))
    points = points.round(4)
    kept = [reasons.kept(row)[:_MAP_REASONS] for row in drawn.tolist()]
    columns = list(dict.fromkeys(name for row in kept for name, _ in row))
    places = {name: j for j, name in enumerate(columns)}
    return {
        "axes": projection.axes,
        "variance": projection.variance,
        "is_shifted": is_shifted,
        "rows": drawn.tolist(),
        "ids": names.ids_of(drawn),
        "x": points[:, 0].tolist(),
        "y": points[:, 1].tolist(),
        "labels": outcome.labels[drawn].tolist(),
        "nearest_labels": outcome.nearest[drawn].tolist(),
        "scores": [float(f"{score:.5g}") for score in outcome.scores[drawn].tolist()],
        "names": [clip(name) for name in columns],
        "reasons": [
            [number for name, size in row for number in (places[name], round(size, 1))]
            for row in kept
        ],
        "is_category": [not reasons.is_number(name) for name in columns],
    }
