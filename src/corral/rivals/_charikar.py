"""K-center and K-median with outliers: small-data methods with a guarantee."""

import heapq
import warnings
from typing import NamedTuple

import numpy as np
from scipy.spatial.distance import squareform
from sklearn.exceptions import ConvergenceWarning

from corral._sklearn_compat import _fit_context
from corral._validation import count_outliers
from corral.rivals._exemplars import (
    ExemplarClusterer,
    add_exemplar,
    bracket_cost,
    find_nearest,
    guess_cost,
    search_cost,
)


class KCenterOutliers(ExemplarClusterer):
    r"""K-center with outliers: the fewest-radius disks that leave a few rows out.

    For a radius r, the row whose disk of radius r holds most rows that are not covered
    yet becomes a centre, all rows within 3r of it count as covered, and so on until
    there are K centres. The radius is bisected among the distances between rows until
    at most ``n_outliers`` rows stay uncovered:

    .. math::

        \min_{|S| = K,\, |O| = L} \; \max_{i \notin O} \; \min_{j \in S} d_{ij}
        \;\ge\; r, \qquad \text{and the centres found reach at most } 3 r .

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centres, K.
    n_outliers : int, default=None
        How many rows are outliers, L.
    contamination : float, default=None
        Share of rows that are outliers, 0.05 if neither this nor ``n_outliers`` is
        given.
    metric : str or callable, default="euclidean"
        A symmetric metric of :func:`sklearn.metrics.pairwise_distances`, but for
        "precomputed", "seuclidean" and "mahalanobis". Distances have to be finite. The
        guarantee holds where the triangle inequality does.
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
        Distance of each row to its nearest centre; higher is stranger.
    exemplars_ : ndarray of shape (n_exemplars,)
        The rows that are centres, in ascending order; cluster k has the k-th.
    cluster_centers_ : ndarray or CSR of shape (n_exemplars, n_features)
        The centres themselves.
    objective_ : float
        Largest distance of a row that is not an outlier; at most thrice
        ``lower_bound_``.
    lower_bound_ : float
        The radius r; no K rows as centres do with less.
    n_iter_ : int
        Number of radii tried.
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
    KMedianOutliers : The sum of the distances instead of the largest.
    LagrangianClustering : The sum of the distances, with a creation cost.

    Notes
    -----
    A fit holds the distances of all pairs and a sorted list of them, with working
    memory ``16 * n_samples**2`` bytes. It takes time in proportion to
    ``n_samples**2 * log(n_samples)``, however many centres there are.

    Why thrice: for r at or above the best radius, the disks of the best solution are
    matched one by one by disks found that cover at least as many rows, because a disk
    of the best solution that meets a disk found lies within its expanded disk. So a
    radius that leaves too many rows uncovered is below the best one, which is one of
    the distances. A larger radius may fail where a smaller one does not, so the radius
    found is one that suffices while the next smaller distance does not.

    There are fewer than K clusters if fewer disks cover all rows, as among few distinct
    rows. Of disks that hold equally many rows, the first is taken. The L rows farthest
    from the centres are the outliers, of equal ones the first; they are the uncovered
    rows and possibly some covered ones. Constant columns change nothing. Sparse rows
    are made dense block by block, and are answered like dense ones.

    References
    ----------
    M. Charikar, S. Khuller, D. M. Mount and G. Narasimhan, "Algorithms for Facility
    Location Problems with Outliers", Proceedings of the 12th ACM-SIAM Symposium on
    Discrete Algorithms, pp. 642-651, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from corral.rivals import KCenterOutliers
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0], [99.0]])
    >>> model = KCenterOutliers(n_clusters=2, n_outliers=1).fit(X)
    >>> model.labels_
    array([ 0,  0,  0,  1,  1,  1, -1], dtype=int32)
    >>> model.objective_, model.lower_bound_
    (1.0, 1.0)
    """

    # The distances, each pair once again to be sorted, and what compares them.
    _n_matrices = 2

    def __init__(
        self,
        n_clusters=8,
        *,
        n_outliers=None,
        contamination=None,
        metric="euclidean",
        memory_limit="1GiB",
    ):
        self.n_clusters = n_clusters
        self.n_outliers = n_outliers
        self.contamination = contamination
        self.metric = metric
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
        self : KCenterOutliers
            The fitted estimator.
        """
        X = self._read(X, reset=True)
        n_outliers = count_outliers(
            self.n_outliers, self.contamination, X.shape[0], self.n_clusters
        )
        distances = self._distances(X)
        cover = search_radius(distances, self.n_clusters, n_outliers)
        kept = self._set_exemplars(X, distances, cover.centers, n_outliers)
        self.objective_ = float(self._ruler.recover(kept.max()))
        self.lower_bound_ = float(self._ruler.recover(cover.radius))
        self.n_iter_ = cover.n_iter
        return self


class KMedianOutliers(ExemplarClusterer):
    r"""K-median with outliers by the primal-dual method, with a bound.

    All rows raise a bid at the same pace. A row opens as a centre once the bids in
    excess of the distances to it pay the opening cost f; a row stops bidding when it
    can reach an open centre, and when only L rows still bid, these are the outliers.
    Of centres that share a payer, the first to open stays. The opening cost is
    bisected until K centres stay. With the bids :math:`\alpha`,

    .. math::

        \underbrace{\sum_{i \notin O} \alpha_i - K f}_{\text{lower bound}}
        \;\le\; \min_{|S| = K,\, |O| = L} \sum_{i \notin O} \min_{j \in S} d_{ij}
        \;\le\; \text{objective}
        \;\le\; 3 \min_{|S| = K - 1,\, |O| = L} \sum_{i \notin O} \min_{j \in S} d_{ij}.

    Parameters
    ----------
    n_clusters : int, default=8
        Number of centres, K.
    n_outliers : int, default=None
        How many rows are outliers, L.
    contamination : float, default=None
        Share of rows that are outliers, 0.05 if neither this nor ``n_outliers`` is
        given.
    metric : str or callable, default="euclidean"
        A symmetric metric of :func:`sklearn.metrics.pairwise_distances`, but for
        "precomputed", "seuclidean" and "mahalanobis". Distances have to be finite. The
        factor 3 holds where the triangle inequality does, the lower bound always.
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
        Distance of each row to its nearest centre; higher is stranger.
    exemplars_ : ndarray of shape (n_exemplars,)
        The rows that are centres, in ascending order; cluster k has the k-th.
    cluster_centers_ : ndarray or CSR of shape (n_exemplars, n_features)
        The centres themselves.
    objective_ : float
        Sum of the distances of all rows that are not outliers.
    lower_bound_ : float
        No K rows as centres, with L outliers, have a smaller objective; the best over
        all opening costs tried.
    opening_cost_ : float
        The opening cost f.
    n_opened_ : int
        Centres that the primal-dual method opened. If less than K, the others were
        added one by one, each the row that lowers the objective most.
    n_iter_ : int
        Number of opening costs tried.
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
    KCenterOutliers : The largest distance instead of the sum.
    LagrangianClustering : The same program by subgradient steps: closer, and without
        a guarantee.

    Notes
    -----
    The guarantee, exactly: let s be ``n_opened_`` and K' any number of centres. The
    bids with the largest as the price of an outlier are a feasible dual solution of
    facility location with outliers, so the bids of all rows but L of the last bidders
    sum to at most :math:`\mathrm{OPT}_{K'} + K' f`. A row that stopped bidding is
    within thrice its bid of a centre that stays, and what it paid for that centre comes
    off. Every centre that stays is paid in full by rows that are kept, except possibly
    the last to open, of whose payers some may be outliers. Hence

    .. math:: \text{objective} + 3 (s - 1) f \le 3\, \mathrm{OPT}_{K'} + 3 K' f,

    and with K' = s - 1 the objective is at most thrice the optimum that one centre
    less can reach with as many outliers. It says nothing for s = 1. Rows are then given
    to their nearest centre and the L farthest are outliers, which lowers the objective
    further. The distance to ``lower_bound_`` tells how good this solution is.

    Where rows tie, the number of centres may jump over K at some opening cost; then
    ``n_opened_`` is smaller than K, and the guarantee is that of the smaller number. It
    holds for the centres after the others are added, as they only lower the objective.
    With fewer than K distinct rows among those kept there are fewer clusters, and a
    ``ConvergenceWarning`` says so.

    A fit holds the distances of all pairs, ``8 * n_samples**2`` bytes. One opening
    cost takes at most time in proportion to ``n_samples**3 * log(n_samples)``, in
    practice closer to ``n_samples**2 * log(n_samples)``, as payments are updated only
    when a row may be the next to open. Up to about twenty opening costs are tried.

    Of events at the same time, rows that reach a centre come before centres that open,
    and the first row comes first. Constant columns change nothing. Sparse rows are
    made dense block by block, and are answered like dense ones.

    Differs from the paper: its theorem for K-median keeps exactly K centres and lets
    the number of outliers grow, to :math:`(1 + \epsilon) L` at
    :math:`4 (1 + 1 / \epsilon)` times the optimum, by way of penalties and of rounding
    two solutions into one. Here the number of outliers is kept, the paper's method
    for facility location with outliers is run for each opening cost, and the rounding
    is left out; the guarantee gives up one centre instead.

    References
    ----------
    M. Charikar, S. Khuller, D. M. Mount and G. Narasimhan, "Algorithms for Facility
    Location Problems with Outliers", Proceedings of the 12th ACM-SIAM Symposium on
    Discrete Algorithms, pp. 642-651, 2001.

    K. Jain and V. V. Vazirani, "Approximation Algorithms for Metric Facility Location
    and k-Median Problems Using the Primal-Dual Schema and Lagrangian Relaxation",
    Journal of the ACM 48, 2001, doi:10.1145/375827.375845.

    Examples
    --------
    >>> import numpy as np
    >>> from corral.rivals import KMedianOutliers
    >>> X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0], [99.0]])
    >>> model = KMedianOutliers(n_clusters=2, n_outliers=1).fit(X)
    >>> model.labels_
    array([ 0,  0,  0,  1,  1,  1, -1], dtype=int32)
    >>> model.exemplars_
    array([1, 4])
    """

    def __init__(
        self,
        n_clusters=8,
        *,
        n_outliers=None,
        contamination=None,
        metric="euclidean",
        memory_limit="1GiB",
    ):
        self.n_clusters = n_clusters
        self.n_outliers = n_outliers
        self.contamination = contamination
        self.metric = metric
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
        self : KMedianOutliers
            The fitted estimator.
        """
        X = self._read(X, reset=True)
        n_outliers = count_outliers(
            self.n_outliers, self.contamination, X.shape[0], self.n_clusters
        )
        distances = self._distances(X)
        tried = search_opening_cost(distances, self.n_clusters, n_outliers)
        allowed = [each for each in tried if len(each.exemplars) <= self.n_clusters]
        auction = max(allowed, key=lambda each: len(each.exemplars))
        exemplars = fill_up(distances, auction.exemplars, self.n_clusters, n_outliers)
        objective = self._set_exemplars(X, distances, exemplars, n_outliers).sum()
        bounds = [each.kept_bids - self.n_clusters * each.cost for each in tried]
        # Distances are not negative; rounding may lift a bound that is met.
        lower_bound = np.clip(max(bounds), 0, objective)
        self.objective_ = float(self._ruler.recover(objective))
        self.lower_bound_ = float(self._ruler.recover(lower_bound))
        self.opening_cost_ = float(self._ruler.recover(auction.cost))
        self.n_opened_ = len(auction.exemplars)
        self.n_iter_ = len(tried)
        self._warn_if_fewer()
        return self

    def _warn_if_fewer(self) -> None:
        found = len(self.exemplars_)
        if found < self.n_clusters:
            warnings.warn(
                f"Only {found} clusters were found for n_clusters={self.n_clusters}, "
                "because the rows that are kept have only so many distinct values. "
                f"Lower n_clusters or n_outliers (now {self.n_outliers_}).",
                ConvergenceWarning,
                stacklevel=4,
            )


