"""Methods fitted to the same table, and how well they agree."""

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from corral import all_methods
from corral.cli._bar import Bar
from corral.cli._errors import sentence
from corral.cli._findings import choice_words, table_words
from corral.cli._methods import make_method
from corral.cli._text import count, fact, listing, table
from corral.cli._work import Judged, fit_table

# What a method may be unable to do with a table; others go on.
_UNABLE = (ImportError, MemoryError, ValueError)


class Comparison(NamedTuple):
    """What several methods have found.

    Attributes
    ----------
    facts : dict
        JSON-ready.
    columns : dict of str to list
        Of the labels file; empty if all methods failed.
    """

    facts: dict[str, Any]
    columns: dict[str, Any]


def fit_all(
    rows: Any,
    methods: list[str],
    options: dict[str, Any],
    settings: dict[str, Any],
    bar: Bar,
) -> Comparison:
    """Fit each method and compare the rows that they set aside.

    All get the same numbers of clusters and outliers: those that were not given are
    chosen by COR.

    Parameters
    ----------
    rows : pyarrow.Table or csr_array
    methods : list of str
    options : dict of str to object
        Parameters of the methods that have them.
    settings : dict of str to object
        Of ``TableModel``.
    bar : Bar

    Returns
    -------
    comparison : Comparison
    """
    failed: dict[str, str] = {}
    done: dict[str, Judged] = {}
    chooser = _choose(rows, methods, options, settings, bar)
    if chooser is not None:
        options = _fill_numbers(options, chooser)
    for name in methods:
        if name == "cor" and chooser is not None:
            done[name] = chooser
            continue
        try:
            estimator = make_method(
                name, options, tfidf=settings["tfidf"], strict=False
            )
            done[name] = fit_table(rows, estimator, settings, bar)
        except _UNABLE as error:
            failed[name] = sentence(error)
    chooser = chooser or done.get("cor")
    facts = _describe(done, failed)
    facts["selection"] = None if chooser is None else chooser.facts["selection"]
    return Comparison(facts, _columns(done))


def _choose(
    rows: Any,
    methods: list[str],
    options: dict[str, Any],
    settings: dict[str, Any],
    bar: Bar,
) -> Judged | None:
    """Let COR choose what was not given; None if no other method needs it."""
    missing = _list_missing(options)
    known = all_methods()
    others = [known[name] for name in methods if name not in ("cor", "cor-detector")]
    is_needed = "cor-detector" in methods or any(
        missing & each.parameters.keys() for each in others
    )
    if not missing or not is_needed:
        return None
    estimator = make_method("cor", options, tfidf=settings["tfidf"], strict=False)
    try:
        return fit_table(rows, estimator, settings, bar)
    except _UNABLE as error:
        raise ValueError(
            f"The same numbers for all methods cannot be chosen. {sentence(error)} "
            "Give --n-clusters and --n-outliers."
        ) from error


def _list_missing(options: dict[str, Any]) -> set[str]:
    """Return the numbers that the user did not give."""
    is_given = {
        "n_clusters": options["n_clusters"] not in (None, "auto"),
        "n_outliers": options["n_outliers"] not in (None, "auto")
        or options["contamination"] is not None,
    }
    return {name for name, given in is_given.items() if not given}


def _fill_numbers(options: dict[str, Any], chooser: Judged) -> dict[str, Any]:
    """Return the options with the numbers that were chosen."""
    found = chooser.model.estimator_
    chosen = {"n_clusters": found.n_clusters_, "n_outliers": found.n_outliers_}
    return options | {name: chosen[name] for name in _list_missing(options)}


def _describe(done: dict[str, Judged], failed: dict[str, str]) -> dict[str, Any]:
    outliers = {
        name: np.asarray(each.columns["label"]) == -1 for name, each in done.items()
    }
    facts: dict[str, Any] = {}
    ids: list[str] = []
    if done:
        # Each column is used by the method that can use most of them.
        widest = max(done.values(), key=lambda each: len(each.facts["used"]))
        names = ("n_rows", "used", "id_column", "scale", "tfidf", "dropped", "missing")
        facts = {name: widest.facts[name] for name in names}
        by_all = np.logical_and.reduce(list(outliers.values()))
        ids = [widest.ids[row] for row in np.flatnonzero(by_all)]
    return facts | {
        "methods": {name: _describe_one(each) for name, each in done.items()},
        "jaccard": [
            {
                "methods": [one, other],
                "jaccard": jaccard(outliers[one], outliers[other]),
            }
            for one, other in combinations(done, 2)
        ],
        "set_aside_by_all": ids,
        "failed": failed,
    }


def _describe_one(judged: Judged) -> dict[str, Any]:
    names = ("seconds", "n_outliers", "clusters", "dropped")
    return {name: judged.facts[name] for name in names}


def jaccard(one: np.ndarray, other: np.ndarray) -> float:
    """Return the share of the rows in either set that are in both.

    Parameters
    ----------
    one, other : ndarray of bool of shape (n_samples,)

    Returns
    -------
    share : float
        1 if both are empty, for then they agree.
    """
    n_either = int((one | other).sum())
    return float((one & other).sum() / n_either) if n_either else 1.0


def _columns(done: dict[str, Judged]) -> dict[str, Any]:
    if not done:
        return {}
    first = next(iter(done.values()))
    return {"id": first.ids} | {
        name: each.columns["label"] for name, each in done.items()
    }


def in_words(facts: dict[str, Any], labels: str | None) -> str:
    """Return a comparison as text.

    Parameters
    ----------
    facts : dict
        Of ``fit_all``.
    labels : str or None
        Where the labels are.

    Returns
    -------
    text : str
    """
    methods = facts["methods"]
    chosen = choice_words(
        {"selection": facts["selection"], "confidence": None},
        by=", by cor for all methods that take them",
    )
    parts = ["\n".join([*table_words(facts), *chosen]), _methods_table(methods)]
    if len(methods) > 1:
        parts.append(_agreement_table(facts))
        everyone = facts["set_aside_by_all"]
        which = f": {listing(everyone, 30)}" if everyone else ""
        parts.append(
            fact("all agree", f"to set aside {count(len(everyone), 'row')}{which}")
        )
    if labels is not None:
        parts.append(fact("labels", labels))
    return "\n\n".join(parts)


def _methods_table(methods: dict[str, Any]) -> str:
    head = ("method", "seconds", "clusters", "set aside", "rows in each cluster")
    rows = []
    for name, each in methods.items():
        sizes = (
            None
            if each["clusters"] is None
            else [cluster["n_rows"] for cluster in each["clusters"]]
        )
        rows.append(
            (
                name,
                f"{each['seconds']:.2f}",
                "-" if sizes is None else str(len(sizes)),
                f"{each['n_outliers']:,}",
                "" if sizes is None else listing(sizes, 8),
            )
        )
    return table(head, rows)


def _agreement_table(facts: dict[str, Any]) -> str:
    names = list(facts["methods"])
    index = {frozenset(each["methods"]): each["jaccard"] for each in facts["jaccard"]}
    rows = [
        (
            one,
            *(
                f"{1.0 if one == other else index[frozenset((one, other))]:.2f}"
                for other in names
            ),
        )
        for one in names
    ]
    return table(("Jaccard of outliers", *names), rows)
