"""Starts of the fusion from trees of codes: groups of any shape, nearly no chance."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import pdist, squareform

from corral._codes import Codes, one_hot_rows

# Trees are grown on so many samples at most, which takes a fraction of a second.
_TREE_SAMPLES = 2500

# Single linkage follows shapes that have a gap around them, average linkage finds
# groups that touch. A tree is cut into K branches and into more, because the first
# branches to part may be handfuls of strange rows; the K heaviest are the start.
_METHODS = ("single", "average")
_CUTS = (
    lambda n_clusters: n_clusters,
    lambda n_clusters: n_clusters + 2,
    lambda n_clusters: 2 * n_clusters,
    lambda n_clusters: 3 * n_clusters,
)

N_STARTS = len(_METHODS) * len(_CUTS)


def list_linkage_starts(
    codes: Codes,
    weights: np.ndarray,
    strange: np.ndarray,
    n_clusters: int,
    n_starts: int,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """Return clusters of codes to start from.

    The distance of two codes is the share of the partitions in which they differ,
    among those where both have a label.

    Parameters
    ----------
    codes : Codes
    weights : ndarray of shape (n_codes,)
    strange : ndarray of shape (n_codes,)
        How much of the weights is left out of the trees.
    n_clusters : int
    n_starts : int
        At most so many starts, the least cut trees first.
    rng : numpy Generator

    Returns
    -------
    members : list of ndarray of shape (n_codes, n_clusters)
        How much of each code is in each cluster.
    """
    return grow_trees(codes, weights, strange, n_clusters, rng).list_starts(
        n_clusters, n_starts
    )


@dataclass(frozen=True)
class Trees:
    """Trees of some codes, to be cut into any number of branches.

    Attributes
    ----------
    weights : ndarray of shape (n_codes,)
        Zero for codes that are not in the trees.
    present : ndarray of shape (n_present,)
        The codes in the trees.
    trees : list of ndarray
        As :func:`scipy.cluster.hierarchy.linkage` returns them; none for one code.
    """

    weights: np.ndarray
    present: np.ndarray
    trees: list[np.ndarray]

    def list_starts(self, n_clusters: int, n_starts: int) -> list[np.ndarray]:
        """Return clusters of codes to start from; see list_linkage_starts."""
        if not self.trees:
            return [self.weights[:, None]]
        starts = []
        for cut in _CUTS:
            for tree in self.trees:
                branches = fcluster(tree, cut(n_clusters), "maxclust") - 1
                members = _heaviest(branches, self.weights[self.present], n_clusters)
                if members is not None:
                    start = np.zeros((len(self.weights), n_clusters))
                    start[self.present] = members
                    starts.append(start)
        return starts[:n_starts] or [
            _split_codes(self.weights, self.present, n_clusters)
        ]


def grow_trees(
    codes: Codes,
    weights: np.ndarray,
    strange: np.ndarray,
    n_clusters: int,
    rng: np.random.Generator,
) -> Trees:
    """Grow trees of the codes that are not strange; see list_linkage_starts."""
    if np.count_nonzero(weights > strange) >= n_clusters:
        weights = np.maximum(weights - strange, 0)
    weights = _thin_out(weights, n_clusters, rng)
    present = np.flatnonzero(weights)
    if len(present) == 1:
        return Trees(weights, present, [])
    return _link(weights, present, _measure_pairs(codes, present))


def _link(weights: np.ndarray, present: np.ndarray, distances: np.ndarray) -> Trees:
    return Trees(weights, present, [linkage(distances, method) for method in _METHODS])


class Forest:
    """Trees of some codes, without those that are strange, whatever these are.

    The codes are drawn once, strange ones among them, and their distances are measured
    once.

    Parameters
    ----------
    codes : Codes
    weights : ndarray of shape (n_codes,)
    rng : numpy Generator
    """

    def __init__(
        self, codes: Codes, weights: np.ndarray, rng: np.random.Generator
    ) -> None:
        self._codes = codes
        self._totals = weights
        self._weights = _thin_out(weights, 1, rng)
        self._present = np.flatnonzero(self._weights)
        # What a code weighs in the trees for each sample that it stands for.
        self._ratios = np.divide(
            self._weights, weights, out=np.zeros_like(weights), where=weights > 0
        )
        self._trees: dict[bytes, Trees] = {}

    @cached_property
    def _distances(self) -> np.ndarray:
        return _measure_pairs(self._codes, self._present)

    @cached_property
    def _pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """The codes of each distance, as places among those that are present."""
        first, second = np.triu_indices(len(self._present), 1)
        return first.astype(np.int16), second.astype(np.int16)

    def find_trees(self, strange: np.ndarray, n_clusters: int) -> Trees:
        """Return the trees of the codes that are not strange.

        Parameters
        ----------
        strange : ndarray of shape (n_codes,)
            How much of the weights is left out, if that leaves enough codes.
        n_clusters : int

        Returns
        -------
        trees : Trees
        """
        weights = np.maximum(self._weights - strange * self._ratios, 0)
        # Of a code that is strange as a whole, rounding must leave nothing.
        weights[strange >= self._totals] = 0
        if np.count_nonzero(weights) < n_clusters:
            weights = self._weights
        key = weights.tobytes()
        if key not in self._trees:
            self._trees[key] = self._grow(weights)
        return self._trees[key]

    def _grow(self, weights: np.ndarray) -> Trees:
        present = np.flatnonzero(weights)
        if len(present) == 1:
            return Trees(weights, present, [])
        is_present = weights[self._present] > 0
        distances = self._distances
        if not is_present.all():
            first, second = self._pairs
            distances = distances[is_present[first] & is_present[second]]
        return _link(weights, present, distances)


def _thin_out(
    weights: np.ndarray, n_clusters: int, rng: np.random.Generator
) -> np.ndarray:
    """Return the weights of the codes of a few random samples, if there are more."""
    if np.count_nonzero(weights) <= _TREE_SAMPLES:
        return weights
    n_chosen = max(_TREE_SAMPLES, n_clusters)
    shares = weights / weights.sum()
    chosen = rng.choice(len(weights), n_chosen, replace=False, p=shares)
    thinned = np.zeros_like(weights)
    thinned[chosen] = 1
    return thinned


def _measure_pairs(codes: Codes, present: np.ndarray) -> np.ndarray:
    """Return the distances of all pairs of codes, as linkage takes them."""
    rows, missing = codes.rows[present], codes.book.n_labels + 1
    is_known = rows != missing
    if is_known.all():
        return pdist(rows, "hamming")
    slots = one_hot_rows(rows, codes.book)[:, codes.book.is_label]
    agree = (slots @ slots.T).toarray()
    both = is_known.astype(np.float64) @ is_known.T
    # Codes without a common partition may be anything.
    distances = 1 - np.divide(agree, both, out=np.zeros_like(agree), where=both > 0)
    np.fill_diagonal(distances, 0)
    return squareform(distances, checks=False)


def _heaviest(
    branches: np.ndarray, weights: np.ndarray, n_clusters: int
) -> np.ndarray | None:
    """Return the codes of the heaviest branches; None if there are too few branches.

    Branches come apart only where distances differ, so there may be fewer than asked.
    """
    sizes = np.bincount(branches, weights)
    if len(sizes) < n_clusters:
        return None
    heaviest = np.argsort(-sizes, kind="stable")[:n_clusters]
    return (branches[:, None] == heaviest) * weights[:, None]


def _split_codes(
    weights: np.ndarray, present: np.ndarray, n_clusters: int
) -> np.ndarray:
    """Return the heaviest codes as clusters of their own, where no tree comes apart."""
    heaviest = present[np.argsort(-weights[present], kind="stable")[:n_clusters]]
    start = np.zeros((len(weights), n_clusters))
    start[heaviest, np.arange(len(heaviest))] = weights[heaviest]
    return start
