"""What a column is and whether it can be used, learnt piece by piece."""

import math
import re
from dataclasses import replace
from typing import Any

import numpy as np

from corral.tables._arrow import need_arrow
from corral.tables._columns import (
    ColumnPlan,
    family_of,
    parse_texts,
    refuse_infinite,
    to_numbers,
    to_texts,
)
from corral.tables._distinct import DistinctCount
from corral.tables._scales import Moments

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

NO_VALUES = "it has no values"
ONE_VALUE = "every row has the same value"

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
}

# pandas writes the index of a data frame, if it has no name, as such a column.
_INDEX = re.compile(r"__index_level_\d+__")
_INDEX_REASON = (
    "it is the index of a data frame; name it in --columns to use it all the same"
)

# Family of Arrow types -> how the column is used.
_KINDS = {
    "number": "number",
    "duration": "number",
    "boolean": "boolean",
    "date": "date",
    "time": "date",
}

# What texts may be, the first that all of them are -> family.
_TEXT_FORMS = {"number": "number", "date": "date", "zoned date": "date"}


class ColumnLook:
    """What is learnt of a column of a table.

    Parameters
    ----------
    name : str
    wants_text : bool, default=False
        Whether free text is split into words, and not a reason to drop the column.

    Attributes
    ----------
    numbers : NumberLook or None
        Of a column that is numbers, or texts that can all be read as numbers, which is
        known after :meth:`plan`.
    """

    def __init__(self, name: str, *, wants_text: bool = False) -> None:
        self.numbers: NumberLook | None = None
        self._name = name
        self._wants_text = wants_text
        self._kind: Any = None
        self._n_rows = 0
        self._n_null = 0
        self._texts: _TextLook | None = None

    @property
    def n_missing(self) -> int:
        """Cells that are missing; those of numbers may also be NaN."""
        if self.numbers is None:
            return self._n_null
        return self._n_rows - int(self.numbers.moments.n_known[0])

    def add(self, column: Any) -> None:
        """Look at the next piece of the column, a pyarrow.ChunkedArray."""
        # A piece of nulls alone may have no type.
        if not need_arrow().types.is_null(column.type):
            self._open(column.type)
            start = self._n_rows
            if self._texts is not None:
                self._texts.add(to_texts(column, self._name), start)
            elif self.numbers is not None:
                numbers = to_numbers(column, self._name, self._family, start)
                self.numbers.add(numbers, start)
        self._n_rows += len(column)
        self._n_null += column.null_count

    def plan(self, *, is_asked: bool = False) -> ColumnPlan:
        """Decide how the column is used, after all pieces.

        Parameters
        ----------
        is_asked : bool, default=False
            Whether the user named it: then it may have many categories, or count the
            rows.

        Returns
        -------
        plan : ColumnPlan
        """
        name, family = self._name, self._family
        if self._n_null == self._n_rows:
            return ColumnPlan(name, "number", family, NO_VALUES, is_silent=True)
        if _INDEX.fullmatch(name) and not is_asked:
            kind = _KINDS.get(family, "text")
            return ColumnPlan(name, kind, family, _INDEX_REASON, is_silent=True)
        if self._texts is not None:
            form, self.numbers = self._texts.find_form()
            if self.numbers is None:
                n_known = self._n_rows - self._n_null
                plan = self._texts.plan(name, n_known, is_asked=is_asked)
                return replace(plan, family=self._text_family)
            family = _TEXT_FORMS[form]
        if self.numbers is None:
            reason = f"its cells are of the type {self._kind}, not numbers or texts"
            return ColumnPlan(name, "text", family, reason)
        reason = self.numbers.find_reason(name, self._n_rows, is_asked=is_asked)
        return ColumnPlan(name, _KINDS[family], family, reason, is_silent=bool(reason))

    @property
    def _family(self) -> str:
        return "number" if self._kind is None else family_of(self._kind)

    @property
    def _text_family(self) -> str:
        """What texts are made of: a category may be of numbers."""
        is_coded = need_arrow().types.is_dictionary(self._kind)
        return family_of(self._kind.value_type) if is_coded else "text"

    def _open(self, kind: Any) -> None:
        """Note the type of the first piece that has one, and what it calls for."""
        if self._kind is not None:
            return
        self._kind = kind
        if self._family == "text":
            is_coded = need_arrow().types.is_dictionary(kind)
            self._texts = _TextLook(is_coded=is_coded, wants_text=self._wants_text)
        elif self._family != "other":
            self.numbers = NumberLook()


class NumberLook:
    """What is learnt of a column of numbers.

    Attributes
    ----------
    moments : Moments
    """

    def __init__(self) -> None:
        self.moments = Moments(1)
        self._n_rows = 0
        self._n_infinite = 0
        self._first_infinite = 0
        self._low = self._high = np.nan
        # What the first number would be if each were one more than that before; None
        # if they are not.
        self._counts_from: float | None = None

    def add(self, numbers: np.ndarray, start: int) -> None:
        """Look at the numbers of the rows from ``start`` on; NaN is a missing cell."""
        infinite = np.flatnonzero(np.isinf(numbers))
        if len(infinite) and not self._n_infinite:
            self._first_infinite = start + int(infinite[0])
        self._n_infinite += len(infinite)
        # These skip NaN.
        self._low = np.fmin.reduce(numbers, initial=self._low)
        self._high = np.fmax.reduce(numbers, initial=self._high)
        if not self._n_rows and len(numbers):
            self._counts_from = numbers[0] - start
        if self._counts_from is not None:
            counter = self._counts_from + np.arange(start, start + len(numbers))
            if not np.array_equal(numbers, counter):
                self._counts_from = None
        self._n_rows += len(numbers)
        self.moments.add(numbers[:, None])

    def find_reason(self, name: str, n_rows: int, *, is_asked: bool) -> str:
        """Return why the column tells nothing, if so; refuse infinite numbers."""
        if self._n_infinite:
            refuse_infinite(name, self._first_infinite, self._n_infinite)
        if np.isnan(self._low):
            return NO_VALUES
        if self._low == self._high:
            return ONE_VALUE
        is_counter = self._n_rows == n_rows and self._counts_from in (0, 1)
        if not is_asked and is_counter and name.strip().lower() in _COUNTER_NAMES:
            return "it counts the rows; name it in --columns to use it all the same"
        return ""


