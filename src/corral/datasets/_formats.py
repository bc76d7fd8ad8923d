"""Readers of the forms in which the data sets are kept."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from scipy import sparse

from corral.datasets._content import Content
from corral.datasets._info import DatasetInfo, Table
from corral.datasets._matlab import read_matrix
from corral.tables._arrays import read_csr
from corral.tables._npz import Npz

# Whole numbers up to it are exact as float64.
_MOST_CLASS = 2.0**53


def read_npz(path: Path) -> tuple[Content, np.ndarray | None]:
    """Read a data set from one ``.npz`` file.

    Parameters
    ----------
    path : Path
        With ``X``, or the CSR parts ``data``, ``indices``, ``indptr`` and ``shape``;
        with ``y_original``, and perhaps the grouping ``y``.

    Returns
    -------
    content : Content
    target : ndarray of shape (n_samples,) or None
        The grouping, if the file has it.
    """
    with Npz(path) as file:
        parts = ("X",) if "X" in file else ("data", "indices", "indptr", "shape")
        missing = [name for name in (*parts, "y_original") if name not in file]
        if missing:
            raise ValueError(
                f"it has no array {', '.join(missing)}. It should have X, or data, "
                "indices, indptr and shape; and y_original"
            )
        rows = read_csr(file, "csr") if len(parts) > 1 else _matrix(file["X"])
        classes = file["y_original"].astype(str)
        return Content(rows, classes), file.get("y")


def _canonical(rows: sparse.csr_array) -> sparse.csr_array:
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


def _matrix(values: np.ndarray) -> np.ndarray:
    if values.ndim != 2:
        raise ValueError(f"its X has the shape {values.shape} and should be a matrix")
    return _floats(values)


def _floats(values: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(values, dtype=np.float64)


def read_originals(info: DatasetInfo, files: Sequence[bytes]) -> Content:
    """Read a data set from the files that its source publishes.

    Parameters
    ----------
    info : DatasetInfo
    files : sequence of bytes
        The originals, unpacked, in the order of ``info.originals``.

    Returns
    -------
    content : Content
    """
    if info.layout == "cluto":
        return read_cluto(*files)
    if info.layout == "decaf":
        return read_decaf(*files)
    assert info.table is not None
    return read_tables(files, info.table)


def read_tables(files: Sequence[bytes], table: Table) -> Content:
    """Read text files with a row per line, one below the other.

    Parameters
    ----------
    files : sequence of bytes
    table : Table

    Returns
    -------
    content : Content
        Classes without a full stop at their end, which KDD Cup 1999 has.
    """
    rows = [_columns(file, table, table.features, float) for file in files]
    labels = [_columns(file, table, (table.label,), str)[:, 0] for file in files]
    return Content(np.concatenate(rows), np.char.rstrip(np.concatenate(labels), "."))


def _columns(
    file: bytes, table: Table, columns: tuple[int, ...], kind: type
) -> np.ndarray:
    return np.loadtxt(
        io.TextIOWrapper(io.BytesIO(file), encoding="ascii"),
        dtype=kind,
        comments=None,
        delimiter=table.delimiter,
        usecols=columns,
        ndmin=2,
    )


def read_cluto(matrix: bytes, classes: bytes) -> Content:
    """Read a text collection of CLUTO.

    Parameters
    ----------
    matrix : bytes
        The ``.mat`` file: a line with the numbers of rows, columns and values, then a
        line per row with its columns, from 1, each followed by its value.
    classes : bytes
        The ``.rclass`` file: a line per row.

    Returns
    -------
    content : Content
    """
    head, _, body = matrix.partition(b"\n")
    n_rows, n_columns, n_values = _head_numbers(head)
    # A row without terms is an empty line, so only what follows the rows is dropped.
    lines = body.split(b"\n")
    if b"".join(lines[n_rows:]).strip():
        raise ValueError(f"it has more than the {n_rows} rows of its first line")
    lengths = [len(line.split()) for line in lines[:n_rows]]
    pairs = np.array(body.split(), dtype=np.float64)
    if len(lengths) != n_rows or len(pairs) != 2 * n_values or np.mod(lengths, 2).any():
        raise ValueError(
            f"it has {len(lengths)} rows and {len(pairs) / 2:g} pairs of column and "
            f"value; by its first line it should have {n_rows} and {n_values}"
        )
    columns = pairs[::2].astype(np.int32) - 1
    if n_values and not 0 <= columns.min() <= columns.max() < n_columns:
        raise ValueError(
            f"its columns are {columns.min() + 1} to {columns.max() + 1} and should be "
            f"1 to {n_columns}"
        )
    starts = np.concatenate([[0], np.cumsum(lengths) // 2])
    rows = sparse.csr_array((pairs[1::2], columns, starts), shape=(n_rows, n_columns))
    return Content(_canonical(rows), _lines(classes))


def _head_numbers(head: bytes) -> list[int]:
    numbers = head.split()
    if len(numbers) != 3 or not all(number.isdigit() for number in numbers):
        raise ValueError(
            f"its first line is {head[:60]!r} and should have the numbers of rows, "
            "columns and values"
        )
    return [int(number) for number in numbers]


def _lines(file: bytes) -> np.ndarray:
    return np.array([line.strip() for line in file.decode("ascii").splitlines()])


def read_decaf(matrix: bytes) -> Content:
    """Read DeCAF features of a part of VLCS.

    Parameters
    ----------
    matrix : bytes
        A MATLAB file of version 4 to 7 whose array ``data`` has a row per image, with
        its class as the last column.

    Returns
    -------
    content : Content
    """
    data = _floats(read_matrix(matrix, "data"))
    if not data.shape[1]:
        raise ValueError("its matrix 'data' has no column with the classes")
    return Content(_floats(data[:, :-1]), _whole(data[:, -1]).astype(str))


def _whole(classes: np.ndarray) -> np.ndarray:
    # Others have no whole number, and NumPy would warn and make one up.
    if not (np.abs(classes) < _MOST_CLASS).all() or (classes % 1).any():
        raise ValueError("the classes in its last column are not whole numbers")
    return classes.astype(np.int64)
