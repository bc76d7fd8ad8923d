"""What the methods with exemplars share: distances of any size, kind and storage."""

import tracemalloc

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.metrics import pairwise_distances

from corral.rivals._charikar import KCenterOutliers, KMedianOutliers
from corral.rivals._exemplars import Ruler, find_nearest, read_bytes
from corral.rivals._lagrangian import LagrangianClustering

ALL = [KCenterOutliers, KMedianOutliers, LagrangianClustering]


def draw(seed, n_samples=40, n_features=5):
    """Return rows of which half are there twice."""
    X = np.random.default_rng(seed).normal(size=(n_samples, n_features))
    X[n_samples // 2 :] = X[: n_samples // 2]
    return X


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine", "canberra"])
def test_dense_and_sparse_rows_are_answered_alike(estimator, metric, planted):
    X = planted.X
    dense = estimator(3, n_outliers=6, metric=metric).fit(X)
    sparse = estimator(3, n_outliers=6, metric=metric).fit(csr_array(X))
    np.testing.assert_array_equal(sparse.labels_, dense.labels_)
    for model in (dense, sparse):
        for rows in (X, csr_array(X)):
            np.testing.assert_array_equal(model.predict(rows), dense.labels_)
            scores = -model.score_samples(rows)
            np.testing.assert_array_equal(scores, dense.outlier_scores_)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_a_function_gets_rows_as_in_the_fit(kind):
    X = draw(0, 24)[:12]
    kinds = set()

    def measure(row, other):
        kinds.add((type(row), type(other)))
        return float(abs(row - other).sum())

    model = KMedianOutliers(2, n_outliers=1, metric=measure).fit(kind(X))
    for rows in (X, csr_array(X)):
        np.testing.assert_array_equal(model.predict(rows), model.labels_)
    assert len(kinds) == 1


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("unit", [1.0, 1e-170])
def test_one_huge_row_is_an_outlier(estimator, unit):
    X = unit * np.array([[1.0], [2.0], [1e300], [5.0], [6.0]])
    model = estimator(2, n_outliers=1).fit(X)
    np.testing.assert_array_equal(model.labels_, [0, 0, -1, 1, 1])
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    assert model.outlier_scores_[2] == pytest.approx(1e300 * unit)
    assert np.isfinite(model.objective_)


# Of some draws, no creation cost gives three clusters: what is tested holds for others.
allow_other_clusters = pytest.mark.filterwarnings("ignore:No creation cost was found")

UNITS = [
    (metric, power)
    for metric in ("euclidean", "sqeuclidean", "manhattan", "cosine", "correlation")
    for power in (-700, -300, 300, 700)
    # Such squares are refused, which is tested below.
    if (metric, power) != ("sqeuclidean", 700)
]


@allow_other_clusters
@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize(("metric", "power"), UNITS)
def test_powers_of_two_change_the_unit_alone(estimator, metric, power, seed):
    X = draw(seed)
    plain = estimator(3, n_outliers=4, metric=metric).fit(X)
    model = estimator(3, n_outliers=4, metric=metric).fit(np.ldexp(X, power))
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(model.predict(np.ldexp(X, power)), plain.labels_)
    degree = {"cosine": 0, "correlation": 0, "sqeuclidean": 2}.get(metric, 1)
    expected = np.ldexp(plain.outlier_scores_, degree * power)
    objective = np.ldexp(plain.objective_, degree * power)
    np.testing.assert_allclose(model.outlier_scores_, expected)
    assert model.objective_ == pytest.approx(objective, rel=1e-6, abs=0)


@pytest.mark.parametrize("estimator", ALL)
def test_squares_that_are_no_numbers_are_refused(estimator):
    X = np.ldexp(draw(0), 700)
    with pytest.raises(ValueError, match=r"gives \d+ rows a score that is not a num"):
        estimator(3, n_outliers=4, metric="sqeuclidean").fit(X)


def test_creation_cost_is_in_units_of_the_metric():
    X = draw(0)
    plain = LagrangianClustering(creation_cost=3.0, n_outliers=2).fit(X)
    tiny = LagrangianClustering(creation_cost=np.ldexp(3.0, -600), n_outliers=2)
    tiny.fit(np.ldexp(X, -600))
    np.testing.assert_array_equal(tiny.exemplars_, plain.exemplars_)
    assert tiny.creation_cost_ == np.ldexp(3.0, -600)


@pytest.mark.parametrize("metric", ["euclidean", "cosine", "manhattan", "chebyshev"])
def test_distances_are_scikit_learns(metric, seed, monkeypatch):
    X = draw(seed)
    expected = pairwise_distances(X, metric=metric)
    np.testing.assert_allclose(Ruler(metric).measure_all(X), expected, atol=1e-7)
    monkeypatch.setattr("corral.rivals._exemplars._DENSE_ENTRIES", 35)
    parts = Ruler(metric).measure_all(csr_array(X))
    np.testing.assert_allclose(parts, expected, atol=1e-7)


def test_euclidean_distances_out_of_the_range_of_squares():
    X = np.array([[3e-200, 4e-200], [0.0, 0.0], [3e200, 4e200], [-9e307, 0.0]])
    # Not scaled, as the largest and the smallest are too far apart.
    distances = Ruler("euclidean").measure(X, X)
    np.testing.assert_allclose(distances[0, 1], 5e-200)
    np.testing.assert_allclose(distances[1, 2], 5e200)
    np.testing.assert_allclose(distances[3, :3], 9e307)
    np.testing.assert_array_equal(distances.diagonal(), 0)


def test_cosine_of_equal_parallel_and_zero_rows():
    X = np.array([[1.0, 2.0], [1.0, 2.0], [1e-200, 2e-200], [0, 0], [0, 0], [-1, -2]])
    distances = Ruler("cosine").measure_all(X)
    expected = [0, 0, 0, 1, 1, 2]
    np.testing.assert_allclose(distances[0], expected, atol=1e-30)
    np.testing.assert_array_equal(distances[3], [1, 1, 1, 0, 0, 1])


@allow_other_clusters
@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize("metric", ["cosine", "correlation", "euclidean", "braycurtis"])
def test_each_row_is_answered_by_itself(estimator, metric, seed):
    X = np.abs(draw(seed, n_features=33))
    model = estimator(3, n_outliers=4, metric=metric).fit(X)
    # The copy that is no outlier is as far as the one that is one.
    alone = np.concatenate([model.predict(row[None]) for row in X])
    np.testing.assert_array_equal(alone, model.predict(X))
    np.testing.assert_array_equal(model.score_samples(X), -model.outlier_scores_)
    kept = model.labels_ >= 0
    np.testing.assert_array_equal(alone[kept], model.labels_[kept])


@pytest.mark.parametrize("metric", ["cosine", "euclidean"])
def test_k_center_keeps_its_bound_exactly(metric, seed):
    rng = np.random.default_rng(seed)
    for _ in range(20):
        X = rng.integers(0, 3, size=(20, 3)) + 0.1
        model = KCenterOutliers(3, n_outliers=2, metric=metric).fit(X)
        assert model.objective_ <= 3 * model.lower_bound_


@pytest.mark.parametrize("estimator", ALL)
@pytest.mark.parametrize(
    ("X", "metric", "message"),
    [
        ([[8e307] * 2, [-8e307] * 2], "euclidean", "gives inf as .* rows 0 and 1"),
        ([[1.0, 2], [3, 3], [1, 5]], "correlation", "gives nan as .* rows 0 and 1"),
        ([[1.0], [2], [3]], lambda a, b: np.nan, "distances should be finite"),
        ([[1.0], [2], [3]], "seuclidean", "metric='seuclidean' needs parameters"),
    ],
)
def test_distances_that_are_no_numbers_are_refused(estimator, X, metric, message):
    with pytest.raises(ValueError, match=message), np.errstate(all="ignore"):
        estimator(1, n_outliers=0, metric=metric).fit(X)


def test_find_nearest_takes_the_first(seed):
    distances = np.random.default_rng(seed).integers(0, 4, size=(30, 30)).astype(float)
    exemplars = np.array([7, 3, 20, 11])
    nearest, places = find_nearest(distances, exemplars)
    np.testing.assert_array_equal(nearest, distances[exemplars].min(axis=0))
    np.testing.assert_array_equal(places, distances[exemplars].argmin(axis=0))


def test_a_fit_with_many_clusters_stays_within_its_memory():
    """As many exemplars as rows: no other matrix may be beside the distances."""
    n = 600
    X = np.arange(float(n))[:, None]
    tracemalloc.start()
    LagrangianClustering(creation_cost=1e-3, n_outliers=0).fit(X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The block of distances that is being measured is one more, for so few rows.
    assert peak < 2.9 * 8 * n**2


@pytest.mark.parametrize("limit", [True, False])
def test_booleans_are_no_numbers_of_bytes(limit):
    with pytest.raises(ValueError, match=f"memory_limit={limit} should be a number"):
        read_bytes(limit)
