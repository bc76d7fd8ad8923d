"""How large a table is, told before it is read."""

import codecs
import zipfile
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from corral.tables._arrow import need_arrow
from corral.tables._formats import READERS
from corral.tables._read import find_packing, kind_of
from corral.tables._unpack import open_unpacked

# Text from the head of a file, and rows of Parquet, that tell how much memory a row
# takes.
_HEAD_BYTES = 2**20
_HEAD_ROWS = 2**12

# What a byte of a file of other forms becomes in memory: Arrow is held as it is, ARFF
# and Matrix Market are text, of which two bytes seldom make a number.
_GROWTH = {"arrow": 1.0, "npy": 1.0, "parquet": 3.0, "arff": 4.0, "mtx": 4.0}

# Packed files of numbers as text grow by about so much.
_PACKING_GROWTH = 3.0


class TableSize(NamedTuple):
    """How large a table is.

    Attributes
    ----------
    n_rows : int or None
        None if that is not known.
    n_bytes : int
        About what it takes in memory, as :func:`read_table` gives it.
    names : list of str or None
        Of the columns, if they are known.
    is_exact : bool
        Whether the number of rows is.
    """

    n_rows: int | None
    n_bytes: int
    names: list[str] | None = None
    is_exact: bool = False


def measure_table(path: str | Path, *, format: str | None = None) -> TableSize:
    """Tell how large a table is, from its head and from what its file says of itself.

    Parameters
    ----------
    path : str or Path
        Of a file, or of a folder of Parquet files.
    format : str, default=None
        What the file is, whatever its suffix.

    Returns
    -------
    size : TableSize
        Of a file that is damaged or not there, too: what is wrong is told when it is
        read.

    Notes
    -----
    Parquet and NPY files say how many rows they have. The first 4,096 rows of Parquet
    tell how much memory a row takes. Of CSV, the first MiB is read, and the whole file
    is taken to be like it. Of other forms, the size of the file tells.
    """
    path = Path(path)
    try:
        kind, packed = kind_of(path, f"'{path}'", format)
        if path.is_dir() or (kind in ("parquet", "npy") and packed is None):
            return _measure_source(path, format)
        if kind in ("csv", "tsv"):
            return _measure_text(path, kind)
        if kind == "npz":
            return TableSize(None, _count_unzipped(path))
        growth = _GROWTH.get(kind or "", 1.0) * (_PACKING_GROWTH if packed else 1.0)
        return TableSize(None, int(growth * path.stat().st_size))
    except Exception:
        # Damaged files raise nearly anything, and read_table says it well.
        return TableSize(None, path.stat().st_size if path.is_file() else 0)


def read_head(path: str | Path, kind: str, n_bytes: int) -> tuple[Any, float]:
    """Read the first rows of a CSV file.

    Parameters
    ----------
    path : str or Path
    kind : {"csv", "tsv"}
    n_bytes : int
        Of text, unpacked if it is packed.

    Returns
    -------
    table : pyarrow.Table
    share : float
        The part of the file that was read, at most 1.
    """
    pa = need_arrow()
    size = Path(path).stat().st_size
    with open(path, "rb") as raw:
        packing = find_packing(raw.read(64))
        raw.seek(0)
        file = open_unpacked(raw, packing, size) if packing else raw
        text = bytes(file.read(n_bytes))
        is_whole = not file.read(1)
        share = 1.0 if is_whole else min(raw.tell() / size, 1.0)
    return READERS[kind](pa.py_buffer(text if is_whole else _cut(text))), share


def _cut(text: bytes) -> bytes:
    """Return the first part of a CSV file without the line at its end, as UTF-8."""
    if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        text = text[: len(text) // 2 * 2].decode("utf-16", "ignore").encode()
    letters = np.frombuffer(text, np.uint8)
    # Lines may also end within cells.
    is_open = np.logical_xor.accumulate(letters == ord('"'))
    ends = np.flatnonzero(~is_open & np.isin(letters, [*b"\r\n"]))
    return text[: ends[-1] + 1] if len(ends) else b""


def _measure_source(path: Path, format: str | None) -> TableSize:
    from corral.sources import open_source

    source = open_source(path, format=format)
    n_rows, n_columns = source.shape
    if source.names is None:
        n_bytes = n_rows * n_columns * source.dtype.itemsize
        return TableSize(n_rows, n_bytes, None, is_exact=True)
    head = source.read(0, min(n_rows, _HEAD_ROWS))
    on_disk = sum(source.fingerprint()["sizes"])
    n_bytes = max(n_rows * head.nbytes // head.num_rows, on_disk)
    return TableSize(n_rows, n_bytes, source.names, is_exact=True)


def _measure_text(path: Path, kind: str) -> TableSize:
    head, share = read_head(path, kind, _HEAD_BYTES)
    n_rows, n_bytes = head.num_rows / share, head.nbytes / share
    return TableSize(int(n_rows), int(n_bytes), head.column_names, share == 1.0)


def _count_unzipped(path: Path) -> int:
    with zipfile.ZipFile(path) as archive:
        return sum(each.file_size for each in archive.infolist())
