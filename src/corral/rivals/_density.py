"""DBSCAN and HDBSCAN: scikit-learn's, with the attributes of the other methods."""

from numbers import Integral, Real
from typing import ClassVar

import numpy as np
import sklearn.cluster
from scipy import sparse
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.neighbors import VALID_METRICS, BallTree, KDTree, NearestNeighbors
from sklearn.utils.validation import check_is_fitted

from corral._blocks import find_size
from corral._decision import DecisionMixin
from corral._offsets import find_offsets, shift
from corral._room import RoomMixin
from corral._row_book import RowBook
from corral._saving import SaveMixin
from corral._sklearn_compat import Interval, StrOptions, _fit_context
from corral._threads import contain_sklearn
from corral._validation import check_scores, check_squares, read_rows

# Distances between rows; matrices of distances are not rows, and the others need
# parameters that there is no place for.
_METRICS = set().union(*VALID_METRICS.values()) - {
    "precomputed",
    "mahalanobis",
    "minkowski",
    "pyfunc",
    "seuclidean",
    "wminkowski",
}

# Names that only the search for neighbours knows, not scikit-learn's DBSCAN.
_DBSCAN_METRICS = _METRICS - {"infinity", "p", "sokalmichener"}

# Distances that scikit-learn takes from products, of sparse rows and of wide ones.
_METRICS_BY_PRODUCTS = {"euclidean", "l2", "sqeuclidean"}

# Rows whose neighbours tell how many all rows have, and bytes that each takes; measured
# on 20,000 rows with 200 and 2,000 neighbours.
_N_TRIED = 100
_PAIR_BYTES = 12

# So few rows that it does not matter how many neighbours they have.
_N_FEW = 2000


