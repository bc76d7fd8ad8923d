"""Rows in the plane: their numeric columns, reduced to two directions."""

from typing import Any, NamedTuple

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.preprocessing import normalize
from sklearn.utils import check_array

from corral._validation import find_categories


class Numbers(NamedTuple):
    """The numeric columns of X, and their names."""

    numbers: Any
    names: list[str]


def read_numbers(X, names=None, categorical_features=None) -> Numbers:
    """Return the columns that have a place on a map.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        Missing cells are put in the middle of their column.
    names : sequence of str, default=None
        Names of the columns, for an X without any.
    categorical_features : array-like of int, str or bool, default=None
        Columns that hold categories.
    """
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        names = frame.columns
        is_number = np.array([_is_numeric(each) for each in frame.iter_columns()])
    else:
        X = check_array(
            X, accept_sparse="csr", dtype=None, ensure_all_finite=False, input_name="X"
        )
        if names is None or len(names) != X.shape[1]:
            names = [f"feature {j}" for j in range(X.shape[1])]
        is_number = np.ones(X.shape[1], dtype=bool)
    is_number &= ~find_categories(categorical_features, len(names), list(names))
    if not is_number.any():
        raise ValueError("X has no numeric columns, so there is no map to draw.")
    columns = np.flatnonzero(is_number)
    if isinstance(frame, nw.DataFrame):
        X = np.column_stack(
            [frame[:, int(j)].cast(nw.Float64).to_numpy() for j in columns]
        )
    elif not is_number.all():
        X = X[:, columns]
    return Numbers(_read_floats(X), [str(names[j]) for j in columns])


def _is_numeric(column) -> bool:
    return column.dtype.is_numeric() or column.dtype == nw.Boolean


def _read_floats(X):
    X = check_array(
        X,
        accept_sparse="csr",
        dtype=(np.float64, np.float32),
        ensure_all_finite="allow-nan",
        input_name="X",
    )
    return X if sparse.issparse(X) else _fill_missing(X)


def _fill_missing(X: np.ndarray) -> np.ndarray:
    """Put missing cells in the middle of their column; 0 where all are missing."""
    missing = np.isnan(X)
    if not missing.any():
        return X
    n_known = np.maximum((~missing).sum(axis=0), 1)
    means = np.where(missing, 0, X).sum(axis=0) / n_known
    return np.where(missing, means, X)


def lay_out(
    values: Numbers, is_kept: np.ndarray, is_cosine: bool, rng: np.random.RandomState
) -> tuple[np.ndarray, tuple[str, str]]:
    """Return where rows lie in the plane, and what its two directions are.

    Parameters
    ----------
    values : Numbers
    is_kept : ndarray of shape (n_samples,), bool
        The rows that the directions are learned from.
    is_cosine : bool
        Whether only the direction of a row counts, not its length.
    rng : RandomState

    Returns
    -------
    points : ndarray of shape (n_samples, 2)
    axis_names : tuple of (str, str)
    """
    X, names = values
    if X.shape[1] <= 2:
        points = X.toarray() if sparse.issparse(X) else X
        return _pad(points), (names[0], (*names, "")[1])
    if is_cosine:
        X = normalize(X)
    # Fewer rows have no two directions.
    learned = X[is_kept] if np.count_nonzero(is_kept) > 2 else X
    if sparse.issparse(X):
        directions, kind = TruncatedSVD(2, random_state=rng), "singular"
    else:
        n_directions = min(2, learned.shape[0])
        directions, kind = PCA(n_directions, random_state=rng), "principal"
    with np.errstate(invalid="ignore"):
        # Equal rows have no variance, of which scikit-learn wants the shares.
        directions.fit(learned)
    points = _pad(directions.transform(X))
    return points, (f"first {kind} direction", f"second {kind} direction")


def _pad(points: np.ndarray) -> np.ndarray:
    """Return points of one or two coordinates with two."""
    return points if points.shape[1] == 2 else np.pad(points, ((0, 0), (0, 1)))
