"""COR: clusters and outliers from many partitions of the same rows."""

import logging
import math
import warnings
from collections.abc import Sequence
from dataclasses import replace
from numbers import Integral, Real
from pathlib import Path
from typing import ClassVar

import numpy as np
from sklearn.base import (
    BaseEstimator,
    ClassNamePrefixFeaturesOutMixin,
    ClusterMixin,
    TransformerMixin,
)
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from corral._answers import Columns, Tables
from corral._callbacks import CallbackMixin, log_progress, tell_callbacks
from corral._choice import choose_numbers, limit_clusters
from corral._codes import one_hot_rows
from corral._confidence import (
    count_candidates,
    draw_again,
    measure_stability,
    set_aside_again,
)
from corral._divergences import BernoulliKL, CodeLength, round_costs
from corral._encoded import EncodedRows
from corral._explain import FeatureNames, Judge, make_frame, rank_features
from corral._fuser import Fuser
from corral._fusion import FusionSettings, Problem
from corral._linkage import N_STARTS
from corral._memory import (
    Budget,
    format_bytes,
    need_memory,
    read_limit,
    weigh_states,
)
from corral._notebook import NotebookMixin
from corral._open import open_blocks, open_journal
from corral._partition_mixin import (
    Basis,
    PartitionMixin,
    asks_for_labels,
    make_block,
)
from corral._partitions import Partitioner
from corral._position import fit_ruler, rarity_table
from corral._profiles import Profile
from corral._random import Streams, draw_fit_seed, draw_rows, make_streams
from corral._row_blocks import (
    Block,
    MemoryBlocks,
    RowBlocks,
    cut_sizes,
    is_source,
)
from corral._saving import SaveMixin
from corral._search import Limits
from corral._selection import Selection
from corral._sklearn_compat import Interval, StrOptions, _fit_context
from corral._storage import Storage, describe_storage
from corral._threads import Threads, use_threads
from corral._validation import (
    Features,
    count_outliers,
    read_sample_weight,
    refuse_unlabelled,
)
from corral._whole import Outcome, Whole
from corral._workplace import LocalWorkplace, Workplace

logger = logging.getLogger(__name__)

# Fine partitions have no more clusters than this, and no more than make so many pairs
# of rows and clusters: with half a million rows they are hardly finer than the others,
# and a fit takes as long as two fits of K-means.
_FINE_CLUSTERS = 128
_FINE_PAIRS = 2**22

# How much position counts by default, chosen on suites of data sets of either kind;
# see docs/dev/decisions/0007.
_POSITION_WEIGHTS = {"euclidean": 16.0, "cosine": 4.0}

# Restarts of the fusion come to rest on so many rows, of more. The best one then does
# so many iterations on all of them, which move its centres hardly more. Fewer where
# the number of clusters is chosen, and many fusions are made.
_LINKAGE_ROWS = 2**13
_LINKAGE_ITERATIONS = 10
_FUSER_ROWS = 3000
_FUSER_ITERATIONS = 2

# One-hot rows of codes that are used again and again may have so many slots.
_MOST_KEPT_SLOTS = 2**24

# Restarts of the fusion from random starts.
_N_RANDOM_STARTS = 10

# Fewer partitions that see all features are too few to choose by.
_MIN_CHOOSING = 10

_AUTO = StrOptions({"auto"})

# Attributes that not every fit has.
_OPTIONAL = (
    "labels_",
    "cluster_centers_",
    "cluster_spreads_",
    "outlier_confidence_",
    "label_confidence_",
    "cluster_stability_",
    "_profile",
)

_DIVERGENCES: dict[str, type[CodeLength] | type[BernoulliKL]] = {
    "code-length": CodeLength,
    "holoentropy": BernoulliKL,
}


