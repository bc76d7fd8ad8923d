"""K-means with one cluster too many: the smallest one is the outlier set."""

from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize
from threadpoolctl import threadpool_limits

from corral._sklearn_compat import Interval, StrOptions, _fit_context
from corral._threads import contain_sklearn, use_threads
from corral._tiles import RowSpace, level_rows
from corral.rivals._base import JointClusterer
from corral.rivals._sweeps import (
    Points,
    find_ends,
    fit_space,
    recover_centers,
    recover_costs,
)


class KMeansPlusOne(JointClusterer):
    r"""K-means with ``n_clusters + 1`` clusters, the smallest of which is the outliers.

    The plainest way to get clusters and outliers at once, which serves as a baseline.
    The number of outliers cannot be asked for; it is the size of the smallest cluster.

    With :math:`c_0, \dots, c_K` the centres of scikit-learn's K-means and
    :math:`c_s` that of the cluster with the fewest rows, the score of a row is

    .. math::

        \min_{k \neq s} \|x - c_k\|^2 - \|x - c_s\|^2

    and a row is an outlier if it is positive: if the row is nearer to :math:`c_s` than
    to all others.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters K; one more is made.

    metric : {"euclidean", "cosine"}, default="euclidean"
        For "cosine" rows are divided by their norms before K-means, so that squared
        distances between rows are ``2 - 2 cos``. The centres are means of unit rows,
        not of unit length themselves. A row of zeros stays as it is.

    init : {"k-means++", "random"}, default="k-means++"
        How K-means starts.

    n_init : int or "auto", default="auto"
        Number of restarts. The one with the lowest inertia is kept. "auto" means 10 for
        ``init="random"`` and 1 otherwise.

    max_iter : int, default=300
        Largest number of iterations of a run.

    tol : float, default=1e-4
        Tolerance of K-means.

    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, -1 for the outliers.
    nearest_labels_ : ndarray of shape (n_samples,)
        Nearest cluster of each row, of outliers too.
    outlier_scores_ : ndarray of shape (n_samples,)
        Squared distance to the nearest centre less that to the centre of the outliers;
        higher is stranger, and positive means outlier.
    offset_ : float
        Rows with ``score_samples`` below it are outliers: 0.
    n_outliers_ : int
        Number of outliers that fell out.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Centres of the clusters, in the order of K-means.
    outlier_center_ : ndarray of shape (n_features,)
        Centre of the smallest cluster.
    inertia_ : float
        Sum of squared distances of all rows to their centres, times their weights.
    n_iter_ : int
        Number of iterations of the best run.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features of X, if it was a data frame with names.

    See Also
    --------
    KMeansMinusMinus : Sets aside as many rows as asked for.
    sklearn.cluster.KMeans : What is run inside.

    Notes
    -----
    *Cost.* That of one K-means with ``n_clusters + 1`` clusters, and a copy of X.

    *Ties.* Of equally small clusters, the one with the first row is the outlier set. A
    row as near to a cluster as to the outliers is no outlier.

    *Duplicates.* Where X has fewer distinct rows than clusters, K-means warns and
    leaves clusters without rows; one of these is the smallest, and there are no
    outliers.

    *Weights.* ``sample_weight`` counts in the centres; the smallest cluster is the one
    with the fewest rows, whatever they weigh.

    References
    ----------
    .. [1] H. Liu, J. Li, Y. Wu and Y. Fu, "Clustering with Outlier Removal", IEEE
       Transactions on Knowledge and Data Engineering 33(6), 2021, where it is the
       baseline "K-means". https://doi.org/10.1109/TKDE.2019.2954317

    Examples
    --------
    >>> import numpy as np
    >>> from corral.rivals import KMeansPlusOne
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (50, 2)), rng.normal(9, 1, (50, 2))])
    >>> X[[3, 77]] = [[30.0, -20.0], [31.0, -21.0]]
    >>> model = KMeansPlusOne(2, random_state=0).fit(X)
    >>> np.flatnonzero(model.labels_ == -1)
    array([ 3, 77])
    >>> model.predict([[0.5, 0.5], [30.0, -22.0]]) == model.labels_[[0, 3]]
    array([ True,  True])
    """

    # Set by fit: the space of the rows, and all centres there, the outliers' last.
    _space: RowSpace
    _centers: np.ndarray

    # There is no number of outliers to ask for.
    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "metric": [StrOptions({"euclidean", "cosine"})],
        "init": [StrOptions({"k-means++", "random"})],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        metric="euclidean",
        init="k-means++",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.metric = metric
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Find clusters and outliers.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Here because scikit-learn passes it.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts in the centres.

        Returns
        -------
        self : KMeansPlusOne
            The fitted estimator.
        """
        rows = self._scale(self._read(X, reset=True))
        if rows.shape[0] <= self.n_clusters:
            raise ValueError(
                f"n_samples={rows.shape[0]} should be larger than "
                f"n_clusters={self.n_clusters}: there is one more cluster for the "
                "outliers. Lower n_clusters."
            )
        self._space = fit_space("euclidean", rows, find_ends(rows))
        kmeans = self._fit_kmeans(self._space.place(rows), sample_weight)
        smallest = _find_smallest(kmeans.labels_, self.n_clusters + 1)
        centers = np.delete(kmeans.cluster_centers_, smallest, axis=0)
        outliers = kmeans.cluster_centers_[[smallest]]
        self._centers = np.concatenate([centers, outliers], dtype=np.float64)
        self.cluster_centers_ = recover_centers(self._space, centers)
        self.outlier_center_ = recover_centers(self._space, outliers[0])
        self.inertia_ = recover_costs(self._space, float(kmeans.inertia_))
        self.n_iter_ = kmeans.n_iter_
        self._set_labels(self._compare(rows))
        return self

    def _fit_kmeans(self, rows, sample_weight) -> KMeans:
        kmeans = KMeans(
            self.n_clusters + 1,
            init=self.init,
            n_init=self.n_init,
            max_iter=self.max_iter,
            tol=self.tol,
            random_state=self.random_state,
            # The points are a copy already.
            copy_x=False,
        )
        # Its threads would add up rows in the order in which they come to an end.
        with contain_sklearn(), threadpool_limits(1, user_api="openmp"):
            return kmeans.fit(rows, sample_weight=sample_weight)

    def _scale(self, X):
        return normalize(level_rows(X)) if self.metric == "cosine" else X

    def _costs(self, X) -> np.ndarray:
        return self._compare(self._scale(X))

    def _compare(self, rows) -> np.ndarray:
        """Return the squared distances to the centres less that to the outliers'."""
        with use_threads(None) as threads:
            points = Points(rows, self._space, self.n_clusters + 1, threads)
            costs = points.all_costs(points.pack(self._centers))
        # Of new rows that are too far away, both may be infinite; these are refused.
        with np.errstate(invalid="ignore"):
            differences = costs[:, :-1] - costs[:, -1:]
        return recover_costs(self._space, differences)

    def _set_labels(self, costs: np.ndarray) -> None:
        self.nearest_labels_ = costs.argmin(axis=1).astype(np.int32)
        self.outlier_scores_ = costs.min(axis=1)
        self.offset_ = 0.0
        self.labels_ = self.nearest_labels_.copy()
        self.labels_[self.outlier_scores_ > 0] = -1
        self.n_outliers_ = int(np.count_nonzero(self.labels_ == -1))


def _find_smallest(labels: np.ndarray, n_clusters: int) -> int:
    """Return the cluster with the fewest rows, of several the one with the first row.

    Not the one with the lowest label: rounding may change the order in which K-means
    finds the same clusters.
    """
    sizes = np.bincount(labels, minlength=n_clusters)
    firsts = np.full(n_clusters, len(labels))
    np.minimum.at(firsts, labels, np.arange(len(labels)))
    return int(np.lexsort((firsts, sizes))[0])
