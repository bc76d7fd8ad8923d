"""Bad input: what, its value, what it should be, what to do."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.cluster import DBSCAN
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from corral import COR, all_methods
from corral.detectors._base import Detector
from corral.rivals import KMeansMinusMinus, KMedianOutliers


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(40, 3))


def test_count_and_share_clash(X):
    message = (
        r"Set either n_outliers or contamination, not both\. Got n_outliers=5 and "
        r"contamination=0\.1\."
    )
    with pytest.raises(ValueError, match=message):
        COR(2, n_outliers=5, contamination=0.1).fit(X)


@pytest.mark.parametrize("n_outliers", [36, 38, 39, 100])
def test_too_many_outliers(X, n_outliers):
    message = (
        rf"n_outliers={n_outliers} should be smaller than n_samples - n_clusters = "
        r"40 - 4 = 36\. Lower n_outliers or n_clusters\."
    )
    with pytest.raises(ValueError, match=message):
        COR(4, n_outliers=n_outliers).fit(X)


def test_too_large_a_share(X):
    message = r"contamination=0\.95, which makes 38 outliers, should be smaller than"
    with pytest.raises(ValueError, match=message) as error:
        COR(4, contamination=0.95).fit(X)
    assert str(error.value).endswith(" = 36. Lower contamination or n_clusters.")


def test_fewer_rows_than_clusters(X):
    with pytest.raises(
        ValueError, match=r"n_samples=3 should be >= n_clusters=5\. Lower"
    ):
        COR(5, n_outliers=0).fit(X[:3])


def test_fewer_codes_than_clusters():
    X = np.repeat([[0.0, 0.0], [1.0, 1.0]], 20, axis=0)
    message = (
        r"Only 2 distinct codes were found for n_clusters=3\. Raise n_partitions "
        r"\(now 100\) or lower n_clusters\."
    )
    with pytest.raises(ValueError, match=message):
        COR(3, n_outliers=0).fit(X)


def test_clusters_that_are_set_aside_whole_are_announced():
    # Six rows remain, and they have fewer than three codes between them.
    labels = np.array([[0, 0]] * 10 + [[1, 1]] * 10 + [[2, 2]])
    model = COR(3, n_outliers=15, n_init=1, random_state=0)
    message = r"Only \d of n_clusters=3 clusters kept a row after 15 outliers"
    with pytest.warns(ConvergenceWarning, match=message):
        model.fit_partitions(labels)
    assert np.count_nonzero(model.labels_ == -1) == 15
    assert np.isfinite(model.partition_centers_).all()
    X = labels * [1.0, 2.0]
    with pytest.warns(ConvergenceWarning, match=message):
        model.fit(X)
    assert np.isfinite(model.cluster_centers_).all()
    assert model.cluster_centers_.shape == (3, 2)


def test_infinite_values_are_refused(X):
    X[3, 1] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        COR(2).fit(X)
    with pytest.raises(ValueError, match="infinity"):
        COR(2).fit(pd.DataFrame(X))


def test_columns_of_text(X):
    frame = pd.DataFrame(X, columns=["a", "b", "c"]).assign(city="Delft", name="x")
    message = (
        r"X has columns that are not numbers: 'city' \(String\), 'name' \(String\)\."
    )
    with pytest.raises(ValueError, match=message):
        COR(2).fit(frame)


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (["town"], r"categorical_features=\['town'\] are not columns of X"),
        ([7], r"categorical_features=\[7\] should be columns of X, which has 3"),
        ([True, False], r"categorical_features has 2 entries but X has 3 columns"),
    ],
)
def test_unknown_categorical_columns(X, columns, message):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    with pytest.raises(ValueError, match=message):
        COR(2, categorical_features=columns).fit(frame)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (
            [[0, 1], [1, -2]],
            r"partitions holds -2; labels should be whole numbers from 0 up",
        ),
        ([[0, 1], [1, 0.5]], r"partitions holds 0\.5; labels should be whole numbers"),
        (
            [[0, 1], [-1, -1]],
            r"1 rows have no label in any partition, the first is row 1",
        ),
        ([["a", "b"]], r"partitions should hold whole numbers, one label per row"),
        (np.zeros((0, 2)), r"partitions has shape \(0, 2\); it should be"),
    ],
)
def test_label_matrix(labels, message):
    with pytest.raises(ValueError, match=message):
        COR(1, n_outliers=0).fit_partitions(labels)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (np.full(40, -1.0), r"sample_weight has a negative value -1\.0"),
        (np.zeros(40), "at least one non-zero"),
        (np.ones(3), "sample_weight.shape"),
    ],
)
def test_weights(X, weights, message):
    with pytest.raises(ValueError, match=message):
        COR(2).fit(X, sample_weight=weights)


def test_number_of_partitions_at_predict():
    labels = np.array([[0, 0, 1], [1, 1, 0], [0, 1, 1]])
    model = COR(2, n_outliers=0).fit_partitions(labels)
    with pytest.raises(ValueError, match="X has 2 partitions but COR was fitted on 3"):
        model.predict(labels[:, :2])


def test_no_threads(X):
    with pytest.raises(ValueError, match="n_jobs=0 should be a number of threads"):
        COR(2, n_jobs=0).fit(X)


@pytest.mark.parametrize("k_range", [(3,), (5, 2), (0, 4), (2.5, 4)])
def test_range_of_clusters(X, k_range):
    with pytest.raises(ValueError, match="should be two whole numbers"):
        COR(2, k_range=k_range).fit(X)


@pytest.mark.parametrize("partitions", [[], ["k-means"], [3]])
def test_list_of_partitions(X, partitions):
    with pytest.raises(ValueError, match="should be a list of clusterers and 'kmeans'"):
        COR(2, partitions=partitions).fit(X)


@pytest.mark.parametrize(
    "parameter",
    [
        {"n_clusters": 0},
        {"n_outliers": -1},
        {"contamination": 1.0},
        {"metric": "cosin"},
        {"init": "best"},
        {"eps": 0.0},
        {"n_partitions": 0},
        {"feature_share": 0.0},
        {"max_samples": 0},
        {"strategy": "both"},
        {"partitions": "agglomerative"},
    ],
    ids=str,
)
def test_parameter_out_of_range(X, parameter):
    name = next(iter(parameter))
    with pytest.raises(ValueError, match=f"The '{name}' parameter of COR must be"):
        COR(**parameter).fit(X)


def test_failed_fit_leaves_the_model_unfitted(X):
    model = COR(2, n_outliers=100)
    with pytest.raises(ValueError, match="should be smaller"):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.predict(X)
    # Nor does it keep the answers of an earlier fit.
    model.set_params(n_outliers=3).fit(X)
    with pytest.raises(ValueError, match="should be smaller"):
        model.set_params(n_outliers=100).fit(X)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_rows_that_no_clusterer_labels(X):
    X[:2] = 1000
    with pytest.raises(ValueError, match=r"2 rows have no label in any partition"):
        COR(1, n_outliers=0, partitions=[DBSCAN(eps=5.0)]).fit(X)


def test_outliers_with_all_the_weight(X):
    weights = np.zeros(len(X))
    weights[0] = 1
    with pytest.raises(ValueError, match=r"outliers have all of sample_weight"):
        COR(1, n_outliers=38, k_range=(3, 5)).fit(X, sample_weight=weights)


def repeat_entries(X):
    """Return the same numbers with each stored as two halves, in reverse order."""
    n_rows, n_columns = X.shape
    columns = np.repeat(np.arange(n_columns)[::-1], 2)
    halves = np.repeat(X[:, ::-1] / 2, 2, axis=1)
    ends = np.arange(n_rows + 1) * 2 * n_columns
    return sparse.csr_array(
        (halves.ravel(), np.tile(columns, n_rows), ends), shape=X.shape
    )


@pytest.mark.parametrize("name", ["cor", "kmeans--", "lof", "ldof"])
def test_repeated_and_unsorted_entries_of_sparse_rows_are_added_up(name):
    X = np.abs(np.random.default_rng(0).normal(size=(60, 3)))
    method = all_methods()[name]
    wanted = {"n_clusters": 2, "n_outliers": 3, "random_state": 0}
    wanted = {k: v for k, v in wanted.items() if k in method.parameters}
    rows = repeat_entries(X)
    entries = rows.data.copy()
    labels = method.make(**wanted).fit(rows).labels_
    expected = method.make(**wanted).fit(sparse.csr_array(X)).labels_
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_array_equal(rows.data, entries)


def test_scores_that_are_not_finite_are_refused():
    class Careless(Detector):
        def __init__(self, n_outliers=None, contamination=None):
            self.n_outliers = n_outliers
            self.contamination = contamination

        def _fit(self, X):
            return X[:, 0] * np.inf

    message = "Careless gives 2 rows a score that is not a number, the first is row 0"
    with pytest.raises(ValueError, match=message):
        Careless().fit([[1.0], [2.0]])


def test_a_row_that_the_metric_cannot_compare_is_refused_with_the_reason(planted):
    model = KMedianOutliers(3, n_outliers=6, metric="correlation").fit(planted.X)
    width = planted.X.shape[1]
    message = "gives row 1 a score that is not a number.* constant row has no correlat"
    with pytest.raises(ValueError, match=message):
        model.predict([planted.X[0], np.full(width, 3.0)])


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_values_that_cannot_be_squared_are_refused_for_what_is_squared(X, form):
    words = "distance of a value of X from the middle"
    message = rf"^The largest {words} is about .*e\+200, which cannot be squared"
    with pytest.raises(ValueError, match=message):
        KMeansMinusMinus(2, n_outliers=1).fit(form(1e200 * X))


def test_a_frame_without_rows_is_refused():
    frame = pd.DataFrame({"a": [1.0], "b": ["x"]})[:0]
    with pytest.raises(ValueError, match=r"X has 0 sample\(s\); COR needs at least 1"):
        COR(2, categorical_features=["b"]).fit(frame)
