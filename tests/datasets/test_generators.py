"""Generated data: sizes, seeds, and outliers that really are where they should be."""

import inspect

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.datasets import make_moons

from corral.datasets import (
    make_blobs_with_outliers,
    make_high_dimensional,
    make_micro_clusters,
    make_moons_with_noise,
    make_sparse_text,
)

IN_SPREADS = [make_blobs_with_outliers, make_micro_clusters, make_high_dimensional]
GENERATORS = [*IN_SPREADS, make_moons_with_noise, make_sparse_text]
WITH_CLUSTERS = [*IN_SPREADS, make_sparse_text]

# Every row of a cluster lies within so many spreads of its centre.
REACH = 3


def dense(X):
    return X.toarray() if sparse.issparse(X) else X


def spread_of(generator, n_features):
    """Return the spread that the docstring promises with the default parameters."""
    if generator is make_high_dimensional:
        return np.sqrt(5 * 1.0**2 + n_features * 0.1**2)
    return np.sqrt(n_features)


def distance_to_clusters(X, y):
    """Return the distance of each outlier from the nearest row of a cluster."""
    return cdist(X[y == -1], X[y != -1]).min(axis=1)


def means_of_clusters(X, y):
    return np.array([X[y == label].mean(axis=0) for label in range(y.max() + 1)])


@pytest.mark.parametrize("generator", GENERATORS)
def test_counts_are_those_asked_for(generator):
    X, y = generator(203, n_outliers=11, random_state=0)
    default = inspect.signature(generator).parameters.get("n_features")
    assert X.shape == (203, default.default if default else 2)
    assert y.shape == (203,)
    assert np.count_nonzero(y == -1) == 11
    sizes = np.bincount(y[y != -1])
    assert sizes.max() - sizes.min() <= 1


@pytest.mark.parametrize("generator", WITH_CLUSTERS)
@pytest.mark.parametrize("n_clusters", [1, 7])
def test_clusters_are_those_asked_for(generator, n_clusters):
    X, y = generator(300, 60, n_clusters=n_clusters, random_state=0)
    assert X.shape == (300, 60)
    assert set(y) == {-1, *range(n_clusters)}


@pytest.mark.parametrize("generator", GENERATORS)
def test_same_seed_gives_the_same_data(generator):
    X, y = generator(random_state=3)
    for again in (3, np.random.RandomState(3)):
        X_again, y_again = generator(random_state=again)
        np.testing.assert_array_equal(dense(X), dense(X_again))
        np.testing.assert_array_equal(y, y_again)
    assert (dense(X) != dense(generator(random_state=4)[0])).any()


@pytest.mark.parametrize("generator", GENERATORS)
def test_rows_are_shuffled(generator):
    _, y = generator(random_state=0)
    ends = np.flatnonzero(y == -1)[[0, -1]]
    # With 25 outliers or more, none in a whole half has odds of 1 to 2**25.
    assert ends[0] < len(y) / 2 < ends[1]
    assert (np.diff(y) < 0).sum() > len(y) / 10


@pytest.mark.parametrize(
    "generator", [each for each in GENERATORS if each is not make_micro_clusters]
)
def test_outliers_can_be_left_out(generator):
    X, y = generator(50, n_outliers=0, random_state=0)
    assert X.shape[0] == 50
    assert y.min() == 0


@pytest.mark.parametrize("generator", IN_SPREADS)
@pytest.mark.parametrize("n_features", [6, 40])
@pytest.mark.parametrize("min_distance", [3, 4, 7.5])
def test_outliers_keep_their_distance(generator, n_features, min_distance, seed):
    X, y = generator(400, n_features, min_distance=min_distance, random_state=seed)
    spread = spread_of(generator, n_features)
    # Exact: an outlier is so far from the centre that a cluster cannot reach.
    gap = (min_distance - REACH) * spread
    assert distance_to_clusters(X, y).min() >= gap - 1e-9
    # The mean of more than 100 rows is within half a spread of the centre.
    nearest = cdist(X[y == -1], means_of_clusters(X, y)).min(axis=1)
    assert nearest.min() >= (min_distance - 0.5) * spread


