"""All rows of a fit in blocks: of an array in memory, or of a source that is read."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from corral._validation import Features


def is_source(X: Any) -> bool:
    """Return whether X is read block by block: a path, a function or a source."""
    return isinstance(X, (str, Path)) or callable(X) or hasattr(X, "fingerprint")


class Block(NamedTuple):
    """Some rows, checked.

    Attributes
    ----------
    features : Features
    columns : list of pairs
        Label columns as :func:`~corral._partitions.clean_labels` gives them: of
        clusterers, of categorical features and those that were given.
    """

    features: Features
    columns: list[tuple[np.ndarray, np.ndarray]]


class RowBlocks(Protocol):
    """Rows that come block by block, as often as asked for.

    Attributes
    ----------
    sizes : ndarray of shape (n_blocks,)
        Number of rows of each block.
    skipped : sequence of str
        Sentences on rows that were left out because they cannot be read.
    """

    sizes: np.ndarray
    skipped: Sequence[str]

    @property
    def whole(self) -> Block | None:
        """All rows, if they are in memory."""

    def read(self, index: int) -> Block:
        """Return a block."""

    def cut(self, sizes: np.ndarray) -> "RowBlocks":
        """Return the same rows in blocks of these sizes."""

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells these rows from others, JSON-ready."""


class MemoryBlocks:
    """Rows in memory: :class:`RowBlocks`.

    Parameters
    ----------
    whole : Block
    sizes : ndarray of shape (n_blocks,), default=None
        None means one block.
    """

    skipped: Sequence[str] = ()

    def __init__(self, whole: Block, sizes: np.ndarray | None = None) -> None:
        self.whole = whole
        self.sizes = np.array([whole.features.n_samples]) if sizes is None else sizes
        self._ends = np.cumsum(self.sizes)

    def replace_columns(self, columns: list) -> "MemoryBlocks":
        """Return the same rows with other label columns."""
        return MemoryBlocks(Block(self.whole.features, columns), self.sizes)

    def cut(self, sizes: np.ndarray) -> "MemoryBlocks":
        """Return the same rows in blocks of these sizes."""
        return MemoryBlocks(self.whole, sizes)

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells these rows from others."""
        features, columns = self.whole
        arrays = [features.numbers, features.missing]
        arrays += [part for column in columns for part in column]
        known = [each for each in arrays if each is not None]
        return {
            "shapes": [each.shape for each in known],
            "dtypes": [str(each.dtype) for each in known],
            "blake2b": digest_arrays(known),
        }

    def read(self, index: int) -> Block:
        """Return a block: views of the arrays."""
        if len(self.sizes) == 1:
            return self.whole
        here = slice(self._ends[index] - self.sizes[index], self._ends[index])
        features = self.whole.features
        part = Features(
            None if features.numbers is None else features.numbers[here],
            [column[here] for column in features.categories],
            int(self.sizes[index]),
            None if features.missing is None else features.missing[here],
        )
        columns = [(labels[here], gone[here]) for labels, gone in self.whole.columns]
        return Block(part, columns)


class SourceBlocks:
    """Rows of a source, read when they are asked for: :class:`RowBlocks`.

    Parameters
    ----------
    source : object
        As :func:`corral.sources.open_source` gives it.
    check : callable
        Takes rows as the source gives them and returns a :class:`Block`.
    sizes : ndarray of shape (n_blocks,)
    """

    whole: Block | None = None

    def __init__(
        self, source: Any, check: Callable[[Any], Block], sizes: np.ndarray
    ) -> None:
        self.source = source
        self.sizes = sizes
        self.skipped: Sequence[str] = source.skipped
        self._check = check
        self._ends = np.cumsum(sizes)

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells these rows from others."""
        return self.source.fingerprint()

    def cut(self, sizes: np.ndarray) -> "SourceBlocks":
        """Return the same rows in blocks of these sizes."""
        return SourceBlocks(self.source, self._check, sizes)

    def read(self, index: int) -> Block:
        """Return a block, after a check of its numbers."""
        stop = int(self._ends[index])
        start = stop - int(self.sizes[index])
        rows = self.source.read(start, stop)
        return check_rows(self._check, rows, start, self.source)


def check_rows(
    check: Callable[[Any], Block], rows: Any, start: int, name: object
) -> Block:
    """Check rows; errors tell which rows these are, and of what."""
    try:
        return check(rows)
    except ValueError as error:
        stop = start + rows.shape[0]
        raise ValueError(
            f"Rows {start} to {stop - 1} of {name} cannot be used. {error}"
        ) from error


def cut_sizes(n_rows: int, block_rows: int) -> np.ndarray:
    """Return the sizes of blocks, all but the last of which have ``block_rows``."""
    ends = np.minimum(np.arange(block_rows, n_rows + block_rows, block_rows), n_rows)
    return np.diff(ends, prepend=0)


def digest_arrays(arrays: list[Any]) -> str:
    """Return a digest of the values of arrays, dense or sparse."""
    digest = hashlib.blake2b(digest_size=16)
    for array in arrays:
        for part in _list_arrays(array):
            digest.update(np.ascontiguousarray(part).view(np.uint8).data)
    return digest.hexdigest()


def _list_arrays(array: Any) -> list[np.ndarray]:
    """Return the plain arrays that an array is made of."""
    if sparse.issparse(array):
        return [array.indptr, array.indices, array.data]
    return [array.astype(str)] if array.dtype == object else [array]
