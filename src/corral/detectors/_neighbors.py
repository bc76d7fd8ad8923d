"""Nearest neighbours: exact distances, ties by row order, everything in blocks."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from numbers import Integral
from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn.metrics import pairwise_distances
from sklearn.neighbors import NearestNeighbors

from corral._sklearn_compat import Interval
from corral._threads import use_threads
from corral.detectors._base import Detector

# Those that scikit-learn knows for dense and for sparse rows and that need no further
# parameter.
METRICS = frozenset({"euclidean", "manhattan", "cosine"})

# A tree finds neighbours sooner in up to so many columns, brute force in more: with 50
# neighbours among 20,000 rows in half the time for 8 columns, in a quarter for 9.
_TREE_COLUMNS = 6

# What the arrays of one block of rows may take, for each thread. From 2 to 8 MB the
# time is least: below, calls of NumPy cost more than their work; above, blocks leave
# the cache.
_BLOCK_BYTES = 4 * 2**20

# What the candidates of one search may take: their places and distances, twice, and
# what sorting them needs.
_SEARCH_BYTES = 64 * 2**20
_CANDIDATE_BYTES = 64

# Squared distances that come from inner products are computed again from differences
# where they are below this share of the squared lengths; above it, four of sixteen
# digits are lost at most.
_CLOSE = 1e-4

_EPS = float(np.finfo(np.float64).eps)
_LARGEST = float(np.finfo(np.float64).max)


@dataclass(frozen=True)
class Neighborhoods:
    """The nearest training rows of some rows, ordered by (distance, index).

    Attributes
    ----------
    indices : ndarray of shape (n_rows, n_neighbors), intp
    distances : ndarray of shape (n_rows, n_neighbors), float64
    """

    indices: np.ndarray
    distances: np.ndarray


class RowBook:
    """Finds the training row that a row is equal to.

    Parameters
    ----------
    X : ndarray or CSR of shape (n_samples, n_features)

    Attributes
    ----------
    inverse : ndarray of shape (n_samples,)
        Which of the distinct rows each row is.
    firsts : ndarray of shape (n_distinct,)
        The first of each set of equal rows, in the order of the rows.
    """

    def __init__(self, X) -> None:
        self._places: dict[bytes, int] = {}
        places = self._places
        numbers = (places.setdefault(key, len(places)) for key in _digest(X))
        self.inverse = np.fromiter(numbers, dtype=np.intp, count=X.shape[0])
        self.firsts = np.unique(self.inverse, return_index=True)[1]

    def find(self, X) -> np.ndarray:
        """Return which distinct row each row is equal to, -1 for none."""
        found = (self._places.get(key, -1) for key in _digest(X))
        return np.fromiter(found, dtype=np.intp, count=X.shape[0])


class Neighbors:
    """The nearest neighbours among training rows, and the distances between them.

    Neighbours are the first ``n_neighbors`` rows by (distance, index). Rows that are
    equal are neighbours at distance zero; a training row is no neighbour of its own.
    The search runs over distinct rows, so that a row which occurs a thousand times
    costs no more than one.

    Parameters
    ----------
    X : ndarray or CSR of shape (n_samples, n_features)
    n_neighbors : int
        At most ``n_samples - 1``.
    metric : str, default="euclidean"
        One of ``METRICS``.
    n_jobs : int, default=None
        Number of threads.

    Attributes
    ----------
    book : RowBook
    n_neighbors : int
    """

    def __init__(
        self, X, n_neighbors: int, *, metric: str = "euclidean", n_jobs=None
    ) -> None:
        self.book = RowBook(X)
        self.n_neighbors = n_neighbors
        self._metric = metric
        self._n_jobs = n_jobs
        self._distinct = X[self.book.firsts].astype(np.float64)
        # No row needs more of its equals than there are places, beside itself.
        self._members = _Members(self.book.inverse, n_neighbors + 1)
        # A search by inner products loses digits to what all rows have in common.
        is_centered = metric == "euclidean" and not sparse.issparse(X)
        self._center = self._distinct.mean(axis=0) if is_centered else None
        points = self._shift(self._distinct)
        self._largest_norm = _squared_norms(points).max()
        algorithm = "auto" if X.shape[1] <= _TREE_COLUMNS else "brute"
        self._search = NearestNeighbors(metric=metric, algorithm=algorithm).fit(points)

    def of_training(self) -> Neighborhoods:
        """Return the neighbours of the distinct training rows, in their order."""
        n_distinct = self._distinct.shape[0]
        return self._find(self._distinct, np.arange(n_distinct), self.n_neighbors + 2)

    def of_new(self, X) -> Neighborhoods:
        """Return the neighbours of rows that are no training rows."""
        X = X.astype(np.float64)
        return self._find(X, np.full(X.shape[0], -1), self.n_neighbors + 1)

    def map_blocks(
        self, function: Callable[..., np.ndarray], found: Neighborhoods, X=None
    ) -> np.ndarray:
        """Return what ``function`` gives for each row, in blocks and on threads.

        Parameters
        ----------
        function : callable
            Called with the rows of a block, the coordinates of their neighbours and
            the distances to them, of shapes (n_rows, n_columns), (n_rows, n_neighbors,
            n_columns) and (n_rows, n_neighbors). Sparse rows come as dense ones of
            those columns that are in use in the block.
        found : Neighborhoods
            The neighbours of ``X``.
        X : ndarray or CSR of shape (n_rows, n_features), default=None
            The distinct training rows if None.

        Returns
        -------
        values : ndarray of shape (n_rows,)
        """
        X = self._distinct if X is None else X.astype(np.float64)
        values = np.empty(X.shape[0])
        # Four arrays over pairs of neighbours and three of coordinates.
        row_bytes = 8 * self.n_neighbors * (4 * self.n_neighbors + 3 * X.shape[1])
        blocks = list(_cut(X.shape[0], _BLOCK_BYTES // row_bytes))

        def work(_: int, share: range) -> None:
            for number in share:
                block = blocks[number]
                places = self.book.inverse[found.indices[block]]
                rows, near = _gather(X[block], self._distinct, places)
                values[block] = function(rows, near, found.distances[block])

        with use_threads(self._n_jobs) as threads:
            threads.share(len(blocks), work)
        return values

    def between(self, near: np.ndarray) -> np.ndarray:
        """Return the distances between the neighbours of each row of a block.

        Parameters
        ----------
        near : ndarray of shape (n_rows, n_neighbors, n_columns)

        Returns
        -------
        distances : ndarray of shape (n_rows, n_neighbors, n_neighbors)
        """
        if self._metric == "euclidean":
            return _distances_within(near)
        return np.stack([pairwise_distances(row, metric=self._metric) for row in near])

    def _find(self, X, own: np.ndarray, n_candidates: int) -> Neighborhoods:
        """Find neighbours of rows; ``own`` is the distinct row that each is, or -1.

        One candidate more than needed shows whether rows that were not looked at may
        be as near as the last neighbour. Where so, twice as many are looked at.
        """
        n_distinct = self._distinct.shape[0]
        n_candidates = min(n_candidates, n_distinct)
        indices = np.empty((X.shape[0], self.n_neighbors), dtype=np.intp)
        distances = np.empty((X.shape[0], self.n_neighbors))
        row_bytes = _CANDIDATE_BYTES * n_candidates * int(self._members.counts.max())
        for block in _cut(X.shape[0], _SEARCH_BYTES // row_bytes):
            rows, mine = X[block], own[block]
            places, away = self._search_block(rows, mine, n_candidates)
            chosen = self._choose(places, away, mine)
            last = chosen.distances[:, -1]
            is_open = away.max(axis=1) <= self._widen(last, rows)
            if n_candidates < n_distinct and is_open.any():
                again = self._find(rows[is_open], mine[is_open], 2 * n_candidates)
                chosen.indices[is_open] = again.indices
                chosen.distances[is_open] = again.distances
            indices[block], distances[block] = chosen.indices, chosen.distances
        return Neighborhoods(indices, distances)

    def _search_block(
        self, X, own: np.ndarray, n_candidates: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest distinct rows, unordered, and how far away they are."""
        with use_threads(self._n_jobs) as threads:
            self._search.set_params(n_jobs=threads.n_threads)
            away, places = self._search.kneighbors(self._shift(X), n_candidates)
        if self._metric == "euclidean":
            row_bytes = 16 * n_candidates * _count_columns(X)
            for block in _cut(X.shape[0], _BLOCK_BYTES // row_bytes):
                away[block] = _measure(X[block], self._distinct, places[block])
        # Other metrics may give a row a small distance to itself.
        away[places == own[:, None]] = 0.0
        return places, away

    def _choose(
        self, places: np.ndarray, away: np.ndarray, own: np.ndarray
    ) -> Neighborhoods:
        """Choose the first training rows by (distance, index) from distinct rows."""
        n_neighbors = self.n_neighbors
        if self._members.counts.max() == 1:
            # Distinct rows are numbered in the order of the rows.
            away = np.where(places == own[:, None], np.inf, away)
            order = np.lexsort((places, away))[:, :n_neighbors]
            chosen = np.take_along_axis(places, order, axis=1)
            return Neighborhoods(
                self.book.firsts[chosen], np.take_along_axis(away, order, axis=1)
            )
        counts = self._members.counts[places] - (places == own[:, None])
        order = np.argsort(away, axis=1)
        reached = np.cumsum(np.take_along_axis(counts, order, axis=1), axis=1)
        last = (reached < n_neighbors).sum(axis=1, keepdims=True)
        last = np.take_along_axis(order, last, axis=1)
        row, column = np.nonzero(away <= np.take_along_axis(away, last, axis=1))
        # Each distinct row is replaced by the training rows that are equal to it.
        place = places[row, column]
        member, n_members = self._members.expand(place)
        row, distance = (
            np.repeat(each, n_members) for each in (row, away[row, column])
        )
        itself = np.where(own < 0, -1, self.book.firsts[own])
        others = np.flatnonzero(member != itself[row])
        order = others[np.lexsort((member[others], distance[others], row[others]))]
        starts = np.searchsorted(row[order], np.arange(len(own)))
        chosen = order[starts[:, None] + np.arange(n_neighbors)]
        return Neighborhoods(member[chosen], distance[chosen])

    def _shift(self, X):
        return X if self._center is None else X - self._center

    def _widen(self, distances: np.ndarray, X) -> np.ndarray:
        """Return distances up to which the search may have missed a nearer row."""
        if self._metric != "euclidean":
            return distances * (1 + 1e-9) + 1e-14
        # The search may compute squared distances as |x|^2 + |y|^2 - 2 x.y.
        norms = _squared_norms(self._shift(X)) + self._largest_norm
        return np.sqrt(distances**2 * (1 + 1e-12) + 32 * _EPS * norms)


class _Members:
    """Which training rows each distinct row stands for, at most the first few."""

    def __init__(self, inverse: np.ndarray, limit: int) -> None:
        self._rows = np.argsort(inverse, kind="stable")
        counts = np.bincount(inverse)
        self._starts = np.cumsum(counts) - counts
        self.counts = np.minimum(counts, limit)

    def expand(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the rows of distinct rows, one list after the other, and how many."""
        counts = self.counts[places]
        ends = np.cumsum(counts)
        within = np.arange(counts.sum()) - np.repeat(ends - counts, counts)
        return self._rows[np.repeat(self._starts[places], counts) + within], counts


class NeighborDetector(Detector):
    """Base of the detectors that look at a row and its nearest neighbours.

    A detector gives two methods: ``_fit_neighborhoods`` returns the scores of the
    distinct training rows, ``_score_neighborhoods`` those of rows that are not among
    them. Rows that are equal get one score.
    """

    _parameter_constraints: ClassVar[dict] = {
        **Detector._parameter_constraints,
        "n_neighbors": [Interval(Integral, 1, None, closed="left")],
        "n_jobs": [Integral, None],
    }

    # The fewest neighbours that the score is defined for.
    _fewest_neighbors = 1

    @abstractmethod
    def _fit_neighborhoods(self, found: Neighborhoods) -> np.ndarray:
        """Return the scores of the distinct training rows."""

    @abstractmethod
    def _score_neighborhoods(self, X, found: Neighborhoods) -> np.ndarray:
        """Return the scores of rows that are no training rows."""

    def _fit(self, X) -> np.ndarray:
        self.n_neighbors_ = count_neighbors(self, X.shape[0], self._fewest_neighbors)
        self._neighbors = Neighbors(
            X,
            self.n_neighbors_,
            metric=getattr(self, "metric", "euclidean"),
            n_jobs=self.n_jobs,
        )
        self._scores = self._fit_neighborhoods(self._neighbors.of_training())
        return self._scores[self._neighbors.book.inverse]

    def _score(self, X) -> np.ndarray:
        return recall(self._neighbors.book, self._scores, X, self._score_new)

    def _score_new(self, X) -> np.ndarray:
        return self._score_neighborhoods(X, self._neighbors.of_new(X))


def recall(
    book: RowBook, known: np.ndarray, X, score: Callable[..., np.ndarray]
) -> np.ndarray:
    """Score rows: training rows as in the fit, the others by ``score``.

    Parameters
    ----------
    book : RowBook
    known : ndarray of shape (n_distinct,)
        The scores of the distinct training rows.
    X : ndarray or CSR of shape (n_rows, n_features)
    score : callable

    Returns
    -------
    scores : ndarray of shape (n_rows,)
    """
    places = book.find(X)
    scores = known[places]
    is_new = places < 0
    if is_new.any():
        scores[is_new] = score(X[is_new])
    return scores


def count_neighbors(detector: Detector, n_samples: int, fewest: int) -> int:
    """Return how many neighbours a row of the fit has: at most all others."""
    if n_samples <= fewest:
        name = type(detector).__name__
        raise ValueError(
            f"n_samples={n_samples} should be at least {fewest + 1}: {name} compares "
            f"each row with {fewest} others or more. Give more rows."
        )
    if detector.n_neighbors < n_samples:
        return detector.n_neighbors
    warnings.warn(
        f"n_neighbors={detector.n_neighbors} should be smaller than "
        f"n_samples={n_samples}. {n_samples - 1} neighbours are used instead.",
        UserWarning,
        # This function, _fit, fit and what scikit-learn wraps around it.
        stacklevel=5,
    )
    return n_samples - 1


def divide(lengths: np.ndarray, others: np.ndarray, largest: float) -> np.ndarray:
    """Return ``lengths / others``, finite where rows coincide.

    Where both are zero, the result is 1. Elsewhere ``others`` are taken as at least the
    rounding error of ``largest``, so that a length without anything to compare it with
    gives a large number that still grows with the length.
    """
    floor = _EPS * (largest or 1.0)
    with np.errstate(over="ignore"):
        ratios = np.minimum(lengths / np.maximum(others, floor), _LARGEST)
    return np.where((lengths == 0) & (others == 0), 1.0, ratios)


def _digest(X) -> Iterator[bytes]:
    """Return a key for each row; equal rows, whatever their dtype, have one key."""
    if sparse.issparse(X):
        X = X.astype(np.float64, copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        indices = X.indices.astype(np.int64)
        for start, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
            key = indices[start:end].tobytes() + X.data[start:end].tobytes()
            yield blake2b(key, digest_size=16).digest()
        return
    for block in _cut(X.shape[0], _BLOCK_BYTES // (8 * X.shape[1])):
        # Adding zero turns -0.0 into 0.0, which it is equal to.
        for row in X[block].astype(np.float64) + 0.0:
            yield blake2b(row.tobytes(), digest_size=16).digest()


def _cut(n_rows: int, size: int) -> Iterator[slice]:
    """Cut rows into blocks of about ``size``, at least one row each."""
    size = max(1, size)
    for start in range(0, n_rows, size):
        yield slice(start, min(start + size, n_rows))


def _count_columns(X) -> int:
    """Return how many columns of a row take memory."""
    return X.nnz // X.shape[0] + 1 if sparse.issparse(X) else X.shape[1]


def _squared_norms(X) -> np.ndarray:
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).sum(axis=1)).ravel()
    return np.einsum("ij,ij->i", X, X)


def _measure(X, distinct, places: np.ndarray) -> np.ndarray:
    """Return the distances of rows to distinct rows, from differences."""
    if sparse.issparse(X):
        repeated = np.repeat(np.arange(X.shape[0]), places.shape[1])
        differences = X[repeated] - distinct[places.ravel()]
        return np.sqrt(_squared_norms(differences)).reshape(places.shape)
    differences = distinct[places]
    differences -= X[:, None, :]
    return np.sqrt(np.einsum("ijk,ijk->ij", differences, differences))


def _gather(X, distinct, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows, and the coordinates of their neighbours, dense."""
    if not sparse.issparse(X):
        return X, distinct[places]
    used, inverse = np.unique(places, return_inverse=True)
    both = sparse.vstack([distinct[used], X]).tocsr()
    columns = np.unique(both.indices)
    # One column is there even if all of these rows are zero.
    both = both[:, columns if len(columns) else [0]].toarray()
    return both[len(used) :], both[inverse.reshape(places.shape)]


def _distances_within(points: np.ndarray) -> np.ndarray:
    """Return the distances between the points of each set.

    Parameters
    ----------
    points : ndarray of shape (n_sets, n_points, n_columns)

    Returns
    -------
    distances : ndarray of shape (n_sets, n_points, n_points)
    """
    # Seen from the first point, what all of them have in common is gone.
    seen = points - points[:, :1]
    norms = np.einsum("ijk,ijk->ij", seen, seen)
    sums = norms[:, :, None] + norms[:, None, :]
    squares = seen @ seen.transpose(0, 2, 1)
    squares *= -2
    squares += sums
    diagonal = np.arange(points.shape[1])
    squares[:, diagonal, diagonal] = np.inf
    sums *= _CLOSE
    is_close = squares < sums
    if is_close.any():
        _measure_again(squares, points, is_close)
    squares[:, diagonal, diagonal] = 0.0
    return np.sqrt(squares, out=squares)


def _measure_again(
    squares: np.ndarray, points: np.ndarray, is_close: np.ndarray
) -> None:
    """Replace the squared distances of close points by those from differences."""
    row, i, j = np.nonzero(is_close)
    for block in _cut(len(row), _BLOCK_BYTES // (16 * points.shape[2])):
        part = row[block], i[block], j[block]
        differences = points[part[0], part[1]] - points[part[0], part[2]]
        squares[part] = np.einsum("ij,ij->i", differences, differences)
