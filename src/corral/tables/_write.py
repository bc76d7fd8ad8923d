"""Writing results, so that a file is either complete or not there."""

import csv
import gzip
import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from corral._atomic import write_atomically
from corral.tables._arrow import need_arrow


def write_rows(path: str | Path, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write columns as CSV, TSV or Parquet, complete or not at all.

    Parameters
    ----------
    path : str or Path
        Its suffix decides: .csv, .tsv, each also with .gz, .parquet or .pq.
    columns : mapping of str to sequence
        All of the same length. None and NaN are missing cells.

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
    _check_lengths(columns)
    with write_atomically(path) as part:
        write(part, columns)


def write_csv(file: TextIO, columns: Mapping[str, Sequence[Any]], delimiter: str = ","):
    """Write columns as CSV to an open text file, such as standard output.

    Parameters
    ----------
    file : text file
    columns : mapping of str to sequence
        All of the same length. None and NaN become empty cells.
    delimiter : str, default=","
    """
    _check_lengths(columns)
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    cells = [_plain(values) for values in columns.values()]
    if len(cells) == 1:
        # The writer quotes an empty cell that is a line of its own, as it should.
        writer.writerows([cell] for cell in cells[0])
    else:
        writer.writerows(zip(*cells, strict=True))


def _plain(values: Sequence[Any]) -> list:
    """Return Python's own values, None for NaN."""
    array = values.tolist() if isinstance(values, np.ndarray) else list(values)
    return [None if isinstance(x, float) and x != x else x for x in array]


def _check_lengths(columns: Mapping[str, Sequence[Any]]) -> None:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name!r} {length}" for name, length in lengths.items())
        raise ValueError(f"Columns should have the same number of rows. Got {found}.")


def _find_writer(path: Path) -> Callable[[Path, Mapping], None]:
    name = path.name.lower()
    for suffix, writer in _WRITERS.items():
        if name.endswith(suffix):
            return writer
    raise ValueError(
        f"'{path}' cannot be written: its suffix {path.suffix!r} is not known. Choose "
        f"one of {', '.join(_WRITERS)}."
    )


def _write_text(path: Path, columns: Mapping, delimiter: str = ",") -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        write_csv(file, columns, delimiter)


def _write_gzip(path: Path, columns: Mapping, delimiter: str = ",") -> None:
    # Neither name nor time in the head: the same rows make the same bytes.
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as file,
    ):
        write_csv(file, columns, delimiter)


def _write_parquet(path: Path, columns: Mapping) -> None:
    pa = need_arrow()
    arrays = [pa.array(values, from_pandas=True) for values in columns.values()]
    table = pa.Table.from_arrays(arrays, names=[str(name) for name in columns])
    need_arrow("pyarrow.parquet").write_table(table, path)


_WRITERS: dict[str, Callable[[Path, Mapping], None]] = {
    ".csv": _write_text,
    ".tsv": lambda path, columns: _write_text(path, columns, "\t"),
    ".csv.gz": _write_gzip,
    ".tsv.gz": lambda path, columns: _write_gzip(path, columns, "\t"),
    ".parquet": _write_parquet,
    ".pq": _write_parquet,
}
