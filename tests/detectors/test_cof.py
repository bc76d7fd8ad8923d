"""COF against the paper's definitions, written out."""

import numpy as np
import pytest
from scipy import sparse

from corral.detectors import COF, _neighbors


def literal_neighbors(X, row, k, skip=-1):
    pairs = sorted((np.linalg.norm(X[j] - row), j) for j in range(len(X)) if j != skip)
    return [j for _, j in pairs[:k]]


def literal_chaining_distance(row, neighbors):
    """Follow the set-based nearest path; return ac-dist with r = k + 1 rows."""
    chain, left = [row], list(neighbors)
    r = len(left) + 1
    total = 0.0
    for i in range(1, r):
        links = [min(np.linalg.norm(o - q) for o in chain) for q in left]
        nearest = int(np.argmin(links))
        total += 2 * (r - i) / r * links[nearest]
        chain.append(left.pop(nearest))
    return total / (r - 1)


def literal_cof(X, k, new=None):
    near = [literal_neighbors(X, X[i], k, i) for i in range(len(X))]
    ac = [literal_chaining_distance(X[i], X[near[i]]) for i in range(len(X))]
    if new is None:
        return np.array(
            [k * ac[i] / sum(ac[j] for j in near[i]) for i in range(len(X))]
        )
    scores = []
    for row in new:
        mine = literal_neighbors(X, row, k)
        chaining = literal_chaining_distance(row, X[mine])
        scores.append(k * chaining / sum(ac[j] for j in mine))
    return np.array(scores)


@pytest.mark.parametrize("k", [1, 2, 6])
@pytest.mark.parametrize("n_features", [2, 8])
def test_cof_is_the_literal_one(seed, k, n_features):
    X = np.random.default_rng(seed).normal(size=(40, n_features))
    scores = COF(k).fit(X).outlier_scores_
    np.testing.assert_allclose(scores, literal_cof(X, k), rtol=1e-10)


def test_cof_is_the_literal_one_with_ties_and_equal_rows(seed):
    X = np.random.default_rng(seed).integers(0, 5, (50, 2)).astype(float)
    scores = COF(12).fit(X).outlier_scores_
    np.testing.assert_allclose(scores, literal_cof(X, 12), rtol=1e-10)


def test_new_rows_are_scored_by_the_literal_formula(seed):
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(40, 3)), 2 * rng.normal(size=(7, 3))
    scores = -COF(5).fit(X).score_samples(new)
    np.testing.assert_allclose(scores, literal_cof(X, 5, new), rtol=1e-10)


def test_cof_by_hand():
    # Rows at 0, 1, 3 and 7, two neighbours. The chains, with weights 2/3 and 1/3:
    # 0: links 1, 2 -> 4/3; 1: links 1, 2 -> 4/3; 3: links 2, 1 -> 5/3;
    # 7: links 4, 2 -> 10/3. COF of 7: (10/3) / mean(5/3, 4/3) = 20/9.
    X = np.array([[0.0], [1.0], [3.0], [7.0]])
    detector = COF(2, n_outliers=1).fit(X)
    expected = [8 / 9, 8 / 9, 5 / 4, 20 / 9]
    np.testing.assert_allclose(detector.outlier_scores_, expected)
    assert detector.labels_.tolist() == [1, 1, 1, -1]


def test_a_row_beside_a_line_is_stranger_than_the_line(seed):
    """The pattern that the paper sets out to find."""
    rng = np.random.default_rng(seed)
    line = np.column_stack([np.arange(40.0), 0.01 * rng.normal(size=40)])
    X = np.vstack([line, [[20.0, 5.0]]])
    detector = COF(6, n_outliers=1).fit(X)
    assert detector.labels_[40] == -1


def test_scale_and_place_do_not_matter(seed):
    X = np.random.default_rng(seed).normal(size=(50, 3))
    scores = COF(8).fit(X).outlier_scores_
    moved = COF(8).fit(1000 * X + 77).outlier_scores_
    np.testing.assert_allclose(scores, moved, rtol=1e-8)


def test_equal_rows_only_are_all_ordinary():
    detector = COF(3).fit(np.ones((10, 2)))
    assert detector.outlier_scores_.tolist() == [1.0] * 10
    # A new row has nothing to be compared with, and yet a finite score.
    assert 1e10 < -detector.score_samples([[2.0, 2.0]])[0] < np.inf


def test_a_row_beside_equal_rows_is_the_strangest():
    X = np.vstack([np.ones((12, 2)), [[5.0, 5.0], [9.0, 9.0]]])
    scores = COF(4).fit(X).outlier_scores_
    assert scores[:12].tolist() == [1.0] * 12
    # The chains of the neighbours of 5 have length zero; 9 has 5 as a neighbour. Its
    # links are 4 and 4 times the square root of 2, then zeros, with weights 4/10 and
    # 3/10; the chain of 5 has one such link.
    assert 1e10 < scores[12] < np.inf
    np.testing.assert_allclose(scores[13], 4 * (0.4 + 0.3) / 0.4)


