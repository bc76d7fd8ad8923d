"""Rows as the report sees them: numbers and categories, with their names."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from corral._partitions import clean_labels
from corral._validation import find_categories, read_label_matrix


@dataclass(frozen=True)
class Rows:
    """The rows of a report.

    Attributes
    ----------
    numbers : ndarray or CSR of shape (n_samples, n_numbers), or None
        NaN where a cell is missing.
    number_names : list of str
    categories : list of (ndarray, ndarray)
        Labels of each column of categories, and where there is none.
    category_names : list of str
    names : list of str
        Of all columns, in their order.
    n_samples : int
    are_labels : bool
        Whether the rows are labels of partitions, which have no names.
    """

    numbers: Any
    number_names: list[str]
    categories: list[tuple[np.ndarray, np.ndarray]]
    category_names: list[str]
    names: list[str]
    n_samples: int
    are_labels: bool = False

    def take(self, rows: np.ndarray) -> "Rows":
        """Return some of the rows."""
        return replace(
            self,
            numbers=None if self.numbers is None else self.numbers[rows],
            categories=[(values[rows], gone[rows]) for values, gone in self.categories],
            n_samples=len(rows),
        )

    def count_missing(self, values: nw.DataFrame | None = None) -> dict[str, int]:
        """Return how many cells are missing in the columns that have any such.

        Parameters
        ----------
        values : narwhals data frame, default=None
            The user's own values: what is missing there may be filled here.
        """
        if self.are_labels:
            return {}
        counts = [(name, gone.sum()) for name, (_, gone) in self._named_categories()]
        if self.numbers is not None and not sparse.issparse(self.numbers):
            gone = np.isnan(self.numbers).sum(axis=0)
            own = [_count_gaps(values, name) for name in self.number_names]
            gone = np.maximum(gone, own)
            counts = [*zip(self.number_names, gone, strict=True), *counts]
        return {name: int(count) for name, count in counts if count}

    def _named_categories(self):
        return zip(self.category_names, self.categories, strict=True)


def read_rows(
    X, *, names: Sequence[str] | None, categorical_features, are_labels: bool
) -> Rows:
    """Check the rows and part their numbers from their categories.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
    names : sequence of str, or None
        None takes the names of a data frame, or else numbers the columns.
    categorical_features : array-like or None
        As for COR: columns that hold categories. Other columns of a data frame that
        are not numbers are left out.
    are_labels : bool
        Whether X holds labels of partitions.
    """
    if are_labels:
        labels = read_label_matrix(X, name="X")
        columns = [(column, column == -1) for column in labels.T]
        return Rows(None, [], columns, [""] * len(columns), [], len(labels), True)
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    is_frame = isinstance(frame, nw.DataFrame)
    if not is_frame:
        X = check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=False)
    n_columns = frame.shape[1] if is_frame else X.shape[1]
    own_names = frame.columns if is_frame else _numbered(n_columns)
    is_category = find_categories(categorical_features, n_columns, list(own_names))
    names = [str(name) for name in (own_names if names is None else names)]
    if len(names) != n_columns:
        raise ValueError(
            f"feature_names has {len(names)} names but X has {n_columns} columns."
        )
    if is_frame:
        return _read_frame(frame, names, is_category)
    return _read_array(X, names, is_category)


def _count_gaps(values: nw.DataFrame | None, name: str) -> int:
    """Return how many cells of a column are null or not a number."""
    if values is None or name not in values.columns:
        return 0
    column = values[name]
    is_gone = column.is_null()
    if column.dtype.is_float():
        is_gone = is_gone | column.is_nan()
    return int(is_gone.sum())


def _numbered(n_columns: int) -> list[str]:
    return [f"feature {column}" for column in range(n_columns)]


def _read_frame(frame: nw.DataFrame, names: list[str], is_category) -> Rows:
    numbers, number_names, categories, category_names = [], [], [], []
    columns = zip(frame.iter_columns(), names, is_category, strict=True)
    for column, name, holds_categories in columns:
        if holds_categories:
            categories.append(clean_labels(column.to_numpy()))
            category_names.append(name)
        elif column.dtype.is_numeric() or column.dtype == nw.Boolean:
            numbers.append(as_floats(column))
            number_names.append(name)
    matrix = np.column_stack(numbers) if numbers else None
    return Rows(matrix, number_names, categories, category_names, names, len(frame))


def as_floats(column) -> np.ndarray:
    """Return a column of numbers as floats, NaN where a cell is missing."""
    return column.cast(nw.Float64).to_numpy().astype(np.float64)


def _read_array(X, names: list[str], is_category: np.ndarray) -> Rows:
    numbers = None
    if not is_category.all():
        numbers = check_array(
            X if not is_category.any() else X[:, ~is_category],
            accept_sparse="csr",
            dtype=[np.float64, np.float32],
            ensure_all_finite="allow-nan",
        )
    return Rows(
        numbers,
        [name for name, yes in zip(names, is_category, strict=True) if not yes],
        [clean_labels(X[:, column]) for column in np.flatnonzero(is_category)],
        [name for name, yes in zip(names, is_category, strict=True) if yes],
        names,
        X.shape[0],
    )
