"""All K-means runs to convergence on all rows, against scikit-learn's one by one."""

import statistics
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.cluster import KMeans

from benchmarks.speed._data import load_raw, load_standardised
from benchmarks.speed._inside import (
    N_PARTITIONS,
    KMeansRuns,
    draw_starts,
    fit_runs,
    get_centers,
)
from benchmarks.speed._measure import (
    Options,
    Row,
    alternate,
    at_most,
    middle,
    rows_or_note,
    times_faster,
)

# Rows whose distances are computed at a time.
_BLOCK_ROWS = 8192


class _Case(NamedTuple):
    """A data set: its name, loader, clusters, bar and rounds (quick and full)."""

    name: str
    load: Callable
    n_clusters: int
    times_faster: float
    rounds: tuple[int, int]


_CASES = (
    _Case("ecoli", load_raw, 5, 10, (10, 30)),
    _Case("shuttle", load_standardised, 3, 4, (2, 7)),
    # One round of scikit-learn takes half a minute, too long for a quick look.
    _Case("kddcup", load_standardised, 3, 4, (0, 2)),
    _Case("k1b", load_raw, 5, 4, (1, 3)),
)


def measure(options: Options) -> list[Row]:
    """Answer: how much faster are our runs, and are they as good?"""
    rows = []
    for case in _CASES:
        what = f"partitions: {case.name}, {N_PARTITIONS} K-means runs / scikit-learn"
        rows += rows_or_note(what, lambda c=case, w=what: _measure(c, w, options))
    return rows


def _measure(case: _Case, what: str, options: Options) -> Iterator[Row]:
    X = case.load(case.name)
    rounds = options.rounds(*case.rounds)
    if rounds == 0:
        yield Row(what, note="left out by --quick")
        return
    race = _Race(X, case.n_clusters, rounds=rounds, threads=options.threads)
    seconds = alternate(rounds, race.run_ours, race.run_theirs)
    yield Row(what, *middle(seconds), times_faster(case.times_faster))
    yield Row(
        f"partitions: {case.name}, mean inertia",
        race.mean_inertia(get_centers(runs) for runs in race.ours),
        race.mean_inertia(race.theirs),
        at_most(1.01),
        unit="",
    )


class _Race:
    """Both sides on the same rows, from the same starts.

    Attributes
    ----------
    ours : list of KMeansRuns
        For each round, all runs.
    theirs : list of lists of ndarrays
        For each round, the centres of each run.
    """

    def __init__(
        self,
        X: np.ndarray | sparse.csr_array,
        n_clusters: int,
        *,
        rounds: int,
        threads: int,
    ) -> None:
        self._X = X
        self._n_clusters = n_clusters
        self._threads = threads
        self.ours: list[KMeansRuns] = []
        self.theirs: list[list[np.ndarray]] = []
        self._starts = [draw_starts(X, n_clusters, seed=seed) for seed in range(rounds)]

    def run_ours(self, seed: int) -> None:
        """Make all runs at once."""
        runs = fit_runs(self._X, self._n_clusters, seed=seed, threads=self._threads)
        self.ours.append(runs)

    def run_theirs(self, seed: int) -> None:
        """Fit scikit-learn's KMeans once for each run, from the same random rows."""
        centers = []
        for starts in self._starts[seed]:
            model = KMeans(len(starts), init=starts, n_init=1, max_iter=300, tol=1e-4)
            centers.append(model.fit(self._X).cluster_centers_)
        self.theirs.append(centers)

    def mean_inertia(self, rounds: Iterable[list[np.ndarray]]) -> float:
        """Return the mean over all rounds and runs, computed alike for both sides."""
        return statistics.fmean(_mean_inertia(self._X, runs) for runs in rounds)


def _mean_inertia(X: np.ndarray | sparse.csr_array, runs: list[np.ndarray]) -> float:
    """Return the sum of squared distances to the nearest centre, mean over the runs."""
    centers = np.concatenate(runs).astype(np.float64)
    first_centers = np.cumsum([0] + [len(run) for run in runs[:-1]])
    norms = np.einsum("ij,ij->i", centers, centers)
    total = 0.0
    for start in range(0, X.shape[0], _BLOCK_ROWS):
        block = X[start : start + _BLOCK_ROWS].astype(np.float64)
        scores = norms[:, None] - 2 * (block @ centers.T).T
        nearest = np.minimum.reduceat(scores, first_centers, axis=0)
        total += nearest.sum() + len(runs) * (block**2).sum()
    return total / len(runs)
