"""What an estimator found, in the same terms for all methods."""

from dataclasses import dataclass

import numpy as np
from sklearn.base import is_outlier_detector
from sklearn.utils.validation import check_is_fitted

from corral._decision import find_cut


@dataclass(frozen=True)
class Outcome:
    """Labels and scores of rows.

    Attributes
    ----------
    labels : ndarray of shape (n_samples,)
        Cluster of each row, -1 for outliers. The rows that a detector keeps are one
        group with the label 0.
    nearest : ndarray of shape (n_samples,)
        The same, with the nearest cluster of outliers.
    scores : ndarray of shape (n_samples,)
        Higher is stranger.
    cut : float or None
        Rows with a higher score are outliers; None where none are.
    n_clusters : int
        0 for a detector.
    """

    labels: np.ndarray
    nearest: np.ndarray
    scores: np.ndarray
    cut: float | None
    n_clusters: int

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return len(self.labels)

    @property
    def n_groups(self) -> int:
        """Number of clusters, 1 for a detector."""
        return max(self.n_clusters, 1)

    @property
    def is_outlier(self) -> np.ndarray:
        """Which rows are outliers, of shape (n_samples,)."""
        return self.labels == -1

    @property
    def order(self) -> np.ndarray:
        """All rows, the strangest first.

        Among equal scores the outliers come first, then the earlier rows.
        """
        return np.lexsort((~self.is_outlier, -self.scores))


def read_outcome(estimator, X, *, is_training: bool) -> Outcome:
    """Collect what was found in the rows of the fit, or in others.

    Parameters
    ----------
    estimator : fitted estimator
        As :func:`~corral._detector.unwrap` returns it.
    X : rows, or None
        Only needed for other rows than those of the fit.
    is_training : bool
        Whether the rows are those of the fit.
    """
    check_is_fitted(estimator)
    if is_training:
        labels, scores = np.asarray(estimator.labels_), estimator.outlier_scores_
        nearest = getattr(estimator, "nearest_labels_", None)
    else:
        labels, scores, nearest = _judge(estimator, X)
    if is_outlier_detector(estimator):
        labels, n_clusters = np.where(labels == -1, -1, 0), 0
    else:
        n_clusters = count_clusters(estimator)
    if nearest is None or not n_clusters:
        nearest = np.maximum(labels, 0)
    return Outcome(
        labels=labels.astype(np.intp),
        nearest=np.asarray(nearest).astype(np.intp),
        scores=np.asarray(scores, dtype=np.float64),
        cut=find_cut(estimator),
        n_clusters=n_clusters,
    )


def count_clusters(estimator) -> int:
    """Return the number of clusters that a joint method found."""
    if hasattr(estimator, "n_clusters_"):
        return int(estimator.n_clusters_)
    return int(estimator.n_clusters)


def _judge(estimator, X) -> tuple:
    """Return labels, scores and nearest clusters of new rows."""
    name = type(estimator).__name__
    if X is None:
        raise ValueError("X=None has no rows to judge. Give X, or is_training=True.")
    if not hasattr(estimator, "predict"):
        raise ValueError(
            f"{name} has no predict, so it cannot judge rows that were not in fit. "
            "Choose another method, or fit it with these rows."
        )
    nearest = None
    if hasattr(estimator, "transform"):
        nearest = estimator.transform(X).argmin(axis=1)
    elif hasattr(estimator, "_read_costs"):
        nearest = estimator._read_costs(X).argmin(axis=1)
    elif hasattr(estimator, "_find_core"):
        _, nearest = estimator._find_core(estimator._read(X, reset=False))
        nearest = np.maximum(nearest, 0)
    return np.asarray(estimator.predict(X)), -estimator.score_samples(X), nearest
