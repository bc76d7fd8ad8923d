"""What each column becomes, which are left out, and what is said about it."""

import datetime as dt

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from corral.tables import TableEncoder, read_table

NOON = dt.datetime(2024, 2, 29, 12)


def encode(column, **settings):
    """Return the only column as numbers, unscaled."""
    table = pa.table({"x": column})
    return TableEncoder(scale="none", **settings).fit_transform(table)[:, 0].tolist()


def test_the_index_of_a_data_frame_is_no_feature(tmp_path):
    frame = pd.DataFrame({"a": [3.0, 1.0, 2.0, 5.0], "b": ["x", "y", "x", "y"]})
    dates = pd.to_datetime(["2024", "2022", "2023", "2020"])
    for index in ([2, 0, 1, 5], ["u", "v", "w", "z"], dates):
        frame.set_axis(index).to_parquet(tmp_path / "t.parquet")
        table = read_table(tmp_path / "t.parquet")
        name = table.column_names[-1]
        assert name == "__index_level_0__"
        encoder = TableEncoder().fit(table)
        assert encoder.feature_names_out_ == ["a", "b"]
        assert "it is the index of a data frame; name it" in encoder.dropped_[name]
    asked = TableEncoder(columns=["a", name]).fit(table)
    assert asked.feature_names_out_ == ["a", name]


@pytest.mark.parametrize(
    ("column", "numbers"),
    [
        (pa.array([1, 2, 4], pa.uint8()), [1, 2, 4]),
        (pa.array([1.5, 2, 4], pa.float32()), [1.5, 2, 4]),
        (pa.array([1, 2**60, 0], pa.int64()), [1, 2**60, 0]),
        (pa.array(["1.5", "2"]).cast(pa.decimal128(5, 2)), [1.5, 2]),
        (pa.array([True, False]), [1, 0]),
        (pa.array([dt.date(1970, 1, 2), dt.date(1969, 12, 31)]), [86400, -86400]),
        (pa.array([0, 86400000], pa.date64()), [0, 86400]),
        (pa.array([1, 2500], pa.timestamp("ms")), [0.001, 2.5]),
        (pa.array([1, 2], pa.timestamp("s", "Europe/Berlin")), [1, 2]),
        (pa.array([1, 60], pa.time32("s")), [1, 60]),
        (pa.array([1_000_000, 0], pa.time64("us")), [1, 0]),
        (pa.array([1, 2], pa.duration("ns")), [1e-9, 2e-9]),
        (pa.array(["1", " 2.5", "-3e2"]), [1, 2.5, -300]),
        (pa.array(["1970-01-01", "1970-01-02"], pa.large_string()), [0, 86400]),
        (pa.array(["1970-01-01T02:00+02:00", "1970-01-01T00:01Z"]), [0, 60]),
    ],
    ids=lambda value: str(getattr(value, "type", "")),
)
def test_numbers_dates_and_truth_values_become_numbers(column, numbers):
    assert encode(column) == numbers


def test_missing_cells_are_nan_and_counted():
    table = pa.table(
        {
            "null": pa.array([1, None, 3, 4]),
            "nan": [1.0, np.nan, np.nan, 2.0],
            "full": [1, 2, 3, 5],
            "day": pa.array([NOON, None, NOON, NOON - dt.timedelta(1)]),
        }
    )
    encoder = TableEncoder().fit(table)
    gone = np.isnan(encoder.transform(table))
    assert encoder.n_missing_ == {"null": 1, "nan": 2, "day": 1}
    assert gone.sum(axis=0).tolist() == [1, 2, 0, 1]