@pytest.mark.parametrize("n_clusters", [1, 20])
def test_outliers_keep_their_distance_with_one_feature(n_clusters, seed):
    X, y = make_blobs_with_outliers(
        2000, 1, n_clusters=n_clusters, n_outliers=200, random_state=seed
    )
    assert distance_to_clusters(X, y).min() >= 1


@pytest.mark.parametrize("generator", IN_SPREADS)
@pytest.mark.parametrize("n_features", [6, 40])
def test_clusters_are_round_and_apart(generator, n_features, seed):
    X, y = generator(2000, n_features, random_state=seed)
    spread = spread_of(generator, n_features)
    means = means_of_clusters(X, y)
    within = np.linalg.norm(X - means[y], axis=1)[y != -1]
    # 600 rows or more: the mean is within a tenth of a spread of the centre.
    assert within.max() <= (REACH + 0.1) * spread
    assert np.sqrt(np.mean(within**2)) == pytest.approx(spread, rel=0.05)
    between = cdist(means, means)[np.triu_indices(len(means), 1)]
    assert between.min() >= (6 - 0.2) * spread


def test_spread_follows_the_standard_deviation():
    X, y = make_blobs_with_outliers(3000, 3, cluster_std=5.0, random_state=0)
    within = X[y == 0] - X[y == 0].mean(axis=0)
    np.testing.assert_allclose(within.std(axis=0), 5.0, rtol=0.1)
    assert distance_to_clusters(X, y).min() >= 5 * np.sqrt(3)


def test_outliers_of_blobs_are_on_all_sides():
    X, y = make_blobs_with_outliers(2000, n_outliers=200, random_state=0)
    sides = X[y == -1] > X[y != -1].mean(axis=0)
    assert (np.bincount(sides @ [1, 2], minlength=4) > 20).all()


@pytest.mark.parametrize("noise", [0.02, 0.1])
def test_noise_keeps_off_the_moons(noise, seed):
    X, y = make_moons_with_noise(500, n_outliers=100, noise=noise, random_state=seed)
    spread = noise * np.sqrt(2)
    curve, labels = make_moons(20_000, shuffle=False)
    # Points of the curve are 0.0003 apart.
    to_curve = cdist(X, curve)
    assert to_curve[y == -1].min() >= 4 * spread - 1e-9
    for label in (0, 1):
        to_moon = to_curve[y == label][:, labels == label].min(axis=1)
        assert to_moon.max() <= REACH * spread + 2e-4


def test_noise_is_everywhere_but_on_the_moons():
    # The bowl of each moon is nearer to the middle than its half circle.
    X, y = make_moons_with_noise(2000, n_outliers=400, noise=0.02, random_state=0)
    noise = X[y == -1]
    assert (np.linalg.norm(noise, axis=1) < 0.9).any()
    assert (np.linalg.norm(noise - [1, 0.5], axis=1) < 0.9).any()
    assert ((noise < [-1, -0.5]) | (noise > [2, 1])).any()
    # The other half of the upper moon's circle is no moon.
    rim = np.abs(np.linalg.norm(noise, axis=1) - 1) < 0.05
    assert (rim & (noise[:, 1] < -0.15)).any()


def test_micro_clusters_are_tight_small_and_apart(seed):
    X, y = make_micro_clusters(
        400, 3, n_outliers=32, n_micro_clusters=4, random_state=seed
    )
    outliers = X[y == -1]
    spread = 0.1 * np.sqrt(3)
    # Two rows are of a group if they are within its width; 8 of 32 rows each.
    together = cdist(outliers, outliers) <= 2 * REACH * spread
    groups = {tuple(np.flatnonzero(row)) for row in together}
    assert sorted(len(group) for group in groups) == [8, 8, 8, 8]


def test_every_outlier_of_a_micro_cluster_has_near_neighbors(seed):
    X, y = make_micro_clusters(random_state=seed)
    distances = np.sort(cdist(X, X), axis=1)
    # Six rows a group: the nearest five are its own.
    assert distances[y == -1, 5].max() <= 2 * REACH * 0.1 * np.sqrt(2)


