"""Rows that are read in pieces are encoded as those in memory, to the last bit."""

import json
import pickle
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet
import pytest
from scipy import sparse

from corral.sources import open_source
from corral.tables import TableEncoder, read_table
from corral.tables import _distinct as distinct
from corral.tables._pieces import PIECE_ROWS
from tests.tables.blocks import Blocks

# More than a piece, and not a multiple of the blocks below.
N = PIECE_ROWS + 1234


def make_table(n=N, seed=0):
    """Return columns of all kinds, some of which change their looks late."""
    rng = np.random.default_rng(seed)
    seconds = rng.integers(0, 10**9, n)
    colors = np.array(["red", "blue", None], dtype=object)[rng.integers(0, 3, n)]
    late = [f"{i % 500}" for i in range(n)]
    late[-1] = "97 kg"
    stamps = [f"2024-01-{1 + i % 28:02} 10:00" for i in range(n)]
    zoned = [f"{stamp}Z" for stamp in stamps]
    return pa.table(
        {
            "id": range(n),
            "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(5, 2, n)),
            "thin": rng.exponential(3, n).astype(np.float32),
            "count": pa.array(rng.integers(0, 9, n), mask=rng.random(n) < 0.2),
            "far": 1e9 + rng.normal(0, 1e-3, n),
            "made": pa.array(seconds, pa.timestamp("s")),
            "ok": rng.random(n) < 0.3,
            "color": pa.array(colors.tolist(), pa.string()),
            "coded": pa.array(colors.tolist()).dictionary_encode(),
            "number": [None if i % 11 == 3 else f" {i % 50}.5" for i in range(n)],
            "day": stamps,
            "zoned": zoned,
            "mixed zones": [*stamps[: n - 5], *zoned[n - 5 :]],
            "late text": late,
            "late code": [*(f"{i % 30}" for i in range(n - 1)), "007"],
            "who": [f"person {i}" for i in range(n)],
            "town": [f"town {i % 999}" for i in range(n)],
            "same": [3.0] * n,
            "same text": [None] * 7 + ["x"] * (n - 7),
            "nearly": [1] * (n - 1) + [2],
            "gone": pa.nulls(n, pa.string()),
            "nan": [np.nan] * n,
            "list": pa.array([[1]] * n),
        }
    )


TABLE = make_table()
ATTRIBUTES = (
    *("kinds_", "dropped_", "n_missing_", "numeric_names_", "categorical_names_"),
    *("text_names_", "feature_names_out_", "scale_"),
)


def assert_same(one, other):
    """Two encoders have learnt the same, to the last bit."""
    for name in ATTRIBUTES:
        assert getattr(one, name) == getattr(other, name), name
    assert [*one.n_missing_] == [*other.n_missing_]
    assert (one._scales is None) == (other._scales is None)
    if one._scales is not None:
        np.testing.assert_array_equal(one._scales.center, other._scales.center)
        np.testing.assert_array_equal(one._scales.unit, other._scales.unit)


def test_a_table_in_memory_has_columns_of_all_kinds():
    encoder = TableEncoder().fit(TABLE)
    dropped = ["id", "late text", "who", "town", "same", "same text"]
    assert [*encoder.dropped_] == [*dropped, "gone", "nan", "list"]
    assert encoder.categorical_names_ == [
        *("color", "coded", "mixed zones", "late code")
    ]
    assert encoder.numeric_names_[-4:] == ["number", "day", "zoned", "nearly"]
    assert encoder.dropped_["late text"].startswith(f"'97 kg' in row {N - 1} is not a ")


@pytest.mark.parametrize("scale", ["standard", "robust"])
def test_blocks_of_any_size_are_learnt_as_the_whole(scale):
    on_table = TableEncoder(scale=scale).fit(TABLE)
    for n_rows in (997, PIECE_ROWS + 1):
        source = Blocks(TABLE, n_rows)
        assert_same(TableEncoder(scale=scale).fit(source), on_table)
        assert source.most_read <= PIECE_ROWS


