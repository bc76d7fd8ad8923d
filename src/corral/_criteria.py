"""What tells the number of outliers and of clusters: gaps and pairs told apart."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from corral._codes import Codes

# The spacings below a gap that say how wide gaps are: this share of the rows, and
# never fewer than so many.
_WINDOW_SHARE = 0.15
_MIN_WINDOW = 30

# How often a gap is taken for a sign of outliers where the costs end in an exponential
# tail.
_LEVEL = 0.01

# Costs that differ by less than this part of their range are equal: sums of floats.
_EQUAL_COSTS = 1e-9

# Two clusters should be told apart to this share at least.
_MIN_TOLD = 0.88

# One cluster more has to lose so much of it to be clearly too many. Long shapes lose it
# little by little, as hardly a cell lies across a cut; there the relative loss decides,
# in which nothing and this much are alike.
_CLEAR_LOSS = 0.1
_NO_LOSS = 0.002


@dataclass(frozen=True)
class Gaps:
    """How wide the gap below each of the costliest rows is.

    Attributes
    ----------
    widths : ndarray of shape (max_outliers + 1,)
        At o, the gap between the o costliest rows and the others, in units of what is
        expected from the gaps below. Zero where rows are tied.
    threshold : float
        Wider gaps are signs of outliers.
    """

    widths: np.ndarray
    threshold: float

    def list_candidates(self, n_candidates: int, least: int = 0) -> list[int]:
        """Return the numbers of outliers with the widest gaps, the widest first.

        Parameters
        ----------
        n_candidates : int
        least : int, default=0
            If outliers are sure to be there, so many of them, the widest gap is taken
            even if it is no sign.

        Returns
        -------
        candidates : list of int
            Empty if no gap is a sign.
        """
        widths = self.widths.copy()
        widths[:least] = 0
        order = np.argsort(-widths, kind="stable")
        wide = [int(o) for o in order if widths[o] > self.threshold]
        if not wide and least:
            return [max(int(order[0]), least)]
        # Of gaps that are close to each other the widest counts.
        chosen: list[int] = []
        for o in wide:
            if all(abs(o - other) > max(3, 0.1 * other) for other in chosen):
                chosen.append(o)
        return chosen[:n_candidates]

    def thin(self, n_gaps: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the widest gaps among their neighbours, to be shown.

        Parameters
        ----------
        n_gaps : int
            About so many at most.

        Returns
        -------
        numbers, widths : ndarray of shape (n_gaps,)
        """
        n_all = len(self.widths) - 1
        if n_all <= n_gaps:
            numbers = np.arange(1, n_all + 1)
            return numbers, self.widths[1:]
        starts = np.unique(np.geomspace(1, n_all, n_gaps).astype(int))
        ends = [*starts[1:], n_all + 1]
        numbers = np.array(
            [
                start + int(self.widths[start:end].argmax())
                for start, end in zip(starts, ends, strict=True)
            ]
        )
        return numbers, self.widths[numbers]