def test_constant_columns_change_nothing(seed):
    X = np.random.default_rng(seed).normal(size=(30, 2))
    padded = np.column_stack([X, np.full(30, 1e6)])
    np.testing.assert_allclose(
        COF(5).fit(X).outlier_scores_, COF(5).fit(padded).outlier_scores_, rtol=1e-12
    )


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
def test_sparse_rows_have_the_scores_of_dense_ones(seed, metric):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 12)) * (rng.random((40, 12)) < 0.4)
    X[:, 0] += 0.1
    new = X[:4] * 1.5
    dense = COF(5, metric=metric).fit(X)
    thin = COF(5, metric=metric).fit(sparse.csr_array(X))
    np.testing.assert_allclose(thin.outlier_scores_, dense.outlier_scores_, rtol=1e-9)
    np.testing.assert_allclose(
        thin.score_samples(sparse.csr_array(new)), dense.score_samples(new), rtol=1e-9
    )


def test_manhattan_is_euclidean_in_one_column(seed):
    X = np.random.default_rng(seed).normal(size=(40, 1))
    scores = COF(5, metric="manhattan").fit(X).outlier_scores_
    np.testing.assert_allclose(scores, COF(5).fit(X).outlier_scores_, rtol=1e-12)


def test_blocks_and_threads_do_not_change_scores(seed, monkeypatch):
    X = np.random.default_rng(seed).normal(size=(60, 3))
    whole = COF(7, n_jobs=1).fit(X).outlier_scores_
    monkeypatch.setattr(_neighbors, "_BLOCK_BYTES", 10_000)
    monkeypatch.setattr(_neighbors, "_SEARCH_BYTES", 10_000)
    for n_jobs in (1, 3):
        scores = COF(7, n_jobs=n_jobs).fit(X).outlier_scores_
        np.testing.assert_array_equal(scores, whole)


def test_single_precision_rows_are_scored_in_double(seed):
    X = np.random.default_rng(seed).normal(size=(30, 3)).astype(np.float32)
    scores = COF(5).fit(X).outlier_scores_
    np.testing.assert_array_equal(scores, COF(5).fit(X.astype(float)).outlier_scores_)


def test_rows_of_the_fit_keep_their_scores(seed):
    X = np.random.default_rng(seed).integers(0, 6, (60, 2)).astype(float)
    detector = COF(5).fit(X)
    np.testing.assert_array_equal(-detector.score_samples(X), detector.outlier_scores_)


def test_no_outliers_and_many(planted):
    assert (COF(10, n_outliers=0).fit(planted.X).labels_ == 1).all()
    half = COF(10, contamination=0.5).fit(planted.X)
    assert (half.labels_ == -1).sum() == half.n_outliers_ == len(planted.X) // 2


def test_planted_outliers_are_found(planted):
    detector = COF(20, n_outliers=len(planted.outliers)).fit(planted.X)
    assert np.flatnonzero(detector.labels_ == -1).tolist() == planted.outliers.tolist()


def test_bad_parameters_are_named():
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.raises(ValueError, match="'n_neighbors' parameter of COF"):
        COF(0).fit(X)
    with pytest.raises(ValueError, match="'metric' parameter of COF"):
        COF(3, metric="jaccard").fit(X)
    with pytest.raises(ValueError, match="n_jobs=0 should be a number of threads"):
        COF(3, n_jobs=0).fit(X)
    with pytest.raises(ValueError, match="n_samples=1 should be at least 2"):
        COF(3).fit(X[:1])


@pytest.mark.parametrize("scale", [1e300, 1e160, 1e-20, 1e-300])
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
def test_extreme_scales_do_not_matter(seed, scale, metric):
    rng = np.random.default_rng(seed)
    X, new = rng.normal(size=(50, 3)), rng.normal(size=(5, 3))
    plain = COF(8, metric=metric).fit(X)
    scaled = COF(8, metric=metric).fit(scale * X)
    np.testing.assert_allclose(scaled.outlier_scores_, plain.outlier_scores_, rtol=1e-9)
    np.testing.assert_allclose(
        scaled.score_samples(scale * new), plain.score_samples(new), rtol=1e-9
    )


@pytest.mark.parametrize("far", [1e16, 1e100])
def test_a_far_row_does_not_change_the_scores_of_others(seed, far):
    X = np.random.default_rng(seed).normal(size=(50, 3))
    scores = COF(8).fit(np.vstack([X, np.full((1, 3), far)])).outlier_scores_
    np.testing.assert_allclose(scores[:50], COF(8).fit(X).outlier_scores_, rtol=1e-9)
    assert scores[50] == scores.max()


@pytest.mark.parametrize("scale", [1.0, 1e-300])
def test_new_rows_beyond_all_measure_are_strange(seed, scale):
    X = scale * np.random.default_rng(seed).normal(size=(30, 3))
    detector = COF(5).fit(X)
    assert detector.predict(np.full((1, 3), 1e300)).tolist() == [-1]


def test_cosine_finds_rows_of_one_direction_ordinary():
    X = np.outer(np.arange(1.0, 11.0), [0.1, 0.2, 0.3])
    for rows in (X, np.tile(X[:1], (10, 1)), 0 * X):
        scores = COF(5, metric="cosine").fit(rows).outlier_scores_
        assert scores.tolist() == [1.0] * 10
