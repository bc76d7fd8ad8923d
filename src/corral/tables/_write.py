"""Writing results, so that a file is either complete or not there."""

import csv
import gzip
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain, repeat
from numbers import Number
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from corral._atomic import write_atomically
from corral.tables._arrow import need_arrow

# Columns by name, all of the same length.
Columns = Mapping[str, Sequence[Any]]

# Writes blocks of rows to a file, with or without the escape of formulas.
Writer = Callable[[Path, Iterator[Columns], bool], None]

# How a formula begins, in wide letters, too. Programs drop blanks and characters that
# cannot be seen before it; a tab or a line end alone may begin another cell. Further
# apostrophes come off one by one.
_SIGN = (
    "[\\s\x00-\x1f\x7f-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]*"
    "[=+@\\-\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b]"
)
_FORMULA = re.compile(f"'*(?:[\t\r\n]|{_SIGN})")

# A text that is a number and nothing else.
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")

# What can never begin as a formula does, and needs no closer look.
_PLAIN_TYPES = frozenset({int, float, bool, type(None)})

# The writer quotes cells with any of these, which other programs may take for the end
# of a cell or of a line, and ends each line with all of them.
_ENDS = "\n\r\t,;"

# Programs that take another letter for the end of a cell see quotes only where a line
# begins: in any other column, a text may have a formula in the middle.
_INNER = re.compile(f"([{_ENDS}]\"*)(?='*{_SIGN})")


def write_rows(
    path: str | Path,
    columns: Columns | Iterable[Columns],
    *,
    escape_formulas: bool = True,
    replace: bool = True,
) -> None:
    """Write columns as CSV, TSV or Parquet, complete or not at all.

    Parameters
    ----------
    path : str or Path
        Its suffix decides: .csv, .tsv, each also with .gz, .parquet or .pq.
    columns : mapping of str to sequence, or iterable of such mappings
        All of the same length. None and NaN are missing cells. An iterable gives
        blocks of rows with the same columns, only one of which is held at a time; in
        Parquet, each is a row group, and the first decides the types.
    escape_formulas : bool, default=True
        Whether texts in CSV and TSV, names of columns among them, that a spreadsheet
        would run as a formula get an apostrophe before them; see :func:`write_csv`.
        False writes them as they are, for programs. Parquet has them as they are in
        any case.
    replace : bool, default=True
        Whether a file that is there is replaced. Else the new one gets another name,
        and an error tells it.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from corral.tables import write_rows
    >>> path = pathlib.Path(tempfile.mkdtemp(), "labels.csv")
    >>> write_rows(path, {"row": [0, 1], "label": [2, -1]})
    >>> print(path.read_text(), end="")
    row,label
    0,2
    1,-1
    """
    write = _find_writer(Path(path))
    with write_atomically(path, replace=replace) as part:
        write(part, _read_blocks(columns), escape_formulas)


def write_csv(
    file: TextIO,
    columns: Columns | Iterable[Columns],
    delimiter: str = ",",
    *,
    escape_formulas: bool = True,
) -> None:
    """Write columns as CSV to an open text file, such as standard output.

    A spreadsheet runs a cell as a formula that begins with one of ``= + - @``, a tab or
    a line end, also in wide letters and behind blanks. Such a text gets an apostrophe
    before it, by which spreadsheets know a text. A text that has apostrophes before
    such a character gets one more, so that one can always be taken off again. In other
    columns than the first, the same is done behind each comma, semicolon, tab and line
    end in a text: programs that cut cells there do not see the quotes around it.
    Numbers stay as they are, and so do texts that are a number and nothing else, such
    as "-5" or "+3.2e4": nothing in them can be run, and ids that are numbers still
    match.

    Parameters
    ----------
    file : text file
    columns : mapping of str to sequence, or iterable of such mappings
        All of the same length. None and NaN become empty cells. An iterable gives
        blocks of rows with the same columns.
    delimiter : str, default=","
    escape_formulas : bool, default=True
        False writes all texts as they are, for programs.

    Examples
    --------
    >>> import sys
    >>> from corral.tables import write_csv
    >>> write_csv(sys.stdout, {"id": ["=1+1", "-5"], "label": [0, -1]})
    id,label
    '=1+1,0
    -5,-1
    """
    _write_lines(file, _read_blocks(columns), escape_formulas, delimiter)


def unescape_formula(text: str) -> str:
    """Return a text as it was before it was written.

    Parameters
    ----------
    text : str
        A cell that :func:`write_csv` has written.

    Returns
    -------
    text : str
        Without the apostrophe, if it was escaped.
    """
    return text[1:] if text.startswith("'") and _is_formula(text[1:]) else text


