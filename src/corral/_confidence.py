"""How sure labels are: what becomes of them if the partitions are drawn again."""

from typing import NamedTuple

import numpy as np

from corral._codes import Codes
from corral._fusion import Fusion
from corral._outliers import costliest
from corral._position import look_up_codes
from corral._threads import Threads

# Partitions tell much the same, so that this many of them are drawn, however many there
# are; chosen on generated data, where confidences of 0.9 should be right nine times out
# of ten (decision 9).
_N_DRAWN = 8

# Codes are handled in blocks of about so many costs.
_BLOCK_COSTS = 2**19

# Rows that can be among the o costliest if partitions are drawn again: those that are
# among so many times o, and so many more.
_CANDIDATE_RATIO = 4
_MORE_CANDIDATES = 2000


class Confidence(NamedTuple):
    """Shares of the resamples.

    Attributes
    ----------
    outlier : ndarray of shape (n_samples,)
        In which a row is set aside.
    label : ndarray of shape (n_samples,)
        In which its nearest cluster is the same.
    stability : ndarray of shape (n_clusters,)
        Mean Jaccard index of a cluster with itself in the resamples.
    """

    outlier: np.ndarray
    label: np.ndarray
    stability: np.ndarray


def measure_confidence(
    codes: Codes,
    fusion: Fusion,
    table: np.ndarray,
    rarity: np.ndarray,
    position: np.ndarray | None,
    n_resamples: int,
    rng: np.random.Generator,
    threads: Threads,
) -> Confidence:
    r"""Draw partitions again and see which labels change.

    In a resample, partition i counts as often as it is drawn, :math:`w_i` times in m
    draws, so a row costs :math:`\sum_i w_i c_{ik}` in cluster k, with
    :math:`c_{ik}` what partition i costs in the fit. Its distances, which are no
    partition's own, count :math:`m / r` times. Centres stay as they are.

    Parameters
    ----------
    codes : Codes
    fusion : Fusion
    table : ndarray of shape (n_slots, n_clusters)
        What labels cost.
    rarity : ndarray of shape (n_slots,)
        What labels cost for being rare, in all clusters.
    position : ndarray of shape (n_samples,) or None
        Rarity and distance of each row.
    n_resamples : int
    rng : numpy Generator
    threads : Threads

    Returns
    -------
    confidence : Confidence
    """
    n_partitions = codes.rows.shape[1]
    chances = np.full(n_partitions, 1 / n_partitions)
    draws = rng.multinomial(_N_DRAWN, chances, size=n_resamples)
    resamples = _Resamples(codes, table, rarity, draws.T.astype(np.float64), threads)
    agreement = resamples.compare_labels(fusion.code_labels)
    outlier = resamples.set_aside_again(fusion, position)
    label = agreement.shares[codes.inverse]
    return Confidence(outlier, label, agreement.stability)


class _Agreement(NamedTuple):
    shares: np.ndarray
    stability: np.ndarray


class _Resamples(NamedTuple):
    """Costs of codes in all resamples.

    Costs are whole multiples of a step and draws are whole numbers, so that sums are
    exact: they depend on no order, and so on no block and no machine.
    """

    codes: Codes
    table: np.ndarray
    rarity: np.ndarray
    draws: np.ndarray
    threads: Threads

    def compare_labels(self, code_labels: np.ndarray) -> _Agreement:
        """Return how often the nearest cluster of each code is the same."""
        n_codes, n_clusters = len(self.codes.rows), self.table.shape[1]
        n_resamples = self.draws.shape[1]
        shares = np.empty(n_codes)
        counts = self.codes.counts.astype(np.float64)

        def work(here: slice) -> np.ndarray:
            nearest = self._cost(self.codes.rows[here], self.table).argmin(axis=0)
            labels = code_labels[here]
            is_same = nearest == labels[:, None]
            shares[here] = is_same.mean(axis=1)
            # Rows of each cluster that stay, and rows that it has, per resample.
            sizes = np.zeros((2, n_clusters, n_resamples))
            for k in range(n_clusters):
                is_here = nearest == k
                sizes[1, k] = counts[here] @ is_here
                sizes[0, k] = counts[here] @ (is_here & is_same)
            return sizes

        sums = sum(self.threads.map(work, self._blocks()))
        own = np.bincount(code_labels, counts, minlength=n_clusters)[:, None]
        union = own + sums[1] - sums[0]
        jaccard = np.divide(sums[0], union, out=np.ones_like(union), where=union > 0)
        return _Agreement(shares, jaccard.mean(axis=1))

    def set_aside_again(
        self, fusion: Fusion, position: np.ndarray | None
    ) -> np.ndarray:
        """Return how often each row is among the costliest."""
        codes, n_outliers = self.codes, len(fusion.outliers)
        n_samples = len(codes.inverse)
        shares = np.zeros(n_samples)
        if not n_outliers:
            return shares
        costs = fusion.code_costs[codes.inverse]
        distances = np.zeros(n_samples)
        if position is not None:
            costs = costs + position
            rare = look_up_codes(codes, self.rarity, self.threads)
            distances = position - rare[codes.inverse]
        n_rows = min(_CANDIDATE_RATIO * n_outliers + _MORE_CANDIDATES, n_samples)
        rows = costliest(costs, n_rows)
        present, places = np.unique(codes.inverse[rows], return_inverse=True)
        again = self._cost_of_outliers(codes.rows[present])[places]
        # Each draw is one of as many partitions as there are.
        again += (distances[rows] * (_N_DRAWN / len(self.draws)))[:, None]
        kth = n_rows - n_outliers
        threshold = np.partition(again, kth, axis=0)[kth]
        shares[rows] = (again >= threshold).mean(axis=1)
        return shares

    def _cost_of_outliers(self, rows: np.ndarray) -> np.ndarray:
        """Return the costs of codes, with how rare they are."""
        again = np.empty((len(rows), self.draws.shape[1]))
        table = self.table + self.rarity[:, None]

        def work(here: slice) -> None:
            again[here] = self._cost(rows[here], table).min(axis=0)

        for _ in self.threads.map(work, self._blocks(len(rows))):
            pass
        return again

    def _cost(self, rows: np.ndarray, table: np.ndarray) -> np.ndarray:
        """Return costs of shape (n_clusters, n_rows, n_resamples)."""
        slots = rows + self.codes.book.offsets.astype(np.int32)
        costs = [np.take(column, slots) @ self.draws for column in table.T]
        return np.stack(costs)

    def _blocks(self, n_codes: int | None = None) -> list[slice]:
        n_codes = len(self.codes.rows) if n_codes is None else n_codes
        width = self.codes.rows.shape[1] * max(self.table.shape[1], 1)
        step = max(_BLOCK_COSTS // width, 1)
        return [slice(start, start + step) for start in range(0, n_codes, step)]
