"""Writing results, so that a file is either complete or not there."""

import csv
import gzip
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TextIO

import numpy as np

from corral._atomic import write_atomically
from corral.tables._arrow import need_arrow

# Columns by name, all of the same length.
Columns = Mapping[str, Sequence[Any]]


def write_rows(path: str | Path, columns: Columns | Iterable[Columns]) -> None:
    """Write columns as CSV, TSV or Parquet, complete or not at all.

    Parameters
    ----------
    path : str or Path
        Its suffix decides: .csv, .tsv, each also with .gz, .parquet or .pq.
    columns : mapping of str to sequence, or iterable of such mappings
        All of the same length. None and NaN are missing cells. An iterable gives
        blocks of rows with the same columns, only one of which is held at a time; in
        Parquet, each is a row group, and the first decides the types.

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
    with write_atomically(path) as part:
        write(part, _read_blocks(columns))


def write_csv(
    file: TextIO, columns: Columns | Iterable[Columns], delimiter: str = ","
) -> None:
    """Write columns as CSV to an open text file, such as standard output.

    Parameters
    ----------
    file : text file
    columns : mapping of str to sequence, or iterable of such mappings
        All of the same length. None and NaN become empty cells. An iterable gives
        blocks of rows with the same columns.
    delimiter : str, default=","
    """
    _write_lines(file, _read_blocks(columns), delimiter)


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


def _write_lines(file: TextIO, blocks: Iterator[Columns], delimiter: str) -> None:
    writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
    for number, columns in enumerate(blocks):
        if not number:
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


def _check_lengths(columns: Columns) -> None:
    lengths = {name: len(values) for name, values in columns.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name!r} {length}" for name, length in lengths.items())
        raise ValueError(f"Columns should have the same number of rows. Got {found}.")


def _find_writer(path: Path) -> Callable[[Path, Iterator[Columns]], None]:
    name = path.name.lower()
    for suffix, writer in _WRITERS.items():
        if name.endswith(suffix):
            return writer
    raise ValueError(
        f"'{path}' cannot be written: its suffix {path.suffix!r} is not known. Choose "
        f"one of {', '.join(_WRITERS)}."
    )


def _write_text(path: Path, blocks: Iterator[Columns], delimiter: str = ",") -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        _write_lines(file, blocks, delimiter)


def _write_gzip(path: Path, blocks: Iterator[Columns], delimiter: str = ",") -> None:
    # Neither name nor time in the head: the same rows make the same bytes.
    with (
        path.open("wb") as raw,
        gzip.GzipFile("", "wb", fileobj=raw, mtime=0) as packed,
        io.TextIOWrapper(packed, encoding="utf-8", newline="") as file,
    ):
        _write_lines(file, blocks, delimiter)


def _write_parquet(path: Path, blocks: Iterator[Columns]) -> None:
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


_WRITERS: dict[str, Callable[[Path, Iterator[Columns]], None]] = {
    ".csv": _write_text,
    ".tsv": lambda path, blocks: _write_text(path, blocks, "\t"),
    ".csv.gz": _write_gzip,
    ".tsv.gz": lambda path, blocks: _write_gzip(path, blocks, "\t"),
    ".parquet": _write_parquet,
    ".pq": _write_parquet,
}
