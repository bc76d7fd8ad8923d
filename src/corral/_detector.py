"""The detector's view of COR: +1 for inliers, -1 for outliers."""

from typing import ClassVar

import numpy as np
from sklearn.base import BaseEstimator, OutlierMixin, clone
from sklearn.frozen import FrozenEstimator
from sklearn.utils.validation import check_is_fitted

from corral._cor import COR
from corral._decision import DecisionMixin
from corral._saving import SaveMixin
from corral._sklearn_compat import HasMethods, _fit_context


class CORDetector(SaveMixin, DecisionMixin, OutlierMixin, BaseEstimator):
    """COR with the answers of scikit-learn's outlier detectors.

    Labels are +1 for rows that belong to a cluster and -1 for outliers, and scores are
    lower for stranger rows, so it takes the place of ``IsolationForest`` and its kin.

    Parameters
    ----------
    estimator : COR, default=None
        What to fit; ``COR(contamination=0.05)`` if None. A fitted one in a
        :class:`sklearn.frozen.FrozenEstimator` is used as it is.

    Attributes
    ----------
    estimator_ : COR
        The fitted estimator, with clusters and all.
    offset_ : float
        Rows with ``score_samples`` below it are outliers.
    n_features_in_ : int
        Number of features of X.

    See Also
    --------
    COR : The clusterer.

    Notes
    -----
    ``fit_predict`` answers like ``predict``, as detectors do: rows that tie at the
    threshold are inliers. Exactly ``n_outliers`` rows are -1 in ``estimator_.labels_``.

    Examples
    --------
    >>> import numpy as np
    >>> from corral import COR, CORDetector
    >>> X = np.random.default_rng(0).normal(size=(100, 2))
    >>> X[7] = [20.0, 20.0]
    >>> detector = CORDetector(COR(n_clusters=2, n_outliers=1, random_state=0)).fit(X)
    >>> detector.predict(X[[6, 7]])
    array([ 1, -1])
    """

    _parameter_constraints: ClassVar[dict] = {
        "estimator": [HasMethods(["fit", "score_samples"]), None]
    }

    def __init__(self, estimator=None):
        self.estimator = estimator

    @_fit_context(prefer_skip_nested_validation=False)
    def fit(self, X, y=None, sample_weight=None):
        """Find the outliers.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.
        y : Ignored
            Here because scikit-learn passes it.
        sample_weight : array-like of shape (n_samples,), default=None
            Passed to the estimator.

        Returns
        -------
        self : CORDetector
            The fitted detector.
        """
        estimator = self._make_estimator()
        weights = {} if sample_weight is None else {"sample_weight": sample_weight}
        self.estimator_ = estimator.fit(X, y, **weights)
        self.offset_ = self.estimator_.offset_
        self.n_features_in_ = self.estimator_.n_features_in_
        self.__dict__.pop("feature_names_in_", None)
        if hasattr(self.estimator_, "feature_names_in_"):
            self.feature_names_in_ = self.estimator_.feature_names_in_
        return self

    def _make_estimator(self):
        # Who asks a detector wants outliers, and scikit-learn's checks do, too.
        if self.estimator is None:
            return COR(contamination=0.05)
        return clone(self.estimator)

    def predict(self, X):
        """Return +1 for inliers and -1 for outliers.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        labels : ndarray of shape (n_samples,)
            Of +1 and -1.
        """
        check_is_fitted(self)
        return np.where(self.estimator_.predict(X) == -1, -1, 1)

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
        check_is_fitted(self)
        return self.estimator_.score_samples(X)

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags


def unwrap(estimator):
    """Return the estimator that knows the clusters, where a detector holds one."""
    if isinstance(estimator, CORDetector):
        check_is_fitted(estimator)
        estimator = estimator.estimator_
    if isinstance(estimator, FrozenEstimator):
        estimator = estimator.estimator
    return estimator
