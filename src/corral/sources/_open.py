"""From what the user has to a source."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from corral.sources._array import ArraySource, open_npy
from corral.sources._base import Sieve
from corral.sources._csv import CsvSource
from corral.sources._errors import UnreadableBlockError
from corral.sources._iterator import IteratorSource
from corral.sources._parquet import ParquetSource
from corral.tables._read import FORMAT_WORDS, check_exists, check_kind, kind_of

_FORMATS = ("csv", "tsv", "parquet", "npy")


def open_source(
    data: Any,
    *,
    columns: str | Sequence[str] | None = None,
    format: str | None = None,
    on_error: str = "raise",
    texts: str | Sequence[str] | None = None,
) -> Any:
    """Return a source: rows that are read in pieces, more than once.

    Parameters
    ----------
    data : str, Path, ndarray, sparse matrix, callable or source
        A path leads to a Parquet file, a folder of them, a CSV or TSV file (also
        followed by .gz or .zst), or a NPY file. A callable takes no argument and
        returns a new iterator over blocks each time; see :class:`IteratorSource`.
        Sources are returned as they are.
    columns : str or list of str, default=None
        Names of the columns to read; None reads all. Arrays have no names.
    format : {"csv", "tsv", "parquet", "npy"}, default=None
        What a file is, whatever its suffix.
    on_error : {"raise", "skip"}, default="raise"
        "raise" stops at a piece that cannot be read, with a message that names the
        file and the row group, line or block. "skip" tries all pieces when the source
        is opened, leaves out those that cannot be read, and tells them in ``skipped``.
    texts : str or list of str, default=None
        Names of columns of CSV that are read as they are written, as of
        :func:`corral.tables.read_table`. Other files say what their columns are.

    Returns
    -------
    source : ArraySource, CsvSource, IteratorSource or ParquetSource
        ``shape``, ``names``, ``borders``, ``skipped``, ``read(start, stop)`` and
        ``fingerprint()`` are what all sources have.

    Examples
    --------
    >>> import numpy as np
    >>> from corral.sources import open_source
    >>> def blocks():
    ...     for seed in range(3):
    ...         yield np.random.default_rng(seed).normal(size=(100, 2))
    >>> source = open_source(blocks)
    >>> source
    IteratorSource(blocks, shape=(300, 2))
    >>> source.read(50, 150).shape
    (100, 2)
    """
    # Refuses an unknown on_error, whatever the data.
    Sieve(on_error)
    if isinstance(data, str | os.PathLike):
        return _open_path(Path(data), columns, format, on_error, texts)
    if format is not None:
        raise ValueError(
            f"format={format!r} is for files. Got {type(data).__name__}; leave it out."
        )
    if texts is not None:
        raise ValueError(
            f"texts={texts!r} is for files. Got {type(data).__name__}; leave it out."
        )
    if _is_source(data) or _is_array(data):
        if columns is not None:
            raise ValueError(
                f"columns={columns!r} is for files and iterators with named columns. "
                f"Got {type(data).__name__}; leave it out."
            )
        return ArraySource(data) if _is_array(data) else data
    if hasattr(data, "__next__"):
        raise TypeError(
            f"A {type(data).__name__} can be read only once. Give a function that "
            "returns a new iterator each time it is called."
        )
    if callable(data):
        return IteratorSource(data, columns=columns, on_error=on_error)
    raise TypeError(
        "data should be a path, an array, a sparse matrix, or a function that returns "
        f"an iterator over blocks. Got {type(data).__name__}."
    )


def _is_source(data: Any) -> bool:
    parts = ("shape", "names", "borders", "skipped", "read", "fingerprint")
    return all(hasattr(data, part) for part in parts)


def _is_array(data: Any) -> bool:
    return isinstance(data, np.ndarray) or sparse.issparse(data)


def _open_path(
    path: Path, columns: Any, format: str | None, on_error: str, texts: Any
) -> ArraySource | CsvSource | ParquetSource:
    name = f"'{path}'"
    if format is not None and format not in _FORMATS:
        raise ValueError(
            f"format={format!r} cannot be read in pieces. Choose one of "
            f"{', '.join(_FORMATS)}."
        )
    if str(path) == "-":
        raise ValueError(
            "Standard input can be read only once. Save it as a file and name that."
        )
    check_exists(path, name)
    if path.is_dir():
        return _open_folder(path, columns, format, on_error)
    if not path.is_file():
        raise ValueError(f"{name} can be read only once. Save it as a file.")
    kind = _check_file(path, name, format)
    named = {"columns": columns, "on_error": on_error}
    if kind == "npy":
        return _open_npy(path, name, columns)
    if kind == "parquet":
        return ParquetSource(path, format=format, **named)
    return CsvSource(path, format=format, texts=texts, **named)


def _open_folder(
    path: Path, columns: Any, format: str | None, on_error: str
) -> ParquetSource:
    if format not in (None, "parquet"):
        raise ValueError(
            f"'{path}' is a folder, which is read as Parquet files only. Got "
            f"format={format!r}; name a file in it."
        )
    return ParquetSource(path, columns=columns, format=format, on_error=on_error)


def _open_npy(path: Path, name: str, columns: Any) -> ArraySource:
    if columns is not None:
        raise ValueError(
            f"columns={columns!r} names columns, but those of {name} have no names. "
            "Leave it out."
        )
    return open_npy(path)


def _check_file(path: Path, name: str, format: str | None) -> str:
    """Return the format, if a file of it can be read in pieces."""
    kind, packed = kind_of(path, name, format)
    # A file, unlike a pipe, has a format that its suffix tells or that is given.
    assert kind is not None
    if kind not in _FORMATS:
        raise ValueError(
            f"{name} is {FORMAT_WORDS[kind]}, which cannot be read in pieces. Save it "
            "as Parquet, CSV or NPY, or read it as a whole with "
            "corral.tables.read_table."
        )
    if not path.stat().st_size:
        raise UnreadableBlockError(f"{name} is empty.")
    if kind in ("csv", "tsv"):
        # What is packed is looked at by the source.
        return kind
    if packed is not None:
        raise ValueError(
            f"{name} is packed, and {FORMAT_WORDS[kind]} that is packed cannot be read "
            "in pieces. Unpack it."
        )
    with path.open("rb") as file:
        return check_kind(kind, file.read(64), name, is_asked=format is not None)
