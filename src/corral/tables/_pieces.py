"""Rows in pieces: of a source, or of a table in memory as if it were one."""

from collections.abc import Iterator
from typing import Any

from corral.tables._rows import is_matrix, read_rows

# Rows of a piece. Sums are made within a piece and then added up in the order of the
# pieces, so these numbers are part of the result: they do not depend on where rows
# are kept, nor on how a source cuts them.
PIECE_ROWS = 2**15

# Wide rows come in shorter pieces, of about so many cells (32 MB), but not of fewer
# rows than the least.
PIECE_CELLS = 2**22
LEAST_PIECE_ROWS = 2**7


def is_source(rows: Any) -> bool:
    """Return whether rows are a source, which is read in pieces."""
    return hasattr(rows, "read") and hasattr(rows, "fingerprint")


class HeldRows:
    """Rows in memory, read as a source is.

    Parameters
    ----------
    rows : data frame, pyarrow.Table, sparse matrix or ndarray

    Attributes
    ----------
    rows : pyarrow.Table, csr_array or ndarray
        All of them.
    shape : tuple of (n_samples, n_columns)
    """

    def __init__(self, rows: Any) -> None:
        self.rows = read_rows(rows)
        self.shape = self.rows.shape

    def read(self, start: int, stop: int) -> Any:
        """Return the rows ``start`` to ``stop - 1``, a view where there can be one."""
        if is_matrix(self.rows):
            return self.rows[start:stop]
        return self.rows.slice(start, stop - start)


def peek(source: Any) -> Any:
    """Return the first row of a source, which tells what all are.

    Parameters
    ----------
    source : Source or HeldRows

    Returns
    -------
    rows : pyarrow.Table, csr_array or ndarray
        Without a row if there are none.
    """
    return read_rows(source.read(0, min(1, source.shape[0])))


def count_piece_rows(n_columns: int, *, is_sparse: bool) -> int:
    """Return how many rows a piece has.

    Parameters
    ----------
    n_columns : int
    is_sparse : bool
        Sparse rows are short, however many columns there are.
    """
    if is_sparse:
        return PIECE_ROWS
    return min(PIECE_ROWS, max(LEAST_PIECE_ROWS, PIECE_CELLS // max(n_columns, 1)))


def read_pieces(source: Any, *, is_sparse: bool) -> Iterator[tuple[int, Any]]:
    """Read a source from its first row to its last.

    Parameters
    ----------
    source : Source or HeldRows
    is_sparse : bool
        Whether its rows are, as :func:`peek` tells.

    Yields
    ------
    start : int
        Number of the piece's first row.
    rows : pyarrow.Table, csr_array or ndarray
        Sources without rows give one piece without rows, which has the columns.
    """
    n_samples, n_columns = source.shape
    n_rows = count_piece_rows(n_columns, is_sparse=is_sparse)
    for start in range(0, max(n_samples, 1), n_rows):
        yield start, read_rows(source.read(start, min(start + n_rows, n_samples)))
