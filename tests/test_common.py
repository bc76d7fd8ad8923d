"""Scikit-learn's own checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from corral import COR, CORDetector

ESTIMATORS = [
    COR(n_clusters=3, n_partitions=20),
    CORDetector(COR(n_clusters=2, n_partitions=20, random_state=0)),
]

# Scikit-learn exempts its KMeans from these for the same reason: the rows that a run
# starts from are drawn by their position, so leaving out or repeating rows changes
# the draw.
EXEMPTIONS = {
    "check_sample_weight_equivalence_on_dense_data": "starts are drawn by position",
    "check_sample_weight_equivalence_on_sparse_data": "starts are drawn by position",
}


@pytest.mark.filterwarnings(
    # Some checks fit pure noise in a few rows, where the fusion may not come to rest.
    "ignore::sklearn.exceptions.ConvergenceWarning"
)
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda _: EXEMPTIONS)
def test_sklearn_checks(estimator, check):
    check(estimator)
