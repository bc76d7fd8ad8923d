"""Models come back from their files to the last bit; other files are refused."""

import functools
import io
import json
import os
import pickle
import re
import tempfile
import zipfile
from dataclasses import fields
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import sklearn
import skops.io
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.linear_model import RidgeCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import corral
from corral import COR, CORDetector, all_methods, persist
from corral.tables import TableModel
from tests.models.make import HERE

GOOD = HERE / corral.__version__

RNG = np.random.default_rng(0)
X = np.abs(np.concatenate([RNG.normal(1, 1, (60, 3)), RNG.normal(9, 1, (60, 3))]))
NEW = np.abs(RNG.normal(5, 5, (40, 3)))


def small_cor(**settings):
    return COR(2, n_partitions=10, random_state=0, **settings)


def round_trip(model, path):
    model.save(path)
    return corral.load(path)


def check_same(model, again, new):
    """Compare the answers and the results of the fit."""
    for method in ("predict", "score_samples", "decision_function", "transform"):
        if hasattr(model, method):
            expected = getattr(model, method)(new)
            found = getattr(again, method)(new)
            assert found.dtype == expected.dtype
            np.testing.assert_array_equal(found, expected)
    for name in ("labels_", "outlier_scores_", "nearest_labels_"):
        assert hasattr(again, name) == hasattr(model, name)
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(again, name), getattr(model, name))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.skops"


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("name", all_methods())
def test_every_method_comes_back(name, form, path):
    method = all_methods()[name]
    if form is sparse.csr_array and not method.takes_sparse:
        with pytest.raises(TypeError, match="[Ss]parse"):
            method.make().fit(form(X))
        return
    settings = {
        "n_clusters": 2,
        "random_state": 0,
        "n_estimators": 10,
        "n_partitions": 10,
    }
    model = method.make(
        **{key: value for key, value in settings.items() if key in method.parameters}
    )
    if name == "cor-detector":
        model.set_params(estimator=small_cor())
    model.fit(form(X))
    check_same(model, round_trip(model, path), form(NEW))


@pytest.mark.parametrize("name", ["holoentropy", "iforest", "kmeans--"])
def test_a_method_that_is_not_fitted_comes_back_with_its_parameters(name, path):
    model = all_methods()[name].make(n_outliers=4)
    again = round_trip(model, path)
    assert type(again) is type(model)
    assert vars(again) == vars(model)


@pytest.mark.parametrize(
    "model",
    [
        small_cor(n_outliers=5, metric="cosine"),
        small_cor(n_outliers=0, strategy="rfs"),
        COR.paper(2, n_outliers=5, n_partitions=10, random_state=2),
        COR(2, partitions=[KMeans(3), "kmeans"], n_partitions=10, random_state=3),
        small_cor(partitions=KMeans(3), strategy="rfs"),
        COR(2, k_range=(2, 4), max_samples=None, n_partitions=10, random_state=4),
        CORDetector(small_cor(n_outliers=3)),
    ],
    ids=["cosine", "rfs", "paper", "clusterers", "some see", "k_range", "detector"],
)
def test_cor_of_any_kind_comes_back(model, path):
    model.fit(X)
    check_same(model, round_trip(model, path), NEW)


def test_choice_and_confidences_come_back(path):
    table = TableModel(COR(n_partitions=10, random_state=0), scale="none").fit(X)
    model, again = table.estimator_, round_trip(table, path)
    names = ("outlier_confidence_", "label_confidence_", "cluster_stability_")
    check_same(model, again.estimator_, NEW)
    for name in names:
        np.testing.assert_array_equal(
            getattr(again.estimator_, name), getattr(model, name)
        )
    np.testing.assert_array_equal(again.label_confidence_, model.label_confidence_)
    chosen, found = model.selection_, again.estimator_.selection_
    assert repr(found) == repr(chosen)
    assert isinstance(found.runner_up, type(chosen.runner_up))
    assert found.table.equals(chosen.table)
    for field in fields(chosen):
        if field.name != "columns":
            np.testing.assert_equal(
                getattr(found, field.name), getattr(chosen, field.name)
            )


def test_float32_and_given_labels_come_back(path):
    given = (X[:, :1] > 5).astype(int)
    model = COR(2, n_partitions=10, random_state=0)
    model.fit(X.astype(np.float32), extra_partitions=given)
    again = round_trip(model, path)
    labels = (NEW[:, :1] > 5).astype(int)
    new = NEW.astype(np.float32)
    np.testing.assert_array_equal(
        again.score_samples(new, labels), model.score_samples(new, labels)
    )


def with_category(dtype, low=0.0):
    """Return rows with a last column of two categories."""
    column = np.where(X[:, :1] > 5, np.asarray(1, dtype), np.asarray(low, dtype))
    return np.hstack([X.astype(dtype), column])


