"""CSV files, plain or packed, as a source."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from itertools import islice
from pathlib import Path
from typing import Any

from corral.sources._base import Sieve, StreamedSource, choose_names, plain_schema
from corral.sources._csv_types import TypeSieve
from corral.sources._cursor import Cursor
from corral.sources._errors import UnreadableBlockError
from corral.sources._files import describe_files, mark_for_arrow
from corral.tables._arrow import need_arrow
from corral.tables._broken import NOT_UTF8, Broken
from corral.tables._formats import (
    LARGEST_BLOCK,
    as_texts,
    check_closed,
    check_utf8,
    find_csv_form,
    find_odd_lines,
    is_long_line,
    whole_columns,
    why_not_csv,
)
from corral.tables._leading_zeros import WatchedFile, ZeroWatch, find_padded
from corral.tables._limits import check_columns, check_memory
from corral.tables._read import (
    check_exists,
    check_kind,
    check_names,
    check_packing,
    find_packing,
    kind_of,
    list_names,
)
from corral.tables._unpack import open_unpacked

# Text that is turned into rows at once; pyarrow reads some 30 blocks ahead. Larger ones
# are not faster. It grows where a line is longer.
_BLOCK_BYTES = 2**18

# Cells that are tried at once: each try of a type costs a third of a millisecond,
# however few they are.
_TRY_BYTES = 2**23

# Of the lines that are left out, so many are told by their numbers.
_MAX_LINES = 10


class CsvSource(StreamedSource):
    r"""Rows of a CSV or TSV file, also packed by gzip or zstd.

    The file is read once when the source is made, to count its rows and to find types
    that fit all of them. Types, missing cells, names and delimiter are those of
    :func:`corral.tables.read_table`. CSV cannot be entered in the middle: rows that
    follow each other are read in one go, rows further up from the beginning of the
    file.

    Parameters
    ----------
    path : str or Path
    columns : str or list of str, default=None
        Names of the columns to read; None reads all.
    format : {"csv", "tsv"}, default=None
        What it is, whatever its suffix.
    on_error : {"raise", "skip"}, default="raise"
        What happens to lines with too few or too many cells.
    texts : str or list of str, default=None
        Names of columns that are read as they are written, such as codes and names of
        rows. Those that the file does not have are passed over.

    Attributes
    ----------
    shape : tuple of (n_samples, n_columns)
    names : list of str
    borders : list of int
        0 and n_samples: the file is one piece.
    skipped : list of str
        Which lines were left out.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from corral.sources import CsvSource
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("name;height\nAda;1.7\nBo;\n")
    >>> source = CsvSource(path)
    >>> source.shape
    (2, 2)
    >>> source.read(1, 2).to_pydict()
    {'name': ['Bo'], 'height': [None]}
    """

    def __init__(
        self,
        path: str | Path,
        *,
        columns: str | Sequence[str] | None = None,
        format: str | None = None,
        on_error: str = "raise",
        texts: str | Sequence[str] | None = None,
    ) -> None:
        self._texts = frozenset(list_names(texts))
        self._title = f"'{path}'"
        self.skipped = Sieve(on_error).left_out
        self._is_skipping = on_error == "skip"
        check_exists(Path(path), self._title)
        self._mark = mark_for_arrow(path)
        self._block_size = _BLOCK_BYTES
        kind = self._look_inside(path, format)
        with self._plain_errors(), self._open() as file:
            self._form = find_csv_form(file, "\t" if kind == "tsv" else None)
        with self._plain_errors():
            self._schema, n_samples, n_odd = self._scan(columns)
        if not n_samples:
            raise UnreadableBlockError(f"{self._title} has no rows.")
        if n_odd:
            self.skipped.append(self._tell_odd_lines(n_odd))
        self.names = self._schema.names
        self.shape = (n_samples, len(self.names))
        self.borders = [0, n_samples]

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells these rows from others, ready for JSON.

        Returns
        -------
        fingerprint : dict
        """
        texts = sorted(self._texts.intersection(self._schema.names))
        return {
            "kind": "csv",
            **describe_files([self._mark]),
            "shape": list(self.shape),
            "columns": self.names,
            **({"texts": texts} if texts else {}),
        }

    def with_texts(self, names: Iterable[str]) -> "CsvSource":
        """Return the source in which columns are read as they are written.

        Parameters
        ----------
        names : iterable of str
            Those that the source does not have are passed over.

        Returns
        -------
        source : CsvSource
            This one, if they are texts already. The file is not read again.
        """
        text = need_arrow().string()
        known = dict(zip(self._schema.names, self._schema.types, strict=True))
        others = {name for name in names if known.get(name, text) != text}
        if not others:
            return self
        source = copy(self)
        source._texts = self._texts | others
        source._schema = plain_schema([*known], [*(known | as_texts(others)).values()])
        return source

    def _look_inside(self, path: str | Path, format: str | None) -> str:
        """Return the format, after a look at the first bytes, and note the packing."""
        if not self._mark.size:
            raise UnreadableBlockError(f"{self._title} is empty.")
        kind, packed = kind_of(path, self._title, format)
        with open(path, "rb") as file:
            self._packing = find_packing(file.read(64))
        if packed is not None:
            check_packing(self._packing, packed, self._title)
        with self._plain_errors(), self._open() as file:
            head = file.read(64)
        if not head:
            raise UnreadableBlockError(f"{self._title} is empty.")
        return check_kind(kind, head, self._title, is_asked=format is not None)

    def _open(self) -> Any:
        """Return the open file, unpacked while it is read."""
        path = self._mark.path
        if self._packing is None:
            # Not pyarrow's own: its reader reads ahead in a thread, below which such a
            # file can be closed. The next file that is opened then gets its number, and
            # the thread takes bytes from that.
            return open(path, "rb")
        return open_unpacked(path, self._packing, self._mark.size)

    @contextmanager
    def _plain_errors(self) -> Iterator[None]:
        """Say what is wrong with the file in the words of read_table."""
        pa = need_arrow()
        try:
            yield
        except Broken as error:
            raise UnreadableBlockError(f"{self._title} {error}") from error
        except UnicodeError as error:
            raise UnreadableBlockError(f"{self._title} {NOT_UTF8}") from error
        except pa.ArrowInvalid as error:
            with self._open() as file:
                reason = why_not_csv(error, file, self._form)
            raise UnreadableBlockError(f"{self._title} {reason}") from error

    # What is in it ----------------------------------------------------------------

    def _scan(self, columns: str | Sequence[str] | None) -> tuple[Any, int, int]:
        """Return the schema that fits all rows, and how many are there and left out."""
        pa = need_arrow()
        try:
            with self._reader() as reader:
                found = reader.schema.names
            check_columns(len(found))
            check_names(found, self._title)
            names = choose_names(found, columns)
            types, n_samples, may_have_codes = self._find_types(names, found[-1])
        except pa.ArrowInvalid as error:
            if not is_long_line(error) or self._block_size == LARGEST_BLOCK:
                raise
            self._block_size = min(8 * self._block_size, LARGEST_BLOCK)
            # As text, as cells and as values, while the next one is read.
            check_memory(4 * self._block_size)
            return self._scan(columns)
        # Before rows are read once more, not always to the last.
        n_odd = self._odd_lines.n_lines
        schema = plain_schema(names, types)
        check_utf8(schema)
        schema = self._keep_codes(schema) if may_have_codes else schema
        return schema, n_samples, n_odd

    def _find_types(self, names: list[str], last: str) -> tuple[list[Any], int, bool]:
        """Return types, the number of rows, and whether there may be codes.

        Types are those that read_table would find, but for codes such as 00123.
        pyarrow's stream takes the types of its first block. If they fit to the end,
        they are those of the whole; else each column is tried block by block.
        """
        pa = need_arrow()
        watch = self._make_watch()
        texts = as_texts(self._texts)
        try:
            with self._reader(
                watch, include_columns=names, column_types=texts
            ) as reader:
                batches = self._watch_end(reader, last)
                n_samples = sum(batch.num_rows for batch in batches)
                return reader.schema.types, n_samples, watch.may_be
        except pa.ArrowInvalid as error:
            if "conversion error" not in str(error):
                raise
        sieves = [TypeSieve(self._form, is_text=name in self._texts) for name in names]
        n_samples = 0
        watch = self._make_watch()
        options = {"include_columns": names, "strings_can_be_null": False}
        as_bytes = dict.fromkeys(names, pa.binary())
        with self._reader(watch, column_types=as_bytes, **options) as reader:
            for table in _gather(self._watch_end(reader, last)):
                n_samples += table.num_rows
                for sieve, column in zip(sieves, table.columns, strict=True):
                    sieve.try_cells(column.combine_chunks())
        return [sieve.find_type() for sieve in sieves], n_samples, watch.may_be

    def _make_watch(self) -> ZeroWatch:
        return ZeroWatch(self._form.delimiter, self._form.encoding)

    def _watch_end(self, batches: Iterable[Any], name: str) -> Iterator[Any]:
        """Yield batches, and see that no quote is open at the end of the last column.

        It is not known where the column is not read.
        """
        last = None
        for batch in batches:
            yield batch
            last = batch if batch.num_rows else last
        if last is not None and name in last.schema.names:
            with self._open() as file:
                check_closed(last.column(name), file)

    def _keep_codes(self, schema: Any) -> Any:
        """Return the schema in which codes such as 00123 are texts."""
        names = whole_columns(schema)
        if not names:
            return schema
        texts = as_texts(names)
        with self._reader(include_columns=names, column_types=texts) as batches:
            codes = find_padded(batches)
        known = dict(zip(schema.names, schema.types, strict=True))
        return plain_schema(schema.names, [*(known | as_texts(codes)).values()])

    def _tell_odd_lines(self, n_odd: int) -> str:
        lines = "1 line" if n_odd == 1 else f"{n_odd:,} lines"
        # Where it stands is told by a reader that numbers lines; it may give up at a
        # cell that is too long.
        try:
            with self._open() as file:
                found = islice(find_odd_lines(file, self._form), _MAX_LINES)
                places = [str(line) for line, _, _ in found]
        except csv.Error:
            places = []
        places += ["..."] if len(places) < n_odd else []
        return (
            f"{self._title} has {lines} with too few or too many cells "
            f"({', '.join(places)}). They are left out."
        )

    # Rows -------------------------------------------------------------------------

    def _make_cursor(self) -> Cursor:
        return Cursor(self._blocks)

    def _blocks(self, row: int) -> Iterator[Any]:
        """Yield all rows as tables; row is 0, as there is no other place to begin."""
        self._mark.check()
        names, types = self._schema.names, self._schema.types
        known = dict(zip(names, types, strict=True))
        with (
            self._plain_errors(),
            self._reader(include_columns=names, column_types=known) as reader,
        ):
            for batch in reader:
                yield need_arrow().Table.from_batches([batch])

    @contextmanager
    def _reader(self, watch: ZeroWatch | None = None, **convert: Any) -> Iterator[Any]:
        """Open pyarrow's stream of batches; the watch sees the bytes of the file."""
        self._odd_lines = _OddLines()
        parse = {"invalid_row_handler": self._odd_lines} if self._is_skipping else {}
        with (
            self._open() as file,
            need_arrow("pyarrow.csv").open_csv(
                self._form.open(file if watch is None else WatchedFile(file, watch)),
                self._form.read_options(
                    block_size=self._block_size,
                    # With threads, some 30 blocks are read ahead.
                    use_threads=self._block_size == _BLOCK_BYTES,
                ),
                self._form.parse_options(**parse),
                self._form.convert_options(**convert),
            ) as reader,
        ):
            yield reader


class _OddLines:
    """Leaves out lines with too few or too many cells, and counts them.

    No method of the source: pyarrow would hold the source, which holds what pyarrow
    reads, and neither would ever be freed.
    """

    def __init__(self) -> None:
        self.n_lines = 0

    def __call__(self, row: Any) -> str:
        self.n_lines += 1
        return "skip"


def _gather(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield batches joined into tables that are worth a try of types."""
    make = need_arrow().Table.from_batches
    held: list[Any] = []
    for batch in batches:
        held.append(batch)
        if sum(each.nbytes for each in held) >= _TRY_BYTES:
            yield make(held)
            held = []
    if held:
        yield make(held)
