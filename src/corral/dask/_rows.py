"""The rows of a fit as tasks: each reads its own block, where it is worked on."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from corral._row_blocks import Block, cut_sizes
from corral.dask._errors import need_dask


class DaskRows:
    """Rows that are read by tasks: a :class:`~corral._row_blocks.RowBlocks`.

    Parameters
    ----------
    blocks : list
        Of each block, its first row in the source and the one after its last, or a
        Delayed that gives rows.
    check : callable
        Takes rows and returns a :class:`~corral._row_blocks.Block`.
    sizes : ndarray of shape (n_blocks,)
    fingerprint : dict
        Tells these rows from others.
    source : Source or None
        Which can be cut into other blocks.
    """

    whole: Block | None = None

    def __init__(
        self,
        blocks: list[Any],
        check: Any,
        sizes: np.ndarray,
        fingerprint: dict[str, Any],
        source: Any = None,
    ) -> None:
        self.blocks = blocks
        self.check = check
        self.sizes = sizes
        self.source = source
        self.reader = Reader(check, source)
        self.skipped: Sequence[str] = () if source is None else source.skipped
        self._fingerprint = fingerprint

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells these rows from others."""
        return self._fingerprint

    def cut(self, sizes: np.ndarray) -> "DaskRows":
        """Return the same rows in blocks of these sizes."""
        if np.array_equal(sizes, self.sizes):
            return self
        blocks = cut_source(sizes)
        return DaskRows(blocks, self.check, sizes, self._fingerprint, self.source)

    def read(self, index: int) -> Block:
        """Return a block, brought to this place."""
        block = self.blocks[index]
        return self.reader(block if self.source is not None else block.compute())


class Reader:
    """Reads and checks blocks, where they are worked on.

    It goes to the workers once for each pass: a source knows all its files.

    Parameters
    ----------
    check : callable
        Takes rows and returns a :class:`~corral._row_blocks.Block`.
    source : Source or None
        Where the rows are; None if blocks are rows.
    """

    def __init__(self, check: Any, source: Any) -> None:
        self.check = check
        self.source = source

    def read(self, block: Any) -> Any:
        """Return the rows of a block, as they are."""
        return block if self.source is None else self.source.read(*block)

    def __call__(self, block: Any) -> Block:
        return self.check(self.read(block))


def cut_source(sizes: np.ndarray) -> list[tuple[int, int]]:
    """Return the first row of each block, and the one after its last."""
    ends = np.cumsum(sizes).tolist()
    return list(zip([0, *ends[:-1]], ends, strict=True))


def is_collection(X: Any) -> bool:
    """Return whether X is an array or a data frame of Dask."""
    return need_dask("dask").is_dask_collection(X)


def is_frame(X: Any) -> bool:
    """Return whether a collection of Dask is a data frame."""
    return hasattr(X, "map_partitions") and hasattr(X, "columns")


def check_chunks(X: Any) -> None:
    """Refuse collections whose chunks are not whole rows."""
    if not hasattr(X, "chunks"):
        raise TypeError(
            f"X is a {type(X).__name__} of Dask; it should be an array or a data frame."
        )
    if X.ndim != 2:
        raise ValueError(
            f"X has {X.ndim} dimensions; it should have 2: rows and columns."
        )
    if X.numblocks[1] > 1:
        raise ValueError(
            "X is chunked along its columns. Use X.rechunk({1: -1}) first."
        )


def _count_rows(rows: Any) -> int:
    return rows.shape[0]


def list_blocks(X: Any) -> tuple[list[Any], np.ndarray]:
    """Return the blocks of an array or a data frame of Dask, and their sizes.

    Parameters
    ----------
    X : dask array of shape (n_samples, n_features) or dask data frame

    Returns
    -------
    blocks : list of Delayed
    sizes : ndarray of shape (n_blocks,)
    """
    if is_frame(X):
        blocks = X.to_delayed()
        sizes = np.full(len(blocks), np.nan)
    else:
        check_chunks(X)
        blocks = X.to_delayed().ravel().tolist()
        sizes = np.array(X.chunks[0], dtype=np.float64)
    if np.isnan(sizes).any():
        dask = need_dask("dask")
        counts = [dask.delayed(_count_rows)(each) for each in blocks]
        sizes = np.array(dask.compute(*counts))
    sizes = sizes.astype(np.intp)
    kept = np.flatnonzero(sizes)
    if not len(kept):
        raise ValueError("X has 0 sample(s); at least 1 is needed.")
    return [blocks[index] for index in kept], sizes[kept]


def open_source_rows(source: Any, check: Any, block_rows: int) -> DaskRows:
    """Return the rows of a source as tasks."""
    sizes = cut_sizes(source.shape[0], block_rows)
    blocks = cut_source(sizes)
    return DaskRows(blocks, check, sizes, source.fingerprint(), source)