def test_kinds_of_columns_and_why_some_are_left_out():
    n = 320
    table = pa.table(
        {
            "": range(n),
            "size": np.arange(n) % 7,
            "day": pa.array([dt.date(2024, 1, 1) + dt.timedelta(i) for i in range(n)]),
            "ok": [i % 2 == 0 for i in range(n)],
            "color": ["red", "blue"] * (n // 2),
            "coded": pa.array(["a", "b"] * (n // 2)).dictionary_encode(),
            "who": [f"person {min(i, 311)}" for i in range(n)],
            "many": [f"town {i % 100}" for i in range(n)],
            "same": [3.0] * n,
            "same too": ["x", None] * (n // 2),
            "gone": pa.nulls(n),
            "nan": [np.nan] * n,
            "list": [[i] for i in range(n)],
            "bytes": [b"x%d" % i for i in range(n)],
            "zip": [f"0{1000 + i % 5}" for i in range(n)],
        }
    )
    encoder = TableEncoder(id_column="who").fit(table)
    assert encoder.feature_names_out_ == ["size", "day", "ok", "color", "coded", "zip"]
    assert encoder.numeric_names_ == ["size", "day", "ok"]
    assert encoder.categorical_names_ == ["color", "coded", "zip"]
    kinds = encoder.kinds_
    assert [kinds[name] for name in ("size", "day", "ok", "color", "who", "many")] == [
        *("number", "date", "boolean", "category", "id", "text")
    ]
    assert encoder.dropped_ == {
        "": "it counts the rows; name it in --columns to use it all the same",
        "many": "100 distinct texts in 320 rows: more than the 20 that a category may "
        "have; name it in --columns to use it all the same",
        "same": "every row has the same value",
        "same too": "every row has the same value 'x'",
        "gone": "it has no values",
        "nan": "it has no values",
        "list": "its cells are of the type list<item: int64>, not numbers or texts",
        "bytes": "its cells are of the type binary, not numbers or texts",
    }
    without = TableEncoder().fit(table)
    assert without.dropped_["who"] == (
        "312 distinct texts in 320 rows: an identifier or free text; use --id-column, "
        "--exclude or --tfidf"
    )


def test_numbers_with_a_few_other_cells_are_told_from_free_text():
    values = [f"{i / 7:.3f}" for i in range(50)]
    values[7] = "13 kg"
    values[9] = None
    encoder = TableEncoder().fit(pa.table({"x": values, "y": range(50)}))
    assert encoder.dropped_ == {
        "x": "'13 kg' in row 7 is not a number (1 of 49 cells are not); mend such "
        "cells, or leave them empty"
    }


@pytest.mark.parametrize(
    ("n", "n_distinct", "is_category"),
    [(20, 10, True), (20, 11, False), (40, 20, True), (100, 21, False)]
    + [(2500, 50, True), (2500, 51, False)],
)
def test_how_many_texts_a_category_may_have(n, n_distinct, is_category):
    texts = [f"t{i % n_distinct}" for i in range(n)]
    encoder = TableEncoder().fit(pa.table({"t": texts, "x": range(n)}))
    assert (encoder.categorical_names_ == ["t"]) is is_category
    assert ("t" in encoder.dropped_) is not is_category


def test_a_column_that_was_asked_for_may_have_many_categories_and_count_rows():
    n = 200
    table = pa.table({"id": range(n), "t": [f"t{i % 60}" for i in range(n)]})
    encoder = TableEncoder(columns=["t", "id"]).fit(table)
    assert encoder.feature_names_out_ == ["id", "t"]


def test_categories_may_be_left_out():
    table = pa.table({"c": ["a", "b"] * 5, "x": range(10)})
    encoder = TableEncoder(categories=False).fit(table)
    assert encoder.transform(table).shape == (10, 1)
    assert encoder.dropped_ == {"c": "a category, and this method uses numbers only"}


def test_categories_stay_texts_between_scaled_numbers():
    table = pa.table(
        {"a": [0.0, None, 2.0], "c": ["x", None, "y"], "b": [1, 2, 3], "c2": [*"uvu"]}
    )
    # Each text has to occur twice or more on average.
    table = pa.concat_tables([table, table])
    encoder = TableEncoder().fit(table)
    encoded = encoder.transform(table.slice(0, 3))
    assert encoded.column_names == ["a", "c", "b", "c2"]
    assert encoded["a"].to_pylist() == [-1, None, 1]
    assert encoded["c"].to_pylist() == ["x", None, "y"]
    assert encoder.n_missing_ == {"a": 2, "c": 2}


def test_unseen_categories_stay_as_they_are_and_numbers_may_stand_for_texts():
    fit = pa.table({"c": ["1", "b"] * 5, "x": range(10)})
    encoder = TableEncoder().fit(fit)
    new = encoder.transform(pa.table({"x": [1, 2], "c": [1, 77]}))
    assert new["c"].to_pylist() == ["1", "77"]


@pytest.mark.parametrize("scale", ["standard", "robust", "none"])
def test_scales_skip_missing_cells(scale):
    values = [1.0, 2.0, 3.0, 4.0, np.nan, 100.0]
    table = pa.table({"x": values})
    scaled = TableEncoder(scale=scale).fit_transform(table)[:, 0]
    known = np.delete(values, 4)
    middle, unit = {
        "standard": (known.mean(), known.std()),
        "robust": (3.0, 2.0),
        "none": (0.0, 1.0),
    }[scale]
    np.testing.assert_allclose(np.delete(scaled, 4), (known - middle) / unit)
    assert np.isnan(scaled[4])


def test_robust_scale_of_a_column_that_is_mostly_one_value():
    values = np.array([0.0] * 9 + [1000.0])
    scaled = TableEncoder(scale="robust").fit_transform(pa.table({"x": values}))
    np.testing.assert_allclose(scaled[:, 0], values / values.std())


def test_scales_of_new_rows_are_those_of_the_fit():
    encoder = TableEncoder().fit(pa.table({"x": [0.0, 2.0]}))
    assert encoder.transform(pa.table({"x": [4.0]})).tolist() == [[3.0]]


def test_numbers_too_large_to_be_squared():
    with pytest.raises(ValueError, match="Column 'x' has numbers too large"):
        TableEncoder().fit(pa.table({"x": [1e300, -1e300, 0.0]}))


@pytest.mark.parametrize("library", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_of_any_library(library):
    columns = {"x": [1.0, 2.0, None, 4.0, 5.0], "c": ["a", "b", "a", "b", None]}
    encoder = TableEncoder().fit(library(columns))
    assert encoder.feature_names_out_ == ["x", "c"]
    assert encoder.n_missing_ == {"x": 1, "c": 1}


def test_the_index_of_pandas_is_no_column():
    frame = pd.DataFrame({"x": [1.0, 2.0, 4.0]}, index=[30, 10, 20])
    assert TableEncoder().fit(frame).feature_names_out_ == ["x"]


def test_pandas_categories():
    frame = pd.DataFrame({"c": pd.Categorical(["u", "v", None, "u"] * 2)})
    assert TableEncoder().fit(frame).categorical_names_ == ["c"]


@pytest.mark.parametrize("at", ["fit", "transform"])
def test_infinite_numbers_are_named(at):
    good = pa.table({"x": [1.0, 2.0, 3.0]})
    bad = pa.table({"x": [1.0, np.inf, -np.inf]})
    encoder = TableEncoder().fit(good)
    with pytest.raises(ValueError, match=r"Column 'x' is infinite in row 1 and 1 more"):
        getattr(encoder, at)(bad)


def test_new_rows_lack_columns_or_have_more():
    encoder = TableEncoder().fit(pa.table({"length": [1, 2], "width": [2, 1]}))
    more = pa.table({"z": ["a"], "width": [1.0], "length": [2]})
    assert encoder.transform(more).shape == (1, 2)
    with pytest.raises(ValueError, match=r"The fit used 'length', which.*'lenght'"):
        encoder.transform(pa.table({"lenght": [1], "width": [2]}))


@pytest.mark.parametrize(
    ("fit", "new", "words"),
    [
        ([1, 2], ["3", "many"], r"text 'many' in row 1, but was a number"),
        ([NOON, NOON - dt.timedelta(1)], [1, 2], r"type int64, but a date"),
        ([1, 2], [NOON, NOON], r"type timestamp\[us\], but a number"),
        (["a", "b"] * 3, [[1], [2]], r"type list<.*>, but texts in the fit"),
        ([True, False], ["yes", "true"], r"text 'yes' in row 0, but was a boolean"),
    ],
)
def test_columns_whose_type_changes(fit, new, words):
    encoder = TableEncoder().fit(pa.table({"x": fit}))
    with pytest.raises(ValueError, match=words):
        encoder.transform(pa.table({"x": new}))


@pytest.mark.parametrize(
    ("fit", "new"),
    [
        ([1, 2], ["3", None]),
        ([1.5, 2], [True, False]),
        ([NOON, NOON - dt.timedelta(1)], ["2024-02-28", None]),
        ([NOON, NOON - dt.timedelta(1)], [dt.date(2024, 2, 28), None]),
        ([1, 2], pa.nulls(2)),
        ([NOON, NOON - dt.timedelta(1)], pa.nulls(2)),
        ([True, False], ["true", "false"]),
    ],
)
def test_columns_whose_type_may_change(fit, new):
    encoder = TableEncoder().fit(pa.table({"x": fit}))
    assert encoder.transform(pa.table({"x": new})).shape == (2, 1)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"columns": ["hight"]}, r"columns names 'hight', which.*mean 'height'"),
        ({"exclude": ["qqq"]}, r"exclude names 'qqq'.*The table has 'height', 'name'"),
        ({"id_column": "nam"}, r"id_column names 'nam'.*mean 'name'"),
        ({"columns": ["name"]}, r"cannot be used. 'name': 8 distinct texts in 8 rows"),
        ({"columns": ["height"], "exclude": ["height"]}, r"'height' cannot be in col"),
        ({"columns": ["height"], "id_column": "height"}, r"'height' cannot be in col"),
        ({"exclude": ["height", "name"]}, r"No column is left"),
        ({"exclude": ["height"]}, r"No column can be used. 'name': 8 distinct"),
        ({"scale": "big"}, r"'scale' parameter of TableEncoder"),
    ],
)
def test_settings_that_do_not_fit_the_table(settings, words):
    table = pa.table({"height": range(8), "name": [*"abcdefgh"]})
    with pytest.raises(ValueError, match=words):
        TableEncoder(**settings).fit(table)


def test_columns_and_exclude_choose():
    table = pa.table({"a": [1, 2], "b": [2, 1], "c": [3, 4]})
    assert TableEncoder(columns=["c", "a"]).fit(table).numeric_names_ == ["a", "c"]
    assert TableEncoder(exclude="b").fit(table).numeric_names_ == ["a", "c"]


def test_two_columns_of_one_name():
    table = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    frame = pd.DataFrame([[1, 2]], columns=["a", "a"])
    for each in (table, frame):
        with pytest.raises(ValueError, match="more than one column named 'a'"):
            TableEncoder().fit(each)


def test_what_is_no_table():
    with pytest.raises(TypeError, match="A table should be a data frame.*Got list"):
        TableEncoder().fit([[1, 2]])
    with pytest.raises(ValueError, match=r"The table holds an array of shape"):
        TableEncoder().fit(np.ones((1, 1, 1)))


def test_ids_are_those_of_the_column_or_row_numbers():
    table = pa.table({"x": [1.5, 2, 3], "id": [7, 8, None]})
    assert TableEncoder(id_column="id").fit(table).ids(table) == ["7", "8", "missing"]


def test_new_rows_may_come_without_the_id_column():
    table = pa.table({"id": [7, 8, 9], "size": [1.0, 2.0, 4.0]})
    encoder = TableEncoder(id_column="id").fit(table)
    new = table.drop_columns(["id"])
    assert encoder.ids(new) == ["0", "1", "2"]
    assert encoder.transform(new).shape == (3, 1)


def test_a_file_of_another_kind_lists_few_columns():
    names = [f"column {i}" for i in range(300)]
    table = pa.table({name: [1.0, 2.0, 4.0] for name in names})
    encoder = TableEncoder().fit(table)
    with pytest.raises(ValueError, match="and 240 more, which") as caught:
        encoder.transform(table.select(names[:50]))
    assert len(str(caught.value)) < 1000
    assert TableEncoder().fit(table).ids(table) == ["0", "1", "2"]
    with pytest.raises(ValueError, match="id_column names 'id', which the table"):
        TableEncoder(id_column="id").fit(table).ids(table.select(["x"]))


def test_values_are_shown_as_the_user_wrote_them():
    table = pa.table(
        {
            "f": [0.1 + 0.2, np.nan, 1e9],
            "i": [1, 2, 3],
            "d": [NOON, NOON, NOON - dt.timedelta(1)],
            "b": [True, False, None],
        }
    )
    encoder = TableEncoder().fit(table)
    shown = [encoder.format_value(name, table, 0) for name in "fidb"]
    assert shown == ["0.3", "1", "2024-02-29 12:00:00", "true"]
    assert encoder.format_value("f", table, 1) == "missing"
    assert encoder.format_value("b", table, 2) == "missing"
    table = pa.table({"c": ["x = 1", "y"] * 2, "c = x": [1, 2, 3, 4]})
    encoder = TableEncoder().fit(table)
    assert encoder.format_value("c = x = 1", table, 1) == "y"
    assert encoder.format_value("c = x", table, 1) == "2"


def test_dense_arrays_are_tables_and_wide_ones_arrays():
    narrow = np.array([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]])
    encoder = TableEncoder().fit(narrow)
    assert encoder.dropped_ == {"feature 1": "every row has the same value"}
    wide = np.random.default_rng(0).normal(3, 2, (20, 5001))
    encoded = TableEncoder().fit_transform(wide)
    np.testing.assert_allclose(encoded.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(encoded.std(axis=0), 1)
    assert TableEncoder().fit(wide).feature_names_out_[-1] == "feature 5000"


def test_columns_of_wide_arrays_that_tell_nothing_and_missing_cells():
    wide = np.random.default_rng(0).normal(size=(6, 5001))
    wide[:, 7] = 3.0
    wide[:, 9] = np.nan
    wide[2, 11] = np.nan
    encoder = TableEncoder().fit(wide)
    assert encoder.dropped_ == {
        "feature 7": "every row has the same value",
        "feature 9": "it has no values",
    }
    assert encoder.n_missing_ == {"feature 11": 1}
    assert encoder.transform(wide).shape == (6, 4999)
    wide[3, 12] = np.inf
    with pytest.raises(ValueError, match="Column 'feature 12' holds inf in row 3"):
        encoder.transform(wide)


def test_sparse_rows_are_not_scaled_by_default_and_never_shifted():
    values = np.random.default_rng(0).poisson(0.5, (30, 6)).astype(float)
    rows = sparse.csr_array(values)
    same = TableEncoder().fit_transform(rows)
    assert (same != rows).nnz == 0
    for scale in ("standard", "robust"):
        scaled = TableEncoder(scale=scale).fit_transform(rows)
        assert isinstance(scaled, sparse.csr_array)
        assert scaled.nnz == rows.nnz


def test_columns_of_sparse_rows_can_be_chosen():
    rows = sparse.csr_array(np.arange(12.0).reshape(3, 4))
    encoder = TableEncoder(columns=["feature 3", "feature 1"]).fit(rows)
    assert encoder.transform(rows).toarray().tolist() == [[1, 3], [5, 7], [9, 11]]
    assert encoder.format_value("feature 3", rows, 2) == "11"


def test_sparse_and_dense_new_rows_are_the_same():
    rows = sparse.csr_array(np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 4.0]]))
    on_sparse = TableEncoder(scale="standard").fit(rows)
    assert (on_sparse.transform(rows.toarray()) != on_sparse.transform(rows)).nnz == 0
    on_table = TableEncoder().fit(rows.toarray())
    np.testing.assert_array_equal(
        on_table.transform(rows), on_table.transform(rows.toarray())
    )
    with pytest.raises(ValueError, match="has 1 columns, but that of the fit had 2"):
        on_sparse.transform(rows[:, [0]])