class Cover(NamedTuple):
    """Centres whose expanded disks leave few enough rows uncovered.

    Attributes
    ----------
    centers : ndarray of shape (n_centers,)
    radius : float
        Of the disks before expansion.
    n_iter : int
        Number of radii tried.
    """

    centers: np.ndarray
    radius: float
    n_iter: int


class Auction(NamedTuple):
    """What one opening cost leads to.

    Attributes
    ----------
    exemplars : ndarray of shape (n_exemplars,)
        The centres that stay, in the order in which they opened.
    cost : float
        The opening cost.
    kept_bids : float
        Sum of all bids but the ``n_outliers`` largest.
    """

    exemplars: np.ndarray
    cost: float
    kept_bids: float


def search_radius(distances: np.ndarray, n_clusters: int, n_outliers: int) -> Cover:
    """Bisect the distances for a radius that suffices while the one below does not.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_samples)
    n_clusters : int
    n_outliers : int

    Returns
    -------
    cover : Cover
    """
    # Equal radii need not be dropped: they fail or suffice together.
    radii = np.append(squareform(distances, checks=False), 0.0)
    radii.sort()
    fails, suffices = -1, len(radii) - 1
    # The largest distance always suffices: one disk of it holds every row.
    centers = np.zeros(1, dtype=np.intp)
    n_iter = 0
    while suffices - fails > 1:
        middle = (fails + suffices) // 2
        n_iter += 1
        chosen, n_uncovered = cover_rows(distances, float(radii[middle]), n_clusters)
        if n_uncovered <= n_outliers:
            suffices, centers = middle, chosen
        else:
            fails = middle
    return Cover(centers, float(radii[suffices]), n_iter)


