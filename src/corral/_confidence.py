"""How sure labels are: what becomes of them if the partitions are drawn again."""

from typing import NamedTuple

import numpy as np

from corral._codes import CodeBook, Codes
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


def draw_again(
    n_partitions: int, n_resamples: int, rng: np.random.Generator
) -> tuple[list[np.ndarray], list[np.ndarray]]:
    r"""Draw partitions again, for labels and for outliers.

    A resample is m partitions, drawn with replacement. A row costs
    :math:`\sum_i c_{ik}` in cluster k, added up over these, with :math:`c_{ik}` what
    partition i costs in the fit. Its distances, which are no partition's own, count
    :math:`m / r` times. Centres stay as they are.

    Parameters
    ----------
    n_partitions : int
    n_resamples : int
    rng : numpy Generator

    Returns
    -------
    for_labels, for_outliers : list of ndarray
        The partitions of each resample; their numbers take turns.
    """
    for_labels, for_outliers = (
        [rng.integers(n_partitions, size=m) for m in np.resize(sizes, n_resamples)]
        for sizes in (_LABEL_DRAWS, _OUTLIER_DRAWS)
    )
    return for_labels, for_outliers


def compare_labels(
    codes: Codes,
    code_labels: np.ndarray,
    table: np.ndarray,
    resamples: list[np.ndarray],
    threads: Threads,
) -> tuple[np.ndarray, np.ndarray]:
    """Return how often the nearest cluster of each code is the same.

    Parameters
    ----------
    codes : Codes
    code_labels : ndarray of shape (n_codes,)
    table : ndarray of shape (n_slots, n_clusters)
        What labels cost.
    resamples : list of ndarray
    threads : Threads

    Returns
    -------
    shares : ndarray of shape (n_codes,)
        Of the resamples.
    sizes : ndarray of shape (n_resamples, 2, n_clusters)
        How many rows of each cluster stay, and how many it has.
    """
    n_codes, n_clusters = len(codes.rows), table.shape[1]
    shares = np.zeros(n_codes)

    answers = [_AllAnswers.make(codes, table, each) for each in resamples]

    def work(here: slice) -> np.ndarray:
        sizes = np.empty((len(resamples), 2, n_clusters))
        labels, counts = code_labels[here], codes.counts[here]
        for number, partitions in enumerate(resamples):
            rows, known = codes.rows[here], answers[number]
            places = np.arange(len(rows)) if known is None else known.find(rows)
            if known is None:
                known = _AllAnswers.of(_cost(rows, codes.book, table, partitions))
            is_same = known.is_nearest[places, labels]
            nearest = np.where(is_same, labels, known.nearest[places])
            shares[here] += is_same
            sizes[number] = [
                np.bincount(labels, counts * is_same, minlength=n_clusters),
                np.bincount(nearest, counts, minlength=n_clusters),
            ]
        return sizes

    sizes = sum(threads.map(work, _split(n_codes)))
    return shares / len(resamples), sizes


class _AllAnswers(NamedTuple):
    """What is nearest for all combinations of labels in a resample.

    There are fewer of them than codes where these are many.

    Attributes
    ----------
    partitions : ndarray
    n_slots : ndarray
        Of each of these.
    is_nearest : ndarray of shape (n_combinations, n_clusters), bool
        Where others are as near, as without any label, several are.
    nearest : ndarray of shape (n_combinations,)
        The first of them.
    """

    partitions: np.ndarray
    n_slots: np.ndarray
    is_nearest: np.ndarray
    nearest: np.ndarray

    @classmethod
    def make(
        cls, codes: Codes, table: np.ndarray, partitions: np.ndarray
    ) -> "_AllAnswers | None":
        """Price all combinations; None if there are more of them than codes."""
        n_slots = codes.book.n_labels[partitions] + 2
        if n_slots.prod() > len(codes.rows):
            return None
        rows = np.zeros((n_slots.prod(), len(codes.book.n_labels)), np.intp)
        labels = np.unravel_index(np.arange(len(rows)), n_slots)
        rows[:, partitions] = np.stack(labels, axis=1)
        found = cls.of(_cost(rows, codes.book, table, partitions))
        return found._replace(partitions=partitions, n_slots=n_slots)

    @classmethod
    def of(cls, costs: np.ndarray) -> "_AllAnswers":
        """Tell what is nearest at costs of shape (n_combinations, n_clusters)."""
        nobody = np.zeros(0, dtype=np.intp)
        is_nearest = costs <= costs.min(axis=1, keepdims=True)
        return cls(nobody, nobody, is_nearest, costs.argmin(axis=1))

    def find(self, rows: np.ndarray) -> np.ndarray:
        """Return the combinations that codes have."""
        labels = tuple(rows[:, each] for each in self.partitions)
        return np.ravel_multi_index(labels, self.n_slots)


