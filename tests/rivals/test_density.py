"""DBSCAN and HDBSCAN against scikit-learn's, and what the adapters add."""

import pickle
import warnings

import numpy as np
import pytest
import sklearn.cluster
from scipy import sparse
from sklearn.exceptions import DataConversionWarning
from sklearn.metrics import pairwise_distances

from corral.rivals._density import DBSCAN, HDBSCAN
from tests.conftest import plant


def noisy_grid(seed, n=150):
    """Return points on a grid: many at the same distance, and many twice."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 18, size=(n, 2)).astype(float)


def touching_groups():
    """Return two groups of points on a line, and a border point between them.

    With eps = 1 and min_samples = 4 the point at 3.5 has the core points 2.6 and 4.3
    in reach; it is nearer to the latter, but the former's cluster is grown first.
    """
    points = [2.0, 2.2, 2.4, 2.6, 4.3, 4.55, 4.7, 4.9, 3.5, 20.0]
    return np.array(points)[:, None]


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
@pytest.mark.parametrize("kind", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_dbscan_labels_are_scikit_learns(metric, kind, seed):
    X = kind(plant(seed).X)
    eps = 0.05 if metric == "cosine" else 1.5
    model = DBSCAN(eps, min_samples=4, metric=metric).fit(X)
    truth = sklearn.cluster.DBSCAN(eps=eps, min_samples=4, metric=metric).fit(X)
    np.testing.assert_array_equal(model.labels_, truth.labels_)
    np.testing.assert_array_equal(
        model.core_sample_indices_, truth.core_sample_indices_
    )
    assert model.n_clusters_ == len(set(truth.labels_) - {-1}) > 0
    assert model.n_outliers_ == np.count_nonzero(truth.labels_ == -1)


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_dbscan_rows_of_the_fit_get_their_answers_again(kind, dtype, seed):
    # On a grid with eps = 1 many rows are exactly at eps, and borders are contested.
    X = kind(noisy_grid(seed).astype(dtype))
    model = DBSCAN(1, min_samples=5).fit(X)
    assert set(model.labels_) > {-1, 0}
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.score_samples(X), -model.outlier_scores_)
    is_outlier = model.decision_function(X) < 0
    np.testing.assert_array_equal(is_outlier, model.labels_ == -1)


def test_dbscan_scores_are_distances_to_core_rows(seed):
    X, new = plant(seed).X, plant(seed + 50).X
    model = DBSCAN(1.2, min_samples=5).fit(X)
    core = X[model.core_sample_indices_]
    core_labels = model.labels_[model.core_sample_indices_]
    np.testing.assert_array_equal(model.components_, core)
    for rows, scores in [
        (X, model.outlier_scores_),
        (new, -model.score_samples(new)),
    ]:
        distances = pairwise_distances(rows, core)
        np.testing.assert_allclose(scores, distances.min(axis=1), atol=1e-6)
    nearest = pairwise_distances(new, core)
    expected = np.where(
        nearest.min(axis=1) <= 1.2, core_labels[nearest.argmin(axis=1)], -1
    )
    np.testing.assert_array_equal(model.predict(new), expected)
    noise = model.labels_ == -1
    assert noise.any()
    of_noise = core_labels[pairwise_distances(X[noise], core).argmin(axis=1)]
    np.testing.assert_array_equal(model.nearest_labels_[noise], of_noise)
    np.testing.assert_array_equal(model.nearest_labels_[~noise], model.labels_[~noise])


@pytest.mark.parametrize("kind", [np.array, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_features", [3, 24])
@pytest.mark.parametrize("is_constant", [True, False])
def test_columns_far_from_zero_hide_nothing(kind, n_features, is_constant, seed):
    # Of wide and of sparse rows, distances come from products.
    X = np.random.default_rng(seed).normal(size=(120, n_features)).round(4)
    X[60:] += 12
    X[0] = 40
    eps = 1.3 * n_features**0.5
    if is_constant:
        shifted = np.column_stack([X, np.full(120, 2.0**31)])
    else:
        shifted = np.column_stack([X[:, 0] + 2.0**31, X[:, 1:]])
        # What is left of the digits so far from zero.
        X[:, 0] = shifted[:, 0] - 2.0**31
    plain, model = (DBSCAN(eps, min_samples=5).fit(kind(rows)) for rows in (X, shifted))
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_allclose(model.outlier_scores_, plain.outlier_scores_, atol=1e-6)
    np.testing.assert_array_equal(model.predict(kind(shifted)), plain.labels_)
    core = shifted[model.core_sample_indices_]
    np.testing.assert_array_equal(model.components_.sum(), kind(core).sum())
    X, shifted = X[:20], shifted[:20]
    X[:, 1] += 0.25
    shifted[:, 1] += 0.25
    scores = plain.score_samples(kind(X)), model.score_samples(kind(shifted))
    np.testing.assert_allclose(*scores, atol=1e-6)
    assert plain.labels_[0] == -1
    assert plain.n_clusters_ >= 2


def test_dbscan_by_hand():
    model = DBSCAN(1.0, min_samples=4).fit(touching_groups())
    np.testing.assert_array_equal(model.labels_, [0, 0, 0, 0, 1, 1, 1, 1, 0, -1])
    np.testing.assert_array_equal(model.core_sample_indices_, np.arange(8))
    np.testing.assert_allclose(model.outlier_scores_, [0] * 8 + [0.8, 15.1])
    assert model.offset_ == -1
    # The border row keeps its label; a new row next to it goes to the nearest core row.
    np.testing.assert_array_equal(model.predict([[3.5], [3.51], [7.0]]), [0, 1, -1])
    np.testing.assert_array_equal(model.nearest_labels_[8:], [0, 1])


def test_dbscan_knows_a_row_in_any_storage():
    points = touching_groups()
    X = np.column_stack([np.zeros(len(points)), points])
    model = DBSCAN(1.0, min_samples=4).fit(X)
    border, label = X[8:9], model.labels_[8]
    assert model.predict(border + [[0, 0.01]]) != label
    # The second holds a zero with a minus sign.
    for row in (border, border * [-1, 1], sparse.csr_array(border)):
        assert model.predict(row) == label
    # An explicit zero is a zero, and is still there afterwards.
    explicit = sparse.csr_array(
        (np.array([0.0, 3.5]), np.array([0, 1]), np.array([0, 2])), shape=(1, 2)
    )
    assert model.predict(explicit) == label
    assert explicit.nnz == 2


def test_dbscan_survives_pickling():
    X = touching_groups()
    model = pickle.loads(pickle.dumps(DBSCAN(1.0, min_samples=4).fit(X)))
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_dbscan_without_core_rows_calls_all_rows_noise():
    X = 10 * np.arange(6.0)[:, None]
    model = DBSCAN(0.5, min_samples=2).fit(X)
    np.testing.assert_array_equal(model.labels_, -1)
    np.testing.assert_array_equal(model.nearest_labels_, -1)
    np.testing.assert_array_equal(model.outlier_scores_, 1.0)
    np.testing.assert_array_equal(model.predict([[0.0], [7.0]]), -1)
    assert (model.decision_function(X) < 0).all()
    assert (model.n_clusters_, model.n_outliers_) == (0, 6)
    assert model.components_.shape == (0, 1)


def test_dbscan_with_a_single_row_or_equal_rows():
    assert DBSCAN(min_samples=1).fit([[3.0]]).labels_ == [0]
    assert DBSCAN(min_samples=2).fit([[3.0]]).labels_ == [-1]
    model = DBSCAN().fit(np.ones((5, 3)))
    np.testing.assert_array_equal(model.labels_, 0)
    np.testing.assert_array_equal(model.outlier_scores_, 0)
    assert model.n_outliers_ == 0


def test_dbscan_weights_are_neighbours():
    X = [[0.0], [5.0]]
    model = DBSCAN(min_samples=3).fit(X, sample_weight=[3, 2])
    np.testing.assert_array_equal(model.labels_, [0, -1])


def test_dbscan_takes_a_distance_function():
    X = np.array([[1.0], [10.0], [100.0], [1e6]])
    model = DBSCAN(
        1.0, min_samples=2, metric=lambda a, b: abs(np.log10(a[0] / b[0]))
    ).fit(X)
    np.testing.assert_array_equal(model.labels_, [0, 0, 0, -1])
    np.testing.assert_allclose(model.outlier_scores_, [0, 0, 0, 4])


@pytest.mark.parametrize("min_samples", [None, 3])
@pytest.mark.parametrize("method", ["eom", "leaf"])
def test_hdbscan_labels_are_scikit_learns(min_samples, method, seed):
    X = plant(seed).X
    parameters = {
        "min_cluster_size": 8,
        "min_samples": min_samples,
        "cluster_selection_method": method,
        "alpha": 1.1,
        "cluster_selection_epsilon": 0.1,
        "max_cluster_size": 70,
    }
    model = HDBSCAN(**parameters).fit(X)
    truth = sklearn.cluster.HDBSCAN(**parameters, copy=True).fit(X)
    np.testing.assert_array_equal(model.labels_, truth.labels_)
    np.testing.assert_array_equal(model.probabilities_, truth.probabilities_)
    assert model.n_clusters_ == len(set(truth.labels_) - {-1}) > 0
    assert model.n_outliers_ == np.count_nonzero(truth.labels_ == -1) > 0


def test_hdbscan_scores(seed):
    X = plant(seed).X
    model = HDBSCAN(min_cluster_size=8).fit(X)
    noise = model.labels_ == -1
    np.testing.assert_allclose(model.outlier_scores_, 1 - model.probabilities_)
    np.testing.assert_array_equal(model.outlier_scores_ == 1, noise)
    np.testing.assert_array_equal(-model.outlier_scores_ < model.offset_, noise)
    distances = pairwise_distances(X[noise], X[~noise])
    expected = model.labels_[~noise][distances.argmin(axis=1)]
    np.testing.assert_array_equal(model.nearest_labels_[noise], expected)
    np.testing.assert_array_equal(model.nearest_labels_[~noise], model.labels_[~noise])


def test_hdbscan_finds_planted_outliers(planted):
    model = HDBSCAN(min_cluster_size=20).fit(planted.X)
    assert model.n_clusters_ == 3
    assert (model.labels_[planted.outliers] == -1).all()


def test_hdbscan_single_cluster():
    X = np.random.default_rng(0).normal(size=(60, 2))
    assert HDBSCAN(20, allow_single_cluster=True).fit(X).n_clusters_ == 1
    assert HDBSCAN(20).fit(X).n_clusters_ != 1


def test_hdbscan_without_clusters():
    X = 10.0 ** np.arange(8)[:, None]
    model = HDBSCAN(min_cluster_size=8).fit(X)
    np.testing.assert_array_equal(model.labels_, -1)
    np.testing.assert_array_equal(model.nearest_labels_, -1)
    np.testing.assert_array_equal(model.outlier_scores_, 1)
    assert (-model.outlier_scores_ < model.offset_).all()
    assert (model.n_clusters_, model.n_outliers_) == (0, 8)


def test_hdbscan_with_equal_rows_and_a_constant_column():
    X = np.repeat([[0.0, 1.0], [9.0, 1.0]], 10, axis=0)
    model = HDBSCAN(min_cluster_size=5).fit(X)
    np.testing.assert_array_equal(np.sort(model.labels_), np.repeat([0, 1], 10))
    assert np.isfinite(model.outlier_scores_).all()


def test_hdbscan_has_no_predict_and_says_why(planted):
    model = HDBSCAN().fit(planted.X)
    assert not hasattr(model, "predict")
    assert not hasattr(model, "score_samples")
    with pytest.raises(AttributeError, match="new rows have no place in its tree"):
        model.predict(planted.X)


def test_hdbscan_refuses_sparse_rows(planted):
    with pytest.raises(TypeError, match="dense data is required"):
        HDBSCAN().fit(sparse.csr_array(planted.X))


@pytest.mark.parametrize("estimator", [DBSCAN, HDBSCAN])
def test_fit_predict_returns_the_labels(estimator, planted):
    labels = estimator().fit_predict(planted.X)
    np.testing.assert_array_equal(labels, estimator().fit(planted.X).labels_)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (DBSCAN(eps=0), r"The 'eps' parameter of DBSCAN must be a float in the range"),
        (DBSCAN(min_samples=0), "The 'min_samples' parameter of DBSCAN"),
        (DBSCAN(metric="precomputed"), "The 'metric' parameter of DBSCAN must be"),
        (HDBSCAN(min_cluster_size=1), "The 'min_cluster_size' parameter of HDBSCAN"),
        (HDBSCAN(metric="precomputed"), "The 'metric' parameter of HDBSCAN must be"),
        (HDBSCAN(min_samples=999), r"min_samples \(999\) must be at most"),
    ],
)
def test_bad_parameters(estimator, message, planted):
    with pytest.raises(ValueError, match=message):
        estimator.fit(planted.X)


@pytest.mark.parametrize("estimator", [DBSCAN, HDBSCAN])
def test_every_metric_that_is_offered_works(estimator):
    # Two columns, as haversine has; within 0 and 1, as some take them for booleans.
    X = np.random.default_rng(0).integers(0, 2, size=(30, 2)).astype(float)
    options = estimator._parameter_constraints["metric"][0].options
    assert {"euclidean", "manhattan", "cosine", "jaccard"} < options
    for metric in sorted(options):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataConversionWarning)
            model = estimator(metric=metric).fit(X)
        assert len(model.labels_) == 30


@pytest.mark.parametrize("estimator", [DBSCAN, HDBSCAN])
@pytest.mark.parametrize("metric", ["minkowski", "seuclidean", "mahalanobis", "pyfunc"])
def test_metrics_that_need_parameters_are_refused(estimator, metric, planted):
    with pytest.raises(
        ValueError, match=f"The 'metric' parameter of {estimator.__name__}"
    ):
        estimator(metric=metric).fit(planted.X)