def _read_blocks(columns: Columns | Iterable[Columns]) -> Iterator[Columns]:
    """Yield blocks of rows, after a check that they belong together."""
    blocks = [columns] if isinstance(columns, Mapping) else columns
    names: list[str] | None = None
    for block in blocks:
        _check_lengths(block)
        names = [*block] if names is None else names
        if [*block] != names:
            raise ValueError(
                f"A block has the columns {', '.join(map(repr, block))}, but the first "
                f"has {', '.join(map(repr, names))}. All should have the same."
            )
        yield block


def _write_lines(
    file: TextIO, blocks: Iterator[Columns], escape: bool, delimiter: str = ","
) -> None:
    # Cells with the delimiter are quoted anyway. Python 3.13 wants no line to end so.
    ends = _ENDS.replace(delimiter, "")
    lines = _Lines(file, len(ends))
    writer = csv.writer(lines, delimiter=delimiter, lineterminator=ends)
    for number, columns in enumerate(blocks):
        if not number:
            names = [[name] for name in columns]
            writer.writerow(chain(*_escape(names)) if escape else columns)
        cells = [_plain(values) for values in columns.values()]
        if escape:
            cells = _escape(cells)
        if len(cells) == 1:
            # The writer quotes an empty cell that is a line of its own, as it should.
            writer.writerows([cell] for cell in cells[0])
        else:
            writer.writerows(zip(*cells, strict=True))


class _Lines:
    """A file for a csv writer, which ends lines as a file should."""

    def __init__(self, file: TextIO, n_ends: int) -> None:
        self._write, self._n_ends = file.write, n_ends

    def write(self, line: str) -> None:
        """Write one line."""
        self._write(f"{line[: -self._n_ends]}\n")


def _escape(columns: list[list]) -> list[list]:
    """Return cells of which none is a formula."""
    escapes = [_escape_text, *repeat(_escape_inner, len(columns) - 1)]
    return [
        [
            cell
            if type(cell) in _PLAIN_TYPES or isinstance(cell, Number)
            else escape(str(cell))
            for cell in cells
        ]
        for cells, escape in zip(columns, escapes, strict=True)
    ]


def _escape_text(text: str) -> str:
    return f"'{text}" if _is_formula(text) else text


def _escape_inner(text: str) -> str:
    return _INNER.sub(r"\1'", _escape_text(text))


def _is_formula(text: str) -> bool:
    return bool(_FORMULA.match(text)) and not _NUMBER.fullmatch(text)


def _plain(values: Sequence[Any]) -> list:
    """Return Python's own values, None for NaN."""
    array = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return [None if isinstance(x, float) and x != x else x for x in array]


def _check_lengths(columns: Columns) -> None:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name!r} {length}" for name, length in lengths.items())
        raise ValueError(f"Columns should have the same number of rows. Got {found}.")


def _find_writer(path: Path) -> Writer:
    name = path.name.lower()
    for suffix, writer in _WRITERS.items():
        if name.endswith(suffix):
            return writer
    raise ValueError(
        f"'{path}' cannot be written: its suffix {path.suffix!r} is not known. Choose "
        f"one of {', '.join(_WRITERS)}."
    )


def _write_text(
    path: Path, blocks: Iterator[Columns], escape: bool, delimiter: str = ","
) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        _write_lines(file, blocks, escape, delimiter)


def _write_gzip(
    path: Path, blocks: Iterator[Columns], escape: bool, delimiter: str = ","
) -> None:
    # Neither name nor time in the head: the same rows make the same bytes.
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as file,
    ):
        _write_lines(file, blocks, escape, delimiter)


def _write_parquet(path: Path, blocks: Iterator[Columns], escape: bool) -> None:
    # No spreadsheet runs what it holds: its columns have types.
    pq = need_arrow("pyarrow.parquet")
    first = _to_table(next(blocks, {}))
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for block in blocks:
            writer.write_table(_to_table(block).cast(first.schema))


def _to_table(columns: Columns) -> Any:
    pa = need_arrow()
    arrays = [pa.array(values, from_pandas=True) for values in columns.values()]
    return pa.Table.from_arrays(arrays, names=[str(name) for name in columns])


_WRITERS: dict[str, Writer] = {
    ".csv": _write_text,
    ".tsv": partial(_write_text, delimiter="\t"),
    ".csv.gz": _write_gzip,
    ".tsv.gz": partial(_write_gzip, delimiter="\t"),
    ".parquet": _write_parquet,
    ".pq": _write_parquet,
}