def measure_stability(n_nearest: np.ndarray, n_again: np.ndarray) -> np.ndarray:
    """Return the mean Jaccard index of each cluster with itself in the resamples.

    Parameters
    ----------
    n_nearest : ndarray of shape (n_clusters,)
        Number of rows of each cluster.
    n_again : ndarray of shape (n_resamples, 2, n_clusters)
        How many of these stay, and how many it has.
    """
    stay, have = np.moveaxis(n_again, 1, 0)
    union = n_nearest + have - stay
    jaccard = np.divide(stay, union, out=np.ones_like(stay), where=union > 0)
    return jaccard.mean(axis=0)


class Candidates(NamedTuple):
    """Rows that can be outliers if partitions are drawn again.

    Attributes
    ----------
    rows : ndarray of shape (n_candidates,)
        Sorted.
    places : ndarray of shape (n_candidates,)
        Where their codes are.
    codes : ndarray of shape (n_codes, n_partitions)
    distances : ndarray of shape (n_candidates,)
    """

    rows: np.ndarray
    places: np.ndarray
    codes: np.ndarray
    distances: np.ndarray

    @classmethod
    def join(cls, parts: list["Candidates"]) -> "Candidates":
        """Return the candidates of all blocks together."""
        before = np.cumsum([0, *(len(part.codes) for part in parts[:-1])])
        places = [
            part.places + first for part, first in zip(parts, before, strict=True)
        ]
        return cls(
            np.concatenate([part.rows for part in parts]),
            np.concatenate(places),
            np.concatenate([part.codes for part in parts]),
            np.concatenate([part.distances for part in parts]),
        )


def count_candidates(n_outliers: int, n_samples: int) -> int:
    """Return how many of the costliest rows are candidates."""
    return min(_CANDIDATE_RATIO * n_outliers + _MORE_CANDIDATES, n_samples)


def set_aside_again(
    candidates: Candidates,
    book: CodeBook,
    table: np.ndarray,
    n_outliers: int,
    resamples: list[np.ndarray],
    threads: Threads,
) -> np.ndarray:
    """Return in which share of the resamples each candidate is set aside.

    Parameters
    ----------
    candidates : Candidates
    book : CodeBook
    table : ndarray of shape (n_slots, n_clusters)
        What labels cost, for being rare too.
    n_outliers : int
    resamples : list of ndarray
    threads : Threads

    Returns
    -------
    shares : ndarray of shape (n_candidates,)
    """
    shares = np.zeros(len(candidates.rows))
    # Each draw is one of as many partitions as there are.
    distances = candidates.distances / candidates.codes.shape[1]
    for partitions in resamples:
        costs = _cost_least(candidates.codes, book, table, partitions, threads)
        again = costs[candidates.places] + len(partitions) * distances
        shares += _share_places(again, n_outliers)
    return shares / len(resamples)


def _cost_least(
    rows: np.ndarray,
    book: CodeBook,
    table: np.ndarray,
    partitions: np.ndarray,
    threads: Threads,
) -> np.ndarray:
    """Return the costs of codes in their nearest cluster, in a resample."""
    least = np.empty(len(rows))

    def work(here: slice) -> None:
        least[here] = _cost(rows[here], book, table, partitions).min(axis=1)

    for _ in threads.map(work, _split(len(rows))):
        pass
    return least


def _cost(
    rows: np.ndarray, book: CodeBook, table: np.ndarray, partitions: np.ndarray
) -> np.ndarray:
    """Return costs of codes in a resample, of shape (n_rows, n_clusters).

    They are whole multiples of a step, so that their sums are exact: they depend on no
    order, and so on no block and no machine.
    """
    costs = np.zeros((len(rows), table.shape[1]))
    for partition in partitions:
        # NumPy before 2.0 would add up in the small type of the rows.
        labels = rows[:, partition].astype(np.intp)
        costs += table[labels + book.offsets[partition]]
    return costs


def _share_places(costs: np.ndarray, n_places: int) -> np.ndarray:
    """Return 1 for the largest costs; those that tie share the places that are left."""
    last = len(costs) - n_places
    cut = np.partition(costs, last)[last]
    above, tied = costs > cut, costs == cut
    return above + tied * ((n_places - above.sum()) / tied.sum())


def _split(n_codes: int) -> list[slice]:
    starts = range(0, n_codes, _BLOCK_CODES)
    return [slice(start, start + _BLOCK_CODES) for start in starts]
