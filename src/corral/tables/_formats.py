"""Readers of each format: bytes to a table, a CSR array or a wide array."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from corral._memory import find_free_memory, format_bytes
from corral.tables._arff import read_arff
from corral.tables._arrays import name_features, read_mtx, read_npy, read_npz
from corral.tables._arrow import need_arrow
from corral.tables._arrow_size import count_file, count_stream
from corral.tables._broken import NOT_UTF8, Broken, first_line, say_broken
from corral.tables._leading_zeros import ZeroWatch, find_padded
from corral.tables._limits import check_columns, check_memory, list_names
from corral.tables._line_ends import LineFile
from corral.tables._parquet import read_parquet

# What a cell may hold to say that it is missing, beside pyarrow's own list (an empty
# cell, NA, NaN, null and their kin): UCI's files and ARFF write a question mark.
_MISSING_MARK = "?"

# From so many bytes it is told what parts cells.
_SAMPLE_BYTES = 2**16

# pyarrow takes no larger block of text.
LARGEST_BLOCK = 2**31 - 1

# The line that names the columns is looked at as a whole.
_LONGEST_HEAD = 2**26

# What a byte of text and a cell take while pyarrow finds their type; measured on files
# of 80 MB with short and long cells.
_BYTES_PER_BYTE = 2
_BYTES_PER_CELL = 12

# Bytes that are looked at at once.
_COUNTED_BYTES = 2**24

_THOUSANDS = re.compile(r"-?\d{1,3}\.\d{3}")
_LINE_END = re.compile(r"\r\n|\r|\n")


# Text ---------------------------------------------------------------------------------


class CsvForm(NamedTuple):
    """How a CSV file is written, as its head tells.

    Attributes
    ----------
    head : str
        The first part of the file, a line at least.
    encoding : {"utf8", "utf-16"}
    delimiter : str
        What parts the cells.
    point : str
        What parts a number from its fraction.
    names : list of str or None
        Names of the columns; None if the first line has them.
    n_columns : int
        How many cells the first line has.
    """

    head: str
    encoding: str
    delimiter: str
    point: str
    names: list[str] | None
    n_columns: int

    def open(self, file: Any) -> LineFile:
        """Return what pyarrow should read of an open file at its beginning."""
        return LineFile(file, self.encoding)

    def read_options(self, **more: Any) -> Any:
        """Return pyarrow's options of reading, with some of one's own."""
        options = {
            "column_names": self.names,
            "skip_rows": self._count_lines_before(),
            **more,
        }
        return need_arrow("pyarrow.csv").ReadOptions(**options)

    def parse_options(self, **more: Any) -> Any:
        """Return pyarrow's options of parting cells, with some of one's own."""
        options = {
            "delimiter": self.delimiter,
            "newlines_in_values": True,
            # In a file of one column, a line without anything is a missing cell.
            "ignore_empty_lines": self.n_columns > 1,
            **more,
        }
        return need_arrow("pyarrow.csv").ParseOptions(**options)

    def convert_options(self, **more: Any) -> Any:
        """Return pyarrow's options of turning cells into values, with some more."""
        options = {
            "null_values": _list_missing_marks(),
            "strings_can_be_null": True,
            "decimal_point": self.point,
            **more,
        }
        return need_arrow("pyarrow.csv").ConvertOptions(**options)

    def _count_lines_before(self) -> int:
        """Return how many empty lines before the names would count as names or rows."""
        if self.n_columns > 1 or self.names is not None:
            return 0
        before = self.head[: len(self.head) - len(self.head.lstrip("\r\n"))]
        return len(_LINE_END.findall(before))


def _list_missing_marks() -> list[str]:
    """Return what a cell may hold to say that it is missing."""
    make = need_arrow("pyarrow.csv").ConvertOptions
    return [*make().null_values, _MISSING_MARK]


def find_csv_form(file: Any, delimiter: str | None = None) -> CsvForm:
    """Return how a CSV file is written, from an open file at its beginning.

    Cells are parted by the comma, semicolon or tab that its head has most. The first
    line names the columns, unless its cells are numbers, or missing, and they do not
    count up by one, as the years or places of a wide table do.
    """
    head, encoding = _head_of(file)
    delimiter = delimiter or _find_delimiter(head)
    point = _find_decimal_point(head, delimiter)
    cells = _first_cells(head, delimiter)
    check_columns(len(cells))
    names = None if _is_header(cells, point) else name_features(len(cells))
    return CsvForm(head, encoding, delimiter, point, names, len(cells))