def measure_gaps(costs: np.ndarray, max_outliers: int) -> Gaps:
    r"""Measure the gaps between the costliest rows.

    Let :math:`s_1 \ge s_2 \ge \dots` be the costs. If they end in an exponential tail,
    the normalised spacings :math:`c_i = i (s_i - s_{i+1})` are independent and
    exponential with the same mean (Renyi's representation), and

    .. math:: T_o = \frac{c_o}{\frac{1}{w} \sum_{i=1}^{w} c_{o+i}}

    has an F distribution with 2 and 2w degrees of freedom:
    :math:`P(T_o > t) = (1 + t / w)^{-w}`. The threshold is the t that the widest of
    m gaps exceeds with a probability of at most :math:`\alpha`:
    :math:`t = w ((m / \alpha)^{1 / w} - 1)`.

    Parameters
    ----------
    costs : ndarray of shape (n_samples,)
    max_outliers : int
        Gaps are measured for so many outliers at most.

    Returns
    -------
    gaps : Gaps
    """
    n_samples = len(costs)
    step = _EQUAL_COSTS * float(np.ptp(costs)) or 1.0
    # Equal rows are one: their spacings of zero would make all others wide.
    values, counts = np.unique(np.rint(costs / step), return_counts=True)
    values, counts = values[::-1] * step, counts[::-1]
    ranks = np.arange(1, len(values))
    spacings = ranks * -np.diff(values)
    window = max(_MIN_WINDOW, int(_WINDOW_SHARE * len(values)))
    sums = np.concatenate([[0.0], np.cumsum(spacings)])
    ends = np.minimum(ranks + window, len(spacings))
    used = ends - ranks
    ratios = np.zeros(len(ranks))
    with np.errstate(divide="ignore", invalid="ignore"):
        means = (sums[ends] - sums[ranks]) / used
        np.divide(spacings, means, out=ratios, where=(used >= _MIN_WINDOW // 2))
    ratios[~np.isfinite(ratios)] = 0
    widths = np.zeros(max_outliers + 1)
    n_above = np.cumsum(counts)[:-1]
    fits = n_above <= min(max_outliers, n_samples - 1)
    widths[n_above[fits]] = ratios[fits]
    n_gaps = max(int(np.count_nonzero(fits)), 1)
    threshold = window * ((n_gaps / _LEVEL) ** (1 / window) - 1)
    return Gaps(widths, float(threshold))


@dataclass(frozen=True)
class Pairs:
    """How well clusters are told apart, two by two.

    Attributes
    ----------
    told : float
        Share of the question "which of these two clusters?" that a fine partition
        answers, of the two clusters where it is least.
    mixed : float
        Mean share of the lesser of two clusters in a cell, added up over the cells, of
        the two clusters where it is largest: how many cells lie across their border.
    sizes : ndarray of shape (n_clusters,)
    """

    told: float
    mixed: float
    sizes: np.ndarray

    @property
    def is_full(self) -> bool:
        """Whether no cluster is empty."""
        return bool((self.sizes != 0).all())

    @property
    def grade(self) -> float:
        """What ``told`` counts: nothing if a cluster is empty."""
        return self.told if self.is_full else 0.0


def compare_pairs(
    codes: Codes,
    code_labels: np.ndarray,
    kept: np.ndarray,
    n_clusters: int,
    partitions: range,
) -> Pairs:
    r"""Measure how well the fine partitions tell two clusters apart.

    For clusters a and b with :math:`n_{a,c}` and :math:`n_{b,c}` rows in cell c of
    partition i,

    .. math::

        q_{ab} = 1 - \frac{1}{r} \sum_i \frac{H(C \mid L_i)}{H(C)}

    among the rows of the two clusters only. The finer half of the partitions counts.

    Parameters
    ----------
    codes : Codes
    code_labels : ndarray of shape (n_codes,)
    kept : ndarray of shape (n_codes,)
        How many rows of each code were kept.
    n_clusters : int
    partitions : range
        The fine ones.

    Returns
    -------
    pairs : Pairs
    """
    labels = code_labels.astype(np.intp)
    sizes = np.bincount(labels, kept, minlength=n_clusters)
    n_labels = codes.book.n_labels
    middle = np.median(n_labels[list(partitions)])
    finest = [j for j in partitions if n_labels[j] >= middle]
    untold = np.zeros((n_clusters, n_clusters))
    mixed = np.zeros_like(untold)
    for j in finest:
        n_slots = n_labels[j] + 2
        places = labels * n_slots + codes.rows[:, j]
        joint = np.bincount(places, kept, minlength=n_clusters * n_slots)
        joint = joint.reshape(n_clusters, n_slots)[:, :-1]
        here, there = joint[:, None, :], joint[None, :, :]
        untold += _binary_entropy(here, there).sum(axis=2)
        both = np.maximum(here + there, 1e-300)
        mixed += (np.minimum(here, there) / both).sum(axis=2)
    pairs = np.triu_indices(n_clusters, 1)
    asked = _binary_entropy(sizes[:, None], sizes[None, :])[pairs]
    untold, mixed = untold[pairs] / len(finest), mixed[pairs] / len(finest)
    if not (asked > 0).any():
        return Pairs(1.0, 0.0, sizes)
    known = asked > 0
    told = 1 - np.max(untold[known] / asked[known])
    return Pairs(float(told), float(mixed.max()), sizes)


def _binary_entropy(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Return the entropy of the question "here or there?", times the number of rows."""
    both = here + there
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = [np.where(n > 0, -n * np.log(n / both), 0) for n in (here, there)]
    return terms[0] + terms[1]


class Ranking(NamedTuple):
    """Numbers of clusters.

    Attributes
    ----------
    numbers : list of int
        Those that come into question, the best first.
    is_clear : bool
        Whether one cluster more than the best is clearly too many.
    """

    numbers: list[int]
    is_clear: bool


def rank_clusters(told: dict[int, float]) -> Ranking:
    r"""Rank the numbers of clusters.

    With :math:`q_K` the least told of two of K clusters (zero if some of them are
    empty) and :math:`q_{>K}` the largest with more clusters, the best K has the largest
    loss :math:`q_K - q_{>K}`. If no loss is clear, it has the largest
    :math:`(1 - q_{>K} + \epsilon) / (1 - q_K + \epsilon)`. Either way
    :math:`q_K` has to be at least 0.88.

    Parameters
    ----------
    told : dict of int to float
        For each number of clusters.

    Returns
    -------
    ranking : Ranking
    """
    numbers = sorted(told)
    after = {
        k: max((told[more] for more in numbers if more > k), default=0.0)
        for k in numbers
    }
    # The largest number is there for comparison, unless nothing else is.
    able = [k for k in numbers[:-1] if told[k] >= _MIN_TOLD] or numbers[:1]
    losses = {k: told[k] - after[k] for k in able}
    is_clear = max(losses.values()) >= _CLEAR_LOSS
    if not is_clear:
        losses = {k: (1 - after[k] + _NO_LOSS) / (1 - told[k] + _NO_LOSS) for k in able}
    # Of equal losses, that of more clusters.
    return Ranking(sorted(able, key=lambda k: (-losses[k], -k)), is_clear)
