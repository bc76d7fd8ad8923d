"""Means and spreads of clusters, and what differs from them."""

import numpy as np
import pytest
from scipy import sparse

from corral._profiles import profile_clusters, tell_apart


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_profiles_are_means_and_deviations(kind, seed):
    rng = np.random.default_rng(seed)
    X = 1e4 + rng.normal(size=(200, 5)) if kind is np.asarray else rng.random((200, 5))
    labels, weights = rng.integers(-1, 3, 200), rng.random(200)
    profile = profile_clusters(kind(X), labels, 3, weights=weights)
    for k in range(3):
        here = labels == k
        mean = np.average(X[here], axis=0, weights=weights[here])
        variance = np.average((X[here] - mean) ** 2, axis=0, weights=weights[here])
        np.testing.assert_allclose(profile.centers[k], mean)
        np.testing.assert_allclose(profile.spreads[k], np.sqrt(variance))


def test_a_cluster_without_rows_has_the_mean_of_all(seed):
    X = np.random.default_rng(seed).normal(size=(20, 2))
    profile = profile_clusters(X, np.zeros(20, dtype=int), 2)
    np.testing.assert_allclose(profile.centers[1], X.mean(axis=0))
    assert (profile.units > 0).all()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_a_value_that_no_row_has_is_the_most_different(kind):
    # As a word that occurs in no other text: no row differs, so there is no spread.
    X = np.random.default_rng(0).normal(size=(100, 4))
    X[:, 1] = 0.1
    X[:, 3] = 0
    profile = profile_clusters(kind(X), np.zeros(100, dtype=int), 1)
    np.testing.assert_array_equal(profile.spreads[0, [1, 3]], 0)
    new = kind(np.array([[0.5, 0.1, 0.5, 0.2]]))
    features, differences = tell_apart(new, np.array([0]), profile, 4)
    assert features[0, 0] == 3
    assert differences[0, 0] == pytest.approx(np.sqrt(101))
    assert 1 not in features


def test_missing_cells_count_nowhere():
    X = np.array([[1.0, np.nan], [3.0, 5.0], [100.0, 7.0]])
    missing = np.array([[False, False], [False, False], [True, False]])
    profile = profile_clusters(X, np.zeros(3, dtype=int), 1, missing=missing)
    np.testing.assert_allclose(profile.centers, [[2.0, 6.0]])
    np.testing.assert_allclose(profile.spreads, [[1.0, 1.0]])


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_the_most_different_features_come_first(kind):
    labels = np.repeat([0, 1], 50)
    X = np.random.default_rng(0).normal(size=(100, 4))
    profile = profile_clusters(kind(X), labels, 2)
    strange = profile.centers[[0]] + profile.spreads[[0]] * [0.5, -7, 0, 3]
    features, differences = tell_apart(kind(strange), np.array([0]), profile, 5)
    assert features[0].tolist() == [1, 3, 0, -1, -1]
    np.testing.assert_allclose(differences[0], [-7, 3, 0.5, 0, 0], atol=1e-9)


def test_what_a_small_cluster_has_in_common_by_chance_is_no_unit():
    # Three equal values do not make a fourth one infinitely strange.
    X = np.concatenate([np.ones(3), np.arange(97.0)])[:, None]
    profile = profile_clusters(X, np.repeat([0, 1], [3, 97]), 2)
    _, differences = tell_apart(np.array([[2.0]]), np.array([0]), profile, 1)
    assert 0 < differences[0, 0] < 1


@pytest.mark.parametrize("far", [1e12, 1e200])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_a_far_outlier_does_not_hide_the_spreads(kind, far, seed):
    X = np.random.default_rng(seed).normal(size=(200, 3))
    X[0] = far
    labels = np.repeat([0, 1], 100)
    labels[0] = -1
    profile = profile_clusters(kind(X), labels, 2)
    for k in range(2):
        np.testing.assert_allclose(profile.centers[k], X[labels == k].mean(axis=0))
        np.testing.assert_allclose(profile.spreads[k], X[labels == k].std(axis=0))
    _, differences = tell_apart(kind(X), np.maximum(labels, 0), profile, 3)
    assert np.isfinite(differences).all()
    assert (np.abs(differences[0]) > 1e11).all()


def test_clusters_far_apart_have_their_own_spreads(seed):
    # Times in seconds, groups of some seconds that are years apart.
    labels = np.repeat([0, 1], 100)
    X = np.random.default_rng(seed).normal(scale=10, size=(200, 1))
    X += 1.5e9 + 3e8 * labels[:, None]
    profile = profile_clusters(X, labels, 2)
    spreads = [[X[labels == k].std()] for k in range(2)]
    np.testing.assert_allclose(profile.spreads, spreads)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("offset", [1e8, 1e200])
def test_an_offset_does_not_eat_up_the_spreads(kind, offset, seed):
    # Beside columns of zeros, and one in which few of the first rows have a value.
    rng = np.random.default_rng(seed)
    labels = np.repeat([0, 1], 100)
    X = np.zeros((200, 4))
    X[:, 1] = offset * (1 + 1e-6 * rng.normal(size=200))
    X[90:, 2] = rng.random(110)
    profile = profile_clusters(kind(X), labels, 2)
    for k in range(2):
        here = X[labels == k]
        np.testing.assert_allclose(profile.centers[k], here.mean(axis=0))
        # Squares of the offset are beyond all numbers.
        unit = np.array([1, offset, 1, 1])
        spreads = ((here - here[0]) / unit).std(axis=0) * unit
        np.testing.assert_allclose(profile.spreads[k], spreads, rtol=1e-6)


@pytest.mark.parametrize("size", [1e300, 1e200, 1e-200, 1e-310])
def test_huge_and_tiny_numbers_are_compared_as_others_are(size, seed):
    labels = np.repeat([0, 1], 100)
    X = np.random.default_rng(seed).normal(size=(200, 2)) + 9 * labels[:, None]
    plain, sized = (profile_clusters(rows, labels, 2) for rows in (X, X * size))
    np.testing.assert_allclose(sized.spreads / size, plain.spreads, rtol=1e-3)
    _, differences = tell_apart(X, labels, plain, 2)
    _, same = tell_apart(X * size, labels, sized, 2)
    np.testing.assert_allclose(same, differences, rtol=1e-3, atol=1e-3)


def test_equal_values_have_no_spread_in_any_storage():
    X = np.full((100, 1), 0.1, dtype=np.float32)
    for rows in (X, sparse.csr_array(X)):
        profile = profile_clusters(rows, np.zeros(100, dtype=int), 1)
        np.testing.assert_array_equal(profile.spreads, 0)
