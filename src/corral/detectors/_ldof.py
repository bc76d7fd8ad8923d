"""LDOF: how far away the neighbours are, compared with each other."""

from numbers import Integral
from typing import ClassVar

import numpy as np

from corral._sklearn_compat import Interval, StrOptions
from corral.detectors._neighbors import (
    METRICS,
    NeighborDetector,
    Neighborhoods,
    divide,
    find_typical,
)


class LDOF(NeighborDetector):
    r"""Local distance-based outlier factor.

    A row is strange if it is farther from its nearest neighbours than these are from
    each other. With :math:`N_k(p)` the :math:`k` nearest neighbours of row :math:`p`:

    .. math::

        \mathrm{LDOF}(p) = \frac{\bar d(p)}{\bar D(p)}, \qquad
        \bar d(p) = \frac{1}{k} \sum_{q \in N_k(p)} d(p, q), \qquad
        \bar D(p) = \frac{1}{k (k - 1)} \sum_{q \ne q' \in N_k(p)} d(q, q')

    Parameters
    ----------
    n_neighbors : int, default=20
        Number of neighbours :math:`k`, at least 2. As in scikit-learn's
        ``LocalOutlierFactor``; the experiments of [2]_ use 50. With ``n_samples`` or
        more, all other rows are used, with a warning.
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
        LDOF of each row; below 1 amid the neighbours, higher is stranger.
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
    COF : Compares chains of neighbours.

    Notes
    -----
    After the search for neighbours, the time is in proportion to
    ``n_samples * n_neighbors**2 * n_features`` and the memory to
    ``n_samples * n_neighbors``; the distances between neighbours are held for a few
    rows at a time. Of rows at equal distance, the first ones are neighbours.

    Rows that are equal are neighbours at distance zero and get the same score. Where
    a row and its neighbours all coincide, LDOF is 1, as for a row that is as far from
    its neighbours as they are from each other. Where only the neighbours coincide, it
    is the mean distance divided by the rounding error of the median one: a large
    number, but finite. Constant columns and the scale of X change nothing. Sparse rows
    are searched by brute force and give the same scores. A fit needs three rows.

    For "cosine", rows that are parallel up to rounding are at distance zero, and so
    are two rows of zeros; a row of zeros is at distance 1 from all others.

    A row passed to ``predict`` that is equal to a row of the fit gets the score of
    that row. Any other is compared with its nearest rows of the fit.

    References
    ----------
    .. [1] K. Zhang, M. Hutter and H. Jin, "A New Local Distance-Based Outlier Detection
       Approach for Scattered Real-World Data", PAKDD 2009, pp. 813-822.
       https://doi.org/10.1007/978-3-642-01307-2_84
    .. [2] H. Liu, J. Li, Y. Wu and Y. Fu, "Clustering with Outlier Removal", IEEE
       Transactions on Knowledge and Data Engineering 33(6), 2021.
       https://doi.org/10.1109/TKDE.2019.2954317

    Examples
    --------
    >>> import numpy as np
    >>> from corral.detectors import LDOF
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> X[7] = [6.0, 6.0]
    >>> detector = LDOF(n_neighbors=10, n_outliers=1).fit(X)
    >>> np.flatnonzero(detector.labels_ == -1)
    array([7])
    >>> detector.predict([[0.0, 0.0], [-9.0, 5.0]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict] = {
        **NeighborDetector._parameter_constraints,
        "n_neighbors": [Interval(Integral, 2, None, closed="left")],
        "metric": [StrOptions(set(METRICS))],
    }

    # One neighbour has no distance to others.
    _fewest_neighbors = 2

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
        self._typical = find_typical(found.distances.mean(axis=1))
        return self._compare(found, self._neighbors.map_blocks(self._spread, found))

    def _score_neighborhoods(self, X, found: Neighborhoods) -> np.ndarray:
        return self._compare(found, self._neighbors.map_blocks(self._spread, found, X))

    def _spread(self, rows, near: np.ndarray, distances) -> np.ndarray:
        """Return the mean distance between two neighbours."""
        k = near.shape[1]
        return self._neighbors.between(near).sum(axis=(1, 2)) / (k * (k - 1))

    def _compare(self, found: Neighborhoods, spread: np.ndarray) -> np.ndarray:
        return divide(found.distances.mean(axis=1), spread, self._typical)
