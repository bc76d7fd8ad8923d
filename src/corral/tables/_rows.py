"""Rows as they are given: a table, a sparse matrix or an array."""

import difflib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse

from corral._partitions import is_missing
from corral.tables._arrays import WIDEST_TABLE, name_features, tabulate
from corral.tables._arrow import need_arrow
from corral.tables._broken import Broken
from corral.tables._columns import to_numbers

# What a cell of a column of different kinds may be.
_PLAIN = (str, bool, int, float, np.number, np.bool_, type(None))

# Errors list so many columns: a file of another kind may lack hundreds.
_MAX_LISTED = 10

# An ndarray or CSR; SciPy has no types to tell it.
Matrix = Any


def read_rows(rows: Any) -> Any:
    """Return rows as a pyarrow table, a CSR array or an array.

    Parameters
    ----------
    rows : data frame, pyarrow.Table, sparse matrix or ndarray

    Returns
    -------
    rows : pyarrow.Table, csr_array or ndarray
        Arrays with few columns are tables, as :func:`read_table` gives them.
    """
    if sparse.issparse(rows):
        return sparse.csr_array(rows)
    if isinstance(rows, np.ndarray):
        try:
            return tabulate(rows)
        except Broken as error:
            raise ValueError(f"The table {error}") from error
    _check_names(rows)
    frame = nw.from_native(rows, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        raise TypeError(
            f"A table should be a data frame, a pyarrow.Table, a sparse matrix or an "
            f"array. Got {type(rows).__name__}."
        )
    pa = need_arrow()
    if isinstance(rows, pa.Table):
        return rows
    # Column by column, because the index of a pandas frame is no column.
    arrays = [_to_arrow(column) for column in frame.iter_columns()]
    names = [str(name) for name in frame.columns]
    return pa.Table.from_arrays(arrays, names=names)


def _to_arrow(column: Any) -> Any:
    """Return a column of any library as one of pyarrow."""
    pa = need_arrow()
    try:
        return column.to_arrow()
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        cells = [None if is_missing(cell) else cell for cell in column.to_list()]
        strange = [cell for cell in cells if not isinstance(cell, _PLAIN)]
        if strange:
            raise ValueError(
                f"Column {str(column.name)!r} holds cells of different kinds, one of "
                f"them a {type(strange[0]).__name__}. Turn them into numbers or texts, "
                "or drop the column."
            ) from error
    # Texts and numbers in one column are texts, as in a file.
    return pa.array([None if cell is None else str(cell) for cell in cells])


def _check_names(rows: Any) -> None:
    # Of pyarrow, or of others; narwhals would say it in its own words.
    names = getattr(rows, "column_names", getattr(rows, "columns", ()))
    doubles = [name for name, n in Counter(names).items() if n > 1]
    if doubles:
        raise ValueError(
            f"The table has more than one column named "
            f"{', '.join(map(repr, doubles))}. Give each a name of its own."
        )


def is_matrix(rows: Any) -> bool:
    """Return whether all cells are numbers of one array, sparse or not."""
    return sparse.issparse(rows) or isinstance(rows, np.ndarray)


def name_columns(rows: Any) -> list[str]:
    """Return the names of the columns."""
    return name_features(rows.shape[1]) if is_matrix(rows) else rows.column_names


def as_table(rows: Any) -> Any:
    """Return a matrix as a table, because the fit was on one."""
    if not is_matrix(rows):
        return rows
    if rows.shape[1] > WIDEST_TABLE:
        raise ValueError(
            f"The table has {rows.shape[1]:,} columns, but that of the fit was a table "
            f"of at most {WIDEST_TABLE:,}."
        )
    return tabulate(rows.toarray() if sparse.issparse(rows) else rows)


def as_matrix(rows: Any, n_columns: int, *, is_sparse: bool) -> Matrix:
    """Return rows as a matrix, because the fit was on one."""
    if not is_matrix(rows):
        names = name_features(n_columns)
        check_known(names, rows.column_names, "The table of the fit had")
        columns = [to_numbers(rows[name], name, "number") for name in names]
        rows = np.column_stack(columns)
    if rows.shape[1] != n_columns:
        raise ValueError(
            f"The table has {rows.shape[1]:,} columns, but that of the fit had "
            f"{n_columns:,}."
        )
    if is_sparse:
        return sparse.csr_array(rows)
    return rows.toarray() if sparse.issparse(rows) else rows


def choose_columns(
    names: Sequence[str],
    columns: Sequence[str] | None,
    exclude: Sequence[str] | None,
    id_column: str | None,
) -> list[str]:
    """Return the names of the columns that may be features, in the table's order."""
    wanted = as_names(columns)
    unwanted = as_names(exclude)
    check_known(wanted, names, "columns names")
    check_known(unwanted, names, "exclude names")
    check_known([] if id_column is None else [id_column], names, "id_column names")
    clash = [name for name in wanted if name in {*unwanted, id_column}]
    if clash:
        raise ValueError(
            f"{', '.join(map(repr, clash))} cannot be in columns and at the same time "
            "in exclude or id_column."
        )
    gone = {*unwanted, id_column}
    chosen = set(wanted if columns is not None else names) - gone
    if not chosen:
        raise ValueError("No column is left to be used. Name fewer in exclude.")
    return [name for name in names if name in chosen]


def as_names(names: str | Iterable[str] | None) -> list[str]:
    """Return names as a list; one name may stand alone."""
    if names is None:
        return []
    return [names] if isinstance(names, str) else list(names)


def check_known(wanted: Iterable[str], names: Sequence[str], says: str) -> None:
    """Refuse names that are no columns, and say which ones are near."""
    known = set(names)
    unknown = [name for name in wanted if name not in known]
    if not unknown:
        return
    near = [
        found
        for name in unknown[:_MAX_LISTED]
        for found in difflib.get_close_matches(str(name), names, n=2)
    ]
    if near:
        advice = f"Did you mean {', '.join(map(repr, dict.fromkeys(near)))}?"
    else:
        some = ", ".join(map(repr, names[:_MAX_LISTED]))
        more = " and more" if len(names) > _MAX_LISTED else ""
        advice = f"The table has {some}{more}."
    listed = ", ".join(map(repr, unknown[:_MAX_LISTED]))
    n_more = len(unknown) - _MAX_LISTED
    more = f" and {n_more} more" if n_more > 0 else ""
    raise ValueError(f"{says} {listed}{more}, which the table does not have. {advice}")
