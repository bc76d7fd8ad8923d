"""What a fit on a cluster answers, and how it leaves the cluster."""

import pickle

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import corral
from corral.dask import COR
from tests.dask.conftest import SETTINGS, draw_rows


@pytest.fixture
def model(client, X):
    chunks = da.from_array(X, chunks=(200, -1))
    return COR(3, n_outliers=12, **SETTINGS).fit(chunks)


@pytest.fixture(scope="module")
def local():
    return corral.COR(3, n_outliers=12, **SETTINGS).fit(draw_rows())


METHODS = ["predict", "score_samples", "decision_function", "transform"]


@pytest.mark.parametrize("method", METHODS)
def test_new_rows_are_answered_lazily(model, local, method):
    rows = draw_rows(90, seed=1)
    expected = getattr(local, method)(rows)
    parts = [rows[:0], rows[:40], rows[40:]]
    chunks = da.concatenate([da.from_array(part, chunks=-1) for part in parts])
    frame = dd.from_pandas(pd.DataFrame(rows), npartitions=3)
    for given in (chunks, frame):
        found = getattr(model, method)(given)
        assert isinstance(found, da.Array)
        assert found.dtype == expected.dtype
        assert found.ndim == expected.ndim
        computed = found.compute()
        assert computed.dtype == expected.dtype
        np.testing.assert_array_equal(computed, expected)
    np.testing.assert_array_equal(getattr(model, method)(rows), expected)


def test_nothing_is_computed_before_it_is_asked_for(model, tmp_path):
    rows = da.from_array(draw_rows(90), chunks=(30, -1))
    counted = rows.map_blocks(leave_mark, tmp_path, dtype=float, meta=rows._meta)
    labels = model.predict(counted)
    assert not list(tmp_path.iterdir())
    labels[:30].compute()
    assert len(list(tmp_path.iterdir())) == 1


def leave_mark(rows, folder):
    (folder / str(hash(rows.tobytes()))).touch()
    return rows


def test_fit_predict_and_fit_transform(client, X, local):
    chunks = da.from_array(X, chunks=(200, -1))
    model = COR(3, n_outliers=12, **SETTINGS)
    np.testing.assert_array_equal(model.fit_predict(chunks), local.labels_)
    np.testing.assert_array_equal(model.fit_transform(chunks), local.transform(X))


def test_a_local_model_needs_no_cluster(model, local, tmp_path):
    found = model.to_local()
    assert type(found) is corral.COR
    assert found.get_params() == local.get_params()
    assert vars(found).keys() == vars(local).keys()
    np.testing.assert_array_equal(found.labels_, local.labels_)
    assert isinstance(found.labels_, np.ndarray)
    model.save(tmp_path / "model.skops")
    copies = [corral.load(tmp_path / "model.skops"), pickle.loads(pickle.dumps(found))]
    rows = draw_rows(50, seed=2)
    for each in copies:
        assert each.storage_ == found.storage_ == model.storage_
        np.testing.assert_array_equal(each.labels_, local.labels_)
        np.testing.assert_array_equal(each.predict(rows), local.predict(rows))


def test_a_fit_forgets_the_one_before(model, X, client):
    chunks = da.from_array(X[:, :2], chunks=(300, -1))
    model.set_params(n_resamples=0, n_clusters=2).fit(chunks)
    expected = corral.COR(2, n_outliers=12, **SETTINGS | {"n_resamples": 0})
    expected.fit(X[:, :2])
    assert vars(model.to_local()).keys() == vars(expected).keys()
    np.testing.assert_array_equal(model.labels_, expected.labels_)


def test_a_model_that_is_not_fitted_says_so(client, X):
    chunks = da.from_array(X)
    for method in ("predict", "score_samples", "transform"):
        with pytest.raises(NotFittedError):
            getattr(COR(3), method)(chunks)


def test_parameters_are_those_of_cor():
    assert COR(4, eps=0.1).get_params() == corral.COR(4, eps=0.1).get_params()
    assert type(clone(COR(4))) is COR


def test_dask_shows_how_far_it_is(client, X, capsys):
    chunks = da.from_array(X, chunks=(300, -1))
    COR(3, n_outliers=12, verbose=1, **SETTINGS).fit(chunks)
    assert "100% Completed" in capsys.readouterr().out
    COR(3, n_outliers=12, **SETTINGS).fit(chunks)
    assert not capsys.readouterr().out