def cover_rows(
    distances: np.ndarray, radius: float, n_clusters: int
) -> tuple[np.ndarray, int]:
    """Take the fullest disk and cover all within thrice its radius, K times.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_samples)
    radius : float
    n_clusters : int

    Returns
    -------
    centers : ndarray of shape (n_centers,)
    n_uncovered : int
    """
    is_covered = np.zeros(len(distances), dtype=bool)
    n_held = np.count_nonzero(distances <= radius, axis=1)
    centers: list[int] = []
    while len(centers) < n_clusters and not is_covered.all():
        center = int(n_held.argmax())
        centers.append(center)
        news = np.flatnonzero(~is_covered & (distances[center] <= 3 * radius))
        is_covered[news] = True
        # A row is covered once, so all these together touch each distance once.
        for row in news:
            n_held -= distances[row] <= radius
    return np.array(centers, dtype=np.intp), int(np.count_nonzero(~is_covered))


def search_opening_cost(
    distances: np.ndarray, n_clusters: int, n_outliers: int
) -> list[Auction]:
    """Bisect the opening cost; at least one result has at most K centres."""

    def solve(cost: float) -> Auction:
        return hold_auction(distances, cost, n_outliers)

    low, high = bracket_cost(distances)
    first = guess_cost(distances, n_clusters, n_outliers)
    tried = search_cost(solve, n_clusters, first, low, high)
    if min(len(each.exemplars) for each in tried) > n_clusters:
        # At this cost, the first centre that opens is within reach of all rows.
        tried.append(solve(high))
    return tried


