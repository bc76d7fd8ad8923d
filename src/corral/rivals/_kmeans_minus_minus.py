"""K-means--: K-means that sets aside the farthest rows in each iteration."""

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from numbers import Integral, Real
from typing import ClassVar, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.cluster import kmeans_plusplus
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_random_state
from sklearn.utils.validation import check_is_fitted

from corral._memory import Budget, read_limit
from corral._outliers import find_offset
from corral._row_blocks import RowBlocks, is_source
from corral._sklearn_compat import Interval, StrOptions, _fit_context
from corral._threads import Threads, use_threads
from corral._tiles import RowSpace
from corral._validation import check_scores, count_outliers, read_sample_weight
from corral.rivals._base import JointClusterer
from corral.rivals._block_runs import BlockRuns, Place, survey
from corral.rivals._descent import (
    Descent,
    Rules,
    choose_refills,
    find_best_run,
    take_costliest,
)
from corral.rivals._open_rows import LocalPlace, open_rows
from corral.rivals._sweeps import (
    Assignment,
    CellSums,
    Points,
    choose_grid,
    find_ends,
    fit_space,
    place_centers,
    recover_centers,
    recover_costs,
    spread_out,
)
from corral.rivals._totals import ExactTotal

# Restarts from random rows if `n_init="auto"`, as in scikit-learn.
_N_RANDOM_STARTS = 10

# So many rows are shuffled as a whole to draw some of them.
_SHUFFLED_ROWS = 2**22