def test_outliers_leave_the_subspace(seed):
    X, y = make_high_dimensional(300, 30, n_informative=4, noise=0, random_state=seed)
    inliers, outliers = X[y != -1], X[y == -1]
    assert np.linalg.matrix_rank(inliers) == 4
    basis = np.linalg.svd(inliers, full_matrices=False)[2][:4]
    off = np.linalg.norm(outliers - outliers @ basis.T @ basis, axis=1)
    spread = np.sqrt(4)
    assert off.min() >= 4 * spread - 1e-9
    assert off.max() <= 6 * spread + 1e-9
    # Within the subspace each is a row of a cluster.
    inside = outliers @ basis.T @ basis
    nearest = cdist(inside, means_of_clusters(X, y)).min(axis=1)
    assert nearest.max() <= (REACH + 0.5) * spread


def test_every_feature_takes_part():
    X, y = make_high_dimensional(300, 30, n_informative=4, noise=0, random_state=0)
    assert X[y != -1].std(axis=0).min() > 0.1


def test_text_is_sparse_counts_in_canonical_form():
    X, _ = make_sparse_text(random_state=0)
    assert isinstance(X, sparse.csr_array)
    assert X.dtype == np.int64
    assert X.has_canonical_format
    assert X.data.min() == 1
    assert X.nnz < 0.05 * np.prod(X.shape)


def test_documents_have_the_length_asked_for(seed):
    X, _ = make_sparse_text(2000, document_length=60, random_state=seed)
    lengths = X.sum(axis=1)
    assert lengths.mean() == pytest.approx(60, rel=0.02)
    assert lengths.min() >= 30


def topics_of(X, n_clusters):
    """Return how many words each document has of each vocabulary."""
    X = X.toarray()
    n_terms = X.shape[1] // (n_clusters + 2)
    n_common = X.shape[1] - (n_clusters + 1) * n_terms
    starts = [0, *range(n_common, X.shape[1], n_terms)]
    return np.add.reduceat(X, starts, axis=1)


@pytest.mark.parametrize("n_features", [8, 2003])
def test_only_outliers_have_terms_of_several_topics(n_features, seed):
    X, y = make_sparse_text(400, n_features, random_state=seed)
    words = topics_of(X, 4)
    own = words[:, 1:]
    assert own.shape == (400, 5)
    inliers = y != -1
    assert (np.count_nonzero(own[inliers], axis=1) == 1).all()
    np.testing.assert_array_equal(own[inliers].argmax(axis=1), y[inliers])
    # In equal parts: topics differ by at most one word.
    assert own[~inliers].min() > 0
    assert np.ptp(own[~inliers], axis=1).max() <= 1
    share = own.sum(axis=1) / words.sum(axis=1)
    assert share.min() >= 0.5
    assert share.max() < 0.52


def test_shortest_documents_still_have_all_topics():
    # Ten words that are not common, five in the shortest: one for each vocabulary.
    X, y = make_sparse_text(
        3000, n_outliers=1000, document_length=10, topic_share=1.0, random_state=0
    )
    own = topics_of(X, 4)[:, 1:]
    assert own.sum(axis=1).min() == 5
    assert own[y == -1].min() == 1


def test_terms_follow_the_law_of_zipf(seed):
    X, y = make_sparse_text(3000, 600, n_outliers=0, random_state=seed)
    # Vocabularies of 100 terms; topic 0 has the second.
    counts = X[y == 0][:, 100:200].sum(axis=0)
    weights = 1 / np.arange(1, 101)
    expected = counts.sum() * weights / weights.sum()
    # Words are independent, so counts are off by a few standard deviations at most.
    assert (np.abs(counts - expected) < 6 * np.sqrt(expected)).all()


def test_outliers_have_frequent_terms_of_their_own(seed):
    X, y = make_sparse_text(400, 2000, n_outliers=100, random_state=seed)
    own = X.toarray()[:, 2000 - 5 * 333 :]
    favorites = own[y == -1].argmax(axis=1)
    assert len(set(favorites)) > 50
    # A topic's documents share theirs.
    assert len(set(own[y == 0].argmax(axis=1))) < 10


