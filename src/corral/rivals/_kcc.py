"""KCC: K-means-based consensus clustering of the partitions that COR uses."""

import warnings
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from corral._codes import Codes, one_hot_rows
from corral._fusion import Fusion, FusionSettings, fuse_codes
from corral._memory import need_memory, weigh_states
from corral._partition_mixin import PartitionMixin, asks_for_labels, make_block
from corral._partitions import Partitioner
from corral._random import draw_fit_seed, make_streams
from corral._row_blocks import MemoryBlocks
from corral._sklearn_compat import Interval, StrOptions, _fit_context
from corral._threads import Threads, use_threads
from corral._validation import Features, read_sample_weight
from corral._workplace import LocalWorkplace
from corral.rivals._base import JointClusterer
from corral.rivals._utilities import (
    CategoryUtility,
    ConsensusDistance,
    CosineUtility,
    EntropyUtility,
    LpUtility,
    Utility,
    share_labels,
)

# Codes are looked up in blocks of this many slots, whose one-hot rows take 6 MB.
_BLOCK_SLOTS = 2**19


class KCC(PartitionMixin, JointClusterer):
    r"""K-means-based Consensus Clustering, with its smallest cluster as the outliers.

    Fuses the basic partitions that :class:`~corral.COR` uses into ``n_clusters + 1``
    clusters by K-means on codes; the smallest of them is the set of outliers, as [1]_
    has it for K-means.

    The clusters agree with the partitions as much as possible, by a utility U which
    comes from a convex function :math:`\mu`. By the theorem of [2]_,

    .. math::

        \max_\pi \sum_{i=1}^{r} w_i \, U(\pi, \pi_i)
        \quad \Longleftrightarrow \quad
        \min_\pi \sum_{k} \sum_{b \in C_k} \sum_{i=1}^{r}
        w_i \, f(b_i, m_{k,i})

    .. math::

        U(\pi, \pi_i) = \sum_k p_k \, \mu(m_{k,i}) - \mu(m_i), \qquad
        f(b, m) = \mu(b) - \mu(m) - (b - m)^\top \nabla \mu(m)

    where :math:`p_k` is the share of cluster k in the rows, :math:`m_{k,i}` are the
    shares of the labels of partition i in cluster k, :math:`m_i` those in all rows, and
    :math:`b_i` is the one-hot label of a row.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters, without that of the outliers.

    utility : {"U_c", "U_H", "U_cos", "U_Lp"}, default="U_c"
        How much clusters tell about a partition, and the distance that belongs to it.

        - "U_c": category utility, :math:`\mu(m) = \|m\|_2^2`; squared Euclidean.
        - "U_H": mutual information, :math:`\mu(m) = -H(m)`; Kullback-Leibler.
        - "U_cos": :math:`\mu(m) = \|m\|_2`; cosine.
        - "U_Lp": :math:`\mu(m) = \|m\|_p`.

    normalized : bool, default=False
        Whether to divide the utility of each partition by :math:`|\mu(m_i)|`, which
        makes NU_c, NU_H, NU_cos and NU_Lp of it.

    p : float, default=5
        The norm if ``utility="U_Lp"``; above 1. The authors use 5 and 8.

    outlier_cluster : bool, default=True
        Whether one more cluster is made, and the smallest called outliers. False gives
        plain consensus clustering.

    partitions : {"kmeans", "precomputed"}, clusterer or list, default="kmeans"
        Where the basic partitions come from.

        - "kmeans": ``n_partitions`` K-means runs.
        - "precomputed": X is a matrix of labels, one column per partition; -1 means
          that the label is missing.
        - a clusterer: it is run ``n_partitions`` times, as ``strategy`` says.
        - a list of clusterers and "kmeans": each clusterer is run once as it is.

        Its label -1 means that a label is missing.

    n_partitions : int, default=100
        Number of basic partitions r.

    strategy : {"rps", "rfs"}, default="rps"
        What differs from run to run: "rps", random parameter selection, draws the
        number of clusters; "rfs", random feature selection, draws the features.

    k_range : tuple of (int, int), default=None
        Smallest and largest number of clusters of a K-means run, drawn uniformly. None
        means 2 to ``2 * n_clusters`` for "rps" and ``n_clusters`` for "rfs".

    feature_share : float, default=0.5
        Share of the features that a run sees if ``strategy="rfs"``.

    metric : {"euclidean", "cosine"}, default="euclidean"
        Distance of the K-means runs.

    categorical_features : array-like of int, str or bool, default=None
        Columns of X that hold categories. Each of them is a ready-made partition.

    init : {"random-codes", "random-partition", "k-means++"}, default="random-codes"
        How the fusion starts: from the codes of random rows, from a random cluster for
        every row, or from codes chosen far apart.

    n_init : int, default=10
        Number of restarts of the fusion. The one with the lowest objective is kept.

    max_iter : int, default=100
        Largest number of iterations of the fusion.

    kmeans_init : {"random", "k-means++"}, default="random"
        How the K-means runs start.

    kmeans_max_iter : int, default=100
        Largest number of iterations of a K-means run on each of the ever larger parts
        of the rows that it learns from; the last part holds all of them.

    kmeans_tol : float, default=1e-4
        A K-means run stops when its centres' squared moves add up to less than this
        part of the mean variance of the features.

    max_samples : int or None, default=8192
        The K-means runs learn their centres from so many random rows; all rows are then
        labelled. None means from all rows.

    n_jobs : int, default=None
        Number of threads. None means as many as BLAS may use. Results are the same for
        any number.

    random_state : int, RandomState instance or None, default=None
        Seed of all random choices. COR makes the same partitions of the same seed.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, -1 for outliers.
    nearest_labels_ : ndarray of shape (n_samples,)
        Nearest cluster of each row, of outliers too.
    outlier_scores_ : ndarray of shape (n_samples,)
        Cost of each row in its nearest cluster less that in the cluster of the
        outliers; higher is stranger. Without such a cluster, the former alone.
    offset_ : float
        Rows with ``score_samples`` below it are outliers. It is 0, or minus infinity
        without a cluster of outliers.
    n_outliers_ : int
        Number of rows in the cluster of outliers.
    utility_ : float
        Sum over partitions of the utility, which the fusion makes as large as it can.
        A partition with missing labels counts by its share of rows that have one.
    objective_ : float
        Mean cost of a row in its cluster.
    objective_history_ : ndarray of shape (n_iter_,)
        The objective after each iteration of the fusion; it never rises.
    n_iter_ : int
        Number of iterations of the fusion.
    partition_centers_ : ndarray of shape (n_clusters, n_labels_.sum())
        Centres in partition space: the share of each label of each partition.
    outlier_center_ : ndarray of shape (n_labels_.sum(),)
        Centre of the cluster of outliers. Absent if ``outlier_cluster=False``.
    n_labels_ : ndarray of shape (n_partitions_,)
        Number of labels of each partition.
    n_partitions_ : int
        Number of partitions that were fused.
    n_codes_ : int
        Number of distinct codes.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features of X, if it was a data frame with names.

    See Also
    --------
    corral.COR : Sets the costliest rows aside instead, in each iteration.

    Notes
    -----
    *Cost.* One iteration of the fusion takes time in proportion to distinct codes times
    partitions times clusters: a code has one 1 per partition, so distances are looked
    up in a table and no one-hot matrix of all rows is made. Memory grows linearly with
    the number of rows.

    *How many outliers* there are cannot be asked for: it is the size of a cluster.

    *Missing labels* cost nothing in any cluster and do not count in the centre of their
    partition. A label that no row of a cluster has is as far from its centre as the
    formula says for a share of 0; for "U_H" that share counts as 2.2e-16. This includes
    labels that :meth:`predict` sees for the first time.

    *Duplicates* share a code, which counts as often as it occurs; ``sample_weight``
    does the same. Constant columns of X change no partition. Sparse rows are used as
    they are.

    *Ties.* Of clusters of the same size, the first is that of the outliers. A row that
    is as near to a cluster as to that of the outliers is no outlier.

    *Clusters without rows.* An emptied cluster is refilled with the costliest code.
    Where missing labels let fewer clusters hold all codes at no cost, some end without
    rows, that of the outliers first; a ConvergenceWarning says so.

    Differs from the paper: the utility of a partition with one label is left out if
    normalized, where its value of 0 cannot be divided by. The paper's weights
    :math:`w_i` are all 1 but for the normalization.

    References
    ----------
    .. [1] H. Liu, J. Li, Y. Wu and Y. Fu, "Clustering with Outlier Removal", IEEE
       Transactions on Knowledge and Data Engineering 33(6), 2021.
       https://doi.org/10.1109/TKDE.2019.2954317
    .. [2] J. Wu, H. Liu, H. Xiong, J. Cao and J. Chen, "K-Means-Based Consensus
       Clustering: A Unified View", IEEE Transactions on Knowledge and Data Engineering
       27(1), 2015. https://doi.org/10.1109/TKDE.2014.2316512

    Examples
    --------
    >>> import numpy as np
    >>> from corral.rivals import KCC
    >>> rng = np.random.default_rng(0)
    >>> centers = np.repeat([[0, 0], [9, 9], [20, -20]], [50, 50, 20], axis=0)
    >>> X = rng.normal(centers)
    >>> model = KCC(n_clusters=2, random_state=0).fit(X)
    >>> np.array_equal(np.flatnonzero(model.labels_ == -1), np.arange(100, 120))
    True
    >>> model.predict([[0.5, 0.5], [19.0, -21.0]]) == model.labels_[[0, 100]]
    array([ True,  True])
    """

    # Set by fit: what a slot costs, in the outliers' cluster last.
    _cost_table: np.ndarray

    _parameter_constraints: ClassVar[dict] = {
        **PartitionMixin._partition_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "utility": [StrOptions({"U_c", "U_H", "U_cos", "U_Lp"})],
        "normalized": ["boolean"],
        "p": [Interval(Real, 1, None, closed="neither")],
        "outlier_cluster": ["boolean"],
        "init": [StrOptions({"random-codes", "random-partition", "k-means++"})],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        utility="U_c",
        normalized=False,
        p=5,
        outlier_cluster=True,
        partitions="kmeans",
        n_partitions=100,
        strategy="rps",
        k_range=None,
        feature_share=0.5,
        metric="euclidean",
        categorical_features=None,
        init="random-codes",
        n_init=10,
        max_iter=100,
        kmeans_init="random",
        kmeans_max_iter=100,
        kmeans_tol=1e-4,
        max_samples=8192,
        n_jobs=None,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.utility = utility
        self.normalized = normalized
        self.p = p
        self.outlier_cluster = outlier_cluster
        self.partitions = partitions
        self.n_partitions = n_partitions
        self.strategy = strategy
        self.k_range = k_range
        self.feature_share = feature_share
        self.metric = metric
        self.categorical_features = categorical_features
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.kmeans_init = kmeans_init
        self.kmeans_max_iter = kmeans_max_iter
        self.kmeans_tol = kmeans_tol
        self.max_samples = max_samples
        self.n_jobs = n_jobs
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, sample_weight=None):
        """Find clusters, of which the smallest is that of the outliers.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows; a matrix of labels if ``partitions="precomputed"``.
        y : Ignored
            Here because scikit-learn passes it.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts in centres, objective and sizes of clusters.

        Returns
        -------
        self : KCC
            The fitted estimator.
        """
        self.__dict__.pop("labels_", None)
        self._is_precomputed = asks_for_labels(self.partitions)
        features, given = self._read(X, reset=True)
        weights = read_sample_weight(sample_weight, features.n_samples)
        self._check_enough(features.n_samples, "n_samples={}")
        need_memory(
            weigh_states(features.n_samples, self.n_partitions),
            f"KCC of {features.n_samples:,} rows",
            f"Lower n_partitions (now {self.n_partitions}), or use COR, which keeps "
            "less of many rows.",
        )
        streams = make_streams(draw_fit_seed(self.random_state))
        with use_threads(self.n_jobs) as threads:
            rows = MemoryBlocks(make_block(features, given))
            place = LocalWorkplace(rows, threads)
            partitioner, _ = self._fit_partitions(place, weights, streams)
            states = place.encode(partitioner, weights)
            assert states.whole is not None
            codes = states.whole.codes
            code_weights = codes.weigh(weights)
            distance = ConsensusDistance(
                self._make_utility(),
                codes.book,
                *share_labels(codes, code_weights),
                normalized=self.normalized,
            )
            fusion = self._fuse(codes, distance, weights, streams.fusion, threads)
            order = self._order_clusters(fusion, code_weights)
            self._set_model(partitioner, distance, fusion, order)
            self._set_outcome_of_codes(codes, threads)
        self.n_codes_ = len(codes.rows)
        return self

    def score_samples(self, X):
        """Return how normal each row is; lower is stranger.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Cost of each row in the cluster of the outliers less that in its nearest
            cluster; minus the latter if there is no cluster of outliers.
        """
        return super().score_samples(X)

    @property
    def _n_groups(self) -> int:
        """Number of clusters, with that of the outliers."""
        return self.n_clusters + bool(self.outlier_cluster)

    def _make_utility(self) -> Utility:
        if self.utility == "U_Lp":
            return LpUtility(self.p)
        return _UTILITIES[self.utility]()

    def _check_enough(self, n_found: int, found: str) -> None:
        if n_found < self._n_groups:
            extra = " + 1 for the outliers" if self.outlier_cluster else ""
            raise ValueError(
                f"{found.format(n_found)} should be at least "
                f"n_clusters={self.n_clusters}{extra}. Lower n_clusters, or raise "
                f"n_partitions (now {self.n_partitions}) if rows have the same codes."
            )

    def _fuse(
        self,
        codes: Codes,
        distance: ConsensusDistance,
        weights: np.ndarray | None,
        rng: np.random.Generator,
        threads: Threads,
    ) -> Fusion:
        """Run K-means on codes, with its checks before and after."""
        n_codes = int(np.count_nonzero(codes.weigh(weights) > 0))
        self._check_enough(n_codes, "The number of distinct codes, {},")
        # COR's fusion that sets nothing aside is K-means.
        settings = FusionSettings(
            self._n_groups, 0, self.init, self.n_init, self.max_iter
        )
        fusion = fuse_codes(
            codes, distance, settings, rng, threads, sample_weight=weights
        )
        if not fusion.converged:
            warnings.warn(
                f"The fusion stopped at max_iter={self.max_iter} before its objective "
                f"came to rest at {fusion.objective:.6g}. Raise max_iter.",
                ConvergenceWarning,
                stacklevel=3,
            )
        return fusion

    def _order_clusters(self, fusion: Fusion, code_weights: np.ndarray) -> np.ndarray:
        """Return the clusters in their order, that of the outliers moved to the end."""
        sizes = np.bincount(fusion.code_labels, code_weights, minlength=self._n_groups)
        clusters = np.arange(self._n_groups)
        if not self.outlier_cluster:
            return clusters
        smallest = sizes.argmin()
        return np.append(clusters[clusters != smallest], smallest)

    def _set_model(
        self,
        partitioner: Partitioner,
        distance: ConsensusDistance,
        fusion: Fusion,
        order: np.ndarray,
    ) -> None:
        """Set what labels new rows, and what the fusion came to."""
        book = partitioner.book
        centers = fusion.centers[order]
        self._partitioner = partitioner
        self._cost_table = distance.cost_table(centers, book)
        self._has_outlier_cluster = bool(self.outlier_cluster)
        self.partition_centers_ = centers[: self.n_clusters, book.is_label]
        self.__dict__.pop("outlier_center_", None)
        if self._has_outlier_cluster:
            self.outlier_center_ = centers[-1, book.is_label]
        self.objective_ = fusion.objective
        self.objective_history_ = fusion.history
        self.n_iter_ = len(fusion.history)
        self.utility_ = distance.cost_of_one_cluster - fusion.objective
        self.n_labels_ = book.n_labels
        self.n_partitions_ = len(book.n_labels)

    def _set_outcome_of_codes(self, codes: Codes, threads: Threads) -> None:
        """Set labels, scores and threshold of all rows from those of their codes."""
        block = max(_BLOCK_SLOTS // codes.rows.shape[1], 1)

        def work(start: int) -> tuple[np.ndarray, np.ndarray]:
            costs = self._cost_codes(codes.rows[start : start + block])
            return costs.argmin(axis=1).astype(np.int32), costs.min(axis=1)

        parts = list(threads.map(work, range(0, len(codes.rows), block)))
        nearest = np.concatenate([labels for labels, _ in parts])
        scores = np.concatenate([costs for _, costs in parts])
        self.offset_ = 0.0 if self._has_outlier_cluster else -np.inf
        self.nearest_labels_ = nearest[codes.inverse]
        self.outlier_scores_ = scores[codes.inverse]
        is_outlier = -self.outlier_scores_ < self.offset_
        self.n_outliers_ = int(np.count_nonzero(is_outlier))
        self.labels_ = np.where(is_outlier, np.int32(-1), self.nearest_labels_)
        n_found = len(np.unique(self.labels_))
        if n_found < self._n_groups:
            extra = ", with that of the outliers," if self.outlier_cluster else ""
            warnings.warn(
                f"Only {n_found} of {self._n_groups} clusters{extra} have rows. Lower "
                "n_clusters or raise n_partitions.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _cost_codes(self, rows: np.ndarray) -> np.ndarray:
        """Return what codes cost in each cluster, less that in the outliers' one."""
        costs = one_hot_rows(rows, self._partitioner.book) @ self._cost_table
        if self._has_outlier_cluster:
            return costs[:, :-1] - costs[:, -1:]
        return costs

    def _costs(self, X: tuple[Features, list]) -> np.ndarray:
        return self._look_up_rows(*X, lambda rows, _: self._cost_codes(rows))


_UTILITIES: dict[str, type[Utility]] = {
    "U_c": CategoryUtility,
    "U_H": EntropyUtility,
    "U_cos": CosineUtility,
}
