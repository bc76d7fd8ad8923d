"""Reader of a matrix of numbers from a MATLAB file of version 4 to 7.

SciPy's reader ends the process at some damaged files: it trusts the sizes in them.
"""

import functools
import math
import struct
import zlib
from typing import Any, Protocol

import numpy as np

from corral.tables._limits import check_memory

# Twice as many as the largest part of VLCS has (3,376 images).
_MOST_CELLS = 2**25

# Bytes that a cell takes on its way: as it is unpacked, and as float64 with its class
# and without. Measured on 13 million doubles: 16 where they are not packed, 20 where
# they are.
_BYTES_PER_CELL = 24

# More variables in a file are not looked at.
_MOST_VARIABLES = 10_000

# MATLAB's names have up to 63 letters, and shapes rarely more than a few numbers.
_LONGEST_HEAD = 4096

# Versions 5 to 7: a text of 116 bytes, 8 of no use here, version and order of bytes.
_FILE_HEAD = 128
_ORDERS = {b"IM": "<", b"MI": ">"}
_VERSION = 1

# Their elements: the types of numbers, a variable, and one that is packed.
_TYPES = {
    1: "i1",
    2: "u1",
    3: "i2",
    4: "u2",
    5: "i4",
    6: "u4",
    7: "f4",
    9: "f8",
    12: "i8",
    13: "u8",
}
_VARIABLE, _PACKED = 14, 15

# A type and a number of bytes. Up to four bytes may stand in place of their number.
_TAG = 8
_SMALL = 4

# Of the classes of variables, those of dense arrays of numbers: double to uint64.
_NUMBERS = range(6, 16)
_COMPLEX = 0x800

# Version 4: five numbers before each variable, of which the first tells the type.
_OLD_HEAD = 20
_OLD_TYPES = ("f8", "f4", "i4", "i2", "u2", "u1")
_OLD_FORMS = ("numbers", "text", "sparse")
_LEAST_WRONG_KIND = 5000


def read_matrix(data: bytes, name: str) -> np.ndarray:
    """Return a matrix of real numbers.

    Parameters
    ----------
    data : bytes
        A MATLAB file of version 4 to 7. Damage raises ``ValueError``, and no memory is
        taken for what the file only says that it holds.
    name : str
        Of the variable. Of several, it is the first.

    Returns
    -------
    matrix : ndarray of shape (n_rows, n_columns)
        In the type and order of bytes in which it is stored; cannot be written to.
    """
    file = _Stored(data)
    read_variable = _choose_version(file, data)
    for _ in range(_MOST_VARIABLES):
        if not file.n_left:
            raise ValueError(f"it has no matrix of numbers named {name!r}")
        matrix = read_variable(file, name.encode())
        if matrix is not None:
            return matrix
    raise ValueError(
        f"it has no matrix named {name!r} among its first {_MOST_VARIABLES:,} variables"
    )


def _choose_version(file: "_Stored", data: bytes) -> Any:
    """Return what reads a variable, and go to the first one."""
    # Later versions begin with a text, the first number of version 4 is small.
    if 0 in data[:4]:
        return _read_old_variable
    if len(data) < _FILE_HEAD or data[126:128] not in _ORDERS:
        raise ValueError("it does not begin as a MATLAB file of version 4 to 7 does")
    order = _ORDERS[bytes(file.take(_FILE_HEAD)[126:128])]
    (version,) = struct.unpack_from(f"{order}H", data, 124)
    if version >> 8 != _VERSION:
        raise ValueError(
            "it is no MATLAB file of version 4 to 7. Those of version 7.3 are not "
            "read: save it with '-v7'"
        )
    return functools.partial(_read_variable, order=order)


# Bytes --------------------------------------------------------------------------------


class _Bytes(Protocol):
    """Bytes that are taken from the first to the last."""

    n_left: int

    def take(self, n_bytes: int) -> Any:
        """Return the next ones; a ``ValueError`` where there are fewer."""


class _Stored:
    """Bytes as they stand in the file, of which none is copied."""

    def __init__(self, data: Any) -> None:
        self._data = memoryview(data)
        self.n_left = len(self._data)

    def take(self, n_bytes: int) -> memoryview:
        """Return the next bytes."""
        _check_left(self, n_bytes)
        start = len(self._data) - self.n_left
        self.n_left -= n_bytes
        return self._data[start : start + n_bytes]


