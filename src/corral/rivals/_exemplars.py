"""Methods whose centres are rows: distances, their limit, a cost per cluster."""

import re
from collections.abc import Callable
from numbers import Integral
from typing import ClassVar

import numpy as np
from scipy.sparse import issparse
from scipy.spatial.distance import cdist
from sklearn.metrics import pairwise_distances

from corral._sklearn_compat import Interval
from corral.rivals._base import JointClusterer

# Distances that one sweep works on: 2**17 float64 are 1 MiB, which stays in the cache.
_BLOCK_ENTRIES = 2**17

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
        if self.metric == "precomputed":
            raise ValueError(
                "metric='precomputed' is not known: X should hold rows. Choose a "
                "metric of sklearn.metrics.pairwise_distances, or a callable."
            )
        return measure_distances(X, X, self.metric)

    def _costs(self, X) -> np.ndarray:
        return measure_distances(X, self.cluster_centers_, self.metric)

    def _set_exemplars(self, X, exemplars: np.ndarray, n_outliers: int) -> None:
        """Set all that follows from the exemplars, without those nobody belongs to."""
        exemplars = np.sort(exemplars)
        while True:
            self.exemplars_ = exemplars
            self.cluster_centers_ = X[exemplars]
            self._set_outcome(self._costs(X), n_outliers)
            used = np.unique(self.labels_[self.labels_ >= 0])
            if len(used) == len(exemplars):
                break
            # Nothing but outliers is nearest to them, which become dearer outliers.
            exemplars = exemplars[used]

    def _sum_kept(self) -> float:
        return float(self.outlier_scores_[self.labels_ >= 0].sum())


def read_bytes(limit: int | str) -> int:
    """Return a number of bytes that may be written with a unit."""
    if not isinstance(limit, str):
        return int(limit)
    parts = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([A-Za-z]+)\s*", limit)
    if parts is None or parts[2] not in _UNITS:
        raise ValueError(
            f"memory_limit={limit!r} should be a number of bytes, or a number and one "
            f"of the units {', '.join(_UNITS)}, as in '2GiB'."
        )
    return int(float(parts[1]) * _UNITS[parts[2]])


def measure_distances(X, Y, metric) -> np.ndarray:
    """Return the distances between rows, of shape (n_x, n_y), float64.

    Euclidean distances of dense rows are measured pair by pair: they come out the same
    however many rows are asked about at once, and equal rows have distance 0.
    """
    if metric in ("euclidean", "l2") and not issparse(X):
        return cdist(X, Y)
    return pairwise_distances(X, Y, metric=metric).astype(np.float64, copy=False)


def split_rows(n_samples: int) -> list[slice]:
    """Return all rows in blocks whose distances stay in the cache."""
    step = max(1, _BLOCK_ENTRIES // n_samples)
    return [slice(start, start + step) for start in range(0, n_samples, step)]


def sum_smallest(values: np.ndarray, n: int) -> np.ndarray:
    """Return the sum of the ``n`` smallest values along the last axis."""
    if n == values.shape[-1]:
        return values.sum(axis=-1)
    return np.partition(values, n - 1, axis=-1)[..., :n].sum(axis=-1)


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
    return smallest / (2 * len(distances)), 2 * len(distances) * largest


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
    return float(np.sqrt(savings.prod()))


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
    cost = first if low < first < high else float(np.sqrt(low * high))
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
            cost = float(np.sqrt(low * high))
        else:
            # The first cost is seldom far off, so go in strides that grow from small.
            cost = min(low * stride, high) if has_low else max(high / stride, low)
            stride **= 2
    return tried