@pytest.mark.parametrize("scale", ["standard", "robust"])
def test_blocks_of_one_row_are_learnt_as_the_whole(scale):
    table = make_table(500)
    encoder = TableEncoder(scale=scale)
    on_table = TableEncoder(scale=scale).fit(table)
    assert_same(encoder.fit(Blocks(table, 1)), on_table)


@pytest.mark.parametrize("settings", [{}, {"categories": False}, {"columns": ["size"]}])
def test_encoded_blocks_are_those_of_the_whole(settings):
    source = Blocks(TABLE, 1000)
    X = TableEncoder(**settings).fit_transform(source)
    whole = TableEncoder(**settings).fit_transform(TABLE)
    assert X.shape == whole.shape
    assert X.borders == source.borders
    assert X.names == getattr(whole, "column_names", None)
    for start, stop in ((0, 1), (990, 2010), (N - 3, N), (5, 5)):
        block = X.read(start, stop)
        if isinstance(whole, pa.Table):
            assert block.equals(whole.slice(start, stop - start))
        else:
            np.testing.assert_array_equal(block, whole[start:stop])


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_files_are_learnt_as_tables_that_are_read(tmp_path, suffix):
    path = tmp_path / f"rows.{suffix}"
    table = TABLE.drop_columns(["list", "coded"])
    if suffix == "csv":
        pyarrow.csv.write_csv(table, path)
    else:
        pyarrow.parquet.write_table(table, path, row_group_size=7777)
    held, source = read_table(path), open_source(path)
    on_file = TableEncoder().fit(source)
    assert_same(on_file, TableEncoder().fit(held))
    block = on_file.transform(source).read(N - 5000, N)
    assert block.equals(on_file.transform(held).slice(N - 5000))


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64])
def test_arrays_with_few_columns(dtype):
    rows = (np.random.default_rng(0).normal(size=(N, 3)) * 100).astype(dtype)
    source = Blocks(rows, 777)
    assert_same(TableEncoder().fit(source), TableEncoder().fit(rows))
    encoded = TableEncoder().fit_transform(source).read(0, N)
    np.testing.assert_array_equal(encoded, TableEncoder().fit_transform(rows))
    assert encoded.dtype == np.float64


@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_with_many_columns(order):
    rows = np.random.default_rng(0).normal(3, 2, (900, 5001)).astype(np.float32)
    rows[:, 7] = 1.0
    rows[800, 9] = np.nan
    held = np.asarray(rows, order=order)
    source = Blocks(rows, 100)
    on_blocks = TableEncoder().fit(source)
    assert_same(on_blocks, TableEncoder().fit(held))
    assert on_blocks.n_missing_ == {"feature 9": 1}
    encoded = on_blocks.transform(source).read(790, 810)
    np.testing.assert_array_equal(encoded, on_blocks.transform(held)[790:810])
    rows[850, 12] = np.inf
    with pytest.raises(ValueError, match="Column 'feature 12' holds inf in row 850"):
        TableEncoder().fit(Blocks(rows, 100))


@pytest.mark.parametrize("scale", ["auto", "standard"])
def test_sparse_rows(scale):
    rows = sparse.random_array((N, 30), density=0.1, format="csr", random_state=0)
    source = Blocks(rows, 5000)
    on_blocks = TableEncoder(scale=scale).fit(source)
    on_rows = TableEncoder(scale=scale).fit(rows)
    assert_same(on_blocks, on_rows)
    block = on_blocks.transform(source).read(N - 100, N)
    assert (block != on_rows.transform(rows)[N - 100 :]).nnz == 0
    if scale == "standard":
        spread = rows.toarray().std(axis=0)
        np.testing.assert_allclose(on_rows._scales.unit, spread)


