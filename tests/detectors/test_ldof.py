"""LDOF against the paper's definition, written out."""

import tracemalloc

import numpy as np
import pytest
from scipy import sparse

from corral.detectors import LDOF, _neighbors


def literal_ldof(X, k, row, skip=-1):
    pairs = sorted((np.linalg.norm(X[j] - row), j) for j in range(len(X)) if j != skip)
    near = [j for _, j in pairs[:k]]
    outer = sum(np.linalg.norm(X[q] - row) for q in near) / k
    inner = sum(np.linalg.norm(X[q] - X[p]) for q in near for p in near if q != p)
    return outer / (inner / (k * (k - 1)))


@pytest.mark.parametrize("k", [2, 3, 9])
@pytest.mark.parametrize("n_features", [2, 8])
def test_ldof_is_the_literal_one(seed, k, n_features):
    X = np.random.default_rng(seed).normal(size=(40, n_features))
    scores = LDOF(k).fit(X).outlier_scores_
    expected = [literal_ldof(X, k, X[i], i) for i in range(40)]
    np.testing.assert_allclose(scores, expected, rtol=1e-10)


def test_ldof_is_the_literal_one_with_ties_and_equal_rows(seed):
    X = np.random.default_rng(seed).integers(0, 5, (50, 2)).astype(float)
    scores = LDOF(12).fit(X).outlier_scores_
    expected = [literal_ldof(X, 12, X[i], i) for i in range(50)]
    np.testing.assert_allclose(scores, expected, rtol=1e-10)


def test_new_rows_are_scored_by_the_literal_formula(seed):
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(40, 3)), 2 * rng.normal(size=(7, 3))
    scores = -LDOF(5).fit(X).score_samples(new)
    expected = [literal_ldof(X, 5, row) for row in new]
    np.testing.assert_allclose(scores, expected, rtol=1e-10)


def test_ldof_by_hand():
    # Rows at 0, 1, 3 and 7, two neighbours. 0: mean(1, 3) / 2 = 1; 1: mean(1, 2) / 3;
    # 3: mean(2, 3) / 1; 7: mean(4, 6) / 2.
    X = np.array([[0.0], [1.0], [3.0], [7.0]])
    detector = LDOF(2, n_outliers=1).fit(X)
    np.testing.assert_allclose(detector.outlier_scores_, [1.0, 0.5, 2.5, 2.5])
    # Of two that tie, the first is set aside.
    assert detector.labels_.tolist() == [1, 1, -1, 1]


def test_the_middle_of_its_neighbors_is_near_the_lower_bound(seed):
    """Theorem 1 of the paper: LDOF is above 1/2, and near it amid many neighbours."""
    half = np.random.default_rng(seed).normal(size=(40, 3))
    # No place is nearer to all rows than the middle of their symmetry.
    scores = LDOF(80).fit(np.vstack([half, -half, np.zeros(3)])).outlier_scores_
    assert scores.min() == scores[80]
    assert 0.5 < scores[80] < 0.8


def test_ldof_never_falls_to_half(seed):
    rng = np.random.default_rng(seed)
    for k in (2, 5, 30):
        assert LDOF(k).fit(rng.normal(size=(60, 2))).outlier_scores_.min() >= 0.5


def test_scale_and_place_do_not_matter(seed):
    X = np.random.default_rng(seed).normal(size=(50, 3))
    scores = LDOF(8).fit(X).outlier_scores_
    moved = LDOF(8).fit(1000 * X + 77).outlier_scores_
    np.testing.assert_allclose(scores, moved, rtol=1e-8)


def test_equal_rows_only_are_all_ordinary():
    detector = LDOF(3).fit(np.ones((10, 2)))
    assert detector.outlier_scores_.tolist() == [1.0] * 10
    assert 1e10 < -detector.score_samples([[2.0, 2.0]])[0] < np.inf


def test_a_row_beside_equal_rows_is_the_strangest():
    X = np.vstack([np.ones((12, 2)), [[5.0, 5.0], [9.0, 9.0]]])
    scores = LDOF(4).fit(X).outlier_scores_
    assert scores[:12].tolist() == [1.0] * 12
    # The row at 5 sees equal rows only, the row at 9 also the one at 5.
    assert 1e10 < scores[12] < np.inf
    np.testing.assert_allclose(scores[13], literal_ldof(X, 4, X[13], 13))


