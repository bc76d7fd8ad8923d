"""Rows as K-means sees them: shifted or normalised, and cut into tiles."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from corral._blocks import RowSource, cut_rows

# A tile should be large enough that the Python calls per tile do not count (two
# threads that make short calls wait for each other), and small enough that the scores
# of its rows stay in the cache. Measured with 400 centres and 2 threads: one pass over
# 494,021 x 38 rows takes 0.21 s with 2048 rows and 0.26 s with 6144; Lloyd's algorithm,
# with more calls per tile, on 58,000 x 9 rows 1.1 s with 2048 and 0.9 s with 4096.
MAX_TILE_ROWS = 2048
MAX_LLOYD_TILE_ROWS = 4096
_MAX_SPARSE_TILE_ROWS = 1024
_MAX_TILE_SCORES = 2**22
_MAX_TILE_VALUES = 2**19

# Tiles that are used in every iteration are kept ready up to this many values.
_MAX_KEPT_VALUES = 2**23

# Points are scaled only where their squares come near the limits of float32.
_SAFE_EXPONENT = 40

# The square of a point of this size, in units of the farthest, is a number.
_LEAST_SCALE = 2.0**-500

# Columns that are added up at once, fewer than NumPy's buffer of 8,192 numbers.
_STRIP = 4096


@dataclass(frozen=True)
class RowSpace:
    """The space in which K-means is run, as a map from a block of rows.

    Attributes
    ----------
    metric : {"euclidean", "cosine"}
        For "cosine" each row is divided by its norm; a row of zeros stays as it is.
    shift : ndarray of shape (n_features,) or None
        Taken from each row, so that a large common offset does not eat up the digits
        of the products. None for cosine, and where most values of each column are zero.
    scale : float
        A power of two that each row is multiplied by; 1 unless the values are huge or
        tiny.
    dtype : numpy dtype
        Of the points.
    """

    metric: str
    shift: np.ndarray | None
    scale: float
    dtype: np.dtype

    @classmethod
    def fit(cls, metric: str, rows, largest: float = 0.0) -> "RowSpace":
        """Choose the shift and the scale from some of the rows.

        Parameters
        ----------
        metric : {"euclidean", "cosine"}
        rows : ndarray or csr_array of shape (n_rows, n_features)
        largest : float
            The largest size of a value in all rows, if these are not all.
        """
        if metric == "cosine":
            return cls(metric, None, 1.0, rows.dtype)
        if sparse.issparse(rows):
            shift = _find_sparse_medians(rows)
            points = rows if shift is None else _subtract(rows, shift)
            scale = choose_scale(points.data, largest)
            _check_rows_count(points, scale)
            return cls(metric, shift, scale, rows.dtype)
        # The median and not the mean: one far row must not move the origin away
        # from all the others. Column by column, because it copies what it is given.
        shift = np.array([np.median(column) for column in rows.T], dtype=rows.dtype)
        with np.errstate(over="ignore"):
            sides = np.stack([rows.max(axis=0) - shift, shift - rows.min(axis=0)])
        scale = choose_scale(sides, largest)
        _check_rows_count(rows, scale, shift)
        return cls(metric, shift, scale, rows.dtype)

    @property
    def n_shifted(self) -> int:
        """How many columns are shifted."""
        return 0 if self.shift is None else int(np.count_nonzero(self.shift))

    @property
    def is_filling(self) -> bool:
        """Whether sparse rows have hardly any zeros here."""
        return 2 * self.n_shifted > (0 if self.shift is None else len(self.shift))

    def place(self, block, out: np.ndarray | None = None):
        """Return the block's points in this space.

        Parameters
        ----------
        block : ndarray or csr_array of shape (n_rows, n_features)
        out : ndarray of the same shape, optional
            Where to put the points of a dense block.

        Returns
        -------
        points : the same kind, always a new array
        """
        if block.dtype != self.dtype:
            block = _clip(block, self.dtype)
        if sparse.issparse(block):
            points = block if self.shift is None else _subtract(block, self.shift)
            points = points.astype(self.dtype, copy=self.shift is None)
        else:
            points = np.empty(block.shape, self.dtype) if out is None else out
            shift = 0 if self.shift is None else self.shift
            with np.errstate(over="ignore"):
                np.subtract(block, shift, out=points, casting="same_kind")
        if self.scale != 1:
            points *= self.scale
        if self.metric == "cosine":
            _normalise_in_place(points)
        return points


def _clip(rows, dtype: np.dtype):
    """Return rows whose values a precision can hold, and their differences as well.

    What float32 cannot hold is as far away as it can say.
    """
    limit = np.finfo(dtype).max / 2
    if not sparse.issparse(rows):
        return np.clip(rows, -limit, limit)
    parts = np.clip(rows.data, -limit, limit), rows.indices, rows.indptr
    return sparse.csr_array(parts, shape=rows.shape)


def _find_sparse_medians(rows: sparse.csr_array) -> np.ndarray | None:
    """Return the median of each column, None if all are zero."""
    columns = rows.tocsc()
    n_filled = np.diff(columns.indptr)
    medians = np.zeros(rows.shape[1], dtype=rows.dtype)
    # A column with more zeros than other values has a median of zero.
    for column in np.flatnonzero(2 * n_filled >= rows.shape[0]):
        medians[column] = np.median(columns[:, [column]].toarray())
    return medians if medians.any() else None


def _subtract(rows: sparse.csr_array, shift: np.ndarray) -> sparse.csr_array:
    """Return sparse rows less a shift of few columns that is not zero."""
    n_rows = rows.shape[0]
    columns = np.flatnonzero(shift).astype(rows.indices.dtype)
    borders = np.arange(n_rows + 1, dtype=rows.indptr.dtype) * len(columns)
    parts = np.tile(shift[columns], n_rows), np.tile(columns, n_rows), borders
    return rows - sparse.csr_array(parts, shape=rows.shape)


def _check_rows_count(rows, scale: float, shift: np.ndarray | None = None) -> None:
    """Refuse rows beside which others are so far away that their squares vanish."""
    if scale >= _LEAST_SCALE:
        return
    sizes = abs(rows if shift is None else rows - shift).max(axis=1)
    sizes = sizes.toarray().ravel() if sparse.issparse(sizes) else sizes
    n_lost = np.count_nonzero((sizes > 0) & (sizes * scale < _LEAST_SCALE))
    if n_lost:
        raise ValueError(
            f"X has values of size {1 / scale:.3g}, beside which the distances of "
            f"{n_lost} or more other rows cannot be squared: values should be at most "
            f"{1 / _LEAST_SCALE:.3g} in size, or all rows as far apart. Leave out or "
            "clip rows that are far beyond all others."
        )


def choose_scale(values: np.ndarray, largest: float = 0.0) -> float:
    """Return a power of two near one over the largest size; 1 for ordinary sizes."""
    largest = min(np.abs(values).max(initial=largest), np.finfo(np.float64).max)
    # The scale itself has to be a number, in the precision of the values.
    most = 120 if values.dtype == np.float32 else 1000
    exponent = int(np.clip(np.frexp(largest)[1], -most, most)) if largest > 0 else 0
    return float(np.ldexp(1.0, -exponent)) if abs(exponent) > _SAFE_EXPONENT else 1.0


def row_norms(points) -> np.ndarray:
    """Return the Euclidean norm of each row, in float64."""
    return np.sqrt(row_squares(points))


def row_squares(points) -> np.ndarray:
    """Return the squared norm of each row, in float64."""
    with np.errstate(over="ignore"):
        if not sparse.issparse(points):
            return multiply_rows(points, points)
        squares = points.data.astype(np.float64) ** 2
        row_of_value = np.repeat(np.arange(points.shape[0]), np.diff(points.indptr))
        return np.bincount(row_of_value, squares, minlength=points.shape[0])


def multiply_rows(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the dot products of pairs of rows, in float64.

    In strips, because einsum adds up rows longer than its buffer in an order that
    depends on how many they are.
    """
    products = np.zeros(len(left))
    for start in range(0, left.shape[1], _STRIP):
        strip = np.s_[:, start : start + _STRIP]
        products += np.einsum("ij,ij->i", left[strip], right[strip], dtype=np.float64)
    return products


