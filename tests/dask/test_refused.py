"""What cannot be used is refused in words, before any work."""

import importlib
import subprocess
import sys

import dask.array as da
import dask.bag
import numpy as np
import pytest

import corral.dask
from corral.dask import COR
from corral.sources import open_source
from tests.dask.conftest import SETTINGS


def test_columns_in_several_chunks(client, X):
    chunks = da.from_array(X, chunks=(300, 2))
    sentence = r"X is chunked along its columns. Use X.rechunk\({1: -1}\) first"
    with pytest.raises(ValueError, match=sentence):
        COR(3, n_outliers=9).fit(chunks)
    model = COR(3, n_outliers=9, **SETTINGS).fit(chunks.rechunk({1: -1}))
    with pytest.raises(ValueError, match=sentence):
        model.predict(chunks)
    with pytest.raises(ValueError, match="extra_partitions cannot be used"):
        model.predict(chunks.rechunk({1: -1}), extra_partitions=X[:, :1])


@pytest.mark.parametrize("n_dimensions", [1, 3])
def test_arrays_that_are_no_tables(client, n_dimensions):
    chunks = da.ones((4,) * n_dimensions)
    with pytest.raises(ValueError, match=f"X has {n_dimensions} dimensions; .* have 2"):
        COR(3, n_outliers=9).fit(chunks)


def test_rows_in_memory(client, X):
    for given, name in ((X, "ndarray"), (X.tolist(), "list")):
        with pytest.raises(TypeError, match=f"X is a {name} in memory.*Use corral.COR"):
            COR(3, n_outliers=9).fit(given)
    # It would be sent to the workers as a whole, with each block.
    with pytest.raises(TypeError, match="X is a ArraySource in memory"):
        COR(3, n_outliers=9).fit(open_source(X))


def test_other_collections(client):
    with pytest.raises(TypeError, match="X is a Bag of Dask; it should be an array"):
        COR(3, n_outliers=9).fit(dask.bag.from_sequence([1, 2], npartitions=1))


def test_no_rows(client):
    with pytest.raises(ValueError, match=r"X has 0 sample\(s\)"):
        COR(3, n_outliers=9).fit(da.ones((0, 3)))


def test_weights_and_clusterers(client, X):
    chunks = da.from_array(X)
    with pytest.raises(ValueError, match="sample_weight cannot be used with rows that"):
        COR(3, n_outliers=9).fit(chunks, sample_weight=np.ones(len(X)))
    from sklearn.cluster import KMeans

    with pytest.raises(ValueError, match="clusterers, which need all rows in memory"):
        COR(3, n_outliers=9, partitions=KMeans(2)).fit(chunks)


@pytest.mark.usefixtures("client")
@pytest.mark.parametrize("name", ["dask", "distributed"])
def test_a_missing_extra_says_how_to_install_it(name, monkeypatch, X):
    monkeypatch.setitem(sys.modules, name, None)
    sentence = (
        rf'corral.dask needs {name}. Install it with: pip install "corral\[dask\]"'
    )
    with pytest.raises(ImportError, match=sentence):
        COR(3, n_outliers=9).fit(X)
    with (
        pytest.raises(ImportError, match=sentence),
        corral.dask.start_cluster(),
    ):
        pass


def test_the_package_loads_without_dask():
    code = (
        "import sys; sys.modules.update(dict.fromkeys(['dask', 'distributed'])); "
        "import corral.dask; from corral.dask import *; print(COR(3))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "COR(n_clusters=3)\n", done.stderr


def test_public_names():
    assert {"COR", "ClusterLostError", "start_cluster"} <= set(corral.dask.__all__)
    assert set(corral.dask.__all__) <= set(dir(corral.dask))
    with pytest.raises(AttributeError, match="'corral.dask' has no attribute 'KOR'"):
        importlib.import_module("corral.dask").KOR  # noqa: B018


def test_files_that_every_task_would_read_from_their_beginning(client, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "1.5,2\n" * 20)
    message = "can only be read from its beginning, which each task would do. Write it"
    with pytest.raises(ValueError, match=message):
        COR(2, n_outliers=1).fit(path)