class COR(
    SaveMixin,
    NotebookMixin,
    CallbackMixin,
    PartitionMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
    ClusterMixin,
    BaseEstimator,
):
    r"""Clustering with Outlier Removal.

    Finds ``n_clusters`` clusters and sets aside the ``n_outliers`` rows that fit into
    none of them, both at once.

    1. Run K-means many times, half of the runs with few and half with many clusters.
    2. Write each row as its *code*: the row of labels that it received.
    3. Cluster the codes by K-means--, which sets aside the o costliest rows in each
       iteration.

    What a row costs is the length of its description: its cluster k, its cells given
    the cluster, and where it lies,

    .. math::

        \sum_{i=1}^{r} \left( -\tfrac{1}{2} \log \pi_k - \log p_{k,ij} \right)
        + w \sum_{i=1}^{r} \left( -g_i \log \frac{n_{ij}}{n}
        + h_i \frac{\lVert x - m_{ij} \rVert^2}{2 s_i^2} \right)

    where j is its label in partition i, :math:`p_{k,ij}` the share of that label in the
    cluster, :math:`\pi_k` the share of the cluster, :math:`n_{ij}` the number of rows
    in the cell, :math:`m_{ij}` its centre and :math:`s_i^2` the mean squared distance
    to it. Coarse runs have :math:`g_i = 2, h_i = 0`, fine ones
    :math:`g_i = 1, h_i = 0.7`, and w is ``position_weight``. With cosine distance,
    coarse runs have :math:`h_i = 0.7`, fine ones :math:`h_i = 0`, and the standard
    deviation of the squared distances stands in place of :math:`2 s_i^2`. The
    paper [1]_ has labels only: :meth:`paper` gives its algorithm, whose objective is
    the holoentropy of the clusters.

    Parameters
    ----------
    n_clusters : int or "auto", default="auto"
        Number of clusters. "auto" chooses the largest number, up to ``k_max``, for
        which any two clusters can be told apart or have a valley between them;
        ``selection_`` says why.

    n_outliers : int or "auto", default="auto"
        Number of rows to set aside. Zero gives plain consensus clustering. "auto" sets
        aside the rows above the widest gap between the strangest rows, if it is wider
        than chance makes it, or else as many as lie farther out of their clusters than
        the tails of these reach, and none if there are no such rows.

    contamination : float, default=None
        Share of the rows to set aside, in place of ``n_outliers``.

    k_max : int, default=10
        Largest number of clusters that "auto" chooses.

    contamination_max : float, default=0.25
        Largest share of the rows that "auto" sets aside.

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

    k_range : tuple of (int, int) or "auto", default=None
        Smallest and largest number of clusters of a K-means run, drawn uniformly. None
        means ``n_clusters`` for "rfs". For "rps" it means that half of the runs draw
        from 2 to ``2 * n_clusters``, and half from there to twice the square root of
        the number of rows, at most 128, and fewer for more than 32,768 rows; where
        that is less than ``4 * n_clusters``, the second half draws from 2 on, too.
        "auto" means the same with ``k_max // 2 + 1`` in place of ``n_clusters``, and
        nothing that is drawn then depends on ``n_clusters`` or ``n_outliers``; so does
        None if ``n_clusters="auto"``.

    feature_share : float, default=0.5
        Share of the features that a run sees if ``strategy="rfs"``.

    metric : {"euclidean", "cosine"}, default="euclidean"
        Distance of the K-means runs. "cosine" is spherical K-means: rows and centres
        have unit length, as is right for text.

    categorical_features : array-like of int, str or bool, default=None
        Columns of X that hold categories. Each of them is a ready-made partition.

    divergence : {"code-length", "holoentropy"}, default="code-length"
        What labels cost in a cluster: the nats that tell the cluster and then the
        label, or the paper's distance.

    position_weight : float, default=None
        How much it counts where a row lies, beside what its labels tell. Zero sets
        rows aside by their labels alone, as in the paper. None means 16, or 4 with
        ``metric="cosine"``. Only K-means runs know where a row lies: the half of them
        with the most clusters measures distances, with "cosine" the other half (none
        with "rfs"), and other partitions have no position.

    init : {"linkage", "random-partition", "random-codes", "k-means++"}, \
            default="linkage"
        How the fusion starts: from the branches of trees of codes, from a random
        cluster for every row, from the codes of ``n_clusters`` random rows, or from
        codes chosen far apart.

    n_init : int, default=None
        Number of restarts of the fusion. None means 10 random ones, or all 8 cuts of
        the trees. With "code-length", the one whose clusters the partitions tell apart
        best is kept, with "holoentropy" the one with the lowest objective.

    max_iter : int, default=100
        Largest number of iterations of the fusion.

    eps : float, default=0.01
        Smallest probability of a label in a cluster; with "code-length", shared by all
        labels of a partition. Larger values forgive single labels that disagree.

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
        labelled. None means from all rows; see Notes for rows that are read block by
        block.

    n_resamples : int, default=50
        How often partitions are drawn again to see how sure labels are. Zero leaves the
        confidences out.

    memory_limit : int or str, default=None
        Bytes that the process may take, such as "2GB", for rows that are read block by
        block; rows that are in memory already do not count. None means half of what is
        free. Results are the same for any limit.

    checkpoint_dir : str or Path, default=None
        A folder in which a fit notes what it has done. A fit that was ended, however
        that came about, goes on from there if it is started again with the same rows
        and parameters.

    n_jobs : int, default=None
        Number of threads. None means as many as BLAS may use. Results are the same for
        any number.

    random_state : int, RandomState instance or None, default=None
        Seed of all random choices.

    verbose : int, default=0
        1 logs how far a fit is, 2 logs more. The lines go to the logger "corral", and
        to stderr if nobody listens there. With scikit-learn 1.9 or newer, a fit also
        tells its callbacks: ``model.set_callbacks(sklearn.callback.ProgressBar())``.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, -1 for outliers.
    n_clusters_ : int
        Number of clusters.
    nearest_labels_ : ndarray of shape (n_samples,)
        Nearest cluster of each row, of outliers too.
    outlier_scores_ : ndarray of shape (n_samples,)
        Cost of each row in its nearest cluster, in nats; higher is stranger.
    offset_ : float
        Rows with ``score_samples`` below it are outliers. Minus infinity if
        ``n_outliers`` is zero.
    n_outliers_ : int
        Number of rows set aside.
    outlier_confidence_ : ndarray of shape (n_samples,)
        Share of the resamples of the partitions in which each row is set aside. Absent
        if ``n_resamples`` is zero, or if the rows that may be outliers do not fit into
        ``memory_limit``.
    label_confidence_ : ndarray of shape (n_samples,)
        Share of the resamples in which its nearest cluster is the same. Absent if
        ``n_resamples`` is zero.
    cluster_stability_ : ndarray of shape (n_clusters,)
        How much of each cluster is the same in the resamples: the mean Jaccard index.
        Absent if ``n_resamples`` is zero.
    selection_ : Selection or None
        How the numbers were chosen, with all candidates; None if both were given.
    objective_ : float
        Mean cost of the rows that were kept.
    objective_history_ : ndarray of shape (n_iter_,)
        The objective after each iteration of the fusion; it never rises.
    n_iter_ : int
        Number of iterations of the fusion.
    cluster_centers_ : ndarray of shape (n_clusters, n_numeric_features)
        Mean of the rows of each cluster. Absent if no numeric features were given.
    cluster_spreads_ : ndarray of shape (n_clusters, n_numeric_features)
        Standard deviation of the rows of each cluster. Absent if no numeric features
        were given.
    partition_centers_ : ndarray of shape (n_clusters, n_labels_.sum())
        Centres in partition space: the share of each label of each partition.
    n_labels_ : ndarray of shape (n_partitions_,)
        Number of labels of each partition.
    n_partitions_ : int
        Number of partitions that were fused.
    n_codes_ : int
        Number of distinct codes.
    storage_ : Storage
        Where the fit kept what it knows of rows, and which rows could not be read.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features of X, if it was a data frame with names.

    See Also
    --------
    CORDetector : The same fit with the +1 / -1 answers of outlier detectors.
    sklearn.cluster.KMeans : Clusters without outliers.
    sklearn.cluster.HDBSCAN : Clusters and noise by density.

    Notes
    -----
    *Cost.* Time and memory grow linearly with the number of rows; no matrix of rows by
    rows is ever made. Beside X, a fit needs a few numbers per row and the distinct
    codes; the fitted model keeps no row of X.

    *Many rows.* With ``init="linkage"`` and more than 8192 rows, the fusion comes to
    rest on a random part of them and does ten more iterations with all; with more than
    3000 and two iterations if ``k_range`` is "auto" or the number of clusters.

    *All rows of a source.* With ``max_samples=None``, rows that are read block by block
    are held in memory if they have no more than 2**24 values. Others are read again in
    each iteration of the K-means runs, once for all runs; centres and labels are those
    of the rows in memory. Up to 2**18 rows and 2**24 values are held, or the first part
    of the rows that the runs begin with if that is more. Sparse rows of more than 2**24
    values are refused. With ``checkpoint_dir``, each finished iteration is noted.

    *Clusters without rows.* Where the rows that are kept have fewer distinct codes than
    ``n_clusters``, some clusters end without any; a ConvergenceWarning says so. Their
    centres are those of the outliers next to them.

    *Chosen numbers.* A fit with "auto" is the fit with ``n_clusters_`` and
    ``n_outliers_`` given, the same seed, and ``k_range="auto"`` if the number of
    clusters was chosen. The numbers do not depend on ``sample_weight``, but rows
    without weight do not count; those that lie where outliers do are set aside as
    well.

    *Ties.* Exactly ``n_outliers`` rows are set aside. Where rows with the same cost
    compete for the last places, the first are taken; :meth:`predict` has no such order
    and calls none of them an outlier.

    *Weights.* ``sample_weight`` counts in the K-means runs, in the centres and in the
    objective. Which rows are set aside depends on their cost only, and each counts as
    one.

    *Missing cells.* NaN in a dense X means that a cell is missing. Every other K-means
    run then sees only some of the features, from one to all, and a row has no label in
    the runs that see one of its missing cells, and no cost but the usual one for its
    position. The runs learn from the rows without missing cells if these are at least
    half of all; else the column's mean takes the place of a cell. Rows without
    any label cost the same in all clusters, and a UserWarning says how many there are.
    A column without any value is seen by no run.

    *Same seed, same labels:* for any number of threads, block size and kind of storage.

    Differs from the paper: probabilities are clipped at ``eps`` where the paper leaves
    the logarithm of zero open, and an emptied cluster is refilled with the costliest
    code that was kept.

    References
    ----------
    .. [1] H. Liu, J. Li, Y. Wu and Y. Fu, "Clustering with Outlier Removal", IEEE
       Transactions on Knowledge and Data Engineering 33(6), 2021.
       https://doi.org/10.1109/TKDE.2019.2954317

    Examples
    --------
    >>> import numpy as np
    >>> from corral import COR
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (50, 2)), rng.normal(9, 1, (50, 2))])
    >>> X[[3, 77]] = [[30.0, -20.0], [-25.0, 40.0]]
    >>> model = COR(n_clusters=2, n_outliers=2, random_state=0).fit(X)
    >>> np.flatnonzero(model.labels_ == -1)
    array([ 3, 77])
    >>> model.predict([[0.5, 0.5], [100.0, -100.0]]) == model.labels_[[0, 3]]
    array([ True,  True])
    """

    # Set by fit: what labels rows, whether X is labels, what a slot costs in each
    # cluster and in all, the centres of the clusters with all slots, and what their
    # rows look like.
    selection_: Selection | None
    storage_: Storage
    _partitioner: Partitioner
    _is_precomputed: bool
    _label_costs: np.ndarray
    _rarity: np.ndarray
    _centers: np.ndarray
    _profile: Profile

    _parameter_constraints: ClassVar[dict] = {
        **PartitionMixin._partition_constraints,
        "n_clusters": [Interval(Integral, 1, None, closed="left"), _AUTO],
        "n_outliers": [Interval(Integral, 0, None, closed="left"), _AUTO],
        "contamination": [Interval(Real, 0, 1, closed="left"), None],
        "k_max": [Interval(Integral, 1, None, closed="left")],
        "contamination_max": [Interval(Real, 0, 1, closed="left")],
        "k_range": [tuple, list, _AUTO, None],
        "divergence": [StrOptions(set(_DIVERGENCES))],
        "position_weight": [Interval(Real, 0, 1000, closed="both"), None],
        "init": [
            StrOptions({"linkage", "random-partition", "random-codes", "k-means++"})
        ],
        "n_init": [Interval(Integral, 1, None, closed="left"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "verbose": [Interval(Integral, 0, None, closed="left"), "boolean"],
        "n_resamples": [Interval(Integral, 0, None, closed="left")],
        "memory_limit": [Interval(Integral, 1, None, closed="left"), str, None],
        "checkpoint_dir": [str, Path, None],
        "eps": [Interval(Real, float(np.finfo(np.float64).eps), 0.5, closed="left")],
    }

    def __init__(
        self,
        n_clusters="auto",
        *,
        n_outliers="auto",
        contamination=None,
        k_max=10,
        contamination_max=0.25,
        partitions="kmeans",
        n_partitions=100,
        strategy="rps",
        k_range=None,
        feature_share=0.5,
        metric="euclidean",
        categorical_features=None,
        divergence="code-length",
        position_weight=None,
        init="linkage",
        n_init=None,
        max_iter=100,
        eps=0.01,
        kmeans_init="random",
        kmeans_max_iter=100,
        kmeans_tol=1e-4,
        max_samples=8192,
        n_resamples=50,
        memory_limit=None,
        checkpoint_dir=None,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.n_clusters = n_clusters
        self.n_outliers = n_outliers
        self.contamination = contamination
        self.k_max = k_max
        self.contamination_max = contamination_max
        self.partitions = partitions
        self.n_partitions = n_partitions
        self.strategy = strategy
        self.k_range = k_range
        self.feature_share = feature_share
        self.metric = metric
        self.categorical_features = categorical_features
        self.divergence = divergence
        self.position_weight = position_weight
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.eps = eps
        self.kmeans_init = kmeans_init
        self.kmeans_max_iter = kmeans_max_iter
        self.kmeans_tol = kmeans_tol
        self.max_samples = max_samples
        self.n_resamples = n_resamples
        self.memory_limit = memory_limit
        self.checkpoint_dir = checkpoint_dir
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, n_clusters=8, **params):
        """Return an estimator with exactly the algorithm of the paper.

        K-means runs with 2 to 2K clusters on all rows, started from random rows; one
        fusion from a random partition, with the smallest ``eps``. The paper leaves the
        number of outliers to the user; ``contamination`` is 0.05 if neither it nor
        ``n_outliers`` is given.

        Parameters
        ----------
        n_clusters : int or "auto", default=8
            Number of clusters K.
        **params : dict
            Other parameters of the estimator; they win over the paper's.

        Returns
        -------
        model : COR
            Not yet fitted.
        """
        settings: dict = {
            "contamination": None if "n_outliers" in params else 0.05,
            "divergence": "holoentropy",
            "position_weight": 0.0,
            "init": "random-partition",
            "n_init": 1,
            "eps": 2.220446049250313e-16,
            "kmeans_init": "random",
            "max_samples": None,
        }
        is_auto = isinstance(n_clusters, str)
        settings["k_range"] = "auto" if is_auto else (2, 2 * n_clusters)
        return cls(n_clusters, **{**settings, **params})

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, sample_weight=None, extra_partitions=None):
        """Find clusters and outliers.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows; a matrix of labels if ``partitions="precomputed"``. Rows that do
            not fit into memory are given as a path (of a Parquet file or a folder of
            them, a CSV or an NPY file), as a function that returns an iterator over
            blocks of rows, or as what :func:`corral.sources.open_source` returns. What
            is told of rows, such as ``labels_``, is then in memory maps if it is large.
        y : Ignored
            Here because scikit-learn passes it.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts in centres and objective.
        extra_partitions : array-like of shape (n_samples, n_extra), default=None
            Labels that are fused along with the other partitions; -1 means missing.

        Returns
        -------
        self : COR
            The fitted estimator.
        """
        self._is_precomputed = asks_for_labels(self.partitions)
        rows = self._open_rows(X, sample_weight, extra_partitions)
        with log_progress(self.verbose), tell_callbacks(self, X, y, sample_weight):
            return self._fit(rows, sample_weight)

    @_fit_context(prefer_skip_nested_validation=False)
    def fit_partitions(self, partitions, sample_weight=None):
        """Find clusters and outliers from partitions that are there already.

        Parameters
        ----------
        partitions : array-like or data frame of shape (n_samples, n_partitions)
            Labels, one column per partition; -1 means that the label is missing.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts in centres and objective.

        Returns
        -------
        self : COR
            The fitted estimator. :meth:`predict` and its kin take labels as well.
        """
        self._is_precomputed = True
        block = make_block(*self._read_labels(partitions, "partitions", reset=True))
        with (
            log_progress(self.verbose),
            tell_callbacks(self, partitions, None, sample_weight),
        ):
            return self._fit(self._cut_rows(block, sample_weight), sample_weight)

    def predict(self, X, extra_partitions=None):
        """Return the cluster of each row, -1 for outliers.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows; each is answered by itself.
        extra_partitions : array-like of shape (n_samples, n_extra), default=None
            Needed if they were given to :meth:`fit`.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster of each row, -1 for outliers.
        """
        costs = self._costs(X, extra_partitions)
        labels = costs.argmin(axis=1).astype(np.int32)
        labels[-costs.min(axis=1) < self.offset_] = -1
        return labels

    def transform(self, X, extra_partitions=None):
        """Return the cost of each row in each cluster; lower is nearer.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.
        extra_partitions : array-like of shape (n_samples, n_extra), default=None
            Needed if they were given to :meth:`fit`.

        Returns
        -------
        costs : ndarray of shape (n_samples, n_clusters)
            Costs in nats.
        """
        return self._costs(X, extra_partitions)

    def fit_transform(self, X, y=None, sample_weight=None, extra_partitions=None):
        """Find clusters and outliers and return the cost of each row in each cluster.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Here because scikit-learn passes it.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts in centres and objective.
        extra_partitions : array-like of shape (n_samples, n_extra), default=None
            Labels that are fused along with the other partitions.

        Returns
        -------
        costs : ndarray of shape (n_samples, n_clusters)
            Costs in nats.
        """
        self.fit(X, sample_weight=sample_weight, extra_partitions=extra_partitions)
        return self._costs(X, extra_partitions)

    def _costs(self, X, extra_partitions) -> np.ndarray:
        check_is_fitted(self)
        features, given = self._read(X, extra_partitions, reset=False)
        book = self._partitioner.book
        table = self._label_costs + self._rarity[:, None]

        def look_up(rows: np.ndarray, distances: np.ndarray) -> np.ndarray:
            return one_hot_rows(rows, book) @ table + distances[:, None]

        return self._look_up_rows(features, given, look_up)

    def score_samples(self, X, extra_partitions=None):
        """Return how normal each row is; lower is stranger.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.
        extra_partitions : array-like of shape (n_samples, n_extra), default=None
            Needed if they were given to :meth:`fit`.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Minus the cost of each row in its nearest cluster.
        """
        return -self._costs(X, extra_partitions).min(axis=1)

    def decision_function(self, X, extra_partitions=None):
        """Return how far each row is from being an outlier; outliers are negative.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.
        extra_partitions : array-like of shape (n_samples, n_extra), default=None
            Needed if they were given to :meth:`fit`.

        Returns
        -------
        decisions : ndarray of shape (n_samples,)
            ``score_samples(X) - offset_``.
        """
        return self.score_samples(X, extra_partitions) - self.offset_

    def explain(self, X, *, extra_partitions=None, n_features=5, feature_names=None):
        """Tell for each row what it costs and what sets it apart.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows; of the fit, or new ones.
        extra_partitions : array-like of shape (n_samples, n_extra), default=None
            Needed if they were given to :meth:`fit`.
        n_features : int, default=5
            How many features to name for each row.
        feature_names : sequence of str, default=None
            Names of the columns of X. None takes those of the fit's data frame, or
            else "feature 0", "feature 1" and so on.

        Returns
        -------
        explanation : data frame with one row per row of X
            Of the library of X; for arrays pandas, or else polars or pyarrow.

            - ``score``: what the row costs in its nearest cluster, the sum of
              ``label_cost`` (its labels), ``rarity_cost`` (how rare its cells are) and
              ``distance_cost`` (how far from their centres it lies).
            - ``label``: its cluster, -1 for an outlier; ``nearest_label``: also then.
            - ``disagreement``: share of the partitions that know the row in which its
              label is not the most common one of its nearest cluster.
            - ``feature_1``, ``difference_1``, and so on: the features that differ most
              from the mean of the nearest cluster, and by how many of the cluster's
              standard deviations. A category is named as "column = value", and its
              difference is that of a number that is as much rarer than the mean as the
              category is rarer than the most common one.

        See Also
        --------
        partition_costs : The label and rarity costs partition by partition.
        """
        check_is_fitted(self)
        if n_features < 0:
            raise ValueError(f"n_features={n_features} should be 0 or more.")
        features, given = self._read(X, extra_partitions, reset=False)
        judge, categories = self._judge, self._category_partitions(features)

        def look_up(rows: np.ndarray, distances: np.ndarray) -> np.ndarray:
            split = judge.split(rows)
            surprise = judge.surprise(rows, split.nearest, categories)
            return np.column_stack(
                [
                    split.nearest,
                    split.label_costs.sum(axis=1),
                    split.rarity_costs.sum(axis=1),
                    distances,
                    split.disagreement,
                    surprise,
                ]
            )

        found = self._look_up_rows(features, given, look_up)
        nearest = found[:, 0].astype(np.int32)
        scores = found[:, 1] + found[:, 2] + found[:, 3]
        columns = {
            "score": scores,
            "label": np.where(-scores < self.offset_, np.int32(-1), nearest),
            "nearest_label": nearest,
            "label_cost": found[:, 1],
            "rarity_cost": found[:, 2],
            "distance_cost": found[:, 3],
            "disagreement": found[:, 4],
        }
        which, differences = rank_features(
            features.numbers,
            features.missing,
            found[:, 5:],
            nearest,
            getattr(self, "_profile", None),
            n_features,
        )
        names = self._name_features(feature_names)
        for j in range(n_features):
            columns[f"feature_{j + 1}"] = names.of_rows(which[:, j], features)
            columns[f"difference_{j + 1}"] = differences[:, j]
        return make_frame(columns, X)

    def partition_costs(self, X, *, extra_partitions=None):
        """Return what each partition adds to the cost of each row.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.
        extra_partitions : array-like of shape (n_samples, n_extra), default=None
            Needed if they were given to :meth:`fit`.

        Returns
        -------
        costs : ndarray of shape (n_samples, n_partitions_)
            In the nearest cluster. Rows add up to the ``label_cost`` and the
            ``rarity_cost`` of :meth:`explain`, exactly: all costs are multiples of the
            same power of two.
        """
        check_is_fitted(self)
        features, given = self._read(X, extra_partitions, reset=False)
        judge = self._judge

        def look_up(rows: np.ndarray, _: np.ndarray) -> np.ndarray:
            split = judge.split(rows)
            return split.label_costs + split.rarity_costs

        return self._look_up_rows(features, given, look_up)

    @property
    def _judge(self) -> Judge:
        book = self._partitioner.book
        return Judge(book, self._label_costs, self._rarity, self._centers)

    def _category_partitions(self, features: Features) -> range:
        """Return the partitions that are categorical columns of X."""
        first = self._n_runs(self._partitioner) + len(self._partitioner.clusterers)
        return range(first, first + len(features.categories))

    def _name_features(self, feature_names) -> FeatureNames:
        if feature_names is None:
            feature_names = getattr(self, "feature_names_in_", None)
        return FeatureNames.make(
            feature_names,
            self.n_features_in_,
            None if self._is_precomputed else self.categorical_features,
            getattr(self, "feature_names_in_", None),
        )

    def __getstate__(self):
        """Return what is saved of the model: of memory maps, what is in them."""
        state = super().__getstate__()
        return {
            name: np.asarray(value) if isinstance(value, np.memmap) else value
            for name, value in state.items()
        }

    def __sklearn_is_fitted__(self):
        return hasattr(self, "labels_")

    @property
    def _n_features_out(self):
        return self._label_costs.shape[1]

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags

    def _open_rows(self, X, sample_weight, extra_partitions) -> RowBlocks:
        """Check X and return its rows in blocks."""
        if not is_source(X):
            block = make_block(*self._read(X, extra_partitions, reset=True))
            return self._cut_rows(block, sample_weight)
        self._refuse_extras(sample_weight, extra_partitions)
        return open_blocks(self, X, self._budget)

    @staticmethod
    def _refuse_extras(sample_weight, extra_partitions) -> None:
        given = {"sample_weight": sample_weight, "extra_partitions": extra_partitions}
        unusable = [name for name, value in given.items() if value is not None]
        if unusable:
            raise ValueError(
                f"{' and '.join(unusable)} cannot be used with rows that are read "
                "block by block. Give the rows as an array."
            )

    def _cut_rows(self, block: Block, sample_weight) -> MemoryBlocks:
        """Return rows in memory, as one block unless what is kept of them is large."""
        n_samples = block.features.n_samples
        budget = self._budget
        block_rows = budget.count_block_rows(0, self.n_partitions)
        is_small = budget.holds(n_samples, self.n_partitions)
        if sample_weight is not None:
            need_memory(
                weigh_states(n_samples, self.n_partitions),
                f"A fit of {n_samples:,} rows with sample_weight",
                "Leave sample_weight out, then less is kept of many rows, or lower "
                f"n_partitions (now {self.n_partitions}).",
            )
        if sample_weight is not None or (is_small and self.checkpoint_dir is None):
            return MemoryBlocks(block)
        return MemoryBlocks(block, cut_sizes(n_samples, block_rows))

    @property
    def _budget(self) -> Budget:
        return Budget(read_limit(self.memory_limit))

    def _fit(self, rows: RowBlocks, sample_weight):
        """Do the four stages."""
        self._forget()
        n_samples = int(rows.sizes.sum())
        weights = read_sample_weight(sample_weight, n_samples)
        if weights is not None and self.checkpoint_dir is not None:
            raise ValueError(
                f"sample_weight cannot be used with checkpoint_dir="
                f"'{self.checkpoint_dir}'. Leave one of them out."
            )
        self._check_numbers(n_samples)
        with use_threads(self.n_jobs) as threads:
            place = self._make_workplace(rows, threads)
            try:
                self._fit_in(place, weights)
            finally:
                if place.journal is not None:
                    place.journal.close()
        return self

    def _fit_in(self, place: Workplace, weights: np.ndarray | None) -> None:
        """Do the four stages in a workplace."""
        streams = make_streams(draw_fit_seed(self.random_state, place.journal))
        encoded = self._encode_rows(place, weights, streams)
        self._set_numbers(encoded, weights, streams, place.threads)
        fuser = self._make_fuser(encoded, weights, streams, place.threads)
        self._finish(encoded, place, weights, streams, fuser)

    def _make_workplace(self, rows: RowBlocks, threads: Threads) -> Workplace:
        """Return where the passes over rows are done."""
        journal = None
        if self.checkpoint_dir is not None:
            journal, rows = open_journal(self, rows)
        return LocalWorkplace(rows, threads, self._budget, journal)

    def _forget(self) -> None:
        """Drop what an earlier fit may have left."""
        for name in _OPTIONAL:
            self.__dict__.pop(name, None)

    def _finish(
        self,
        encoded: EncodedRows,
        place: Workplace,
        weights: np.ndarray | None,
        streams: Streams,
        fuser: Fuser | None,
    ) -> None:
        """Do the stages after the codes, with the numbers that are set."""
        outcome = self._fuse(encoded, place, weights, streams, fuser)
        self._set_model(encoded, outcome)
        self.storage_ = describe_storage(place.rows, encoded)
        for_labels, for_outliers = draw_again(
            self.n_partitions_, self.n_resamples, streams.confidence
        )
        tables = Tables(self._label_costs, self._rarity)
        summary, columns = place.answer(
            encoded.states,
            (tables, tables.all, outcome.cut.cost, for_labels),
            outcome.cut.n_level,
        )
        self.offset_ = -summary.largest if self.n_outliers_ else -np.inf
        self._warn_empty(int(np.count_nonzero(summary.n_kept)))
        if self.n_resamples:
            self.cluster_stability_ = measure_stability(
                summary.n_nearest, summary.n_again
            )
            self._doubt_outliers(
                encoded, columns, tables.all, for_outliers, place.threads
            )
        if encoded.has_numbers:
            self._profile = place.profile(columns, summary, weights)
            self.cluster_centers_ = self._profile.centers
            self.cluster_spreads_ = self._profile.spreads
        for name, values in columns.close().items():
            setattr(self, name, values)

    def _check_numbers(self, n_samples: int) -> None:
        """Refuse numbers that the rows cannot support, before any work."""
        least_clusters = 1 if self._chooses_clusters else self.n_clusters
        if not self._chooses_outliers:
            self._count_outliers(n_samples, least_clusters)
        elif n_samples < least_clusters:
            raise ValueError(
                f"n_samples={n_samples} should be >= n_clusters={least_clusters}. "
                "Lower n_clusters."
            )

    def _count_outliers(self, n_samples: int, n_clusters: int) -> int:
        """Return how many rows were asked to be set aside."""
        asked = None if self.n_outliers == "auto" else self.n_outliers
        return count_outliers(asked, self.contamination, n_samples, n_clusters)

    @property
    def _chooses_clusters(self) -> bool:
        return self.n_clusters == "auto"

    @property
    def _chooses_outliers(self) -> bool:
        return self.n_outliers == "auto" and self.contamination is None

    def _set_numbers(
        self,
        encoded: EncodedRows,
        weights: np.ndarray | None,
        streams: Streams,
        threads: Threads,
    ) -> None:
        """Choose the numbers of clusters and of outliers that were not given."""
        n_samples = encoded.n_samples
        self.selection_ = None
        if not (self._chooses_clusters or self._chooses_outliers):
            self.n_clusters_ = self.n_clusters
            self.n_outliers_ = self._count_outliers(n_samples, self.n_clusters)
            return
        # Rows without weight are labelled in the end but do not count.
        counted = encoded
        if weights is not None and not weights.all():
            counted = encoded.keep(np.flatnonzero(weights))
        if not self._chooses_clusters:
            check_codes(counted.n_codes, self.n_clusters, self._n_columns(encoded))
        self.selection_ = choose_numbers(
            counted,
            self._choosing(encoded.partitioner),
            self._find_limits(counted.n_samples, n_samples),
            streams.choice,
            threads,
        )
        self.n_clusters_ = self.selection_.n_clusters_
        self.n_outliers_ = self.selection_.n_outliers_
        if self._chooses_outliers and weights is not None and counted is not encoded:
            self.n_outliers_ += _count_as_strange(
                encoded, np.flatnonzero(weights), self.n_outliers_
            )
        logger.info(
            "%d clusters and %d outliers: %s",
            self.n_clusters_,
            self.n_outliers_,
            self.selection_.reason,
        )

    @staticmethod
    def _n_columns(encoded: EncodedRows) -> int:
        return len(encoded.partitioner.book.n_labels)

    def _find_limits(self, n_counted: int, n_samples: int) -> Limits:
        """Return between which numbers to choose."""
        if self._chooses_outliers:
            outliers = (0, int(self.contamination_max * n_counted))
        else:
            outliers = (self._count_outliers(n_samples, 1),) * 2
        if not self._chooses_clusters:
            return Limits((self.n_clusters,) * 2, outliers)
        clusters = limit_clusters(self.k_max, n_counted - outliers[0])
        why = f"k_max is {self.k_max}"
        if clusters[1] < self.k_max:
            why = "there are too few rows for more"
        return Limits(clusters, outliers, why_fixed=why)

    def _encode_rows(
        self, place: Workplace, weights: np.ndarray | None, streams: Streams
    ) -> EncodedRows:
        """Stages 1 and 2: from rows to codes, and what each row's position costs."""
        partitioner, basis = self._fit_partitions(place, weights, streams)
        partitioner = self._add_ruler(
            partitioner, basis, weights, streams, place.threads
        )
        states = place.encode(partitioner, weights)
        nothing = np.zeros(partitioner.book.n_slots)
        has_numbers = basis.source is not None
        encoded = EncodedRows(partitioner, states, nothing, has_numbers)
        encoded = replace(encoded, rarity=self._price_rarity(encoded))
        logger.info("%d rows have %d codes", encoded.n_samples, encoded.n_codes)
        if basis.has_missing or partitioner.runs is None:
            _warn_unlabelled(encoded)
        return encoded

    def _n_runs(self, partitioner: Partitioner) -> int:
        return 0 if partitioner.runs is None else len(partitioner.runs.n_labels)

    def _n_fine(self, partitioner: Partitioner) -> int:
        """Return how many K-means runs, the last ones, count as fine."""
        is_rps = self.strategy == "rps"
        return self._n_runs(partitioner) // 2 if is_rps else 0

    def _fine_range(self, n_samples: int) -> tuple[int, int] | None:
        """Return where every other run draws its number of clusters by default."""
        if self.strategy != "rps":
            return None
        most = min(2 * math.isqrt(n_samples), _FINE_CLUSTERS, _FINE_PAIRS // n_samples)
        least = 2 * self._n_typical
        # With few rows there is hardly room above the coarse runs.
        return (least, most) if most >= 2 * least else (2, max(most, least))

    @property
    def _n_typical(self) -> int:
        """The number of clusters that the runs draw theirs around."""
        if self._chooses_clusters or self._has_auto_range:
            return self.k_max // 2 + 1
        return self.n_clusters

    @property
    def _has_auto_range(self) -> bool:
        return isinstance(self.k_range, str)

    @property
    def _position_weight(self) -> float:
        if self.position_weight is None:
            return _POSITION_WEIGHTS[self.metric]
        return self.position_weight

    def _add_ruler(
        self,
        partitioner: Partitioner,
        basis: Basis,
        weights: np.ndarray | None,
        streams: Streams,
        threads: Threads,
    ) -> Partitioner:
        """Return the partitioner with what measures distances, if they count."""
        n_fine = self._n_fine(partitioner)
        if basis.source is None or not n_fine or not self._position_weight:
            return partitioner
        ruler = fit_ruler(
            partitioner.runs,
            n_fine,
            basis.source,
            weights,
            self._position_weight,
            streams.position,
            threads,
        )
        return replace(partitioner, ruler=ruler)

    def _price_rarity(self, encoded: EncodedRows) -> np.ndarray:
        """Return what each slot costs in all clusters, for being rare."""
        partitioner = encoded.partitioner
        table = rarity_table(
            partitioner.book,
            encoded.weigh_slots(),
            self._n_runs(partitioner),
            self._n_fine(partitioner),
        )
        return round_costs(self._position_weight * table)

    def _make_fuser(
        self,
        encoded: EncodedRows,
        weights: np.ndarray | None,
        streams: Streams,
        threads: Threads,
        *,
        keeps_more: bool = False,
    ) -> Fuser | None:
        """Return what fuses into any numbers; None if all depends on the numbers."""
        if not (self._chooses_clusters or self._has_auto_range):
            return None
        if self.init != "linkage":
            return None
        if keeps_more:
            encoded.states.keep_codes(_MOST_KEPT_SLOTS)
        rng = streams.fusion
        problem = self._sample_problem(encoded, weights, _FUSER_ROWS, rng, threads)
        return Fuser(problem, encoded.n_samples, rng)

    def _sample_problem(
        self,
        encoded: EncodedRows,
        weights: np.ndarray | None,
        n_rows: int,
        rng: np.random.Generator,
        threads: Threads,
    ) -> Problem:
        """Return the problem of the fusion on some of the rows, or on all."""
        n_all = encoded.n_samples
        chosen = np.arange(min(n_all, n_rows))
        if n_all > n_rows and weights is None:
            chosen = np.sort(draw_rows(rng, n_all, n_rows))
        elif n_all > n_rows and weights is not None:
            chosen = np.sort(rng.permutation(np.flatnonzero(weights))[:n_rows])
        codes, position = encoded.take(chosen)
        return Problem(
            codes,
            _DIVERGENCES[self.divergence](self.eps),
            self._settings(encoded.partitioner).scale(len(chosen), n_all),
            threads,
            None if weights is None else weights[chosen],
            position if encoded.has_position else None,
        )

    def _settings(self, partitioner: Partitioner) -> FusionSettings:
        n_init = self.n_init
        if n_init is None:
            n_init = N_STARTS if self.init == "linkage" else _N_RANDOM_STARTS
        return FusionSettings(
            self.n_clusters_,
            self.n_outliers_,
            self.init,
            n_init,
            self.max_iter,
            self._separating(partitioner),
        )

    def _fuse(
        self,
        encoded: EncodedRows,
        place: Workplace,
        weights: np.ndarray | None,
        streams: Streams,
        fuser: Fuser | None,
    ) -> Outcome:
        """Stage 3, with its checks before and after."""
        n_codes = encoded.n_codes
        if weights is not None:
            n_codes = encoded.keep(np.flatnonzero(weights)).n_codes
        check_codes(n_codes, self.n_clusters_, self._n_columns(encoded))
        whole = Whole(
            encoded.states,
            encoded.partitioner.book,
            _DIVERGENCES[self.divergence](self.eps),
            encoded.rarity,
            self._settings(encoded.partitioner),
            place.journal,
        )
        outcome = self._solve(whole, encoded, weights, streams, place.threads, fuser)
        if not outcome.converged:
            warnings.warn(
                f"The fusion stopped at max_iter={self.max_iter} before its objective "
                f"came to rest at {outcome.objective:.6g}. Raise max_iter.",
                ConvergenceWarning,
                stacklevel=7,
            )
        return outcome

    def _solve(
        self,
        whole: Whole,
        encoded: EncodedRows,
        weights: np.ndarray | None,
        streams: Streams,
        threads: Threads,
        fuser: Fuser | None,
    ) -> Outcome:
        """Come to rest on some rows, and do the last iterations on all."""
        rng, n_all = streams.fusion, encoded.n_samples
        if fuser is not None:
            best = fuser.rest(self.n_clusters_, self.n_outliers_)
            n_rows, n_iter = _FUSER_ROWS, _FUSER_ITERATIONS
        elif self.init == "linkage":
            n_rows, n_iter = _LINKAGE_ROWS, _LINKAGE_ITERATIONS
            best = self._sample_problem(
                encoded, weights, n_rows, rng, threads
            ).solve_best(rng)
        elif encoded.whole is not None:
            n_rows, n_iter = n_all, 0
            best = self._sample_problem(
                encoded, weights, n_rows, rng, threads
            ).solve_best(rng)
        else:
            return whole.solve_best(self._draw_starts(encoded, rng, threads))
        return whole.finish(best, n_iter) if n_all > n_rows else whole.adopt(best)

    def _draw_starts(
        self, encoded: EncodedRows, rng: np.random.Generator, threads: Threads
    ) -> list[np.ndarray]:
        """Return centres to start from, drawn from all codes."""
        settings = self._settings(encoded.partitioner)
        problem = Problem(
            encoded.merge_codes(self._budget.for_states),
            _DIVERGENCES[self.divergence](self.eps),
            settings,
            threads,
            None,
            None,
        )
        return [problem.draw_start(each) for each in rng.spawn(settings.n_init)]

    def _separating(self, partitioner: Partitioner) -> range:
        """Return the partitions by which restarts are compared, if not by objective."""
        if self.divergence == "holoentropy":
            return range(0)
        return self._telling(partitioner)

    def _telling(self, partitioner: Partitioner) -> range:
        """Return the partitions that tell how well clusters are separated."""
        n_runs, n_fine = self._n_runs(partitioner), self._n_fine(partitioner)
        if n_fine:
            return range(n_runs - n_fine, n_runs)
        return range(len(partitioner.book.n_labels))

    def _choosing(self, partitioner: Partitioner) -> Sequence[int]:
        """Return the partitions by which numbers are chosen.

        Where cells are missing, some runs see a part of the features only, and tell
        apart only what differs there.
        """
        telling, runs = self._telling(partitioner), partitioner.runs
        if runs is None:
            return telling
        n_runs = self._n_runs(partitioner)
        able = [j for j in telling if j >= n_runs or runs.see_all[j]]
        return able if len(able) >= _MIN_CHOOSING else telling

    def _set_model(self, encoded: EncodedRows, outcome: Outcome) -> None:
        """Set what prices new rows, and what the fusion came to."""
        book = encoded.partitioner.book
        divergence = _DIVERGENCES[self.divergence](self.eps)
        table = divergence.cost_table(outcome.centers, book, outcome.shares)
        self._partitioner = encoded.partitioner
        self._label_costs = table
        self._rarity = encoded.rarity
        self._centers = outcome.centers
        self.objective_ = outcome.objective
        self.objective_history_ = outcome.history
        self.n_iter_ = len(outcome.history)
        self.partition_centers_ = outcome.centers[:, book.is_label]
        self.n_labels_ = book.n_labels
        self.n_partitions_ = len(book.n_labels)
        self.n_codes_ = encoded.n_codes

    def _warn_empty(self, n_found: int) -> None:
        """Warn of clusters that kept no row."""
        if n_found < self.n_clusters_:
            warnings.warn(
                f"Only {n_found} of n_clusters={self.n_clusters_} clusters kept a row "
                f"after {self.n_outliers_} outliers were set aside; the others have "
                "none. Lower n_clusters or the number of outliers, or raise "
                "n_partitions.",
                ConvergenceWarning,
                stacklevel=7,
            )

    def _doubt_outliers(
        self,
        encoded: EncodedRows,
        columns: Columns,
        table: np.ndarray,
        resamples: list[np.ndarray],
        threads: Threads,
    ) -> None:
        """Say how sure it is that rows are outliers, from partitions drawn again."""
        rows, shares = np.zeros(0, dtype=np.intp), np.zeros(0)
        if self.n_outliers_:
            n_rows = count_candidates(self.n_outliers_, encoded.n_samples)
            if not self._can_hold(n_rows, encoded):
                return
            candidates = encoded.gather_candidates(table, n_rows)
            rows = candidates.rows
            shares = set_aside_again(
                candidates,
                encoded.partitioner.book,
                table,
                self.n_outliers_,
                resamples,
                threads,
            )
        columns.scatter("outlier_confidence_", rows, shares)

    def _can_hold(self, n_rows: int, encoded: EncodedRows) -> bool:
        """Return whether so many rows can be brought to one place, or warn."""
        n_bytes = n_rows * (self.n_partitions_ + 24)
        if encoded.whole is not None or n_bytes <= self._budget.for_rows:
            return True
        warnings.warn(
            f"outlier_confidence_ is left out: the {n_rows} rows that may be outliers "
            f"need {format_bytes(n_bytes)}, and the memory limit leaves "
            f"{format_bytes(self._budget.for_rows)} for them. Raise memory_limit, or "
            "lower the number of outliers.",
            UserWarning,
            stacklevel=8,
        )
        return False


def check_codes(n_codes: int, n_clusters: int, n_partitions: int) -> None:
    """Refuse more clusters than there are codes."""
    if n_codes < n_clusters:
        raise ValueError(
            f"Only {n_codes} distinct codes were found for n_clusters={n_clusters}. "
            f"Raise n_partitions (now {n_partitions}) or lower n_clusters."
        )


def _count_as_strange(
    encoded: EncodedRows, counted: np.ndarray, n_outliers: int
) -> int:
    """Return how many rows that do not count lie where outliers do."""
    if not encoded.has_position or not n_outliers:
        return 0
    _, position = encoded.take(np.arange(encoded.n_samples))
    cut = np.partition(position[counted], -n_outliers)[-n_outliers]
    return int(np.count_nonzero(np.delete(position, counted) >= cut))


def _warn_unlabelled(encoded: EncodedRows) -> None:
    """Warn of rows without any label; only missing cells can bring that about.

    Where all labels are given, such rows are refused.
    """
    n_rows, first = encoded.find_unlabelled()
    if n_rows and encoded.partitioner.runs is None:
        refuse_unlabelled(n_rows, first)
    if n_rows:
        warnings.warn(
            f"Too little is known of {n_rows} of {encoded.n_samples} rows: because of "
            "missing cells they have no label in any partition. They count as usual "
            f"rows; the first is row {first}. Drop them, or raise n_partitions.",
            UserWarning,
            stacklevel=7,
        )
