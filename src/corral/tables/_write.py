"""Writing results, so that a file is either complete or not there."""

import csv
import gzip
import io
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from corral.tables._arrow import need_arrow


@contextmanager
def write_atomically(path: str | Path) -> Iterator[Path]:
    """Give a temporary name to write to, which takes the place of the file at the end.

    Whatever ends the block early, an interrupt too, removes what was written and leaves
    the file as it was.

    Parameters
    ----------
    path : str or Path
        What is to be written. A link is followed. Devices and pipes, which cannot be
        replaced, get their content in one go at the end.

    Yields
    ------
    part : Path
        In the same folder, with the same suffix.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from corral.tables import write_atomically
    >>> target = pathlib.Path(tempfile.mkdtemp(), "answer.txt")
    >>> with write_atomically(target) as part:
    ...     _ = part.write_text("42")
    >>> target.read_text()
    '42'
    """
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise ValueError(f"'{path}' is a folder. Name a file in it.")
    # A root user's /dev/null must not become a file.
    is_special = target.exists() and not target.is_file()
    folder = Path(tempfile.gettempdir()) if is_special else target.parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"'{path}' cannot be written, because the folder '{folder}' is not there. "
            "Make it first."
        )
    part = folder / f".{target.stem}.{os.getpid()}.part{target.suffix}"
    try:
        yield part
        if is_special:
            with part.open("rb") as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)
        else:
            part.replace(target)
    finally:
        part.unlink(missing_ok=True)


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