class _Unpacked:
    """Bytes of a packed variable, unpacked no further than they are asked for.

    It says in its first bytes how many it has, so ``n_left`` is those few at first.
    """

    def __init__(self, packed: memoryview) -> None:
        self._unpacker = zlib.decompressobj()
        self._packed: Any = packed
        self.n_left = _TAG

    def take(self, n_bytes: int) -> bytes:
        """Return the next bytes."""
        _check_left(self, n_bytes)
        self.n_left -= n_bytes
        # zlib takes 0 for no limit.
        data = self._unpack(n_bytes) if n_bytes else b""
        if len(data) < n_bytes:
            raise ValueError("it has a packed variable that is cut off")
        return data

    def finish(self) -> None:
        """Check that nothing follows; then zlib has compared the checksum, too."""
        if self._unpack(1) or not self._unpacker.eof:
            raise ValueError("it has a packed variable that does not end as it says")

    def _unpack(self, most: int) -> bytes:
        try:
            data = self._unpacker.decompress(self._packed, most)
        except zlib.error as error:
            raise ValueError(
                f"it has a packed variable that is damaged: {error}"
            ) from error
        self._packed = self._unpacker.unconsumed_tail
        return data


def _check_left(content: _Bytes, n_bytes: int) -> None:
    if n_bytes > content.n_left:
        raise ValueError(
            f"it is damaged or cut off: {n_bytes:,} bytes should follow where "
            f"{content.n_left:,} are left"
        )


def _check_head(n_bytes: int, what: str) -> None:
    if not 0 <= n_bytes <= _LONGEST_HEAD:
        raise ValueError(
            f"it is damaged: the {what} of a variable has {n_bytes:,} bytes"
        )


# Versions 5 to 7 ----------------------------------------------------------------------


def _read_variable(file: _Stored, wanted: bytes, order: str) -> np.ndarray | None:
    """Return the next variable if it is the one that is wanted, and go behind it."""
    kind, n_bytes = _read_tag(file, order)
    content = file.take(n_bytes)
    if kind == _PACKED:
        unpacked = _Unpacked(content)
        kind, unpacked.n_left = _read_tag(unpacked, order)
        _check_variable(kind)
        matrix = _read_numbers(unpacked, wanted, order)
        if matrix is not None:
            unpacked.finish()
        return matrix
    _check_variable(kind)
    return _read_numbers(_Stored(content), wanted, order)


def _check_variable(kind: int) -> None:
    if kind != _VARIABLE:
        raise ValueError(
            f"it is damaged: an element of type {kind} stands where a variable should"
        )


def _read_numbers(content: _Bytes, wanted: bytes, order: str) -> np.ndarray | None:
    flags = _read_part(content, order, "class")
    if len(flags) < 4:
        raise ValueError("it is damaged: a variable has no class")
    (flag,) = struct.unpack_from(f"{order}I", flags)
    # Texts, structures and sparse matrices go on otherwise.
    if flag & 0xFF not in _NUMBERS:
        return None
    sizes = _read_part(content, order, "shape")
    name = _read_part(content, order, "name")
    if bytes(name) != wanted or flag & _COMPLEX or len(sizes) != 8:
        return None
    n_rows, n_columns = struct.unpack(f"{order}2i", sizes)
    return _read_cells(content, (n_rows, n_columns), order)


def _read_cells(content: _Bytes, shape: tuple[int, int], order: str) -> np.ndarray:
    """Return the numbers of a matrix, after all that is said of them agrees."""
    kind, n_bytes, small = _read_part_head(content, order)
    if kind not in _TYPES:
        raise ValueError(f"it is damaged: its matrix has cells of type {kind}")
    dtype = np.dtype(order + _TYPES[kind])
    _check_cells(shape, n_bytes, dtype)
    cells = content.take(n_bytes) if small is None else small
    if small is None:
        _skip_filling(content, n_bytes)
    return _to_matrix(cells, shape, dtype)


def _read_tag(content: _Bytes, order: str) -> tuple[int, int]:
    """Return the type of an element and how many bytes it has."""
    kind, n_bytes = struct.unpack(f"{order}2I", content.take(_TAG))
    return kind, n_bytes


