"""How many clusters, how many outliers, and why."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np

from corral._codes import Codes
from corral._cor import COR, EncodedRows
from corral._criteria import Gaps, Pairs, compare_pairs, measure_gaps, rank_clusters
from corral._divergences import CodeLength
from corral._explain import make_frame
from corral._fusion import Fusion, FusionSettings, sweep_clusters
from corral._linkage import N_STARTS
from corral._random import make_streams
from corral._threads import Threads, use_threads

# The search uses so many random rows at most, and so many iterations of a fusion.
_SEARCH_ROWS = 3000
_SEARCH_ITERATIONS = 30

# So many more clusters than asked for are tried, because the last number can only be
# judged by what comes after it.
_MORE_CLUSTERS = 2

# The numbers of outliers that are tried, and how wide their gap should be beside the
# widest.
_N_CANDIDATES = 3
_MIN_GAP_RATIO = 0.15

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
    table : data frame
        One row per candidate: ``n_clusters``, ``n_outliers``; ``told``, how well the
        two clusters that are hardest to tell apart are told apart; ``mixed``, how many
        cells lie across a border of two clusters; ``smallest``, the size of the
        smallest cluster; ``gap``, how wide the gap below the outliers is;
        ``objective``, the mean cost of a row that is kept; ``is_chosen``.
    gaps : ndarray of shape (max_outliers + 1,)
        For each number of outliers, how wide the gap is between them and the other
        rows, in units of what is expected.
    gap_threshold : float
        Wider gaps are signs of outliers.
    n_searched : int
        Number of rows that clusters were searched in; fewer than all if there are many.
    """

    n_clusters_: int
    n_outliers_: int
    runner_up: tuple[int, int] | None
    reason: str
    table: Any = field(repr=False)
    gaps: np.ndarray = field(repr=False)
    gap_threshold: float = field(repr=False)
    n_searched: int = field(repr=False)


def select(
    X,
    k_range=None,
    o_range=None,
    *,
    k_max=10,
    contamination_max=0.25,
    min_cluster_share=0.15,
    metric="euclidean",
    categorical_features=None,
    n_partitions=100,
    max_samples=8192,
    n_jobs=None,
    random_state=None,
):
    """Choose the number of clusters and of outliers.

    Partitions are made once. The number of outliers is where the gap between the
    costs of rows' positions is widest, if it is wider than chance makes it. The
    number of clusters is the largest for which the fine partitions can tell any two
    clusters apart: one cluster more cuts through a crowd.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        The rows.
    k_range : tuple of (int, int), default=None
        Smallest and largest number of clusters. None means from 1 to ``k_max``.
    o_range : tuple of (int, int), default=None
        Smallest and largest number of outliers. None means from 0 to
        ``contamination_max`` of the rows. If the smallest is not 0, outliers are sure
        to be there, and the widest gap counts, however wide.
    k_max : int, default=10
        Largest number of clusters if ``k_range`` is None.
    contamination_max : float, default=0.25
        Largest share of outliers if ``o_range`` is None.
    min_cluster_share : float, default=0.15
        A group with less than this part of the mean size of a cluster is outliers.
    metric : {"euclidean", "cosine"}, default="euclidean"
        As in :class:`COR`.
    categorical_features : array-like of int, str or bool, default=None
        As in :class:`COR`.
    n_partitions : int, default=100
        As in :class:`COR`.
    max_samples : int or None, default=8192
        As in :class:`COR`.
    n_jobs : int, default=None
        Number of threads. Results are the same for any number.
    random_state : int, RandomState instance or None, default=None
        Seed of all random choices.

    Returns
    -------
    selection : Selection
        What was chosen, the runner-up, the reason and all candidates.

    Examples
    --------
    >>> from corral import select
    >>> from corral.datasets import make_blobs_with_outliers
    >>> X, y = make_blobs_with_outliers(
    ...     300, n_clusters=4, n_outliers=12, random_state=0
    ... )
    >>> found = select(X, random_state=0)
    >>> found.n_clusters_, found.n_outliers_
    (4, 12)
    """
    limits = _read_limits(k_range, k_max)
    model = COR(
        limits[1] // 2 + 1,
        metric=metric,
        categorical_features=categorical_features,
        n_partitions=n_partitions,
        max_samples=max_samples,
        n_jobs=n_jobs,
        random_state=random_state,
    )
    model._validate_params()
    model._is_precomputed = False
    features, given = model._read(X, reset=True)
    least, most = _read_outlier_limits(o_range, contamination_max, features.n_samples)
    streams = make_streams(random_state)
    with use_threads(n_jobs) as threads:
        encoded = model._encode_rows(features, given, None, streams, threads)
        search = _Search.make(
            model, encoded, limits, min_cluster_share, streams.fusion, threads
        )
        gaps = Gaps(np.zeros(most + 1), np.inf)
        if encoded.position is not None:
            gaps = measure_gaps(encoded.position, most)
        answers = [search.answer(o) for o in _list_outliers(gaps, least, most)]
    return _conclude(answers, gaps, search, X)


def _read_limits(k_range, k_max) -> tuple[int, int]:
    if k_range is None and (not isinstance(k_max, Integral) or k_max < 1):
        raise ValueError(f"k_max={k_max} should be a whole number, 1 or more.")
    limits = (1, k_max) if k_range is None else tuple(k_range)
    if (
        len(limits) != 2
        or not all(isinstance(k, Integral) for k in limits)
        or not 1 <= limits[0] <= limits[1]
    ):
        raise ValueError(
            f"k_range={k_range} should be two whole numbers (smallest, largest), both "
            "at least 1."
        )
    return int(limits[0]), int(limits[1])