@pytest.mark.parametrize("dtype", [np.float16, np.longdouble])
def test_categories_of_short_and_long_floats_come_back(path, dtype):
    rows = with_category(dtype)
    model = small_cor(categorical_features=[3]).fit(rows)
    check_same(model, round_trip(model, path), rows[::-3])


@pytest.mark.skipif(
    np.finfo(np.longdouble).nmant == 52, reason="Long doubles are doubles here."
)
def test_categories_that_double_precision_cannot_tell_are_refused(path):
    # The nearest double would be another category.
    rows = with_category(np.longdouble, low="0.1")
    model = small_cor(categorical_features=[3]).fit(rows)
    with pytest.raises(ValueError, match=r"it holds 0\.1 as .* as float64, and fit"):
        model.save(path)


def test_categories_of_bytes_are_refused(path):
    model = small_cor(categorical_features=[0, 1]).fit([[b"a", b"b"], [b"c", b"d"]] * 9)
    with pytest.raises(ValueError, match=r"holds the bytes \[b'a'\], and files"):
        model.save(path)


def test_names_of_categories_may_be_objects_and_those_of_a_frame(path):
    frame = pd.DataFrame(with_category(float), columns=[*"abcd"])
    for names in (frame.columns[3:], np.array(["d"], dtype=object)):
        model = small_cor(categorical_features=names).fit(frame)
        again = round_trip(model, path)
        assert again.categorical_features == ["d"]
        check_same(model, again, frame[::-3])


def test_a_model_that_was_asked_before_comes_back(path):
    # What is computed at the first question is kept beside what the fit sets.
    model = small_cor(n_outliers=3).fit(X)
    model.explain(X)
    again = round_trip(model, path)
    check_same(model, again, NEW)
    assert again.explain(NEW).equals(model.explain(NEW))


def test_search_trees_come_back(path):
    # Many rows in few dimensions are searched by trees.
    rows = np.random.default_rng(1).normal(size=(2000, 2))
    for name in ("lof", "dbscan"):
        model = all_methods()[name].make().fit(rows)
        check_same(model, round_trip(model, path), rows[:50] + 0.01)


TABLE = pa.table(
    {
        "size": pa.array([*X[:, 0].tolist()[:-1], None]),
        "day": pa.array((X[:, 1] * 1e5).astype(int), pa.timestamp("s")),
        "ok": X[:, 2] > 5,
        "color": np.where(X[:, 0] > 5, "red", "blue").astype(object),
        "id": [f"row {i}" for i in range(len(X))],
        "text": [f"number {i} is of size{int(x)}" for i, x in enumerate(X[:, 0])],
    }
)


@pytest.mark.parametrize(
    "model",
    [
        TableModel(COR(2, n_outliers=3, random_state=0), id_column="id"),
        TableModel(small_cor(), columns=["size", "color"], scale="robust"),
        TableModel(small_cor(metric="cosine"), tfidf=True),
        TableModel(CORDetector(small_cor()), exclude=["id", "text"]),
        TableModel(all_methods()["kmeans--"].make(n_clusters=2, random_state=0)),
    ],
    ids=["dates and categories", "robust", "words", "detector", "numbers"],
)
def test_models_of_tables_come_back(model, path):
    model.fit(TABLE)
    again = round_trip(model, path)
    check_same(model, again, TABLE.slice(30, 60))
    for name in ("kinds_", "dropped_", "n_missing_", "feature_names_out_"):
        assert getattr(again.encoder_, name) == getattr(model.encoder_, name)
    assert again.encoder_.ids(TABLE) == model.encoder_.ids(TABLE)
    assert again.explain(TABLE).equals(model.explain(TABLE))


def test_no_row_of_the_table_is_in_the_file(path):
    table = TABLE.append_column("secret", pa.array([f"s3cret{i}" for i in range(120)]))
    model = TableModel(small_cor(), exclude=["id", "text"]).fit(table)
    persist.save(model, path)
    with zipfile.ZipFile(path) as archive:
        assert not any(b"s3cret" in archive.read(name) for name in archive.namelist())


def test_the_file_names_the_versions_that_wrote_it(path):
    persist.save(small_cor().fit(X), path)
    with zipfile.ZipFile(path) as archive:
        page = json.loads(archive.read("corral.json"))
    assert page["corral"] == corral.__version__
    assert {"format", "scikit-learn", "numpy", "scipy"} < set(page)


def rewrite(path, change):
    """Write the archive anew with some of its members changed."""
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    change(members)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def set_schema(change):
    """Return what changes the description of a model."""

    def change_members(members):
        schema = json.loads(members["schema.json"])
        change(schema)
        members["schema.json"] = json.dumps(schema)

    return change_members


def find_node(schema, spot):
    """Return the part of a description that attributes and places lead to."""
    for name in spot.split("."):
        content = schema["content"]
        if isinstance(content, dict) and "__loader__" in content:
            content = content["content"]
        schema = content[int(name) if name.isdigit() else name]
    return schema


