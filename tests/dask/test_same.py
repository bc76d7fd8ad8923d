"""A fit on a cluster is the fit on one machine, to the last bit, in any blocks."""

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client, LocalCluster
from scipy import sparse

import corral
from corral import _census, _cut
from corral.dask import COR
from corral.sources import open_source
from tests.dask.processes import wait_until

SETTINGS = {"n_partitions": 20, "n_resamples": 5, "random_state": 0}
ROWS = (
    "labels_",
    "nearest_labels_",
    "outlier_scores_",
    "outlier_confidence_",
    "label_confidence_",
)
EXACT = (
    "offset_",
    "n_codes_",
    "n_clusters_",
    "n_outliers_",
    "n_labels_",
    "n_iter_",
    "objective_",
    "objective_history_",
    "partition_centers_",
    "cluster_stability_",
)
# Sums of floats, whose last bits depend on how rows are cut.
MEANS = ("cluster_centers_", "cluster_spreads_")


def assert_same(found, expected, *, same_blocks=False):
    """Compare a fit on a cluster with one on this machine."""
    for name in ROWS:
        column = getattr(found, name)
        assert isinstance(column, da.Array), name
        wanted = np.asarray(getattr(expected, name))
        assert column.dtype == wanted.dtype, name
        np.testing.assert_array_equal(column.compute(), wanted, err_msg=name)
    for name in EXACT:
        np.testing.assert_array_equal(
            getattr(found, name), getattr(expected, name), err_msg=name
        )
    for name in MEANS:
        assert hasattr(found, name) == hasattr(expected, name)
        if hasattr(found, name):
            pair = getattr(found, name), getattr(expected, name)
            if same_blocks:
                np.testing.assert_array_equal(*pair, err_msg=name)
            np.testing.assert_allclose(*pair, rtol=1e-9, atol=1e-9, err_msg=name)


def cut_array(X, sizes):
    """Return an array of Dask with chunks of these sizes."""
    ends = np.cumsum(sizes)
    parts = [X[end - size : end] for end, size in zip(ends, sizes, strict=True)]
    return da.concatenate([da.from_array(part, chunks=-1) for part in parts])


@pytest.mark.parametrize(
    "sizes",
    [[600], [1, 350, 2, 47, 200], [0, 300, 0, 0, 300, 0], [1] * 12 + [588]],
    ids=["one", "odd", "empty", "single rows"],
)
def test_arrays_of_any_chunks(client, X, sizes):
    model = COR(3, n_outliers=12, **SETTINGS).fit(cut_array(X, sizes))
    expected = corral.COR(3, n_outliers=12, **SETTINGS).fit(X)
    assert_same(model, expected)
    assert model.storage_.n_blocks == np.count_nonzero(sizes)
    assert model.storage_.states == "workers"


def test_the_same_blocks_have_the_same_means_to_the_last_bit(client, X, monkeypatch):
    sizes = [130, 70, 1, 299, 100]
    monkeypatch.setattr("corral._open.cut_sizes", lambda *_: np.array(sizes))
    expected = corral.COR(3, n_outliers=12, **SETTINGS).fit(open_source(X))
    assert expected.storage_.n_blocks == len(sizes)
    model = COR(3, n_outliers=12, **SETTINGS).fit(cut_array(X, sizes))
    assert_same(model, expected, same_blocks=True)


@pytest.mark.parametrize(
    ("make", "params"),
    [
        (COR, {"n_clusters": "auto"}),
        (COR, {"n_clusters": 3, "n_outliers": 12, "n_resamples": 5, "k_range": "auto"}),
        (COR.paper, {"n_clusters": 3, "n_outliers": 12, "n_init": 2}),
        (COR, {"n_clusters": 3, "contamination": 0.03, "init": "k-means++"}),
        (COR, {"n_clusters": 3, "n_outliers": 12, "strategy": "rfs"}),
    ],
    ids=["auto", "auto range", "paper", "k-means++", "rfs"],
)
def test_settings(client, X, make, params, monkeypatch):
    # In the same blocks: random starts are drawn from the codes of all of them.
    monkeypatch.setattr("corral._open.cut_sizes", lambda *_: np.array([250, 350]))
    params = SETTINGS | params
    local = corral.COR.paper if make == COR.paper else corral.COR
    expected = local(**params).fit(open_source(X))
    model = make(**params).fit(cut_array(X, [250, 350]))
    assert isinstance(model, COR)
    assert_same(model, expected, same_blocks=True)
    if params["n_clusters"] == "auto":
        assert model.selection_.reason == expected.selection_.reason