def _read_outlier_limits(o_range, contamination_max, n_samples) -> tuple[int, int]:
    if o_range is None:
        if not 0 <= contamination_max < 1:
            raise ValueError(
                f"contamination_max={contamination_max} should be at least 0 and less "
                "than 1."
            )
        return 0, int(contamination_max * n_samples)
    limits = tuple(o_range)
    if (
        len(limits) != 2
        or not all(isinstance(o, Integral) for o in limits)
        or not 0 <= limits[0] <= limits[1] < n_samples
    ):
        raise ValueError(
            f"o_range={o_range} should be two whole numbers (smallest, largest) from 0 "
            f"to less than n_samples={n_samples}."
        )
    return int(limits[0]), int(limits[1])


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
    position : ndarray of shape (n_searched,) or None
    n_samples : int
        Of all rows.
    """

    model: COR
    codes: Codes
    position: np.ndarray | None
    partitions: range
    limits: tuple[int, int]
    min_share: float
    n_samples: int
    rng: np.random.Generator
    threads: Threads

    @classmethod
    def make(
        cls,
        model: COR,
        encoded: EncodedRows,
        limits: tuple[int, int],
        min_share: float,
        rng: np.random.Generator,
        threads: Threads,
    ) -> "_Search":
        """Prepare a search in all rows, or in a random part of many."""
        codes, position = encoded.codes, encoded.position
        n_samples = len(codes.inverse)
        if n_samples > _SEARCH_ROWS:
            rows = np.sort(rng.choice(n_samples, _SEARCH_ROWS, replace=False))
            codes = codes.take(rows)
            position = None if position is None else position[rows]
        return cls(
            model,
            codes,
            position,
            model._separating(encoded.partitioner),
            limits,
            min_share,
            n_samples,
            rng,
            threads,
        )

    @property
    def n_searched(self) -> int:
        """Number of rows that are searched."""
        return len(self.codes.inverse)

    def answer(self, n_outliers: int) -> _Answer:
        """Return the best number of clusters if there are so many outliers."""
        fusions = self._fuse(n_outliers)
        pairs = {1: Pairs(1.0, 0.0, np.array([float(self._n_kept(n_outliers))]))}
        for k, fusion in fusions.items():
            pairs[k] = self._compare(fusion, k)
        # More clusters than there are codes are told apart by nothing.
        told = dict.fromkeys(self._numbers, 0.0)
        told |= {k: each.told if each.is_full else 0.0 for k, each in pairs.items()}
        smallest, largest = self.limits
        ranking = rank_clusters(told)
        numbers = [k for k in ranking.numbers if smallest <= k <= largest]
        n_cut = numbers[0] if numbers else smallest
        # Where fewer clusters were refused, small groups are welcome as clusters.
        sizes = pairs[n_cut].sizes if n_cut in pairs else np.ones(n_cut)
        is_large = sizes >= self.min_share * sizes.mean()
        n_clusters = max(int(is_large.sum()), smallest)
        scale = self.n_samples / self.n_searched
        n_small = 0
        if n_clusters < n_cut:
            n_small = round(sizes[~is_large].sum() * scale)
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
        smallest, largest = self.limits
        return range(max(smallest - 1, 2), largest + _MORE_CLUSTERS + 1)

    def _n_kept(self, n_outliers: int) -> int:
        return self.n_searched - self._scale(n_outliers)

    def _scale(self, n_outliers: int) -> int:
        """Return how many of the rows that are searched are outliers."""
        return round(n_outliers * self.n_searched / self.n_samples)

    def _fuse(self, n_outliers: int) -> dict[int, Fusion]:
        settings = FusionSettings(
            self.limits[1],
            self._scale(n_outliers),
            "linkage",
            N_STARTS,
            _SEARCH_ITERATIONS,
            self.partitions,
        )
        return sweep_clusters(
            self.codes,
            CodeLength(self.model.eps),
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


def _conclude(answers: list[_Answer], gaps: Gaps, search: _Search, X) -> Selection:
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
        _make_table(answers, best, gaps, X),
        gaps.widths,
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


def _make_table(answers: Iterable[_Answer], best: _Answer, gaps: Gaps, X):
    columns: dict[str, list] = {
        name: []
        for name in (
            "n_clusters",
            "n_outliers",
            "told",
            "mixed",
            "smallest",
            "gap",
            "objective",
            "is_chosen",
        )
    }
    for answer in answers:
        for k, pairs in sorted(answer.pairs.items()):
            columns["n_clusters"].append(k)
            columns["n_outliers"].append(answer.n_asked)
            columns["told"].append(pairs.told if pairs.is_full else 0.0)
            columns["mixed"].append(pairs.mixed)
            columns["smallest"].append(int(pairs.sizes.min()))
            columns["gap"].append(float(gaps.widths[answer.n_asked]))
            columns["objective"].append(answer.objectives.get(k, np.nan))
            columns["is_chosen"].append(answer is best and k == answer.n_cut)
    return make_frame(columns, np.empty(0))


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
    after = [
        each.told if each.is_full else 0.0
        for more, each in best.pairs.items()
        if more > k
    ]
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
