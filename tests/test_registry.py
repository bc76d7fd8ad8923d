"""The methods by their names."""

import inspect

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator

import corral
from corral import COR, all_methods
from tests.conftest import plant

TAKES_NO_SPARSE = {"hdbscan", "holoentropy"}


def test_every_public_estimator_is_a_method():
    classes = {method.estimator for method in all_methods().values()}
    for module in (corral, corral.rivals, corral.detectors):
        public = (getattr(module, name) for name in module.__all__)
        assert {each for each in public if _is_estimator(each)} <= classes


def _is_estimator(each):
    return inspect.isclass(each) and issubclass(each, BaseEstimator)


def test_kinds_part_the_methods():
    joint, detectors = all_methods("joint"), all_methods("detector")
    assert list(joint) + list(detectors) == list(all_methods())


def test_unknown_kind_is_refused():
    with pytest.raises(ValueError, match="kind='joined' is not known"):
        all_methods("joined")


@pytest.mark.parametrize("name", all_methods())
def test_parameters_are_those_of_the_estimator(name):
    method = all_methods()[name]
    assert method.parameters == method.make().get_params(deep=False)
    assert method.summary.endswith(".")


def test_unknown_parameter_is_named():
    with pytest.raises(ValueError, match=r"n_cluster cannot be set for 'dbscan'"):
        all_methods()["dbscan"].make(n_cluster=3)


@pytest.mark.parametrize("name", all_methods())
def test_three_lines_work_for_all(name):
    # The same data and the same lines, whatever the method is.
    X, y = plant(0, n_features=3)
    X = X - X.min() if name == "tonmf" else X
    X = np.rint(X / 20) if name == "holoentropy" else X
    method = all_methods()[name]
    wanted = {"n_clusters": 3, "n_outliers": 6, "random_state": 0}
    model = method.make(**{k: v for k, v in wanted.items() if k in method.parameters})
    labels = model.fit_predict(X)
    assert labels.shape == y.shape
    known = {1, -1} if method.kind == "detector" else set(range(-1, 180))
    assert set(np.unique(labels)) <= known
    if name != "cor-detector":
        assert model.outlier_scores_.shape == y.shape
        assert np.isfinite(model.outlier_scores_).all()
    if method.counts_outliers:
        assert np.count_nonzero(model.labels_ == -1) == 6


# One cluster for all outliers cannot hold rows that lie apart.
APART = [name for name in all_methods("joint") if name not in ("kmeans+1", "kcc")]


@pytest.mark.parametrize("name", APART)
def test_joint_methods_find_what_was_planted(name):
    # Three tight groups and six rows far away, each by itself.
    X, y = plant(0)
    method = all_methods()[name]
    wanted = {"n_clusters": 3, "n_outliers": 6, "random_state": 0}
    wanted = {k: v for k, v in wanted.items() if k in method.parameters}
    if name == "dbscan":
        wanted["eps"] = 3.0
    labels = method.make(**wanted).fit(X).labels_
    assert set(np.flatnonzero(labels == -1)) == set(np.flatnonzero(y == -1))


@pytest.mark.parametrize("name", all_methods())
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_data_frames_of_any_library_are_arrays(name, library):
    X, _ = plant(0, n_per_cluster=20)
    X = np.rint(X - X.min())
    method = all_methods()[name]
    wanted = {"n_clusters": 3, "n_outliers": 6, "random_state": 0}
    wanted = {k: v for k, v in wanted.items() if k in method.parameters}
    if name == "cor-detector":
        wanted = {"estimator": COR(3, random_state=0)}
    frame = library({f"column {j}": column for j, column in enumerate(X.T)})
    model = method.make(**wanted).fit(frame)
    expected = method.make(**wanted).fit(X)
    assert list(model.feature_names_in_) == [f"column {j}" for j in range(4)]
    if method.predicts:
        np.testing.assert_array_equal(model.predict(frame), expected.predict(X))


@pytest.mark.parametrize("name", all_methods("detector"))
def test_columns_of_text_are_named(name):
    method = all_methods()[name]
    frame = pd.DataFrame({"number": [1.0, 2.0, 3.0], "word": ["a", "b", "c"]})
    if name == "holoentropy":
        assert method.make(n_outliers=1).fit(frame).n_features_in_ == 2
    else:
        with pytest.raises(ValueError, match=r"not numbers: 'word' \(String\)"):
            method.make().fit(frame)


@pytest.mark.parametrize("name", sorted(all_methods().keys() - TAKES_NO_SPARSE))
def test_wide_indices_of_sparse_rows_are_taken(name):
    # SciPy makes some itself; not all of scikit-learn takes them.
    X = sparse.csr_array(np.where(plant(0).X > 3, plant(0).X, 0))
    wide = X.copy()
    wide.indices, wide.indptr = X.indices.astype("i8"), X.indptr.astype("i8")
    method = all_methods()[name]
    given = {"n_clusters": 3, "n_partitions": 10, "random_state": 0}
    wanted = {key: value for key, value in given.items() if key in method.parameters}
    model = method.make(**wanted).fit(wide)
    assert wide.indices.dtype == np.int64
    np.testing.assert_array_equal(model.predict(wide), model.predict(X))
