"""Stage 3 for many numbers: what is drawn and grown once serves them all."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from corral._fusion import Fusion, Problem, Restart
from corral._linkage import Forest, Trees
from corral._threads import Threads

# All restarts do a few iterations, and the best goes on.
_SWEEP_ITERATIONS = 3

# Trees are grown without numbers of strange samples that are apart by this factor.
_STEP = 1.25


class Fuser:
    """Fuses the same codes into any numbers of clusters and outliers, in little time.

    All that is drawn or grown is the same for all numbers, such as the codes of the
    trees. Trees are grown without the codes of
    strange samples, as many as outliers, rounded up a little, so that few trees serve
    all numbers.

    Parameters
    ----------
    problem : Problem
        Of all samples, or of a part of them; its numbers do not count.
    n_all : int
        Number of all samples.
    rng : numpy Generator
    """

    def __init__(self, problem: Problem, n_all: int, rng: np.random.Generator) -> None:
        self._problem = problem
        self._n_all = n_all
        self._forest = Forest(problem.codes, problem.weights, rng)

    def rest(self, n_clusters: int, n_outliers: int) -> Restart:
        """Return the best restart with these numbers of all samples, at rest."""
        self._set_numbers(n_clusters, n_outliers)
        problem, starts = self._problem, self._list_starts()
        best = self._solve_best([Restart(centers) for centers in starts])
        if problem.settings.separating and problem.n_filled(best) < n_clusters:
            # As the number was asked for, clusters then count as equally large.
            even = [Restart(centers, is_even=True) for centers in starts]
            best = problem.choose([best, self._solve_best(even)])
        return best

    def grow_trees(self) -> Iterator[None]:
        """Grow the trees for all numbers of outliers, one with each step."""
        n_samples = len(self._problem.codes.inverse)
        for n_outliers in [0, *_list_steps(n_samples)]:
            self._find_trees(n_outliers, 1)
            yield

    def use_threads(self, threads: Threads) -> None:
        """Go on with other threads, because the ones before have ended."""
        self._problem.threads = threads

    def sweep(self, numbers: Iterable[int], n_outliers: int) -> dict[int, Fusion]:
        """Return fusions of the part of the samples into several numbers of clusters.

        Clusters that are cheaper to describe as fewer are left to vanish. Numbers that
        are larger than that of the codes are left out.
        """
        fusions = {}
        for n_clusters in numbers:
            self._set_numbers(n_clusters, n_outliers)
            n_aside = self._problem.settings.n_outliers
            if n_clusters <= len(self._find_trees(n_aside, n_clusters).present):
                best = self._solve_best([Restart(each) for each in self._list_starts()])
                fusions[n_clusters] = best.to_fusion(self._problem.codes)
        return fusions

    def follow(self, fusion: Fusion, n_outliers: int) -> Fusion:
        """Go on from a fusion with another number of outliers, for a little."""
        self._set_numbers(len(fusion.centers), n_outliers)
        restart = Restart(fusion.centers)
        restart.shares = fusion.shares
        self._problem.solve([restart], _SWEEP_ITERATIONS)
        return restart.to_fusion(self._problem.codes)

    def _set_numbers(self, n_clusters: int, n_outliers: int) -> None:
        asked = replace(
            self._problem.settings, n_clusters=n_clusters, n_outliers=n_outliers
        )
        n_samples = len(self._problem.codes.inverse)
        self._problem.settings = asked.scale(n_samples, self._n_all)

    def _list_starts(self) -> list[np.ndarray]:
        """Return the centres to start from, no start twice."""
        settings = self._problem.settings
        trees = self._find_trees(settings.n_outliers, settings.n_clusters)
        starts = trees.list_starts(settings.n_clusters, settings.n_init)
        return [self._problem.means(each.__getitem__) for each in _drop_equal(starts)]

    def _solve_best(self, restarts: list[Restart]) -> Restart:
        """Iterate all for a little, and the best until it rests; return that."""
        problem = self._problem
        n_first = min(_SWEEP_ITERATIONS, problem.settings.max_iter)
        best = problem.choose(problem.solve(restarts, n_first))
        return problem.solve([best], problem.settings.max_iter - n_first)[0]

    def _find_trees(self, n_outliers: int, n_clusters: int) -> Trees:
        """Return the trees without so many samples, rounded up."""
        steps = _list_steps(len(self._problem.codes.inverse))
        rounded = steps[np.searchsorted(steps, n_outliers)] if n_outliers else 0
        strange = self._problem.weigh_strange(int(rounded))
        return self._forest.find_trees(strange, n_clusters)


def _list_steps(n_samples: int) -> np.ndarray:
    """Return the numbers of strange samples that trees are grown without."""
    n_steps = int(np.ceil(np.log(n_samples) / np.log(_STEP))) + 1
    steps = np.ceil(_STEP ** np.arange(n_steps)).astype(np.intp)
    return np.unique(np.minimum(steps, n_samples))


def _drop_equal(starts: list[np.ndarray]) -> list[np.ndarray]:
    """Return the starts without those that another has equalled before."""
    distinct: list[np.ndarray] = []
    for start in starts:
        if not any(np.array_equal(start, other) for other in distinct):
            distinct.append(start)
    return distinct
