"""K-means--, against scikit-learn's K-means with as many iterations."""

import warnings
from collections.abc import Iterator
from typing import NamedTuple

from sklearn.cluster import KMeans, kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning

from benchmarks.speed._data import load_standardised
from benchmarks.speed._measure import (
    CannotMeasure,
    Options,
    Row,
    alternate,
    at_most,
    rows_or_note,
    shortest,
)
from corral.rivals import KMeansMinusMinus

_N_CLUSTERS = 3


class _Case(NamedTuple):
    """A data set: its name, iterations of both sides and rounds (quick and full).

    Neither side may come to rest before its iterations are done.
    """

    name: str
    n_iter: int
    rounds: tuple[int, int]


_CASES = (_Case("shuttle", 10, (10, 40)), _Case("kddcup", 5, (3, 10)))


def measure(options: Options) -> list[Row]:
    """Answer: what does it cost to set rows aside in each iteration?"""
    rows = []
    for case in _CASES:
        what = f"K-means--: {case.name}, {case.n_iter} iterations / scikit-learn"
        rows += rows_or_note(what, lambda c=case, w=what: _measure(c, w, options))
    return rows


def _measure(case: _Case, what: str, options: Options) -> Iterator[Row]:
    X = load_standardised(case.name)
    # Far apart: half the rows of kddcup are nearly the same, and so are random starts.
    starts, _ = kmeans_plusplus(X, _N_CLUSTERS, random_state=1)
    same = {"init": starts, "max_iter": case.n_iter, "tol": 0.0}
    ours = KMeansMinusMinus(_N_CLUSTERS, n_jobs=options.threads, **same)
    theirs = KMeans(_N_CLUSTERS, n_init=1, **same)
    with warnings.catch_warnings():
        # That it stops early is what was asked for.
        warnings.simplefilter("ignore", ConvergenceWarning)
        seconds = alternate(
            options.rounds(*case.rounds),
            lambda _: ours.fit(X),
            lambda _: theirs.fit(X),
        )
    if (ours.n_iter_, theirs.n_iter_) != (case.n_iter, case.n_iter):
        raise CannotMeasure(
            f"came to rest after {ours.n_iter_} and {theirs.n_iter_} iterations"
        )
    yield Row(what, *shortest(seconds), at_most(1.5))
