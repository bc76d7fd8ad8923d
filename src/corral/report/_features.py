"""Which features make a cluster or a row differ from what is usual."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypedDict

import narwhals.stable.v1 as nw
import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array

from corral._validation import find_categories

# How many features are named for a cluster or a row.
_N_TOP_FEATURES = 4

# Smaller differences are not named: rounding errors, or nothing to speak of.
_MIN_DIFFERENCE = 0.05


class Difference(TypedDict):
    """How far one feature lies from what it is compared with."""

    name: str
    value: float  # of the row, or the mean of the cluster
    difference: float  # in standard deviations of the feature over all rows


@dataclass(frozen=True)
class Features:
    """The rows with what they are compared with.

    Attributes
    ----------
    X : ndarray or CSR of shape (n_samples, n_features)
    names : list of str
    mean, scale : ndarray of shape (n_features,)
        Over all rows; the scale is 1 where a feature is constant.
    centers : ndarray of shape (n_clusters, n_features)
        Mean of the rows of each cluster; the mean of all rows for an empty cluster.
    """

    X: Any
    names: list[str]
    mean: np.ndarray
    scale: np.ndarray
    centers: np.ndarray

    def of_cluster(self, label: int) -> list[Difference]:
        """Compare a cluster with all rows."""
        return self._compare(self.centers[label], self.mean)

    def of_row(self, row: int, label: int) -> list[Difference]:
        """Compare a row with a cluster."""
        values = self.X[[row]]
        values = values.toarray() if sparse.issparse(values) else values
        return self._compare(values[0], self.centers[label])

    def _compare(self, values: np.ndarray, usual: np.ndarray) -> list[Difference]:
        differences = (values - usual) / self.scale
        order = np.argsort(-np.abs(differences), kind="stable")[:_N_TOP_FEATURES]
        return [
            {
                "name": self.names[column],
                "value": float(values[column]),
                "difference": float(differences[column]),
            }
            for column in order.tolist()
            if abs(differences[column]) >= _MIN_DIFFERENCE
        ]


def read_features(
    X,
    labels: np.ndarray,
    n_clusters: int,
    *,
    names: Sequence[str] | None,
    categorical_features,
) -> Features | None:
    """Check the rows and their names, and work out what they are compared with.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
    labels : ndarray of shape (n_samples,)
        -1 for outliers.
    n_clusters : int
    names : sequence of str, or None
        None takes the names of a data frame, or else numbers the columns.
    categorical_features : array-like or None
        As for COR: columns that hold categories. They and columns of a data frame that
        are not numbers are left out.

    Returns
    -------
    features : Features or None
        None if no column is left.
    """
    X, frame_names, is_number = _read_table(X)
    n_samples, n_columns = X.shape
    if n_samples != len(labels):
        raise ValueError(
            f"X has {n_samples} rows but the estimator was fitted on {len(labels)}."
        )
    names = frame_names if names is None else [str(name) for name in names]
    if len(names) != n_columns:
        raise ValueError(
            f"feature_names has {len(names)} names but X has {n_columns} columns."
        )
    is_number &= ~find_categories(categorical_features, n_columns, names)
    if not is_number.any():
        return None
    if not is_number.all():
        X = X[:, is_number]
    X = check_array(X, accept_sparse="csr", dtype=[np.float64, np.float32])
    scaler = StandardScaler(with_mean=False).fit(X)
    return Features(
        X=X,
        names=[name for name, yes in zip(names, is_number, strict=True) if yes],
        mean=scaler.mean_,
        scale=scaler.scale_,
        centers=_centers(X, labels, n_clusters, scaler.mean_),
    )


def _read_table(X) -> tuple:
    """Return X as an array, the names of its columns and which of them are numbers."""
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        dtypes = frame.schema.values()
        is_number = [dtype.is_numeric() or dtype == nw.Boolean for dtype in dtypes]
        return frame.to_numpy(), frame.columns, np.array(is_number)
    X = check_array(X, accept_sparse="csr", dtype=None, ensure_all_finite=False)
    names = [f"feature {column}" for column in range(X.shape[1])]
    return X, names, np.ones(X.shape[1], dtype=bool)


def _centers(X, labels: np.ndarray, n_clusters: int, mean: np.ndarray) -> np.ndarray:
    rows = np.flatnonzero(labels >= 0)
    members = sparse.csr_array(
        (np.ones(len(rows)), (labels[rows], rows)), shape=(n_clusters, len(labels))
    )
    sums = members @ X
    sums = sums.toarray() if sparse.issparse(sums) else sums
    sizes = np.bincount(labels[rows], minlength=n_clusters)[:, np.newaxis]
    return np.where(sizes > 0, sums / np.maximum(sizes, 1), mean)