def set_array(spot, change):
    """Return what changes the array that an attribute is."""

    def change_members(members):
        node = find_node(json.loads(members["schema.json"]), spot)
        array = np.load(io.BytesIO(members[node["file"]])).copy()
        buffer = io.BytesIO()
        np.save(buffer, change(array))
        members[node["file"]] = buffer.getvalue()

    return change_members


def set_value(spot, value):
    """Return what puts another value where an attribute is."""

    def change(schema):
        node = find_node(schema, spot)
        node.clear()
        node.update(describe(value))

    def change_members(members):
        set_schema(change)(members)
        drop_unused(members)

    return change_members


def describe(value):
    """Return the description of a number, a text, or a list or tuple of these."""
    kind = type(value).__name__
    is_list = kind in ("list", "tuple")
    content = [describe(each) for each in value] if is_list else json.dumps(value)
    return {
        "__loader__": f"{kind.title()}Node" if is_list else "JsonNode",
        "__module__": "builtins",
        "__class__": kind if is_list else "str",
        "content": content,
    }


def drop_key(spot, name):
    """Return what takes a key from a dict, or an attribute from an object."""

    def change(schema):
        node = find_node(schema, spot) if spot else schema
        attributes = node if node["__loader__"] == "DictNode" else node["content"]
        del attributes["content"][name]
        attributes["key_types"]["content"].pop()

    def change_members(members):
        set_schema(change)(members)
        drop_unused(members)

    return change_members


def drop_unused(members):
    """Take out the arrays that a description does not name any more."""
    for name in list(members):
        is_used = f'"file": "{name}"' in members["schema.json"]
        if not name.endswith(".json") and not is_used:
            del members[name]


def put(value, field=None):
    """Return what puts a value at the beginning of an array."""

    def change(array):
        (array if field is None else array[field]).reshape(-1)[0] = value
        return array

    return change


@functools.cache
def some_content():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.skops")
        small_cor(n_outliers=3).fit(X).save(path)
        return path.read_bytes()


def save_some_model(path):
    """Save a COR that is fitted once only."""
    path.write_bytes(some_content())


def set_page(**values):
    def change(members):
        page = json.loads(members["corral.json"])
        members["corral.json"] = json.dumps({**page, **values})

    return change


def test_another_release_is_warned_of_and_a_repair_is_not(path, recwarn):
    model = small_cor().fit(X)
    persist.save(model, path)
    release = ".".join(corral.__version__.split(".")[:2])
    rewrite(path, set_page(corral=f"{release}.99"))
    check_same(model, persist.load(path), NEW)
    assert not recwarn.list
    rewrite(path, set_page(corral="99.0.0"))
    with pytest.warns(UserWarning, match=r"written by corral 99\.0\.0, and this is"):
        check_same(model, persist.load(path), NEW)


def test_another_format_is_refused_with_its_version(path):
    persist.save(small_cor().fit(X), path)
    rewrite(path, set_page(format=7, corral="3.2.1"))
    with pytest.raises(ValueError, match=r"written by corral 3\.2\.1 in the format 7"):
        persist.load(path)


def test_a_file_of_another_version_that_does_not_fit_names_it(path):
    persist.save(small_cor().fit(X), path)

    def change(members):
        schema = members["schema.json"].decode()
        members["schema.json"] = schema.replace('"Partitioner"', '"Splitter"')

    rewrite(path, change)
    rewrite(path, set_page(corral="0.0.1"))
    with pytest.raises(ValueError, match=r"_partitions\.Splitter"):
        persist.load(path)

    def drop(members):
        name = next(name for name in members if name.endswith(".npy"))
        del members[name]

    persist.save(small_cor().fit(X), path)
    rewrite(path, drop)
    rewrite(path, set_page(corral="0.0.1"))
    with pytest.raises(ValueError, match=r"cannot be read.*written by corral 0\.0\.1"):
        persist.load(path)


