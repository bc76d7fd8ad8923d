"""Blocks that a function makes, as a source."""

import hashlib
import io
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from corral.sources._array import check_numbers
from corral.sources._base import Sieve, StreamedSource, choose_names, plain_schema
from corral.sources._cursor import Cursor
from corral.sources._errors import UnreadableBlockError
from corral.tables._arrow import need_arrow
from corral.tables._broken import first_line

_SAME_AGAIN = (
    "The function should return a new iterator over the same blocks each time."
)

# Rows of a table that are digested at once.
_DIGEST_ROWS = 2**14


class _BlockMark(NamedTuple):
    """What is remembered of a block, to see that it comes again.

    Attributes
    ----------
    n_rows : int
    n_columns : int
    dtype : str
        Of an array; of a table the types of its columns.
    digest : str
        Of the first and the last row: enough to see rows that come in another order,
        at next to no cost.
    """

    n_rows: int
    n_columns: int
    dtype: str
    digest: str


class IteratorSource(StreamedSource):
    """Rows of blocks that a function makes anew for each pass.

    The blocks may have any sizes. All of them are made once when the source is opened,
    to count the rows and to digest their cells, which :meth:`fingerprint` tells; later
    passes have to give the same blocks, which is checked by their shapes, types, and
    first and last rows.

    Parameters
    ----------
    factory : callable
        Takes no argument and returns an iterator over blocks: arrays, sparse matrices,
        tables or record batches of pyarrow, or frames of pandas or polars. It has to
        be a function of a module for the source to be pickled.
    columns : str or list of str, default=None
        Names of the columns to read, if blocks have names; None reads all.
    on_error : {"raise", "skip"}, default="raise"
        What happens if the iterator raises an error. "skip" leaves out the block and
        those after it: an iterator that failed does not go on.

    Attributes
    ----------
    shape : tuple of (n_samples, n_columns)
    dtype : numpy dtype or None
        To which the blocks are turned; None if they are tables.
    names : list of str or None
    borders : list of int
        The rows at which blocks begin, and n_samples.
    skipped : list of str
        What was left out, and why.

    Examples
    --------
    >>> import numpy as np
    >>> from corral.sources import IteratorSource
    >>> source = IteratorSource(lambda: (np.full((2, 1), j) for j in range(3)))
    >>> source.read(1, 4)
    array([[0],
           [1],
           [1]])
    """

    def __init__(
        self,
        factory: Callable[[], Any],
        *,
        columns: str | Sequence[str] | None = None,
        on_error: str = "raise",
    ) -> None:
        self._factory = factory
        self._title = getattr(factory, "__name__", type(factory).__name__)
        sieve = Sieve(on_error)
        self._marks: list[_BlockMark] = []
        content = hashlib.blake2b(digest_size=16)
        form: Any = None
        for number, block in enumerate(self._first_pass(sieve)):
            form = _widen(_empty(block), form, f"Block {number} of {self._title}")
            self._marks.append(_mark(block))
            _add_cells(content, block)
        sieve.check_left(self._marks, f"What {self._title} gives")
        self._content = content.hexdigest()
        self.skipped = sieve.left_out
        self._empty = _choose(form, columns)
        self.names = getattr(self._empty, "column_names", None)
        self.dtype = getattr(self._empty, "dtype", None)
        self.borders = [0, *accumulate(mark.n_rows for mark in self._marks)]
        self.shape = (self.borders[-1], self._empty.shape[1])

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells these rows from others, ready for JSON.

        Returns
        -------
        fingerprint : dict
            With a digest of the shapes, types and cells of all blocks, as they were in
            the first pass.
        """
        marks = hashlib.blake2b(repr(self._marks).encode(), digest_size=16)
        marks.update(self._content.encode())
        return {
            "kind": "iterator",
            "shape": list(self.shape),
            "columns": self.names,
            "dtype": None if self.dtype is None else self.dtype.str,
            "digest": marks.hexdigest(),
        }

    def _make_cursor(self) -> Cursor:
        # Where a block begins is known, but not how to get there without the others.
        return Cursor(self._blocks)

    def _join(self, pieces: Iterator[Any], n_rows: int) -> Any:
        if isinstance(self._empty, np.ndarray):
            return self._fill(pieces, n_rows)
        found = list(pieces)
        if sparse.issparse(self._empty):
            rows = sparse.vstack(found or [self._empty], format="csr", dtype=self.dtype)
            return sparse.csr_array(rows)
        return need_arrow().concat_tables(found or [self._empty])

    def _fill(self, pieces: Iterator[Any], n_rows: int) -> np.ndarray:
        """Return a copy, for the iterator may use the memory of a block again."""
        rows = np.empty((n_rows, self.shape[1]), self.dtype)
        start = 0
        for piece in pieces:
            rows[start : start + len(piece)] = piece
            start += len(piece)
        return rows

    def _first_pass(self, sieve: Sieve) -> Iterator[Any]:
        """Yield the blocks up to the first that cannot be made."""
        try:
            yield from self._make_blocks()
        except UnreadableBlockError as error:
            sieve.note(error, "It and what follows it are left out.")

    def _blocks(self, row: int) -> Iterator[Any]:
        """Yield all blocks, if they are those of the first pass; row is 0."""
        blocks = self._make_blocks()
        for number, mark in enumerate(self._marks):
            block = next(blocks, None)
            self._check_same(number, block, mark)
            if number == len(self._marks) - 1 and not self.skipped:
                self._check_end(blocks)
            yield block if self.names is None else _shape_table(block, self._empty)

    def _make_blocks(self) -> Iterator[Any]:
        """Yield the blocks that have rows as arrays, CSR arrays or tables."""
        blocks = self._call()
        number = 0
        while True:
            try:
                block = next(blocks, None)
                block = None if block is None else _tidy(block)
            except MemoryError:
                raise
            except Exception as error:
                raise UnreadableBlockError(
                    f"Block {number} of {self._title} cannot be read: "
                    f"{type(error).__name__}: {first_line(error)}."
                ) from error
            if block is None:
                return
            if block.shape[0]:
                yield block
                number += 1

    def _call(self) -> Iterator[Any]:
        try:
            blocks = self._factory()
        except TypeError as error:
            raise TypeError(
                f"{self._title} should be a function without arguments that returns an "
                f"iterator over blocks. Calling it failed: {first_line(error)}."
            ) from error
        if hasattr(blocks, "shape") or not hasattr(blocks, "__iter__"):
            raise TypeError(
                f"{self._title} returned a {type(blocks).__name__}. It should return "
                "an iterator over blocks; for one block, a list with it."
            )
        return iter(blocks)

    def _check_same(self, number: int, block: Any, known: _BlockMark) -> None:
        if block is None:
            raise UnreadableBlockError(
                f"{self._title} gave {number} blocks with rows, but "
                f"{len(self._marks)} in the first pass. {_SAME_AGAIN}"
            )
        names = ("rows", "columns", "cells of type")
        found = _mark(block)
        for now, then, what in zip(found, known, names, strict=False):
            if now != then:
                raise UnreadableBlockError(
                    f"Block {number} of {self._title} has {what}: {now}, but in the "
                    f"first pass it was {then}. {_SAME_AGAIN}"
                )
        if found != known:
            raise UnreadableBlockError(
                f"The first or last row of block {number} of {self._title} is not that "
                f"of the first pass. {_SAME_AGAIN}"
            )

    def _check_end(self, blocks: Iterator[Any]) -> None:
        if next(blocks, None) is not None:
            raise UnreadableBlockError(
                f"{self._title} gives more than the {len(self._marks)} blocks of the "
                f"first pass. {_SAME_AGAIN}"
            )


def _tidy(block: Any) -> Any:
    """Return a block as an array, a CSR array or a table of pyarrow."""
    if sparse.issparse(block) or isinstance(block, np.ndarray):
        check_numbers(block, "It")
        return sparse.csr_array(block) if sparse.issparse(block) else block
    arrow = sys.modules.get("pyarrow")
    if arrow is not None and isinstance(block, arrow.RecordBatch):
        block = arrow.Table.from_batches([block])
    from corral.tables._rows import read_rows

    return read_rows(block)


def _empty(block: Any) -> Any:
    """Return a block of the same kind without rows, which holds no memory."""
    if isinstance(block, np.ndarray):
        return np.empty((0, block.shape[1]), block.dtype)
    if sparse.issparse(block):
        return sparse.csr_array((0, block.shape[1]), dtype=block.dtype)
    return plain_schema(block.column_names, block.schema.types).empty_table()


def _widen(empty: Any, known: Any, name: str) -> Any:
    """Return the empty block with types that hold these cells and those before."""
    if known is None:
        return empty
    if type(empty) is not type(known):
        raise UnreadableBlockError(
            f"{name} is a {type(empty).__name__}, but those before it are "
            f"{type(known).__name__}. All should be of one kind."
        )
    if hasattr(empty, "column_names"):
        return _widen_table(empty, known, name)
    if empty.shape != known.shape:
        raise UnreadableBlockError(
            f"{name} has {empty.shape[1]} columns, but those before it have "
            f"{known.shape[1]}."
        )
    return known.astype(np.result_type(empty.dtype, known.dtype))


def _widen_table(empty: Any, known: Any, name: str) -> Any:
    pa = need_arrow()
    odd = set(empty.column_names) ^ set(known.column_names)
    if odd:
        column = min(odd)
        has = "has a" if column in empty.column_names else "lacks the"
        raise UnreadableBlockError(
            f"{name} {has} column {column!r}, unlike those before it."
        )
    schemas = [known.schema, empty.schema]
    try:
        return pa.unify_schemas(schemas, promote_options="permissive").empty_table()
    except pa.ArrowException as error:
        raise UnreadableBlockError(
            f"{name} cannot be joined with those before it: {first_line(error)}. Give "
            "each column one type."
        ) from error


def _choose(empty: Any, columns: str | Sequence[str] | None) -> Any:
    if hasattr(empty, "column_names"):
        return empty.select(choose_names(empty.column_names, columns))
    if columns is not None:
        raise ValueError(
            f"columns={columns!r} names columns, but the blocks are arrays, whose "
            "columns have no names. Leave it out."
        )
    return empty


def _shape_table(block: Any, empty: Any) -> Any:
    """Return a table with the columns and types of the empty one."""
    chosen = block.select(empty.column_names)
    # Whole numbers too large for a float64 are rounded, as in any array.
    return chosen.cast(empty.schema, safe=False)


def _mark(block: Any) -> _BlockMark:
    n_rows, n_columns = block.shape
    digest = hashlib.blake2b(digest_size=8)
    for row in (block[:1], block[n_rows - 1 :]):
        digest.update(_row_bytes(row))
    if hasattr(block, "column_names"):
        dtype = ", ".join(map(str, block.schema.types))
    else:
        dtype = block.dtype.str
    # One text for all blocks.
    return _BlockMark(n_rows, n_columns, sys.intern(dtype), digest.hexdigest())


def _add_cells(digest: Any, block: Any) -> None:
    """Add all cells of a block to a digest."""
    if isinstance(block, np.ndarray):
        digest.update(np.ascontiguousarray(block))
    elif sparse.issparse(block):
        for part in (block.indptr, block.indices):
            digest.update(np.ascontiguousarray(part, dtype=np.int64))
        digest.update(np.ascontiguousarray(block.data))
    else:
        _add_table(digest, block)


def _add_table(digest: Any, table: Any) -> None:
    """Add the cells of a table, as they are sent to others, however they are cut."""
    pa = need_arrow()
    # Names and types alone: notes of who made a table say nothing of its cells.
    plain = plain_schema(table.column_names, table.schema.types)
    for start in range(0, table.num_rows, _DIGEST_ROWS):
        part = table.slice(start, _DIGEST_ROWS).cast(plain).combine_chunks()
        # Rows that are taken have nothing beneath missing cells; others have any bytes.
        part = part.take(np.arange(part.num_rows)).combine_chunks()
        with pa.ipc.new_stream(_Digester(digest), plain) as stream:
            stream.write_table(part)


class _Digester(io.RawIOBase):
    """A file that keeps nothing of what is written but its digest."""

    def __init__(self, digest: Any) -> None:
        self._digest = digest

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._digest.update(data)
        return len(data)


def _row_bytes(row: Any) -> bytes:
    if isinstance(row, np.ndarray):
        return row.tobytes()
    if sparse.issparse(row):
        return row.indices.astype(np.int64).tobytes() + row.data.tobytes()
    return repr(row.to_pydict()).encode()
