"""How sure labels are: what becomes of them if the partitions are drawn again."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from corral._codes import Codes
from corral._fusion import Fusion
from corral._outliers import costliest
from corral._position import look_up_codes
from corral._threads import Threads

# Partitions tell much the same, so that few of them are drawn, however many there are:
# so many for labels, in turn, and for outliers. Chosen on generated data, where
# confidences of 0.9 should be right nine times out of ten (decision 9).
_LABEL_DRAWS = (1, 2, 2)
_OUTLIER_DRAWS = (4,)

# Codes are handled in blocks of so many, whose costs fit the cache.
_BLOCK_CODES = 2**12

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

    A resample is m partitions, drawn with replacement. A row costs
    :math:`\sum_i c_{ik}` in cluster k, added up over these, with :math:`c_{ik}` what
    partition i costs in the fit. Its distances, which are no partition's own, count
    :math:`m / r` times. Centres stay as they are.

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
    costs = _Costs(codes, table, rarity, threads)
    agreement = costs.compare_labels(
        fusion.code_labels, _draw(codes, _LABEL_DRAWS, n_resamples, rng)
    )
    outlier = costs.set_aside_again(
        fusion, position, _draw(codes, _OUTLIER_DRAWS, n_resamples, rng)
    )
    return Confidence(outlier, agreement.shares[codes.inverse], agreement.stability)


def _draw(
    codes: Codes, sizes: tuple[int, ...], n_resamples: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Return the partitions of each resample; their numbers take turns."""
    n_partitions = codes.rows.shape[1]
    return [rng.integers(n_partitions, size=m) for m in np.resize(sizes, n_resamples)]


class _Agreement(NamedTuple):
    shares: np.ndarray
    stability: np.ndarray


class _Costs(NamedTuple):
    """Costs of codes in resamples.

    Costs are whole multiples of a step, so that their sums are exact: they depend on no
    order, and so on no block and no machine.
    """

    codes: Codes
    table: np.ndarray
    rarity: np.ndarray
    threads: Threads

    def compare_labels(
        self, code_labels: np.ndarray, resamples: list[np.ndarray]
    ) -> _Agreement:
        """Return how often the nearest cluster of each code is the same."""
        n_codes, n_clusters = len(self.codes.rows), self.table.shape[1]
        shares = np.zeros(n_codes)

        def work(here: slice) -> np.ndarray:
            # How many rows of each cluster stay, and how many it has, per resample.
            sizes = np.empty((len(resamples), 2, n_clusters))
            labels, counts = code_labels[here], self.codes.counts[here]
            costs = self._cost(self.codes.rows[here], self.table, resamples)
            rows = np.arange(len(labels))
            for number, each in enumerate(costs):
                # Where others are as near, as without any label, a row stays.
                is_same = each[rows, labels] <= each.min(axis=1)
                nearest = np.where(is_same, labels, each.argmin(axis=1))
                shares[here] += is_same
                sizes[number] = [
                    np.bincount(labels, counts * is_same, minlength=n_clusters),
                    np.bincount(nearest, counts, minlength=n_clusters),
                ]
            return sizes

        sizes = sum(self.threads.map(work, _split(n_codes)))
        stay, have = np.moveaxis(sizes, 1, 0)
        own = np.bincount(code_labels, self.codes.counts, minlength=n_clusters)
        union = own + have - stay
        jaccard = np.divide(stay, union, out=np.ones_like(stay), where=union > 0)
        return _Agreement(shares / len(resamples), jaccard.mean(axis=0))

    def set_aside_again(
        self,
        fusion: Fusion,
        position: np.ndarray | None,
        resamples: list[np.ndarray],
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
        # Each draw is one of as many partitions as there are.
        distances = distances[rows] / codes.rows.shape[1]
        table = self.table + self.rarity[:, None]
        for partitions in resamples:
            again = self._cost_least(codes.rows[present], table, partitions)[places]
            again += len(partitions) * distances
            shares[rows] += _share_places(again, n_outliers)
        return shares / len(resamples)

    def _cost_least(
        self, rows: np.ndarray, table: np.ndarray, partitions: np.ndarray
    ) -> np.ndarray:
        """Return the costs of codes in their nearest cluster, in a resample."""
        least = np.empty(len(rows))

        def work(here: slice) -> None:
            (costs,) = self._cost(rows[here], table, [partitions])
            least[here] = costs.min(axis=1)

        for _ in self.threads.map(work, _split(len(rows))):
            pass
        return least

    def _cost(
        self, rows: np.ndarray, table: np.ndarray, resamples: list[np.ndarray]
    ) -> Iterator[np.ndarray]:
        """Yield costs of shape (n_rows, n_clusters), resample by resample."""
        offsets = self.codes.book.offsets
        for partitions in resamples:
            costs = np.zeros((len(rows), table.shape[1]))
            for partition in partitions:
                costs += table[rows[:, partition] + offsets[partition]]
            yield costs


def _share_places(costs: np.ndarray, n_places: int) -> np.ndarray:
    """Return 1 for the largest costs; those that tie share the places that are left."""
    last = len(costs) - n_places
    cut = np.partition(costs, last)[last]
    above, tied = costs > cut, costs == cut
    return above + tied * ((n_places - above.sum()) / tied.sum())


def _split(n_codes: int) -> list[slice]:
    starts = range(0, n_codes, _BLOCK_CODES)
    return [slice(start, start + _BLOCK_CODES) for start in starts]
