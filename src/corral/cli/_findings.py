"""What a fit has found, as a plain dict; and the dict in words."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from scipy.sparse import issparse

from corral._decision import find_cut
from corral._detector import unwrap
from corral.cli._text import count, fact, listing, number

# Rows that a summary names.
_N_STRANGEST = 5

# How the words for kinds of columns stand in the summary.
_KINDS = {
    "number": "numbers",
    "date": "dates",
    "boolean": "booleans",
    "category": "categories",
    "text": "words",
}

_SCALES = {
    "standard": ", scaled by mean and deviation",
    "robust": ", scaled by median and quartiles",
    "none": "",
}

# Columns that are not used, of which a summary gives the reason, and pieces of the data
# that were left out.
_N_DROPPED = 10

_ALL = slice(None)

# Scores that are so near to each other, relative to their size or to the largest one,
# are those of the same row: methods may add up a row among others in another order.
_SAME_SCORE = 1e-6
_SAME_ZERO = 1e-12


def has_clusters(model: Any) -> bool:
    """Return whether labels are clusters, and not a detector's +1.

    Parameters
    ----------
    model : TableModel

    Returns
    -------
    answer : bool
    """
    from sklearn.base import is_clusterer

    return is_clusterer(model.estimator_)


def fitted_columns(
    model: Any, ids: list[str], missing: "Missing", rows: slice = _ALL
) -> dict[str, Any]:
    """Return the columns of the labels file for the rows of the fit.

    Parameters
    ----------
    model : TableModel
    ids : list of str
    missing : Missing
    rows : slice, default=all
        Those that the names and the missing cells are of.

    Returns
    -------
    columns : dict of str to list
    """
    columns: dict[str, Any] = {"id": ids, "label": model.labels_[rows].tolist()}
    if hasattr(model, "nearest_labels_"):
        columns["nearest_label"] = model.nearest_labels_[rows].tolist()
    columns["outlier_score"] = model.outlier_scores_[rows].tolist()
    return columns | missing.columns


def confidence_columns(model: Any, rows: slice = _ALL) -> dict[str, Any]:
    """Return how sure the labels of the rows of the fit are, as columns.

    Parameters
    ----------
    model : TableModel
    rows : slice, default=all

    Returns
    -------
    columns : dict of str to list
        Empty where the method does not know.
    """
    names = ("outlier_confidence", "label_confidence")
    return {
        name: getattr(model, f"{name}_")[rows].tolist()
        for name in names
        if hasattr(model, f"{name}_")
    }


def new_columns(
    model: Any, table: Any, ids: list[str], missing: "Missing"
) -> dict[str, Any]:
    """Return the columns of the labels file for any rows, each answered by itself.

    Parameters
    ----------
    model : TableModel
    table : pyarrow.Table, csr_array or ndarray
    ids : list of str
    missing : Missing

    Returns
    -------
    columns : dict of str to list
    """
    reasons = nw.from_native(model.explain(table, n_features=0), eager_only=True)
    labels = reasons["label"].to_numpy()
    if not has_clusters(model):
        labels = np.where(labels == -1, -1, 1)
    columns: dict[str, Any] = {"id": ids, "label": labels.tolist()}
    if "nearest_label" in reasons.columns:
        columns["nearest_label"] = reasons["nearest_label"].to_list()
    columns["outlier_score"] = reasons["score"].to_list()
    return columns | missing.columns


def are_of_fit(model: Any, columns: Mapping[str, Any], rows: slice = _ALL) -> bool:
    """Return whether rows, each answered by itself, are those of the fit.

    Rows that tie at the cut may have another label there.

    Parameters
    ----------
    model : TableModel
    columns : mapping of str to list or ndarray
        As :func:`new_columns` returns them.
    rows : slice, default=all
        The rows of the fit that they may be.

    Returns
    -------
    answer : bool
    """
    fitted = model.outlier_scores_[rows]
    scores = np.asarray(columns["outlier_score"], dtype=float)
    if len(scores) != len(fitted):
        return False
    nearest = getattr(model, "nearest_labels_", None)
    if nearest is None or "nearest_label" not in columns:
        has_nearest = np.ones(len(scores), dtype=bool)
    else:
        has_nearest = np.asarray(columns["nearest_label"]) == nearest[rows]
    cut = find_cut(unwrap(model.estimator_))
    near = _SAME_ZERO * max(np.abs(fitted).max(initial=0), 0 if cut is None else cut)
    has_label = np.asarray(columns["label"]) == model.labels_[rows]
    if cut is not None:
        has_label |= np.isclose(fitted, cut, _SAME_SCORE, near)
    has_score = np.isclose(scores, fitted, _SAME_SCORE, near)
    return bool(np.all(has_nearest & has_label & has_score))


class Missing(NamedTuple):
    """The missing cells of the columns that are used.

    Attributes
    ----------
    counts : dict of str to int
        By column, where there are any.
    columns : dict of str to list
        ``known_share``: the share of each row's cells that are there; empty if all are.
    """

    counts: dict[str, int]
    columns: dict[str, Any]


def find_missing(encoder: Any, table: Any) -> Missing:
    """Count missing cells.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted.
    table : pyarrow.Table, csr_array or ndarray

    Returns
    -------
    missing : Missing
    """
    is_missing = spot_missing(encoder.transform(table))
    if not is_missing.any():
        return Missing({}, {})
    counts = dict(zip(encoder.feature_names_out_, is_missing.sum(axis=0), strict=True))
    found = {name: int(count) for name, count in counts.items() if count}
    return Missing(found, {"known_share": share_known(is_missing).tolist()})


def spot_missing(X: Any) -> np.ndarray:
    """Return which cells are missing.

    Parameters
    ----------
    X : pyarrow.Table, csr_array or ndarray
        Encoded.

    Returns
    -------
    is_missing : ndarray of shape (n_samples, n_features)
        Of sparse rows, which have no missing cells, one column for all.
    """
    if issparse(X):
        return np.zeros((X.shape[0], 1), dtype=bool)
    if isinstance(X, np.ndarray):
        return np.isnan(X)
    nulls = [column.is_null(nan_is_null=True) for column in X.itercolumns()]
    return np.column_stack([each.to_numpy() for each in nulls])


def share_known(is_missing: np.ndarray) -> np.ndarray:
    """Return the share of each row's cells that are there.

    Parameters
    ----------
    is_missing : ndarray of shape (n_samples, n_features)

    Returns
    -------
    shares : ndarray of shape (n_samples,)
    """
    return (1 - is_missing.mean(axis=1)).round(6)


def describe_table(encoder: Any, n_rows: int, missing: Missing) -> dict[str, Any]:
    """Return which columns are used how, which are not, and what is missing.

    Parameters
    ----------
    encoder : TableEncoder
        Fitted.
    n_rows : int
    missing : Missing

    Returns
    -------
    facts : dict
    """
    used = [*encoder.numeric_names_, *encoder.categorical_names_, *encoder.text_names_]
    return {
        "n_rows": n_rows,
        "used": {name: encoder.kinds_[name] for name in used},
        "id_column": encoder.id_column,
        "scale": encoder.scale_,
        "tfidf": encoder.tfidf,
        "dropped": dict(encoder.dropped_),
        "missing": missing.counts,
    }


def describe_labels(columns: Mapping[str, Any], model: Any) -> dict[str, Any]:
    """Return the sizes of the clusters, the outliers and the strangest rows.

    Parameters
    ----------
    columns : mapping of str to sequence
        Of the labels file.
    model : TableModel

    Returns
    -------
    facts : dict
        "clusters" is None for a detector, whose +1 is no cluster.
    """
    tally = Tally(model)
    tally.add(columns)
    return tally.describe()


class Tally:
    """What the labels file says in all, added up block by block.

    Parameters
    ----------
    model : TableModel
    """

    def __init__(self, model: Any) -> None:
        self._has_clusters = has_clusters(model)
        self._cut = find_cut(unwrap(model.estimator_))
        self._sizes: Counter[int] = Counter()
        self._n_at_cut = 0
        self._strangest: list[dict[str, Any]] = []

    def add(self, columns: Mapping[str, Any]) -> None:
        """Add the next rows of the labels file.

        Parameters
        ----------
        columns : mapping of str to sequence
        """
        labels = np.asarray(columns["label"])
        found, sizes = np.unique(labels, return_counts=True)
        self._sizes.update(dict(zip(found.tolist(), sizes.tolist(), strict=True)))
        self._n_at_cut += _count_at_cut(columns, labels == -1, self._cut)
        # Sorting keeps the order of rows with the same score.
        both = [*self._strangest, *_strangest(columns)]
        both.sort(key=lambda row: -row["outlier_score"])
        self._strangest = both[:_N_STRANGEST]

    def describe(self) -> dict[str, Any]:
        """Return what was added up.

        Returns
        -------
        facts : dict
            As of :func:`describe_labels`.
        """
        kept = sorted(label for label in self._sizes if label >= 0)
        clusters = [{"label": each, "n_rows": self._sizes[each]} for each in kept]
        return {
            "n_outliers": self._sizes[-1],
            "clusters": clusters if self._has_clusters else None,
            "cut": self._cut,
            "n_at_cut": self._n_at_cut,
            "strangest": self._strangest,
        }


def describe_choice(model: Any) -> dict[str, Any]:
    """Return why the numbers of a fit were chosen, and how sure its labels are.

    Parameters
    ----------
    model : TableModel

    Returns
    -------
    facts : dict
        "selection" is None where both numbers were given, and "confidence" where the
        method does not know.
    """
    from corral.report._selection import describe_confidence, describe_selection

    estimator = unwrap(model.estimator_)
    found: Mapping[str, Any] | None = describe_selection(estimator)
    names = ("n_clusters", "n_outliers", "runner_up", "reason", "candidates")
    return {
        "selection": found and {name: found[name] for name in names},
        "confidence": describe_confidence(estimator),
    }


def _count_at_cut(
    columns: Mapping[str, Any], is_outlier: np.ndarray, cut: float | None
) -> int:
    """Count the outliers that tie with rows that are kept."""
    if cut is None:
        return 0
    return int((is_outlier & (np.asarray(columns["outlier_score"]) <= cut)).sum())


def _strangest(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    scores = np.asarray(columns["outlier_score"])
    first = np.argsort(-scores, kind="stable")[:_N_STRANGEST]
    return [{name: columns[name][row] for name in columns} for row in first.tolist()]


def table_words(facts: Mapping[str, Any]) -> list[str]:
    """Return what was read and used, as lines.

    Parameters
    ----------
    facts : mapping
        Of ``describe_table``.

    Returns
    -------
    lines : list of str
    """
    used, missing = facts["used"], facts["missing"]
    lines = [fact("data", count(facts["n_rows"], "row"))]
    if facts.get("by_blocks"):
        lines.append(fact("read", f"block by block: {facts['by_blocks']}"))
    lines += _facts("left out", _clip(facts.get("skipped", []), "piece"))
    kinds = dict.fromkeys(used.values())
    lines += _facts("used", [_used_words(kind, facts) for kind in kinds])
    if facts["id_column"]:
        lines.append(fact("rows are", f"named by {facts['id_column']}"))
    dropped = [f"{name}: {reason}" for name, reason in facts["dropped"].items()]
    lines += _facts("not used", _clip(dropped, "column"))
    if missing:
        cells = [f"{name} {n:,}" for name, n in missing.items()]
        total = count(sum(missing.values()), "cell")
        lines.append(fact("missing", f"{total}: {listing(cells)}"))
    return lines


def _clip(texts: list[str], noun: str) -> list[str]:
    """Return texts, of many only the first and how many more there are."""
    n_more = len(texts) - _N_DROPPED
    if n_more <= 0:
        return texts
    return [*texts[:_N_DROPPED], f"and {n_more:,} more {noun}s"]


def _facts(name: str, texts: list[str]) -> list[str]:
    """Return texts as lines, the first of which has the name in the margin."""
    return [fact("" if position else name, text) for position, text in enumerate(texts)]


def _used_words(kind: str, facts: Mapping[str, Any]) -> str:
    names = [name for name, its_kind in facts["used"].items() if its_kind == kind]
    how = "" if kind in ("category", "text") else _SCALES[facts["scale"]]
    if facts["tfidf"]:
        how += ", weighted by tf-idf"
    return f"{count(len(names), 'column')} as {_KINDS[kind]}{how}: {listing(names)}"


def choice_words(facts: Mapping[str, Any], by: str = "") -> list[str]:
    """Return what was chosen and why, and how sure labels are, as lines.

    Parameters
    ----------
    facts : mapping
        Of ``describe_choice``.
    by : str, default=""
        Who chose, for whom.

    Returns
    -------
    lines : list of str
    """
    lines = []
    selection = facts["selection"]
    if selection is not None:
        clusters = count(selection["n_clusters"], "cluster")
        outliers = count(selection["n_outliers"], "outlier")
        why = selection["reason"]
        lines.append(fact("chosen", f"{clusters} and {outliers}{by}. {why}"))
    if facts["confidence"] is not None:
        lines.append(fact("sure", facts["confidence"]["words"]))
    return lines


def label_words(facts: Mapping[str, Any]) -> list[str]:
    """Return the clusters and outliers, as lines.

    Parameters
    ----------
    facts : mapping
        Of ``describe_labels``.

    Returns
    -------
    lines : list of str
    """
    lines = []
    if facts["clusters"] is not None:
        sizes = [each["n_rows"] for each in facts["clusters"]]
        lines.append(fact("clusters", f"{len(sizes)}, with {listing(sizes, 20)} rows"))
    outliers = count(facts["n_outliers"], "row")
    if facts["cut"] is not None and facts["n_outliers"]:
        # Of rows that tie at the cut, only as many as were asked for are set aside.
        least = " or at" if facts["n_at_cut"] else ""
        outliers += f", whose scores are above{least} {number(facts['cut'])}"
    lines.append(fact("set aside", outliers))
    names = [
        f"{each['id']} ({number(each['outlier_score'])})" for each in facts["strangest"]
    ]
    lines.append(fact("strangest", ", ".join(names)))
    return lines
