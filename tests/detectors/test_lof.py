"""LOF is scikit-learn's, with one answer for rows of the fit."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse
from sklearn.neighbors import LocalOutlierFactor

from corral.detectors import LOF, _lof


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
@pytest.mark.parametrize("n_features", [2, 20])
def test_scores_are_those_of_scikit_learn(seed, metric, n_features):
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(60, n_features)), rng.normal(size=(8, n_features))
    ours = LOF(7, metric=metric).fit(X)
    theirs = LocalOutlierFactor(7, metric=metric, novelty=True).fit(X)
    np.testing.assert_array_equal(
        ours.outlier_scores_, -theirs.negative_outlier_factor_
    )
    np.testing.assert_array_equal(ours.score_samples(new), theirs.score_samples(new))


def test_scores_are_the_literal_ones(seed):
    X = np.random.default_rng(seed).normal(size=(30, 2))
    k = 4
    D = np.linalg.norm(X[:, None] - X[None], axis=2)
    near = [[j for j in np.argsort(D[i]) if j != i][:k] for i in range(30)]
    reach = [[max(D[j, near[j][-1]], D[i, j]) for j in near[i]] for i in range(30)]
    density = [k / sum(each) for each in reach]
    expected = [sum(density[j] for j in near[i]) / k / density[i] for i in range(30)]
    np.testing.assert_allclose(LOF(k).fit(X).outlier_scores_, expected, rtol=1e-8)


def test_rows_of_the_fit_keep_their_scores(seed):
    """Scikit-learn's novelty mode would count the row as its own neighbour."""
    X = np.random.default_rng(seed).normal(size=(60, 2))
    X[50:] = X[:10]
    detector = LOF(20, n_outliers=3).fit(X)
    np.testing.assert_array_equal(-detector.score_samples(X), detector.outlier_scores_)
    assert (detector.outlier_scores_[50:] == detector.outlier_scores_[:10]).all()


def test_equal_rows_only_have_one_finite_score():
    scores = LOF(3).fit(np.ones((10, 2))).outlier_scores_
    np.testing.assert_array_equal(scores, np.ones(10))


def test_sparse_rows_have_the_scores_of_dense_ones(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 20)) * (rng.random((40, 20)) < 0.4)
    np.testing.assert_allclose(
        LOF(5).fit(sparse.csr_array(X)).outlier_scores_,
        LOF(5).fit(X).outlier_scores_,
        rtol=1e-8,
    )


def test_constant_columns_change_nothing(seed):
    X = np.random.default_rng(seed).normal(size=(30, 2))
    padded = np.column_stack([X, np.full(30, 3.0)])
    np.testing.assert_allclose(
        LOF(5).fit(X).outlier_scores_, LOF(5).fit(padded).outlier_scores_, rtol=1e-12
    )


def test_planted_outliers_are_found(planted):
    detector = LOF(n_outliers=len(planted.outliers)).fit(planted.X)
    assert np.flatnonzero(detector.labels_ == -1).tolist() == planted.outliers.tolist()


def test_fewer_rows_than_neighbors_warn():
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.warns(UserWarning, match="9 neighbours are used instead"):
        detector = LOF(20).fit(X)
    scores = LOF(9).fit(X).outlier_scores_
    np.testing.assert_array_equal(detector.outlier_scores_, scores)


def test_bad_parameters_are_named():
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match="'n_neighbors' parameter of LOF"):
        LOF(0).fit(X)
    with pytest.raises(ValueError, match="n_samples=1 should be at least 2: LOF"):
        LOF().fit(X[:1])


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n_features", [3, 20], ids=["tree", "brute force"])
def test_offsets_do_not_eat_digits(seed, n_features, is_sparse):
    """Scikit-learn gives scores of 1e10 by brute force here."""
    kind = sparse.csr_array if is_sparse else np.asarray
    rng = np.random.default_rng(seed)
    X, new = (rng.normal(size=(n, n_features)).round(6) for n in (60, 5))
    plain, moved = LOF(7).fit(X), LOF(7).fit(kind(X + 1e8))
    np.testing.assert_allclose(moved.outlier_scores_, plain.outlier_scores_, rtol=1e-6)
    np.testing.assert_allclose(
        moved.score_samples(kind(new + 1e8)), plain.score_samples(new), rtol=1e-6
    )


def test_large_constant_columns_change_nothing(seed):
    X = np.random.default_rng(seed).normal(size=(60, 20))
    padded = np.column_stack([X, np.full(60, 1e12)])
    np.testing.assert_allclose(
        LOF(7).fit(padded).outlier_scores_, LOF(7).fit(X).outlier_scores_, rtol=1e-9
    )


@pytest.mark.parametrize("scale", [1e300, 1e160, 1e-20, 1e-300])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
def test_extreme_scales_do_not_matter(seed, scale, metric):
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(50, 3)), rng.normal(size=(5, 3))
    plain, scaled = LOF(8, metric=metric).fit(X), LOF(8, metric=metric).fit(scale * X)
    np.testing.assert_allclose(scaled.outlier_scores_, plain.outlier_scores_, rtol=1e-7)
    np.testing.assert_allclose(
        scaled.score_samples(scale * new), plain.score_samples(new), rtol=1e-7
    )


def test_new_rows_beyond_all_measure_are_strange(seed):
    X = np.random.default_rng(seed).normal(size=(30, 3))
    for scale in (1.0, 1e-300):
        detector = LOF(5).fit(scale * X)
        assert detector.predict(np.full((1, 3), 1e300)).tolist() == [-1]


def test_cosine_needs_little_memory(seed, monkeypatch):
    """All distances of these rows would take 72 MB at once."""
    monkeypatch.setattr(_lof, "_WORKING_MEMORY", 1)
    X = np.random.default_rng(seed).normal(size=(3000, 3))
    tracemalloc.start()
    LOF(metric="cosine").fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20e6