def read_csv(
    content: Any,
    delimiter: str | None = None,
    texts: Iterable[str] | Callable[[list[str]], Iterable[str]] = (),
) -> Any:
    """Read CSV; its head tells how it is written.

    Parameters
    ----------
    content : pyarrow.Buffer
    delimiter : str, default=None
    texts : iterable of str, or callable, default=()
        The columns that are read as they are written; a callable returns them, out of
        the names of all columns.

    Returns
    -------
    table : pyarrow.Table
    """
    pa = need_arrow()
    form = find_csv_form(pa.BufferReader(content), delimiter)
    _check_csv_memory(content, form)
    if callable(texts):
        texts = texts(form.names or _first_cells(form.head, form.delimiter))
    types = as_texts(texts)
    try:
        table = _parse_csv(content, form, types)
        codes = _find_codes(content, table.schema, form)
        if codes:
            table = _parse_csv(content, form, types | as_texts(codes))
        check_columns(table.num_columns)
        check_utf8(table.schema)
        check_closed(table.column(table.num_columns - 1), pa.BufferReader(content))
    except UnicodeError as error:
        raise Broken(NOT_UTF8) from error
    except pa.ArrowInvalid as error:
        raise Broken(why_not_csv(error, io.BytesIO(content), form)) from error
    return table


def _check_csv_memory(content: Any, form: CsvForm) -> None:
    """Refuse text that does not fit into memory as a table."""
    size = content.size
    if (_BYTES_PER_BYTE + _BYTES_PER_CELL) * size <= find_free_memory():
        return
    n_cells = 0
    for start in range(0, size, _COUNTED_BYTES):
        part = np.frombuffer(content[start : start + _COUNTED_BYTES], np.uint8)
        counts = [int((part == ord(each)).sum()) for each in f"{form.delimiter}\r\n"]
        n_cells += counts[0] + max(counts[1:])
    check_memory(_BYTES_PER_BYTE * size + _BYTES_PER_CELL * n_cells)


def as_texts(names: Iterable[str]) -> dict[str, Any]:
    """Return the types of columns that are read as they are written."""
    return dict.fromkeys(names, need_arrow().string())


def _parse_csv(content: Any, form: CsvForm, types: dict[str, Any]) -> Any:
    read_all = need_arrow("pyarrow.csv").read_csv
    return _try_lines(read_all, content, form, column_types=types)


def _try_lines(
    work: Callable[..., Any], content: Any, form: CsvForm, **convert: Any
) -> Any:
    """Do what takes a file and pyarrow's options; again where lines are too long."""
    pa = need_arrow()
    read, parse = form.read_options(), form.parse_options()
    options = form.convert_options(**convert)
    try:
        return work(form.open(pa.BufferReader(content)), read, parse, options)
    except pa.ArrowInvalid as error:
        if not is_long_line(error):
            raise
        # One block for all, of at most 2 GiB.
        read.block_size = min(content.size, LARGEST_BLOCK)
        return work(form.open(pa.BufferReader(content)), read, parse, options)


def is_long_line(error: Exception) -> bool:
    """Return whether a line was longer than two of pyarrow's blocks."""
    return "straddl" in str(error)


def _find_codes(content: Any, schema: Any, form: CsvForm) -> list[str]:
    """Return the columns of whole numbers that are codes, such as 00123."""
    names = whole_columns(schema)
    watch = ZeroWatch(form.delimiter, form.encoding)
    if names:
        watch.add_all(content)
    if not (names and watch.may_be):
        return []
    options = {"include_columns": names, "column_types": as_texts(names)}
    return _try_lines(_stream_codes, content, form, **options)


def _stream_codes(*options: Any) -> list[str]:
    # All cells as texts at once would take more memory than the table.
    with need_arrow("pyarrow.csv").open_csv(*options) as batches:
        return find_padded(batches)


def whole_columns(schema: Any) -> list[str]:
    """Return the names of the columns of whole numbers."""
    is_whole = need_arrow().types.is_integer
    columns = zip(schema.names, schema.types, strict=True)
    return [name for name, kind in columns if is_whole(kind)]


