"""Reading a table from a file or standard input, whatever its form."""

import difflib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from corral.tables import _limits
from corral.tables._arrow import need_arrow
from corral.tables._broken import MEND, Broken, first_line
from corral.tables._formats import READERS
from corral.tables._unpack import unpack

# Suffix -> format. What follows the last of these, .gz or .zst, is how it is packed.
SUFFIXES = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".arrows": "arrow",
    ".ipc": "arrow",
    ".feather": "arrow",
    ".npy": "npy",
    ".npz": "npz",
    ".arff": "arff",
    ".mtx": "mtx",
}
PACKED = {".gz": "gzip", ".zst": "zstd"}

FORMAT_WORDS = {
    "csv": "CSV",
    "tsv": "TSV",
    "parquet": "Parquet",
    "arrow": "Arrow IPC",
    "npy": "NPY",
    "npz": "NPZ",
    "arff": "ARFF",
    "mtx": "Matrix Market",
    "gzip": "gzip",
    "zstd": "zstd",
}

# The first bytes of a form that cannot be mistaken for another.
_MAGIC = [
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    # A frame that is skipped, with which parallel packers begin.
    *((bytes([first]) + b"\x2a\x4d\x18", "zstd") for first in range(0x50, 0x60)),
    (b"PAR1", "parquet"),
    (b"ARROW1", "arrow"),
    (b"\xff\xff\xff\xff", "arrow"),
    (b"\x93NUMPY", "npy"),
    (b"PK\x03\x04", "npz"),
    (b"PK\x05\x06", "npz"),
    (b"%%MatrixMarket", "mtx"),
]
_TEXTS = ("csv", "tsv", "arff")


def read_table(
    source: str | Path,
    *,
    format: str | None = None,
    texts: str | Sequence[str] | None = None,
) -> Any:
    r"""Read a table.

    Parameters
    ----------
    source : str or Path
        A file; "-" is standard input. Its suffix tells the format: .csv, .tsv, .tab,
        .parquet, .pq, .arrow, .arrows, .ipc, .feather, .npy, .npz, .arff or .mtx, each
        also followed by .gz or .zst.
    format : {"csv", "tsv", "parquet", "arrow", "npy", "npz", "arff", "mtx"}, \
            default=None
        What it is, whatever its suffix. Standard input without it is told by its first
        bytes, and CSV if they are no other format's.
    texts : str or list of str, default=None
        Names of columns of CSV and TSV that are read as they are written, such as
        codes and names of rows: ``1.10`` stays apart from ``1.1``, and twenty digits
        are not rounded. Those that the file does not have are passed over. Files of
        other formats say what their columns are.

    Returns
    -------
    table : pyarrow.Table, csr_array or ndarray
        Sparse forms (sparse NPZ, Matrix Market by coordinates, sparse ARFF of numbers)
        give a CSR array. Dense arrays give a table with the columns "feature 0",
        "feature 1" and so on; those with more than 5,000 columns stay an array. All of
        them are what :class:`TableEncoder` takes.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from corral.tables import read_table
    >>> path = pathlib.Path(tempfile.mkdtemp(), "people.csv")
    >>> _ = path.write_text("name;height\nAda;1.7\nBo;\n")
    >>> read_table(path).to_pydict()
    {'name': ['Ada', 'Bo'], 'height': [1.7, None]}
    """
    return read_named(source, format, list_names(texts))


def list_names(names: str | Iterable[str] | None) -> list[str]:
    """Return names as a list; one name may stand alone."""
    return [names] if isinstance(names, str) else list(names or ())


def read_named(
    source: str | Path,
    format: str | None,
    texts: Iterable[str] | Callable[[list[str]], Iterable[str]],
) -> Any:
    """Read a table, of which the names of the columns may tell which are texts.

    Parameters
    ----------
    source : str or Path
    format : str or None
    texts : iterable of str, or callable
        As of :func:`corral.tables._formats.read_csv`.

    Returns
    -------
    table : pyarrow.Table, csr_array or ndarray
        As of :func:`read_table`.
    """
    name = "standard input" if str(source) == "-" else f"'{source}'"
    if format is not None and format not in READERS:
        raise ValueError(
            f"format={format!r} is not known. Choose one of {', '.join(READERS)}."
        )
    kind, packed = kind_of(source, name, format)
    content = _unpack(_load(source, name), packed, name)
    if not content.size:
        raise ValueError(f"{name} is empty.")
    kind = check_kind(kind, content, name, is_asked=format is not None)
    named = {"texts": texts} if kind in ("csv", "tsv") else {}
    try:
        table = READERS[kind](content, **named)
        _check_shape(table)
    except Broken as error:
        raise ValueError(f"{name} {error}") from error.__cause__
    except MemoryError as error:
        raise ValueError(
            f"{name} takes more memory than there is: {first_line(error)}. Read a part "
            "of its rows or columns."
        ) from error
    except ImportError:
        raise
    except Exception as error:
        # Readers of damaged files raise nearly anything, and all of it means damage.
        raise ValueError(
            f"{name} cannot be read as {FORMAT_WORDS[kind]}: {first_line(error)}. "
            f"{MEND}"
        ) from error
    return table