def test_damaged_and_foreign_files(path, tmp_path):
    good = tmp_path / "good.skops"
    persist.save(small_cor().fit(X), good)
    content = good.read_bytes()
    flipped = bytearray(content)
    with zipfile.ZipFile(good) as archive:
        largest = max(archive.infolist(), key=lambda each: each.compress_size)
    # Bytes of headers may not matter; these are in the middle of the largest array.
    flipped[largest.header_offset + 100 + largest.compress_size // 2] ^= 0xFF
    plain = skops.io.dumps(KMeans(2).fit(X))
    cases = [
        (b"", r"is empty"),
        (content[: len(content) // 2], r"not a model that corral wrote, or it is dam"),
        (bytes(flipped), r"damaged"),
        (b"a,b\n1,2\n", r"not a model that corral wrote"),
        (plain, r"not a model that corral wrote.*it has no corral\.json"),
        (pickle.dumps({"a": 1}), r"looks like a pickle"),
    ]
    for wrong, words in cases:
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match=words) as caught:
            persist.load(path)
        assert "\n" not in str(caught.value)


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"model\.skops' is not there"):
        persist.load(tmp_path / "model.skops")
    with pytest.raises(ValueError, match="is a folder"):
        persist.load(tmp_path)


def write_foreign(path, thing):
    """Write any object as if corral had."""
    save_some_model(path)
    with zipfile.ZipFile(path) as archive:
        page = archive.read("corral.json")
    path.write_bytes(skops.io.dumps(thing))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("corral.json", page)


@pytest.mark.parametrize(
    ("thing", "words"),
    [
        (FunctionTransformer(os.system), "FunctionTransformer"),
        (make_pipeline(KMeans(2)), r"sklearn\.pipeline\.Pipeline"),
        (KMeans(init=np.sum), r"numpy\.sum"),
        (KMeans(init=load_iris), "load_iris"),
        (KMeans(init=persist.load), r"corral\.persist\._models\.load"),
        (KMeans(init=corral.all_methods), r"corral\._registry\.all_methods"),
        (COR(random_state=np.random.RandomState(0)), r"RandomState"),
        (RidgeCV(), r"sklearn\.linear_model\._ridge\.RidgeCV"),
    ],
)
def test_functions_and_foreign_types_are_refused_by_name(path, thing, words):
    write_foreign(path, thing)
    with pytest.raises(ValueError, match=rf"is not read, because it holds .*({words})"):
        persist.load(path)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("corral._registry", "import_module"),
        ("corral.tables._write", "Path"),
        ("corral._journal", "Journal"),
        ("corral.dask", "COR"),
    ],
)
def test_classes_of_ours_that_no_model_holds_are_refused(path, module, name):
    # A file may ask for any name of a module, and modules hold what they import.
    save_some_model(path)

    def change(schema):
        schema["content"]["content"]["_partitioner"]["__class__"] = name
        schema["content"]["content"]["_partitioner"]["__module__"] = module

    rewrite(path, set_schema(change))
    with pytest.raises(ValueError, match=f"because it holds {module}.{name}"):
        persist.load(path)


def test_what_is_no_model_is_neither_saved_nor_loaded(path):
    with pytest.raises(TypeError, match="should be an estimator of corral. Got dict"):
        persist.save({"a": 1}, path)
    with pytest.raises(TypeError, match="should be an estimator of corral. Got KMeans"):
        persist.save(KMeans(2), path)
    write_foreign(path, {"a": 1})
    with pytest.raises(ValueError, match="holds a dict and no model"):
        persist.load(path)


def test_a_model_that_could_not_be_loaded_is_not_saved(path):
    path.write_text("old")
    model = COR(partitions=[KMeans(2, init=load_iris)])
    with pytest.raises(ValueError, match=r"COR cannot be saved.*holds.*load_iris"):
        model.save(path)
    with pytest.raises(ValueError, match=r"RandomState.*whole numbers for random_st"):
        COR(random_state=np.random.RandomState(0)).save(path)
    model = small_cor().fit(X)
    model._label_costs = model._label_costs[:-1]
    with pytest.raises(ValueError, match=r"COR cannot be saved: COR._label_costs has"):
        model.save(path)
    table_model = TableModel(small_cor()).fit(X)
    table_model.estimator_ = KMeans(2).fit(X)
    with pytest.raises(ValueError, match="cannot be saved: .*estimator_ is a KMeans"):
        table_model.save(path)
    assert path.read_text() == "old"


def test_parameters_may_be_dicts_and_sparse_but_not_nested_without_end(path):
    # What they mean only the estimator knows, when it is fitted.
    parts = sparse.csr_array(np.eye(3))
    settings = {"deep": {"n": 1}, "rows": parts}
    again = round_trip(COR(partitions=[KMeans(2, init=settings)]), path)
    found = again.partitions[0].init
    assert found["deep"] == {"n": 1}
    np.testing.assert_array_equal(found["rows"].toarray(), np.eye(3))
    nested = [[[[[0]]]]]
    with pytest.raises(ValueError, match="cannot be saved: .*init is a list"):
        COR(partitions=[KMeans(2, init=nested)]).save(path)


CENTERS = "_partitioner.clusterers.0.estimator.cluster_centers_"


def reverse(array):
    return array[::-1]


TREE = "estimator_.estimators_.0.tree_"
NODES = f"{TREE}.nodes"


