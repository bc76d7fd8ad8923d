"""The distances between a code and a centre; one small class per formula."""

from typing import Protocol

import numpy as np

from corral._codes import CodeBook

# Costs are whole multiples of this, so that adding up a row of them is exact in any
# order: what a code costs does not depend on the order of the partitions.
COST_STEP = 2.0**-32


class Divergence(Protocol):
    """A distance that splits over partitions and is minimised by the mean."""

    def cost_table(self, centers: np.ndarray, book: CodeBook) -> np.ndarray:
        """Return what each slot costs in each cluster.

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

    def cost_table(self, centers: np.ndarray, book: CodeBook) -> np.ndarray:
        """Return what each slot costs in each cluster; see Divergence."""
        p = np.clip(centers, self.eps, 1 - self.eps)
        log_p, log_not_p = np.log(p), np.log1p(-p)
        # A label that nobody had (p = 0) adds nothing to what the others cost.
        log_not_p[:, ~book.is_label] = 0
        all_others = np.add.reduceat(log_not_p, book.offsets, axis=1)
        table = log_not_p - log_p - all_others[:, book.partition_of_slot]
        table[:, book.is_missing] = 0
        return np.rint(table.T / COST_STEP) * COST_STEP
