"""The search for clusters: many numbers of them on the same codes, each judged."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.metrics import adjusted_rand_score

from corral._codes import CodeBook, Codes, one_hot_rows
from corral._criteria import (
    Borders,
    Pairs,
    compare_pairs,
    describe_length,
    find_touching,
    measure_borders,
    rank_clusters,
)
from corral._divergences import CodeLength
from corral._encoded import EncodedRows
from corral._fuser import Fuser
from corral._fusion import Fusion, FusionSettings, Problem
from corral._linkage import N_STARTS
from corral._tails import Gaps, count_excess, standardize_costs
from corral._threads import Threads

# The search uses so many random rows at most, so many iterations of a fusion, and the
# eps that COR has by default.
_SEARCH_ROWS = 3000
_SEARCH_ITERATIONS = 30
_SEARCH_EPS = 0.01

# Stability is measured on so many of these rows.
_STABILITY_ROWS = 600

# So many more clusters than asked for are tried, because the last number can only be
# judged by what comes after it.
_MORE_CLUSTERS = 2

# Where nothing is told apart, clusters are looked for without these shares of the rows,
# those at the emptiest places: noise between clusters hides that they are some.
_TRIMMED_SHARES = (0.1, 0.25)

# Curves are drawn for so many more or fewer clusters than chosen, and these shares of
# outliers.
_CURVE_CLUSTERS = 2
_CURVE_SHARES = (0.0, 0.02, 0.05, 0.1, 0.15, 0.2, 0.25)

_COLUMNS = (
    "n_clusters",
    "n_outliers",
    "told",
    "mixed",
    "border",
    "smallest",
    "gap",
    "objective",
    "description_length",
    "stability",
    "is_chosen",
)


class Limits(NamedTuple):
    """Between which numbers to choose.

    Attributes
    ----------
    clusters : tuple of (int, int)
        Smallest and largest number of clusters.
    outliers : tuple of (int, int)
        Smallest and largest number of outliers. If the smallest is not 0, outliers are
        sure to be there, and the widest gap counts, however wide.
    min_cluster_share : float
        A group with less than this part of the mean size of a cluster is outliers.
    why_fixed : str
        Why there is but one number of clusters, if there is.
    """

    clusters: tuple[int, int]
    outliers: tuple[int, int]
    min_cluster_share: float = 0.15
    why_fixed: str = "that was asked for"


class Candidate(NamedTuple):
    """A number of clusters with a number of outliers."""

    fusion: Fusion
    pairs: Pairs
    borders: Borders
    length: float


@dataclass(frozen=True)
class Answer:
    """The best number of clusters for a number of outliers.

    Attributes
    ----------
    n_asked : int
        The number of outliers before small groups were added.
    n_outliers : int
    n_cut : int
        The number of clusters, small groups among them.
    n_clusters : int
        Without small groups.
    how : str
        "told" apart, "touching" with empty borders, one "crowd", or "asked" for.
    numbers : sequence of int
        The numbers of clusters that come into question, the best first.
    is_clear : bool
        Whether one cluster more than the best is clearly too many.
    """

    n_asked: int
    n_outliers: int
    n_cut: int
    n_clusters: int
    how: str
    numbers: Sequence[int]
    is_clear: bool

    @property
    def is_told(self) -> bool:
        """Whether there is nothing more to find."""
        return self.how in ("told", "asked")


@dataclass(frozen=True)
class Search:
    """Fuses the same rows into many numbers of clusters.

    Attributes
    ----------
    codes : Codes
        Of the rows that are searched.
    position : ndarray of shape (n_searched,)
    strange : ndarray of shape (n_strange,)
        The position of the strangest of all rows, sorted.
    n_samples : int
        Of all rows.
    found : dict of int to dict of int to Candidate
        By the number of outliers and that of clusters: what was fused already.
    """

    codes: Codes
    position: np.ndarray
    strange: np.ndarray
    partitions: Sequence[int]
    limits: Limits
    n_samples: int
    rng: np.random.Generator
    threads: Threads
    found: dict[int, dict[int, Candidate]]

    @classmethod
    def make(
        cls,
        rows: EncodedRows,
        strange: np.ndarray,
        partitions: Sequence[int],
        limits: Limits,
        rng: np.random.Generator,
        threads: Threads,
    ) -> "Search":
        """Prepare a search in all rows, or in a random part of many."""
        n_samples = rows.n_samples
        searched = np.arange(min(n_samples, _SEARCH_ROWS))
        if n_samples > _SEARCH_ROWS:
            searched = np.sort(rng.choice(n_samples, _SEARCH_ROWS, replace=False))
        codes, position = rows.take(searched)
        return cls(
            codes, position, strange, partitions, limits, n_samples, rng, threads, {}
        )

    @cached_property
    def _fuser(self) -> Fuser:
        return _make_fuser(
            self.codes, self.position, self.partitions, self.rng, self.threads
        )

    @cached_property
    def _one_hot(self) -> sparse.csr_array:
        return one_hot_rows(self.codes.rows, self.codes.book)

    @property
    def n_searched(self) -> int:
        """Number of rows that are searched."""
        return len(self.codes.inverse)

    def scale_down(self, n_outliers: int) -> int:
        """Return how many of the rows that are searched are outliers.

        Not their share, but those of them that are among the strangest of all rows:
        each that is left over would be a cluster that nothing is easier told from.
        """
        return self._count_strange(self.position, n_outliers)

    def _count_strange(self, position: np.ndarray, n_outliers: int) -> int:
        """Return how many of some rows are among so many strangest ones."""
        n_rows = round(n_outliers * len(position) / self.n_samples)
        if 0 < n_outliers <= len(self.strange):
            border = self.strange[-n_outliers]
            n_above, n_equal = _compare(self.strange, border)
            n_here, n_tied = _compare(position, border)
            n_rows = n_here + round(n_tied * (n_outliers - n_above) / n_equal)
        return min(n_rows, len(position) - 1)

    def scale_up(self, n_rows: float) -> int:
        """Return how many of all rows so many of those that are searched stand for."""
        return round(n_rows * self.n_samples / self.n_searched)

    def answer(self, n_outliers: int) -> Answer:
        """Return the best number of clusters if there are so many outliers."""
        smallest, largest = self.limits.clusters
        if smallest == largest:
            return Answer(
                n_outliers, n_outliers, smallest, smallest, "asked", [smallest], True
            )
        # More clusters than there are codes are told apart by nothing.
        told = dict.fromkeys(self._numbers, 0.0) | {1: 1.0} | self.told(n_outliers)
        ranking = rank_clusters(told)
        numbers = [k for k in ranking.numbers if smallest <= k <= largest]
        if not numbers or numbers[0] == 1:
            first = numbers[0] if numbers else smallest
            return self.part_small(
                n_outliers, first, "crowd", numbers, ranking.is_clear
            )
        return self.part_small(
            n_outliers, numbers[0], "told", numbers, ranking.is_clear
        )

    def look_closer(self, answer: Answer) -> Answer:
        """Look for clusters among the rows at crowded places, or that touch.

        First any that are told apart without the rows at the emptiest places, then any
        that have an empty border between them; what is found with fewer rows left out
        counts first.
        """
        most = self.limits.outliers[1]
        trimmed = [int(share * self.n_samples) for share in _TRIMMED_SHARES]
        trimmed = [o for o in trimmed if answer.n_asked < o <= max(most, trimmed[0])]
        for n_outliers in trimmed:
            found = self.answer(n_outliers)
            if found.is_told:
                return found
        for n_outliers in [answer.n_asked, *trimmed]:
            touching = self._find_touching(n_outliers)
            if touching is not None:
                return touching
        return answer

    def _find_touching(self, n_outliers: int) -> Answer | None:
        smallest, largest = self.limits.clusters
        borders = {
            k: each.borders
            for k, each in self.candidates(n_outliers).items()
            if max(smallest, 2) <= k <= largest
        }
        number = find_touching(self.told(n_outliers), borders)
        if number is None:
            return None
        return self.part_small(n_outliers, number, "touching", [number])

    def part_small(
        self,
        n_outliers: int,
        n_cut: int,
        how: str = "told",
        numbers: Sequence[int] = (),
        is_clear: bool = True,
    ) -> Answer:
        """Return the answer, in which groups too small for a cluster are outliers."""
        candidate = self.candidates(n_outliers).get(n_cut)
        n_clusters, n_small = n_cut, 0
        if candidate is not None:
            sizes = candidate.pairs.sizes
            is_large = sizes >= self.limits.min_cluster_share * sizes.mean()
            # Where fewer clusters were refused, small groups are welcome as clusters.
            n_clusters = max(int(is_large.sum()), self.limits.clusters[0])
            smallest = np.sort(sizes)[: n_cut - n_clusters]
            n_small = self.scale_up(smallest.sum())
        # Where no more outliers are wanted, they are clusters after all.
        if n_outliers + n_small > self.limits.outliers[1]:
            n_clusters, n_small = n_cut, 0
        total = n_outliers + n_small
        return Answer(n_outliers, total, n_cut, n_clusters, how, numbers, is_clear)

    def told(self, n_outliers: int) -> dict[int, float]:
        """Return how well the worst pair is told apart, by the number of clusters."""
        return {k: each.pairs.grade for k, each in self.candidates(n_outliers).items()}

    def candidates(self, n_outliers: int) -> dict[int, Candidate]:
        """Return all numbers of clusters that were tried with these outliers."""
        if n_outliers not in self.found:
            fusions = self._fuser.sweep(self._numbers, self.scale_down(n_outliers))
            self.found[n_outliers] = {
                k: self._judge(fusion, k) for k, fusion in fusions.items()
            }
        return self.found[n_outliers]

    @property
    def _numbers(self) -> range:
        """The numbers of clusters that are tried."""
        smallest, largest = self.limits.clusters
        if smallest == largest:
            return range(smallest, smallest + 1)
        return range(max(smallest - 1, 1), largest + _MORE_CLUSTERS + 1)

    def _judge(self, fusion: Fusion, n_clusters: int) -> Candidate:
        gone = np.bincount(
            self.codes.inverse[fusion.outliers], minlength=len(self.codes.rows)
        )
        kept = self.codes.counts - gone
        args = (self.codes, fusion.code_labels, kept, n_clusters, self.partitions)
        return Candidate(
            fusion,
            compare_pairs(*args),
            self._measure_borders(fusion),
            describe_length(*args),
        )

    def _measure_borders(self, fusion: Fusion) -> Borders:
        book = self.codes.book
        table = CodeLength(_SEARCH_EPS).cost_table(fusion.centers, book, fusion.shares)
        costs = self._one_hot @ table
        kept = np.ones(self.n_searched, dtype=bool)
        kept[fusion.outliers] = False
        return measure_borders(costs[self.codes.inverse], self.position, kept)

    def count_excess(self, answer: Answer) -> int:
        """Return how many rows more lie far out of their clusters than should."""
        labels = np.zeros(self.n_searched, dtype=np.int32)
        candidate = self.candidates(answer.n_asked).get(answer.n_cut)
        if candidate is not None:
            labels = candidate.fusion.code_labels[self.codes.inverse]
        costs = standardize_costs(self.position, labels)
        most = self.scale_down(self.limits.outliers[1])
        return min(self.scale_up(count_excess(costs, most)), self.limits.outliers[1])

    def list_candidates(
        self, n_clusters: int, n_outliers: int, gaps: Gaps
    ) -> dict[str, np.ndarray]:
        """Return the columns of the table of candidates, with the chosen numbers."""
        stability = self._measure_stability(n_outliers)
        rows: list[tuple] = [
            (
                k,
                o,
                each.pairs.grade,
                each.pairs.mixed,
                each.borders.empty,
                float(each.pairs.sizes.min()),
                _width(gaps, o),
                each.fusion.objective,
                each.length,
                stability.get(k, np.nan) if o == n_outliers else np.nan,
                (k, o) == (n_clusters, n_outliers),
            )
            for o in sorted({*self.found, n_outliers})
            for k, each in self.candidates(o).items()
        ]
        rows += [
            (k, o, *[np.nan] * 4, _width(gaps, o), objective, np.nan, np.nan, False)
            for (k, o), objective in self._follow_outliers(
                n_clusters, n_outliers
            ).items()
        ]
        rows.sort(key=_by_outliers)
        return {
            name: np.array([row[place] for row in rows])
            for place, name in enumerate(_COLUMNS)
        }

    def _follow_outliers(
        self, n_clusters: int, n_outliers: int
    ) -> dict[tuple[int, int], float]:
        """Return objectives for numbers of outliers that were not tried."""
        least, most = self.limits.outliers
        numbers = {int(share * self.n_samples) for share in _CURVE_SHARES}
        numbers = {o for o in numbers if least <= o <= most} - set(self.found)
        return {
            (k, o): self._fuser.follow(each.fusion, self.scale_down(o)).objective
            for k, each in self.candidates(n_outliers).items()
            for o in numbers
            if abs(k - n_clusters) <= _CURVE_CLUSTERS
        }

    def _measure_stability(self, n_outliers: int) -> dict[int, float]:
        """Return how much two halves of the partitions agree, by number of clusters.

        The adjusted Rand index of their clusters, in which the outliers are one more.
        """
        rows = np.arange(self.n_searched)
        if self.n_searched > _STABILITY_ROWS:
            rows = np.sort(self.rng.choice(rows, _STABILITY_ROWS, replace=False))
        order = self.rng.permutation(self.codes.rows.shape[1])
        halves = np.sort(order[::2]), np.sort(order[1::2])
        if not all(map(len, halves)):
            return {}
        labels = [self._fuse_part(rows, half, n_outliers) for half in halves]
        return {
            k: float(adjusted_rand_score(labels[0][k], labels[1][k]))
            for k in labels[0].keys() & labels[1].keys()
        }

    def _fuse_part(
        self, rows: np.ndarray, columns: np.ndarray, n_outliers: int
    ) -> dict[int, np.ndarray]:
        """Return labels of some rows by some partitions, -1 for outliers."""
        codes = _take_partitions(self.codes.take(rows), columns)
        fine = np.flatnonzero(np.isin(columns, self.partitions))
        fuser = _make_fuser(
            codes, self.position[rows], fine.tolist(), self.rng, self.threads
        )
        n_aside = self._count_strange(self.position[rows], n_outliers)
        fusions = fuser.sweep(self._numbers, n_aside)
        labels = {}
        for k, fusion in fusions.items():
            labels[k] = fusion.code_labels[codes.inverse]
            labels[k][fusion.outliers] = -1
        return labels


def _make_fuser(
    codes: Codes,
    position: np.ndarray,
    partitions: Sequence[int],
    rng: np.random.Generator,
    threads: Threads,
) -> Fuser:
    settings = FusionSettings(1, 0, "linkage", N_STARTS, _SEARCH_ITERATIONS, partitions)
    divergence = CodeLength(_SEARCH_EPS)
    problem = Problem(codes, divergence, settings, threads, None, position)
    return Fuser(problem, len(codes.inverse), rng)


def _compare(values: np.ndarray, border: float) -> tuple[int, int]:
    """Return how many values are above a border, and how many are equal to it."""
    return int((values > border).sum()), int((values == border).sum())


def _width(gaps: Gaps, n_outliers: int) -> float:
    """Return the width of a gap; what was left out to see clusters may have none."""
    return float(gaps.widths[n_outliers]) if n_outliers < len(gaps.widths) else np.nan


def _by_outliers(row: tuple) -> tuple[int, int]:
    return row[1], row[0]


def _take_partitions(codes: Codes, columns: np.ndarray) -> Codes:
    """Return the codes of the same rows by some of the partitions."""
    rows, places = np.unique(codes.rows[:, columns], axis=0, return_inverse=True)
    inverse = places.ravel()[codes.inverse]
    book = CodeBook(codes.book.n_labels[columns])
    return Codes(book, rows, inverse, np.bincount(inverse))