def _head_of(file: Any) -> tuple[str, str]:
    """Return the first part as text, a line at least, and how it is written."""
    head = file.read(_SAMPLE_BYTES)
    while not re.search(rb"[\r\n]", head.lstrip(b"\r\n")):
        more = file.read(len(head))
        if not more:
            break
        head += more
        if len(head) > _LONGEST_HEAD:
            raise Broken(
                f"has a first line of more than {format_bytes(_LONGEST_HEAD)}. It "
                "should name the columns, and end."
            )
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return head[: len(head) // 2 * 2].decode("utf-16", "replace"), "utf-16"
    return head.decode("utf-8-sig", "replace"), "utf8"


def _find_delimiter(head: str) -> str:
    """Return which of comma, semicolon and tab parts the first line most often."""
    line = re.sub(r'"[^"]*"', "", _first_line(head))
    if ";" in line and _are_numbers(line.split(";"), ","):
        return ";"
    # Names hold commas sooner than semicolons and tabs. A line without any of them is
    # one column.
    return max("\t;,", key=line.count) if re.search(r"[\t;]", line) else ","


def _first_cells(head: str, delimiter: str) -> list[str]:
    """Return the cells of the first line that is not blank, without their quotes."""
    lines = io.StringIO(head, newline="")
    try:
        rows = csv.reader(lines, delimiter=delimiter)
        return next((row for row in rows if row), [""])
    except csv.Error:
        # A cell is too long for the reader.
        return _first_line(head).split(delimiter)


def _first_line(head: str) -> str:
    """Return the first line that is not blank, whatever ends lines."""
    return re.split("[\r\n]", head.lstrip("\r\n"), maxsplit=1)[0]


def _is_header(cells: list[str], point: str) -> bool:
    """Return whether cells are names, and not the numbers of a row.

    Cells of a row may be missing; without any number, they are names.
    """
    plain = [cell.strip('" ') for cell in cells]
    numbers = {cell for cell in plain if _is_number(cell, point)}
    if not numbers or not numbers.union(_list_missing_marks()).issuperset(plain):
        return True
    return _are_places(plain, point)


def _are_places(cells: list[str], point: str) -> bool:
    """Return whether numbers count up by one, as the years or places of a table do.

    pandas and R leave the cells above the names of rows empty, and pandas calls a
    single column 0.
    """
    n_blank = next(j for j, cell in enumerate(cells) if cell)
    numbers = cells[n_blank:]
    if len(numbers) == 1:
        return n_blank > 0 and numbers == ["0"]
    if not _are_numbers(numbers, point):
        return False
    return bool((np.diff(_to_floats(numbers, point)) == 1).all())


def _is_number(cell: str, point: str) -> bool:
    """Return whether a cell is a number, with commas in it as well: 1,5 or 1,234."""
    return _are_numbers([cell], point) or _are_numbers([cell.replace(",", "")], ".")


def _are_numbers(cells: list[str], point: str) -> bool:
    try:
        _to_floats(cells, point)
    except ValueError:
        return False
    return True


def _to_floats(cells: list[str], point: str) -> list[float]:
    return [float(cell.strip('" ').replace(point, ".")) for cell in cells]


def _find_decimal_point(head: str, delimiter: str) -> str:
    """Return a comma where semicolons part cells such as 3,14."""
    if delimiter != ";":
        return "."
    n_commas = len(re.findall(r"(?<![\d.,])-?\d+,\d+(?![\d.,])", head))
    points = re.findall(r"(?<![\d.,])-?\d+\.\d+(?![\d.,])", head)
    # Beside decimal commas, 1.000 is a thousand.
    n_points = sum(_THOUSANDS.fullmatch(each) is None for each in points)
    return "," if n_commas > n_points else "."


def check_closed(last: Any, file: Any) -> None:
    """Refuse a file whose last cell is all that follows an open quote.

    Parameters
    ----------
    last : pyarrow.Array or pyarrow.ChunkedArray
        The last column, the last rows of it at least.
    file : binary file
        At its beginning; read only if the last cell has several lines.
    """
    types = need_arrow().types
    is_text = types.is_string(last.type) or types.is_binary(last.type)
    if not is_text or not len(last):
        return
    cell = last[-1].as_py() or ""
    text = cell.decode("utf-8", "replace") if isinstance(cell, bytes) else cell
    n_lines = len(_LINE_END.findall(text))
    if n_lines and _count_quotes(file) % 2:
        raise Broken(
            f"opens a quote that is not closed: the {n_lines:,} lines that follow are "
            f"one cell, which begins with {text[:60]!r}. Close it, or write a quote in "
            "a cell as two."
        )


def _count_quotes(file: Any) -> int:
    n_quotes = 0
    while part := file.read(_COUNTED_BYTES):
        n_quotes += bytes(part).count(b'"')
    return n_quotes


def why_not_csv(error: Exception, file: Any, form: CsvForm) -> str:
    """Return why, with the line where the number of cells changes.

    Parameters
    ----------
    error : Exception
        What pyarrow said.
    file : binary file
        At its beginning.
    form : CsvForm
    """
    if "invalid UTF8" in str(error):
        # Of columns that are read as texts, whatever they hold.
        return NOT_UTF8
    if "Empty CSV" in str(error):
        is_open = _first_line(form.head).count('"') % 2
        quote = " Close the quote that is open in its first line." if is_open else ""
        return f"has no rows.{quote}"
    try:
        for line, row, n_cells in find_odd_lines(file, form):
            return (
                f"has {_count_cells(row)} in line {line}, where {n_cells} are expected "
                f"as in its first line: {form.delimiter.join(row)[:60]!r}. "
                f"{_advise(row, n_cells, form)}"
            )
    except csv.Error:
        # A cell is too long for the reader: what pyarrow says has to do.
        pass
    return (
        f"cannot be read as CSV: {first_line(error)}. Mend that cell, or save the "
        "table anew."
    )


def find_odd_lines(file: Any, form: CsvForm) -> Iterator[tuple[int, list[str], int]]:
    """Yield the lines whose number of cells is not that of the first.

    Each with its number, its cells, and the number of cells of the first line.
    pyarrow numbers rows, without those that are blank.
    """
    text = io.TextIOWrapper(file, form.encoding, "replace", newline="")
    reader = csv.reader(text, delimiter=form.delimiter)
    head = next((row for row in reader if row), [])
    line = reader.line_num + 1
    for row in reader:
        if row and len(row) != len(head):
            yield line, row, len(head)
        line = reader.line_num + 1


def _advise(row: list[str], n_cells: int, form: CsvForm) -> str:
    """Return what to do about a line that has another number of cells."""
    line = _first_line(form.head)
    if len(row) > n_cells and (n_cells == 1 or line.startswith("#")):
        return (
            f"If the first line, {line[:60]!r}, is a title or a comment, take it out: "
            "the first line should name the columns. Else put cells that hold the "
            "delimiter in quotes."
        )
    return "Put cells that hold the delimiter in quotes."


def _count_cells(row: list[str]) -> str:
    return "1 cell" if len(row) == 1 else f"{len(row)} cells"


def check_utf8(schema: Any) -> None:
    """Refuse columns that are bytes: pyarrow could not read them as text."""
    pa = need_arrow()
    # Names are decoded when they are asked for.
    columns = zip(schema.names, schema.types, strict=True)
    wrong = [name for name, kind in columns if pa.types.is_binary(kind)]
    if wrong:
        raise Broken(
            f"is not UTF-8 text in the columns {list_names(wrong)}. Save it as UTF-8."
        )


# Arrow --------------------------------------------------------------------------------


def _read_arrow(content: Any) -> Any:
    pa, ipc = need_arrow(), need_arrow("pyarrow.ipc")
    is_file = bytes(content[:6]) == b"ARROW1"
    open_it = ipc.open_file if is_file else ipc.open_stream
    try:
        with open_it(pa.BufferReader(content)) as reader:
            check_columns(len(reader.schema))
            check_memory(count_file(content) if is_file else count_stream(content))
            table = reader.read_all()
        # Its buffers are used as they are, wherever they say that cells begin.
        table.validate(full=True)
        return table
    except (pa.ArrowException, OSError) as error:
        raise say_broken(error) from error


READERS: dict[str, Callable[..., Any]] = {
    "csv": read_csv,
    "tsv": partial(read_csv, delimiter="\t"),
    "parquet": read_parquet,
    "arrow": _read_arrow,
    "npy": read_npy,
    "npz": read_npz,
    "arff": read_arff,
    "mtx": read_mtx,
}
