"""How large a table may be, told before memory is taken for it."""

from collections.abc import Iterable

from corral._memory import find_free_memory, format_bytes
from corral.tables._broken import Broken

# A column of a table takes up to 15 kB and 50 microseconds while it is read, whatever
# its length.
MOST_COLUMNS = 100_000
_BYTES_PER_COLUMN = 15_000

# A longer name is all that follows a quote that was not closed.
_LONGEST_NAME = 10_000

# Of a matrix, a row or a column without cells takes a place in an index, a name and
# some sums.
_BYTES_PER_ROW = 8
_BYTES_PER_PLACE = 150

# Sparse forms do not write rows and columns without cells. A file may have so many of
# them in any case, and more only if it has as many bytes.
_FREE_PLACES = 2**20

# So much is there without a look, which takes a millisecond.
ALWAYS_FREE = 2**24

# Errors list so many names.
_MOST_LISTED = 10

_READ_LESS = (
    "Read a part of its rows or columns, or save it as Parquet and read it block by "
    "block with corral.sources.open_source."
)


def fits(n_bytes: int) -> bool:
    """Return whether so much memory is free."""
    return n_bytes <= ALWAYS_FREE or n_bytes <= find_free_memory()


def check_memory(n_bytes: int, advice: str = _READ_LESS) -> None:
    """Refuse what takes more memory than is free.

    Parameters
    ----------
    n_bytes : int
        That will be taken.
    advice : str
        What to do about it.
    """
    if not fits(n_bytes):
        raise Broken(
            f"would take about {format_bytes(n_bytes)} of memory, and only "
            f"{format_bytes(find_free_memory())} are free. {advice}"
        )


def check_columns(n_columns: int) -> None:
    """Refuse a table with more columns than one may have."""
    if n_columns > MOST_COLUMNS:
        raise Broken(
            f"has {n_columns:,} columns; a table may have {MOST_COLUMNS:,}. Save the "
            "numbers as an array in a NPY file, which may have more, or read fewer "
            "columns."
        )
    check_memory(_BYTES_PER_COLUMN * n_columns)


def check_names(names: Iterable[str]) -> None:
    """Refuse columns that share a name, and names that are no names."""
    seen: dict[str, int] = {}
    for name in names:
        if len(name) > _LONGEST_NAME:
            raise Broken(
                f"has a column whose name has {len(name):,} letters and begins with "
                f"{name[:60]!r}. Close the quote that is open there, or shorten it."
            )
        seen[name] = seen.get(name, 0) + 1
    doubles = [name for name, count in seen.items() if count > 1]
    if doubles:
        raise Broken(
            f"has more than one column named {list_names(doubles)}. Give each a name "
            "of its own."
        )


def list_names(names: list[str]) -> str:
    """Return the first of some names, shortened, and how many more there are."""
    told = [repr(name if len(name) <= 60 else f"{name[:60]}...") for name in names]
    more = len(names) - _MOST_LISTED
    text = ", ".join(told[:_MOST_LISTED])
    return f"{text} and {more:,} more" if more > 0 else text


def check_sparse_shape(shape: tuple[int, ...], n_bytes: int) -> None:
    """Refuse a sparse matrix that has rows or columns in its head only.

    Parameters
    ----------
    shape : tuple of int
        As the file says.
    n_bytes : int
        Of the file, unpacked.
    """
    if len(shape) != 2 or min(shape) < 0:
        raise Broken(
            f"holds a matrix of shape {shape}; it should have rows and columns."
        )
    n_rows, n_columns = shape
    if max(shape) > max(_FREE_PLACES, n_bytes):
        raise Broken(
            f"says that it has {n_rows:,} rows and {n_columns:,} columns, far more "
            f"than its {n_bytes:,} bytes can fill. Save it without those that are "
            "empty."
        )
    check_size(n_rows, n_columns)


def check_size(n_rows: int, n_columns: int) -> None:
    """Refuse so many rows or columns that even empty ones would not fit."""
    check_memory(_BYTES_PER_ROW * n_rows + _BYTES_PER_PLACE * n_columns)