def _read_part_head(content: _Bytes, order: str) -> tuple[int, int, bytes | None]:
    """Return type and size of a part of a variable, and its bytes if they are few."""
    tag = content.take(_TAG)
    kind, n_bytes = struct.unpack(f"{order}2I", tag)
    n_small = kind >> 16
    if not n_small:
        return kind, n_bytes, None
    if n_small > _SMALL:
        raise ValueError(f"it is damaged: {n_small} bytes stand in the place of 4")
    return kind & 0xFFFF, n_small, bytes(tag[_TAG - _SMALL :][:n_small])


def _read_part(content: _Bytes, order: str, what: str) -> Any:
    """Return the bytes of a part before the numbers."""
    _, n_bytes, small = _read_part_head(content, order)
    if small is not None:
        return small
    _check_head(n_bytes, what)
    part = content.take(n_bytes)
    _skip_filling(content, n_bytes)
    return part


def _skip_filling(content: _Bytes, n_bytes: int) -> None:
    """Go on to the next multiple of eight bytes, which the last part may lack."""
    content.take(min(-n_bytes % 8, content.n_left))


# Version 4 ----------------------------------------------------------------------------


def _read_old_variable(file: _Stored, wanted: bytes) -> np.ndarray | None:
    """Return the next variable if it is the one that is wanted, and go behind it."""
    head = file.take(_OLD_HEAD)
    order = _find_old_order(head)
    kind, n_rows, n_columns, is_complex, n_name = struct.unpack(f"{order}5i", head)
    dtype, form = _parse_old_kind(kind, order)
    _check_head(n_name, "name")
    # Texts end with a zero in C, also here.
    name = bytes(file.take(n_name)).rstrip(b"\0")
    if min(n_rows, n_columns) < 0:
        raise _no_shape((n_rows, n_columns))
    n_bytes = n_rows * n_columns * dtype.itemsize
    cells = file.take(n_bytes)
    if is_complex:
        file.take(n_bytes)
    if name != wanted or is_complex or form != "numbers":
        return None
    _check_cells((n_rows, n_columns), n_bytes, dtype)
    return _to_matrix(cells, (n_rows, n_columns), dtype)


def _find_old_order(head: memoryview) -> str:
    (kind,) = struct.unpack_from("<i", head)
    return "<" if 0 <= kind < _LEAST_WRONG_KIND else ">"


def _parse_old_kind(kind: int, order: str) -> tuple[np.dtype, str]:
    """Return the type of the numbers, and what they are: a digit each.

    The first of four digits is the order of bytes, of which 2 to 4 are those of VAX and
    Cray, and the second is 0.
    """
    machine, digits = divmod(kind, 1000)
    kinds, forms = divmod(digits, 10)
    if machine not in (0, 1) or kinds >= len(_OLD_TYPES) or forms >= len(_OLD_FORMS):
        raise ValueError(f"it is damaged: a variable is of the type {kind}")
    return np.dtype(order + _OLD_TYPES[kinds]), _OLD_FORMS[forms]


# Both ---------------------------------------------------------------------------------


def _check_cells(shape: tuple[int, int], n_bytes: int, dtype: np.dtype) -> None:
    """Refuse a shape that is not that of the bytes, and a matrix that is too large."""
    if min(shape) < 0:
        raise _no_shape(shape)
    n_cells = math.prod(shape)
    if n_cells * dtype.itemsize != n_bytes:
        raise ValueError(
            f"it is damaged: {n_bytes:,} bytes stand where a matrix of shape {shape} "
            f"and type {dtype.name} takes {n_cells * dtype.itemsize:,}"
        )
    if n_cells > _MOST_CELLS:
        raise ValueError(
            f"its matrix has the shape {shape}; one of up to {_MOST_CELLS:,} cells is "
            "read, more than any original has"
        )
    check_memory(_BYTES_PER_CELL * n_cells, "Close other programs and try again.")


def _no_shape(shape: tuple[int, int]) -> ValueError:
    return ValueError(f"it is damaged: a variable has the shape {shape}")


def _to_matrix(cells: Any, shape: tuple[int, int], dtype: np.dtype) -> np.ndarray:
    # MATLAB writes column by column.
    return np.frombuffer(cells, dtype).reshape(shape[::-1]).T
