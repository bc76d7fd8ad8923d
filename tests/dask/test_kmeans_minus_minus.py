"""K-means-- on a cluster is K-means-- in memory, to the last bit."""

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.exceptions import ConvergenceWarning

import corral.rivals
from corral.dask import KMeansMinusMinus
from corral.sources import open_source
from tests.dask.conftest import draw_rows

COLUMNS = ("labels_", "nearest_labels_", "outlier_scores_")
SAME = (
    "cluster_centers_",
    "objective_history_",
    "objective_",
    "n_iter_",
    "offset_",
    "n_outliers_",
    "n_features_in_",
)


def make_both(n_clusters=3, **parameters):
    parameters = {"n_outliers": 12, "n_init": 3, "random_state": 0, **parameters}
    kinds = corral.rivals.KMeansMinusMinus, KMeansMinusMinus
    return [kind(n_clusters, **parameters) for kind in kinds]


def assert_same(local, model):
    for name in COLUMNS:
        lazy = getattr(model, name)
        assert isinstance(lazy, da.Array)
        np.testing.assert_array_equal(getattr(local, name), lazy.compute())
        assert lazy.dtype == getattr(local, name).dtype
    for name in SAME:
        np.testing.assert_array_equal(getattr(local, name), getattr(model, name))


@pytest.mark.parametrize("chunks", [600, 170, (1, 400, 199)])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_arrays(client, X, chunks, metric):
    local, model = make_both(metric=metric)
    assert_same(local.fit(X), model.fit(da.from_array(X, chunks=(chunks, 3))))


def test_many_blocks_are_added_up_in_a_tree(client, X):
    local, model = make_both(n_init=1)
    assert_same(local.fit(X), model.fit(da.from_array(X, chunks=(31, 3))))


def test_float32_and_far_rows(client, X):
    X = X.astype(np.float32)
    X[::50] *= 1e12
    local, model = make_both()
    assert_same(local.fit(X), model.fit(da.from_array(X, chunks=(170, 3))))


def test_ties_across_blocks(client):
    X = np.random.default_rng(0).integers(-2, 3, size=(400, 2)).astype(float)
    local, model = make_both(n_outliers=30)
    assert_same(local.fit(X), model.fit(da.from_array(X, chunks=(90, 2))))


def test_without_outliers_it_is_kmeans(client, X):
    from sklearn.cluster import KMeans

    local, model = make_both(n_outliers=0, init=X[:3], tol=0)
    model.fit(da.from_array(X, chunks=(170, 3)))
    assert_same(local.fit(X), model)
    kmeans = KMeans(3, init=X[:3], n_init=1, tol=0).fit(X)
    np.testing.assert_array_equal(model.labels_.compute(), kmeans.labels_)
    assert model.objective_ == pytest.approx(kmeans.inertia_)
    assert model.offset_ == -np.inf


def test_emptied_clusters_are_refilled_from_any_block(client, X):
    starts = np.concatenate([np.zeros((1, 3)), np.full((4, 3), 1e6)])
    local, model = make_both(5, init=starts, n_outliers=6, tol=0)
    model.fit(da.from_array(X, chunks=(170, 3)))
    assert_same(local.fit(X), model)
    assert set(model.labels_.compute().tolist()) == {-1, 0, 1, 2, 3, 4}


def test_frames_and_answers_for_new_rows(client, X):
    frame = pd.DataFrame(X, columns=list("abc"))
    chunks = dd.from_pandas(frame, npartitions=4)
    local, model = make_both()
    assert_same(local.fit(frame), model.fit(chunks))
    np.testing.assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
    for method in ("predict", "score_samples", "transform", "decision_function"):
        expected = getattr(local, method)(frame)
        for rows in (chunks, frame):
            found = getattr(model, method)(rows)
            np.testing.assert_array_equal(np.asarray(found), expected)
    lazy = make_both()[1].fit(da.from_array(X, chunks=(170, 3)))
    assert isinstance(lazy.predict(da.from_array(X)), da.Array)
    np.testing.assert_array_equal(lazy.predict(X), local.predict(frame))


def test_a_folder_of_parquet_files(client, X, tmp_path, cut_into):
    cut_into(77)
    for number, part in enumerate(np.array_split(X, 3)):
        table = pa.table({name: part[:, j] for j, name in enumerate("abc")})
        pq.write_table(table, tmp_path / f"{number}.parquet", row_group_size=50)
    local, model = make_both()
    local.fit(X)
    assert_same(local, model.fit(tmp_path))
    assert_same(local, model.fit(open_source(tmp_path)))


def test_to_local_needs_no_cluster(client, X):
    local, model = make_both()
    local.fit(X)
    brought = model.fit(da.from_array(X, chunks=(170, 3))).to_local()
    assert type(brought) is corral.rivals.KMeansMinusMinus
    for name in COLUMNS:
        assert isinstance(getattr(brought, name), np.ndarray)
        np.testing.assert_array_equal(getattr(brought, name), getattr(local, name))
    np.testing.assert_array_equal(brought.predict(X), local.predict(X))


def test_warnings_are_those_of_memory(client, X):
    chunks = da.from_array(X, chunks=(170, 3))
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=1 before"):
        KMeansMinusMinus(3, init=X[:3], max_iter=1, tol=0).fit(chunks)
    with pytest.warns(ConvergenceWarning, match="Only 1 of n_clusters=2 clusters"):
        KMeansMinusMinus(2, n_outliers=3, random_state=0).fit(da.ones((10, 2)))


def test_what_cannot_be_used_is_refused(client, X):
    chunks = da.from_array(X, chunks=(170, 3))
    with pytest.raises(
        TypeError, match="X is a ndarray in memory; corral.dask.KMeansMi"
    ):
        KMeansMinusMinus(3).fit(X)
    with pytest.raises(ValueError, match="sample_weight cannot be used with rows that"):
        KMeansMinusMinus(3).fit(chunks, sample_weight=np.ones(len(X)))
    with pytest.raises(
        ValueError, match=r"init='k-means\+\+' cannot be used with rows"
    ):
        KMeansMinusMinus(3, init="k-means++").fit(chunks)
    with pytest.raises(ValueError, match="X is chunked along its columns"):
        KMeansMinusMinus(3).fit(da.from_array(X, chunks=(170, 2)))
    with pytest.raises(ValueError, match="n_outliers=597 should be smaller than"):
        KMeansMinusMinus(3, n_outliers=597).fit(chunks)


def test_rows_do_not_travel(client, monkeypatch):
    # What comes back in a pass is far smaller than the rows.
    from corral.dask._states import Tasks

    sizes = []
    gather = Tasks.gather

    def weigh(tasks, futures):
        found = gather(tasks, futures)
        sizes.append(len(pickle.dumps(found)))
        return found

    monkeypatch.setattr(Tasks, "gather", weigh)
    X = draw_rows(40_000, 6)
    KMeansMinusMinus(3, n_outliers=400, n_init=2, random_state=0).fit(
        da.from_array(X, chunks=(10_000, 6))
    )
    assert max(sizes) < X.nbytes / 5
