"""Stage 3 for many numbers: what is drawn and grown once serves them all."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np

from corral._codes import Codes
from corral._divergences import Divergence
from corral._fusion import (
    Fusion,
    FusionSettings,
    Problem,
    Restart,
)
from corral._linkage import Forest, Trees
from corral._threads import Threads

# Restarts come to rest on so many samples: all do a few iterations, the best goes on,
# and the last iterations are on all samples.
_SAMPLES = 3000
_SWEEP_ITERATIONS = 3
_LAST_ITERATIONS = 2

# Trees are grown without numbers of strange samples that are apart by this factor.
_STEP = 1.25

# One-hot rows of codes that are used again and again may have so many slots.
_MOST_KEPT_SLOTS = 2**24


class Fuser:
    """Fuses the same codes into any numbers of clusters and outliers, in little time.

    All that is drawn or grown is the same for all numbers: the samples that restarts
    come to rest on, and the codes of the trees. Trees are grown without the codes of
    strange samples, as many as outliers, rounded up a little, so that few trees serve
    all numbers.

    Parameters
    ----------
    codes : Codes
    divergence : Divergence
    settings : FusionSettings
        But for both numbers.
    rng : numpy Generator
    threads : Threads
    sample_weight : ndarray of shape (n_samples,) or None
    cost_offsets : ndarray of shape (n_samples,) or None
        Added to each sample's cost before the costliest are set aside.
    keeps_more : bool, default=False
        Whether memory is well spent on codes that are used again and again.
    """

    def __init__(
        self,
        codes: Codes,
        divergence: Divergence,
        settings: FusionSettings,
        rng: np.random.Generator,
        threads: Threads,
        *,
        sample_weight: np.ndarray | None = None,
        cost_offsets: np.ndarray | None = None,
        keeps_more: bool = False,
    ) -> None:
        self._problem = Problem(
            codes, divergence, settings, threads, sample_weight, cost_offsets
        )
        if keeps_more:
            self._problem.keep_codes(_MOST_KEPT_SLOTS)
        self._sample = self._problem.sample(_SAMPLES, rng)
        self._forest = Forest(self._sample.codes, self._sample.weights, rng)

    def fuse(self, n_clusters: int, n_outliers: int) -> Fusion:
        """Return the fusion with these numbers."""
        problem, sample = self._problem, self._sample
        self._set_numbers(n_clusters, n_outliers)
        starts = self._list_starts()
        best = self._solve_best([Restart(centers) for centers in starts])
        if problem.settings.separating and sample.n_filled(best) < n_clusters:
            # As the number was asked for, clusters then count as equally large.
            even = [Restart(centers, is_even=True) for centers in starts]
            best = sample.choose([best, self._solve_best(even)])
        if sample is not problem:
            best = problem.finish(best, _LAST_ITERATIONS)
        return best.to_fusion(problem.codes)

    def grow_trees(self) -> Iterator[None]:
        """Grow the trees for all numbers of outliers, one with each step."""
        n_samples = len(self._sample.codes.inverse)
        for n_outliers in [0, *_list_steps(n_samples)]:
            self._find_trees(n_outliers, 1)
            yield

    def use_threads(self, threads: Threads) -> None:
        """Go on with other threads, because the ones before have ended."""
        self._problem.threads = self._sample.threads = threads

    def sweep(self, numbers: Iterable[int], n_outliers: int) -> dict[int, Fusion]:
        """Return fusions of the part of the samples into several numbers of clusters.

        Clusters that are cheaper to describe as fewer are left to vanish. Numbers that
        are larger than that of the codes are left out.
        """
        fusions = {}
        for n_clusters in numbers:
            self._set_numbers(n_clusters, n_outliers)
            n_aside = self._sample.settings.n_outliers
            if n_clusters <= len(self._find_trees(n_aside, n_clusters).present):
                best = self._solve_best([Restart(each) for each in self._list_starts()])
                fusions[n_clusters] = best.to_fusion(self._sample.codes)
        return fusions

    def follow(self, fusion: Fusion, n_outliers: int) -> Fusion:
        """Go on from a fusion with another number of outliers, for a little."""
        self._set_numbers(len(fusion.centers), n_outliers)
        restart = Restart(fusion.centers)
        restart.shares = fusion.shares
        self._sample.solve([restart], _SWEEP_ITERATIONS)
        return restart.to_fusion(self._sample.codes)

    def _set_numbers(self, n_clusters: int, n_outliers: int) -> None:
        problem = self._problem
        problem.settings = replace(
            problem.settings, n_clusters=n_clusters, n_outliers=n_outliers
        )
        if self._sample is not problem:
            n_samples = len(self._sample.codes.inverse)
            self._sample.settings = problem.scale_settings(n_samples)

    def _list_starts(self) -> list[np.ndarray]:
        """Return the centres to start from, no start twice."""
        settings = self._sample.settings
        trees = self._find_trees(settings.n_outliers, settings.n_clusters)
        starts = trees.list_starts(settings.n_clusters, settings.n_init)
        return [self._sample.means(each.__getitem__) for each in _drop_equal(starts)]

    def _solve_best(self, restarts: list[Restart]) -> Restart:
        """Iterate all for a little, and the best until it rests; return that."""
        sample = self._sample
        n_first = min(_SWEEP_ITERATIONS, sample.settings.max_iter)
        best = sample.choose(sample.solve(restarts, n_first))
        return sample.solve([best], sample.settings.max_iter - n_first)[0]

    def _find_trees(self, n_outliers: int, n_clusters: int) -> Trees:
        """Return the trees without so many samples, rounded up."""
        steps = _list_steps(len(self._sample.codes.inverse))
        rounded = steps[np.searchsorted(steps, n_outliers)] if n_outliers else 0
        strange = self._sample.weigh_strange(int(rounded))
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