def measure_apart(points, centers, rows: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return squared distances by differences, which keep the digits of small ones.

    Parameters
    ----------
    points : ndarray or csr_array of shape (n_rows, n_features)
    centers : ndarray or, for sparse points, csr_array of shape (n_centers, n_features)
        In float64.
    rows : ndarray of shape (n_chosen,)
        Which rows are measured.
    labels : ndarray of shape (n_rows,)
        The center that each row is measured from.

    Returns
    -------
    squares : ndarray of shape (n_chosen,)
    """
    labels = labels[rows]
    if sparse.issparse(points) and not sparse.issparse(centers):
        used, labels = np.unique(labels, return_inverse=True)
        centers = sparse.csr_array(centers[used])
    n_terms = count_terms(points) + count_terms(centers)
    squares = np.empty(len(rows))
    for here in cut_rows(len(rows), _MAX_TILE_VALUES // max(n_terms, 1)):
        squares[here] = row_squares(points[rows[here]] - centers[labels[here]])
    return squares


def count_terms(X) -> int:
    """Return how many values a row stores at most."""
    return int(np.diff(X.indptr).max(initial=0)) if sparse.issparse(X) else X.shape[1]


def _normalise_in_place(points) -> None:
    # Twice, because the squares of huge and tiny values are beyond all numbers.
    divide_rows(points, _row_sizes(points))
    # In float64 for dense rows as for sparse ones, so that both come out the same.
    norms = row_norms(points if sparse.issparse(points) else points.astype(np.float64))
    divide_rows(points, norms)


def _row_sizes(points) -> np.ndarray:
    """Return a power of two near the largest value of each row, 1 for ordinary ones."""
    if sparse.issparse(points):
        largest = abs(points).max(axis=1).toarray().ravel()
    else:
        largest = np.maximum(points.max(axis=1), -points.min(axis=1))
    exponents = np.frexp(largest.astype(np.float64))[1]
    exponents[np.abs(exponents) <= _SAFE_EXPONENT] = 0
    return np.ldexp(1.0, np.clip(exponents, -1000, 1000))


def level_rows(X):
    """Return rows times powers of two, each of size 1/2 to 1; zeros stay zeros.

    Parameters
    ----------
    X : ndarray or CSR of shape (n_rows, n_features), float64

    Returns
    -------
    rows : the same kind, a new one
    """
    if not sparse.issparse(X):
        return np.ldexp(X, -np.frexp(np.abs(X).max(axis=1, keepdims=True))[1])
    rows = X.copy()
    sizes = abs(X).max(axis=1).toarray().ravel()
    rows.data = np.ldexp(X.data, np.repeat(-np.frexp(sizes)[1], np.diff(X.indptr)))
    return rows


def divide_rows(points, divisors: np.ndarray) -> None:
    """Divide each row by a number of its own, in place; by none if that is zero."""
    divisors = np.where(divisors == 0, 1, divisors)
    if sparse.issparse(points):
        points.data /= np.repeat(divisors, np.diff(points.indptr))
    else:
        points /= divisors[:, None]


@dataclass(frozen=True)
class Tile:
    """A block of rows, ready for products with packed centres.

    Attributes
    ----------
    start, stop : int
        The rows of the source that it holds.
    points : ndarray or csr_array of shape (n_rows, n_features)
    norms : ndarray of shape (n_rows,)
        Euclidean norms of the points, float64.
    augmented : ndarray or csc_array of shape (n_rows, n_features + 2), float32
        See :meth:`augment`.
    """

    start: int
    stop: int
    points: np.ndarray | sparse.csr_array
    norms: np.ndarray
    augmented: np.ndarray | sparse.csc_array

    @classmethod
    def of(cls, start: int, block, space: RowSpace) -> "Tile":
        """Make the tile of a block of rows, the first of which is row ``start``."""
        n_rows, n_features = block.shape
        stop = start + n_rows
        if sparse.issparse(block):
            points = space.place(block)
            norms = row_norms(points)
            augmented = _augment(points, norms, np.dtype(np.float32))
            return cls(start, stop, points, norms, augmented)
        augmented = np.empty((n_rows, n_features + 2), dtype=np.float32)
        points = augmented[:, :n_features]
        if space.dtype == np.float32:
            space.place(block, out=points)
        else:
            points = space.place(block)
            # Too large a value for float32 becomes infinite; its row is settled in
            # float64.
            with np.errstate(over="ignore"):
                augmented[:, :n_features] = points
        norms = row_norms(points)
        augmented[:, n_features] = 1
        with np.errstate(over="ignore"):
            augmented[:, n_features + 1] = norms
        return cls(start, stop, points, norms, augmented)

    @property
    def is_sparse(self) -> bool:
        """Whether the points are sparse."""
        return sparse.issparse(self.points)

    def augment(self, dtype: np.dtype):
        """Return the points, a column of ones and one of the norms in this precision.

        The two columns meet the bias and the error bound of a packed centre.
        """
        if dtype == self.augmented.dtype:
            return self.augmented
        return _augment(self.points, self.norms, dtype)


def _augment(points, norms: np.ndarray, dtype: np.dtype):
    with np.errstate(over="ignore"):
        extra = np.column_stack([np.ones_like(norms), norms]).astype(dtype)
        if sparse.issparse(points):
            # By columns: a product then reads each row of the centres only once.
            return sparse.hstack([points.astype(dtype), extra], format="csc")
        return np.concatenate([points, extra], axis=1, dtype=dtype, casting="same_kind")


class Tiles:
    """All rows of a source, as tiles in a row space.

    Parameters
    ----------
    source : RowSource
    space : RowSpace
    n_scores : int
        How many centres a row will be compared with; sets the size of a tile.
    max_rows : int
        Largest size of a tile.
    """

    def __init__(
        self, source: RowSource, space: RowSpace, n_scores: int, max_rows: int
    ) -> None:
        self._source = source
        self._space = space
        self.n_rows, self.n_features = source.shape
        self.dtype = space.dtype
        self.is_sparse = source.is_sparse
        self.n_terms = source.max_row_values
        if source.is_sparse:
            # A zero that is shifted is none.
            self.n_terms += space.n_shifted
        self.tile_rows = _choose_tile_rows(source, n_scores, max_rows)
        self._kept: dict[int, Tile] | None = None

    def keep(self) -> "Tiles":
        """Keep tiles ready from now on if they are small; for repeated sweeps."""
        if self.n_rows * (self.n_terms + 2) <= _MAX_KEPT_VALUES:
            self._kept = {}
        return self

    def __len__(self) -> int:
        return -(-self.n_rows // self.tile_rows)

    def __getitem__(self, index: int) -> Tile:
        if self._kept is None:
            return self._load(index)
        if index not in self._kept:
            self._kept[index] = self._load(index)
        return self._kept[index]

    def __iter__(self) -> Iterator[Tile]:
        return (self[index] for index in range(len(self)))

    def _load(self, index: int) -> Tile:
        start = index * self.tile_rows
        stop = min(start + self.tile_rows, self.n_rows)
        return Tile.of(start, self._source.read(start, stop), self._space)


def _choose_tile_rows(source: RowSource, n_scores: int, max_rows: int) -> int:
    rows = min(max_rows, _MAX_TILE_SCORES // max(n_scores, 1))
    if source.is_sparse:
        # Sparse products are slow enough that a few rows are worth a thread.
        rows = min(rows, _MAX_SPARSE_TILE_ROWS)
    else:
        rows = min(rows, _MAX_TILE_VALUES // (source.shape[1] + 2))
    return max(rows, 64)
