"""Reader of ARFF, dense and sparse.

SciPy's reader takes time that grows with the square of a line, with patterns that the
file gives, and memory for the longest nominal value in every row.
"""

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from corral.tables._arrays import WIDEST_TABLE, tidy_csr
from corral.tables._arrow import need_arrow
from corral.tables._broken import NOT_UTF8, Broken, first_line
from corral.tables._limits import check_columns, check_memory

# Cells of a table that is made from sparse rows, most of which are not in the file.
_MOST_CELLS = 10**8

# What Python's texts and lists take for a byte and for a line of the file. Measured on
# files of 4 MB: 18 to 39 times their size where lines are long, 93 times where each is
# one digit. This is 1 to 2 times what was measured.
_BYTES_PER_BYTE = 25
_BYTES_PER_LINE = 250

# A cell of a table that is made from sparse rows, beside the letters of a text.
_BYTES_PER_CELL = 16

_MISSING = "?"

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_ATTRIBUTE = re.compile(rf"@attribute\s+({_QUOTED}|\S+)\s+(\S.*)", re.IGNORECASE)

# A pair of a sparse row: the attribute's number, then a quoted or a bare value.
_PAIR = re.compile(rf"\s*(\d+)\s+({_QUOTED}|[^,\s}}]+)\s*(?:,|$)")

# Letters of a date in ARFF, which are Java's -> those of Python.
_DATE_PARTS = {
    "yyyy": "%Y",
    "yy": "%y",
    "MM": "%m",
    "dd": "%d",
    "HH": "%H",
    "mm": "%M",
    "ss": "%S",
}
_TIME_PARTS = ("%H", "%M", "%S")

# Of a date without a pattern.
_DATE_PATTERN = "yyyy-MM-dd'T'HH:mm:ss"


class _Attribute(NamedTuple):
    """A column, as the header tells.

    Attributes
    ----------
    name : str
    kind : {"number", "nominal", "date", "text"}
    values : tuple of str
        Of a nominal column.
    pattern : str
        Of dates, for ``strptime``.
    """

    name: str
    kind: str
    values: tuple[str, ...] = ()
    pattern: str = ""

    @property
    def empty(self) -> str:
        """What a sparse row means that does not give it: zero, or the first value."""
        if self.kind == "nominal":
            return self.values[0]
        if self.kind == "text":
            return ""
        return datetime(1970, 1, 1).strftime(self.pattern) if self.pattern else "0"

    def to_column(self, cells: Iterable[str]) -> Any:
        """Return cells as a column of pyarrow; null where a cell is missing."""
        pa = need_arrow()
        kind = pa.float64() if self.kind == "number" else pa.string()
        if self.kind == "date":
            has_time = any(part in self.pattern for part in _TIME_PARTS)
            kind = pa.timestamp("s") if has_time else pa.date32()
        convert = self._converter()
        known = [None if cell == _MISSING else convert(cell) for cell in cells]
        return pa.array(known, kind, from_pandas=True)

    def _converter(self) -> Callable[[str], Any]:
        if self.kind == "number":
            return _read_number
        if self.kind == "text":
            return str
        if self.kind == "date":
            return lambda cell: datetime.strptime(cell, self.pattern)
        known = set(self.values)

        def check(cell: str) -> str:
            if cell not in known:
                raise ValueError(
                    f"{cell[:60]!r} is not one of the {len(known):,} values of "
                    f"{self.name[:60]!r}"
                )
            return cell

        return check


def read_arff(content: Any) -> Any:
    """Read a table, or a CSR array if it is sparse and all are numbers."""
    check_memory(_BYTES_PER_BYTE * content.size)
    raw = bytes(content)
    n_lines = max(raw.count(b"\n"), raw.count(b"\r"))
    check_memory(_BYTES_PER_BYTE * len(raw) + _BYTES_PER_LINE * n_lines)
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeError as error:
        raise Broken(NOT_UTF8) from error
    lines = (line.strip() for line in io.StringIO(text, newline=None))
    lines = (line for line in lines if line and line[0] != "%")
    attributes = _read_head(lines)
    rows = list(lines)
    try:
        if rows and rows[0].startswith("{"):
            return _read_sparse(rows, attributes)
        return _read_dense(rows, attributes)
    except (ValueError, csv.Error, re.error) as error:
        if isinstance(error, Broken):
            raise
        raise Broken(
            f"cannot be read as ARFF: {first_line(error)}. Mend it, or save it as CSV."
        ) from error


def _read_head(lines: Iterator[str]) -> list[_Attribute]:
    """Return the attributes, and leave the rows."""
    attributes: list[_Attribute] = []
    for line in lines:
        word = line.split(maxsplit=1)[0].lower()
        if word == "@data":
            check_columns(len(attributes))
            return attributes
        if word == "@attribute":
            attributes.append(_read_attribute(line))
        elif word != "@relation":
            raise Broken(
                f"cannot be read as ARFF: {line[:60]!r} stands before @data. Put a % "
                "before comments."
            )
    raise Broken("is not complete ARFF: it has no @data. Get it again.")


def _read_attribute(line: str) -> _Attribute:
    found = _ATTRIBUTE.match(line)
    if found is None:
        raise Broken(
            f"cannot be read as ARFF: {line[:60]!r} has not both a name and a type."
        )
    name, kind = _unquote(found[1]), found[2].strip()
    if kind.lower().startswith(("numeric", "real", "int")):
        return _Attribute(name, "number")
    if kind.startswith("{") and kind.endswith("}") and kind[1:-1].strip():
        values = _split(kind[1:-1], ",", _find_quote(kind))
        return _Attribute(name, "nominal", tuple(values))
    if kind.lower() == "string":
        return _Attribute(name, "text")
    pattern = _read_pattern(kind)
    if not pattern:
        raise Broken(
            f"has ARFF attributes that are not read: {name[:60]!r} is {kind[:60]!r}. "
            "Save it as CSV."
        )
    return _Attribute(name, "date", pattern=pattern)


