"""Methods whose centres are rows: distances, their limit, a cost per cluster."""

import re
from collections.abc import Callable
from numbers import Integral
from typing import ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances
from sklearn.utils.validation import check_is_fitted

from corral._blocks import cut_rows, find_size
from corral._sklearn_compat import Interval
from corral._threads import hold_blas
from corral._tiles import level_rows
from corral._validation import check_scores
from corral.rivals._base import JointClusterer

# Distances that one sweep works on: 2**17 float64 are 1 MiB, which stays in the cache.
_BLOCK_ENTRIES = 2**17

# Values that are made dense, or distances that are measured, at once: 16 MiB.
_DENSE_ENTRIES = 2**21

# Only values beyond two to the power of this are scaled, so that others stay as they
# are.
_SAFE_EXPONENT = 40

# Squares of larger distances may overflow, those of smaller ones may underflow.
_LARGEST_SQUARED, _SMALLEST_SQUARED = 2.0**505, 2.0**-400

# Between unequal values within these, no difference is as small or large as that.
_LARGEST_SAFE, _SMALLEST_SAFE = 2.0**490, 2.0**-340

# Rows are finite and Minkowski's exponent is 2, so all of these are the same.
_EUCLIDEAN = ("euclidean", "l2", "minkowski", "nan_euclidean")

_MANHATTAN = ("manhattan", "cityblock", "l1")

_NEED_PARAMETERS = ("seuclidean", "mahalanobis")

# The search for a creation cost ends when its bracket is this narrow.
_BRACKET_RATIO = 1 + 1e-4

_UNITS = {
    "B": 1,
    "kB": 10**3,
    "KB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
}


class ExemplarClusterer(JointClusterer):
    """Base of the methods whose centres are rows and that hold all distances."""

    _parameter_constraints: ClassVar[dict] = {
        **JointClusterer._parameter_constraints,
        "metric": [str, callable],
        "memory_limit": [Interval(Integral, 1, None, closed="left"), str],
    }

    # How many matrices of 8 bytes per pair of rows a fit holds at once.
    _n_matrices = 1

    def _distances(self, X) -> np.ndarray:
        """Return the distances of all pairs of rows, if they may be held."""
        n_samples = X.shape[0]
        needed = self._n_matrices * 8 * n_samples**2
        limit = read_bytes(self.memory_limit)
        if needed > limit:
            name = type(self).__name__
            raise MemoryError(
                f"{name} holds the distances of all pairs of rows: "
                f"n_samples={n_samples} needs {needed} bytes, memory_limit="
                f"{self.memory_limit!r} allows {limit}. Fit a subsample and call "
                "predict on the rest, raise memory_limit, or use COR or "
                "KMeansMinusMinus, which do not need them."
            )
        self._refuse_above(needed, n_samples)
        self._ruler = Ruler(self.metric)
        return self._ruler.measure_all(X)

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
        check_is_fitted(self)
        # In the units of the fit: in those of X, distances may be too small to differ.
        costs = self._ruler.measure(self._read(X, reset=False), self.cluster_centers_)
        check_scores(costs, type(self).__name__)
        labels = costs.argmin(axis=1).astype(np.int32)
        labels[-costs.min(axis=1) < self._threshold] = -1
        return labels

    def _costs(self, X) -> np.ndarray:
        return self._ruler.recover(self._ruler.measure(X, self.cluster_centers_))

    def _set_exemplars(
        self, X, distances: np.ndarray, exemplars: np.ndarray, n_outliers: int
    ) -> np.ndarray:
        """Set all that follows from the exemplars, without those nobody belongs to.

        Returns
        -------
        kept : ndarray of shape (n_samples - n_outliers,)
            The distances of the rows that are no outliers, as scaled as the others.
        """
        exemplars = np.sort(exemplars)
        while True:
            nearest, places = find_nearest(distances, exemplars)
            # One column is enough for all but the labels, and K of them are much.
            self._set_outcome(nearest[:, None], n_outliers)
            self.nearest_labels_ = places.astype(np.int32)
            self.labels_ = np.where(self.labels_ < 0, self.labels_, places)
            self.labels_ = self.labels_.astype(np.int32)
            used = np.unique(self.labels_[self.labels_ >= 0])
            if len(used) == len(exemplars):
                break
            # Nothing but outliers is nearest to them, which become dearer outliers.
            exemplars = exemplars[used]
        self.exemplars_ = exemplars
        self.cluster_centers_ = X[exemplars]
        self._threshold = self.offset_
        self.offset_ = float(self._ruler.recover(self.offset_))
        self.outlier_scores_ = self._ruler.recover(nearest)
        check_scores(self.outlier_scores_, type(self).__name__)
        return nearest[self.labels_ >= 0]