class _TextLook:
    """What is learnt of a column of texts.

    Parameters
    ----------
    is_coded : bool
        Whether the column says itself that it is a category.
    wants_text : bool
    """

    def __init__(self, *, is_coded: bool, wants_text: bool) -> None:
        self._is_coded = is_coded
        self._wants_text = wants_text
        # What all texts so far may be, besides texts.
        forms = () if is_coded else _TEXT_FORMS
        self._forms = {form: NumberLook() for form in forms}
        self._distinct = DistinctCount()
        self._first_known = ""
        self._n_wordy = 0
        self._n_others = 0
        self._first_other: tuple[int, str] | None = None

    def add(self, texts: Any, start: int) -> None:
        """Look at the texts of the rows from ``start`` on."""
        for form in [*self._forms]:
            numbers = parse_texts(texts, form)
            if numbers is None:
                del self._forms[form]
            else:
                self._forms[form].add(numbers, start)
        known = texts.drop_null()
        if not len(known):
            return
        if not self._distinct.n_distinct:
            self._first_known = known[0].as_py()
        counted = known.value_counts()
        distinct, counts = counted.field("values"), counted.field("counts").to_numpy()
        self._distinct.add(distinct)
        self._add_others(texts, distinct, counts, start)
        if self._wants_text:
            self._n_wordy += _count_wordy(distinct, counts)

    def _add_others(
        self, texts: Any, distinct: Any, counts: np.ndarray, start: int
    ) -> None:
        """Count the texts that are no numbers, and keep the first of them."""
        n_others = counts[_is_other(distinct)].sum()
        if n_others and self._first_other is None:
            pc = need_arrow("pyarrow.compute")
            is_number = pc.match_substring_regex(texts, _NUMBER)
            row = pc.index(is_number, False).as_py()
            self._first_other = start + row, texts[row].as_py()
        self._n_others += int(n_others)

    def find_form(self) -> tuple[str, NumberLook | None]:
        """Return the form that all texts have and their numbers; None if there is none.

        There have to be texts.
        """
        return next(iter(self._forms.items()), ("", None))

    def plan(self, name: str, n_known: int, *, is_asked: bool) -> ColumnPlan:
        """Decide how the column is used, which has texts and no numbers."""
        n_distinct = min(self._distinct.n_distinct, n_known)
        if n_distinct == 1:
            reason = f"{ONE_VALUE} {self._first_known!r}"
            return ColumnPlan(name, "category", "text", reason, is_silent=True)
        reason = self._find_reason(n_distinct, n_known, is_asked=is_asked)
        is_wordy = self._n_wordy >= LEAST_WORDY * n_known
        if self._wants_text and (reason or is_asked) and is_wordy:
            return ColumnPlan(name, "text", "text")
        if not reason:
            return ColumnPlan(name, "category", "text")
        return ColumnPlan(name, "text", "text", self._find_misfit(n_known) or reason)

    def _find_reason(self, n_distinct: int, n_known: int, *, is_asked: bool) -> str:
        """Return why the texts are no category, if so."""
        about = "" if self._distinct.is_exact else "about "
        counts = f"{about}{n_distinct:,} distinct texts in {n_known:,} rows"
        if n_distinct > MOST_DISTINCT * n_known:
            return (
                f"{counts}: an identifier or free text; use --id-column, --exclude or "
                "--tfidf"
            )
        most = max(MOST_CATEGORIES, math.isqrt(n_known))
        if n_distinct > most and not (is_asked or self._is_coded):
            return (
                f"{counts}: more than the {most:,} that a category may have; name it "
                "in --columns to use it all the same"
            )
        return ""

    def _find_misfit(self, n_known: int) -> str:
        """Return which cell is no number, if nearly all are; otherwise nothing."""
        n_others = self._n_others
        if self._first_other is None or n_others > (1 - MOSTLY_NUMBERS) * n_known:
            return ""
        row, text = self._first_other
        return (
            f"{text[:40]!r} in row {row} is not a number ({n_others:,} of "
            f"{n_known:,} cells are not); mend such cells, or leave them empty"
        )


def _is_other(texts: Any) -> np.ndarray:
    """Return which texts are no numbers."""
    found = need_arrow("pyarrow.compute").match_substring_regex(texts, _NUMBER)
    return ~found.to_numpy(zero_copy_only=False)


def _count_wordy(distinct: Any, counts: np.ndarray) -> int:
    """Return how many texts have more than one word."""
    pc = need_arrow("pyarrow.compute")
    has_space = pc.match_substring_regex(pc.utf8_trim_whitespace(distinct), r"\s")
    return int(counts[has_space.to_numpy(zero_copy_only=False)].sum())
