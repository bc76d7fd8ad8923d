"""Clusters and outliers from one integer program, by Lagrangian relaxation."""

import warnings
from numbers import Integral, Real
from typing import ClassVar, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from corral._blocks import cut_rows
from corral._outliers import costliest
from corral._sklearn_compat import Interval, _fit_context
from corral._validation import count_outliers
from corral.rivals._exemplars import (
    _BLOCK_ENTRIES,
    ExemplarClusterer,
    bracket_cost,
    find_nearest,
    guess_cost,
    search_cost,
    split_rows,
    sum_smallest,
)

# Polyak's factor starts at 2, the largest with which the multipliers are sure to come
# nearer to the best ones, and is halved after so many steps that each close less than
# this share of the gap: on pure noise, 5 steps leave a larger gap and 15 take longer
# without a smaller one. Below the last value the steps move nothing that could be seen.
_FIRST_FACTOR = 2.0
_PATIENCE = 10
_PROGRESS = 0.01
_LAST_FACTOR = 1e-3


class LagrangianClustering(ExemplarClusterer):
    r"""Clusters around exemplars with a given number of outliers, with a bound.

    Which rows are exemplars, which row belongs to which and which are outliers is one
    integer program, facility location with outliers. Its assignment constraints are
    relaxed, the multipliers are improved by subgradient steps, and each step gives both
    a lower bound of the best objective and a solution:

    .. math::

        \min_{x, y, o \in \{0, 1\}} \; \sum_j f\, y_j + \sum_{ij} d_{ij} x_{ij}
        \quad \text{s.t.} \quad
        \sum_j x_{ij} + o_i = 1, \quad x_{ij} \le y_j, \quad \sum_i o_i = L

    with the bound, for multipliers :math:`\lambda_i \ge 0`,

    .. math::

        \sum_i \lambda_i - \sum_{i \in \text{the } L \text{ largest}} \lambda_i
        + \sum_j \min(\mu_j, 0), \qquad
        \mu_j = f + \sum_i \min(d_{ij} - \lambda_i, 0).

    Parameters
    ----------
    n_clusters : int, default=8
        The creation cost is searched that gives this number of clusters. Has no say
        when ``creation_cost`` is given.
    creation_cost : float, default=None
        What each cluster costs, f, in units of the metric; the number of clusters
        follows from it. None to search it.
    n_outliers : int, default=None
        How many rows are outliers, L.
    contamination : float, default=None
        Share of rows that are outliers, 0.05 if neither this nor ``n_outliers`` is
        given.
    metric : str or callable, default="euclidean"
        A symmetric metric of :func:`sklearn.metrics.pairwise_distances`, but for
        "precomputed", "seuclidean" and "mahalanobis". Distances have to be finite. The
        program takes any dissimilarity; "sqeuclidean" is the cost
        of K-means.
    max_iter : int, default=500
        Most subgradient steps for one creation cost.
    tol : float, default=1e-3
        Stop when the relative gap between solution and bound is at most this.
    memory_limit : int or str, default="1GiB"
        Most memory for the distances, in bytes or with a unit as in "500MB" or
        "2GiB". A fit that needs more is refused before it begins.

    Attributes
    ----------
    labels_ : ndarray of shape (n_samples,)
        Cluster of each row; exactly ``n_outliers_`` rows are -1.
    nearest_labels_ : ndarray of shape (n_samples,)
        Cluster of each row, also of outliers.
    outlier_scores_ : ndarray of shape (n_samples,)
        Distance of each row to its nearest exemplar; higher is stranger.
    exemplars_ : ndarray of shape (n_exemplars,)
        The rows that are exemplars, in ascending order; cluster k has the k-th.
    cluster_centers_ : ndarray or CSR of shape (n_exemplars, n_features)
        The exemplars themselves.
    creation_cost_ : float
        The creation cost, given or found.
    objective_ : float
        Creation costs plus the distances of all rows that are not outliers.
    lower_bound_ : float
        No solution has a smaller objective.
    gap_ : float
        ``(objective_ - lower_bound_) / objective_``; 0 proves the solution best.
    n_iter_ : int
        Subgradient steps at ``creation_cost_``.
    n_outliers_ : int
        Number of outliers.
    offset_ : float
        Rows with ``score_samples`` below it are outliers.
    n_features_in_ : int
        Number of features of X.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if X has such.

    See Also
    --------
    KMedianOutliers : Exemplars with a guarantee instead of a bound.
    KMeansMinusMinus : Means instead of exemplars, in linear time and memory.

    Notes
    -----
    The distances of all pairs take ``8 * n_samples**2`` bytes, the bound of which is
    ``memory_limit``. A step takes time in proportion to ``n_samples**2``, and the
    search for a creation cost tries up to about twenty, each beginning with the
    multipliers of the one before.

    The search begins with what the K-th exemplar saves when exemplars are added one by
    one, and brackets and bisects from there. Not every number of clusters is best for
    some cost: if none of the costs tried gives ``n_clusters``, the solution with the
    closest number is taken and a ``ConvergenceWarning`` says so. Among few distinct
    rows it is fewer.

    A gap may remain however long one iterates, because the relaxed program may take
    fractions of exemplars: with all rows equal, the gap is L / n_samples. Stopping at
    ``max_iter`` with a gap above ``tol`` is announced by a ``ConvergenceWarning``.

    Of rows with equal costs, the first are exemplars or outliers. Duplicates of an
    exemplar cost nothing and constant columns change nothing. An exemplar may be an
    outlier only where more than ``n_samples - n_outliers_`` rows cost nothing. Sparse
    rows are made dense block by block, and are answered like dense ones.

    Differs from the paper: the steps have Polyak's length, :math:`\rho\,(U - l) /
    \lVert s \rVert^2` with the best objective U, the present bound l and the
    subgradient s, where :math:`\rho` is halved whenever the bound stalls; a geometric
    sequence of lengths would have to be tuned to the scale of the distances. The
    solution of a step opens exemplars in the order of :math:`\mu_j`, leaving out rows
    that an earlier one serves and exemplars that do not pay; a better one than any
    before has its exemplars moved to the medians of their clusters. The search for
    ``n_clusters`` is ours.

    References
    ----------
    L. Ott, L. Pang, F. Ramos and S. Chawla, "On Integrated Clustering and Outlier
    Detection", Advances in Neural Information Processing Systems 27, 2014.

    M. Held, P. Wolfe and H. P. Crowder, "Validation of Subgradient Optimization",
    Mathematical Programming 6, 1974, doi:10.1007/BF01580223.

    Examples
    --------
    >>> import numpy as np
    >>> from corral.rivals import LagrangianClustering
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0], [99.0]])
    >>> model = LagrangianClustering(n_clusters=2, n_outliers=1).fit(X)
    >>> model.labels_
    array([ 0,  0,  0,  1,  1,  1, -1], dtype=int32)
    >>> model.exemplars_
    array([1, 4])
    >>> model.predict([[3.0], [50.0]])
    array([-1, -1], dtype=int32)
    >>> model.predict([[1.5], [11.5]])
    array([0, 1], dtype=int32)
    """

    _parameter_constraints: ClassVar[dict] = {
        **ExemplarClusterer._parameter_constraints,
        "creation_cost": [Interval(Real, 0, None, closed="neither"), None],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }

    def __init__(
        self,
        n_clusters=8,
        *,
        creation_cost=None,
        n_outliers=None,
        contamination=None,
        metric="euclidean",
        max_iter=500,
        tol=1e-3,
        memory_limit="1GiB",
    ):
        self.n_clusters = n_clusters
        self.creation_cost = creation_cost
        self.n_outliers = n_outliers
        self.contamination = contamination
        self.metric = metric
        self.max_iter = max_iter
        self.tol = tol
        self.memory_limit = memory_limit

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
        self : LagrangianClustering
            The fitted estimator.
        """
        X = self._read(X, reset=True)
        n_clusters = self.n_clusters if self.creation_cost is None else 0
        n_outliers = count_outliers(
            self.n_outliers, self.contamination, X.shape[0], n_clusters
        )
        distances = self._distances(X)
        solution = self._solve(distances, n_outliers)
        kept = self._set_exemplars(X, distances, solution.exemplars, n_outliers)
        objective = float(kept.sum()) + solution.creation_cost * len(self.exemplars_)
        # Rounding may lift a bound that is met above what it bounds.
        lower_bound = min(solution.lower_bound, objective)
        self.gap_ = (objective - lower_bound) / objective
        self.creation_cost_ = float(self._ruler.recover(solution.creation_cost))
        self.objective_ = float(self._ruler.recover(objective))
        self.lower_bound_ = float(self._ruler.recover(lower_bound))
        self.n_iter_ = solution.n_iter
        self._warn_about(solution)
        return self

    def _solve(self, distances: np.ndarray, n_outliers: int) -> "Solution":
        multipliers = np.zeros(len(distances))

        def solve(creation_cost: float) -> Solution:
            # Multipliers of a similar cost are a better start than none.
            nonlocal multipliers
            solution, multipliers = solve_program(
                distances,
                creation_cost,
                n_outliers,
                multipliers,
                max_iter=self.max_iter,
                tol=self.tol,
            )
            return solution

        if self.creation_cost is not None:
            return solve(self._ruler.scale(float(self.creation_cost)))
        low, high = bracket_cost(distances)
        first = guess_cost(distances, self.n_clusters, n_outliers)
        tried = search_cost(solve, self.n_clusters, first, low, high)
        return min(tried, key=lambda each: abs(len(each.exemplars) - self.n_clusters))

    def _warn_about(self, solution: "Solution") -> None:
        found = len(self.exemplars_)
        if self.creation_cost is None and found != self.n_clusters:
            warnings.warn(
                f"No creation cost was found that gives n_clusters={self.n_clusters}; "
                f"the closest, creation_cost={self.creation_cost_:g}, gives {found} "
                "clusters, which were taken. Set another n_clusters or creation_cost.",
                ConvergenceWarning,
                stacklevel=4,
            )
        if solution.is_cut_short and self.gap_ > self.tol:
            warnings.warn(
                f"Stopped at max_iter={self.max_iter} with gap_={self.gap_:.3g} above "
                f"tol={self.tol:g}. Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )


class Relaxed(NamedTuple):
    """The best solution of the relaxed program for some multipliers.

    Attributes
    ----------
    bound : float
        Its objective, a lower bound of the program's.
    reduced_costs : ndarray of shape (n_samples,)
        What opening each row would cost, mu; it is open where negative.
    subgradient : ndarray of shape (n_samples,)
        By how much each row's assignment constraint is violated.
    """

    bound: float
    reduced_costs: np.ndarray
    subgradient: np.ndarray


class Solution(NamedTuple):
    """What one creation cost leads to.

    Attributes
    ----------
    exemplars : ndarray of shape (n_exemplars,)
    creation_cost : float
    objective : float
    lower_bound : float
    n_iter : int
    is_cut_short : bool
        Whether ``max_iter`` ended the iteration.
    """

    exemplars: np.ndarray
    creation_cost: float
    objective: float
    lower_bound: float
    n_iter: int
    is_cut_short: bool


def relax(
    distances: np.ndarray,
    creation_cost: float,
    n_outliers: int,
    multipliers: np.ndarray,
) -> Relaxed:
    """Solve the relaxed program for these multipliers.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_samples)
        Symmetric.
    creation_cost : float
    n_outliers : int
    multipliers : ndarray of shape (n_samples,)

    Returns
    -------
    relaxed : Relaxed
    """
    n_samples = len(distances)
    reduced_costs = np.empty(n_samples)
    n_exemplars = np.zeros(n_samples)
    for rows in split_rows(n_samples):
        savings = distances[rows] - multipliers
        np.minimum(savings, 0, out=savings)
        reduced_costs[rows] = creation_cost + savings.sum(axis=1)
        opened = np.flatnonzero(reduced_costs[rows] < 0)
        n_exemplars += np.count_nonzero(savings[opened], axis=0)
    outliers = costliest(multipliers, n_outliers)
    bound = (
        multipliers.sum()
        - multipliers[outliers].sum()
        + np.minimum(reduced_costs, 0).sum()
    )
    subgradient = 1 - n_exemplars
    subgradient[outliers] -= 1
    return Relaxed(float(bound), reduced_costs, subgradient)


def solve_program(
    distances: np.ndarray,
    creation_cost: float,
    n_outliers: int,
    multipliers: np.ndarray,
    *,
    max_iter: int,
    tol: float,
) -> tuple[Solution, np.ndarray]:
    """Improve the multipliers step by step; keep the best bound and solution.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_samples)
    creation_cost : float
    n_outliers : int
    multipliers : ndarray of shape (n_samples,)
        Where to begin.
    max_iter : int
    tol : float

    Returns
    -------
    solution : Solution
    multipliers : ndarray of shape (n_samples,)
        Those with the best bound.
    """
    best = relaxed = relax(distances, creation_cost, n_outliers, multipliers)
    best_multipliers = multipliers
    exemplars, objective, rounded_cost = np.zeros(0, dtype=np.intp), np.inf, np.inf
    factor, n_stalled, n_iter, is_done = _FIRST_FACTOR, 0, 0, False
    while not is_done and n_iter < max_iter:
        n_iter += 1
        chosen = round_exemplars(
            distances, creation_cost, n_outliers, multipliers, relaxed
        )
        cost = _price(distances, chosen, creation_cost, n_outliers)
        if cost < rounded_cost:
            rounded_cost = cost
            chosen = move_to_medians(distances, chosen, n_outliers)
            cost = _price(distances, chosen, creation_cost, n_outliers)
            if cost < objective:
                exemplars, objective = chosen, cost
        if n_stalled == _PATIENCE:
            # Go on from the best, not from where the too long steps have led.
            multipliers, relaxed = best_multipliers, best
            factor, n_stalled = factor / 2, 0
        square = float(relaxed.subgradient @ relaxed.subgradient)
        is_done = (
            objective - best.bound <= tol * objective
            or factor < _LAST_FACTOR
            or square == 0
        )
        if not is_done:
            length = factor * (objective - relaxed.bound) / square
            multipliers = np.maximum(multipliers + length * relaxed.subgradient, 0)
            relaxed = relax(distances, creation_cost, n_outliers, multipliers)
            n_stalled += 1
            if relaxed.bound - best.bound > _PROGRESS * (objective - best.bound):
                n_stalled = 0
            if relaxed.bound > best.bound:
                best_multipliers, best = multipliers, relaxed
    solution = Solution(
        exemplars, creation_cost, objective, best.bound, n_iter, not is_done
    )
    return solution, best_multipliers


def round_exemplars(
    distances: np.ndarray,
    creation_cost: float,
    n_outliers: int,
    multipliers: np.ndarray,
    relaxed: Relaxed,
) -> np.ndarray:
    """Choose exemplars among the open ones, the cheapest first, while they pay.

    A row that an exemplar serves in the relaxed solution is not opened any more.

    Returns
    -------
    exemplars : ndarray of shape (n_exemplars,)
        At least one.
    """
    order = np.argsort(relaxed.reduced_costs, kind="stable")
    n_open = max(1, np.count_nonzero(relaxed.reduced_costs < 0))
    exemplars: list[int] = []
    is_served = np.zeros(len(distances), dtype=bool)
    nearest = np.full(len(distances), np.inf)
    cost = np.inf
    for row in order[:n_open]:
        if is_served[row]:
            continue
        nearer = np.minimum(nearest, distances[row])
        kept = float(sum_smallest(nearer, len(nearer) - n_outliers))
        new_cost = kept + creation_cost * (len(exemplars) + 1)
        if new_cost < cost:
            exemplars.append(int(row))
            nearest, cost = nearer, new_cost
            is_served |= distances[row] < multipliers
    return np.array(exemplars, dtype=np.intp)


def move_to_medians(
    distances: np.ndarray, exemplars: np.ndarray, n_outliers: int
) -> np.ndarray:
    """Move exemplars to the medians of their clusters until none moves.

    The sum of the distances of the rows that are kept falls with each round.
    """
    total, best = np.inf, exemplars
    while True:
        nearest, places = find_nearest(distances, exemplars)
        kept = np.ones(len(nearest), dtype=bool)
        kept[costliest(nearest, n_outliers)] = False
        if nearest[kept].sum() >= total:
            return best
        total, best = nearest[kept].sum(), exemplars
        members = (np.flatnonzero(kept & (places == k)) for k in np.unique(places))
        medians = [_find_median(distances, rows) for rows in members if len(rows)]
        exemplars = np.unique(medians)


def _find_median(distances: np.ndarray, members: np.ndarray) -> int:
    """Return the row with the least sum of distances to these."""
    totals = np.zeros(len(distances))
    for part in cut_rows(len(members), _BLOCK_ENTRIES // len(distances)):
        totals += distances[members[part]].sum(axis=0)
    return int(totals.argmin())


def _price(
    distances: np.ndarray, exemplars: np.ndarray, creation_cost: float, n_outliers: int
) -> float:
    nearest, _ = find_nearest(distances, exemplars)
    kept = sum_smallest(nearest, len(nearest) - n_outliers)
    return float(kept + creation_cost * len(exemplars))
