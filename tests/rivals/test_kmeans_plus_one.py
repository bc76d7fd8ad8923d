"""K-means with one cluster too many, against scikit-learn's labels."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.preprocessing import normalize

from corral.rivals._kmeans_plus_one import KMeansPlusOne


def drop_smallest(kmeans):
    """Return the labels of K-means, -1 for the smallest cluster, the rest in order."""
    sizes = np.bincount(kmeans.labels_, minlength=kmeans.n_clusters)
    labels = kmeans.labels_.tolist()
    smallest = min(labels, key=lambda label: (sizes[label], labels.index(label)))
    kept = [label for label in range(len(sizes)) if label != smallest]
    new_labels = {label: place for place, label in enumerate(kept)}
    return np.array([new_labels.get(label, -1) for label in labels])


def unequal_blobs(seed):
    rng = np.random.default_rng(seed)
    centers = rng.normal(size=(4, 3)) * 6
    return np.repeat(centers, [40, 30, 25, 7], axis=0) + rng.normal(size=(102, 3))


def test_by_hand():
    # Three clusters, {0, 1}, {10, 11} and {50}; the last is the smallest.
    X = np.array([[0.0], [50.0], [1.0], [10.0], [11.0]])
    model = KMeansPlusOne(2, n_init=10, random_state=0).fit(X)
    assert model.labels_[1] == -1
    assert model.labels_[0] == model.labels_[2] != model.labels_[3] == model.labels_[4]
    assert model.outlier_center_ == 50
    np.testing.assert_allclose(np.sort(model.cluster_centers_.ravel()), [0.5, 10.5])
    # The nearest cluster of 50 is at 10.5; 0 is 0.5 from its own and 50 from 50.
    assert model.outlier_scores_[1] == pytest.approx(39.5**2 - 0)
    assert model.outlier_scores_[0] == pytest.approx(0.5**2 - 50**2)
    assert model.n_outliers_ == 1
    # Half-way between 10.5 and 50 a row is no outlier yet.
    np.testing.assert_array_equal(
        model.predict([[30.25], [30.3]]), [model.labels_[3], -1]
    )


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_is_kmeans_less_its_smallest_cluster(seed, metric, as_stored, dtype):
    X = as_stored(unequal_blobs(seed).astype(dtype))
    rows = normalize(X) if metric == "cosine" else X
    kmeans = KMeans(4, random_state=seed).fit(rows)
    model = KMeansPlusOne(3, metric=metric, random_state=seed).fit(X)
    np.testing.assert_array_equal(model.labels_, drop_smallest(kmeans))
    assert model.n_outliers_ == np.count_nonzero(model.labels_ == -1)
    # In float32, that of rows far from zero has lost some digits.
    rel = 1e-6 if dtype == np.float64 else 1e-4
    assert model.inertia_ == pytest.approx(kmeans.inertia_, rel=rel)
    assert model.cluster_centers_.shape == (3, 3)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_matrix])
def test_scores_and_labels_agree(seed, metric, as_stored):
    X = as_stored(unequal_blobs(seed))
    model = KMeansPlusOne(3, metric=metric, random_state=seed).fit(X)
    np.testing.assert_array_equal(model.labels_ == -1, model.outlier_scores_ > 0)
    np.testing.assert_array_equal(model.score_samples(X), -model.outlier_scores_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.decision_function(X) < 0, model.labels_ == -1)
    kept = model.labels_ >= 0
    np.testing.assert_array_equal(model.nearest_labels_[kept], model.labels_[kept])


def test_scores_are_differences_of_squared_distances(seed):
    X = unequal_blobs(seed)
    model = KMeansPlusOne(3, random_state=seed).fit(X)
    gaps = X[:, None] - model.cluster_centers_
    nearest = (gaps**2).sum(axis=2).min(axis=1)
    to_outliers = ((X - model.outlier_center_) ** 2).sum(axis=1)
    np.testing.assert_allclose(model.outlier_scores_, nearest - to_outliers, atol=1e-9)


@pytest.mark.parametrize("order", [[0, 1, 2, 3, 4, 5], [4, 1, 2, 3, 0, 5]])
def test_of_equally_small_clusters_that_of_the_first_row_is_the_outliers(order):
    X = np.array([[0.0], [0.1], [10.0], [10.1], [30.0], [30.1]])[order]
    sizes = np.bincount(KMeans(3, random_state=0).fit_predict(X))
    np.testing.assert_array_equal(sizes, [2, 2, 2])
    model = KMeansPlusOne(2, random_state=0).fit(X)
    np.testing.assert_array_equal(model.labels_ == -1, np.abs(X - X[0])[:, 0] < 1)


@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_large_offset_does_not_eat_the_digits(seed, as_stored, dtype):
    X = (unequal_blobs(seed) * 2**6).round() / 2**6
    offset = np.array([0, 2.0**16, -(2.0**17)])
    near, far = (as_stored(rows.astype(dtype)) for rows in (X, X + offset))
    model = KMeansPlusOne(3, random_state=seed).fit(far)
    plain = KMeansPlusOne(3, random_state=seed).fit(near)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    scores = [each.outlier_scores_ for each in (model, plain)]
    np.testing.assert_allclose(*scores, rtol=1e-5, atol=1e-3)
    # Float32 writes numbers of the size of the offset in steps of 1/128.
    found = model.outlier_center_ - offset
    np.testing.assert_allclose(found, plain.outlier_center_, atol=1 / 128)


def test_weights_pull_at_the_centres(seed):
    X = unequal_blobs(seed)
    weights = np.random.default_rng(seed).uniform(0, 3, len(X))
    model = KMeansPlusOne(3, random_state=seed).fit(X, sample_weight=weights)
    kmeans = KMeans(4, random_state=seed).fit(X, sample_weight=weights)
    np.testing.assert_array_equal(model.labels_, drop_smallest(kmeans))


def test_all_rows_equal():
    # K-means fills one cluster; an empty one is the smallest, so nothing is an outlier.
    model = KMeansPlusOne(2, random_state=0)
    with pytest.warns(ConvergenceWarning, match="distinct clusters"):
        model.fit(np.ones((6, 2)))
    assert model.n_outliers_ == 0
    assert (model.labels_ >= 0).all()


def test_number_of_outliers_cannot_be_asked_for():
    assert "n_outliers" not in KMeansPlusOne().get_params()


@pytest.mark.parametrize("n_samples", [2, 3])
def test_too_few_rows(n_samples):
    message = rf"n_samples={n_samples} should be larger than n_clusters=3: .*Lower"
    with pytest.raises(ValueError, match=message):
        KMeansPlusOne(3).fit(np.eye(n_samples))


def test_bad_parameter():
    with pytest.raises(ValueError, match="'metric' parameter of KMeansPlusOne"):
        KMeansPlusOne(3, metric="kl").fit(np.eye(5))
