"""FastABOD against the paper's definition, written out."""

from itertools import combinations

import numpy as np
import pytest
from scipy import sparse

from corral.detectors import FastABOD, _neighbors


def literal_abof(X, k, row, skip=-1):
    """Return the weighted mean of squares minus the square of the weighted mean."""
    pairs = sorted((np.linalg.norm(X[j] - row), j) for j in range(len(X)) if j != skip)
    near = [X[j] - row for distance, j in pairs[:k] if distance > 0]
    weights, values = [], []
    for b, c in combinations(near, 2):
        lengths = np.linalg.norm(b) * np.linalg.norm(c)
        weights.append(1 / lengths)
        values.append(b @ c / lengths**2)
    weights, values = np.array(weights), np.array(values)
    mean = (weights * values).sum() / weights.sum()
    return (weights * values**2).sum() / weights.sum() - mean**2


@pytest.mark.parametrize("k", [3, 4, 9])
@pytest.mark.parametrize("n_features", [1, 2, 8])
def test_scores_are_the_literal_ones(seed, k, n_features):
    X = np.random.default_rng(seed).normal(size=(40, n_features))
    detector = FastABOD(k).fit(X)
    expected = [literal_abof(X, k, X[i], i) for i in range(40)]
    np.testing.assert_allclose(-detector.outlier_scores_, expected, rtol=1e-7)
    np.testing.assert_allclose(detector.score_samples(X), expected, rtol=1e-7)


def test_scores_are_the_literal_ones_with_ties_and_equal_rows(seed):
    X = np.random.default_rng(seed).integers(0, 5, (50, 2)).astype(float)
    scores = FastABOD(12).fit(X).outlier_scores_
    expected = [literal_abof(X, 12, X[i], i) for i in range(50)]
    np.testing.assert_allclose(-scores, expected, rtol=1e-9)


def test_new_rows_are_scored_by_the_literal_formula(seed):
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(40, 3)), 2 * rng.normal(size=(7, 3))
    scores = FastABOD(6).fit(X).score_samples(new)
    expected = [literal_abof(X, 6, row) for row in new]
    np.testing.assert_allclose(scores, expected, rtol=1e-7)


