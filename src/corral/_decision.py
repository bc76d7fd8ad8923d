"""What follows from scores and a threshold."""

from abc import abstractmethod
from math import isfinite

import numpy as np


def find_cut(estimator) -> float | None:
    """Return the score above which rows are outliers; None if there is none."""
    offset = getattr(estimator, "offset_", None)
    # Minus would make -0 of an offset of 0.
    return 0.0 - float(offset) if offset is not None and isfinite(offset) else None


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
