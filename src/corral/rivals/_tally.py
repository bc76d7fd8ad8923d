"""How many costs lie where, over all blocks, as fine as a few numbers can tell."""

from dataclasses import dataclass

import numpy as np

# Costs that a tally tells apart; more are told apart less finely.
_MOST_KEYS = 2**12

# Costs are rounded, so that so many of their last bits are zero.
_ZERO_BITS = 12

# Keys in such a range are counted in one array, others sorted.
_MOST_BINS = 2**20


@dataclass(frozen=True)
class Tally:
    """Counts of costs by their leading bits.

    Numbers that are not negative have the order of their bits.

    Attributes
    ----------
    keys : ndarray of shape (n_keys,), int64
        The bits of costs without the last ones, sorted.
    counts : ndarray of shape (n_keys,), int64
    shift : int
        How many bits are left out.
    """

    keys: np.ndarray
    counts: np.ndarray
    shift: int

    @classmethod
    def of(cls, costs: np.ndarray, shift: int = 0) -> "Tally":
        """Count costs; those below zero count as zero.

        Parameters
        ----------
        costs : ndarray of shape (n_costs,), float64
        shift : int, default=0
            Bits that need not be told apart.
        """
        # There is a negative zero, too.
        keys = (np.maximum(costs, 0.0) + 0.0).view(np.int64) >> shift
        first = int(keys.min(initial=np.iinfo(np.int64).max))
        if int(keys.max(initial=0)) - first >= _MOST_BINS:
            return cls(*np.unique(keys, return_counts=True), shift)._limit()
        counts = np.bincount(keys - first)
        found = np.flatnonzero(counts)
        return cls(found + first, counts[found], shift)._limit()

    def __add__(self, other: "Tally") -> "Tally":
        shift = max(self.shift, other.shift)
        pair = self._coarsen(shift), other._coarsen(shift)
        keys = np.concatenate([each.keys for each in pair])
        counts = np.concatenate([each.counts for each in pair])
        order = np.argsort(keys, kind="stable")
        return _merge(keys[order], counts[order], shift)._limit()

    def _coarsen(self, shift: int) -> "Tally":
        return _merge(self.keys >> (shift - self.shift), self.counts, shift)

    def _limit(self) -> "Tally":
        tally = self
        while len(tally.keys) > _MOST_KEYS:
            tally = tally._coarsen(tally.shift + 1)
        return tally

    @property
    def n_costs(self) -> int:
        """Number of costs."""
        return int(self.counts.sum())

    @property
    def is_exact(self) -> bool:
        """Whether costs that differ at all are told apart."""
        return self.shift <= _ZERO_BITS

    def find(self, n: int) -> tuple[float, float]:
        """Return bounds of the n-th largest cost, both of which it may be."""
        above = np.cumsum(self.counts[::-1])
        key = int(self.keys[::-1][np.searchsorted(above, n)])
        ends = [key << self.shift, ((key + 1) << self.shift) - 1]
        low, high = np.array(ends, dtype=np.int64).view(np.float64).tolist()
        return low, low if self.is_exact else high

    def count_above(self, cost: float) -> int:
        """Return how many costs are larger than one that was found."""
        return int(self.counts[self.keys > self._key(cost)].sum())

    def count(self, cost: float) -> int:
        """Return how many costs are like one that was found."""
        return int(self.counts[self.keys == self._key(cost)].sum())

    def _key(self, cost: float) -> int:
        return int(np.float64(cost).view(np.int64)) >> self.shift


def _merge(keys: np.ndarray, counts: np.ndarray, shift: int) -> Tally:
    """Return the tally of sorted keys, some of which may be equal."""
    if not len(keys):
        return Tally(keys, counts, shift)
    starts = np.flatnonzero(np.diff(keys, prepend=keys[0] - 1))
    return Tally(keys[starts], np.add.reduceat(counts, starts), shift)
