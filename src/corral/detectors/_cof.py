"""COF: how long the chain to the neighbours is, compared with the neighbours' own."""

from typing import ClassVar

import numpy as np

from corral._sklearn_compat import StrOptions
from corral.detectors._neighbors import (
    METRICS,
    NeighborDetector,
    Neighborhoods,
    divide,
    find_typical,
)


class COF(NeighborDetector):
    r"""Connectivity-based outlier factor.

    A row is strange if the chain that connects it with its nearest neighbours has
    longer links, early on, than the chains of these neighbours. Rows on a line or in
    another thin pattern are not strange, where a density would call them so.

    The chain starts at the row :math:`p` and adds, :math:`k` times, the neighbour that
    is nearest to any row of the chain, by a link of length :math:`e_i`. Early links
    weigh most in the average chaining distance:

    .. math::

        \mathrm{ac}(p) = \sum_{i=1}^{k} \frac{2 (k + 1 - i)}{k (k + 1)} \, e_i,
        \qquad
        \mathrm{COF}(p) = \frac{k \, \mathrm{ac}(p)}{\sum_{o \in N_k(p)} \mathrm{ac}(o)}

    Parameters
    ----------
    n_neighbors : int, default=20
        Number of neighbours :math:`k`, as in scikit-learn's ``LocalOutlierFactor``;
        the experiments of [2]_ use 50. With ``n_samples`` or more, all other rows are
        used, with a warning.
    n_outliers : int, default=None
        Number of outliers. Excludes ``contamination``.
    contamination : float, default=None
        Share of outliers, at most 0.5. 0.05 if both are None.
    metric : {"euclidean", "manhattan", "cosine"}, default="euclidean"
        Distance between rows.
    n_jobs : int, default=None
        Number of threads. None means as many as BLAS may use here, -1 all cores.

    Attributes
    ----------
    outlier_scores_ : ndarray of shape (n_samples,)
        COF of each row; near 1 for ordinary rows, higher is stranger.
    labels_ : ndarray of shape (n_samples,)
        -1 for the ``n_outliers_`` strangest rows, +1 for the others.
    n_outliers_ : int
        Number of outliers.
    offset_ : float
        Rows with ``score_samples`` below it are outliers.
    n_neighbors_ : int
        Number of neighbours in use.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features, if X is a data frame with names.

    See Also
    --------
    LOF : Compares densities.
    LDOF : Compares distances.

    Notes
    -----
    After the search for neighbours, the time is in proportion to
    ``n_samples * n_neighbors**2 * n_features`` and the memory to
    ``n_samples * n_neighbors``; the distances between neighbours are held for a few
    rows at a time.

    Of rows at equal distance, the first ones are neighbours, and of links of equal
    length, the one to the nearer neighbour is taken. Differs from the paper: there,
    all rows at the distance of the last neighbour are neighbours.

    Rows that are equal are neighbours at distance zero and get the same score. Where
    a row and its neighbours have chains of length zero, COF is 1. Where only the
    neighbours have, it is the chaining distance divided by the rounding error of the
    median one: a large number, but finite. Constant columns and the scale of X change
    nothing. Sparse rows are searched by brute force and give the same scores.

    For "cosine", rows that are parallel up to rounding are at distance zero, and so
    are two rows of zeros; a row of zeros is at distance 1 from all others.

    A row passed to ``predict`` that is equal to a row of the fit gets the score of
    that row. Any other is compared with its nearest rows of the fit.

    References
    ----------
    .. [1] J. Tang, Z. Chen, A. W. Fu and D. W. Cheung, "Enhancing Effectiveness of
       Outlier Detections for Low Density Patterns", PAKDD 2002, pp. 535-548.
       https://doi.org/10.1007/3-540-47887-6_53
    .. [2] H. Liu, J. Li, Y. Wu and Y. Fu, "Clustering with Outlier Removal", IEEE
       Transactions on Knowledge and Data Engineering 33(6), 2021.
       https://doi.org/10.1109/TKDE.2019.2954317

    Examples
    --------
    >>> import numpy as np
    >>> from corral.detectors import COF
    >>> line = np.column_stack([np.arange(30.0), np.zeros(30)])
    >>> X = np.vstack([line, [[15.0, 4.0]]])
    >>> detector = COF(n_neighbors=5, n_outliers=1).fit(X)
    >>> np.flatnonzero(detector.labels_ == -1)
    array([30])
    >>> detector.outlier_scores_[[10, 30]].round(2)
    array([1., 2.])
    """

    _parameter_constraints: ClassVar[dict] = {
        **NeighborDetector._parameter_constraints,
        "metric": [StrOptions(set(METRICS))],
    }

    def __init__(
        self,
        n_neighbors=20,
        *,
        n_outliers=None,
        contamination=None,
        metric="euclidean",
        n_jobs=None,
    ):
        self.n_neighbors = n_neighbors
        self.n_outliers = n_outliers
        self.contamination = contamination
        self.metric = metric
        self.n_jobs = n_jobs

    def _get_metric(self) -> str:
        return self.metric

    def _fit_neighborhoods(self, found: Neighborhoods) -> np.ndarray:
        self._chaining = self._neighbors.map_blocks(self._chain, found)
        self._typical = find_typical(self._chaining)
        return self._compare(self._chaining, found)

    def _score_neighborhoods(self, X, found: Neighborhoods) -> np.ndarray:
        return self._compare(self._neighbors.map_blocks(self._chain, found, X), found)

    def _chain(self, rows, near: np.ndarray, distances: np.ndarray) -> np.ndarray:
        return chain_sweep(distances.copy(), self._neighbors.between(near))

    def _compare(self, chaining: np.ndarray, found: Neighborhoods) -> np.ndarray:
        places = self._neighbors.book.inverse[found.indices]
        of_neighbors = self._chaining[places].mean(axis=1)
        return divide(chaining, of_neighbors, self._typical)


def chain_sweep(nearest: np.ndarray, between: np.ndarray) -> np.ndarray:
    """Return the average chaining distances of a block of rows.

    Parameters
    ----------
    nearest : ndarray of shape (n_rows, n_neighbors)
        Distance of each neighbour to the chain, which is the row at first. Overwritten.
    between : ndarray of shape (n_rows, n_neighbors, n_neighbors)
        Distances between the neighbours.

    Returns
    -------
    chaining : ndarray of shape (n_rows,)
    """
    n_rows, k = nearest.shape
    starts = np.arange(0, n_rows * k, k)
    chaining = np.zeros(n_rows)
    # Flat views, as taking whole rows by one index is faster than by two.
    flat_nearest, flat_between = nearest.reshape(-1), between.reshape(-1, k)
    # 0 for neighbours that are left, infinite for those in the chain.
    bar = np.zeros((n_rows, k))
    flat_bar = bar.reshape(-1)
    reached = np.empty((n_rows, k))
    for i in range(1, k + 1):
        # argmin takes the first of equals: the nearer neighbour.
        link = nearest.argmin(axis=1) + starts
        chaining += 2 * (k + 1 - i) / (k * (k + 1)) * flat_nearest[link]
        flat_bar[link] = np.inf
        np.take(flat_between, link, axis=0, out=reached, mode="clip")
        np.minimum(nearest, reached, out=nearest)
        np.maximum(nearest, bar, out=nearest)
    return chaining