def test_missing_cells_in_one_chunk_only(client, X):
    X[400:450:7, 1] = np.nan
    model = COR(3, n_outliers=12, **SETTINGS).fit(da.from_array(X, chunks=(200, -1)))
    expected = corral.COR(3, n_outliers=12, **SETTINGS).fit(X)
    assert_same(model, expected)


def test_sparse_chunks(client, X):
    X = np.where(np.abs(X) < 1, 0, X)
    chunks = da.from_array(X, chunks=(170, -1)).map_blocks(sparse.csr_array)
    model = COR(3, n_outliers=12, **SETTINGS).fit(chunks)
    expected = corral.COR(3, n_outliers=12, **SETTINGS).fit(sparse.csr_array(X))
    assert_same(model, expected)
    np.testing.assert_array_equal(model.predict(chunks).compute(), expected.predict(X))


def test_float32_chunks_and_persisted_ones(client, X):
    X = X.astype(np.float32)
    chunks = da.from_array(X, chunks=(170, -1)).persist()
    model = COR(3, n_outliers=12, **SETTINGS).fit(chunks)
    assert_same(model, corral.COR(3, n_outliers=12, **SETTINGS).fit(X))


def test_chunks_of_unknown_size(client, X):
    chunks = da.from_array(X, chunks=(170, -1))
    chunks = chunks[chunks[:, 0] > 0]
    assert np.isnan(chunks.chunks[0]).all()
    model = COR(2, n_outliers=5, **SETTINGS).fit(chunks)
    kept = X[X[:, 0] > 0]
    assert_same(model, corral.COR(2, n_outliers=5, **SETTINGS).fit(kept))


def make_table(X):
    """Return a data frame with a column of categories, some of them rare."""
    kinds = np.array(["red", "green", "blue"])[np.argmax(X, axis=1)]
    kinds[500] = "black"
    return pd.DataFrame(X, columns=["a", "b", "c"]).assign(kind=kinds)


@pytest.mark.parametrize("kind", ["object", "category"])
def test_data_frames_with_categories(client, X, kind):
    table = make_table(X).astype({"kind": kind})
    params = SETTINGS | {"categorical_features": ["kind"]}
    model = COR(3, n_outliers=12, **params).fit(dd.from_pandas(table, npartitions=4))
    expected = corral.COR(3, n_outliers=12, **params).fit(table)
    assert_same(model, expected)
    assert model.feature_names_in_.tolist() == ["a", "b", "c", "kind"]


def test_partitions_without_rows(client, X):
    table = make_table(X).assign(number=np.arange(len(X)))
    frame = dd.from_pandas(table, npartitions=4)
    frame = frame[(frame["number"] < 150) | (frame["number"] >= 300)]
    kept = table[(table["number"] < 150) | (table["number"] >= 300)]
    params = SETTINGS | {"categorical_features": ["kind"]}
    columns = ["a", "b", "kind"]
    model = COR(3, n_outliers=9, **params).fit(frame[columns])
    assert model.storage_.n_blocks == 3
    assert_same(model, corral.COR(3, n_outliers=9, **params).fit(kept[columns]))
    found = model.predict(frame[columns])
    assert found.dtype == np.int32
    np.testing.assert_array_equal(
        found.compute(), model.to_local().predict(kept[columns])
    )


@pytest.fixture
def folder(tmp_path, X):
    """Return a folder of Parquet files."""
    table = pa.table(dict(zip("abc", X.T, strict=True)))
    place = tmp_path / "rows"
    place.mkdir()
    for number, start in enumerate(range(0, 600, 200)):
        part = table.slice(start, 200)
        pq.write_table(part, place / f"{number}.parquet", row_group_size=90)
    return place