def test_abof_by_hand():
    # The middle of a square with corners at distance 1: of six pairs, four are at a
    # right angle (0) and two opposite (-1), all of weight 1. Variance 1/3 - 1/9.
    X = np.array([[0.0, 0.0], [1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    detector = FastABOD(4).fit(X)
    np.testing.assert_allclose(detector.score_samples(X[:1]), [2 / 9])


def test_scores_go_with_the_inverse_fourth_power_of_the_scale(seed):
    X = np.random.default_rng(seed).normal(size=(50, 3))
    scores = FastABOD(8).fit(X).outlier_scores_
    larger = FastABOD(8).fit(10 * X + 70).outlier_scores_
    np.testing.assert_allclose(larger, scores / 10**4, rtol=1e-8)


def test_turning_the_rows_does_not_matter(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 3))
    turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    scores = FastABOD(8).fit(X).outlier_scores_
    np.testing.assert_allclose(FastABOD(8).fit(X @ turn).outlier_scores_, scores)


@pytest.mark.parametrize("scale", [1e-60, 1e60])
def test_extreme_scales_give_the_order_of_ordinary_ones(seed, scale):
    X = np.random.default_rng(seed).normal(size=(50, 3))
    order = np.argsort(FastABOD(8).fit(X).outlier_scores_)
    scaled = FastABOD(8).fit(scale * X).outlier_scores_
    assert np.isfinite(scaled).all()
    np.testing.assert_array_equal(np.argsort(scaled), order)


def test_equal_rows_are_left_out_and_the_thick_of_them_is_ordinary(seed):
    rng = np.random.default_rng(seed)
    X = np.vstack([rng.normal(size=(30, 2)), np.zeros((7, 2))])
    scores = FastABOD(8).fit(X).outlier_scores_
    expected = [literal_abof(X, 8, X[i], i) for i in range(30)]
    np.testing.assert_allclose(-scores[:30], expected, rtol=1e-7)
    # Of the eight neighbours of the others, six are equal to them: too few are left.
    assert (scores[30:] == scores[:30].min()).all()


def test_a_row_that_sees_one_place_only_is_the_strangest():
    X = np.vstack([np.ones((8, 2)), [[5.0, 5.0]], np.eye(2), -np.eye(2)])
    detector = FastABOD(5, n_outliers=1).fit(X)
    np.testing.assert_allclose(detector.outlier_scores_[8], 0.0, atol=1e-15)
    assert detector.labels_[8] == -1


def test_equal_rows_only_have_score_zero():
    detector = FastABOD(3).fit(np.ones((10, 2)))
    assert (detector.outlier_scores_ == 0).all()
    assert detector.predict([[1.0, 1.0], [4.0, 4.0]]).tolist() == [1, 1]


def test_constant_columns_change_nothing(seed):
    X = np.random.default_rng(seed).normal(size=(30, 2))
    padded = np.column_stack([X, np.full(30, 1e6)])
    scores = FastABOD(5).fit(X).outlier_scores_
    np.testing.assert_allclose(
        FastABOD(5).fit(padded).outlier_scores_, scores, rtol=1e-12
    )


def test_sparse_rows_have_the_scores_of_dense_ones(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 12)) * (rng.random((40, 12)) < 0.4)
    new = X[:4] * 1.5
    dense = FastABOD(5).fit(X)
    thin = FastABOD(5).fit(sparse.csr_array(X))
    np.testing.assert_allclose(thin.outlier_scores_, dense.outlier_scores_, rtol=1e-9)
    np.testing.assert_allclose(
        thin.score_samples(sparse.csr_array(new)), dense.score_samples(new), rtol=1e-9
    )


def test_blocks_and_threads_do_not_change_scores(seed, monkeypatch):
    X = np.random.default_rng(seed).normal(size=(60, 3))
    whole = FastABOD(7, n_jobs=1).fit(X).outlier_scores_
    monkeypatch.setattr(_neighbors, "_BLOCK_BYTES", 10_000)
    monkeypatch.setattr(_neighbors, "_SEARCH_BYTES", 10_000)
    for n_jobs in (1, 3):
        scores = FastABOD(7, n_jobs=n_jobs).fit(X).outlier_scores_
        np.testing.assert_array_equal(scores, whole)


def test_rows_of_the_fit_keep_their_scores(seed):
    X = np.random.default_rng(seed).integers(0, 6, (60, 2)).astype(np.float32)
    detector = FastABOD(5).fit(X)
    np.testing.assert_array_equal(-detector.score_samples(X), detector.outlier_scores_)


def test_planted_outliers_are_found(planted):
    detector = FastABOD(20, n_outliers=len(planted.outliers)).fit(planted.X)
    assert np.flatnonzero(detector.labels_ == -1).tolist() == planted.outliers.tolist()


def test_bad_parameters_are_named():
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match="'n_neighbors' parameter of FastABOD"):
        FastABOD(2).fit(X)
    with pytest.raises(ValueError, match="n_samples=3 should be at least 4: FastABOD"):
        FastABOD(3).fit(X[:3])


@pytest.mark.parametrize("exponent", [-1000, -500, -30, 30, 110])
def test_extreme_units_are_powers_of_two(seed, exponent):
    """Within 2**120, the ABOF is that of X; beyond, that of X in other units."""
    X = np.random.default_rng(seed).normal(size=(50, 3))
    plain = FastABOD(8).fit(X).outlier_scores_
    scaled = FastABOD(8).fit(np.ldexp(X, exponent)).outlier_scores_
    powers = np.log2(scaled / plain) / 4
    np.testing.assert_allclose(powers, powers[0], rtol=0, atol=1e-9)
    if abs(exponent) < 115:
        np.testing.assert_allclose(powers, -exponent)
    else:
        np.testing.assert_allclose(powers, np.round(powers), atol=1e-9)
        assert abs(powers[0]) < 3


@pytest.mark.parametrize("scale", [1e-300, 1e160, 1e300])
def test_new_rows_are_scored_in_the_units_of_the_fit(seed, scale):
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(50, 3)), rng.normal(size=(20, 3))
    plain = FastABOD(8).fit(X).score_samples(new)
    scaled = FastABOD(8).fit(scale * X).score_samples(scale * new)
    np.testing.assert_allclose(scaled / scaled[0], plain / plain[0], rtol=1e-8)


def test_a_far_row_does_not_change_the_scores_of_others(seed):
    X = np.random.default_rng(seed).normal(size=(50, 3))
    scores = FastABOD(8).fit(np.vstack([X, np.full((1, 3), 1e16)])).outlier_scores_
    np.testing.assert_allclose(scores[:50], FastABOD(8).fit(X).outlier_scores_)
    assert scores[50] == scores.max()