def test_pieces_of_nulls_without_a_type():
    # As a stream of frames gives them, each of which is typed by itself.
    class Untyped(Blocks):
        def read(self, start, stop):
            table = super().read(start, stop)
            if start < PIECE_ROWS:
                gone = pa.nulls(table.num_rows)
                table = table.set_column(0, "x", gone).set_column(1, "c", gone)
            return table

    n = N - PIECE_ROWS
    nulls = pa.nulls(PIECE_ROWS).to_pylist()
    table = pa.table(
        {
            "x": pa.array([*nulls, *range(n)], pa.float64()),
            "c": [*nulls, *(["u", "v"] * n)[:n]],
            "y": np.arange(N) % 5,
        }
    )
    assert_same(TableEncoder().fit(Untyped(table, 100)), TableEncoder().fit(table))


def test_a_source_without_rows_has_no_column_to_use():
    with pytest.raises(ValueError, match="No column can be used. 'x': it has no value"):
        TableEncoder().fit(pa.table({"x": pa.array([], pa.float64())}))


def test_rows_in_errors_are_counted_from_the_first():
    numbers = np.arange(float(N))
    numbers[[N - 9, N - 2]] = np.inf
    source = Blocks(pa.table({"x": numbers}), 1000)
    with pytest.raises(ValueError, match=rf"infinite in row {N - 9} and 1 more"):
        TableEncoder().fit(source)
    encoder = TableEncoder().fit(pa.table({"x": [1.0, 2.0]}))
    with pytest.raises(ValueError, match=rf"infinite in row {N - 9} and 1 more"):
        encoder.transform(source).read(N - 100, N)
    texts = Blocks(pa.table({"x": ["1", "2", "3", "many"]}), 2)
    with pytest.raises(ValueError, match="the text 'many' in row 3, but was a number"):
        encoder.transform(texts).read(2, 4)


def test_what_needs_all_rows_in_memory():
    source = Blocks(TABLE.select(["size", "who"]), 1000)
    words = rf"tfidf=True needs all rows in memory, but Blocks\(shape=\({N}, 2\)\) is"
    with pytest.raises(ValueError, match=words):
        TableEncoder(tfidf=True).fit(source)
    rows = Blocks(sparse.csr_array(np.eye(5)), 2)
    with pytest.raises(ValueError, match="scale='robust' needs all rows in memory if"):
        TableEncoder(scale="robust").fit(rows)


def test_encoded_sources_can_be_pickled():
    source = Blocks(make_table(1500), 1000)
    X = TableEncoder(id_column="who").fit_transform(source)
    again = pickle.loads(pickle.dumps(X))
    assert again.read(10, 20).equals(X.read(10, 20))
    assert again.fingerprint() == X.fingerprint()
    assert (again.shape, again.names, again.ids(3, 5)) == (
        X.shape,
        X.names,
        ["person 3", "person 4"],
    )


def test_fingerprints_tell_how_rows_are_encoded():
    table = make_table(1500)
    source = Blocks(table, 1000)
    settings = [{}, {"scale": "robust"}, {"scale": "none"}]
    settings += [{"exclude": ["size"]}, {"categories": False}]
    encoders = [TableEncoder(**each).fit(source) for each in settings]
    encoders.append(TableEncoder().fit(make_table(1500, seed=1)))
    prints = [json.dumps(each.transform(source).fingerprint()) for each in encoders]
    assert len({*prints}) == len(encoders)
    again = TableEncoder().fit(table).transform(source).fingerprint()
    assert json.dumps(again) == prints[0]


def test_ids_and_values_of_some_rows():
    source = Blocks(TABLE, 1000)
    named = TableEncoder(id_column="who").fit(source)
    assert named.ids(source, 998, 1001) == ["person 998", "person 999", "person 1000"]
    assert named.ids(source) == named.ids(TABLE)
    plain = TableEncoder().fit(source)
    assert plain.ids(source, 998, 1001) == ["998", "999", "1000"]
    assert plain.ids(TABLE, N - 1) == [str(N - 1)]
    row = PIECE_ROWS + 5
    for name in ("size", "made", "color"):
        assert plain.format_value(name, source, row) == plain.format_value(
            name, TABLE, row
        )


