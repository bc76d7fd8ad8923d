"""What all detectors share: checks, threshold, signs and answers for new rows."""

from abc import abstractmethod
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin
from sklearn.utils.validation import check_is_fitted

from corral._decision import DecisionMixin
from corral._outliers import costliest, find_offset
from corral._room import RoomMixin
from corral._saving import SaveMixin
from corral._sklearn_compat import Interval, _fit_context
from corral._threads import contain_sklearn
from corral._validation import check_scores, count_outliers, read_rows


class Detector(RoomMixin, SaveMixin, DecisionMixin, OutlierMixin, BaseEstimator):
    """Base of the detectors.

    A detector gives two methods: ``_fit`` learns from rows and returns their scores,
    and ``_score`` returns the scores of any rows. Both take rows that are checked, and
    scores grow with strangeness. A row of the fit must get the score of the fit again.

    ``fit_predict`` answers like ``predict``, as scikit-learn's detectors do: rows that
    tie at the threshold are inliers. Exactly ``n_outliers_`` rows are -1 in
    ``labels_``.
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_outliers": [Interval(Integral, 0, None, closed="left"), None],
        "contamination": [Interval(Real, 0, 0.5, closed="right"), None],
    }

    # Whether rows may be sparse.
    _accepts_sparse = True

    @abstractmethod
    def _fit(self, X) -> np.ndarray:
        """Learn from the rows; return their scores, of shape (n_samples,)."""

    @abstractmethod
    def _score(self, X) -> np.ndarray:
        """Return the scores of rows, of shape (n_samples,)."""

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X, y=None):
        """Learn what is normal and find the outliers.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Here because scikit-learn passes it.

        Returns
        -------
        self : object
            The fitted detector.
        """
        X = self._read(X, reset=True)
        n_outliers = count_outliers(
            self.n_outliers, self.contamination, X.shape[0], n_clusters=0
        )
        self.__dict__.pop("offset_", None)
        with contain_sklearn(getattr(self, "n_jobs", None)):
            scores = self._fit(X)
        check_scores(scores, type(self).__name__)
        outliers = costliest(scores, n_outliers)
        self.outlier_scores_ = scores
        self.n_outliers_ = n_outliers
        self.offset_ = find_offset(scores, outliers, n_outliers)
        self.labels_ = np.ones(X.shape[0], dtype=int)
        self.labels_[outliers] = -1
        return self

    def predict(self, X):
        """Return +1 for inliers and -1 for outliers.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows; each is answered by itself.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Of +1 and -1.
        """
        return np.where(self.decision_function(X) < 0, -1, 1)

    def score_samples(self, X):
        """Return how normal each row is; lower is stranger.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        scores : ndarray of shape (n_samples,)
            Minus the outlier score; a row of the fit has its ``outlier_scores_``.
        """
        check_is_fitted(self)
        with contain_sklearn(getattr(self, "n_jobs", None)):
            scores = self._score(self._read(X, reset=False))
        check_scores(scores, type(self).__name__)
        return -scores

    def _read(self, X, *, reset: bool):
        X = read_rows(self, X, reset=reset, accept_sparse=self._accepts_sparse)
        if reset:
            self._check_room(X)
        return X

    def __sklearn_is_fitted__(self):
        return hasattr(self, "offset_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self._accepts_sparse
        return tags
