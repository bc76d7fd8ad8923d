"""Arrays in memory, memory maps and .npy files as a source."""

import hashlib
import mmap
import os
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np
from scipy import sparse

from corral._blocks import cut_rows
from corral._visible import spell_out
from corral.sources._base import check_range
from corral.sources._errors import UnreadableBlockError
from corral.sources._files import FileMark, describe_files, mark_file
from corral.tables._broken import Broken, say_broken
from corral.tables._npz import read_head

# A piece between two borders has about so many bytes: work for a process of its own.
_PIECE_BYTES = 2**26


class _Map(NamedTuple):
    """Where in a file an array is, enough to map it again."""

    mark: FileMark
    dtype: np.dtype
    offset: int
    shape: tuple[int, int]
    order: Literal["C", "F"]


class ArraySource:
    """Rows of an array, a memory map or a CSR array.

    A memory map is kept and pickled as the name of its file, and read from there; other
    arrays are pickled with all their rows.

    Parameters
    ----------
    X : ndarray, memmap or sparse matrix of shape (n_samples, n_columns)
        Of numbers. Never copied as a whole, unless it is sparse and not CSR.
    name : str, default="The array"
        What errors call it.

    Attributes
    ----------
    shape : tuple of (n_samples, n_columns)
    dtype : numpy dtype
    names : None
        Arrays have no names.
    borders : list of int
        The rows at which pieces of about 64 MiB begin, and n_samples.
    skipped : list of str
        Empty: of an array, nothing is left out.

    Examples
    --------
    >>> import numpy as np
    >>> from corral.sources import ArraySource
    >>> source = ArraySource(np.arange(6.0).reshape(3, 2))
    >>> source
    ArraySource(shape=(3, 2))
    >>> source.read(1, 3)
    array([[2., 3.],
           [4., 5.]])
    """

    names = None

    def __init__(self, X: Any, name: str = "The array") -> None:
        if sparse.issparse(X):
            X = sparse.csr_array(X)
        check_numbers(X, name)
        if not X.shape[0]:
            raise ValueError(f"{name} has no rows.")
        self._map = _find_map(X)
        self._X: Any = X if self._map is None else None
        self.shape: tuple[int, int] = X.shape
        self.dtype = X.dtype
        self.skipped: list[str] = []
        row_bytes = _count_bytes(X) // X.shape[0]
        pieces = cut_rows(X.shape[0], _PIECE_BYTES // max(row_bytes, 1))
        self.borders = [0, *(piece.stop for piece in pieces)]

    @property
    def is_in_memory(self) -> bool:
        """Whether rows are here only, and in no file."""
        return self._map is None

    def read(self, start: int, stop: int) -> Any:
        """Return rows.

        Parameters
        ----------
        start : int
            The first row.
        stop : int
            The row after the last one.

        Returns
        -------
        block : ndarray in C order, or csr_array, with stop - start rows
            Rows of a memory map are copied; those of an array are a view where they
            can be.
        """
        check_range(start, stop, self.shape[0])
        if self._map is not None:
            return _read_file(self._map, start, stop)
        rows = self._X[start:stop]
        return rows if sparse.issparse(rows) else np.ascontiguousarray(rows)

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells these rows from others, ready for JSON.

        Returns
        -------
        fingerprint : dict
            Of a memory map its file; of an array in memory a digest of its values.
        """
        known = {"kind": "array", "shape": list(self.shape), "columns": None}
        known["dtype"] = self.dtype.str
        if self._map is None:
            return {**known, "digest": _digest(self._X)}
        where = {"offset": self._map.offset, "order": self._map.order}
        return {**known, **describe_files([self._map.mark]), **where}

    def __repr__(self) -> str:
        place = "" if self._map is None else f"{self._map.mark}, "
        return spell_out(f"ArraySource({place}shape={self.shape})")


def open_npy(path: str | Path) -> ArraySource:
    """Return the source of a .npy file, which is mapped and not loaded.

    Parameters
    ----------
    path : str or Path

    Returns
    -------
    source : ArraySource
    """
    name = f"'{path}'"
    try:
        with open(path, "rb") as file:
            head = read_head(file, os.stat(path).st_size)
        if head.shape and not head.shape[0]:
            raise Broken("has no rows.")
        X = _map(path)
    except Broken as error:
        raise UnreadableBlockError(f"{name} {error}") from error
    return ArraySource(X, name)


def _map(path: str | Path) -> np.memmap:
    try:
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, OSError, OverflowError) as error:
        raise say_broken(error) from error


def check_numbers(X: Any, name: str) -> None:
    """Refuse an array that is no table of numbers."""
    if X.ndim != 2:
        fix = f" Use X.reshape({X.size}, 1) for one column." if X.ndim == 1 else ""
        raise ValueError(
            f"{name} has the shape {X.shape}; it should have rows and columns.{fix}"
        )
    if X.dtype.kind not in "fiub":
        raise ValueError(f"{name} holds {X.dtype} cells; they should be numbers.")
    if not X.shape[1]:
        raise ValueError(f"{name} has no columns.")


def _find_map(X: Any) -> _Map | None:
    """Return where the array is in a file; None if it is in memory.

    Only of a whole memory map it is known: a part of one keeps the whole one's offset.
    """
    if not isinstance(X, np.memmap) or not isinstance(X.base, mmap.mmap):
        return None
    # Without a name, or changed in memory only.
    if X.filename is None or X.mode == "c":
        return None
    mark = mark_file(X.filename)
    order: Literal["C", "F"] = "C" if X.flags.c_contiguous else "F"
    return _Map(mark, X.dtype, X.offset, X.shape, order)


def _read_file(place: _Map, start: int, stop: int) -> np.ndarray:
    """Return rows of a file.

    Read and not mapped where they lie together: what was mapped and looked at counts as
    memory of the process, up to the whole file.
    """
    place.mark.check()
    n_columns = place.shape[1]
    if place.order == "C":
        skipped = place.offset + start * n_columns * place.dtype.itemsize
        n_cells = (stop - start) * n_columns
        cells = np.fromfile(place.mark.path, place.dtype, n_cells, offset=skipped)
        return cells.reshape(-1, n_columns)
    rows = np.memmap(place.mark.path, place.dtype, "r", place.offset, place.shape, "F")
    return np.array(rows[start:stop], order="C", subok=False)


def _count_bytes(X: Any) -> int:
    if sparse.issparse(X):
        return X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    return X.nbytes


def _digest(X: Any) -> str:
    digest = hashlib.blake2b(digest_size=16)
    if sparse.issparse(X):
        for part in (X.data, X.indices, X.indptr):
            digest.update(np.ascontiguousarray(part).data)
        return digest.hexdigest()
    # A copy of a part at a time, where the rows do not lie in order.
    for rows in cut_rows(X.shape[0], _PIECE_BYTES // max(X[:1].nbytes, 1)):
        digest.update(np.ascontiguousarray(X[rows]).data)
    return digest.hexdigest()