def test_sparse_rows_with_cells_that_are_no_numbers():
    rows = sparse.csr_array(np.array([[1.0, 0.0], [0.0, np.nan]]))
    with pytest.raises(ValueError, match="Column 'feature 1' holds nan in row 1"):
        TableEncoder().fit(rows)


TEXTS = pa.table(
    {
        "review": ["good red car", "bad blue car", "good green boat", None, "red boat"],
        "title": ["my car", "his car", "her boat", "our boat", "no boat"],
        "stars": [5, 1, 4, 3, 2],
        "code": ["a1", "b2", "c3", "d4", "e5"],
    }
)


def test_tfidf_splits_texts_into_words():
    encoder = TableEncoder(tfidf=True).fit(TEXTS)
    weights = encoder.transform(TEXTS)
    assert encoder.text_names_ == ["review", "title"]
    assert isinstance(weights, sparse.csr_array)
    words = " ".join(encoder.feature_names_out_)
    assert words == "bad blue boat car good green her his my no our red"
    assert encoder.n_missing_ == {"review": 1}
    assert encoder.dropped_["stars"] == "tf-idf uses the columns of text only"
    assert encoder.dropped_["code"].startswith("5 distinct texts in 5 rows")
    # Rows have length one, and a rare word weighs more than a common one.
    np.testing.assert_allclose(weights.power(2).sum(axis=1), 1)
    at = encoder.feature_names_out_.index
    assert weights[4, at("no")] > weights[4, at("red")]
    assert encoder.format_value("car", TEXTS, 0) == "2"
    assert encoder.format_value("boat", TEXTS, 0) == "0"


