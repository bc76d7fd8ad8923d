"""Nearest neighbours: exact distances, ties by row order, everything in blocks."""

import warnings
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral
from typing import ClassVar

import numpy as np
from scipy import sparse
from sklearn.neighbors import NearestNeighbors

from corral._blocks import cut_rows
from corral._offsets import find_medians, shift
from corral._room import measure_rows
from corral._row_book import RowBook, as_kind
from corral._sklearn_compat import Interval
from corral._threads import use_threads
from corral._tiles import level_rows
from corral.detectors._base import Detector

# Those that scikit-learn knows for dense and for sparse rows and that need no further
# parameter.
METRICS = frozenset({"euclidean", "manhattan", "cosine"})

# A tree is the faster search in few columns, brute force in many. For 50 neighbours
# among 20,000 rows, a tree takes 0.4 times as long as brute force in 4 columns, 0.7 in
# 5, 1.4 in 6 and 2.6 in 8. Six and not five, because the time of brute force grows
# faster with the number of rows: large data gain most from a tree.
_TREE_COLUMNS = 6

# What the arrays of one block of rows may take, for each thread. From 2 to 8 MB the
# time is least: below, calls of NumPy cost more than their work; above, blocks leave
# the cache.
_BLOCK_BYTES = 4 * 2**20

# What a neighbour of a row takes, and a row beside its neighbours. Measured with 20 and
# 100 neighbours, on 20,000 to 200,000 rows.
_NEIGHBOR_BYTES = 50
_BYTES_BESIDE = 400

# What the candidates of one search may take: their places and distances, twice, and
# what sorting them needs.
_SEARCH_BYTES = 64 * 2**20
_CANDIDATE_BYTES = 64

# Squared distances that come from inner products are computed again from differences
# where they are below this share of the squared lengths; above it, four of sixteen
# digits are lost at most.
_CLOSE = 1e-4

# Unit rows that are closer than this differ by the rounding of their lengths only.
_PARALLEL = 1e-14

# Rows are scaled where the largest size is beyond 2**_LARGE_EXPONENT, so that squares
# and sums of them are finite, and where it is below 2**_SMALL_EXPONENT. The first is
# close to the limit of float64 and not near 1: rows beside one huge row must not
# vanish.
_LARGE_EXPONENT = 480
_SMALL_EXPONENT = -20

# Rows that are scored may be farther away still. No value is taken as larger than this.
FAR = 2.0**500

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