def _read_pattern(kind: str) -> str:
    """Return the pattern of a date; empty if it is none, or has parts not known."""
    found = re.fullmatch(r"date(?:\s+(\S.*))?", kind, re.IGNORECASE)
    if found is None:
        return ""
    # Quotes part letters that stand for themselves, such as T.
    pattern = re.sub("[\"']", "", found[1] or _DATE_PATTERN).replace("%", "%%")
    for part, directive in _DATE_PARTS.items():
        pattern = pattern.replace(part, directive)
    is_known = "%" in pattern and not re.search("[zZ]", pattern)
    return pattern if is_known else ""


def _unquote(text: str) -> str:
    if len(text) > 1 and text[0] in "'\"" and text[-1] == text[0]:
        return re.sub(r"\\(.)", r"\1", text[1:-1])
    return text


def _read_number(cell: str) -> float:
    # Python takes 1_000 for a number.
    if "_" in cell:
        raise ValueError(f"{cell[:60]!r} is no number")
    return float(cell)


def _find_quote(text: str) -> str:
    return '"' if text.count('"') > text.count("'") else "'"


def _split(line: str, delimiter: str, quote: str) -> list[str]:
    if '"' in line and "'" in line:
        cell = rf"\s*({_QUOTED}|[^{delimiter}]*)\s*{delimiter}"
        return [_unquote(each.strip()) for each in re.findall(cell, line + delimiter)]
    reader = csv.reader(
        [line],
        delimiter=delimiter,
        quotechar=quote,
        escapechar="\\",
        skipinitialspace=True,
    )
    return [cell.strip() for cell in next(reader)]


def _read_dense(rows: list[str], attributes: list[_Attribute]) -> Any:
    first = rows[0] if rows else ""
    delimiter = "\t" if "\t" in first and "," not in first else ","
    cells = [_split(row, delimiter, _find_quote(row)) for row in rows]
    for row, line in zip(cells, rows, strict=True):
        if len(row) != len(attributes) and not _has_weight(row, len(attributes)):
            raise Broken(
                f"cannot be read as ARFF: {line[:60]!r} has {len(row)} cells, where "
                f"{len(attributes)} are expected. Put cells with commas in quotes."
            )
    columns = [
        attribute.to_column(row[j] for row in cells)
        for j, attribute in enumerate(attributes)
    ]
    return _to_table(columns, attributes)


def _has_weight(row: list[str], n_attributes: int) -> bool:
    """Return whether a row has one cell more, its weight in braces, or an empty one."""
    last = row[-1]
    is_extra = not last or (last.startswith("{") and last.endswith("}"))
    return len(row) == n_attributes + 1 and is_extra


def _to_table(columns: list[Any], attributes: list[_Attribute]) -> Any:
    names = [attribute.name for attribute in attributes]
    return need_arrow().Table.from_arrays(columns, names=names)


def _read_sparse(lines: list[str], attributes: list[_Attribute]) -> Any:
    """Read rows such as {1 0.5, 3 red}; what is not given is zero or the first value.

    Numbers alone make a CSR array.
    """
    rows = [_read_pairs(line, len(attributes)) for line in lines]
    if all(each.kind == "number" for each in attributes):
        return _sparse_numbers(rows, len(attributes))
    n_cells = len(rows) * len(attributes)
    if len(attributes) > WIDEST_TABLE or n_cells > _MOST_CELLS:
        raise Broken(
            f"is sparse ARFF with {len(attributes):,} attributes, some of them "
            f"nominal, and {len(rows):,} rows. Such files are read up to "
            f"{WIDEST_TABLE:,} attributes and {_MOST_CELLS:,} cells. Save it as "
            "Parquet."
        )
    # The first value of a nominal attribute, however long, stands in all rows.
    check_memory(
        len(rows) * sum(_BYTES_PER_CELL + len(each.empty) for each in attributes)
    )
    columns = [
        each.to_column(row.get(j, each.empty) for row in rows)
        for j, each in enumerate(attributes)
    ]
    return _to_table(columns, attributes)


def _read_pairs(line: str, n_features: int) -> dict[int, str]:
    row: dict[int, str] = {}
    is_whole = len(line) > 1 and line[0] == "{" and line[-1] == "}"
    inner, place = line[1:-1].strip(), 0
    while is_whole and place < len(inner):
        found = _PAIR.match(inner, place)
        # No number of an attribute has more digits.
        is_whole = found is not None and len(found[1]) < 19
        if found is not None and is_whole:
            row[int(found[1])] = _unquote(found[2])
            place = found.end()
    if not is_whole or max(row, default=0) >= n_features or inner.endswith(","):
        raise Broken(
            f"has a sparse ARFF row that cannot be read: {line[:60]!r}. It should be "
            f"like {{0 1.5, 3 red}}, with attributes from 0 to {n_features - 1}."
        )
    return row


def _sparse_numbers(rows: list[dict[int, str]], n_features: int) -> sparse.csr_array:
    starts = np.cumsum([0, *map(len, rows)])
    columns = np.array([j for row in rows for j in row], dtype=np.int64)
    cells = (cell for row in rows for cell in row.values())
    values = [np.nan if cell == _MISSING else _read_number(cell) for cell in cells]
    parts = (np.array(values, dtype=float), columns, starts)
    return tidy_csr(sparse.csr_array(parts, shape=(len(rows), n_features)))