@pytest.mark.parametrize("kind", ["folder", "file", "source", "npy"])
def test_files(client, X, folder, kind, cut_into, tmp_path):
    cut_into(130)
    path = {
        "folder": folder,
        "file": folder / "1.parquet",
        "source": folder,
        "npy": tmp_path / "rows.npy",
    }[kind]
    np.save(tmp_path / "rows.npy", X)
    model = COR(3, n_outliers=4, **SETTINGS)
    model.fit(open_source(path) if kind == "source" else str(path))
    expected = corral.COR(3, n_outliers=4, **SETTINGS).fit(path)
    assert_same(model, expected, same_blocks=True)
    assert model.storage_.n_blocks == (2 if kind == "file" else 5)
    rows = X[200:400] if kind == "file" else X
    assert_same(model, corral.COR(3, n_outliers=4, **SETTINGS).fit(rows))


def test_files_of_dask(client, X, folder):
    frame = dd.read_parquet(folder)
    model = COR(3, n_outliers=12, **SETTINGS).fit(frame)
    assert_same(model, corral.COR(3, n_outliers=12, **SETTINGS).fit(X))


@pytest.mark.parametrize("n_codes", ["few", "many"])
def test_codes_merged_or_counted_by_ranges(client, X, n_codes, monkeypatch):
    # With few partitions of few clusters many rows share a code, with many hardly any.
    params = SETTINGS | ({"n_partitions": 4} if n_codes == "few" else {})
    chunks = da.from_array(X, chunks=(90, -1))
    merged = COR(3, n_outliers=12, **params).fit(chunks)
    assert merged.storage_.codes == "merged"
    assert (merged.n_codes_ < 200) == (n_codes == "few")
    # Both are decided where the fit was started.
    monkeypatch.setattr(_census, "_MERGED_CODES", 60)
    monkeypatch.setattr(_cut, "_GATHERED", 25)
    ranges = COR(3, n_outliers=12, **params).fit(chunks)
    assert ranges.storage_.codes == "hash ranges"
    assert_same(ranges, merged.to_local(), same_blocks=True)
    assert_same(ranges, corral.COR(3, n_outliers=12, **params).fit(X))


def test_many_blocks_add_up_in_the_order_of_a_tree(client, X, cut_into, tmp_path):
    # More blocks than are added up in one task.
    cut_into(30)
    np.save(tmp_path / "rows.npy", X)
    path = str(tmp_path / "rows.npy")
    model = COR(3, n_outliers=12, **SETTINGS).fit(path)
    expected = corral.COR(3, n_outliers=12, **SETTINGS).fit(path)
    assert model.storage_.n_blocks == expected.storage_.n_blocks == 20
    assert_same(model, expected, same_blocks=True)


def test_given_partitions(client, partitions):
    chunks = da.from_array(partitions, chunks=(13, -1))
    params = {"n_outliers": 3, "random_state": 0}
    model = COR(3, **params).fit_partitions(chunks)
    expected = corral.COR(3, **params).fit_partitions(partitions)
    assert_same(model, expected)
    np.testing.assert_array_equal(
        model.predict(chunks).compute(), expected.predict(partitions)
    )


def test_a_worker_with_two_threads(X, folder, cut_into):
    # Both threads hold BLAS to one thread, and read the same files.
    cut_into(50)
    expected = corral.COR(3, n_outliers=12, **SETTINGS).fit(folder)
    with (
        LocalCluster(
            n_workers=1,
            threads_per_worker=2,
            host="127.0.0.1",
            dashboard_address=None,
        ) as cluster,
        Client(cluster) as client,
    ):
        before = client.run(count_blas_threads)
        for _ in range(2):
            model = COR(3, n_outliers=12, **SETTINGS).fit(folder)
            assert_same(model, expected, same_blocks=True)
        # Columns that nobody has asked for may still be on their way.
        wait_until(lambda: client.run(count_blas_threads) == before)


def count_blas_threads():
    from threadpoolctl import threadpool_info

    return [each["num_threads"] for each in threadpool_info()]
