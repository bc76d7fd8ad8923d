"""How many clusters, how many outliers, and why."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from corral._codes import Codes
from corral._criteria import Gaps, Pairs, compare_pairs, measure_gaps, rank_clusters
from corral._divergences import CodeLength
from corral._explain import make_frame
from corral._fusion import Fusion, FusionSettings, sweep_clusters
from corral._linkage import N_STARTS
from corral._position import look_up_codes, rarity_table
from corral._threads import Threads

# The search uses so many random rows at most, so many iterations of a fusion, and the
# eps that COR has by default.
_SEARCH_ROWS = 3000
_SEARCH_ITERATIONS = 30
_SEARCH_EPS = 0.01

# So many more clusters than asked for are tried, because the last number can only be
# judged by what comes after it.
_MORE_CLUSTERS = 2

# The numbers of outliers that are tried, and how wide their gap should be beside the
# widest.
_N_CANDIDATES = 3
_MIN_GAP_RATIO = 0.15

# So many gaps are kept to be shown.
_MAX_GAPS = 400

# Rows beyond one gap and short of another are a cluster rather than outliers if they
# have this part of the mean size of the others.
_FAIR_SIZE = 0.25


@dataclass(frozen=True)
class Selection:
    """The numbers of clusters and outliers that were chosen, and why.

    Attributes
    ----------
    n_clusters_ : int
        Number of clusters.
    n_outliers_ : int
        Number of outliers.
    runner_up : tuple of (int, int) or None
        The second best number of clusters and of outliers, if there is one.
    reason : str
        Why these were chosen, in words.
    columns : dict of str to ndarray
        The columns of ``table``.
    gap_numbers : ndarray of shape (n_gaps,)
        Numbers of outliers, from few to many; where there are many, those with the
        widest gaps among their neighbours.
    gap_widths : ndarray of shape (n_gaps,)
        For each of them, how wide the gap is between the outliers and the other rows,
        in units of what is expected.
    gap_threshold : float
        Wider gaps are signs of outliers.
    n_searched : int
        Number of rows that clusters were searched in; fewer than all if there are many.
    """

    n_clusters_: int
    n_outliers_: int
    runner_up: tuple[int, int] | None
    reason: str
    columns: dict[str, np.ndarray] = field(repr=False)
    gap_numbers: np.ndarray = field(repr=False)
    gap_widths: np.ndarray = field(repr=False)
    gap_threshold: float = field(repr=False)
    n_searched: int = field(repr=False)

    @property
    def table(self) -> Any:
        """All candidates, as a data frame of pandas, or else polars or pyarrow.

        One row per candidate: ``n_clusters``, ``n_outliers``; ``told``, how well the
        two clusters that are hardest to tell apart are told apart; ``mixed``, how many
        cells lie across a border of two clusters; ``smallest``, the size of the
        smallest cluster; ``gap``, how wide the gap below the outliers is;
        ``objective``, the mean cost of a row that is kept; ``is_chosen``.
        """
        return make_frame(dict(self.columns), np.empty(0))


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
    """

    clusters: tuple[int, int]
    outliers: tuple[int, int]
    min_cluster_share: float = 0.15


def choose_numbers(
    codes: Codes,
    position: np.ndarray | None,
    partitions: range,
    limits: Limits,
    rng: np.random.Generator,
    threads: Threads,
) -> Selection:
    """Choose the number of clusters and of outliers.

    Parameters
    ----------
    codes : Codes
        Of the rows.
    position : ndarray of shape (n_samples,) or None
        What it costs where each row lies. If None, how rare its labels are takes its
        place.
    partitions : range
        The fine ones, which tell clusters apart.
    limits : Limits
    rng : numpy Generator
        Draws the rows that are searched if there are many.
    threads : Threads

    Returns
    -------
    selection : Selection
    """
    if position is None:
        position = look_up_codes(codes, _price_labels(codes), threads)[codes.inverse]
    gaps = measure_gaps(position, limits.outliers[1])
    search = _Search.make(codes, position, partitions, limits, rng, threads)
    numbers = _list_outliers(gaps, *limits.outliers)
    return _conclude([search.answer(o) for o in numbers], gaps, search)


def _price_labels(codes: Codes) -> np.ndarray:
    """Return what each slot costs for being rare, in all partitions alike."""
    n_partitions = len(codes.book.n_labels)
    return rarity_table(codes, codes.counts, n_partitions, n_partitions)


def _list_outliers(gaps: Gaps, least: int, most: int) -> list[int]:
    """Return the numbers of outliers to try, the most likely first."""
    if least == most:
        return [least]
    found = gaps.list_candidates(_N_CANDIDATES, least)
    if not found:
        return [least]
    widest = gaps.widths[found[0]]
    return [o for o in found if gaps.widths[o] >= _MIN_GAP_RATIO * widest]


