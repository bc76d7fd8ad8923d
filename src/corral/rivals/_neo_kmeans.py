"""NEO-K-Means: K-means whose clusters may overlap and need not cover all rows."""

import warnings
from numbers import Integral, Real
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from corral._outliers import costliest
from corral._sklearn_compat import Interval, StrOptions, _fit_context
from corral._threads import use_threads
from corral._tiles import RowSpace
from corral._validation import count_outliers
from corral.rivals._base import JointClusterer
from corral.rivals._descent import find_best_run
from corral.rivals._kmeans_minus_minus import Starts
from corral.rivals._sweeps import (
    Points,
    find_ends,
    fit_space,
    recover_centers,
    recover_costs,
)


class NEOKMeans(JointClusterer):
    r"""Non-exhaustive, overlapping K-means.

    K-means in which a row may belong to several clusters or to none. All memberships
    together are ``n_samples * (1 + alpha)``, and rows without any are the outliers.

    With U the matrix of memberships, it finds a local minimum of

    .. math::

        \min_U \sum_{k=1}^K \sum_{i=1}^n u_{ik} \, \|x_i - m_k\|^2, \quad
        m_k = \frac{\sum_i u_{ik} x_i}{\sum_i u_{ik}} \qquad \text{s.t.} \quad
        \operatorname{trace}(U^T U) = (1 + \alpha) n, \quad
        \sum_i \mathbb{1}\{(U \mathbf{1})_i = 0\} \le \beta n

    In each iteration the :math:`n - \beta n` rows nearest to a centre join that
    cluster, and then the :math:`\alpha n + \beta n` nearest of all other pairs of a row
    and a cluster are added.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of clusters K.

    n_outliers : int, default=None
        Largest number of outliers, :math:`\beta n`: so many rows need not be in any
        cluster.

    contamination : float, default=None
        The same as a share of the rows, :math:`\beta`; at most one of ``n_outliers``
        and ``contamination`` may be given. If neither is, 0.05 is used.

    alpha : float or None, default=0.0
        Overlap: there are ``n_samples * (1 + alpha)`` memberships. The smallest value,
        :math:`-\beta`, leaves none for a second membership of a row or for an outlier;
        None means just that. Then exactly ``n_outliers`` rows are outliers, and the
        method is K-means--. The largest is ``n_clusters - 1``.

    metric : {"euclidean", "cosine"}, default="euclidean"
        "cosine" uses rows and centres of unit length, and one less their cosine.

    init : {"random", "k-means++"} or array of shape (n_clusters, n_features), \
            default="random"
        Where a run starts: from random rows, from rows chosen far apart, or from these
        centres. Far apart are above all the outliers, so "k-means++" often ends with a
        cluster made of one of them.

    n_init : int or "auto", default="auto"
        Number of restarts. The one with the lowest objective is kept. "auto" means 10
        for ``init="random"`` and 1 otherwise. From given centres there is one run.

    max_iter : int, default=300
        Largest number of iterations of a run, which stops earlier when the objective no
        longer falls.

    n_jobs : int, default=None
        Number of threads. None means as many as BLAS may use. Results are the same for
        any number.

    random_state : int, RandomState instance or None, default=None
        Seed of the starts.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Nearest of each row's clusters, -1 for rows without any.
    nearest_labels_ : ndarray of shape (n_samples,)
        Nearest cluster of each row, of outliers too.
    memberships_ : csr_array of shape (n_samples, n_clusters), bool
        Which rows belong to which clusters.
    outlier_scores_ : ndarray of shape (n_samples,)
        Squared distance of each row to its nearest centre, or one less the cosine;
        higher is stranger.
    offset_ : float
        Rows with ``score_samples`` below it are outliers. Minus infinity if there are
        none.
    n_outliers_ : int
        Number of rows without any cluster, at most the number asked for.
    cluster_centers_ : ndarray of shape (n_clusters, n_features)
        Mean of the rows of each cluster; of unit length for cosine.
    objective_ : float
        Sum of the costs of all memberships.
    objective_history_ : ndarray of shape (n_iter_,)
        The objective after each iteration; it never rises.
    n_iter_ : int
        Number of iterations.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the features of X, if it was a data frame with names.

    See Also
    --------
    KMeansMinusMinus : The same without overlap, faster.

    Notes
    -----
    *Number of outliers.* Only the first :math:`n - \beta n` memberships have to be of
    different rows. The others may be second clusters of rows or first clusters of the
    rows left over, whichever cost less, so there may be fewer outliers than asked for.
    They are always the rows farthest from the centres, as in K-means--.

    *Cost.* An iteration takes time in proportion to
    ``n_samples * n_clusters * n_features``; pairs are selected, not sorted. Memory is
    that of a copy of X and of a few matrices of shape (n_samples, n_clusters).

    *Ties.* Where rows at the same distance compete for the last memberships, the last
    rows win, so that the first are set aside as in K-means--; of clusters at the same
    distance of one row the lower label wins.

    *Clusters without rows.* The centre of an emptied cluster moves to the costliest row
    that has a cluster. Where X has too few distinct rows, some clusters may stay empty;
    a ConvergenceWarning says so.

    Differs from the paper: it allows :math:`\alpha \ge 0` only, and leaves open what
    becomes of an emptied cluster. Cosine and restarts are added.

    References
    ----------
    .. [1] J. J. Whang, I. S. Dhillon and D. F. Gleich, "Non-exhaustive, Overlapping
       k-means", SIAM International Conference on Data Mining, 2015.
       https://doi.org/10.1137/1.9781611974010.105

    Examples
    --------
    >>> import numpy as np
    >>> from corral.rivals import NEOKMeans
    >>> rng = np.random.default_rng(0)
    >>> X = np.concatenate([rng.normal(0, 1, (50, 2)), rng.normal(9, 1, (50, 2))])
    >>> X[[3, 77]] = [[30.0, -20.0], [4.5, 4.5]]
    >>> model = NEOKMeans(2, n_outliers=1, alpha=0.01, random_state=0).fit(X)
    >>> np.flatnonzero(model.labels_ == -1)
    array([3])
    >>> model.memberships_.nnz
    101
    >>> model.memberships_.toarray()[77]
    array([ True,  True])
    """

    # Set by fit: the space of the rows, and the centres there.
    _space: RowSpace
    _centers: np.ndarray

    _parameter_constraints: ClassVar[dict] = {
        **JointClusterer._parameter_constraints,
        "alpha": [Interval(Real, -1, None, closed="neither"), None],
        "metric": [StrOptions({"euclidean", "cosine"})],
        "init": [StrOptions({"k-means++", "random"}), "array-like"],
        "n_init": [StrOptions({"auto"}), Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        n_outliers=None,
        contamination=None,
        alpha=0.0,
        metric="euclidean",
        init="random",
        n_init="auto",
        max_iter=300,
        n_jobs=None,
        random_state=None,
    ):
        self.n_clusters = n_clusters
        self.n_outliers = n_outliers
        self.contamination = contamination
        self.alpha = alpha
        self.metric = metric
        self.init = init
        self.n_init = n_init
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.random_state = random_state

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Find clusters and outliers.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Here because scikit-learn passes it.

        Returns
        -------
        self : NEOKMeans
            The fitted estimator.
        """
        X = self._read(X, reset=True)
        n_outliers = count_outliers(
            self.n_outliers, self.contamination, X.shape[0], self.n_clusters
        )
        n_extra = self._count_extra(X.shape[0], n_outliers)
        starts = Starts(self.init, self.n_init, self.n_clusters, X.shape[1])
        space = fit_space(self.metric, X, find_ends(X))
        with use_threads(self.n_jobs) as threads:
            points = Points(X, space, self.n_clusters, threads)
            problem = _Problem(points, n_outliers, n_extra, self.max_iter)
            runs = [
                problem.run(start)
                for start in starts.draw(points, space, None, self.random_state)
            ]
        best = runs[find_best_run([run.state.objective for run in runs])]
        self._warn(best)
        self._space = space
        self._centers = best.state.centers
        self.cluster_centers_ = recover_centers(space, best.state.centers)
        self.memberships_ = sparse.csr_array(best.state.memberships)
        n_alone = np.count_nonzero(~best.state.memberships.any(axis=1))
        self._set_outcome(recover_costs(space, best.state.costs), int(n_alone))
        self.objective_history_ = recover_costs(space, best.history)
        self.objective_ = float(self.objective_history_[-1])
        self.n_iter_ = len(best.history)
        return self

    def _count_extra(self, n_samples: int, n_outliers: int) -> int:
        """Return how many memberships there are beside one for each row to be kept."""
        if self.alpha is None:
            return 0
        n_extra = round(self.alpha * n_samples) + n_outliers
        if n_extra < 0 or self.alpha > self.n_clusters - 1:
            raise ValueError(
                f"alpha={self.alpha} should be between -n_outliers / n_samples = "
                f"{-n_outliers / n_samples:.6g} and n_clusters - 1 = "
                f"{self.n_clusters - 1}. Set alpha=None for no overlap."
            )
        return n_extra

    def _costs(self, X) -> np.ndarray:
        with use_threads(self.n_jobs) as threads:
            points = Points(X, self._space, self.n_clusters, threads)
            costs = points.all_costs(points.pack(self._centers))
        return recover_costs(self._space, costs)

    def _warn(self, best: "_Run") -> None:
        if not best.converged:
            warnings.warn(
                f"NEO-K-Means stopped at max_iter={self.max_iter} before its objective "
                f"came to rest at {best.state.objective:.6g}. Raise max_iter.",
                ConvergenceWarning,
                stacklevel=3,
            )
        n_filled = np.count_nonzero(best.state.memberships.any(axis=0))
        if n_filled < self.n_clusters:
            warnings.warn(
                f"Only {n_filled} of n_clusters={self.n_clusters} clusters have a row. "
                "Lower n_clusters or the number of outliers.",
                ConvergenceWarning,
                stacklevel=3,
            )


class _State(NamedTuple):
    """Centres, and what the rows make of them."""

    centers: np.ndarray
    costs: np.ndarray
    memberships: np.ndarray
    objective: float


class _Run(NamedTuple):
    """The outcome of one run."""

    state: _State
    history: np.ndarray
    converged: bool


class _Problem:
    """What stays the same in all runs of NEO-K-Means."""

    def __init__(
        self, points: Points, n_outliers: int, n_extra: int, max_iter: int
    ) -> None:
        self._points = points
        self._n_outliers = n_outliers
        self._n_extra = n_extra
        self._max_iter = max_iter

    def run(self, centers: np.ndarray) -> _Run:
        """Iterate from these centres until the objective no longer falls."""
        state = self._assign(centers)
        history: list[float] = []
        converged = False
        while not converged and len(history) < self._max_iter:
            before, state = state, self._assign(self._update(state))
            converged = not state.objective < before.objective
            if converged:
                state = before
            history.append(state.objective)
        return _Run(state, np.array(history), converged)

    def _assign(self, centers: np.ndarray) -> _State:
        """Choose the memberships that cost least."""
        costs = self._points.all_costs(self._points.pack(centers))
        memberships = choose_memberships(costs, self._n_outliers, self._n_extra)
        return _State(centers, costs, memberships, float(costs[memberships].sum()))

    def _update(self, state: _State) -> np.ndarray:
        """Return the means of the clusters, of unit length for cosine."""
        members = sparse.csr_array(state.memberships.T.astype(np.float64))
        sums = members @ self._points.values.astype(np.float64)
        sums = sums.toarray() if sparse.issparse(sums) else sums
        sizes = counts = state.memberships.sum(axis=0)
        if self._points.is_cosine:
            sizes = np.sqrt(np.einsum("ij,ij->i", sums, sums))
        exists = ((counts > 0) & (sizes > 0))[:, None]
        means = sums / np.where(exists, sizes[:, None], 1)
        centers = np.where(exists, means, state.centers)
        self._refill(centers, np.flatnonzero(counts == 0), state)
        return centers

    def _refill(self, centers: np.ndarray, empty: np.ndarray, state: _State) -> None:
        """Move the centres of empty clusters to the costliest rows that have one."""
        if not len(empty):
            return
        nearest = np.where(state.memberships, state.costs, np.inf).min(axis=1)
        nearest[np.isinf(nearest)] = 0
        # Of equal costs the first row; a row on a centre would fill nothing.
        rows = np.argsort(-nearest, kind="stable")[: len(empty)]
        rows = rows[nearest[rows] > 0]
        chosen = self._points.values[rows].astype(np.float64)
        chosen = chosen.toarray() if sparse.issparse(chosen) else chosen
        centers[empty[: len(rows)]] = chosen


def choose_memberships(costs: np.ndarray, n_outliers: int, n_extra: int) -> np.ndarray:
    """Choose the memberships of least cost, in two steps.

    Parameters
    ----------
    costs : ndarray of shape (n_rows, n_clusters)
    n_outliers : int
        So many rows get none in the first step.
    n_extra : int
        Number of memberships in the second step.

    Returns
    -------
    memberships : ndarray of shape (n_rows, n_clusters), bool
    """
    memberships = np.zeros(costs.shape, dtype=bool)
    # Step 1: all rows but the farthest join their nearest cluster.
    rows = np.arange(len(costs))
    memberships[rows, costs.argmin(axis=1)] = True
    memberships[costliest(costs.min(axis=1), n_outliers)] = False
    if n_extra == 0:
        return memberships
    # Step 2: of all other pairs, all but the costliest. Higher labels come first: of
    # equally costly pairs of a row, they are left out.
    others = np.flatnonzero(~memberships[:, ::-1])
    other_costs = costs[:, ::-1].ravel()[others]
    left_out = costliest(other_costs, len(others) - n_extra)
    reversed_memberships = np.ones(costs.size, dtype=bool)
    reversed_memberships[others[left_out]] = False
    return reversed_memberships.reshape(costs.shape)[:, ::-1]
