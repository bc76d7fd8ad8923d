"""The distances between a code and a centre; one small class per formula."""

from typing import Protocol

import numpy as np

from corral._codes import CodeBook

# Costs are whole multiples of this, so that adding up a row of them is exact in any
# order: what a code costs does not depend on the order of the partitions.
COST_STEP = 2.0**-32

# What it costs to say which cluster, against saying which label; see CodeLength.
_CLUSTER_WEIGHT = 0.5


def round_costs(costs: np.ndarray) -> np.ndarray:
    """Return costs as whole multiples of the step of all costs."""
    return np.rint(costs / COST_STEP) * COST_STEP


class Divergence(Protocol):
    """A distance that splits over partitions and is minimised by the mean."""

    def cost_table(
        self, centers: np.ndarray, book: CodeBook, shares: np.ndarray | None = None
    ) -> np.ndarray:
        """Return what each slot costs in each cluster.

        Parameters
        ----------
        centers : ndarray of shape (n_clusters, n_slots)
            Share of each label among the cluster's samples whose label is known.
        book : CodeBook
        shares : ndarray of shape (n_clusters,) or None
            Share of each cluster in the samples that are kept; None: all the same.

        Returns
        -------
        table : ndarray of shape (n_slots, n_clusters)
            The cost of a code is the sum of the rows of its slots.
        """


class BernoulliKL:
    r"""Distance of Theorem 2: :math:`f(b, m) + f(\tilde b, \tilde m)`.

    .. math::

        \sum_{i=1}^{r} \sum_{j=1}^{K_i} D_{KL}(b_{ij} \| m_{ij})
        + D_{KL}(1 - b_{ij} \| 1 - m_{ij})
        = \sum_{ij} -b_{ij} \log p_{ij} - (1 - b_{ij}) \log (1 - p_{ij})

    with :math:`p = m` clipped to :math:`[\varepsilon, 1 - \varepsilon]`. A row has one
    1 per partition, so label j of partition i costs
    :math:`\log(1 - p_{ij}) - \log p_{ij} - \sum_{j'} \log(1 - p_{ij'})`: one number,
    looked up in a table.

    Differs from the paper: it leaves open what :math:`\log 0` is. Clipping, unlike
    adding :math:`\varepsilon` inside the logarithm, keeps the clipped mean the exact
    minimiser, so the objective never rises whatever :math:`\varepsilon` is.

    Parameters
    ----------
    eps : float
        Smallest probability; at least the machine epsilon 2.2e-16.
    """

    def __init__(self, eps: float) -> None:
        self.eps = eps

    def cost_table(
        self, centers: np.ndarray, book: CodeBook, shares: np.ndarray | None = None
    ) -> np.ndarray:
        """Return what each slot costs in each cluster; see Divergence."""
        p = np.clip(centers, self.eps, 1 - self.eps)
        log_p, log_not_p = np.log(p), np.log1p(-p)
        # A label that nobody had (p = 0) adds nothing to what the others cost.
        log_not_p[:, ~book.is_label] = 0
        all_others = np.add.reduceat(log_not_p, book.offsets, axis=1)
        table = log_not_p - log_p - all_others[:, book.partition_of_slot]
        table[:, book.is_missing] = 0
        return round_costs(table.T)


class CodeLength:
    r"""Nats to say which label a row has, given its cluster, and which cluster.

    .. math::

        \sum_{i=1}^{r} \left( -\log q_{k,ij} - \lambda \log \pi_k \right)

    where j is the row's label in partition i, :math:`\pi_k` the share of cluster k and
    :math:`q_k` its shares of labels, none below :math:`\varepsilon / K_i`.

    At the best q and :math:`\pi`, a partition costs :math:`H(L) - I + \lambda H(C)`
    with the entropies H of its labels L and of the clusters C, and their mutual
    information I. Two clusters are worth telling apart where :math:`I > \lambda H(C)`:
    where a label answers at least the part :math:`\lambda` of the question "which
    cluster?", here half of it. The paper's distance has no such term
    (:math:`\lambda = 0`). It prefers clusters of the same size, and finds rows of large
    clusters stranger than rows of small ones.

    The shares q are the means of the cluster's rows, with small ones raised to the
    floor and the others lowered in proportion. That is the exact minimiser under the
    floor, as the means are without one, so K-means-- never raises the objective.

    Parameters
    ----------
    eps : float
        Larger values forgive single labels that disagree.
    """

    def __init__(self, eps: float) -> None:
        self.eps = eps

    def cost_table(
        self, centers: np.ndarray, book: CodeBook, shares: np.ndarray | None = None
    ) -> np.ndarray:
        """Return what each slot costs in each cluster; see Divergence."""
        if shares is None:
            shares = np.full(len(centers), 1 / len(centers))
        floor = (self.eps / np.maximum(book.n_labels, 1))[book.partition_of_slot]
        table = -np.log(raise_to_floor(centers, floor, book))
        shares = np.maximum(shares, np.finfo(np.float64).tiny)
        table -= _CLUSTER_WEIGHT * np.log(shares)[:, None]
        table[:, book.is_missing] = 0
        return round_costs(table.T)


def raise_to_floor(
    centers: np.ndarray, floor: np.ndarray, book: CodeBook
) -> np.ndarray:
    """Return shares of labels of which none is below its floor.

    Those below are raised to it, and the others of the partition lowered in
    proportion, until the labels of a partition add up to one again.

    Parameters
    ----------
    centers : ndarray of shape (n_clusters, n_slots)
    floor : ndarray of shape (n_slots,)
    book : CodeBook

    Returns
    -------
    shares : ndarray of shape (n_clusters, n_slots)
        Slots that are no label have the floor.
    """
    low = (centers <= floor) | ~book.is_label
    while True:
        raised = np.where(low & book.is_label, floor, 0.0)
        left = 1 - np.add.reduceat(raised, book.offsets, axis=1)
        rest = np.add.reduceat(np.where(low, 0, centers), book.offsets, axis=1)
        ratio = np.divide(left, rest, out=np.ones_like(rest), where=rest > 0)
        shares = np.where(low, floor, centers * ratio[:, book.partition_of_slot])
        now_low = low | (shares < floor)
        if np.array_equal(now_low, low):
            return shares
        low = now_low