class KMeansMinusMinus(
    ClassNamePrefixFeaturesOutMixin, TransformerMixin, JointClusterer
):
    r"""K-means--: clusters and outliers by distance in feature space.

    K-means in which the ``n_outliers`` rows farthest from their nearest centres are set
    aside in each iteration and do not pull at the centres. The number of outliers is
    exact, and which rows they are may change until the end.

    It finds a local minimum of

    .. math::

        \min_{L, C} \sum_{x \in X \setminus L} \min_{c \in C} d(x, c), \qquad
        |L| = o, \quad |C| = K

    with :math:`d(x, c) = \|x - c\|^2`, or :math:`1 - \cos(x, c)` for
    ``metric="cosine"``.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters K.

    n_outliers : int, default=None
        Number of rows o to set aside. Zero gives plain K-means.

    contamination : float, default=None
        Share of the rows to set aside; at most one of ``n_outliers`` and
        ``contamination`` may be given. If neither is, 0.05 is used.

    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine" is spherical K-means: rows and centres have unit length, as is right
        for text. A row of zeros costs 1 everywhere.

    init : {"random", "k-means++"} or array of shape (n_clusters, n_features), \
            default="random"
        Where a run starts: from random rows, from rows chosen far apart, or from these
        centres. Far apart are above all the outliers, so "k-means++" often ends with a
        cluster made of one of them.

    n_init : int or "auto", default="auto"
        Number of restarts. The one with the lowest objective is kept. "auto" means 10
        for ``init="random"`` and 1 otherwise. From given centres there is one run.

    max_iter : int, default=300
        Largest number of iterations of a run.

    tol : float, default=1e-4
        A run stops when its centres' squared moves add up to no more than this part of
        the mean variance of the features. Zero means when no row changes its cluster.

    n_jobs : int, default=None
        Number of threads. None means as many as BLAS may use. Results are the same for
        any number.

    memory_limit : int or str, default=None
        Bytes that the process may take, such as "2GB", for rows that are read block by
        block; rows that are in memory already do not count. None means half of what is
        free. Results are the same for any limit.

    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row, -1 for the outliers.
    nearest_labels_ : ndarray of shape (n_samples,)
        Nearest cluster of each row, of outliers too.
    outlier_scores_ : ndarray of shape (n_samples,)
        Squared distance of each row to its nearest centre, or one less the cosine;
        higher is stranger.
    offset_ : float
        Rows with ``score_samples`` below it are outliers. Minus infinity if
        ``n_outliers`` is zero.
    n_outliers_ : int
        Number of rows set aside.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Mean of the rows of each cluster, outliers left out; of unit length for cosine.
    objective_ : float
        Sum of the scores of the rows that were kept, times their weights.
    objective_history_ : ndarray of shape (n_iter_,)
        The objective with the centres of each iteration; it never rises.
    n_iter_ : int
        Number of iterations.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features of X, if it was a data frame with names.

    See Also
    --------
    corral.COR : K-means-- in the space of many partitions.
    NEOKMeans : Clusters may overlap as well.
    KMeansPlusOne : The smallest of ``n_clusters + 1`` clusters is the outlier set.
    sklearn.cluster.KMeans : Clusters without outliers.

    Notes
    -----
    *Cost.* An iteration takes time in proportion to
    ``n_samples * n_clusters * n_features``; the farthest rows are found by selection,
    without sorting. Beside X, a fit needs a copy of X and a few numbers per row.

    *Ties.* Exactly ``n_outliers`` rows are set aside. Where rows with the same score
    compete for the last places, the first are taken; :meth:`predict` has no such order
    and calls none of them an outlier. A row between two equally near centres goes to
    the lower label. Scores are rounded to twelve digits, so that rows which are equally
    far but for rounding tie.

    *Clusters without rows.* An emptied cluster is refilled with the farthest row that
    was kept. Where the rows that are kept have fewer distinct values than
    ``n_clusters``, some clusters end without any; a ConvergenceWarning says so, and
    their centres stay where they were last.

    *Weights.* ``sample_weight`` counts in the centres and in the objective. Which rows
    are set aside depends on their distance only, and each counts as one. Then an
    iteration could raise the objective; the run ends before it.

    *Rows that do not fit into memory.* A source gives the same result as its rows in
    memory, to the last bit. All restarts take part in the same passes over the rows,
    mostly one for each iteration; the farthest rows are found exactly over all blocks.
    Labels and scores are memory maps where they are large. "k-means++" needs the rows
    in memory.

    *Storage.* Dense and sparse rows give the same labels but for rounding, for any
    number of threads. Constant columns change nothing.

    Differs from the paper: the paper leaves open what becomes of an emptied cluster and
    which of equally far rows are set aside, and has no restarts and no weights.

    References
    ----------
    .. [1] S. Chawla and A. Gionis, "k-means--: A Unified Approach to Clustering and
       Outlier Detection", SIAM International Conference on Data Mining, 2013.
       https://doi.org/10.1137/1.9781611972832.21

    Examples
    --------
    >>> import numpy as np
    >>> from corral.rivals import KMeansMinusMinus
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (50, 2)), rng.normal(9, 1, (50, 2))])
    >>> X[[3, 77]] = [[30.0, -20.0], [-25.0, 40.0]]
    >>> model = KMeansMinusMinus(2, n_outliers=2, random_state=0).fit(X)
    >>> np.flatnonzero(model.labels_ == -1)
    array([ 3, 77])
    >>> model.predict([[0.5, 0.5], [100.0, -100.0]]) == model.labels_[[0, 3]]
    array([ True,  True])
    """

    # Set by fit: the space of the rows, and the centres there.
    _space: RowSpace
    _centers: np.ndarray

    _parameter_constraints: ClassVar[dict] = {
        **JointClusterer._parameter_constraints,
        "metric": [StrOptions({"euclidean", "cosine"})],
        "init": [StrOptions({"k-means++", "random"}), "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "n_jobs": [Integral, None],
        "memory_limit": [Interval(Integral, 1, None, closed="left"), str, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        n_outliers=None,
        contamination=None,
        metric="euclidean",
        init="random",
        n_init="auto",
        max_iter=300,
        tol=1e-4,
        n_jobs=None,
        memory_limit=None,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.n_outliers = n_outliers
        self.contamination = contamination
        self.metric = metric
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.n_jobs = n_jobs
        self.memory_limit = memory_limit
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None, sample_weight=None):
        """Find clusters and outliers.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows. Rows that do not fit into memory are read block by block from the
            path of a Parquet, CSV or NPY file or of a folder of Parquet files, from a
            function that returns a new iterator over blocks, or from what
            :func:`corral.sources.open_source` returns.
        y : Ignored
            Here because scikit-learn passes it.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts in centres and objective. Not for rows that are
            read block by block.

        Returns
        -------
        self : KMeansMinusMinus
            The fitted estimator.
        """
        fit = self._fit_blocks if self._reads_blocks(X) else self._fit_memory
        self._warn(fit(X, sample_weight))
        return self

    def _reads_blocks(self, X) -> bool:
        return is_source(X)

    def _fit_memory(self, X, sample_weight) -> "_Best":
        """Fit rows in memory."""
        X = self._read(X, reset=True)
        n_outliers = self._count_outliers(X.shape[0])
        weights = read_sample_weight(sample_weight, X.shape[0])
        starts = Starts(self.init, self.n_init, self.n_clusters, X.shape[1])
        ends = find_ends(X)
        space = fit_space(self.metric, X, ends)
        with use_threads(self.n_jobs) as threads:
            points = Points(X, space, self.n_clusters, threads)
            usual = points.squares[:: spread_out(points.n_rows)]
            grid = choose_grid(space, ends, usual, points.n_rows, weights)
            sums = CellSums(points, weights, self.n_clusters + 1, grid)
            is_weighted = weights is not None
            rules = Rules(grid, points.is_cosine, is_weighted, self.max_iter, self.tol)
            problem = _Problem(points, weights, sums, n_outliers, rules)
            runs = [
                problem.run(start)
                for start in starts.draw(points, space, weights, self.random_state)
            ]
        best = runs[find_best_run([run.objective for run in runs])]
        self.nearest_labels_ = best.labels
        self.labels_ = best.labels.copy()
        self.labels_[best.outliers] = -1
        self.outlier_scores_ = recover_costs(space, best.costs)
        self.offset_ = find_offset(self.outlier_scores_, best.outliers, n_outliers)
        # The weights were scaled to a mean of 1.
        given = 1.0 if sample_weight is None else np.asarray(sample_weight, dtype=float)
        self._set_outcome_of(best, space, n_outliers, float(np.mean(given)))
        return best

    def _count_outliers(self, n_samples: int) -> int:
        return count_outliers(
            self.n_outliers, self.contamination, n_samples, self.n_clusters
        )

    def _fit_blocks(self, X, sample_weight) -> "_Best":
        """Fit rows that are read block by block."""
        if sample_weight is not None:
            raise ValueError(
                "sample_weight cannot be used with rows that are read block by block. "
                "Give the rows as an array."
            )
        rows = self._open_rows(X)
        n_samples = int(rows.sizes.sum())
        n_outliers = self._count_outliers(n_samples)
        starts = Starts(self.init, self.n_init, self.n_clusters, self.n_features_in_)
        with use_threads(self.n_jobs) as threads:
            place = self._make_place(rows, threads)
            chosen = starts.choose_rows(n_samples, self.random_state)
            wanted, places = np.unique(chosen, return_inverse=True)
            ground, taken = survey(place, self.metric, self.n_clusters, wanted)
            rules = Rules(
                ground.grid, self.metric == "cosine", False, self.max_iter, self.tol
            )
            runs = BlockRuns(place, ground, rules, n_outliers)
            rows_of_starts = places.reshape(chosen.shape)
            best, told, columns = runs.find_best(
                starts.place(ground.space, taken, rows_of_starts)
            )
        for name, values in columns.close().items():
            setattr(self, name, values)
        self.offset_ = -told.largest if n_outliers else -np.inf
        self._set_outcome_of(best, ground.space, n_outliers)
        return best

    def _open_rows(self, X) -> RowBlocks:
        """Return the rows of a source in blocks."""
        return open_rows(self, X, self._budget)

    def _make_place(self, rows: RowBlocks, threads: Threads) -> Place:
        """Return where the passes over rows are made."""
        return LocalPlace(rows, threads, self._budget)

    @property
    def _budget(self) -> Budget:
        return Budget(read_limit(self.memory_limit))

    def _set_outcome_of(
        self, best: "_Best", space: RowSpace, n_outliers: int, mean_weight: float = 1.0
    ) -> None:
        """Set what is not told of each row."""
        self._space = space
        self._centers = best.centers
        self.cluster_centers_ = recover_centers(space, best.centers)
        self.n_outliers_ = n_outliers
        self.objective_history_ = recover_costs(space, best.history * mean_weight)
        self.objective_ = float(self.objective_history_[-1])
        self.n_iter_ = len(best.history)

    def predict(self, X):
        """Return the cluster of each row, -1 for outliers.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows; each is answered by itself.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster of each row, -1 for outliers.
        """
        labels, costs = self._find_nearest(X)
        labels[-costs < self.offset_] = -1
        return labels

    def score_samples(self, X):
        """Return how normal each row is; lower is stranger.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Minus the squared distance of each row to its nearest centre, or the cosine
            less one.
        """
        return -self._find_nearest(X)[1]

    def transform(self, X):
        """Return the cost of each row in each cluster; lower is nearer.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        costs : ndarray of shape (n_samples, n_clusters)
            Squared distances, or one less the cosines.
        """
        return self._read_costs(X)

    def fit_transform(self, X, y=None, sample_weight=None):
        """Find clusters and outliers and return the cost of each row in each cluster.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Here because scikit-learn passes it.
        sample_weight : array-like of shape (n_samples,), default=None
            How much each row counts in centres and objective.

        Returns
        -------
        costs : ndarray of shape (n_samples, n_clusters)
            Squared distances, or one less the cosines.
        """
        return self.fit(X, sample_weight=sample_weight).transform(X)

    def _costs(self, X) -> np.ndarray:
        with use_threads(self.n_jobs) as threads:
            points = Points(X, self._space, self.n_clusters, threads)
            costs = points.all_costs(points.pack(self._centers))
        return recover_costs(self._space, costs)

    def _find_nearest(self, X) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest cluster of each row and what the row costs there."""
        check_is_fitted(self)
        X = self._read(X, reset=False)
        with use_threads(self.n_jobs) as threads:
            points = Points(X, self._space, self.n_clusters, threads)
            found = points.assign(points.pack(self._centers))
            costs = points.costs(slice(None), found.labels, found.centers)
        costs = recover_costs(self._space, costs)
        check_scores(costs, type(self).__name__)
        return found.labels, costs

    def _warn(self, best: "_Best") -> None:
        if not best.converged:
            warnings.warn(
                f"K-means-- stopped at max_iter={self.max_iter} before its objective "
                f"came to rest at {best.history[-1]:.6g}. Raise max_iter.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if best.n_filled < self.n_clusters:
            warnings.warn(
                f"Only {best.n_filled} of n_clusters={self.n_clusters} clusters kept a "
                f"row after {self.n_outliers_} outliers were set aside; the others "
                "have none. Lower n_clusters or the number of outliers.",
                ConvergenceWarning,
                stacklevel=4,
            )

    @property
    def _n_features_out(self) -> int:
        return len(self.cluster_centers_)


class _Best(Protocol):
    """The run that is kept, wherever its rows are."""

    @property
    def centers(self) -> np.ndarray:
        """Of shape (n_clusters, n_features), float64, in the space of the rows."""

    @property
    def history(self) -> np.ndarray:
        """The objective after each iteration, in the space of the rows."""

    @property
    def converged(self) -> bool:
        """Whether the centres rest."""

    @property
    def n_filled(self) -> int:
        """Number of clusters that kept a row."""


class Starts:
    """The centres from which runs start.

    Parameters
    ----------
    init : {"k-means++", "random"} or array of shape (n_clusters, n_features)
    n_init : int or "auto"
    n_clusters, n_features : int
    """

    def __init__(self, init, n_init, n_clusters: int, n_features: int) -> None:
        self._n_clusters = n_clusters
        self._given: np.ndarray | None = None
        self._kind = init
        if not isinstance(init, str):
            self._given = _check_init(init, (n_clusters, n_features))
            self._kind = "given"
        if self._kind == "given":
            n_init = 1
        elif n_init == "auto":
            n_init = _N_RANDOM_STARTS if self._kind == "random" else 1
        self._n_starts = n_init

    def draw(
        self, points: Points, space: RowSpace, weights: np.ndarray | None, random_state
    ) -> Iterator[np.ndarray]:
        """Yield the centres of each run, in the space of the rows, in float64."""
        if self._given is not None:
            yield place_centers(space, self._given)
            return
        draw = {"random": _draw_rows, "k-means++": _draw_far_apart}[self._kind]
        rng = check_random_state(random_state)
        for _ in range(self._n_starts):
            yield _widen(points.values[draw(points, self._n_clusters, weights, rng)])

    def choose_rows(self, n_rows: int, random_state) -> np.ndarray:
        """Return the rows of :meth:`draw` if they can be chosen without being seen.

        Returns
        -------
        rows : ndarray of shape (n_starts, n_clusters)
        """
        if self._kind == "k-means++":
            raise ValueError(
                "init='k-means++' cannot be used with rows that are read block by "
                "block. Use init='random' or give the centres."
            )
        rng = check_random_state(random_state)
        n_starts = 0 if self._given is not None else self._n_starts
        rows = [draw_few(rng, n_rows, self._n_clusters) for _ in range(n_starts)]
        return np.array(rows, dtype=np.intp).reshape(n_starts, self._n_clusters)

    def place(self, space: RowSpace, taken, rows: np.ndarray) -> list[np.ndarray]:
        """Return the centres of :meth:`draw` from rows that were read.

        Parameters
        ----------
        space : RowSpace
        taken : ndarray or CSR of shape (n_taken, n_features)
        rows : ndarray of shape (n_starts, n_clusters)
            Which of them.
        """
        if self._given is not None:
            return [place_centers(space, self._given)]
        points = space.place(taken.astype(space.dtype, copy=False))
        return [_widen(points[chosen]) for chosen in rows]


def _widen(points) -> np.ndarray:
    """Return points as an array in float64."""
    wide = points.astype(np.float64)
    return wide.toarray() if sparse.issparse(wide) else wide


def _check_init(init, shape: tuple[int, int]) -> np.ndarray:
    init = check_array(init, dtype=np.float64, input_name="init")
    if init.shape != shape:
        raise ValueError(
            f"init has shape {init.shape}; it should be (n_clusters, n_features) = "
            f"{shape}."
        )
    return init


def _draw_rows(
    points: Points,
    n_clusters: int,
    weights: np.ndarray | None,
    rng: np.random.RandomState,
) -> np.ndarray:
    if weights is not None and np.count_nonzero(weights) >= n_clusters:
        chances = weights / weights.sum()
        return rng.choice(points.n_rows, n_clusters, replace=False, p=chances)
    return draw_few(rng, points.n_rows, n_clusters)


def draw_few(rng: np.random.RandomState, n_rows: int, n_drawn: int) -> np.ndarray:
    """Draw a few rows without repetition, in random order.

    Takes memory for the rows that are drawn only where there are very many.
    """
    if n_rows <= _SHUFFLED_ROWS:
        return rng.choice(n_rows, n_drawn, replace=False)
    drawn: dict[int, None] = {}
    while len(drawn) < n_drawn:
        drawn[int(rng.randint(n_rows, dtype=np.int64))] = None
    return np.array(list(drawn))


def _draw_far_apart(
    points: Points,
    n_clusters: int,
    weights: np.ndarray | None,
    rng: np.random.RandomState,
) -> np.ndarray:
    return kmeans_plusplus(
        points.values, n_clusters, sample_weight=weights, random_state=rng
    )[1]


class _Run(NamedTuple):
    """The outcome of one run."""

    centers: np.ndarray
    labels: np.ndarray
    outliers: np.ndarray
    costs: np.ndarray
    history: np.ndarray
    converged: bool
    n_filled: int

    @property
    def objective(self) -> float:
        return float(self.history[-1])


@dataclass
class _State:
    """Where the rows are: nearest labels, which are set aside, and all cells.

    A row's cell is its label, or ``n_clusters`` if it is set aside.
    """

    found: Assignment
    outliers: np.ndarray
    cells: np.ndarray


class _Problem:
    """Runs of K-means-- on rows in memory."""

    def __init__(
        self,
        points: Points,
        weights: np.ndarray | None,
        sums: CellSums,
        n_outliers: int,
        rules: Rules,
    ) -> None:
        self._points = points
        self._weights = weights
        self._sums = sums
        # The last cell holds the rows that are set aside.
        self._n_clusters = sums.n_cells - 1
        self._n_outliers = n_outliers
        self._rules = rules
        self._bases = self._weigh(points.base_costs)
        self._all_bases = ExactTotal.of(self._bases)
        self._squares = ExactTotal.of(self._weigh(points.squares))

    def _weigh(self, values: np.ndarray) -> np.ndarray:
        return values if self._weights is None else self._weights * values

    def run(self, centers: np.ndarray) -> _Run:
        """Iterate from these centres until they rest."""
        state = self._assign(centers)
        self._sums.clear()
        self._sums.move(slice(None), None, state.cells)
        descent = Descent(self._rules, centers)
        descent.begin(self._sums.values, self._squares, self._all_bases)
        while not descent.is_over:
            self._refill_empty_cells(state)
            before = state
            state = self._assign(descent.step(self._sums.values))
            self._move(before, state)
            aside = ExactTotal.of(self._bases[state.outliers])
            descent.judge(self._sums.values, aside)
            if descent.rose:
                state = before
        return self._conclude(state, descent)

    def _assign(self, centers: np.ndarray) -> _State:
        """Find the nearest centres and set the farthest rows aside."""
        found = self._points.assign(self._points.pack(centers))
        outliers = self._points.find_costliest(found, self._n_outliers)
        cells = found.labels.copy()
        cells[outliers] = self._n_clusters
        return _State(found, outliers, cells)

    def _move(self, old: _State, new: _State) -> None:
        """Let the sums follow the rows."""
        rows = np.flatnonzero(old.cells != new.cells)
        if len(rows):
            self._sums.move(rows, old.cells[rows], new.cells[rows])

    def _refill_empty_cells(self, state: _State) -> None:
        """Move the costliest rows that are kept into the cells that have none."""
        empty = np.flatnonzero(self._rules.join(self._sums.values)[1][:-1] == 0)
        if not len(empty):
            return
        costs = self._exact_costs(state)
        counted = (
            np.ones(len(costs), bool) if self._weights is None else self._weights > 0
        )
        counts = np.bincount(state.cells[counted], minlength=self._n_clusters + 1)
        movable = counted & (state.cells < self._n_clusters) & (costs > 0)
        rows = take_costliest(np.flatnonzero(movable), costs, self._n_clusters)
        for place, cell in choose_refills(empty, state.cells[rows], counts):
            moved = rows[[place]]
            self._sums.move(moved, state.cells[moved], np.array([cell]))
            state.cells[moved] = cell

    def _exact_costs(self, state: _State) -> np.ndarray:
        return self._points.costs(slice(None), state.found.labels, state.found.centers)

    def _conclude(self, state: _State, descent: Descent) -> _Run:
        costs = self._exact_costs(state)
        kept = np.ones(len(costs), dtype=bool)
        kept[state.outliers] = False
        return _Run(
            centers=state.found.centers.values,
            labels=state.found.labels,
            outliers=state.outliers,
            costs=costs,
            history=descent.conclude(ExactTotal.of(self._weigh(costs)[kept])),
            converged=descent.converged,
            n_filled=int(
                np.count_nonzero(np.bincount(state.cells)[: self._n_clusters])
            ),
        )
