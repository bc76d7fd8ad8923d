"""What follows from scores and a threshold."""

from abc import abstractmethod

import numpy as np


class DecisionMixin:
    """Mixin of the estimators with ``score_samples`` and ``offset_``."""

    offset_: float

    @abstractmethod
    def score_samples(self, X) -> np.ndarray:
        """Return how normal each row is; lower is stranger.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.
        """

    def decision_function(self, X):
        """Return how far each row is from being an outlier; outliers are negative.

        Parameters
        ----------
        X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
            The rows.

        Returns
        -------
        decisions : ndarray of shape (n_samples,)
            ``score_samples(X) - offset_``.
        """
        return self.score_samples(X) - self.offset_
