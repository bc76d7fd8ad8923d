"""Scikit-learn's own checks."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from corral import COR, CORDetector, all_methods
from corral.detectors import TONMF, IForest
from corral.rivals import KCC, KMeansMinusMinus, KMeansPlusOne

SPECIAL = {
    # The numbers chosen, as by default; the detector below has them given.
    "cor": COR(n_partitions=6, k_max=3),
    "cor-detector": CORDetector(
        COR(n_clusters=2, contamination=0.05, n_partitions=10, random_state=0)
    ),
    "kcc": KCC(n_clusters=2, n_partitions=10),
    # A forest of few trees breaks the same rules as one of many.
    "iforest": IForest(n_estimators=20),
}
ESTIMATORS = [
    SPECIAL.get(name) or method.make() for name, method in all_methods().items()
]

# Scikit-learn exempts its KMeans from these for the same reason: the rows that a run
# starts from are drawn by their position, so leaving out or repeating rows changes
# the draw.
_BY_POSITION = {
    "check_sample_weight_equivalence_on_dense_data": "starts are drawn by position",
    "check_sample_weight_equivalence_on_sparse_data": "starts are drawn by position",
}
# These two give negative values to detectors, whatever their tags say; the tests of
# TONMF run both on values that are not negative.
_NOT_NEGATIVE = {
    "check_outliers_train": "gives negative values",
    "check_outliers_fit_predict": "gives negative values",
}
EXEMPTIONS = {
    COR: _BY_POSITION,
    CORDetector: _BY_POSITION,
    KCC: _BY_POSITION,
    KMeansMinusMinus: _BY_POSITION,
    KMeansPlusOne: _BY_POSITION,
    TONMF: _NOT_NEGATIVE,
}


@pytest.mark.filterwarnings(
    # Some checks fit pure noise in a few rows, where the fusion may not come to rest.
    "ignore::sklearn.exceptions.ConvergenceWarning"
)
@pytest.mark.filterwarnings(
    # Some have fewer rows than neighbours are asked for.
    "ignore:n_neighbors:UserWarning"
)
@parametrize_with_checks(
    ESTIMATORS, expected_failed_checks=lambda each: EXEMPTIONS.get(type(each), {})
)
def test_sklearn_checks(estimator, check):
    check(estimator)
