"""Six rows worked out by hand, as a fitted estimator without a fit."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClusterMixin


class FittedByHand(ClusterMixin, BaseEstimator):
    """The attributes of a fitted COR, set to what a test needs."""

    def __init__(
        self, n_clusters=2, n_outliers=1, categorical_features=None, random_state=0
    ):
        self.n_clusters = n_clusters
        self.n_outliers = n_outliers
        self.categorical_features = categorical_features
        self.random_state = random_state

    def fit(self, X, y=None):
        return self


@pytest.fixture
def six_rows():
    """Two rows near (0, 0), three near (10, 0), and one far up at (0, 90)."""
    return np.array([[-1, 0], [1, 0], [9, 0], [10, 0], [11, 0], [0, 90.0]])


@pytest.fixture
def estimator():
    estimator = FittedByHand()
    estimator.labels_ = np.array([0, 0, 1, 1, 1, -1])
    estimator.nearest_labels_ = np.array([0, 0, 1, 1, 1, 0])
    estimator.outlier_scores_ = np.array([2.0, 2.0, 1.5, 1.0, 1.5, 7.0])
    estimator.offset_ = -4.5
    estimator.n_outliers_ = 1
    estimator.n_partitions_ = 100
    estimator.n_codes_ = 4
    estimator.n_features_in_ = 2
    estimator.cluster_centers_ = np.array([[0.0, 0.0], [10.0, 0.0]])
    estimator.n_iter_ = 3
    estimator.objective_ = 8.0
    estimator.objective_history_ = np.array([20.0, 9.0, 8.0])
    return estimator