def test_categories_of_two_words_are_no_free_text_unless_asked_for():
    table = pa.table({"opinion": ["very good", "not so good"] * 9, "n": range(18)})
    settled = TableEncoder(tfidf=True).fit(table)
    assert settled.text_names_ == []
    assert settled.dropped_ == {"opinion": "tf-idf uses words or counts of words only"}
    asked = TableEncoder(tfidf=True, columns=["opinion"]).fit(table)
    assert asked.feature_names_out_ == ["good", "not", "so", "very"]


def test_tfidf_of_numbers_takes_them_for_counts():
    counts = pa.table({"car": [1, 0, 2, 0], "boat": [0, 3, 1, None]})
    encoder = TableEncoder(tfidf=True).fit(counts)
    weights = encoder.transform(counts)
    assert encoder.feature_names_out_ == ["car", "boat"]
    assert isinstance(weights, sparse.csr_array)
    np.testing.assert_allclose(weights.toarray()[:2], [[1, 0], [0, 1]])
    sparse_counts = sparse.csr_array(np.array([[1, 0], [0, 3], [2, 1], [0, 0]]))
    again = TableEncoder(tfidf=True).fit_transform(sparse_counts)
    np.testing.assert_allclose(again.toarray(), weights.toarray())


def test_weights_of_words_are_scaled_if_asked_for_and_zeros_stay():
    rng = np.random.default_rng(0)
    counts = sparse.csr_array(rng.poisson(0.5, (40, 6)) + np.eye(40, 6))
    plain = TableEncoder(tfidf=True).fit_transform(counts).toarray()
    standard = TableEncoder(tfidf=True, scale="standard").fit_transform(counts)
    np.testing.assert_allclose(standard.toarray(), plain / plain.std(axis=0))
    robust = TableEncoder(tfidf=True, scale="robust").fit_transform(counts)
    low, high = np.quantile(plain, [0.25, 0.75], axis=0)
    assert (low < high).all()
    np.testing.assert_allclose(robust.toarray(), plain / (high - low))
    assert robust.nnz == np.count_nonzero(plain)


