"""CSV files, plain or packed, as a source."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from corral.sources._base import Sieve, StreamedSource, choose_names, plain_schema
from corral.sources._csv_types import TypeSieve
from corral.sources._cursor import Cursor
from corral.sources._errors import UnreadableBlockError
from corral.sources._files import describe_files, mark_file
from corral.tables._arrow import need_arrow
from corral.tables._broken import NOT_UTF8, Broken
from corral.tables._formats import (
    LARGEST_BLOCK,
    check_closed,
    check_utf8,
    find_codes,
    find_csv_form,
    find_odd_lines,
    is_long_line,
    why_not_csv,
)
from corral.tables._limits import check_columns, check_memory
from corral.tables._read import (
    check_exists,
    check_kind,
    check_names,
    check_packing,
    find_packing,
    kind_of,
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
    ) -> None:
        self._title = f"'{path}'"
        self.skipped = Sieve(on_error).left_out
        self._is_skipping = on_error == "skip"
        check_exists(Path(path), self._title)
        self._mark = mark_file(path)
        self._block_size = _BLOCK_BYTES
        kind = self._look_inside(path, format)
        with self._plain_errors(), self._open() as file:
            self._form = find_csv_form(file, "\t" if kind == "tsv" else None)
        with self._plain_errors():
            self._schema, n_samples = self._scan(columns)
        if not n_samples:
            raise UnreadableBlockError(f"{self._title} has no rows.")
        if self._n_odd:
            self.skipped.append(self._tell_odd_lines())
        self.names = self._schema.names
        self.shape = (n_samples, len(self.names))
        self.borders = [0, n_samples]

    def fingerprint(self) -> dict[str, Any]:
        """Return what tells these rows from others, ready for JSON.

        Returns
        -------
        fingerprint : dict
        """
        return {
            "kind": "csv",
            **describe_files([self._mark]),
            "shape": list(self.shape),
            "columns": self.names,
        }

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
            return need_arrow().input_stream(path, compression=None)
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

    def _scan(self, columns: str | Sequence[str] | None) -> tuple[Any, int]:
        """Return the schema that fits all rows, and how many there are."""
        pa = need_arrow()
        try:
            with self._reader() as reader:
                found = reader.schema.names
            check_columns(len(found))
            check_names(found, self._title)
            names = choose_names(found, columns)
            types, n_samples = self._find_types(names, found[-1])
        except pa.ArrowInvalid as error:
            if not is_long_line(error) or self._block_size == LARGEST_BLOCK:
                raise
            self._block_size = min(8 * self._block_size, LARGEST_BLOCK)
            # As text, as cells and as values, while the next one is read.
            check_memory(4 * self._block_size)
            return self._scan(columns)
        schema = plain_schema(names, types)
        check_utf8(schema)
        return self._keep_codes(schema, found), n_samples

    def _find_types(self, names: list[str], last: str) -> tuple[list[Any], int]:
        """Return the types that read_table would find, and the number of rows.

        pyarrow's stream takes the types of its first block. If they fit to the end,
        they are those of the whole; else each column is tried block by block.
        """
        pa = need_arrow()
        try:
            with self._reader(include_columns=names) as reader:
                batches = self._watch_end(reader, last)
                n_samples = sum(batch.num_rows for batch in batches)
                return reader.schema.types, n_samples
        except pa.ArrowInvalid as error:
            if "conversion error" not in str(error):
                raise
        sieves = [TypeSieve(self._form) for _ in names]
        n_samples = 0
        texts = dict.fromkeys(names, pa.binary())
        options = {"column_types": texts, "strings_can_be_null": False}
        with self._reader(include_columns=names, **options) as reader:
            for table in _gather(self._watch_end(reader, last)):
                n_samples += table.num_rows
                for sieve, column in zip(sieves, table.columns, strict=True):
                    sieve.try_cells(column.combine_chunks())
        return [sieve.find_type() for sieve in sieves], n_samples

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

    def _keep_codes(self, schema: Any, found: list[str]) -> Any:
        """Return the schema in which codes such as 00123 are texts."""
        text = need_arrow().string()
        known = dict(zip(schema.names, schema.types, strict=True))
        # Codes are found by the place of their column in the file.
        types = [known.get(name, text) for name in found]
        codes = find_codes(plain_schema(found, types), self._form)
        known.update(dict.fromkeys(codes, text))
        return plain_schema(schema.names, list(known.values()))

    def _tell_odd_lines(self) -> str:
        lines = "1 line" if self._n_odd == 1 else f"{self._n_odd:,} lines"
        # Where it stands is told by a reader that numbers lines; it may give up at a
        # cell that is too long.
        try:
            with self._open() as file:
                found = islice(find_odd_lines(file, self._form), _MAX_LINES)
                places = [str(line) for line, _, _ in found]
        except csv.Error:
            places = []
        places += ["..."] if len(places) < self._n_odd else []
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
    def _reader(self, **convert: Any) -> Iterator[Any]:
        """Open pyarrow's stream of batches."""
        self._n_odd = 0
        parse = {"invalid_row_handler": self._skip_line} if self._is_skipping else {}
        with (
            self._open() as file,
            need_arrow("pyarrow.csv").open_csv(
                file,
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

    def _skip_line(self, row: Any) -> str:
        self._n_odd += 1
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
