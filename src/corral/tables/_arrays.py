"""Readers of arrays: NPY, NPZ and Matrix Market."""

import io
from functools import partial
from typing import Any

import numpy as np
from scipy import sparse

from corral.tables._arrow import need_arrow
from corral.tables._broken import Broken, first_line, say_broken
from corral.tables._limits import check_columns, check_memory, check_sparse_shape
from corral.tables._npz import Npz, read_head

# Arrays with more columns are not made into tables: a column of a table costs about a
# kilobyte and some microseconds in every step, whatever its length.
WIDEST_TABLE = 5000

# What a cell of a sparse matrix takes on its way to CSR, beside what the file has of
# it, and what a line of a Matrix Market file takes beside its letters, which are there
# twice.
_BYTES_PER_CELL = 25
_BYTES_PER_LINE = {"coordinate": 60, "array": 20}


def name_features(n_features: int) -> list[str]:
    """Return names for the columns of an array."""
    return [f"feature {j}" for j in range(n_features)]


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
    check_columns(values.shape[1])
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
    # SciPy's sweeps trust the indices, also those that turn a form into another, and
    # its check trusts that rows do not end before they begin.
    if hasattr(rows, "indptr") and (rows.indptr[1:] < rows.indptr[:-1]).any():
        raise Broken("is broken: its sparse rows end before they begin. Get it again.")
    if hasattr(rows, "check_format"):
        rows.check_format(full_check=True)
    rows = sparse.csr_array(rows).astype(np.float64)
    rows.check_format(full_check=True)
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows


# NumPy --------------------------------------------------------------------------------


