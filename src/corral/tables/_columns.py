"""How a column is used, and its values as numbers or texts."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from corral.tables._arrow import need_arrow
from corral.tables._broken import Broken
from corral.tables._limits import check_memory

# Units of Arrow's times in a second.
_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}

# Family -> the forms that its texts may have, one of them in all rows.
_FORMS = {
    "number": ("number",),
    "boolean": ("boolean",),
    "date": ("date", "zoned date"),
}


@dataclass(frozen=True)
class ColumnPlan:
    """How a column is used.

    Attributes
    ----------
    name : str
    kind : {"number", "date", "boolean", "category", "text", "id"}
        What it is for the user.
    family : {"number", "duration", "boolean", "date", "time", "text", "other"}
        What its cells are, which new rows have to match.
    reason : str
        Why it cannot be used; empty if it can.
    is_silent : bool
        Whether it tells nothing, and so is no mistake where it was asked for.
    """

    name: str
    kind: str
    family: str
    reason: str = ""
    is_silent: bool = False


def family_of(kind: Any) -> str:
    """Return which of the families of :class:`ColumnPlan` an Arrow type belongs to."""
    types = need_arrow().types
    # Nulls alone fit any family; numbers are as good as any.
    tests = {
        "number": (
            types.is_integer,
            types.is_floating,
            types.is_decimal,
            types.is_null,
        ),
        "boolean": (types.is_boolean,),
        "date": (types.is_date, types.is_timestamp),
        "time": (types.is_time,),
        "duration": (types.is_duration,),
        "text": (types.is_string, types.is_large_string, _is_string_view),
    }
    if types.is_dictionary(kind):
        return "other" if family_of(kind.value_type) == "other" else "text"
    for family, checks in tests.items():
        if any(check(kind) for check in checks):
            return family
    return "other"


def _is_string_view(kind: Any) -> bool:
    check = getattr(need_arrow().types, "is_string_view", None)
    return check is not None and check(kind)


def check_finite(numbers: np.ndarray, name: str, first_row: int = 0) -> None:
    """Refuse infinite numbers; ``first_row`` is the number of the first of them."""
    rows = np.flatnonzero(np.isinf(numbers))
    if len(rows):
        refuse_infinite(name, first_row + rows[0], len(rows))


def refuse_infinite(name: str, row: int, n_infinite: int) -> None:
    """Raise what says where a column is infinite first, and how often it is."""
    more = f" and {n_infinite - 1:,} more" if n_infinite > 1 else ""
    raise ValueError(
        f"Column {name!r} is infinite in row {row}{more}. Put a number there, "
        "leave the cell empty to say that it is missing, or exclude the column."
    )


def to_numbers(column: Any, name: str, family: str, first_row: int = 0) -> np.ndarray:
    """Return a column as numbers; dates are seconds since 1970 began.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
    name : str
    family : str
        What the column was in the fit. Texts are parsed if need be.
    first_row : int, default=0
        Number of its first row, for errors.

    Returns
    -------
    numbers : ndarray of shape (n_samples,), float64
        NaN where a cell is missing.
    """
    found = family_of(column.type)
    if found == "text" and family != "text":
        texts = to_texts(column, name)
        numbers = _parse(texts, family)
        if numbers is None:
            raise ValueError(_why_no_numbers(texts, name, family, first_row))
        return numbers
    is_empty = column.null_count == len(column)
    fits = {found, family} <= {"number", "boolean"} or found == family
    if not (fits or is_empty):
        raise ValueError(
            f"Column {name!r} holds cells of the type {column.type}, but a {family} in "
            "the fit. Give it the type that it had."
        )
    return _cast(column, found)


def _cast(column: Any, family: str) -> np.ndarray:
    pa = need_arrow()
    kind = column.type
    per_second = 1.0
    if family in ("date", "time", "duration"):
        if pa.types.is_date(kind):
            kind = pa.timestamp("s" if pa.types.is_date32(kind) else "ms")
            column = column.cast(kind)
        per_second = _PER_SECOND[kind.unit]
        column = column.cast(pa.int32() if kind.bit_width == 32 else pa.int64())
    if pa.types.is_null(column.type):
        return np.full(len(column), np.nan)
    # Beyond 2**53 whole numbers are rounded, as all numbers are.
    numbers = column.cast(pa.float64(), safe=False).to_numpy()
    return numbers / per_second if per_second != 1 else numbers


def _parse(texts: Any, family: str) -> np.ndarray | None:
    """Return texts as numbers of a family, None if one of them is not."""
    for form in _FORMS.get(family, ()):
        numbers = parse_texts(texts, form)
        if numbers is not None:
            return numbers
    return None


def parse_texts(texts: Any, form: str) -> np.ndarray | None:
    """Return texts as numbers, None if one of them has another form.

    Parameters
    ----------
    texts : pyarrow.ChunkedArray of string
    form : {"number", "boolean", "date", "zoned date"}
        Dates have zones in all rows or in none.

    Returns
    -------
    numbers : ndarray of shape (n_samples,), float64, or None
    """
    pa, pc = need_arrow(), need_arrow("pyarrow.compute")
    texts = pc.utf8_trim_whitespace(texts)
    kinds = {
        "number": pa.float64(),
        "boolean": pa.bool_(),
        "date": pa.timestamp("us"),
        "zoned date": pa.timestamp("us", "UTC"),
    }
    if form == "number":
        # Leading zeros are those of codes, such as 00123.
        is_code = pc.match_substring_regex(texts, r"^[+-]?0\d")
        if pc.any(is_code).as_py():
            return None
    try:
        column = texts.cast(kinds[form])
    except pa.ArrowInvalid:
        return None
    return _cast(column, form.removeprefix("zoned "))


def _why_no_numbers(texts: Any, name: str, family: str, first_row: int) -> str:
    pa = need_arrow()
    for row, text in enumerate(texts, first_row):
        if text.is_valid and _parse(pa.chunked_array([[text.as_py()]]), family) is None:
            return (
                f"Column {name!r} holds the text {text.as_py()[:40]!r} in row {row}, "
                f"but was a {family} in the fit. Put such a value there, or leave the "
                "cell empty."
            )
    return f"Column {name!r} holds texts, but was a {family} in the fit."


def to_texts(column: Any, name: str) -> Any:
    """Return a column as texts, null where a cell is missing.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
    name : str

    Returns
    -------
    texts : pyarrow.ChunkedArray of string
    """
    pa = need_arrow()
    kind = column.type
    if pa.types.is_dictionary(kind):
        _check_letters(column, name)
        chunks = [
            chunk.dictionary.cast(pa.string()).take(chunk.indices)
            for chunk in column.chunks
        ]
        return pa.chunked_array(chunks, pa.string())
    return column if pa.types.is_string(kind) else column.cast(pa.string())


def _check_letters(column: Any, name: str) -> None:
    """Refuse texts that are there once but stand in so many rows that they do not fit.

    Parameters
    ----------
    column : pyarrow.ChunkedArray of dictionaries
    name : str
    """
    pa, pc = need_arrow(), need_arrow("pyarrow.compute")
    if family_of(column.type.value_type) != "text":
        return
    n_bytes = 0
    for chunk in column.chunks:
        lengths = pc.binary_length(chunk.dictionary.cast(pa.large_binary()))
        n_bytes += pc.sum(lengths.take(chunk.indices)).as_py() or 0
    try:
        check_memory(n_bytes, "Shorten its texts, or exclude the column.")
    except Broken as error:
        raise MemoryError(f"Column {name!r} {error}") from error
