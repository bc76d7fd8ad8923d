"""IForest is scikit-learn's."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.ensemble import IsolationForest

from corral.detectors import IForest


@pytest.mark.parametrize(
    "options",
    [{}, {"max_samples": 20, "max_features": 0.5}, {"bootstrap": True}],
    ids=["defaults", "few rows and features", "bootstrap"],
)
def test_scores_are_those_of_scikit_learn(seed, options):
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(50, 4)), rng.normal(size=(8, 4))
    ours = IForest(20, random_state=seed, **options).fit(X)
    theirs = IsolationForest(n_estimators=20, random_state=seed, **options).fit(X)
    np.testing.assert_array_equal(ours.outlier_scores_, -theirs.score_samples(X))
    np.testing.assert_array_equal(ours.score_samples(new), theirs.score_samples(new))


def test_sparse_rows_have_the_scores_of_dense_ones(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 6)) * (rng.random((50, 6)) < 0.5)
    dense = IForest(10, random_state=seed).fit(X)
    thin = IForest(10, random_state=seed).fit(sparse.csr_array(X))
    np.testing.assert_allclose(thin.outlier_scores_, dense.outlier_scores_)


def test_rows_of_the_fit_keep_their_scores(seed):
    X = np.random.default_rng(seed).normal(size=(60, 2))
    X[50:] = X[:10]
    detector = IForest(10, random_state=seed).fit(X)
    np.testing.assert_array_equal(-detector.score_samples(X), detector.outlier_scores_)
    assert (detector.outlier_scores_[50:] == detector.outlier_scores_[:10]).all()


def test_equal_rows_only_have_one_score():
    scores = IForest(10, random_state=0).fit(np.ones((10, 2))).outlier_scores_
    assert np.ptp(scores) == 0
    assert 0 < scores[0] < 1


def test_seeds_repeat(planted):
    first, again, other = (
        IForest(10, random_state=seed).fit(planted.X).outlier_scores_
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


def test_planted_outliers_are_found(planted):
    n_outliers = len(planted.outliers)
    detector = IForest(n_outliers=n_outliers, random_state=0).fit(planted.X)
    assert np.flatnonzero(detector.labels_ == -1).tolist() == planted.outliers.tolist()


def test_bad_parameters_are_named():
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match="'n_estimators' parameter of IForest"):
        IForest(0).fit(X)
    with pytest.raises(ValueError, match="'max_samples' parameter of IForest"):
        IForest(max_samples="all").fit(X)


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("offset", [1e5, 1e9])
def test_offsets_do_not_eat_digits(seed, offset, is_sparse):
    """In single precision, rows about 1e9 are all equal."""
    kind = sparse.csr_array if is_sparse else np.asarray
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(60, 3)), rng.normal(size=(5, 3))
    plain = IForest(20, random_state=seed).fit(X)
    moved = IForest(20, random_state=seed).fit(kind(X + offset))
    np.testing.assert_allclose(moved.outlier_scores_, plain.outlier_scores_, atol=0.02)
    np.testing.assert_allclose(
        moved.score_samples(kind(new + offset)), plain.score_samples(new), atol=0.02
    )


@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1e50, 1e300])
def test_the_scale_of_a_column_does_not_matter(seed, scale):
    """Scikit-learn refuses large values and takes small ones as constant."""
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(60, 3)), rng.normal(size=(5, 3))
    scales = np.array([1.0, scale, 1.0])
    plain = IForest(20, random_state=seed).fit(X)
    for kind in (np.asarray, sparse.csr_array):
        scaled = IForest(20, random_state=seed).fit(kind(X * scales))
        np.testing.assert_allclose(
            scaled.outlier_scores_, plain.outlier_scores_, atol=0.02
        )
        np.testing.assert_allclose(
            scaled.score_samples(kind(new * scales)),
            plain.score_samples(new),
            atol=0.02,
        )


@pytest.mark.parametrize("power", [-1000, -40, -15, 40, 900])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_a_power_of_two_changes_nothing(seed, power, kind):
    """Scikit-learn does not cut where values differ by less than 1e-7.

    Beside a far row, the others do.
    """
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(60, 2)), rng.normal(size=(5, 2))
    X[0] = 1e12
    plain = IForest(20, random_state=seed).fit(kind(X))
    assert len(np.unique(plain.outlier_scores_)) > 30
    scaled = IForest(20, random_state=seed).fit(kind(np.ldexp(X, power)))
    np.testing.assert_array_equal(scaled.outlier_scores_, plain.outlier_scores_)
    np.testing.assert_array_equal(
        scaled.score_samples(kind(np.ldexp(new, power))), plain.score_samples(new)
    )


def test_new_rows_beyond_single_precision_are_beyond_nearly_all_others(seed):
    # A row of the fit may be split off as early in other columns.
    X = np.random.default_rng(seed).normal(size=(60, 3))
    detector = IForest(20, random_state=seed).fit(X)
    far = detector.score_samples([[1e6] * 3, [1e300] * 3])
    assert far[0] == far[1] <= np.quantile(detector.score_samples(X), 0.1)
