"""Criteria for numbers of clusters: pairs told apart, empty borders, short codes."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import gammaln

from corral._codes import Codes

# Two clusters should be told apart to this share at least.
MIN_TOLD = 0.88

# One cluster more has to lose so much of it to be clearly too many. Long shapes lose it
# little by little, as hardly a cell lies across a cut; there the relative loss decides,
# in which nothing and this much are alike.
_CLEAR_LOSS = 0.1
_NO_LOSS = 0.002

# Two clusters that touch are two if their border is emptier than this, so many standard
# deviations emptier than any other place, and if they are told apart to this share.
_MIN_BORDER = 0.55
_BORDER_DEVIATIONS = 2.0
_MIN_TOUCHING = 0.8

# The border of a cluster: this share of its rows, and so many rows at least.
_BORDER_SHARE = 0.15
_BORDER_ROWS = 5

# Partitions tell much the same, so that the labels of a row count as this many; chosen
# on generated data (decision 8).
_INDEPENDENT_LABELS = 2.0


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
    partitions: Sequence[int],
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
    partitions : sequence of int
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
        joint = codes.count_jointly(labels, kept, n_clusters, j)
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


class Borders(NamedTuple):
    """How empty the borders between clusters are.

    Attributes
    ----------
    empty : float
        Mean rank of the border rows of a cluster by position, among its rows, from 0
        to 1; of the border where it is least. A half where the border is like any
        other place, less where a crowd was cut.
    deviations : float
        How many standard deviations that is above a half; of the border where it is
        least.
    """

    empty: float
    deviations: float

    @property
    def are_empty(self) -> bool:
        """Whether each border is emptier than chance makes it."""
        return self.empty >= _MIN_BORDER and self.deviations >= _BORDER_DEVIATIONS


def measure_borders(
    costs: np.ndarray, position: np.ndarray, kept: np.ndarray
) -> Borders:
    r"""Measure whether clusters have a valley between them.

    The border of cluster a towards b are the rows of a that cost least more in b than
    in a, :math:`w` of them. Their positions are ranked among the rows of a, from 0 to
    1. If the border is a place like any other, the mean rank is a half with a standard
    deviation of :math:`1 / \sqrt{12 w}`. A border through a crowd is fuller, that
    between two crowds emptier.

    Parameters
    ----------
    costs : ndarray of shape (n_samples, n_clusters)
        Of labels alone.
    position : ndarray of shape (n_samples,)
        What it costs where each row lies.
    kept : ndarray of shape (n_samples,), bool

    Returns
    -------
    borders : Borders
    """
    labels = costs.argmin(axis=1)
    empty, deviations = 1.0, np.inf
    for label in range(costs.shape[1]):
        members = np.flatnonzero(kept & (labels == label))
        if not len(members):
            return Borders(0.0, -np.inf)
        n_border = max(int(_BORDER_SHARE * len(members)), _BORDER_ROWS)
        n_border = min(n_border, len(members))
        order = position[members].argsort(kind="stable").argsort(kind="stable")
        ranks = (order + 0.5) / len(members)
        for other in range(costs.shape[1]):
            if other == label:
                continue
            margins = costs[members, other] - costs[members, label]
            # The first of rows that tie, on any machine.
            border = np.argsort(margins, kind="stable")[:n_border]
            mean = float(ranks[border].mean())
            empty = min(empty, mean)
            deviations = min(deviations, (mean - 0.5) * np.sqrt(12 * n_border))
    return Borders(empty, float(deviations))


def describe_length(
    codes: Codes,
    code_labels: np.ndarray,
    kept: np.ndarray,
    n_clusters: int,
    partitions: Sequence[int],
) -> float:
    r"""Return the mean length of the description of a row, in nats.

    A row that is kept is described by its cluster and then by :math:`\rho = 2` labels
    of an average fine partition, a row that was set aside by as many labels that are
    all equally likely:

    .. math::

        \frac{1}{n} \left( L(C) + \rho \, \overline{\sum_k L(L_i \mid C = k)}
        + o \rho \, \overline{\log K_i} + \log \binom{n}{o} \right)

    L is the length of a list of labels under a Dirichlet-multinomial with half a row
    added to each label and to any other, which also pays for the shares that it learns.

    Parameters
    ----------
    codes : Codes
    code_labels : ndarray of shape (n_codes,)
    kept : ndarray of shape (n_codes,)
        How many rows of each code were kept.
    n_clusters : int
    partitions : sequence of int
        The fine ones.

    Returns
    -------
    length : float
    """
    labels = code_labels.astype(np.intp)
    n_samples, n_kept = float(codes.counts.sum()), float(kept.sum())
    n_outliers = n_samples - n_kept
    lengths, alike = [], []
    for j in partitions:
        joint = codes.count_jointly(labels, kept, n_clusters, j)
        lengths.append(sum(map(_list_length, joint)))
        alike.append(np.log(max(codes.book.n_labels[j], 1)))
    clusters = _list_length(np.bincount(labels, kept, minlength=n_clusters))
    background = n_outliers * _INDEPENDENT_LABELS * float(np.mean(alike))
    which = gammaln(n_samples + 1) - gammaln(n_outliers + 1) - gammaln(n_kept + 1)
    total = clusters + _INDEPENDENT_LABELS * np.mean(lengths) + background + which
    return float(total / n_samples)


def _list_length(counts: np.ndarray) -> float:
    """Return the nats of a list of labels that occur so often."""
    n_labels, n_rows = len(counts), counts.sum()
    known = gammaln(n_labels / 2) - n_labels * gammaln(0.5)
    return float(gammaln(n_rows + n_labels / 2) - gammaln(counts + 0.5).sum() - known)


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
    able = [k for k in numbers[:-1] if told[k] >= MIN_TOLD] or numbers[:1]
    losses = {k: told[k] - after[k] for k in able}
    is_clear = max(losses.values()) >= _CLEAR_LOSS
    if not is_clear:
        losses = {k: (1 - after[k] + _NO_LOSS) / (1 - told[k] + _NO_LOSS) for k in able}
    # Of equal losses, that of more clusters.
    return Ranking(sorted(able, key=lambda k: (-losses[k], -k)), is_clear)


def find_touching(told: dict[int, float], borders: dict[int, Borders]) -> int | None:
    """Return the largest number of clusters that have a valley between any two.

    Parameters
    ----------
    told : dict of int to float
        For each number of clusters.
    borders : dict of int to Borders

    Returns
    -------
    n_clusters : int or None
        None if there is no such number.
    """
    able = [
        k
        for k, each in borders.items()
        if each.are_empty and told.get(k, 0.0) >= _MIN_TOUCHING
    ]
    return max(able, default=None)