@pytest.mark.parametrize("generator", WITH_CLUSTERS)
@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"n_samples": 0}, ValueError, "n_samples=0 should be at least 1"),
        ({"n_samples": 9.5}, TypeError, r"n_samples=9\.5 should be a whole number"),
        ({"n_features": 0}, ValueError, "n_features=0 should be at least 1"),
        ({"n_clusters": 0}, ValueError, "n_clusters=0 should be at least 1"),
        ({"n_outliers": -1}, ValueError, "n_outliers=-1 should be at least 0"),
        (
            {"n_samples": 20, "n_clusters": 3, "n_outliers": 18},
            ValueError,
            r"n_samples=20 should be at least n_clusters \+ n_outliers = 3 \+ 18 = 21",
        ),
    ],
)
def test_counts_are_checked(generator, parameters, error, message):
    with pytest.raises(error, match=message):
        generator(**parameters)


@pytest.mark.parametrize("generator", IN_SPREADS)
@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"cluster_std": 0}, ValueError, "cluster_std=0 should be above 0"),
        ({"cluster_std": np.nan}, ValueError, "cluster_std=nan should be finite"),
        ({"cluster_std": "1"}, TypeError, "cluster_std='1' should be a number"),
        ({"separation": -2}, ValueError, "separation=-2 should be above 0"),
        ({"min_distance": 2.9}, ValueError, r"min_distance=2\.9 should be at least 3"),
    ],
)
def test_distances_are_checked(generator, parameters, error, message):
    with pytest.raises(error, match=message):
        generator(**parameters)


@pytest.mark.parametrize(
    ("generator", "parameters", "message"),
    [
        (
            make_moons_with_noise,
            {"n_samples": 26},
            r"n_clusters \+ n_outliers = 2 \+ 25 = 27",
        ),
        (make_moons_with_noise, {"noise": 0}, "noise=0 should be above 0"),
        (make_moons_with_noise, {"min_distance": 1}, "min_distance=1 should be at"),
        (make_micro_clusters, {"micro_std": 0}, "micro_std=0 should be above 0"),
        (
            make_micro_clusters,
            {"n_outliers": 4},
            "n_outliers=4 should be at least n_micro_clusters=5",
        ),
        (
            make_micro_clusters,
            {"n_samples": 60, "n_outliers": 30, "n_micro_clusters": 3},
            "Groups of 10 outliers should be smaller than the smallest cluster, which "
            r"has 10 rows\. Raise n_samples \(now 60\) or n_micro_clusters \(now 3\)",
        ),
        (
            make_high_dimensional,
            {"n_features": 5},
            "n_informative=5 should be smaller than n_features=5, so that outliers can",
        ),
        (make_high_dimensional, {"noise": -1}, "noise=-1 should be at least 0"),
        (
            make_sparse_text,
            {"n_features": 5},
            r"n_features=5 should be at least n_clusters \+ 2 = 6: terms for each",
        ),
        (make_sparse_text, {"topic_share": 1.5}, r"topic_share=1\.5 should be at most"),
        (make_sparse_text, {"topic_share": 0}, "topic_share=0 should be above 0"),
        (
            make_sparse_text,
            {"document_length": 19},
            r"topic_share \* document_length = 0\.5 \* 19 should be at least "
            r"2 \* \(n_clusters \+ 1\) = 10, .* Raise document_length",
        ),
    ],
)
def test_parameters_are_checked_against_each_other(generator, parameters, message):
    with pytest.raises(ValueError, match=message):
        generator(**parameters)


@pytest.mark.parametrize("generator", GENERATORS)
def test_documented_defaults_are_those_of_the_signature(generator):
    text = inspect.getdoc(generator)
    for name, parameter in inspect.signature(generator).parameters.items():
        assert f"\n{name} : " in text
        line = text.split(f"\n{name} : ")[1].split("\n")[0]
        assert line.endswith(f"default={parameter.default}"), name