class _Answer(NamedTuple):
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
    numbers : list of int
        The numbers of clusters that come into question, the best first.
    is_clear : bool
        Whether one cluster more than the best is clearly too many.
    pairs : dict of int to Pairs
    objectives : dict of int to float
    """

    n_asked: int
    n_outliers: int
    n_cut: int
    n_clusters: int
    numbers: list[int]
    is_clear: bool
    pairs: dict[int, Pairs]
    objectives: dict[int, float]


@dataclass(frozen=True)
class _Search:
    """Fuses the same rows into many numbers of clusters.

    Attributes
    ----------
    codes : Codes
        Of the rows that are searched.
    position : ndarray of shape (n_searched,)
    n_samples : int
        Of all rows.
    """

    codes: Codes
    position: np.ndarray
    partitions: range
    limits: Limits
    n_samples: int
    rng: np.random.Generator
    threads: Threads

    @classmethod
    def make(
        cls,
        codes: Codes,
        position: np.ndarray,
        partitions: range,
        limits: Limits,
        rng: np.random.Generator,
        threads: Threads,
    ) -> "_Search":
        """Prepare a search in all rows, or in a random part of many."""
        n_samples = len(codes.inverse)
        if n_samples > _SEARCH_ROWS:
            rows = np.sort(rng.choice(n_samples, _SEARCH_ROWS, replace=False))
            codes, position = codes.take(rows), position[rows]
        return cls(codes, position, partitions, limits, n_samples, rng, threads)

    @property
    def n_searched(self) -> int:
        """Number of rows that are searched."""
        return len(self.codes.inverse)

    def answer(self, n_outliers: int) -> _Answer:
        """Return the best number of clusters if there are so many outliers."""
        smallest, largest = self.limits.clusters
        if smallest == largest:
            return _Answer(
                n_outliers, n_outliers, smallest, smallest, [smallest], True, {}, {}
            )
        fusions = self._fuse(n_outliers)
        pairs = {1: Pairs(1.0, 0.0, np.array([float(self._n_kept(n_outliers))]))}
        for k, fusion in fusions.items():
            pairs[k] = self._compare(fusion, k)
        # More clusters than there are codes are told apart by nothing.
        told = dict.fromkeys(self._numbers, 0.0)
        told |= {k: each.grade for k, each in pairs.items()}
        ranking = rank_clusters(told)
        numbers = [k for k in ranking.numbers if smallest <= k <= largest]
        n_cut = numbers[0] if numbers else smallest
        # Where fewer clusters were refused, small groups are welcome as clusters.
        sizes = pairs[n_cut].sizes if n_cut in pairs else np.ones(n_cut)
        is_large = sizes >= self.limits.min_cluster_share * sizes.mean()
        n_clusters = max(int(is_large.sum()), smallest)
        scale = self.n_samples / self.n_searched
        n_small = 0
        if n_clusters < n_cut:
            n_small = round(sizes[~is_large].sum() * scale)
        # Where no more outliers are wanted, they are clusters after all.
        if n_outliers + n_small > self.limits.outliers[1]:
            n_clusters, n_small = n_cut, 0
        return _Answer(
            n_outliers,
            n_outliers + n_small,
            n_cut,
            n_clusters,
            numbers,
            ranking.is_clear,
            pairs,
            {k: each.objective for k, each in fusions.items()},
        )

    @property
    def _numbers(self) -> range:
        """The numbers of clusters that are tried."""
        smallest, largest = self.limits.clusters
        return range(max(smallest - 1, 2), largest + _MORE_CLUSTERS + 1)

    def _n_kept(self, n_outliers: int) -> int:
        return self.n_searched - self._scale(n_outliers)

    def _scale(self, n_outliers: int) -> int:
        """Return how many of the rows that are searched are outliers."""
        return round(n_outliers * self.n_searched / self.n_samples)

    def _fuse(self, n_outliers: int) -> dict[int, Fusion]:
        settings = FusionSettings(
            self.limits.clusters[1],
            self._scale(n_outliers),
            "linkage",
            N_STARTS,
            _SEARCH_ITERATIONS,
            self.partitions,
        )
        return sweep_clusters(
            self.codes,
            CodeLength(_SEARCH_EPS),
            settings,
            self._numbers,
            self.rng,
            self.threads,
            cost_offsets=self.position,
        )

    def _compare(self, fusion: Fusion, n_clusters: int) -> Pairs:
        gone = np.bincount(
            self.codes.inverse[fusion.outliers], minlength=len(self.codes.rows)
        )
        kept = self.codes.counts - gone
        return compare_pairs(
            self.codes, fusion.code_labels, kept, n_clusters, self.partitions
        )


def _conclude(answers: list[_Answer], gaps: Gaps, search: _Search) -> Selection:
    """Choose among the numbers of outliers, and say why."""
    best = answers[0]
    for other in answers[1:]:
        if _finds_more(other, best, search.n_samples):
            best = other
    others = [each for each in answers if each is not best]
    runner_up = None
    if others:
        runner_up = (others[0].n_clusters, others[0].n_outliers)
    elif len(best.numbers) > 1:
        runner_up = (best.numbers[1], best.n_asked)
    return Selection(
        best.n_clusters,
        best.n_outliers,
        runner_up,
        _explain(best, gaps, runner_up, search),
        _list_candidates(answers, best, gaps),
        *gaps.thin(_MAX_GAPS),
        gaps.threshold,
        search.n_searched,
    )


def _finds_more(other: _Answer, best: _Answer, n_samples: int) -> bool:
    """Return whether fewer outliers make more clusters of a fair size."""
    n_more = other.n_clusters - best.n_clusters
    n_between = best.n_outliers - other.n_outliers
    if n_more <= 0 or n_between <= 0 or not other.is_clear:
        return False
    typical = (n_samples - best.n_outliers) / best.n_clusters
    return n_between >= _FAIR_SIZE * typical * n_more


def _list_candidates(
    answers: Iterable[_Answer], best: _Answer, gaps: Gaps
) -> dict[str, np.ndarray]:
    """Return the columns of the table of candidates."""
    unknown = Pairs(np.nan, np.nan, np.full(1, np.nan))
    rows = [
        (
            k,
            answer.n_asked,
            pairs.grade,
            pairs.mixed,
            float(pairs.sizes.min()),
            float(gaps.widths[answer.n_asked]),
            answer.objectives.get(k, np.nan),
            answer is best and k == answer.n_cut,
        )
        for answer in answers
        for k, pairs in sorted((answer.pairs or {answer.n_cut: unknown}).items())
    ]
    names = (
        "n_clusters",
        "n_outliers",
        "told",
        "mixed",
        "smallest",
        "gap",
        "objective",
        "is_chosen",
    )
    return dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))


def _explain(
    best: _Answer, gaps: Gaps, runner_up: tuple[int, int] | None, search: _Search
) -> str:
    sentences = [_explain_clusters(best), _explain_outliers(best, gaps)]
    if best.n_outliers > best.n_asked:
        sentences.append(
            f"{best.n_outliers - best.n_asked} rows are in groups too small for a "
            "cluster and count as outliers."
        )
    if runner_up is not None:
        sentences.append(
            f"The runner-up is {_count(runner_up[0], 'cluster')} and "
            f"{_count(runner_up[1], 'outlier')}."
        )
    if search.n_searched < search.n_samples:
        sentences.append(
            f"Clusters were searched in {search.n_searched:,} random rows of "
            f"{search.n_samples:,}; outliers in all."
        )
    return " ".join(sentences)


def _explain_clusters(best: _Answer) -> str:
    k = best.n_cut
    here = best.pairs.get(k)
    after = [each.grade for more, each in best.pairs.items() if more > k]
    chosen = _count(k, "group" if best.n_clusters < k else "cluster")
    if here is None:
        return f"{chosen}, because that was asked for."
    told = (
        "All rows are one crowd"
        if k == 1
        else f"Any two of {chosen} are told apart to {here.told:.0%} or more"
    )
    if not after:
        return told + "."
    if max(after) <= 0:
        return f"{told}, and of more, some would be empty."
    return f"{told}, while of more, two would be told apart to {max(after):.0%} only."


def _explain_outliers(best: _Answer, gaps: Gaps) -> str:
    o = best.n_asked
    if o and gaps.widths[o] > gaps.threshold:
        return (
            f"Below the {_count(o, 'strangest row')} is a gap {gaps.widths[o]:.0f} "
            f"times as wide as expected; {gaps.threshold:.0f} is a sign of outliers."
        )
    if o:
        return f"{_count(o, 'row')} set aside, as asked; no gap is a sign of outliers."
    if not gaps.widths.any():
        return "No outliers: there are no gaps between the strangest rows."
    return (
        f"No gap between the strangest rows is a sign of outliers: the widest is "
        f"{gaps.widths.max():.1f} times as wide as expected, and "
        f"{gaps.threshold:.0f} would be a sign."
    )


def _count(n: int, noun: str) -> str:
    return f"{n:,} {noun}" + ("" if n == 1 else "s")
