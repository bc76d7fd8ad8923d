"""Rows that were seen before: found by keys, whatever their storage."""

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np
from scipy import sparse

from corral._blocks import cut_rows

# Dense rows are turned into keys in blocks of this many values, 4 MB of float64.
_BLOCK_VALUES = 2**19

_KEY_BYTES = 16


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
        self._is_sparse = sparse.issparse(X)
        self._places: dict[bytes, int] = {}
        places = self._places
        numbers = (places.setdefault(key, len(places)) for key in _digest(X))
        self.inverse = np.fromiter(numbers, dtype=np.intp, count=X.shape[0])
        self.firsts = np.unique(self.inverse, return_index=True)[1]

    def __getstate__(self) -> dict:
        """Return the state with the keys as an array, which any file format holds."""
        keys = np.frombuffer(b"".join(self._places), dtype=np.uint8)
        return {**self.__dict__, "_places": keys.reshape(-1, _KEY_BYTES)}

    def __setstate__(self, state: dict) -> None:
        keys = state["_places"]
        places = {key.tobytes(): place for place, key in enumerate(keys)}
        self.__dict__.update(state, _places=places)

    def find(self, X) -> np.ndarray:
        """Return which distinct row each row is equal to, -1 for none."""
        X = as_kind(X, is_sparse=self._is_sparse)
        found = (self._places.get(key, -1) for key in _digest(X))
        return np.fromiter(found, dtype=np.intp, count=X.shape[0])


def as_kind(X, *, is_sparse: bool):
    """Return rows as CSR or as an array, whichever is asked for."""
    if sparse.issparse(X) == is_sparse:
        return X
    return sparse.csr_array(X) if is_sparse else X.toarray()


def _digest(X) -> Iterator[bytes]:
    """Return a key for each row; equal rows, whatever their dtype, have one key."""
    if sparse.issparse(X):
        X = X.astype(np.float64, copy=True)
        X.sum_duplicates()
        X.eliminate_zeros()
        indices = X.indices.astype(np.int64)
        for start, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
            key = indices[start:end].tobytes() + X.data[start:end].tobytes()
            yield blake2b(key, digest_size=_KEY_BYTES).digest()
        return
    for block in cut_rows(X.shape[0], _BLOCK_VALUES // X.shape[1]):
        # Adding zero turns -0.0 into 0.0, which it is equal to.
        for row in X[block].astype(np.float64) + 0.0:
            yield blake2b(row.tobytes(), digest_size=_KEY_BYTES).digest()
