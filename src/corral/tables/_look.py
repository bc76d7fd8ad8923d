"""A look at all rows, piece by piece: which columns are used, and how."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from corral.tables._column_look import NO_VALUES, ONE_VALUE, ColumnLook
from corral.tables._columns import ColumnPlan
from corral.tables._rows import Matrix
from corral.tables._scales import Moments


class TableLook:
    """What is learnt of the columns of a table.

    Parameters
    ----------
    names : sequence of str
        The columns that may be used.
    is_asked : bool
        Whether the user named them.
    wants_text : bool
        Whether free text is split into words.
    """

    def __init__(
        self, names: Sequence[str], *, is_asked: bool, wants_text: bool
    ) -> None:
        self._is_asked = is_asked
        self._columns = {
            name: ColumnLook(name, wants_text=wants_text) for name in names
        }

    def add(self, table: Any, start: int) -> None:
        """Look at the next piece, a pyarrow.Table."""
        for name, column in self._columns.items():
            column.add(table[name])

    def plan(self) -> list[ColumnPlan]:
        """Decide how each column is used, after all pieces."""
        is_asked = self._is_asked
        return [look.plan(is_asked=is_asked) for look in self._columns.values()]

    def count_missing(self, names: Sequence[str]) -> list[int]:
        """Return how many cells of each of these columns are missing."""
        return [self._columns[name].n_missing for name in names]

    def moments(self, names: Sequence[str]) -> Moments:
        """Return those of these columns, which are used as numbers."""
        looks = [self._columns[name].numbers for name in names]
        return Moments.stack([look.moments for look in looks if look is not None])


class MatrixLook:
    """What is learnt of the columns of a matrix; those of sparse rows are all used.

    Parameters
    ----------
    names : sequence of str
        Of all columns.
    chosen : sequence of str
        Those that may be used.
    is_measured : bool
        Whether means and variances are asked for.
    """

    def __init__(
        self, names: Sequence[str], chosen: Sequence[str], *, is_measured: bool
    ) -> None:
        known = set(chosen)
        self._names = list(chosen)
        self._places = np.array([j for j, name in enumerate(names) if name in known])
        self._is_measured = is_measured
        self._is_sparse = False
        n_columns = len(self._names)
        self._lows = np.full(n_columns, np.nan)
        self._highs = np.full(n_columns, np.nan)
        self._n_missing = np.zeros(n_columns, dtype=np.int64)
        self._moments = Moments(n_columns)
        # Column -> row and value of the first cell that is no number.
        self._wrong: dict[int, tuple[int, float]] = {}

    def add(self, rows: Matrix, start: int) -> None:
        """Look at the next piece, from the row ``start`` on."""
        rows = take_floats(rows, self._places)
        self._is_sparse = sparse.issparse(rows)
        for row, column, value in find_wrong(rows):
            self._wrong.setdefault(column, (start + row, value))
        if not self._is_sparse:
            # These skip NaN.
            self._lows = np.fmin(self._lows, np.fmin.reduce(rows, initial=np.nan))
            self._highs = np.fmax(self._highs, np.fmax.reduce(rows, initial=np.nan))
            self._n_missing += np.isnan(rows).sum(axis=0)
        if self._is_measured:
            self._moments.add(rows)

    def plan(self) -> list[ColumnPlan]:
        """Decide which columns are used, after all pieces."""
        reasons = [""] * len(self._names)
        if not self._is_sparse:
            is_empty, is_flat = np.isnan(self._lows), self._lows == self._highs
            found = np.select([is_empty, is_flat], [NO_VALUES, ONE_VALUE], "")
            reasons = found.tolist()
        self._check([j for j, reason in enumerate(reasons) if not reason])
        return [
            ColumnPlan(name, "number", "number", reason, is_silent=bool(reason))
            for name, reason in zip(self._names, reasons, strict=True)
        ]

    def count_missing(self, names: Sequence[str]) -> list[int]:
        """Return how many cells of each of these columns are missing."""
        return self._n_missing[self._find(names)].tolist()

    def moments(self, names: Sequence[str]) -> Moments:
        """Return those of these columns."""
        return self._moments.take(self._find(names))

    def _find(self, names: Sequence[str]) -> np.ndarray:
        wanted = set(names)
        return np.array([j for j, name in enumerate(self._names) if name in wanted])

    def _check(self, used: list[int]) -> None:
        """Refuse a used column with a cell that is no number, the first of them all."""
        found = [(*self._wrong[j], j) for j in used if j in self._wrong]
        if found:
            row, value, j = min(found, key=lambda each: (each[0], each[2]))
            refuse_wrong(self._names[j], row, value)


def take_floats(rows: Matrix, places: np.ndarray) -> Matrix:
    """Return a copy of some columns of a matrix, as floating-point numbers.

    Parameters
    ----------
    rows : ndarray or CSR of shape (n_samples, n_columns)
    places : ndarray of int
        Of the columns, sorted.

    Returns
    -------
    numbers : ndarray or CSR of shape (n_samples, n_places)
        In float64; in float32 if the rows are.
    """
    if len(places) < rows.shape[1]:
        rows = rows[:, places]
    return rows.astype(np.float32 if rows.dtype == np.float32 else np.float64)


def find_wrong(rows: Matrix) -> list[tuple[int, int, float]]:
    """Return row, column and value of the first cell of each column that is no number.

    Parameters
    ----------
    rows : ndarray or CSR of shape (n_samples, n_columns)
        Infinite cells are no numbers; of sparse rows NaN is none either.

    Returns
    -------
    cells : list of tuple
    """
    find = (lambda cells: ~np.isfinite(cells)) if sparse.issparse(rows) else np.isinf
    if not find(rows.data if sparse.issparse(rows) else rows).any():
        return []
    at = sparse.coo_array(rows)
    wrong = np.flatnonzero(find(at.data))
    # Cells are in the order of rows.
    _, firsts = np.unique(at.col[wrong], return_index=True)
    return [
        (int(at.row[place]), int(at.col[place]), at.data[place])
        for place in wrong[firsts]
    ]


def refuse_wrong(name: str, row: int, value: float) -> None:
    """Raise what says where a column of a matrix holds no number."""
    raise ValueError(
        f"Column {name!r} holds {value} in row {row}. Put a number there, or exclude "
        "the column."
    )
