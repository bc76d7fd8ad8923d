"""Readers of each format: bytes to a table, a CSR array or a wide array."""

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from corral.tables._arrow import need_arrow

# Arrays with more columns are not made into tables: a column of a table costs about a
# kilobyte and some microseconds in every step, whatever its length.
WIDEST_TABLE = 5000

# What a cell may hold to say that it is missing, beside pyarrow's own list (an empty
# cell, NA, NaN, null and their kin): UCI's files and ARFF write a question mark.
_MISSING_MARK = "?"

# From so many bytes it is told what parts cells.
_SAMPLE_BYTES = 2**16

# pyarrow takes no larger block of text.
LARGEST_BLOCK = 2**31 - 1

NOT_UTF8 = "is not UTF-8 text. Save it as UTF-8."


class Broken(ValueError):
    """Why a file cannot be read, as the end of a sentence that begins with its name."""


def name_features(n_features: int) -> list[str]:
    """Return names for the columns of an array."""
    return [f"feature {j}" for j in range(n_features)]


def first_line(error: BaseException) -> str:
    """Return the first line of what an error says, without its full stop."""
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__


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
    names = None if _is_header(cells, point) else name_features(len(cells))
    return CsvForm(head, encoding, delimiter, point, names)


def read_csv(content: Any, delimiter: str | None = None) -> Any:
    """Read CSV; its head tells how it is written."""
    pa = need_arrow()
    form = find_csv_form(pa.BufferReader(content), delimiter)
    try:
        table = _parse_csv(content, form, {})
        codes = find_codes(table.schema, form)
        if codes:
            table = _parse_csv(content, form, dict.fromkeys(codes, pa.string()))
        check_utf8(table.schema)
    except UnicodeError as error:
        raise Broken(NOT_UTF8) from error
    except pa.ArrowInvalid as error:
        raise Broken(why_not_csv(error, io.BytesIO(content), form)) from error
    return table


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
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return head[: len(head) // 2 * 2].decode("utf-16", "replace"), "utf-16"
    return head.decode("utf-8-sig", "replace"), "utf8"


def _find_delimiter(head: str) -> str:
    """Return which of comma, semicolon and tab parts the first line most often."""
    line = re.sub(r'"[^"]*"', "", head.lstrip("\r\n").partition("\n")[0]).rstrip("\r")
    if ";" in line and _are_numbers(line.split(";"), ","):
        return ";"
    # Names hold commas sooner than semicolons and tabs. A line without any of them is
    # one column.
    return max("\t;,", key=line.count) if re.search(r"[\t;]", line) else ","


def _first_cells(head: str, delimiter: str) -> list[str]:
    line = head.lstrip("\r\n").partition("\n")[0].rstrip("\r")
    return line.split(delimiter)


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
        return "has no rows."
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
    return f"cannot be read as CSV: {first_line(error)[:200]}."


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
        names = ", ".join(map(repr, wrong))
        raise Broken(f"is not UTF-8 text in the columns {names}. Save it as UTF-8.")


# Arrow --------------------------------------------------------------------------------


def _read_parquet(content: Any) -> Any:
    pa, parquet = need_arrow(), need_arrow("pyarrow.parquet")
    try:
        return parquet.read_table(pa.BufferReader(content))
    except (pa.ArrowException, OSError) as error:
        raise Broken(f"is broken or cut off: {first_line(error)}.") from error


def _read_arrow(content: Any) -> Any:
    pa, ipc = need_arrow(), need_arrow("pyarrow.ipc")
    open_it = ipc.open_file if bytes(content[:6]) == b"ARROW1" else ipc.open_stream
    try:
        with open_it(pa.BufferReader(content)) as reader:
            return reader.read_all()
    except (pa.ArrowException, OSError) as error:
        raise Broken(f"is broken or cut off: {first_line(error)}.") from error


# Arrays -------------------------------------------------------------------------------


def tabulate(values: np.ndarray) -> Any:
    """Return an array as a table, or as it is if it is very wide."""
    if values.dtype.names:
        fields = {name: _column(values[name]) for name in values.dtype.names}
        return need_arrow().table(fields)
    if values.ndim == 1:
        values = values[:, None]
    if values.ndim != 2:
        raise Broken(
            f"holds an array of shape {values.shape}; it should have rows and columns."
        )
    if values.dtype.kind == "c":
        raise Broken("holds complex numbers, which cannot be compared.")
    if values.shape[1] > WIDEST_TABLE and values.dtype.kind in "fiub":
        return values
    names = name_features(values.shape[1])
    columns = [_column(column) for column in values.T]
    return need_arrow().Table.from_arrays(columns, names=names)


def _column(values: np.ndarray) -> Any:
    if values.ndim != 1 or values.dtype.kind == "V":
        raise Broken("holds an array whose cells are arrays. One number per cell.")
    if values.dtype.kind == "S":
        values = np.char.decode(values, "utf-8", "replace")
    plain = np.ascontiguousarray(values).astype(values.dtype.newbyteorder("="))
    return need_arrow().array(plain, from_pandas=True)


def tidy_csr(rows: Any) -> sparse.csr_array:
    """Return sparse rows as CSR with float64 values, no entry twice and no zeros."""
    if rows.dtype.kind == "c":
        raise Broken("holds complex numbers, which cannot be compared.")
    rows = sparse.csr_array(rows).astype(np.float64)
    # SciPy's sweeps trust the indices.
    rows.check_format(full_check=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def _read_npy(content: Any) -> Any:
    return tabulate(_load_numpy(content))


def _load_numpy(content: Any) -> Any:
    try:
        return np.load(need_arrow().BufferReader(content), allow_pickle=False)
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise Broken(why_not_numpy(error)) from error


def why_not_numpy(error: Exception) -> str:
    """Return why NumPy could not load a file."""
    if "allow_pickle" in str(error):
        return "holds Python objects, which are not read. Save numbers or texts."
    return f"is broken or cut off: {first_line(error)}."


_CSR_PARTS = ("data", "indices", "indptr", "shape")


def _read_npz(content: Any) -> Any:
    with _load_numpy(content) as file:
        try:
            if "format" in file and "shape" in file:
                source = need_arrow().BufferReader(content)
                return tidy_csr(sparse.load_npz(source))
            if all(part in file for part in _CSR_PARTS):
                data, indices, indptr, shape = (file[part] for part in _CSR_PARTS)
                parts = (data, indices, indptr)
                return tidy_csr(sparse.csr_array(parts, shape=tuple(shape)))
            return tabulate(_choose_array(file))
        except Broken:
            raise
        except (ValueError, OSError, zipfile.BadZipFile) as error:
            raise Broken(why_not_numpy(error)) from error


def _choose_array(file: Any) -> np.ndarray:
    """Return the array named X, or the only one with rows and columns."""
    if "X" in file:
        return file["X"]
    members = {name: file[name] for name in file.files}
    arrays = {
        name: each for name, each in members.items() if isinstance(each, np.ndarray)
    }
    matrices = [array for array in arrays.values() if array.ndim == 2]
    if len(matrices) == 1:
        return matrices[0]
    if not arrays:
        raise Broken("holds no array of NumPy.")
    shapes = ", ".join(f"{name!r} {array.shape}" for name, array in arrays.items())
    raise Broken(
        f"holds {len(matrices)} arrays with rows and columns, and which to read is not "
        f"clear: {shapes}. Name one of them X."
    )


def _read_mtx(content: Any) -> Any:
    from scipy.io import mmread

    try:
        values = mmread(need_arrow().BufferReader(content))
    except (ValueError, OverflowError, EOFError, OSError) as error:
        raise Broken(
            f"is not a complete Matrix Market file: {first_line(error)}."
        ) from (error)
    return tidy_csr(values) if sparse.issparse(values) else tabulate(values)


# ARFF ---------------------------------------------------------------------------------


def _read_arff(content: Any) -> Any:
    from scipy.io import arff

    try:
        text = bytes(content).decode("utf-8-sig")
    except UnicodeError as error:
        raise Broken(NOT_UTF8) from error
    parts = re.split(r"(?im)^\s*@data\b.*$", text, maxsplit=1)
    if len(parts) != 2:
        raise Broken("is not complete ARFF: it has no @data.")
    head, body = parts
    try:
        _, meta = arff.loadarff(io.StringIO(head + "@data\n"))
        if re.match(r"(\s*(%.*)?\n)*\s*\{", body):
            return _read_sparse_arff(body, meta)
        rows, meta = arff.loadarff(io.StringIO(text))
    except Broken:
        raise
    except NotImplementedError as error:
        raise Broken(
            f"has ARFF attributes that are not read: {first_line(error)}. Save it as "
            "CSV."
        ) from error
    except (ValueError, IndexError, StopIteration, arff.ArffError) as error:
        raise Broken(f"cannot be read as ARFF: {first_line(error)}.") from error
    return need_arrow().table(
        {name: _arff_column(rows[name], meta[name][0]) for name in meta.names()}
    )


def _arff_column(values: np.ndarray, kind: str) -> Any:
    if kind != "nominal":
        return _column(values)
    texts = [value.decode("utf-8") for value in values.tolist()]
    return need_arrow().array([None if text == "?" else text for text in texts])


# A pair of a sparse row: the attribute's number, then a quoted or a bare value.
_PAIR = re.compile(r"""\s*(\d+)\s+('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^,\s}]+)\s*""")


def _read_sparse_arff(body: str, meta: Any) -> Any:
    """Read rows such as {1 0.5, 3 red}; what is not given is zero or the first value.

    Numbers alone make a CSR array.
    """
    names = meta.names()
    lines = (line.strip() for line in body.splitlines())
    rows = [_pairs(line, len(names)) for line in lines if line and line[0] != "%"]
    if all(meta[name][0] in ("numeric", "real", "integer") for name in names):
        return _sparse_numbers(rows, len(names))
    if len(names) > WIDEST_TABLE:
        raise Broken(
            f"is sparse ARFF with {len(names)} attributes, some of them nominal. Such "
            f"files are read up to {WIDEST_TABLE} attributes."
        )
    columns = {}
    for j, name in enumerate(names):
        kind, values = meta[name]
        empty = values[0] if kind == "nominal" else "0"
        cells = [row.get(j, empty) for row in rows]
        known = [None if cell == "?" else cell for cell in cells]
        if kind != "nominal":
            known = [None if cell is None else float(cell) for cell in known]
        columns[name] = need_arrow().array(known)
    return need_arrow().table(columns)


def _pairs(line: str, n_features: int) -> dict[int, str]:
    inner = line.removeprefix("{").removesuffix("}").strip()
    found = list(_PAIR.finditer(inner))
    row = {int(each[1]): each[2].strip("'\"") for each in found}
    is_whole = line == "{" + line[1:-1] + "}" and (
        ",".join(each[0] for each in found) == inner
    )
    if not is_whole or max(row, default=0) >= n_features:
        raise Broken(f"has a sparse ARFF row that cannot be read: {line[:60]!r}.")
    return row


def _sparse_numbers(rows: list[dict[int, str]], n_features: int) -> sparse.csr_array:
    starts = np.cumsum([0, *map(len, rows)])
    columns = np.array([j for row in rows for j in row], dtype=np.int64)
    cells = [cell for row in rows for cell in row.values()]
    values = np.array(["nan" if cell == "?" else cell for cell in cells], dtype=float)
    shape = (len(rows), n_features)
    return tidy_csr(sparse.csr_array((values, columns, starts), shape=shape))


READERS: dict[str, Callable[[Any], Any]] = {
    "csv": read_csv,
    "tsv": lambda content: read_csv(content, "\t"),
    "parquet": _read_parquet,
    "arrow": _read_arrow,
    "npy": _read_npy,
    "npz": _read_npz,
    "arff": _read_arff,
    "mtx": _read_mtx,
}