def hold_auction(distances: np.ndarray, cost: float, n_outliers: int) -> Auction:
    """Run the primal-dual method for one opening cost.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_samples)
        Symmetric.
    cost : float
        The opening cost, above 0.
    n_outliers : int

    Returns
    -------
    auction : Auction
    """
    bids, opened = raise_bids(distances, cost, n_outliers)
    kept_bids = float(np.sort(bids)[: len(bids) - n_outliers].sum())
    return Auction(keep_unshared(distances, bids, opened), cost, kept_bids)


def raise_bids(
    distances: np.ndarray, cost: float, n_outliers: int
) -> tuple[np.ndarray, np.ndarray]:
    """Raise all bids until at most ``n_outliers`` rows still bid.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_samples)
    cost : float
    n_outliers : int

    Returns
    -------
    bids : ndarray of shape (n_samples,)
    opened : ndarray of shape (n_opened,)
        Rows that opened, in this order; some of them share a payer.
    """
    n_samples = len(distances)
    bids = np.full(n_samples, np.nan)
    is_bidding = np.ones(n_samples, dtype=bool)
    reach = np.full(n_samples, np.inf)
    opened: list[int] = []
    # A row that stops bidding can only delay the opening of others: times in the heap
    # are too early or right, and only the earliest needs a fresh look.
    times = [
        (opening_time(distances[row], bids, is_bidding, cost), row)
        for row in range(n_samples)
    ]
    heapq.heapify(times)
    fresh_at = np.zeros(n_samples, dtype=np.intp)
    now, n_changes = 0.0, 0
    while np.count_nonzero(is_bidding) > n_outliers:
        arrival = int(np.where(is_bidding, reach, np.inf).argmin())
        time, row = times[0]
        if reach[arrival] <= time:
            now = max(now, float(reach[arrival]))
            stops = np.array([arrival])
        elif fresh_at[row] < n_changes:
            fresh_at[row] = n_changes
            time = opening_time(distances[row], bids, is_bidding, cost)
            heapq.heapreplace(times, (time, row))
            continue
        else:
            heapq.heappop(times)
            now = max(now, time)
            opened.append(row)
            reach = np.minimum(reach, distances[row])
            stops = np.flatnonzero(is_bidding & (distances[row] <= now))
        bids[stops] = now
        is_bidding[stops] = False
        reach[stops] = np.inf
        n_changes += 1
    bids[is_bidding] = now
    return bids, np.array(opened, dtype=np.intp)