def test_robust_scales_of_a_wide_array_are_those_of_its_columns():
    wide = np.random.default_rng(0).normal(size=(9, 5001))
    found = TableEncoder(scale="robust").fit_transform(wide)
    few = TableEncoder(scale="robust").fit_transform(wide[:, :3])
    np.testing.assert_allclose(found[:, :3], few)


def test_a_wide_matrix_is_no_table_of_the_fit():
    encoder = TableEncoder().fit(pa.table({"feature 0": [1.0, 2.0, 4.0]}))
    for wide in (np.ones((2, 5001)), sparse.csr_array((2, 5001))):
        with pytest.raises(ValueError, match="has 5,001 columns, but that of the fit"):
            encoder.transform(wide)
    few = encoder.transform(sparse.csr_array(np.array([[1.0], [0.0]])))
    assert few.shape == (2, 1)


def test_tfidf_of_negative_numbers():
    with pytest.raises(ValueError, match="column 'a' holds -2 in row 1. Counts should"):
        TableEncoder(tfidf=True).fit(pa.table({"a": [1, -2, 3]}))


def test_tfidf_of_texts_without_words():
    table = pa.table({"a": ["- -", "? !", "/ /", ". ."]})
    with pytest.raises(ValueError, match="texts of 'a' have no words"):
        TableEncoder(tfidf=True).fit(table)


def test_fit_transform_is_fit_then_transform():
    columns = {"x": [1.0, None, 4.0, 2.0, 3.0], "c": ["u", "v", None, "u", "v"]}
    table = pa.table(columns)
    encoder = TableEncoder()
    assert encoder.fit_transform(table).equals(encoder.fit(table).transform(table))


def test_encoders_are_scikit_learn_estimators():
    encoder = TableEncoder(columns=["a"], scale="robust")
    assert clone(encoder).get_params() == encoder.get_params()
    with pytest.raises(NotFittedError):
        encoder.transform(pa.table({"a": [1]}))
