"""What a notebook shows of a fitted estimator: a short summary above its diagram."""

from html import escape

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from corral._doubts import count_doubts, say_doubts
from corral._visible import spell_out

# More clusters are summed up in one line.
_MAX_CLUSTERS = 10

# How many of the strangest rows are named.
_N_STRANGEST = 5

# Colours come from the page, or are clear on light and dark ground alike. Without the
# style, as in a notebook that is not trusted, a plain table is left.
_STYLE = """<style>
.corral-summary {color: inherit; font-size: 0.9em; margin: 0 0 0.8em}
.corral-summary p {margin: 0.2em 0}
.corral-summary table {border-collapse: collapse; margin: 0.4em 0}
.corral-summary tr, .corral-summary th, .corral-summary td {background: none}
.corral-summary th, .corral-summary td {
  border: 0; border-bottom: 1px solid rgba(128, 128, 128, 0.35); color: inherit;
  padding: 0.15em 0.8em 0.15em 0; text-align: right; white-space: nowrap}
.corral-summary th:first-child, .corral-summary td:first-child {text-align: left}
.corral-summary .bar {
  background: #4a90c2; display: inline-block; height: 0.7em; vertical-align: baseline}
.corral-summary .outlier .bar {background: #d5762b}
.corral-summary .room {text-align: left; width: 9em}
</style>"""


class NotebookMixin:
    """Mixin of the estimators that show what they found in a notebook.

    The summary stands above scikit-learn's own diagram, and only where that is shown:
    ``sklearn.set_config(display="text")`` switches off both.
    """

    @property
    def _repr_html_(self):
        # Raises AttributeError where text is wanted, and there is no HTML then.
        diagram = super()._repr_html_  # type: ignore[misc]
        return lambda: _add_summary(self, diagram())

    def _repr_mimebundle_(self, **kwargs):
        bundle = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = _add_summary(self, bundle["text/html"])
        return bundle


def summary_html(model) -> str:
    """Return the sizes of the clusters and a few numbers of a fit, as HTML.

    Parameters
    ----------
    model : COR, or another method with ``labels_``
        Fitted. What a method does not know is left out.

    Returns
    -------
    html : str
        A table that fits any page, light or dark.
    """
    check_is_fitted(model, "labels_")
    labels = np.asarray(model.labels_)
    parts = [
        _STYLE,
        '<div class="corral-summary">',
        f"<p><b>{escape(_headline(model, labels))}</b></p>",
        _table(labels),
        *(f"<p>{escape(line)}</p>" for line in _lines(model)),
        "</div>",
    ]
    return "\n".join(parts)


def short_number(value: float) -> str:
    """Write a number with about four digits, and never as a power of ten if large."""
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e12 else f"{value:.4g}"


def _add_summary(model, diagram: str) -> str:
    """Return the summary, if there is one, above scikit-learn's diagram."""
    try:
        above = summary_html(model)
    except NotFittedError:
        above = ""
    # The diagram shows parameters as they show themselves; HTML in them is escaped.
    return spell_out(above + diagram)


def _headline(model, labels: np.ndarray) -> str:
    n_outliers = int(np.count_nonzero(labels == -1))
    n_clusters = len(np.unique(labels[labels != -1]))
    clusters = _count(n_clusters, "cluster")
    outliers = _count(n_outliers, "outlier")
    rows = _count(len(labels), "row")
    return f"{type(model).__name__}: {clusters} and {outliers} in {rows}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _table(labels: np.ndarray) -> str:
    clusters, sizes = np.unique(labels[labels != -1], return_counts=True)
    largest_first = np.argsort(-sizes, kind="stable")
    named, others = np.split(largest_first, [_MAX_CLUSTERS])
    lines = [(f"cluster {clusters[k]}", int(sizes[k]), "") for k in named]
    if len(others):
        name = _count(len(others), "more cluster")
        lines.append((name, int(sizes[others].sum()), ""))
    lines.append(("outliers", int(np.count_nonzero(labels == -1)), "outlier"))
    longest = max(size for _, size, _ in lines)
    rows = [_table_row(*line, len(labels), longest) for line in lines]
    head = '<tr><th></th><th>rows</th><th>share</th><th class="room"></th></tr>'
    return f"<table>{head}{''.join(rows)}</table>"


def _table_row(name: str, size: int, kind: str, n_samples: int, longest: int) -> str:
    width = 9 * size / longest
    return (
        f'<tr class="{kind}"><td>{escape(name)}</td><td>{size:,}</td>'
        f"<td>{size / n_samples:.1%}</td>"
        f'<td class="room"><span class="bar" style="width: {width:.2f}em"></span>'
        "</td></tr>"
    )


def _lines(model) -> list[str]:
    """Return what else there is to say, each as one line."""
    lines = []
    if hasattr(model, "outlier_scores_"):
        scores = np.asarray(model.outlier_scores_)
        rows = np.argsort(-scores, kind="stable")[:_N_STRANGEST]
        listed = ", ".join(f"{row} ({short_number(scores[row])})" for row in rows)
        lines.append(f"Strangest rows, with their scores: {listed}")
    if getattr(model, "selection_", None) is not None:
        lines.append(_say_choice(model.selection_))
    doubts = count_doubts(model)
    if doubts is not None:
        lines.append(say_doubts(doubts))
    facts = []
    if hasattr(model, "objective_"):
        n_iter = _count(model.n_iter_, "iteration")
        facts.append(f"Objective {short_number(model.objective_)} after {n_iter}")
    if hasattr(model, "n_partitions_"):
        facts.append(_count(model.n_partitions_, "partition"))
    if hasattr(model, "n_codes_"):
        facts.append(_count(model.n_codes_, "distinct code"))
    return [*lines, "; ".join(facts)] if facts else lines


def _say_choice(selection) -> str:
    if selection.runner_up is None:
        return "The numbers were chosen; there is no runner-up."
    clusters = _count(selection.runner_up[0], "cluster")
    outliers = _count(selection.runner_up[1], "outlier")
    return f"The numbers were chosen; the runner-up is {clusters} and {outliers}."