def opening_time(
    distances: np.ndarray, bids: np.ndarray, is_bidding: np.ndarray, cost: float
) -> float:
    """Return when the bids in excess of these distances will pay the opening cost.

    With m of the bidders paying, nearest first, it is at (cost - paid + their
    distances) / m; the earliest over m is when it happens.
    """
    paid = np.maximum(bids[~is_bidding] - distances[~is_bidding], 0).sum()
    nearest = np.sort(distances[is_bidding])
    if len(nearest) == 0:
        return np.inf
    times = (cost - paid + np.cumsum(nearest)) / np.arange(1, len(nearest) + 1)
    return float(times.min())


def keep_unshared(
    distances: np.ndarray, bids: np.ndarray, opened: np.ndarray
) -> np.ndarray:
    """Keep the centres none of whose payers has paid for one that is kept already."""
    has_paid = np.zeros(len(bids), dtype=bool)
    kept = []
    for row in opened:
        pays = bids > distances[row]
        if not (pays & has_paid).any():
            kept.append(row)
            has_paid |= pays
    return np.array(kept, dtype=np.intp)


def fill_up(
    distances: np.ndarray, exemplars: np.ndarray, n_clusters: int, n_outliers: int
) -> np.ndarray:
    """Add the rows that lower the objective most until there are K exemplars."""
    chosen = list(exemplars)
    nearest, _ = find_nearest(distances, exemplars)
    while len(chosen) < n_clusters:
        row, _ = add_exemplar(distances, nearest, n_outliers)
        chosen.append(row)
        nearest = np.minimum(nearest, distances[row])
    return np.array(chosen, dtype=np.intp)