class _DensityClusterer(RoomMixin, SaveMixin, ClusterMixin, BaseEstimator):
    """What both methods share: they learn how many clusters and outliers there are."""

    # Whether rows may be sparse.
    _accepts_sparse = True

    def _read(self, X, *, reset: bool):
        X = read_rows(self, X, reset=reset, accept_sparse=self._accepts_sparse)
        size = find_size(X.data if sparse.issparse(X) else X)
        check_squares(size, "value of X", is_fit=reset)
        if reset:
            self._check_room(X)
        return X

    def _set_labels(self, labels: np.ndarray, nearest: np.ndarray) -> None:
        """Set the labels of the fit, and the numbers that follow from them."""
        self.nearest_labels_ = nearest
        self.n_clusters_ = int(labels.max()) + 1
        self.n_outliers_ = int(np.count_nonzero(labels == -1))
        self.labels_ = labels

    def __sklearn_is_fitted__(self):
        return hasattr(self, "labels_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        return tags


class DBSCAN(DecisionMixin, _DensityClusterer):
    r"""Density-based clusters: rows that dense neighbourhoods connect, and noise.

    A *core* row has at least ``min_samples`` rows within ``eps``; core rows within
    ``eps`` of each other share a cluster, other rows within ``eps`` of a core row join
    its cluster, and the rest is noise. The work is done by
    :class:`sklearn.cluster.DBSCAN`; this class adds scores and answers for new rows.

    .. math::

        \text{core} = \{x : |\{y : d(x, y) \le \varepsilon\}| \ge \text{min\_samples}\},
        \qquad \text{score}(x) = \min_{y \in \text{core}} d(x, y)

    Parameters
    ----------
    eps : float, default=0.5
        Rows within this distance are neighbours.

    min_samples : int, default=5
        Number of neighbours of a core row, itself included.

    metric : str or callable, default="euclidean"
        Distance, as in :class:`sklearn.neighbors.NearestNeighbors`; "precomputed" is
        not among them, as X holds rows here, nor are metrics with parameters.

    n_jobs : int, default=None
        Number of parallel jobs of the search for neighbours.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, -1 for outliers; scikit-learn's.
    nearest_labels_ : ndarray of shape (n_samples,)
        Cluster of each row; for outliers that of the nearest core row, or -1 if there
        is none.
    outlier_scores_ : ndarray of shape (n_samples,)
        Distance of each row to the nearest core row; higher is stranger. It is
        ``2 * eps`` for all rows if there is no core row.
    offset_ : float
        Rows with ``score_samples`` below it are outliers: ``-eps``.
    n_clusters_ : int
        Number of clusters.
    n_outliers_ : int
        Number of outliers.
    core_sample_indices_ : ndarray of shape (n_core_samples,)
        The core rows.
    components_ : ndarray or CSR of shape (n_core_samples, n_features)
        Copy of the core rows.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features of X, if it was a data frame with names.

    See Also
    --------
    corral.rivals.HDBSCAN : Needs no ``eps``.
    corral.COR : Finds as many clusters and outliers as asked for.
    sklearn.cluster.DBSCAN : What does the work.

    Notes
    -----
    *Number of clusters and outliers.* They follow from ``eps`` and ``min_samples`` and
    cannot be asked for, in which the method differs from the others here.

    *Cost.* That of scikit-learn's: all neighbourhoods are held at once, which takes
    memory in proportion to the number of pairs of neighbours. Beside the core rows,
    the model keeps a key of 16 bytes per distinct row.

    *New rows* get the cluster of the nearest core row if it is within ``eps``, else -1.

    *Border rows* within ``eps`` of several clusters go to the first of these in
    scikit-learn, which need not be that of the nearest core row. Rows that equal a row
    of the fit get its label and its score, so :meth:`predict` repeats ``labels_``.

    *Duplicates* count as neighbours of each other. Constant columns change nothing.
    Sparse rows take the metrics that scikit-learn has for them. Their Euclidean
    distances, and those of rows of more than 15 columns, come from products: groups
    more than some 10,000,000 times ``eps`` apart are beyond it.
    Fewer rows than ``min_samples`` are all noise.

    References
    ----------
    .. [1] M. Ester, H.-P. Kriegel, J. Sander and X. Xu, "A Density-Based Algorithm for
       Discovering Clusters in Large Spatial Databases with Noise", KDD, 1996.
    .. [2] E. Schubert, J. Sander, M. Ester, H.-P. Kriegel and X. Xu, "DBSCAN Revisited,
       Revisited: Why and How You Should (Still) Use DBSCAN", ACM Transactions on
       Database Systems 42(3), 2017. https://doi.org/10.1145/3068335

    Examples
    --------
    >>> from corral.rivals import DBSCAN
    >>> X = [[1.0], [1.2], [1.4], [7.0], [7.2], [7.4], [30.0]]
    >>> model = DBSCAN(eps=0.5, min_samples=2).fit(X)
    >>> model.labels_
    array([ 0,  0,  0,  1,  1,  1, -1])
    >>> model.predict([[1.6], [5.0]])
    array([ 0, -1])
    """

    # Set by fit: which rows it saw, what finds the nearest core row, and what is taken
    # from rows before.
    _rows: RowBook
    _offsets: np.ndarray | None
    _neighbors: NearestNeighbors | None

    _parameter_constraints: ClassVar[dict] = {
        "eps": [Interval(Real, 0, None, closed="neither")],
        "min_samples": [Interval(Integral, 1, None, closed="left")],
        "metric": [StrOptions(_DBSCAN_METRICS), callable],
        "n_jobs": [Integral, None],
    }

    def __init__(self, eps=0.5, *, min_samples=5, metric="euclidean", n_jobs=None):
        self.eps = eps
        self.min_samples = min_samples
        self.metric = metric
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, sample_weight=None):
        """Find clusters and outliers.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Here because scikit-learn passes it.
        sample_weight : array-like of shape (n_samples,), default=None
            How many neighbours each row counts as.

        Returns
        -------
        self : DBSCAN
            The fitted estimator.
        """
        X = self._read(X, reset=True)
        model = sklearn.cluster.DBSCAN(
            eps=self.eps,
            min_samples=self.min_samples,
            metric=self.metric,
            n_jobs=self.n_jobs,
        )
        with contain_sklearn():
            points = _shift(X, _find_offsets(X, self.metric))
            model.fit(points, sample_weight=sample_weight)
        labels = model.labels_
        self.core_sample_indices_ = model.core_sample_indices_
        self.components_ = X[model.core_sample_indices_]
        self.offset_ = -float(self.eps)
        self._core_labels = labels[model.core_sample_indices_]
        self._set_search()
        self._rows = RowBook(X)
        distances, nearest = self._find_core(X)
        self.outlier_scores_ = self._agree(distances, labels)
        self._set_labels(labels, np.where(labels == -1, nearest, labels))
        return self

    def predict(self, X):
        """Return the cluster of each row, -1 for outliers.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows; each is answered by itself.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster of the nearest core row within ``eps``, -1 without any. A row that
            equals one of the fit has its label.
        """
        return self._answer(X)[1]

    def score_samples(self, X):
        """Return how normal each row is; lower is stranger.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Minus the distance of each row to the nearest core row.
        """
        return -self._answer(X)[0]

    def _count_bytes(self, X) -> int:
        n_bytes = super()._count_bytes(X)
        if X.shape[0] <= _N_FEW:
            # They all may be neighbours.
            return n_bytes
        places = np.linspace(0, X.shape[0] - 1, _N_TRIED).astype(int)
        with contain_sklearn():
            X = _shift(X, _find_offsets(X, self.metric))
            search = NearestNeighbors(radius=self.eps, metric=self.metric).fit(X)
            # One at a time: each may have all rows as neighbours.
            n_near = sum(
                len(search.radius_neighbors(X[[place]], return_distance=False)[0])
                for place in places
            )
        return n_bytes + _PAIR_BYTES * (X.shape[0] * n_near // _N_TRIED)

    def _set_search(self) -> None:
        """Set what finds the nearest core row, which is not saved."""
        self._neighbors = self._offsets = None
        if len(self._core_labels):
            self._offsets = _find_offsets(self.components_, self.metric)
            self._neighbors = NearestNeighbors(
                n_neighbors=1, metric=self.metric, n_jobs=self.n_jobs
            ).fit(_shift(self.components_, self._offsets))

    def _answer(self, X) -> tuple[np.ndarray, np.ndarray]:
        """Return the score and the label of each row."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        scores, nearest = self._find_core(X)
        labels = np.where(-scores < self.offset_, -1, nearest)
        seen = self._rows.find(X)
        first = self._rows.firsts[seen]
        scores = np.where(seen >= 0, self.outlier_scores_[first], scores)
        return scores, np.where(seen >= 0, self.labels_[first], labels)

    def _find_core(self, X) -> tuple[np.ndarray, np.ndarray]:
        """Return the distance to the nearest core row, and the cluster of that row."""
        # Anything beyond eps would do; infinity is no score that can be ranked.
        far = -2 * self.offset_
        if self._neighbors is None:
            return np.full(X.shape[0], far), np.full(X.shape[0], -1)
        if sparse.issparse(X) and not sparse.issparse(self.components_):
            # Trees of dense rows take no sparse ones.
            X = X.toarray()
        with contain_sklearn():
            distances, places = self._neighbors.kneighbors(_shift(X, self._offsets))
        distances = distances[:, 0].astype(np.float64)
        # Some metrics cannot compare all rows: a constant row has no correlation.
        distances[np.isnan(distances)] = far
        return distances, self._core_labels[places[:, 0]]

    def _agree(self, distances: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the distances on the side of ``eps`` that the labels say.

        Searches that go other ways to a distance differ in its last digits.
        """
        eps = -self.offset_
        scores = np.where(
            labels == -1,
            np.maximum(distances, np.nextafter(eps, np.inf)),
            np.minimum(distances, eps),
        )
        scores[self.core_sample_indices_] = 0
        check_scores(scores, type(self).__name__)
        return scores


def _find_offsets(X, metric) -> np.ndarray | None:
    """Return what to take from rows, so that products keep the digits of others."""
    return find_offsets(X) if metric in _METRICS_BY_PRODUCTS else None


def _shift(X, offsets: np.ndarray | None):
    """Return rows minus offsets, in their precision."""
    return X if offsets is None else shift(X, offsets).astype(X.dtype, copy=False)


class HDBSCAN(_DensityClusterer):
    r"""Clusters of any density that last longest as the density rises, and noise.

    Links rows by mutual reachability, cuts the tree of links into the clusters that are
    most stable over all densities, and calls noise what is in none of them. The work
    is done by :class:`sklearn.cluster.HDBSCAN`; this class adds scores.

    .. math::

        d_{reach}(x, y) = \max(d_{core}(x), d_{core}(y), d(x, y) / \alpha), \qquad
        \text{score}(x) = 1 - \frac{\lambda_x}{\lambda_{max}}

    where :math:`d_{core}` is the distance to the ``min_samples``-th neighbour,
    :math:`\lambda = 1 / d` the density at which a row leaves its cluster and
    :math:`\lambda_{max}` the largest of them in the cluster.

    Parameters
    ----------
    min_cluster_size : int, default=5
        Smaller groups are noise.

    min_samples : int, default=None
        Number of neighbours in a dense neighbourhood, the row itself included; None
        means ``min_cluster_size``.

    cluster_selection_epsilon : float, default=0.0
        Clusters nearer than this are merged.

    max_cluster_size : int, default=None
        Larger clusters are parted if they can be.

    metric : str or callable, default="euclidean"
        Distance, as in :class:`sklearn.cluster.HDBSCAN`; "precomputed" is not among
        them, as X holds rows here, nor are metrics with parameters.

    alpha : float, default=1.0
        What distances are divided by.

    cluster_selection_method : {"eom", "leaf"}, default="eom"
        Whether the most stable clusters of the tree are taken or its leaves.

    allow_single_cluster : bool, default=False
        Whether all rows may be one cluster.

    n_jobs : int, default=None
        Number of parallel jobs of the search for neighbours.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, -1 for outliers; scikit-learn's.
    nearest_labels_ : ndarray of shape (n_samples,)
        Cluster of each row; for outliers that of the nearest row in a cluster, or -1 if
        there is none.
    outlier_scores_ : ndarray of shape (n_samples,)
        ``1 - probabilities_``; higher is stranger. It is 1 for outliers, all alike, and
        below 1 for other rows.
    offset_ : float
        Rows with ``-outlier_scores_`` below it are outliers. It is the number next to
        -1.
    n_clusters_ : int
        Number of clusters.
    n_outliers_ : int
        Number of outliers.
    probabilities_ : ndarray of shape (n_samples,)
        How firmly each row belongs to its cluster, from 0 for outliers to 1;
        scikit-learn's.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features of X, if it was a data frame with names.

    See Also
    --------
    corral.rivals.DBSCAN : One density for all clusters.
    corral.COR : Finds as many clusters and outliers as asked for.
    sklearn.cluster.HDBSCAN : What does the work.

    Notes
    -----
    *Number of clusters and outliers.* They follow from the data and
    ``min_cluster_size`` and cannot be asked for, in which the method differs from the
    others here.

    *New rows* have no place in the tree of links, and scikit-learn's HDBSCAN has no
    ``predict``; there is none here either, nor ``score_samples``.

    *Cost.* That of scikit-learn's: time grows with the square of the number of rows;
    memory linearly for the metrics of :class:`sklearn.neighbors.BallTree`, with the
    square for others. One more search finds the nearest clusters of outliers.

    *Duplicates* count as neighbours of each other. Constant columns change nothing.
    Sparse rows are refused, as a matrix of all distances would be made of them. There
    have to be at least ``min_samples`` rows. Of rows equally near to an outlier, any
    one may give its ``nearest_labels_``.

    References
    ----------
    .. [1] R. J. G. B. Campello, D. Moulavi and J. Sander, "Density-Based Clustering
       Based on Hierarchical Density Estimates", PAKDD, 2013.
       https://doi.org/10.1007/978-3-642-37456-2_14

    Examples
    --------
    >>> import numpy as np
    >>> from corral.rivals import HDBSCAN
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (50, 2)), rng.normal(20, 1, (50, 2))])
    >>> X[7] = [100.0, -100.0]
    >>> model = HDBSCAN(min_cluster_size=10).fit(X)
    >>> model.n_clusters_, model.labels_[7], model.outlier_scores_[7]
    (2, np.int64(-1), np.float64(1.0))
    """

    _accepts_sparse = False

    _parameter_constraints: ClassVar[dict] = {
        "min_cluster_size": [Interval(Integral, 2, None, closed="left")],
        "min_samples": [Interval(Integral, 1, None, closed="left"), None],
        "cluster_selection_epsilon": [Interval(Real, 0, None, closed="left")],
        "max_cluster_size": [Interval(Integral, 1, None, closed="left"), None],
        "metric": [StrOptions(_METRICS), callable],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "cluster_selection_method": [StrOptions({"eom", "leaf"})],
        "allow_single_cluster": ["boolean"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        min_cluster_size=5,
        *,
        min_samples=None,
        cluster_selection_epsilon=0.0,
        max_cluster_size=None,
        metric="euclidean",
        alpha=1.0,
        cluster_selection_method="eom",
        allow_single_cluster=False,
        n_jobs=None,
    ):
        self.min_cluster_size = min_cluster_size
        self.min_samples = min_samples
        self.cluster_selection_epsilon = cluster_selection_epsilon
        self.max_cluster_size = max_cluster_size
        self.metric = metric
        self.alpha = alpha
        self.cluster_selection_method = cluster_selection_method
        self.allow_single_cluster = allow_single_cluster
        self.n_jobs = n_jobs

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None):
        """Find clusters and outliers.

        Parameters
        ----------
        X : array-like or data frame of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Here because scikit-learn passes it.

        Returns
        -------
        self : HDBSCAN
            The fitted estimator.
        """
        X = self._read(X, reset=True)
        # Whatever its value, copy has to be given, or scikit-learn 1.8 and 1.9 warn.
        model = sklearn.cluster.HDBSCAN(**self.get_params(), copy=True)
        with contain_sklearn():
            model.fit(X)
        labels = model.labels_
        below_one = np.nextafter(1.0, 0.0)
        scores = np.minimum(1 - model.probabilities_, below_one)
        self.probabilities_ = model.probabilities_
        self.outlier_scores_ = np.where(labels == -1, 1.0, scores)
        self.offset_ = -float(below_one)
        self._set_labels(labels, self._find_nearest(X, labels))
        return self

    @property
    def predict(self):
        """Not there: accessing it raises AttributeError."""
        raise AttributeError(
            "HDBSCAN has no predict: new rows have no place in its tree of links. Fit "
            "with these rows and read labels_, or use DBSCAN."
        )

    def _count_bytes(self, X) -> int:
        n_bytes = super()._count_bytes(X)
        if self.metric in {*KDTree.valid_metrics, *BallTree.valid_metrics}:
            return n_bytes
        # Without a tree, all distances are there twice.
        return n_bytes + 16 * X.shape[0] ** 2

    def _find_nearest(self, X: np.ndarray, labels: np.ndarray) -> np.ndarray:
        """Return the labels, with outliers in the cluster of the nearest row in one."""
        clustered = np.flatnonzero(labels >= 0)
        outliers = np.flatnonzero(labels == -1)
        nearest = labels.copy()
        if len(clustered) and len(outliers):
            X = _shift(X, _find_offsets(X, self.metric))
            search = NearestNeighbors(
                n_neighbors=1, metric=self.metric, n_jobs=self.n_jobs
            ).fit(X[clustered])
            with contain_sklearn():
                places = search.kneighbors(X[outliers], return_distance=False)[:, 0]
            nearest[outliers] = labels[clustered[places]]
        return nearest