@pytest.mark.parametrize("n_texts", [50, 256, 5000])
def test_distinct_texts_are_counted_alike_in_any_order(monkeypatch, n_texts):
    monkeypatch.setattr(distinct, "MOST_COUNTED", 256)
    texts = np.array([f"text {i}" for i in range(n_texts)] * 3)
    counts = []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(texts))
        count = distinct.DistinctCount()
        for part in np.array_split(texts[order], 1 + 7 * seed):
            count.add(pa.array(part))
        counts.append(count.n_distinct)
    assert len({*counts}) == 1
    assert count.is_exact == (n_texts < 256)
    # Exact below the limit; four standard errors above.
    assert abs(counts[0] - n_texts) <= (0 if count.is_exact else n_texts / 4)


class Endless:
    """Rows that are made when they are read."""

    def __init__(self, n_samples):
        self.shape = (n_samples, 4)

    def read(self, start, stop):
        rows = np.arange(start, stop)
        return pa.table(
            {
                "x": np.sin(rows),
                "y": rows % 1000,
                "color": np.array(["red", "blue", "green"])[rows % 3],
                "who": pc.binary_join_element_wise(
                    "Mr", pa.array(rows).cast("str"), " "
                ),
            }
        )

    def fingerprint(self):
        return {"kind": "endless"}


@pytest.mark.parametrize("scale", ["standard", "robust"])
def test_memory_does_not_grow_with_the_rows(monkeypatch, scale):
    monkeypatch.setattr(distinct, "MOST_COUNTED", 2**12)
    peaks = []
    for n_pieces in (2, 4):
        source = Endless(n_pieces * PIECE_ROWS)
        before = pa.total_allocated_bytes()
        tracemalloc.start()
        encoder = TableEncoder(scale=scale).fit(source)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        assert pa.total_allocated_bytes() - before < 2**22
    assert "who" in encoder.dropped_
    assert peaks[1] < 1.1 * peaks[0]


def test_standard_deviation_of_a_small_spread_around_a_large_number():
    rng = np.random.default_rng(0)
    # Sums of these whole numbers are exact in Python.
    whole = rng.integers(0, 1000, 100_000)
    values = 1e9 + whole / 1024
    exact = sum(map(int, whole**2)) / 100_000 - (sum(map(int, whole)) / 100_000) ** 2
    encoder = TableEncoder().fit(pa.table({"x": values}))
    np.testing.assert_allclose(encoder._scales.unit, exact**0.5 / 1024, rtol=1e-9)
    scaled = encoder.transform(pa.table({"x": values}))
    np.testing.assert_allclose(scaled.std(), 1, rtol=1e-9)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 100, 1001])
def test_quartiles_are_those_of_numpy(n):
    rng = np.random.default_rng(n)
    columns = {
        "normal": rng.normal(0, 1e-3, n + 1),
        "whole": rng.integers(-3, 3, n + 1).astype(float),
        "zeros": np.where(rng.random(n + 1) < 0.5, -0.0, 0.0) + (rng.random(n + 1) > 1),
        "wide": rng.normal(size=n + 1) * 10.0 ** rng.integers(-300, 150, n + 1),
        "far": 1e15 + rng.integers(0, 99, n + 1),
        "holes": np.where(rng.random(n + 1) < 0.5, np.nan, rng.normal(size=n + 1)),
    }
    columns["zeros"][0] = 1.0
    columns["holes"][:2] = 0.5, 0.7
    encoder = TableEncoder(scale="robust").fit(pa.table(columns))
    used = encoder.numeric_names_
    table = np.column_stack([columns[name] for name in used])
    low, middle, high = np.nanquantile(table, [0.25, 0.5, 0.75], axis=0)
    np.testing.assert_allclose(encoder._scales.center, middle, rtol=1e-14)
    spread = np.where(high == low, np.nanstd(table, axis=0), high - low)
    np.testing.assert_allclose(encoder._scales.unit, spread, rtol=1e-12)