def read_npy(content: Any) -> Any:
    """Read an array."""
    head = read_head(need_arrow().BufferReader(content), content.size)
    # Copied column by column.
    check_memory(2 * content.size)
    check_table_shape(head.shape)
    try:
        values = np.load(need_arrow().BufferReader(content), allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise say_broken(error) from error
    return tabulate(values)


def check_table_shape(shape: tuple[int, ...]) -> None:
    """Refuse an array without rows, of which the columns may be any number."""
    if shape and not shape[0]:
        raise Broken("has no rows.")


_CSR_PARTS = ("data", "indices", "indptr", "shape")

# Forms of sparse matrices that SciPy saves -> the parts that make them.
_SPARSE_PARTS = {
    "csr": _CSR_PARTS[:3],
    "csc": _CSR_PARTS[:3],
    "bsr": _CSR_PARTS[:3],
    "dia": ("data", "offsets"),
    "coo": ("data", "row", "col"),
}


def read_npz(content: Any) -> Any:
    """Read an array, or the parts of a sparse matrix."""
    with Npz(need_arrow().BufferReader(content)) as file:
        if "format" in file and "shape" in file:
            form = file["format"]
            kind = form.astype(str).item() if form.size == 1 else ""
            return read_csr(file, kind)
        if all(part in file for part in _CSR_PARTS):
            return read_csr(file, "csr")
        values = _choose_array(file)
    check_table_shape(values.shape)
    return tabulate(values)


def read_csr(file: Npz, kind: str) -> sparse.csr_array:
    """Read the parts of a sparse matrix.

    Parameters
    ----------
    file : Npz
    kind : {"csr", "csc", "bsr", "dia", "coo"}
        In which form they are.

    Returns
    -------
    rows : csr_array
    """
    if kind not in _SPARSE_PARTS:
        raise Broken(
            f"holds a sparse matrix of the form {kind[:60]!r}. Save it as one of "
            f"{', '.join(_SPARSE_PARTS)}."
        )
    parts = _load_parts(file, kind)
    shape = file["shape"]
    if shape.dtype.kind not in "iu" or shape.ndim != 1:
        raise Broken("is broken: the shape of its matrix is no list of whole numbers.")
    known = tuple(shape.tolist())
    check_sparse_shape(known, sum(part.nbytes for part in parts))
    # Wider types than in the file, and places of all cells.
    check_memory(_BYTES_PER_CELL * parts[0].size)
    make = getattr(sparse, f"{kind}_array")
    given = (parts[0], (parts[1], parts[2])) if kind == "coo" else tuple(parts)
    try:
        rows = make(given, shape=known)
        if kind in ("bsr", "dia"):
            # Not by compiled code, which trusts blocks and offsets; checked once more.
            cells = rows.tocoo()
            rows = sparse.coo_array((cells.data, cells.coords), shape=known)
        return tidy_csr(rows)
    except Broken:
        raise
    except (ValueError, IndexError, OverflowError, TypeError) as error:
        raise say_broken(error) from error


def _load_parts(file: Npz, kind: str) -> list[np.ndarray]:
    """Return values and indices of a sparse matrix."""
    has_coords = kind == "coo" and "coords" in file
    needed = ("data", "coords") if has_coords else _SPARSE_PARTS[kind]
    lacking = [name for name in needed if name not in file]
    if lacking:
        raise Broken(
            f"is broken: its sparse matrix lacks the array {lacking[0]!r}. Save it "
            "with scipy.sparse.save_npz."
        )
    values, *indices = (file[name] for name in needed)
    if has_coords:
        (coords,) = indices
        if coords.ndim != 2 or len(coords) != 2:
            raise Broken("holds a sparse array that has not rows and columns.")
        indices = [*coords]
    if values.dtype.kind not in "fiubc" or any(
        each.dtype.kind not in "iu" for each in indices
    ):
        raise Broken("is broken: the parts of its sparse matrix should be numbers.")
    return [values, *indices]


def _choose_array(file: Npz) -> np.ndarray:
    """Return the array named X, or the only one with rows and columns."""
    if "X" in file:
        return file["X"]
    shapes = {name: file.head(name).shape for name in file}
    matrices = [name for name, shape in shapes.items() if len(shape) == 2]
    if len(matrices) == 1:
        return file[matrices[0]]
    if not shapes:
        raise Broken("holds no array of NumPy.")
    told = [f"{name[:60]!r} {shape}" for name, shape in shapes.items()]
    more = ", ..." if len(told) > _MOST_TOLD else ""
    raise Broken(
        f"holds {len(matrices)} arrays with rows and columns, and which to read is not "
        f"clear: {', '.join(told[:_MOST_TOLD])}{more}. Name one of them X."
    )


_MOST_TOLD = 10


# Matrix Market ------------------------------------------------------------------------

# Field of a Matrix Market file -> type of its values.
_FIELDS = {
    "real": "f8",
    "double": "f8",
    "integer": "i8",
    "unsigned-integer": "u8",
    "pattern": "",
}


def _find_type(field: str, symmetry: str) -> str:
    """Return the type of the values, which may have to turn their signs."""
    kind = _FIELDS[field]
    return "i8" if kind == "u8" and symmetry == "skew-symmetric" else kind


def read_mtx(content: Any) -> Any:
    """Read a matrix, by coordinates or as an array.

    SciPy's reader takes the sizes in the header for true, and ends the process at some
    values that are no numbers.
    """
    check_memory(2 * content.size)
    file = io.BytesIO(content)
    try:
        form, field, symmetry = _read_mtx_head(file)
        # Short lines take more as numbers than as letters.
        n_bytes = _BYTES_PER_LINE[form] * _count_lines(file)
        check_memory(2 * content.size + n_bytes)
        shape = _read_mtx_shape(file, form)
        read = _read_coordinates if form == "coordinate" else _read_mtx_array
        return read(file, shape, field, symmetry, content.size)
    except Broken:
        raise
    except (ValueError, OverflowError) as error:
        raise _not_complete(first_line(error)) from error


def _not_complete(reason: str) -> Broken:
    return Broken(
        f"is not a complete Matrix Market file: {reason}. Get it again, or save it "
        "with scipy.io.mmwrite."
    )


def _read_mtx_head(file: Any) -> tuple[str, str, str]:
    line = file.readline(1024).decode("ascii", "replace").lower()
    words = line.split()
    known = (
        (1, ("matrix",)),
        (2, ("coordinate", "array")),
        (3, (*_FIELDS, "complex")),
        (4, ("general", "symmetric", "skew-symmetric", "hermitian")),
    )
    if len(words) != 5 or any(words[place] not in names for place, names in known):
        raise _not_complete(f"its first line is {line.strip()[:60]!r}")
    if words[2:4] == ["array", "pattern"]:
        raise _not_complete("an array cannot be a pattern, which has no values")
    if words[3] == "complex":
        raise Broken("holds complex numbers, which cannot be compared.")
    return words[2], words[3], words[4]


def _read_mtx_shape(file: Any, form: str) -> list[int]:
    """Return the sizes, from the first line that is no comment."""
    for line in file:
        if line.strip() and not line.lstrip().startswith(b"%"):
            sizes = [int(word) for word in line[:100].split()]
            if len(sizes) != (3 if form == "coordinate" else 2) or min(sizes) < 0:
                raise _not_complete(f"its sizes are {line[:60]!r}")
            return sizes
    raise _not_complete("it has no sizes")


def _count_lines(file: Any) -> int:
    """Return how many lines are left, which are still left then."""
    start = file.tell()
    n_lines = sum(part.count(b"\n") for part in iter(partial(file.read, 2**20), b""))
    file.seek(start)
    return n_lines


def _load_text(file: Any, dtype: Any) -> np.ndarray:
    """Return the lines that are left, as numbers."""
    start = file.tell()
    if not file.read().strip():
        return np.empty(0, dtype)
    file.seek(start)
    return np.atleast_1d(np.loadtxt(file, dtype=dtype, comments="%"))


def _read_coordinates(
    file: Any, sizes: list[int], field: str, symmetry: str, n_bytes: int
) -> sparse.csr_array:
    n_rows, n_columns, n_entries = sizes
    check_sparse_shape((n_rows, n_columns), n_bytes)
    kinds = [("row", "i8"), ("column", "i8")]
    kinds += [("value", _find_type(field, symmetry))] if field != "pattern" else []
    entries = _load_text(file, kinds)
    if len(entries) != n_entries:
        raise _not_complete(
            f"it has {len(entries):,} entries and should have {n_entries:,}"
        )
    rows, columns = entries["row"] - 1, entries["column"] - 1
    values = np.ones(n_entries) if field == "pattern" else entries["value"]
    if symmetry != "general":
        sign = -1 if symmetry == "skew-symmetric" else 1
        is_off = rows != columns
        values = np.concatenate([values, sign * values[is_off]])
        rows, columns = (
            np.concatenate([rows, columns[is_off]]),
            np.concatenate([columns, rows[is_off]]),
        )
    at = (values, (rows, columns))
    return tidy_csr(sparse.coo_array(at, shape=(n_rows, n_columns)))


def _read_mtx_array(
    file: Any, sizes: list[int], field: str, symmetry: str, n_bytes: int
) -> Any:
    n_rows, n_columns = sizes
    is_whole = symmetry == "general"
    n_diagonals = 0 if symmetry == "skew-symmetric" else n_rows
    n_half = n_rows * (n_rows - 1) // 2 + n_diagonals
    n_cells = n_rows * n_columns if is_whole else n_half
    # Each cell is a digit and a line end at least.
    if 2 * n_cells > n_bytes + 1 or not (is_whole or n_rows == n_columns):
        raise _not_complete(
            f"it should have {n_rows:,} rows and {n_columns:,} columns, more than its "
            f"{n_bytes:,} bytes hold"
        )
    check_memory(8 * n_rows * n_columns)
    values = _load_text(file, _find_type(field, symmetry))
    if values.ndim != 1 or len(values) != n_cells:
        raise _not_complete(f"it has {values.size:,} cells and should have {n_cells:,}")
    check_table_shape((n_rows,))
    if is_whole:
        return tabulate(values.reshape(n_columns, n_rows).T)
    return tabulate(_mirror(values, n_rows, symmetry))


def _mirror(values: np.ndarray, n_rows: int, symmetry: str) -> np.ndarray:
    """Return a matrix of which the lower half is given, column by column."""
    is_skew = symmetry == "skew-symmetric"
    matrix = np.zeros((n_rows, n_rows), dtype=values.dtype)
    columns, rows = np.triu_indices(n_rows, k=1 if is_skew else 0)
    matrix[columns, rows] = -values if is_skew else values
    matrix[rows, columns] = values
    return matrix
