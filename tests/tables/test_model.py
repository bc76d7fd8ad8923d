"""A method and its encoder: from a table to labels, scores and reasons."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from corral import COR, CORDetector, all_methods
from corral.tables import TableModel

N = 40
STRANGE = 80


def make_table(seed=0):
    """Return two groups of rows, the last row in neither."""
    rng = np.random.default_rng(seed)
    size = np.concatenate([rng.normal(1, 0.2, N), rng.normal(9, 0.2, N), [60.0]])
    count = np.concatenate([rng.integers(0, 5, N), rng.integers(50, 55, N), [27]])
    first_day = np.datetime64("2024-01-01")
    return pa.table(
        {
            "id": [f"row {i}" for i in range(2 * N + 1)],
            "size": size,
            "count": pa.array([None, *count.tolist()[1:]]),
            "day": first_day + rng.integers(0, 30, 2 * N + 1),
            "ok": rng.random(2 * N + 1) < 0.5,
            "color": ["red"] * N + ["blue"] * (N + 1),
            "note": pa.array([None] * (2 * N + 1), pa.string()),
        }
    )


def make_model(name="cor", **settings):
    method = all_methods()[name]
    wanted = {"n_clusters": 2, "n_outliers": 1, "random_state": 0}
    estimator = method.make(
        **{key: value for key, value in wanted.items() if key in method.parameters}
    )
    if name == "cor-detector":
        estimator = CORDetector(COR(2, n_outliers=1, random_state=0))
    return TableModel(estimator, **settings)


def test_cor_uses_numbers_dates_and_categories():
    table = make_table()
    model = make_model(id_column="id").fit(table)
    assert np.flatnonzero(model.labels_ == -1).tolist() == [STRANGE]
    assert len(set(model.labels_[:N])) == 1
    assert set(model.labels_[:N]) != set(model.labels_[N : 2 * N])
    assert model.encoder_.kinds_ == {
        "size": "number",
        "count": "number",
        "day": "date",
        "ok": "boolean",
        "color": "category",
        "note": "number",
        "id": "id",
    }
    assert model.encoder_.dropped_ == {"note": "it has no values"}
    assert model.encoder_.n_missing_ == {"count": 1}
    assert model.estimator_.categorical_features == ["color"]
    assert model.encoder_.ids(table)[STRANGE] == "row 80"


def test_cor_answers_for_new_rows_with_other_columns_beside():
    table = make_table()
    model = make_model(id_column="id").fit(table)
    new = make_table(1).append_column("more", pa.array(range(2 * N + 1)))
    assert (model.predict(new) == model.labels_).mean() > 0.9
    assert model.score_samples(new).argmin() == STRANGE
    np.testing.assert_array_equal(-model.score_samples(table), model.outlier_scores_)


def test_cor_explains_in_the_names_of_the_user():
    table = make_table()
    model = make_model(id_column="id").fit(table)
    reasons = model.explain(table, n_features=2)
    assert isinstance(reasons, pa.Table)
    assert reasons.num_rows == table.num_rows
    assert reasons["feature_1"][STRANGE].as_py() == "size"
    assert reasons["difference_1"][STRANGE].as_py() > 10
    assert "feature_3" not in reasons.column_names
    whole = np.add(reasons["label_cost"], reasons["rarity_cost"])
    whole = np.add(whole, reasons["distance_cost"])
    np.testing.assert_allclose(whole, reasons["score"])
    np.testing.assert_array_equal(reasons["label"], model.predict(table))


@pytest.mark.parametrize("name", ["cor", "kmeans--", "lof"])
@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame])
def test_reasons_are_a_frame_of_the_library_of_the_table(name, library):
    table = library(make_table().to_pydict())
    model = make_model(name, exclude=["note"]).fit(table)
    assert isinstance(model.explain(table), library)


@pytest.mark.parametrize("name", [n for n in all_methods() if "cor" not in n])
def test_other_methods_use_numbers_and_fill_missing_cells(name):
    table = make_table()
    model = make_model(name, id_column="id").fit(table)
    assert model.encoder_.dropped_["color"] == (
        "a category, and this method uses numbers only"
    )
    assert model.encoder_.n_missing_ == {"count": 1}
    assert model.labels_.shape == model.outlier_scores_.shape == (2 * N + 1,)
    method = all_methods()[name]
    assert hasattr(model, "nearest_labels_") == (method.kind == "joint")
    if not method.predicts:
        with pytest.raises(ValueError, match="no answer for rows that were not in"):
            model.predict(table)
        return
    reasons = model.explain(table.slice(70), n_features=3)
    assert reasons.num_rows == 11
    assert ("nearest_label" in reasons.column_names) == (method.kind == "joint")
    np.testing.assert_array_equal(reasons["label"], model.predict(table.slice(70)))
    np.testing.assert_array_equal(
        reasons["score"], -model.score_samples(table.slice(70))
    )
    assert reasons["feature_1"][10].as_py() == "size"
    assert reasons["difference_1"][10].as_py() > 3


def test_missing_cells_of_other_methods_hold_the_median_of_the_fit():
    table = pa.table({"a": [1.0, 2.0, 6.0, None, 50.0], "b": [1.0, 2.0, 3.0, 4.0, 5.0]})
    model = TableModel(all_methods()["lof"].make(n_neighbors=2), scale="none")
    model.fit(table)
    assert model.encode(table)[3, 0] == 4.0
    new = pa.table({"a": [None], "b": [None]})
    assert model.encode(new).tolist() == [[4.0, 3.0]]


def test_the_detector_of_cor_uses_categories_and_answers_as_a_detector():
    table = make_table()
    model = make_model("cor-detector", id_column="id").fit(table)
    assert model.encoder_.categorical_names_ == ["color"]
    assert set(model.labels_.tolist()) == {1, -1}
    assert np.flatnonzero(model.labels_ == -1).tolist() == [STRANGE]
    np.testing.assert_array_equal(
        model.explain(table)["label"].to_numpy(), model.predict(table)
    )


def test_a_detector_without_its_cor_gets_one_of_its_own():
    detector = CORDetector()
    model = TableModel(detector, id_column="id").fit(make_table())
    assert model.estimator_.estimator_.categorical_features == ["color"]
    assert detector.estimator is None


def test_the_estimator_of_the_user_stays_as_it_was():
    model = make_model(id_column="id").fit(make_table())
    assert model.estimator.categorical_features is None
    assert not hasattr(model.estimator, "labels_")


def test_categories_are_not_named_twice():
    model = TableModel(COR(2, categorical_features=["color"]), id_column="id")
    with pytest.raises(ValueError, match=r"categorical_features=\['color'\] should be"):
        model.fit(make_table())


def test_sparse_rows_and_words():
    rng = np.random.default_rng(0)
    counts = rng.poisson(0.3, (90, 30)) + np.repeat(np.eye(3, 30), 30, axis=0) * 5
    rows = sparse.csr_array(counts)
    model = TableModel(COR(3, n_outliers=2, metric="cosine", random_state=0))
    model = model.set_params(tfidf=True).fit(rows)
    assert sparse.issparse(model.encode(rows))
    reasons = model.explain(rows[:4])
    assert reasons["feature_1"][0].as_py().startswith("feature ")
    np.testing.assert_array_equal(model.predict(rows.toarray()), model.predict(rows))


def test_methods_without_sparse_rows():
    with pytest.raises(ValueError, match="HDBSCAN takes no sparse rows, which tf-idf"):
        make_model("hdbscan", tfidf=True).fit(sparse.csr_array(np.eye(30)))


def test_words_are_the_names_of_reasons():
    texts = [f"the red car number{i} drives" for i in range(30)]
    texts += [f"a green boat number{i} swims" for i in range(30)]
    texts[7] = "zebra quagga okapi"
    table = pa.table({"text": texts})
    model = TableModel(
        COR(2, n_outliers=1, metric="cosine", random_state=0), tfidf=True
    ).fit(table)
    assert model.labels_[7] == -1
    # Its own words, and those of its nearest cluster that it lacks.
    reasons = model.explain(table.slice(7, 1), n_features=6).to_pylist()[0]
    found = {reasons[f"feature_{j}"]: reasons[f"difference_{j}"] for j in range(1, 7)}
    assert {word for word in found if found[word] > 0} == {"zebra", "quagga", "okapi"}
    assert {word for word in found if found[word] < 0} in (
        {"the", "red", "car"},
        {"red", "car", "drives"},
        {"the", "car", "drives"},
        {"the", "red", "drives"},
        {"green", "boat", "swims"},
    )


def test_methods_for_positive_numbers_get_them_unscaled():
    table = pa.table({"a": [1.0, 5.0, 2.0, 3.0] * 5, "b": [2.0, 1.0, 4.0, 9.0] * 5})
    model = make_model("tonmf").fit(table)
    assert model.encoder_.scale_ == "none"
    with pytest.raises(ValueError, match="Negative values"):
        make_model("tonmf", scale="standard").fit(table)


def test_wide_arrays_are_fitted_and_explained():
    rows = np.random.default_rng(0).normal(size=(40, 5001))
    rows[3] += 30
    model = TableModel(COR(2, n_outliers=1, n_partitions=20, random_state=0)).fit(rows)
    assert np.flatnonzero(model.labels_ == -1).tolist() == [3]
    assert model.explain(rows[:5]).num_rows == 5


def test_models_are_scikit_learn_estimators():
    model = make_model(id_column="id", scale="robust")
    again = clone(model)
    assert again.get_params()["scale"] == "robust"
    assert again.get_params()["estimator__n_clusters"] == 2
    with pytest.raises(NotFittedError):
        model.predict(make_table())
    fitted = model.fit(make_table())
    assert not hasattr(clone(fitted), "labels_")


def test_confidences_are_passed_on_and_forgotten():
    model = make_model("cor", id_column="id")
    estimator, X = model._prepare(make_table())
    estimator.fit(X)
    estimator.outlier_confidence_ = np.linspace(0, 1, 2 * N + 1)
    estimator.label_confidence_ = np.linspace(1, 0, 2 * N + 1)
    model._adopt(estimator, X)
    assert model.outlier_confidence_ is estimator.outlier_confidence_
    assert model.label_confidence_ is estimator.label_confidence_
    model.set_params(estimator=all_methods()["lof"].make()).fit(make_table())
    assert not hasattr(model, "outlier_confidence_")
    assert not hasattr(model, "label_confidence_")


def test_detector_of_a_table_with_categories_keeps_its_share():
    # Categories need an estimator of its own, which should find as many outliers.
    table = make_table()
    model = TableModel(all_methods()["cor-detector"].make(), id_column="id").fit(table)
    assert (model.labels_ == -1).sum() == round(0.05 * table.num_rows)


def test_a_second_fit_forgets_the_first():
    model = make_model("kmeans--", id_column="id").fit(make_table())
    model.set_params(estimator=all_methods()["lof"].make()).fit(make_table())
    assert not hasattr(model, "nearest_labels_")


@pytest.mark.parametrize("name", ["cor", "lof"])
def test_reasons_keep_the_index_of_a_pandas_frame(name):
    frame = make_table().to_pandas()
    frame.index = [f"row {i}" for i in range(len(frame))]
    reasons = make_model(name).fit(frame).explain(frame)
    assert reasons.index.equals(frame.index)


@pytest.mark.parametrize("pairs", [False, True])
def test_columns_of_pandas_may_have_names_that_are_no_texts(pairs):
    numbers = np.random.default_rng(0).normal(size=(40, 2))
    names = pd.MultiIndex.from_tuples([("a", 0), ("a", 1)]) if pairs else [0, 1]
    frame = pd.DataFrame(numbers, columns=names)
    model = make_model().fit(frame)
    assert model.encoder_.feature_names_out_ == [str(name) for name in frame.columns]


def test_cells_of_different_kinds_are_texts_as_in_a_file():
    frame = pd.DataFrame({"a": np.arange(40.0), "b": [1, "x", 2.5, None] * 10})
    encoder = make_model().fit(frame).encoder_
    assert encoder.kinds_["b"] == "category"
    assert encoder.transform(frame)["b"].to_pylist()[:4] == ["1", "x", "2.5", None]


def test_cells_that_are_no_values_are_told_with_their_column():
    frame = pd.DataFrame({"a": np.arange(4.0), "b": [1, "x", object(), {}]})
    with pytest.raises(ValueError, match="Column 'b' holds cells of different kinds"):
        make_model().fit(frame)


def test_where_all_rows_are_outliers_they_are_told_apart_from_each_other():
    rows = pa.table({"a": [0.0, 10.0, 20.0, 90.0], "b": [1.0, 2.0, 1.0, 2.0]})
    method = all_methods()["dbscan"].make(eps=1e-6, min_samples=2)
    model = TableModel(method).fit(rows)
    assert model.labels_.tolist() == [-1] * 4
    reasons = model.explain(rows).to_pydict()
    assert reasons["feature_1"][3] == "a"
    assert reasons["difference_1"][3] > 1
