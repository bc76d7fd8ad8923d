"""What the rivals with centres share: threshold, signs and answers for new rows."""

from abc import abstractmethod
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.validation import check_is_fitted

from corral._decision import DecisionMixin
from corral._outliers import costliest, find_offset
from corral._room import RoomMixin
from corral._saving import SaveMixin
from corral._sklearn_compat import Interval
from corral._validation import check_scores, read_rows


class JointClusterer(RoomMixin, SaveMixin, DecisionMixin, ClusterMixin, BaseEstimator):
    """Base of the methods that find clusters and set rows aside by their cost.

    A method gives ``fit``, which ends in ``_set_outcome``, and ``_costs``, which
    returns what each row costs in each cluster. A row of the fit must get the costs of
    the fit again.
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_clusters": [Interval(Integral, 1, None, closed="left")],
        "n_outliers": [Interval(Integral, 0, None, closed="left"), None],
        "contamination": [Interval(Real, 0, 1, closed="left"), None],
    }

    # Whether rows may be sparse.
    _accepts_sparse = True

    @abstractmethod
    def _costs(self, X) -> np.ndarray:
        """Return the costs of checked rows, of shape (n_samples, n_clusters)."""

    def predict(self, X):
        """Return the cluster of each row, -1 for outliers.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows; each is answered by itself.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Cluster of each row, -1 for outliers.
        """
        costs = self._read_costs(X)
        labels = costs.argmin(axis=1).astype(np.int32)
        labels[-costs.min(axis=1) < self.offset_] = -1
        return labels

    def score_samples(self, X):
        """Return how normal each row is; lower is stranger.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Minus the cost of each row in its nearest cluster.
        """
        return -self._read_costs(X).min(axis=1)

    def _set_outcome(self, costs: np.ndarray, n_outliers: int) -> None:
        """Set the labels, scores and threshold from the costs of all rows."""
        check_scores(costs, type(self).__name__)
        self.nearest_labels_ = costs.argmin(axis=1).astype(np.int32)
        self.outlier_scores_ = costs.min(axis=1)
        outliers = costliest(self.outlier_scores_, n_outliers)
        self.n_outliers_ = n_outliers
        self.offset_ = find_offset(self.outlier_scores_, outliers, n_outliers)
        self.labels_ = self.nearest_labels_.copy()
        self.labels_[outliers] = -1

    def _read_costs(self, X) -> np.ndarray:
        check_is_fitted(self)
        costs = self._costs(self._read(X, reset=False))
        check_scores(costs, type(self).__name__)
        return costs

    def _read(self, X, *, reset: bool):
        X = read_rows(self, X, reset=reset, accept_sparse=self._accepts_sparse)
        if reset:
            self._check_room(X)
        return X

    def __sklearn_is_fitted__(self):
        return hasattr(self, "labels_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        return tags