@pytest.mark.parametrize(
    ("name", "spot", "change", "words"),
    [
        ("cor", "_label_costs", lambda a: a[:-1], "_label_costs has the size"),
        ("cor", "_label_costs", put(np.nan), "_label_costs has a value that is not f"),
        ("cor", "_centers", lambda a: a.astype("U5"), "_centers is no array of the"),
        ("cor", "_label_costs", lambda a: a.astype("f2"), "the unknown type float16"),
        ("cor", "labels_", put(7), "labels_ has values from"),
        ("cor", "nearest_labels_", put(-1), "nearest_labels_ has values from -1"),
        (
            "cor",
            "_partitioner.runs.centers",
            lambda a: a.T.copy(),
            "half_norms has",
        ),
        ("cor", "_partitioner.runs.layout.n_clusters", put(10**9), "is not sorted"),
        ("cor", "_partitioner.ruler.runs", put(100), "ruler.runs has values from"),
        ("cor-float32", "_partitioner.runs.features", lambda a: a * 1, "is no array"),
        (
            "kmeans--",
            "_centers",
            lambda a: a[:, :1],
            "shift has the size 3",
        ),
        ("kcc", "_cost_table", lambda a: a[:, :1], "costs are those of other cluste"),
        ("k-center", "exemplars_", put(10**6), "exemplars_ has values"),
        ("dbscan-sparse", "_rows.inverse", put(10**6), "inverse has values"),
        ("lof", "_book.firsts", put(10**6), "firsts has values"),
        ("lof", "_book._places", lambda a: a[[0, 0, *range(2, len(a))]], "a key twice"),
        (
            "lof",
            "estimator_._distances_fit_X_",
            lambda a: a[:, :2],
            "_ has the size 2",
        ),
        ("cof", "_neighbors._distinct", lambda a: a[:, :1], "have other columns"),
        ("iforest", NODES, put(10**6, "left_child"), "a node that leads nowhere"),
        ("iforest", NODES, put(0, "right_child"), "a node that leads nowhere"),
        ("iforest", NODES, put(3, "feature"), "a feature that is not there"),
        ("iforest", NODES, lambda a: a[:0], "has no nodes"),
        ("iforest", NODES, lambda a: a[None], "is no array of nodes"),
        ("iforest", NODES, lambda a: a["impurity"], "of another release of scikit-le"),
        ("iforest", "estimator_.estimators_features_.0", put(3), "features_.0. has v"),
        ("tonmf", "components_", put(-1), "components_ has values"),
        ("tonmf", "components_", lambda a: a[:0], "no topics, or more than columns"),
        ("tonmf", "components_", lambda a: a.repeat(2, 0), "no topics, or more than"),
        ("cof", "_neighbors._distinct", lambda a: a.astype("f4"), "type float32, not"),
        ("cor-clusterers", CENTERS, np.asfortranarray, "is in another order than C's"),
        ("cor-clusterers", CENTERS, lambda a: a.astype(">f8"), "in another order than"),
        *(
            ("lof", "_book._places", lambda a, t=t: a.astype(t), "keys of another len")
            for t in ("u8", "u4", "i2")
        ),
        ("table", "estimator_.feature_names_in_", reverse, "in another order"),
        ("table", "encoder_._scales.unit", put(0), "unit has values"),
        (
            "table-words",
            "encoder_._words.idf",
            lambda a: a[1:],
            "has the size 13",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_refused(path, name, spot, change, words):
    path.write_bytes((GOOD / f"{name}.skops").read_bytes())
    rewrite(path, set_array(spot, change))
    with pytest.raises(ValueError, match=rf"cannot be read: .*{words}"):
        corral.load(path)


@pytest.mark.parametrize(
    ("name", "spot", "value", "words"),
    [
        ("cor", "n_features_in_", 4, "columns are not those of its partitions"),
        ("cor", "n_jobs", 10**6, "n_jobs=1000000 is out of range"),
        ("cor", "n_jobs", 0, "n_jobs=0 is no number of threads"),
        ("cof", "_neighbors._n_jobs", 0, "_n_jobs=0 is no number of threads"),
        ("lof", "estimator_.n_jobs", 0, "n_jobs=0 is no number of threads"),
        ("cor", "memory_limit", "x", "memory_limit='x' should be a number"),
        ("cor", "memory_limit", True, "memory_limit is neither a number nor a text"),
        ("cor", "selection_.runner_up", (), "runner_up has the size 0 and should have"),
        ("cor-precomputed", "n_features_in_", 1, "are not those of its partitions"),
        (
            "cor-clusterers",
            "_partitioner.clusterers",
            [],
            "names other clusterers than",
        ),
        ("cor", "eps", 7.0, "'eps' parameter"),
        ("cor", "offset_", "high", "offset_ is a str and no number"),
        ("cor", "_partitioner.runs.space.scale", float("nan"), "scale=nan is not fin"),
        ("cor-clusterers", "n_features_in_", 2**34, "n_features_in_=17179869184 is o"),
        ("cor-clusterers", "categorical_features.0", 7, "should be columns of X"),
        ("cof", "_neighbors.n_neighbors", 10**6, "more neighbours than there are"),
        ("lof", "estimator_.n_neighbors_", 6, "has the size"),
        ("lof", "estimator_.effective_metric_", "haversine", "'haversine' is not kn"),
        ("k-center", "_ruler._metric", "cosine", "measures by another metric"),
        ("iforest", f"{TREE}.max_depth", 0, "is not as deep as it says"),
        ("iforest", f"{TREE}.max_depth", 2**40, "is not as deep as it says"),
        ("opca", "_form.0.2", 0.0, "ratio=0.0 is out of range"),
        ("opca-power", "_form.2", 10**9, "max_iter=1000000000 is out of range"),
        ("lof", "estimator_.effective_metric_params_", 7, "params_ is no dict"),
        ("table", "encoder_.numeric_names_.0", "x", "are not those of its plans"),
        ("table", "encoder_._plans.0.reason", "why", "are not those of its plans"),
        ("table", "encoder_._plans.0.name", 7, "name is no text"),
        ("table", "encoder_._plans.0", "size", r"_plans\[0\] is a str"),
        ("table", "encoder_._plans", "size", "_plans is no list"),
        ("table", "encoder_.kinds_.size", "zzz", "kinds_"),
        ("table", "encoder_.kinds_.size", "date", "are not those of its plans"),
        ("table", "encoder_._is_sparse", 0, "_is_sparse is neither True nor False"),
        ("table", "encoder_.feature_names_out_.0", "x", "weights are not those of its"),
        ("table", "encoder_.scale_", "none", "weights are not those of its columns"),
        ("table", "encoder_.tfidf", True, "weights are not those of its columns"),
        ("table-words", "encoder_._words.names", None, "weights are not those of its"),
        ("table-words", "encoder_._words.names", "new old", "words are not as"),
        ("table-sparse", "encoder_._n_columns", 2, "columns that are not there"),
    ],
)
def test_values_that_do_not_fit_are_refused(path, name, spot, value, words):
    path.write_bytes((GOOD / f"{name}.skops").read_bytes())
    rewrite(path, set_value(spot, value))
    with pytest.raises(ValueError, match=rf"cannot be read: .*{words}"):
        corral.load(path)


@pytest.mark.parametrize(
    ("name", "spot"),
    [
        ("cor", "offset_"),
        ("cor", "objective_"),
        ("cor", "contamination"),
        ("k-center", "_threshold"),
    ],
)
def test_whole_numbers_that_no_float_is_are_refused(path, name, spot):
    for value in (10**400, -(10**400)):
        path.write_bytes((GOOD / f"{name}.skops").read_bytes())
        rewrite(path, set_value(spot, value))
        with pytest.raises(ValueError, match=rf"{spot} is a number of 1329 bits"):
            corral.load(path)


@pytest.mark.parametrize(
    ("name", "spot", "key", "words"),
    [
        ("cor", "", "eps", "COR has no eps"),
        ("cor-detector", "estimator_", "_profile", "nothing to explain them by"),
        ("table-sparse", "encoder_", "_scales", "_scales is not there"),
        ("table", "encoder_", "scale_", "scale_ is not there"),
        ("table-words", "encoder_._words", "names", "_words is no list of words"),
        ("table", "encoder_.kinds_", "size", "are not those of its plans"),
        ("cor", "selection_.columns", "n_outliers", "candidates lacks columns"),
        ("iforest", TREE, "max_depth", "tree_ is no dict with the right keys"),
    ],
)
def test_models_that_lack_something_are_refused(path, name, spot, key, words):
    path.write_bytes((GOOD / f"{name}.skops").read_bytes())
    rewrite(path, drop_key(spot, key))
    with pytest.raises(ValueError, match=rf"cannot be read: .*{words}"):
        corral.load(path)


def test_texts_of_a_table_without_words_are_refused(path):
    columns = ["size", "color"]
    TableModel(small_cor(), columns=columns, scale="none").fit(TABLE).save(path)
    rewrite(path, set_value("encoder_._plans.0.kind", "text"))
    rewrite(path, set_value("encoder_.kinds_.size", "text"))
    rewrite(path, set_value("encoder_.numeric_names_", []))
    rewrite(path, set_value("encoder_.text_names_", ["size"]))
    with pytest.raises(ValueError, match="weights are not those of its columns"):
        corral.load(path)


def test_more_weights_than_columns_that_are_counts_are_refused(path):
    path.write_bytes((GOOD / "table-words.skops").read_bytes())
    rewrite(path, set_value("encoder_._plans.0.kind", "number"))
    rewrite(path, set_value("encoder_.kinds_.words", "number"))
    rewrite(path, set_value("encoder_._words.names", None))
    rewrite(path, set_value("encoder_.numeric_names_", ["words"]))
    rewrite(path, set_value("encoder_.text_names_", []))
    with pytest.raises(ValueError, match="weights are not those of its columns"):
        corral.load(path)


def test_descriptions_of_no_model_are_refused(path):
    cases = [
        ([1, 2], "schema.json is no description"),
        ({}, "does not say which protocol of skops"),
    ]
    for schema, words in cases:
        save_some_model(path)
        rewrite(path, lambda m, s=schema: m.update({"schema.json": json.dumps(s)}))
        with pytest.raises(ValueError, match=rf"cannot be read: .*{words}"):
            corral.load(path)


def test_objects_whose_attributes_are_no_dict_are_refused(path):
    save_some_model(path)
    rewrite(path, set_schema(lambda schema: schema.update(content=describe([]))))
    with pytest.raises(ValueError, match="cannot be read: an object has no attributes"):
        corral.load(path)


def test_sparse_rows_that_lead_out_of_their_columns_are_refused(path):
    path.write_bytes((GOOD / "lof-sparse.skops").read_bytes())

    def change(members):
        name = next(each for each in members if each.endswith(".npz"))
        rows = sparse.load_npz(io.BytesIO(members[name]))
        rows.indices[0] = 10**6
        buffer = io.BytesIO()
        sparse.save_npz(buffer, rows)
        members[name] = buffer.getvalue()

    rewrite(path, change)
    with pytest.raises(ValueError, match=r"cannot be read: .* must be < 3"):
        corral.load(path)


def test_sparse_rows_that_end_before_they_begin_are_refused(path):
    path.write_bytes((GOOD / "k-center-sparse.skops").read_bytes())

    def change(members):
        name = next(each for each in members if each.endswith(".npz"))
        rows = sparse.load_npz(io.BytesIO(members[name]))
        # SciPy's own check takes this for rows without values.
        rows.indptr[:] = 0
        rows.indptr[1] = 10**6
        buffer = io.BytesIO()
        sparse.save_npz(buffer, rows)
        members[name] = buffer.getvalue()

    rewrite(path, change)
    with pytest.raises(ValueError, match="has rows that end before they begin"):
        corral.load(path)


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (all_methods()["iforest"].make(n_estimators=5), "estimator_"),
        (TableModel(small_cor(), scale="none"), "encoder_"),
    ],
    ids=["forest", "encoder"],
)
def test_parts_that_were_never_fitted_are_refused(path, model, name):
    model.fit(X)
    setattr(model, name, clone(getattr(model, name)))
    with pytest.raises(ValueError, match=f"cannot be saved: .*{name} is not fitted"):
        model.save(path)


def test_attributes_that_are_not_known_are_refused(path):
    # One of the name of a method would stand before it.
    for name in ("predict", "other_"):
        save_some_model(path)

        def change(schema, name=name):
            attributes = schema["content"]
            attributes["content"][name] = attributes["content"]["n_clusters"]
            types = attributes["key_types"]["content"]
            types.append(types[0])

        rewrite(path, set_schema(change))
        with pytest.raises(ValueError, match=f"has the unknown attribute '{name}'"):
            corral.load(path)


def test_many_equal_values_are_saved_so_that_they_can_be_read(path, monkeypatch):
    # They pack so well that they would be taken for a bomb.
    monkeypatch.setattr("corral.persist._archive.SMALL_TOTAL", 1000)
    model = small_cor(n_outliers=0, n_resamples=0).fit(X)
    model.labels_ = model.nearest_labels_ = np.zeros(10**6, dtype=np.int32)
    model.outlier_scores_ = np.zeros(10**6)
    check_same(model, round_trip(model, path), NEW)


def test_equal_sparse_rows_are_saved_so_that_they_can_be_read(path, monkeypatch):
    # SciPy packs them, and what it packs counts as well.
    monkeypatch.setattr("corral.persist._archive.SMALL_TOTAL", 1000)
    rows = sparse.csr_array(np.ones((300, 1000)))
    rows.data[::1000] = np.arange(300) % 3
    model = all_methods()["dbscan"].make().fit(rows)
    check_same(model, round_trip(model, path), rows[:10])


def test_the_page_about_models_gives_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parents[1] / "docs" / "howto" / "models.md"
    code = re.search(r"```python\n(.*?)```", page.read_text("utf-8"), re.S)[1]
    names = {}
    exec(code, names)
    check_same(names["model"], names["again"], names["X"])


def test_the_same_model_gives_the_same_file(path, tmp_path):
    small_cor(n_outliers=3).fit(X).save(path)
    small_cor(n_outliers=3).fit(X).save(tmp_path / "again.skops")
    assert path.read_bytes() == (tmp_path / "again.skops").read_bytes()


@pytest.mark.parametrize("name", sorted(each.stem for each in GOOD.glob("*.skops")))
def test_a_model_that_was_loaded_gives_the_same_file(name, path, tmp_path):
    corral.load(GOOD / f"{name}.skops").save(path)
    corral.load(path).save(tmp_path / "again.skops")
    assert path.read_bytes() == (tmp_path / "again.skops").read_bytes()


def test_nothing_of_memory_is_between_the_fields_of_nodes(path):
    # Trees that were loaded have there what was in memory before.
    path.write_bytes((GOOD / "iforest.skops").read_bytes())
    rewrite(path, set_array(NODES, fill_gaps))
    corral.load(path).save(path)
    assert not find_gaps(read_array(path, NODES)).any()


def fill_gaps(nodes):
    """Return nodes with something between the fields."""
    letters = np.full((len(nodes), nodes.dtype.itemsize), ord("S"), dtype=np.uint8)
    filled = letters.view(nodes.dtype).ravel()
    for name in nodes.dtype.names:
        filled[name] = nodes[name]
    assert find_gaps(filled).any()
    return filled


def find_gaps(nodes):
    """Return the bytes of nodes that are not of any field."""
    is_gap = np.ones(nodes.dtype.itemsize, dtype=bool)
    for kind, start in nodes.dtype.fields.values():
        is_gap[start : start + kind.itemsize] = False
    letters = np.frombuffer(nodes.tobytes(), dtype=np.uint8)
    return letters.reshape(len(nodes), -1)[:, is_gap]


def read_array(path, spot):
    """Return an array of a file, with all of its bytes."""
    with zipfile.ZipFile(path) as archive:
        node = find_node(json.loads(archive.read("schema.json")), spot)
        content = archive.read(node["file"])
    array = np.load(io.BytesIO(content))
    return np.frombuffer(content[-array.nbytes :], dtype=array.dtype)


def test_the_kind_of_frame_comes_back(path):
    for model in (small_cor(), all_methods()["kmeans--"].make(n_clusters=2)):
        again = round_trip(model.set_output(transform="pandas").fit(X), path)
        pd.testing.assert_frame_equal(again.transform(NEW), model.transform(NEW))
    detector = CORDetector(small_cor().set_output(transform="polars")).fit(X)
    check_same(detector, round_trip(detector, path), NEW)
    table_model = TableModel(small_cor().set_output(transform="pandas")).fit(TABLE)
    again = round_trip(table_model, path)
    assert isinstance(again.estimator_.transform(again.encode(TABLE)), pd.DataFrame)


def test_kinds_of_frames_that_are_not_known_are_refused(path):
    small_cor().set_output(transform="pandas").fit(X).save(path)
    rewrite(path, set_value("_sklearn_output_config.transform", "excel"))
    with pytest.raises(ValueError, match=r"_config\.transform='excel' is not known"):
        corral.load(path)


def test_requests_for_metadata_are_left_out(path):
    with sklearn.config_context(enable_metadata_routing=True):
        inner = small_cor().set_fit_request(sample_weight=True)
        model = CORDetector(inner).fit(X, sample_weight=np.ones(len(X)))
        check_same(model, round_trip(model, path), NEW)
    check_same(model, round_trip(model, path), NEW)


def test_callbacks_are_left_out(path):
    callback = pytest.importorskip("sklearn.callback", reason="scikit-learn < 1.9")
    model = small_cor()
    model.set_callbacks(callback.ProgressBar())
    model.fit(X)
    again = round_trip(model, path)
    check_same(model, again, NEW)
    assert not hasattr(again, "_skl_callbacks")


def test_a_model_that_holds_itself_is_not_saved(path):
    model = small_cor()
    model.partitions = model
    with pytest.raises(ValueError, match="cannot be saved, because it holds itself"):
        model.save(path)
    assert not path.exists()


def test_kmeans_of_rows_in_single_precision_comes_back(path):
    rows, new = X.astype(np.float32), NEW.astype(np.float32)
    model = small_cor(partitions=[KMeans(3, random_state=0), "kmeans"]).fit(rows)
    again = round_trip(model, path)
    check_same(model, again, new)
    centers = again._partitioner.clusterers[0].estimator.cluster_centers_
    assert centers.dtype == np.float32


def test_many_threads_and_tiny_limits_are_not_saved(path):
    with pytest.raises(ValueError, match="n_jobs=0 is no number of threads"):
        small_cor(n_jobs=0).save(path)
    with pytest.raises(ValueError, match="memory_limit=7 should be more than"):
        small_cor(memory_limit=7).save(path)
    with pytest.raises(ValueError, match="COR cannot be saved"):
        small_cor(memory_limit="9" * 400).save(path)


def test_a_file_does_not_say_where_a_fit_noted_what_it_did(path, tmp_path):
    model = small_cor(checkpoint_dir=tmp_path / "notes").fit(X)
    again = round_trip(model, path)
    assert again.checkpoint_dir is None
    check_same(model, again, NEW)


def test_an_interrupted_save_leaves_the_old_file(path, monkeypatch):
    path.write_text("old")

    def stop(*args):
        raise KeyboardInterrupt

    monkeypatch.setattr(type(path), "write_bytes", stop)
    with pytest.raises(KeyboardInterrupt):
        persist.save(small_cor().fit(X), path)
    assert os.listdir(path.parent) == [path.name]
    assert path.read_text() == "old"