class Ruler:
    """Measures distances, pair by pair and scaled by a power of two.

    A pair has the same distance however many rows are asked about at once, whether the
    rows are dense or sparse; and equal rows have distance 0. The scale, which is 1
    but for huge or tiny distances, is such that sums and products of distances neither
    overflow nor underflow.

    Parameters
    ----------
    metric : str or callable
    """

    def __init__(self, metric) -> None:
        if metric == "precomputed":
            raise ValueError(
                "metric='precomputed' is not known: X should hold rows. Choose a "
                "metric of sklearn.metrics.pairwise_distances, or a callable."
            )
        if metric in _NEED_PARAMETERS:
            raise ValueError(
                f"metric={metric!r} needs parameters, which there are none for here. "
                "Rescale X and choose 'euclidean', or give a callable."
            )
        self._metric = metric
        # Two to the power of these: rows are divided by the one before they are
        # measured, distances by the other.
        self._row_exponent = 0
        self._exponent = 0

    def measure_all(self, X) -> np.ndarray:
        """Return the distances of all pairs of rows; choose the scale by them."""
        if self._metric == "sqeuclidean":
            values = X.data if issparse(X) else X
            self._row_exponent = _choose_exponent(find_size(values))
        distances = self.measure(X, X)
        self._refuse_infinite(distances)
        self._exponent = _choose_exponent(float(distances.max()))
        if self._exponent:
            np.ldexp(distances, -self._exponent, out=distances)
        return distances

    @hold_blas()
    def measure(self, X, Y) -> np.ndarray:
        """Return the scaled distances between rows, of shape (n_x, n_y), float64."""
        if callable(self._metric):
            distances = self._call(X, Y)
        else:
            distances = np.empty((X.shape[0], Y.shape[0]))
            n_features = X.shape[1]
            widest = max(n_features, Y.shape[0])
            for rows in cut_rows(X.shape[0], _DENSE_ENTRIES // widest):
                block = self._read(X[rows])
                for others in cut_rows(Y.shape[0], _DENSE_ENTRIES // n_features):
                    other = self._read(Y[others])
                    distances[rows, others] = self._measure_block(block, other)
        if self._exponent:
            np.ldexp(distances, -self._exponent, out=distances)
        return distances

    def recover(self, distances):
        """Return distances in units of the metric, infinite or 0 if out of range."""
        exponent = self._exponent + 2 * self._row_exponent
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(distances, exponent) if exponent else distances

    def scale(self, distance: float) -> float:
        """Return a distance above 0 as scaled as the others."""
        exponent = self._exponent + 2 * self._row_exponent
        with np.errstate(over="ignore", under="ignore"):
            scaled = np.ldexp(distance, -exponent)
        return float(np.clip(scaled, 2.0**-1000, 2.0**1000)) if exponent else distance

    def _read(self, block) -> np.ndarray:
        rows = block.toarray() if issparse(block) else np.asarray(block)
        rows = np.ascontiguousarray(rows, dtype=np.float64)
        return np.ldexp(rows, -self._row_exponent) if self._row_exponent else rows

    def _measure_block(self, X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        if self._metric in _EUCLIDEAN:
            return _measure_euclidean(X, Y)
        if self._metric == "cosine":
            return _measure_cosine(X, Y)
        if self._metric in _MANHATTAN:
            return cdist(X, Y, "cityblock")
        if self._metric in ("sqeuclidean", "chebyshev"):
            return cdist(X, Y, self._metric)
        if self._metric == "correlation":
            X, Y = level_rows(X), level_rows(Y)
        return pairwise_distances(X, Y, metric=self._metric)

    def _call(self, X, Y) -> np.ndarray:
        # The function gets rows as it got them in the fit.
        if issparse(X) and not issparse(Y):
            X = X.toarray()
        elif issparse(Y) and not issparse(X):
            X = csr_array(X)
        distances = pairwise_distances(X, Y, metric=self._metric)
        return distances.astype(np.float64, copy=False)

    def _refuse_infinite(self, distances: np.ndarray) -> None:
        for rows in split_rows(len(distances)):
            is_finite = np.isfinite(distances[rows])
            if not is_finite.all():
                row, other = np.argwhere(~is_finite)[0]
                row += rows.start
                raise ValueError(
                    f"metric={self._metric!r} gives {distances[row, other]} as the "
                    f"distance of rows {row} and {other}: distances should be finite. "
                    "Rescale X, leave such rows out or choose another metric."
                )


def _choose_exponent(largest: float) -> int:
    exponent = int(np.frexp(largest)[1])
    return exponent if largest > 0 and abs(exponent) > _SAFE_EXPONENT else 0


def _measure_euclidean(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return Euclidean distances, also those whose squares are out of range."""
    distances = cdist(X, Y)
    sizes = [np.abs(values) for values in (X, Y)]
    if all(
        size.max() <= _LARGEST_SAFE
        and size.min(where=size > 0, initial=np.inf) >= _SMALLEST_SAFE
        for size in sizes
    ):
        return distances
    # Infinite or not, it tells equal rows, which are many, from rows that are too near.
    with np.errstate(over="ignore"):
        is_other = cdist(X, Y, "chebyshev") > 0
    is_doubtful = (distances < _SMALLEST_SQUARED) | (distances > _LARGEST_SQUARED)
    pairs = np.argwhere(is_doubtful & is_other)
    for part in cut_rows(len(pairs), _DENSE_ENTRIES // X.shape[1]):
        row, other = pairs[part].T
        # Halves of the largest numbers have differences that are numbers.
        half = np.where(distances[row, other] > 1, 0.5, 1.0)
        gaps = half[:, None] * X[row] - half[:, None] * Y[other]
        units = np.abs(gaps).max(axis=1)
        lengths = np.sqrt(((gaps / units[:, None]) ** 2).sum(axis=1))
        with np.errstate(over="ignore"):
            distances[row, other] = units * lengths / half
    return distances


def _measure_cosine(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Return one less the cosine: half the squared distance of rows of length 1.

    Unlike one less a product, it is exact for rows that are nearly parallel. Rows of
    zeros have distance 1 to others, and 0 to each other.
    """
    distances = cdist(_normalise(X), _normalise(Y), "sqeuclidean") / 2
    is_zero, is_other_zero = ~X.any(axis=1, keepdims=True), ~Y.any(axis=1)
    distances[is_zero != is_other_zero] = 1
    return np.minimum(distances, 2, out=distances)


def _normalise(X: np.ndarray) -> np.ndarray:
    rows = level_rows(X)
    norms = cdist(rows, np.zeros((1, X.shape[1])))
    norms[norms == 0] = 1
    return rows / norms


def read_bytes(limit: int | str) -> int:
    """Return a number of bytes that may be written with a unit."""
    if isinstance(limit, Integral) and not isinstance(limit, bool):
        return int(limit)
    parts = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", str(limit))
    if parts is None or parts[2] not in _UNITS:
        raise ValueError(
            f"memory_limit={limit!r} should be a number of bytes, or a number and one "
            f"of the units {', '.join(_UNITS)}, as in '2GiB'."
        )
    return int(float(parts[1]) * _UNITS[parts[2]])


def split_rows(n_samples: int) -> list[slice]:
    """Return all rows in blocks whose distances stay in the cache."""
    return cut_rows(n_samples, _BLOCK_ENTRIES // n_samples)


def sum_smallest(values: np.ndarray, n: int) -> np.ndarray:
    """Return the sum of the ``n`` smallest values along the last axis."""
    if n == values.shape[-1]:
        return values.sum(axis=-1)
    return np.partition(values, n - 1, axis=-1)[..., :n].sum(axis=-1)


def find_nearest(
    distances: np.ndarray, exemplars: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find the nearest exemplar of each row, without a copy of all their distances.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_samples)
        Symmetric.
    exemplars : ndarray of shape (n_exemplars,)
        At least one.

    Returns
    -------
    nearest : ndarray of shape (n_samples,)
        The distance to it.
    places : ndarray of shape (n_samples,)
        Its place in ``exemplars``, the first of those equally near.
    """
    nearest = distances[exemplars[0]].copy()
    places = np.zeros(len(distances), dtype=np.intp)
    for place, exemplar in enumerate(exemplars[1:], start=1):
        is_nearer = distances[exemplar] < nearest
        nearest[is_nearer] = distances[exemplar][is_nearer]
        places[is_nearer] = place
    return nearest, places


def add_exemplar(
    distances: np.ndarray, nearest: np.ndarray, n_outliers: int
) -> tuple[int, float]:
    """Find the row that lowers the sum of the kept distances most as an exemplar.

    Parameters
    ----------
    distances : ndarray of shape (n_samples, n_samples)
    nearest : ndarray of shape (n_samples,)
        Distance of each row to the exemplars so far, infinite if there is none.
    n_outliers : int

    Returns
    -------
    row : int
    total : float
        The sum with it.
    """
    n_samples = len(distances)
    totals = np.empty(n_samples)
    for rows in split_rows(n_samples):
        nearer = np.minimum(distances[rows], nearest)
        totals[rows] = sum_smallest(nearer, n_samples - n_outliers)
    row = int(totals.argmin())
    return row, float(totals[row])


def bracket_cost(distances: np.ndarray) -> tuple[float, float]:
    """Return costs below and above which the number of clusters does not change."""
    largest = float(distances.max())
    if largest == 0:
        return 1.0, 1.0
    smallest = min(
        float(distances[rows].min(where=distances[rows] > 0, initial=largest))
        for rows in split_rows(len(distances))
    )
    # An exemplar saves at least the smallest distance, and at most all of them.
    low = max(smallest / (2 * len(distances)), np.finfo(np.float64).tiny)
    return low, 2 * len(distances) * largest


def guess_cost(distances: np.ndarray, n_clusters: int, n_outliers: int) -> float:
    """Return the cost between what the K-th and the next greedy exemplar save."""
    nearest = np.full(len(distances), np.inf)
    totals = []
    for _ in range(min(n_clusters + 1, len(distances))):
        row, total = add_exemplar(distances, nearest, n_outliers)
        nearest = np.minimum(nearest, distances[row])
        totals.append(total)
    # The first exemplar has nothing to be compared with; any cost above the total of
    # its cluster leaves it alone.
    savings = np.array([2 * totals[0], *-np.diff(totals)])[-2:]
    return _middle(savings[0], savings[-1])


def _middle(low: float, high: float) -> float:
    # The product of what may lie hundreds of powers of ten apart need not be in range.
    return float(np.sqrt(max(low, 0.0)) * np.sqrt(max(high, 0.0)))


def search_cost(
    solve: Callable, n_clusters: int, first: float, low: float, high: float
) -> list:
    """Bracket and bisect a cost until a solution has ``n_clusters`` exemplars.

    Parameters
    ----------
    solve : callable
        Takes a cost and returns something with ``exemplars``.
    n_clusters : int
    first : float
        The first cost to try, if it lies between the others.
    low, high : float
        The least and the largest cost that make sense.

    Returns
    -------
    tried : list
        What ``solve`` returned; a solution that has ``n_clusters`` is the last one.
    """
    tried: list = []
    cost = first if low < first < high else _middle(low, high)
    has_low = has_high = False
    stride = 2.0
    while not tried or high > low * _BRACKET_RATIO:
        tried.append(solve(cost))
        n_found = len(tried[-1].exemplars)
        if n_found == n_clusters:
            break
        if n_found > n_clusters:
            low, has_low = cost, True
        else:
            high, has_high = cost, True
        if has_low and has_high:
            cost = _middle(low, high)
        else:
            # The first cost is seldom far off, so go in strides that grow from small.
            cost = min(low * stride, high) if has_low else max(high / stride, low)
            stride = min(stride, 2.0**500) ** 2
    return tried
