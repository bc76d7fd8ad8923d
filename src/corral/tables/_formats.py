"""Readers of each format: bytes to a table, a CSR array or a wide array."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from corral._memory import find_free_memory, format_bytes
from corral.tables._arff import read_arff
from corral.tables._arrays import name_features, read_mtx, read_npy, read_npz
from corral.tables._arrow import need_arrow
from corral.tables._arrow_size import count_file, count_stream
from corral.tables._broken import NOT_UTF8, Broken, first_line, say_broken
from corral.tables._limits import check_columns, check_memory, list_names
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
    """

    head: str
    encoding: str
    delimiter: str
    point: str
    names: list[str] | None

    def read_options(self, **more: Any) -> Any:
        """Return pyarrow's options of reading, with some of one's own."""
        options = {"encoding": self.encoding, "column_names": self.names, **more}
        return need_arrow("pyarrow.csv").ReadOptions(**options)

    def parse_options(self, **more: Any) -> Any:
        """Return pyarrow's options of parting cells, with some of one's own."""
        options = {"delimiter": self.delimiter, "newlines_in_values": True, **more}
        return need_arrow("pyarrow.csv").ParseOptions(**options)

    def convert_options(self, **more: Any) -> Any:
        """Return pyarrow's options of turning cells into values, with some more."""
        make = need_arrow("pyarrow.csv").ConvertOptions
        options = {
            "null_values": [*make().null_values, _MISSING_MARK],
            "strings_can_be_null": True,
            "decimal_point": self.point,
        }
        return make(**{**options, **more})


def find_csv_form(file: Any, delimiter: str | None = None) -> CsvForm:
    """Return how a CSV file is written, from an open file at its beginning.

    Cells are parted by the comma, semicolon or tab that its head has most. The first
    line names the columns, unless all its cells are numbers and they do not count up by
    one, as the years or places of a wide table do.
    """
    head, encoding = _head_of(file)
    delimiter = delimiter or _find_delimiter(head)
    point = _find_decimal_point(head, delimiter)
    cells = _first_cells(head, delimiter)
    check_columns(len(cells))
    names = None if _is_header(cells, point) else name_features(len(cells))
    return CsvForm(head, encoding, delimiter, point, names)


def read_csv(content: Any, delimiter: str | None = None) -> Any:
    """Read CSV; its head tells how it is written."""
    pa = need_arrow()
    form = find_csv_form(pa.BufferReader(content), delimiter)
    _check_csv_memory(content, form)
    try:
        table = _parse_csv(content, form, {})
        codes = find_codes(table.schema, form)
        if codes:
            table = _parse_csv(content, form, dict.fromkeys(codes, pa.string()))
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


def _parse_csv(content: Any, form: CsvForm, types: dict[str, Any]) -> Any:
    pa, arrow_csv = need_arrow(), need_arrow("pyarrow.csv")
    read, parse = form.read_options(), form.parse_options()
    convert = form.convert_options(column_types=types)
    try:
        return arrow_csv.read_csv(pa.BufferReader(content), read, parse, convert)
    except pa.ArrowInvalid as error:
        if not is_long_line(error):
            raise
        # One block for all, of at most 2 GiB.
        read.block_size = min(content.size, LARGEST_BLOCK)
        return arrow_csv.read_csv(pa.BufferReader(content), read, parse, convert)


def is_long_line(error: Exception) -> bool:
    """Return whether a line was longer than two of pyarrow's blocks."""
    return "straddl" in str(error)


def find_codes(schema: Any, form: CsvForm) -> list[str]:
    """Return the columns of whole numbers that are codes, such as 00123.

    Two digits are a month or a minute sooner than a code.
    """
    types = need_arrow().types
    is_code = re.compile(r"\s*0\d\d+\s*$").match
    is_whole = [types.is_integer(kind) for kind in schema.types]
    found = set()
    lines = io.StringIO(form.head, newline="")
    try:
        for row in csv.reader(lines, delimiter=form.delimiter):
            found |= {j for j, cell in enumerate(row[: len(is_whole)]) if is_code(cell)}
    except csv.Error:
        # A cell is too long for the reader: the lines before it have to do.
        pass
    return [schema.names[j] for j in sorted(found) if is_whole[j]]


def _head_of(file: Any) -> tuple[str, str]:
    """Return the first part as text, a line at least, and how it is written."""
    head = file.read(_SAMPLE_BYTES)
    while b"\n" not in head.lstrip(b"\r\n"):
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
    return _first_line(head).split(delimiter)


def _first_line(head: str) -> str:
    """Return the first line that is not blank."""
    return head.lstrip("\r\n").partition("\n")[0].rstrip("\r")


def _is_header(cells: list[str], point: str) -> bool:
    if not _are_numbers(cells, point):
        return True
    steps = np.diff(_to_floats(cells, point))
    return len(cells) > 1 and bool((steps == 1).all())


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
    n_points = len(re.findall(r"(?<![\d.,])-?\d+\.\d+(?![\d.,])", head))
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
    if "\n" in text and _count_quotes(file) % 2:
        raise Broken(
            f"opens a quote that is not closed: the {text.count(chr(10)):,} lines "
            f"that follow are one cell, which begins with {text[:60]!r}. Close it, or "
            "write a quote in a cell as two."
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
    if "Empty CSV" in str(error):
        is_open = _first_line(form.head).count('"') % 2
        quote = " Close the quote that is open in its first line." if is_open else ""
        return f"has no rows.{quote}"
    try:
        for line, row, n_cells in find_odd_lines(file, form):
            return (
                f"has {_count_cells(row)} in line {line}, where {n_cells} are expected "
                f"as in its first line: {form.delimiter.join(row)[:60]!r}. Put cells "
                "that hold the delimiter in quotes."
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


READERS: dict[str, Callable[[Any], Any]] = {
    "csv": read_csv,
    "tsv": lambda content: read_csv(content, "\t"),
    "parquet": read_parquet,
    "arrow": _read_arrow,
    "npy": read_npy,
    "npz": read_npz,
    "arff": read_arff,
    "mtx": read_mtx,
}