class Neighbors:
    """The nearest neighbours among training rows, and the distances between them.

    Neighbours are the first ``n_neighbors`` rows by (distance, index). Rows that are
    equal are neighbours at distance zero; a training row is not its own neighbour.
    The search runs over distinct rows, so that a row which occurs a thousand times
    costs no more than one.

    The points are the rows times a power of two, 1 unless values are huge or tiny. For
    "cosine" they are the rows divided by their lengths, and the cosine distance is half
    the squared distance of points: neighbours are the same, and no digits are lost
    between rows that are nearly parallel.

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
    scale : float
        What rows are multiplied by. Distances are those of the multiplied rows.
    """

    def __init__(
        self, X, n_neighbors: int, *, metric: str = "euclidean", n_jobs=None
    ) -> None:
        self.book = RowBook(X)
        self.n_neighbors = n_neighbors
        self._metric = metric
        self._n_jobs = n_jobs
        self._is_sparse = sparse.issparse(X)
        self.scale = 1.0 if metric == "cosine" else choose_scale(measure_size(X))
        self._distinct = self._place(X[self.book.firsts])
        self._set_search()

    def _set_search(self) -> None:
        """Set what finds rows, which follows from the points and is not saved."""
        # No row needs more of its equals than there are places, beside itself.
        self._members = _Members(self.book.inverse, self.n_neighbors + 1)
        # For "cosine", points have one column more than rows.
        n_features = self._distinct.shape[1] - (self._metric == "cosine")
        is_brute = self._is_sparse or n_features > _TREE_COLUMNS
        # Brute force computes squared distances as |x|^2 + |y|^2 - 2 x.y.
        self._by_products = is_brute and self._metric != "manhattan"
        # It loses digits to what all rows have in common. Medians, as one far row must
        # not move the origin away from the others.
        self._center = find_medians(self._distinct) if self._by_products else None
        self._search = NearestNeighbors(
            metric="manhattan" if self._metric == "manhattan" else "euclidean",
            algorithm="brute" if is_brute else "kd_tree",
        ).fit(self._shift(self._distinct))

    def of_training(self) -> Neighborhoods:
        """Return the neighbours of the distinct training rows, in their order."""
        own = np.arange(self._distinct.shape[0])
        found = self._find(self._distinct, own, self.n_neighbors + 2)
        return Neighborhoods(found.indices, self._convert(found.distances))

    def of_new(self, X) -> Neighborhoods:
        """Return the neighbours of rows that are not training rows."""
        own = np.full(X.shape[0], -1)
        found = self._find(self._place_new(X), own, self.n_neighbors + 1)
        return Neighborhoods(found.indices, self._convert(found.distances))

    def map_blocks(
        self, function: Callable[..., np.ndarray], found: Neighborhoods, X=None
    ) -> np.ndarray:
        """Return what ``function`` gives for each row, in blocks and on threads.

        Parameters
        ----------
        function : callable
            Called with the points of a block, the points of their neighbours and the
            distances to them, of shapes (n_rows, n_columns), (n_rows, n_neighbors,
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
        X = self._distinct if X is None else self._place_new(X)
        values = np.empty(X.shape[0])
        # Four arrays over pairs of neighbours and three of coordinates.
        row_bytes = 8 * self.n_neighbors * (4 * self.n_neighbors + 3 * X.shape[1])
        blocks = cut_rows(X.shape[0], _BLOCK_BYTES // row_bytes)

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
        if self._metric == "manhattan":
            return _manhattan_within(near)
        return self._convert(_distances_within(near))

    def _find(self, X, own: np.ndarray, n_candidates: int) -> Neighborhoods:
        """Find neighbours of points; ``own`` is the distinct row that each is, or -1.

        One candidate more than needed shows whether rows that were not looked at may
        be as near as the last neighbour. Where so, twice as many are looked at.
        """
        n_distinct = self._distinct.shape[0]
        n_candidates = min(n_candidates, n_distinct)
        indices = np.empty((X.shape[0], self.n_neighbors), dtype=np.intp)
        distances = np.empty((X.shape[0], self.n_neighbors))
        row_bytes = _CANDIDATE_BYTES * n_candidates * int(self._members.counts.max())
        for block in cut_rows(X.shape[0], _SEARCH_BYTES // row_bytes):
            rows, mine = X[block], own[block]
            places, away = self._search_block(rows, n_candidates)
            chosen = self._choose(places, away, mine)
            last = chosen.distances[:, -1]
            is_open = away.max(axis=1) <= self._widen(last, rows)
            if n_candidates < n_distinct and is_open.any():
                again = self._find(rows[is_open], mine[is_open], 2 * n_candidates)
                chosen.indices[is_open] = again.indices
                chosen.distances[is_open] = again.distances
            indices[block], distances[block] = chosen.indices, chosen.distances
        return Neighborhoods(indices, distances)

    def _search_block(self, X, n_candidates: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the nearest distinct rows, unordered, and how far away they are."""
        with use_threads(self._n_jobs) as threads:
            self._search.set_params(n_jobs=threads.n_threads)
            away, places = self._search.kneighbors(self._shift(X), n_candidates)
        if self._metric != "manhattan":
            row_bytes = 16 * n_candidates * _count_columns(X)
            for block in cut_rows(X.shape[0], _BLOCK_BYTES // row_bytes):
                away[block] = _measure(X[block], self._distinct, places[block])
        if self._metric == "cosine":
            away[away < _PARALLEL] = 0.0
        return places, away

    def _choose(
        self, places: np.ndarray, away: np.ndarray, own: np.ndarray
    ) -> Neighborhoods:
        """Choose the first training rows by (distance, index) from distinct rows."""
        if self._members.counts.max() == 1:
            return self._choose_single(places, away, own)
        return self._choose_members(places, away, own)

    def _choose_single(
        self, places: np.ndarray, away: np.ndarray, own: np.ndarray
    ) -> Neighborhoods:
        """Choose where no two training rows are equal."""
        # Distinct rows are numbered in the order of the rows.
        away = np.where(places == own[:, None], np.inf, away)
        order = np.lexsort((places, away))[:, : self.n_neighbors]
        chosen = np.take_along_axis(places, order, axis=1)
        return Neighborhoods(
            self.book.firsts[chosen], np.take_along_axis(away, order, axis=1)
        )

    def _choose_members(
        self, places: np.ndarray, away: np.ndarray, own: np.ndarray
    ) -> Neighborhoods:
        """Choose where a distinct row may stand for several training rows."""
        n_neighbors = self.n_neighbors
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

    def _place(self, X):
        """Return the points of rows, of the kind that the training rows are of."""
        X = as_kind(X, is_sparse=self._is_sparse).astype(np.float64, copy=False)
        if self._metric == "cosine":
            return _to_unit(X)
        return X if self.scale == 1 else X * self.scale

    def _place_new(self, X):
        with np.errstate(over="ignore"):
            points = self._place(X)
        return limit(points, max(FAR, 2 * float(abs(self._distinct).max())))

    def _shift(self, points):
        return points if self._center is None else shift(points, self._center)

    def _convert(self, distances: np.ndarray) -> np.ndarray:
        """Turn distances of points into those of the metric."""
        if self._metric != "cosine":
            return distances
        return np.where(distances < _PARALLEL, 0.0, distances**2 / 2)

    def _widen(self, distances: np.ndarray, points) -> np.ndarray:
        """Return distances up to which the search may have missed a nearer row."""
        if not self._by_products:
            return distances * (1 + 1e-12)
        # The error of |x|^2 + |y|^2 - 2 x.y is at most 32 eps (|x|^2 + |y|^2). Where
        # |y| < 2 |x|, that is below 160 eps |x|^2. Elsewhere the distance is at least
        # |y| / 2, and the error is below 160 eps times its square. So other rows, be
        # they as far away as they may, do not come in.
        norms = _squared_norms(self._shift(points))
        return np.sqrt(distances**2 * (1 + 1e-12) + 160 * _EPS * norms)


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

    def _get_metric(self) -> str:
        """Return the metric of the search; for detectors with that parameter, it."""
        return "euclidean"

    @abstractmethod
    def _fit_neighborhoods(self, found: Neighborhoods) -> np.ndarray:
        """Return the scores of the distinct training rows."""

    @abstractmethod
    def _score_neighborhoods(self, X, found: Neighborhoods) -> np.ndarray:
        """Return the scores of rows that are not training rows."""

    def _count_bytes(self, X) -> int:
        return weigh_neighbors(X, self.n_neighbors)

    def _fit(self, X) -> np.ndarray:
        self.n_neighbors_ = count_neighbors(self, X.shape[0], self._fewest_neighbors)
        self._neighbors = Neighbors(
            X,
            self.n_neighbors_,
            metric=self._get_metric(),
            n_jobs=self.n_jobs,
        )
        self._scores = self._fit_neighborhoods(self._neighbors.of_training())
        return self._scores[self._neighbors.book.inverse]

    def _score(self, X) -> np.ndarray:
        return recall(self._neighbors.book, self._scores, X, self._score_new)

    def _score_new(self, X) -> np.ndarray:
        return self._score_neighborhoods(X, self._neighbors.of_new(X))


def measure_size(X) -> float:
    """Return the largest distance of a value from the median of its column."""
    X = X.astype(np.float64, copy=False)
    with np.errstate(over="ignore"):
        shifted = shift(X, find_medians(X))
    values = shifted.data if sparse.issparse(X) else shifted
    return min(float(np.abs(values).max(initial=0.0)), _LARGEST)


def limit(X, bound: float):
    """Return rows with values beyond plus or minus ``bound`` brought back to it."""
    if not sparse.issparse(X):
        return np.clip(X, -bound, bound)
    X = X.copy()
    X.data = np.clip(X.data, -bound, bound)
    return X


def choose_scale(size: float) -> float:
    """Return the power of two that brings a size into range; 1 if it is."""
    if size == 0:
        return 1.0
    exponent = int(np.frexp(size)[1])
    if exponent > _LARGE_EXPONENT:
        return float(np.ldexp(1.0, _LARGE_EXPONENT - exponent))
    # The scale itself has to be a number of float64.
    return (
        float(np.ldexp(1.0, min(-exponent, 1000)))
        if exponent < _SMALL_EXPONENT
        else 1.0
    )


def _to_unit(X):
    """Return rows of length one, with one more column for rows of zeros.

    That column is 1 for them and 0 for others: rows of zeros have no direction, and
    are as far from every other row as a row at a right angle.
    """
    rows = level_rows(X)
    lengths = np.sqrt(_squared_norms(rows))
    is_zero = lengths == 0
    lengths[is_zero] = 1.0
    if sparse.issparse(rows):
        rows.data /= np.repeat(lengths, np.diff(rows.indptr))
        column = sparse.csr_array(is_zero[:, None].astype(np.float64))
        return sparse.hstack([rows, column], format="csr")
    return np.column_stack([rows / lengths[:, None], is_zero])


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


def weigh_neighbors(X, n_neighbors: int) -> int:
    """Return about how many bytes a search for the neighbours of all rows takes."""
    per_row = _BYTES_BESIDE + _NEIGHBOR_BYTES * min(n_neighbors, X.shape[0])
    return 3 * measure_rows(X) + per_row * X.shape[0]


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


def divide(lengths: np.ndarray, others: np.ndarray, typical: float) -> np.ndarray:
    """Return ``lengths / others``, finite where rows coincide.

    Where both are zero, the result is 1. Where only ``others`` are, they are taken as
    the rounding error of ``typical``, so that a length without anything to compare it
    with gives a large number that still grows with the length.
    """
    others_or_error = np.where(others > 0, others, _EPS * typical)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        ratios = np.minimum(lengths / others_or_error, _LARGEST)
    return np.where((lengths == 0) & (others == 0), 1.0, ratios)


def find_typical(lengths: np.ndarray) -> float:
    """Return the median of the lengths above zero, 1 if there is none.

    Not the largest: one far row must not make all others look alike.
    """
    above = lengths[lengths > 0]
    return float(np.median(above)) if len(above) else 1.0


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


def _manhattan_within(points: np.ndarray) -> np.ndarray:
    """Return the sums of absolute differences between the points of each set."""
    n_sets, n_points, n_columns = points.shape
    sums = np.zeros((n_sets, n_points, n_points))
    for column in range(n_columns):
        values = points[:, :, column]
        differences = values[:, :, None] - values[:, None, :]
        sums += np.abs(differences, out=differences)
    return sums


def _measure_again(
    squares: np.ndarray, points: np.ndarray, is_close: np.ndarray
) -> None:
    """Replace the squared distances of close points by those from differences."""
    row, i, j = np.nonzero(is_close)
    for block in cut_rows(len(row), _BLOCK_BYTES // (16 * points.shape[2])):
        part = row[block], i[block], j[block]
        differences = points[part[0], part[1]] - points[part[0], part[2]]
        squares[part] = np.einsum("ij,ij->i", differences, differences)
