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

# Columns that are not used, of which a summary gives the reason.
_N_DROPPED = 10


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


def fitted_columns(model: Any, ids: list[str], missing: "Missing") -> dict[str, Any]:
    """Return the columns of the labels file for the rows of the fit.

    Parameters
    ----------
    model : TableModel
    ids : list of str
    missing : Missing

    Returns
    -------
    columns : dict of str to list
    """
    columns: dict[str, Any] = {"id": ids, "label": model.labels_.tolist()}
    if hasattr(model, "nearest_labels_"):
        columns["nearest_label"] = model.nearest_labels_.tolist()
    columns["outlier_score"] = model.outlier_scores_.tolist()
    return columns | missing.columns


def confidence_columns(model: Any) -> dict[str, Any]:
    """Return how sure the labels of the rows of the fit are, as columns.

    Parameters
    ----------
    model : TableModel

    Returns
    -------
    columns : dict of str to list
        Empty where the method does not know.
    """
    names = ("outlier_confidence", "label_confidence")
    return {
        name: getattr(model, f"{name}_").tolist()
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
    X = encoder.transform(table)
    if issparse(X):
        return Missing({}, {})
    if isinstance(X, np.ndarray):
        is_missing = np.isnan(X)
    else:
        nulls = [column.is_null(nan_is_null=True) for column in X.itercolumns()]
        is_missing = np.column_stack([each.to_numpy() for each in nulls])
    counts = dict(zip(encoder.feature_names_out_, is_missing.sum(axis=0), strict=True))
    found = {name: int(count) for name, count in counts.items() if count}
    if not found:
        return Missing({}, {})
    shares = (1 - is_missing.mean(axis=1)).round(6)
    return Missing(found, {"known_share": shares.tolist()})


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
    labels = np.asarray(columns["label"])
    is_outlier = labels == -1
    cut = find_cut(unwrap(model.estimator_))
    sizes = Counter(labels[labels >= 0].tolist())
    clusters = [{"label": label, "n_rows": sizes[label]} for label in sorted(sizes)]
    return {
        "n_outliers": int(is_outlier.sum()),
        "clusters": clusters if has_clusters(model) else None,
        "cut": cut,
        "n_at_cut": _count_at_cut(columns, is_outlier, cut),
        "strangest": _strangest(columns),
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
    if "outlier_score" not in columns:
        return []
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
    kinds = dict.fromkeys(used.values())
    lines += _facts("used", [_used_words(kind, facts) for kind in kinds])
    if facts["id_column"]:
        lines.append(fact("rows are", f"named by {facts['id_column']}"))
    dropped = [f"{name}: {reason}" for name, reason in facts["dropped"].items()]
    if len(dropped) > _N_DROPPED:
        more = f"and {len(dropped) - _N_DROPPED:,} more columns"
        dropped = [*dropped[:_N_DROPPED], more]
    lines += _facts("not used", dropped)
    if missing:
        cells = [f"{name} {n:,}" for name, n in missing.items()]
        total = count(sum(missing.values()), "cell")
        lines.append(fact("missing", f"{total}: {listing(cells)}"))
    return lines


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
    if facts["strangest"]:
        names = [
            f"{each['id']} ({number(each['outlier_score'])})"
            for each in facts["strangest"]
        ]
        lines.append(fact("strangest", ", ".join(names)))
    return lines
