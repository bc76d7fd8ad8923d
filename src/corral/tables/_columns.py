"""What a column is, whether it can be used, and its values as numbers or texts."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from corral.tables._arrow import need_arrow

# A text column is a category if it has at most so many distinct texts, or the square
# root of the number of rows, whichever is more; a category with more has too few rows
# per text to tell clusters apart.
MOST_CATEGORIES = 20

# With more distinct texts than this share of the rows, most texts occur once: they
# name or describe rows, they do not group them.
MOST_DISTINCT = 0.5

# A text column is free text, which can be split into words, if this share of its texts
# has more than one word.
LEAST_WORDY = 0.5

# A text column of which this share is numbers was meant to be numbers: why it cannot be
# used is then the other cells.
MOSTLY_NUMBERS = 0.8

_NUMBER = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$"

# Columns of these names that count the rows are no features, though they are numbers.
_COUNTER_NAMES = {
    "",
    "id",
    "index",
    "row",
    "row_id",
    "rowid",
    "unnamed: 0",
    "__index_level_0__",
}

_NO_VALUES = "it has no values"
_ONE_VALUE = "every row has the same value"

# Units of Arrow's times in a second.
_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}

# Family of Arrow types -> how the column is used.
_KINDS = {
    "number": "number",
    "duration": "number",
    "boolean": "boolean",
    "date": "date",
    "time": "date",
    "text": "category",
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


def plan_column(
    name: str, column: Any, *, is_asked: bool = False, wants_text: bool = False
) -> ColumnPlan:
    """Decide how a column is used.

    Parameters
    ----------
    name : str
    column : pyarrow.ChunkedArray
    is_asked : bool, default=False
        Whether the user named it: then it may have many categories, or count the rows.
    wants_text : bool, default=False
        Whether free text is split into words, and not a reason to drop the column.

    Returns
    -------
    plan : ColumnPlan
    """
    family = family_of(column.type)
    if column.null_count == len(column):
        return ColumnPlan(name, "number", family, _NO_VALUES, is_silent=True)
    if family == "other":
        reason = f"its cells are of the type {column.type}, not numbers or texts"
        return ColumnPlan(name, "text", family, reason)
    if family == "text":
        return _plan_texts(name, column, is_asked=is_asked, wants_text=wants_text)
    numbers = to_numbers(column, name, family)
    plan = ColumnPlan(name, _KINDS[family], family)
    return _check_numbers(plan, numbers, is_asked=is_asked)


def plan_matrix(rows: Any, names: Sequence[str], chosen: set[str]) -> list[ColumnPlan]:
    """Decide which columns of a matrix are used; those of sparse rows all are.

    Parameters
    ----------
    rows : ndarray or CSR of shape (n_samples, n_columns)
    names : sequence of str
        Of the columns.
    chosen : set of str
        Those that may be used.

    Returns
    -------
    plans : list of ColumnPlan
        Of the chosen ones, in the order of the columns.
    """
    reasons = [""] * len(names)
    if isinstance(rows, np.ndarray):
        # These skip NaN.
        lows, highs = np.fmin.reduce(rows, axis=0), np.fmax.reduce(rows, axis=0)
        reasons = np.select(
            [np.isnan(lows), lows == highs], [_NO_VALUES, _ONE_VALUE], ""
        ).tolist()
    return [
        ColumnPlan(name, "number", "number", reason, is_silent=bool(reason))
        for name, reason in zip(names, reasons, strict=True)
        if name in chosen
    ]


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


def _plan_texts(
    name: str, column: Any, *, is_asked: bool, wants_text: bool
) -> ColumnPlan:
    is_dictionary = need_arrow().types.is_dictionary(column.type)
    texts = to_texts(column)
    if not is_dictionary:
        for family in ("number", "date"):
            found = _parse(texts, family)
            if found is not None:
                plan = ColumnPlan(name, _KINDS[family], family)
                return _check_numbers(plan, found, is_asked=is_asked)
    n_known = len(texts) - texts.null_count
    n_distinct = need_arrow("pyarrow.compute").count_distinct(texts).as_py()
    if n_distinct == 1:
        reason = f"{_ONE_VALUE} {_first_known(texts)!r}"
        return ColumnPlan(name, "category", "text", reason, is_silent=True)
    counts = f"{n_distinct:,} distinct texts in {n_known:,} rows"
    most = max(MOST_CATEGORIES, math.isqrt(n_known))
    reason = ""
    if n_distinct > MOST_DISTINCT * n_known:
        reason = (
            f"{counts}: an identifier or free text; use --id-column, --exclude or "
            "--tfidf"
        )
    elif n_distinct > most and not (is_asked or is_dictionary):
        reason = (
            f"{counts}: more than the {most:,} that a category may have; name it in "
            "--columns to use it all the same"
        )
    if wants_text and (reason or is_asked) and _is_wordy(texts):
        return ColumnPlan(name, "text", "text")
    if not reason:
        return ColumnPlan(name, "category", "text")
    return ColumnPlan(name, "text", "text", _find_misfit(texts) or reason)


def _find_misfit(texts: Any) -> str:
    """Return which cell is no number, if nearly all are; otherwise nothing."""
    pc = need_arrow("pyarrow.compute")
    is_other = pc.invert(pc.match_substring_regex(texts, _NUMBER))
    n_others, n_known = pc.sum(is_other).as_py(), len(texts) - texts.null_count
    if not 0 < n_others <= (1 - MOSTLY_NUMBERS) * n_known:
        return ""
    row = pc.index(is_other, True).as_py()
    return (
        f"{texts[row].as_py()[:40]!r} in row {row} is not a number ({n_others:,} of "
        f"{n_known:,} cells are not); mend such cells, or leave them empty"
    )


def _is_wordy(texts: Any) -> bool:
    pc = need_arrow("pyarrow.compute")
    has_space = pc.match_substring_regex(pc.utf8_trim_whitespace(texts), r"\s")
    return pc.mean(has_space).as_py() >= LEAST_WORDY


def _first_known(texts: Any) -> str:
    return texts.drop_null()[0].as_py()


def _check_numbers(
    plan: ColumnPlan, numbers: np.ndarray, *, is_asked: bool
) -> ColumnPlan:
    """Return the plan, with the reason if the numbers tell nothing."""
    known = numbers[~np.isnan(numbers)]
    check_finite(numbers, plan.name)
    reason = ""
    if not len(known):
        reason = _NO_VALUES
    elif (known == known[0]).all():
        reason = _ONE_VALUE
    elif not is_asked and _counts_rows(plan.name, numbers):
        reason = "it counts the rows; name it in --columns to use it all the same"
    return ColumnPlan(plan.name, plan.kind, plan.family, reason, is_silent=bool(reason))


def _counts_rows(name: str, numbers: np.ndarray) -> bool:
    if name.strip().lower() not in _COUNTER_NAMES or numbers[0] not in (0, 1):
        return False
    return np.array_equal(numbers, numbers[0] + np.arange(len(numbers)))


def check_finite(numbers: np.ndarray, name: str) -> None:
    """Refuse infinite numbers."""
    rows = np.flatnonzero(np.isinf(numbers))
    if len(rows):
        more = f" and {len(rows) - 1:,} more" if len(rows) > 1 else ""
        raise ValueError(
            f"Column {name!r} is infinite in row {rows[0]}{more}. Put a number there, "
            "leave the cell empty to say that it is missing, or exclude the column."
        )


def to_numbers(column: Any, name: str, family: str) -> np.ndarray:
    """Return a column as numbers; dates are seconds since 1970 began.

    Parameters
    ----------
    column : pyarrow.ChunkedArray
    name : str
    family : str
        What the column was in the fit. Texts are parsed if need be.

    Returns
    -------
    numbers : ndarray of shape (n_samples,), float64
        NaN where a cell is missing.
    """
    found = family_of(column.type)
    if found == "text" and family != "text":
        texts = to_texts(column)
        numbers = _parse(texts, family)
        if numbers is None:
            raise ValueError(_why_no_numbers(texts, name, family))
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
    pa, pc = need_arrow(), need_arrow("pyarrow.compute")
    texts = pc.utf8_trim_whitespace(texts)
    try:
        if family == "number":
            # Leading zeros are those of codes, such as 00123.
            if pc.any(pc.match_substring_regex(texts, r"^[+-]?0\d")).as_py():
                return None
            return _cast(texts.cast(pa.float64()), "number")
        if family == "boolean":
            return _cast(texts.cast(pa.bool_()), "boolean")
        if family == "date":
            return _cast(_cast_dates(texts), "date")
    except pa.ArrowInvalid:
        pass
    return None


def _cast_dates(texts: Any) -> Any:
    pa = need_arrow()
    try:
        return texts.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        # With zones, which are then all given.
        return texts.cast(pa.timestamp("us", "UTC"))


def _why_no_numbers(texts: Any, name: str, family: str) -> str:
    pa = need_arrow()
    for row, text in enumerate(texts):
        if text.is_valid and _parse(pa.chunked_array([[text.as_py()]]), family) is None:
            return (
                f"Column {name!r} holds the text {text.as_py()[:40]!r} in row {row}, "
                f"but was a {family} in the fit. Put such a value there, or leave the "
                "cell empty."
            )
    return f"Column {name!r} holds texts, but was a {family} in the fit."


def to_texts(column: Any) -> Any:
    """Return a column as texts, null where a cell is missing.

    Parameters
    ----------
    column : pyarrow.ChunkedArray

    Returns
    -------
    texts : pyarrow.ChunkedArray of string
    """
    pa = need_arrow()
    kind = column.type
    if pa.types.is_dictionary(kind):
        column, kind = column.cast(kind.value_type), kind.value_type
    return column if pa.types.is_string(kind) else column.cast(pa.string())
