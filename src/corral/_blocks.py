"""Where rows come from: one small protocol that the stages read through."""

from typing import Protocol

import numpy as np
from scipy import sparse


class RowSource(Protocol):
    """Rows that can be read in blocks, more than once.

    Attributes
    ----------
    shape : tuple of (n_samples, n_features)
    dtype : numpy dtype, float32 or float64
    is_sparse : bool
        Whether blocks come as CSR arrays; otherwise as 2-D ndarrays.
    max_row_values : int
        How many values a row stores at most.
    """

    shape: tuple[int, int]
    dtype: np.dtype
    is_sparse: bool
    max_row_values: int

    def read(self, start: int, stop: int):
        """Return the rows ``start`` to ``stop - 1``."""

    def take(self, rows: np.ndarray):
        """Return the rows with these sorted indices."""


class ArrayRows:
    """Rows of an array in memory or of a memory map: a :class:`RowSource`.

    Parameters
    ----------
    X : ndarray or sparse array in CSR format, of shape (n_samples, n_features)
        Never copied as a whole and never written to.
    """

    def __init__(self, X) -> None:
        self.is_sparse = sparse.issparse(X)
        if self.is_sparse:
            # A CSR of an older kind would give matrices, whose operators differ.
            X = tidy_rows(sparse.csr_array(X))
        self._X = X
        self.shape = X.shape
        self.dtype = X.dtype
        self.max_row_values = X.shape[1]
        if self.is_sparse:
            self.max_row_values = int(np.diff(X.indptr).max(initial=0))

    def read(self, start: int, stop: int):
        """Return the rows ``start`` to ``stop - 1``: a view where X is dense."""
        return self._X[start:stop]

    def take(self, rows: np.ndarray):
        """Return a copy of the rows with these indices."""
        return self._X[rows]


class DenseRows:
    """Sparse rows read as dense ones: a :class:`RowSource`.

    Parameters
    ----------
    source : RowSource
        Of sparse rows.
    """

    is_sparse = False

    def __init__(self, source: RowSource) -> None:
        self._source = source
        self.shape = source.shape
        self.dtype = source.dtype
        self.max_row_values = source.shape[1]

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return the rows ``start`` to ``stop - 1``."""
        return self._source.read(start, stop).toarray()

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return the rows with these sorted indices."""
        return self._source.take(rows).toarray()


def tidy_rows(rows):
    """Return sparse rows with sorted indices and no repeated entry, dense as they are.

    Repeated entries would count twice in a norm. What is not tidy is copied.
    """
    if sparse.issparse(rows) and not rows.has_canonical_format:
        rows = rows.copy()
        rows.sum_duplicates()
    return rows


def find_size(values: np.ndarray) -> float:
    """Return the largest size of a value; NaN has none, and no values have size 0."""
    top = np.fmax.reduce(values, axis=None, initial=0)
    bottom = np.fmin.reduce(values, axis=None, initial=0)
    return float(max(top, -bottom))


def cut_rows(n_rows: int, size: int) -> list[slice]:
    """Cut rows into blocks of at most ``size``, or of one row."""
    size = max(size, 1)
    return [slice(start, min(start + size, n_rows)) for start in range(0, n_rows, size)]


def share_out_rows(rows: np.ndarray, sizes: np.ndarray) -> list[np.ndarray]:
    """Return which rows of each block are meant by these rows, which are sorted."""
    borders = np.concatenate([[0], np.cumsum(sizes)])
    parts = np.split(rows, np.searchsorted(rows, borders[1:-1]))
    return [part - start for part, start in zip(parts, borders[:-1], strict=True)]