def kind_of(
    source: str | Path, name: str, format: str | None
) -> tuple[str | None, str | None]:
    """Return the format and the packing that the suffixes tell; None to be sniffed."""
    path = Path(source)
    if str(source) == "-":
        return format, None
    suffixes = [suffix.lower() for suffix in path.suffixes]
    packed = PACKED.get(suffixes[-1]) if suffixes else None
    last = suffixes[-2:-1] if packed else suffixes[-1:]
    kind = SUFFIXES.get(last[0]) if last else None
    if format is None and kind is None and _is_plain_file(path):
        known = ", ".join(SUFFIXES)
        raise ValueError(
            f"{name} cannot be read: its suffix {path.suffix!r} is not known. Known "
            f"are {known}, each also with .gz or .zst. Rename it, or name its format."
        )
    return format or kind, packed


def _is_plain_file(path: Path) -> bool:
    """Return whether it is a file, and not a pipe, which may have any name."""
    return path.is_file() or not path.exists()


def _load(source: str | Path, name: str) -> Any:
    """Return all bytes as a buffer; a file is mapped, not copied."""
    pa = need_arrow()
    if str(source) == "-":
        return pa.py_buffer(sys.stdin.buffer.read())
    path = Path(source)
    if path.is_dir():
        raise ValueError(f"{name} is a folder. Name a file in it.")
    check_exists(path, name)
    if not path.is_file():
        return pa.py_buffer(path.read_bytes())
    if not path.stat().st_size:
        return pa.py_buffer(b"")
    # pyarrow takes names that are not UTF-8 as bytes only.
    return pa.memory_map(os.fsencode(path)).read_buffer()


def check_exists(path: Path, name: str) -> None:
    """Refuse a path that leads nowhere, and say which one is near."""
    if not path.exists():
        raise FileNotFoundError(f"{name} is not there.{_suggest(path)}")


def _suggest(path: Path) -> str:
    folder = path.parent
    if not folder.is_dir():
        return f" Nor is its folder '{folder}'."
    names = [each.name for each in folder.iterdir()]
    near = difflib.get_close_matches(path.name, names, n=1)
    return f" Did you mean '{folder / near[0]}'?" if near else ""


def _unpack(content: Any, packed: str | None, name: str) -> Any:
    """Return the bytes that gzip or zstd packed; plain bytes as they are."""
    found = find_packing(content)
    if packed is not None and content.size:
        check_packing(found, packed, name)
    if found is None:
        return content
    try:
        return unpack(content, found)
    except Broken as error:
        raise ValueError(f"{name} {error}") from error


def find_packing(content: Any) -> str | None:
    """Return which packing the first bytes tell, None if none."""
    found = sniff(content)
    return found if found in PACKED.values() else None


def check_packing(found: str | None, packed: str, name: str) -> None:
    """Refuse a file that is not packed as its suffix says."""
    if found != packed:
        raise ValueError(
            f"{name} is not {packed}, as its suffix says. Rename it, or pack it again."
        )


def sniff(content: Any) -> str | None:
    """Return what the first bytes tell for sure."""
    head = bytes(content[: min(len(content), 64)])
    return next((kind for magic, kind in _MAGIC if head.startswith(magic)), None)


def check_kind(kind: str | None, content: Any, name: str, *, is_asked: bool) -> str:
    """Return the format, after a look at the first bytes."""
    found = sniff(content)
    if kind is None:
        return found or _guess_text(content)
    if found == kind or (found is None and kind in _TEXTS):
        return kind
    head = bytes(content[: min(len(content), 8)])
    says = "the format asked for" if is_asked else "its suffix"
    really = f"it holds {_found_words(found)}" if found else f"it starts with {head!r}"
    raise ValueError(
        f"{name} is not {FORMAT_WORDS[kind]}, as {says} says: {really}. Rename it, or "
        "name its format."
    )


def _found_words(found: str) -> str:
    # Archives and spreadsheets begin as NPZ does.
    return "a zip archive" if found == "npz" else FORMAT_WORDS[found]


def _guess_text(content: Any) -> str:
    head = bytes(content[: min(len(content), 2**16)]).lower()
    lines = (line.strip() for line in head.splitlines())
    first = next((line for line in lines if line and line[:1] != b"%"), b"")
    return "arff" if first.startswith(b"@relation") else "csv"


def _check_shape(table: Any) -> None:
    """Refuse a table without rows or columns, or with names that are not clear."""
    # First the names: an open quote in the first line leaves no rows.
    _limits.check_names(getattr(table, "column_names", ()))
    n_rows, n_columns = table.shape
    # Then the columns: a table without any has no rows, whatever the file said.
    if not n_columns:
        raise Broken("has no columns.")
    if not n_rows:
        raise Broken("has no rows.")
    _limits.check_size(n_rows, n_columns)


def check_names(names: Iterable[str], name: str) -> None:
    """Refuse columns that share a name, or whose name is no name."""
    try:
        _limits.check_names(names)
    except Broken as error:
        raise ValueError(f"{name} {error}") from error
