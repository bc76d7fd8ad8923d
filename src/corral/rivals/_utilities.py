"""The utility functions of KCC: how much clusters tell about a partition."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from scipy.special import xlogy

from corral._codes import CodeBook, Codes
from corral._divergences import round_costs

# The share that a label without any rows counts as, where its logarithm is taken.
_EPS = float(np.finfo(np.float64).eps)


class Utility(ABC):
    r"""How much clusters tell about a partition, by a convex function of label shares.

    With :math:`p_k` the share of cluster k in the rows, :math:`m_k` the shares of the
    partition's labels in cluster k and :math:`m` those in all rows, the utility is

    .. math::

        U(\pi, \pi_i) = \sum_k p_k \, \mu(m_k) - \mu(m)

    for a convex function :math:`\mu`. Summed over partitions it is largest where
    K-means has its smallest objective with the distance

    .. math::

        f(b, m_k) = \mu(b) - \mu(m_k) - (b - m_k)^\top \nabla \mu(m_k)

    between a one-hot row b and a centre. A utility gives both of these functions.
    """

    # The convex function of shares of which one is 1.
    value_of_code: ClassVar[float] = 1.0

    @abstractmethod
    def value(self, shares: np.ndarray, book: CodeBook) -> np.ndarray:
        """Return the convex function of label shares.

        Parameters
        ----------
        shares : ndarray of shape (n_clusters, n_slots)
        book : CodeBook

        Returns
        -------
        values : ndarray of shape (n_clusters, n_partitions)
        """

    @abstractmethod
    def distances(self, centers: np.ndarray, book: CodeBook) -> np.ndarray:
        """Return the distance of each slot to each centre.

        A label that no row of a cluster has is at the distance that the formula gives
        for a share of 0, also where the cluster knows no label of the partition.

        Parameters
        ----------
        centers : ndarray of shape (n_clusters, n_slots)
        book : CodeBook

        Returns
        -------
        distances : ndarray of shape (n_clusters, n_slots)
        """


class CategoryUtility(Utility):
    r"""U_c, category utility: the squared Euclidean distance.

    .. math::

        \mu(m) = \|m\|_2^2, \qquad
        f(b, m) = \|b - m\|_2^2 = 1 - 2 m_j + \|m\|_2^2

    where j is the label of b.
    """

    def value(self, shares: np.ndarray, book: CodeBook) -> np.ndarray:
        """Return the convex function of label shares; see Utility."""
        return np.add.reduceat(shares**2, book.offsets, axis=1)

    def distances(self, centers: np.ndarray, book: CodeBook) -> np.ndarray:
        """Return the distance of each slot to each centre; see Utility."""
        squares = self.value(centers, book)[:, book.partition_of_slot]
        return 1 - 2 * centers + squares


class EntropyUtility(Utility):
    r"""U_H, mutual information: the Kullback-Leibler divergence.

    .. math::

        \mu(m) = \sum_j m_j \log m_j = -H(m), \qquad
        f(b, m) = D_{KL}(b \| m) = -\log m_j

    where j is the label of b. A share of 0 counts as the machine epsilon 2.2e-16.
    """

    value_of_code: ClassVar[float] = 0.0

    def value(self, shares: np.ndarray, book: CodeBook) -> np.ndarray:
        """Return the convex function of label shares; see Utility."""
        return np.add.reduceat(xlogy(shares, shares), book.offsets, axis=1)

    def distances(self, centers: np.ndarray, book: CodeBook) -> np.ndarray:
        """Return the distance of each slot to each centre; see Utility."""
        return -np.log(np.maximum(centers, _EPS))


class LpUtility(Utility):
    r"""U_Lp: the distance that belongs to the Lp norm.

    .. math::

        \mu(m) = \|m\|_p, \qquad
        f(b, m) = 1 - \left(m_j / \|m\|_p\right)^{p - 1}

    where j is the label of b.

    Parameters
    ----------
    p : float
        The norm, above 1.
    """

    def __init__(self, p: float) -> None:
        self.p = p

    def value(self, shares: np.ndarray, book: CodeBook) -> np.ndarray:
        """Return the convex function of label shares; see Utility."""
        # Shares are measured by the largest, lest their powers underflow.
        largest = np.maximum.reduceat(shares, book.offsets, axis=1)
        scale = np.where(largest > 0, largest, 1)
        powers = (shares / scale[:, book.partition_of_slot]) ** self.p
        return largest * np.add.reduceat(powers, book.offsets, axis=1) ** (1 / self.p)

    def distances(self, centers: np.ndarray, book: CodeBook) -> np.ndarray:
        """Return the distance of each slot to each centre; see Utility."""
        norms = self.value(centers, book)
        norms = np.where(norms > 0, norms, 1)[:, book.partition_of_slot]
        return 1 - (centers / norms) ** (self.p - 1)


class CosineUtility(LpUtility):
    r"""U_cos: the cosine distance, which is that of the L2 norm.

    .. math::

        \mu(m) = \|m\|_2, \qquad f(b, m) = 1 - \cos(b, m) = 1 - m_j / \|m\|_2

    where j is the label of b.
    """

    def __init__(self) -> None:
        super().__init__(p=2)


class ConsensusDistance:
    r"""The distance of KCC between a code and a centre: a sum over partitions.

    .. math::

        \sum_{i=1}^{r} w_i \, f(b_i, m_{k,i})

    with the distance f of a utility, and :math:`w_i = 1`, or
    :math:`1 / |\mu(m_i)|` with the shares :math:`m_i` of the labels of partition i in
    all rows if normalized. A missing label adds nothing.

    Parameters
    ----------
    utility : Utility
    book : CodeBook
    shares : ndarray of shape (n_slots,)
        Of each label in its partition.
    known : ndarray of shape (n_partitions,)
        Share of the rows that have a label in the partition.
    normalized : bool
    """

    def __init__(
        self,
        utility: Utility,
        book: CodeBook,
        shares: np.ndarray,
        known: np.ndarray,
        *,
        normalized: bool,
    ) -> None:
        self.utility = utility
        values = utility.value(shares[None], book)[0]
        self.weights = np.ones(len(values))
        if normalized:
            # The value is 0 where a partition has one label only or none at all and so
            # tells nothing; it is left out.
            sizes = np.abs(values)
            self.weights = np.divide(
                1, sizes, out=np.zeros_like(sizes), where=sizes > 0
            )
        #: What a row costs on average where all rows are one cluster.
        self.cost_of_one_cluster = float(
            (self.weights * known) @ (utility.value_of_code - values)
        )

    def cost_table(
        self, centers: np.ndarray, book: CodeBook, shares: np.ndarray | None = None
    ) -> np.ndarray:
        """Return what each slot costs in each cluster; see Divergence.

        Parameters
        ----------
        centers : ndarray of shape (n_clusters, n_slots)
            Share of each label among the cluster's samples whose label is known.
        book : CodeBook

        Returns
        -------
        table : ndarray of shape (n_slots, n_clusters)
            The cost of a code is the sum of the rows of its slots.
        """
        table = self.utility.distances(centers, book)
        table = table * self.weights[book.partition_of_slot]
        table[:, book.is_missing] = 0
        # Whole multiples of a step, and never -0.0: see the divergence of COR.
        return round_costs(table.T) + 0.0


def share_labels(codes: Codes, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return how the rows are shared among the labels of each partition.

    Parameters
    ----------
    codes : Codes
    weights : ndarray of shape (n_codes,)

    Returns
    -------
    shares : ndarray of shape (n_slots,)
        Of each label, among the rows that have one; 0 in slots that are no label.
    known : ndarray of shape (n_partitions,)
        Share of the rows that have a label in the partition.
    """
    book = codes.book
    columns = zip(codes.rows.T, book.n_labels, strict=True)
    sums = [np.bincount(column, weights, minlength=n + 2) for column, n in columns]
    labelled = np.where(book.is_label, np.concatenate(sums), 0)
    totals = np.add.reduceat(labelled, book.offsets)
    divisors = totals[book.partition_of_slot]
    shares = np.divide(
        labelled, divisors, out=np.zeros_like(labelled), where=divisors > 0
    )
    return shares, totals / weights.sum()
