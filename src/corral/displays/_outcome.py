"""What a fitted method found, whatever its kind."""

from typing import NamedTuple

import numpy as np
from sklearn.base import is_outlier_detector
from sklearn.utils.validation import check_is_fitted


class Found(NamedTuple):
    """The labels of rows, and what they are called.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        Cluster of each row, -1 for outliers. The inliers of a detector are cluster 0.
    is_detector : bool
        Whether there are inliers instead of clusters.
    """

    labels: np.ndarray
    is_detector: bool


def read_found(estimator, X) -> Found:
    """Return what a fitted estimator found in its rows X.

    Parameters
    ----------
    estimator : object
        A fitted joint method or detector.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        The rows of the fit; only their number is looked at.
    """
    holder = find_holder(estimator, "labels_")
    labels = np.asarray(holder.labels_)
    if count_rows(X) != len(labels):
        raise ValueError(
            f"X has {count_rows(X)} rows but {type(estimator).__name__} was fitted "
            f"on {len(labels)}. Give the rows of the fit, or use from_predictions."
        )
    is_detector = is_outlier_detector(holder)
    return Found(np.where(labels == 1, 0, -1) if is_detector else labels, is_detector)


def count_rows(X) -> int:
    """Return the number of rows of an array, a sparse matrix, a frame or a list."""
    return X.shape[0] if hasattr(X, "shape") else len(X)


def find_holder(estimator, name: str):
    """Return the estimator, or the one inside it that has a fitted attribute."""
    check_is_fitted(estimator)
    holder = estimator
    # A detector may keep its labels in the estimator that it wraps.
    while not hasattr(holder, name):
        holder = getattr(holder, "estimator_", None)
        if holder is None:
            raise TypeError(
                f"{type(estimator).__name__} has no {name}, which this picture shows. "
                "Use from_predictions with what it found."
            )
    return holder


def read_vector(values, name: str) -> np.ndarray:
    """Return values as an array with one axis and at least one entry."""
    values = np.asarray(values)
    if values.ndim != 1 or len(values) == 0:
        raise ValueError(
            f"{name} has shape {values.shape}; it should be (n_samples,) with at least "
            "one entry."
        )
    return values


def name_clusters(found: Found) -> dict[int, str]:
    """Return the name of each cluster that has rows, without the outliers."""
    clusters = np.unique(found.labels[found.labels >= 0]).tolist()
    if found.is_detector:
        return dict.fromkeys(clusters, "inliers")
    return {cluster: f"cluster {cluster}" for cluster in clusters}


def choose_rows(
    labels: np.ndarray,
    n_rows: int,
    outlier_share: float,
    rng: np.random.RandomState,
) -> np.ndarray:
    """Return the places of random rows; all rows in order if they are few enough.

    Parameters
    ----------
    labels : ndarray of shape (n_samples,)
        -1 for outliers.
    n_rows : int
        How many to choose.
    outlier_share : float
        Outliers are chosen before others, up to this share of ``n_rows``.
    rng : RandomState
    """
    if n_rows < 1:
        raise ValueError(f"n_rows={n_rows} should be at least 1.")
    if len(labels) <= n_rows:
        return np.arange(len(labels))
    order = rng.permutation(len(labels))
    outliers, others = order[labels[order] == -1], order[labels[order] != -1]
    n_chosen = min(len(outliers), int(outlier_share * n_rows))
    # There may be fewer other rows than places.
    n_chosen = max(n_chosen, n_rows - len(others))
    return np.concatenate([outliers[:n_chosen], others[: n_rows - n_chosen]])