def test_constant_columns_change_nothing(seed):
    X = np.random.default_rng(seed).normal(size=(30, 2))
    padded = np.column_stack([X, np.full(30, 1e6)])
    np.testing.assert_allclose(
        LDOF(5).fit(X).outlier_scores_, LDOF(5).fit(padded).outlier_scores_, rtol=1e-12
    )


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
def test_sparse_rows_have_the_scores_of_dense_ones(seed, metric):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 12)) * (rng.random((40, 12)) < 0.4)
    X[:, 0] += 0.1
    new = X[:4] + 0.5 * (X[:4] != 0)
    dense = LDOF(5, metric=metric).fit(X)
    thin = LDOF(5, metric=metric).fit(sparse.csr_array(X))
    np.testing.assert_allclose(thin.outlier_scores_, dense.outlier_scores_, rtol=1e-9)
    np.testing.assert_allclose(
        thin.score_samples(sparse.csr_array(new)), dense.score_samples(new), rtol=1e-9
    )


def test_rows_of_zeros_only_may_be_sparse():
    scores = LDOF(3).fit(sparse.csr_array((8, 5))).outlier_scores_
    assert scores.tolist() == [1.0] * 8


def test_blocks_and_threads_do_not_change_scores(seed, monkeypatch):
    X = np.random.default_rng(seed).normal(size=(60, 3))
    whole = LDOF(7, n_jobs=1).fit(X).outlier_scores_
    monkeypatch.setattr(_neighbors, "_BLOCK_BYTES", 10_000)
    monkeypatch.setattr(_neighbors, "_SEARCH_BYTES", 10_000)
    for n_jobs in (1, 3):
        scores = LDOF(7, n_jobs=n_jobs).fit(X).outlier_scores_
        np.testing.assert_array_equal(scores, whole)


def test_rows_of_the_fit_keep_their_scores(seed):
    X = np.random.default_rng(seed).integers(0, 6, (60, 2)).astype(np.float32)
    detector = LDOF(5).fit(X)
    np.testing.assert_array_equal(-detector.score_samples(X), detector.outlier_scores_)


def test_planted_outliers_are_found(planted):
    detector = LDOF(20, n_outliers=len(planted.outliers)).fit(planted.X)
    assert np.flatnonzero(detector.labels_ == -1).tolist() == planted.outliers.tolist()


def test_bad_parameters_are_named():
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match="'n_neighbors' parameter of LDOF"):
        LDOF(1).fit(X)
    with pytest.raises(ValueError, match="n_outliers=10 should be smaller than"):
        LDOF(3, n_outliers=10).fit(X)


@pytest.mark.parametrize("scale", [1e300, 1e160, 1e-20, 1e-300])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
def test_extreme_scales_do_not_matter(seed, scale, metric):
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(50, 3)), rng.normal(size=(5, 3))
    plain = LDOF(8, metric=metric).fit(X)
    scaled = LDOF(8, metric=metric).fit(scale * X)
    np.testing.assert_allclose(scaled.outlier_scores_, plain.outlier_scores_, rtol=1e-9)
    np.testing.assert_allclose(
        scaled.score_samples(scale * new), plain.score_samples(new), rtol=1e-9
    )


@pytest.mark.parametrize("far", [1e16, 1e100])
def test_a_far_row_does_not_change_the_scores_of_others(seed, far):
    X = np.random.default_rng(seed).normal(size=(50, 3))
    scores = LDOF(8).fit(np.vstack([X, np.full((1, 3), far)])).outlier_scores_
    np.testing.assert_allclose(scores[:50], LDOF(8).fit(X).outlier_scores_, rtol=1e-9)
    assert scores[50] == scores.max()


@pytest.mark.parametrize("scale", [1.0, 1e-300])
def test_new_rows_beyond_all_measure_are_strange(seed, scale):
    X = scale * np.random.default_rng(seed).normal(size=(30, 3))
    detector = LDOF(5).fit(X)
    assert detector.predict(np.full((1, 3), 1e300)).tolist() == [-1]


def test_cosine_finds_rows_of_one_direction_ordinary():
    X = np.outer(np.arange(1.0, 11.0), [0.1, 0.2, 0.3])
    for rows in (X, np.tile(X[:1], (10, 1)), 0 * X):
        scores = LDOF(5, metric="cosine").fit(rows).outlier_scores_
        assert scores.tolist() == [1.0] * 10


def test_cosine_needs_little_memory(seed):
    """All distances of these rows would take 72 MB at once."""
    X = np.random.default_rng(seed).normal(size=(3000, 9))
    tracemalloc.start()
    LDOF(5, metric="cosine", n_jobs=1).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 40e6
