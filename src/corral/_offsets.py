"""What is taken from columns far from zero, so that products keep their digits."""

import numpy as np
from scipy import sparse

# A column is shifted by its median where that is so many times its median deviation.
_LARGE_OFFSET = 1e3


def find_medians(X) -> np.ndarray:
    """Return the median of each column, of an array or of sparse rows."""
    if not sparse.issparse(X):
        return np.median(X, axis=0)
    medians = np.zeros(X.shape[1])
    full, values = _take_full_columns(X)
    medians[full] = np.median(values, axis=0)
    return medians


def find_offsets(X) -> np.ndarray:
    """Return the median of each column whose spread is tiny beside it, else 0."""
    if not sparse.issparse(X):
        medians = np.median(X, axis=0)
        with np.errstate(over="ignore"):
            spreads = np.median(np.abs(X - medians), axis=0)
        return np.where(np.abs(medians) / _LARGE_OFFSET > spreads, medians, 0.0)
    offsets = np.zeros(X.shape[1])
    full, values = _take_full_columns(X)
    offsets[full] = find_offsets(values)
    return offsets


def _take_full_columns(X) -> tuple[np.ndarray, np.ndarray]:
    """Return which columns have half of their values or more stored, and these.

    The median of the others is 0. As an array, these take no more than twice the
    memory of their values.
    """
    stored = np.bincount(X.indices, minlength=X.shape[1])
    full = np.flatnonzero(2 * stored >= X.shape[0])
    return full, X[:, full].toarray()


def shift(X, offsets: np.ndarray):
    """Return rows minus ``offsets``, of the kind that they are of."""
    if not sparse.issparse(X):
        return X - offsets
    if not offsets.any():
        return X
    ones = sparse.csr_array(np.ones((X.shape[0], 1)))
    return (X - ones @ sparse.csr_array(offsets[None, :])).tocsr()
