"""Names and codes stay as they are written."""

import gc
import weakref

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest

from corral import COR
from corral.sources import open_source
from corral.tables import TableEncoder, TableModel, read_table
from corral.tables import _leading_zeros as leading_zeros

# Each column is read as numbers or times, and its cells as fewer than there are.
LOOKS = {
    "twenty digits": ["12345678901234567890", "12345678901234567891"],
    "long codes": ["00012345678901234567890", "00012345678901234567891"],
    "versions": ["1.10", "1.1"],
    "powers": ["12E4", "120000"],
    "hexadecimal": ["0x10", "16"],
    "flags": ["TRUE", "true"],
    "times": ["10:30", "10:30:00"],
    "days": ["2024-01-01", "2024-01-01 00:00"],
    "blanks": [" 7", "7"],
}


@pytest.fixture
def put(tmp_path):
    def put(text, name="t.csv", encoding="utf-8"):
        (tmp_path / name).write_text(text, encoding=encoding)
        return tmp_path / name

    return put


def read_both(path, **named):
    """Return the table, after a look that blocks give the same."""
    table = read_table(path, **named)
    source = open_source(path, **named)
    assert source.read(0, source.shape[0]).equals(table)
    assert source.read(0, 1).schema == table.schema
    return table


@pytest.mark.parametrize("texts", ["id", ["id"], ["n", "id", "not there"]])
@pytest.mark.parametrize("kind", LOOKS)
def test_texts_are_read_as_they_are_written(put, kind, texts):
    cells = LOOKS[kind]
    path = put("id,n\n" + "".join(f"{cell},1\n" for cell in cells))
    table = read_both(path, texts=texts)
    assert table["id"].to_pylist() == cells
    assert table["n"].type == (pa.string() if "n" in texts else pa.int64())
    assert read_table(path)["id"].type != pa.string()


def test_quotes_and_missing_cells_of_texts_are_those_of_csv(put):
    path = put('id\tn\n"007"\t1\n\t2\nNA\t3\n', "t.tsv")
    assert read_both(path, texts="id")["id"].to_pylist() == ["007", None, None]


def test_texts_of_files_without_names_go_by_their_place(put):
    path = put("0012345678901234567890,1\n7,2\n")
    table = read_both(path, texts="feature 0")
    assert table["feature 0"].to_pylist() == ["0012345678901234567890", "7"]


def test_texts_that_are_not_utf8_are_refused(tmp_path):
    (tmp_path / "t.csv").write_bytes(b"a,b\n\xff,2\n")
    for read in (read_table, open_source):
        with pytest.raises(ValueError, match="is not UTF-8 text"):
            read(tmp_path / "t.csv", texts=["a"])


def test_other_formats_say_themselves_what_texts_are(tmp_path):
    table = pa.table({"id": [7, 8], "n": [1, 2]})
    pa.parquet.write_table(table, tmp_path / "t.parquet")
    assert read_both(tmp_path / "t.parquet", texts="id").equals(table)


# Ids ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("cells", "ids"),
    [
        # pandas has no whole numbers beside a missing one.
        (
            [1234567890120, 1234567890121, None],
            ["1234567890120", "1234567890121", "missing"],
        ),
        ([0.1 + 0.2, 0.3, 1.5], ["0.30000000000000004", "0.3", "1.5"]),
        ([2.0**53, 2.0**53 - 1], ["9007199254740992.0", "9007199254740991"]),
        ([1e22, np.inf, -3.0], ["1e+22", "inf", "-3"]),
    ],
)
def test_numbers_that_differ_name_rows_differently(cells, ids):
    frame = pd.DataFrame({"id": cells, "x": [1.0, 2.0, 4.0][: len(cells)]})
    assert TableEncoder(id_column="id").fit(frame).ids(frame) == ids


def test_ids_of_32_bits_are_no_longer_than_they_have_to_be():
    cells = pa.array([0.1, 16777216.0, None], pa.float32())
    table = pa.table({"id": cells, "x": [1.0, 2.0, 4.0]})
    encoder = TableEncoder(id_column="id").fit(table)
    assert encoder.ids(table) == ["0.1", "16777216", "missing"]


def test_values_of_explanations_stay_short():
    table = pa.table({"x": [0.1 + 0.2, 1234567890123.0, 1e300]})
    encoder = TableEncoder(scale="none").fit(table)
    shown = [encoder.format_value("x", table, row) for row in range(3)]
    assert shown == ["0.3", "1234567890123", "1e+300"]


# Codes --------------------------------------------------------------------------------


def make_zips(order=-1, row="{zip:05d},{n}", head="zip,n", n=20_000):
    rows = [row.format(zip=zip, n=zip % 97) for zip in range(1, n + 1)]
    return "\n".join([head, *rows[::order]]) + "\n"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize(
    ("row", "head"),
    [
        ("{zip:05d},{n}", "zip,n"),
        ("{n};{zip:05d}", "n;zip"),
        ('{n}\t"{zip:05d}"', "n\tzip"),
        ("{n},  {zip:05d} ", "n,zip"),
    ],
)
def test_codes_are_found_wherever_they_are(put, row, head, encoding):
    # The first zeros come after 110 kB.
    for order in (-1, 1):
        path = put(make_zips(order, row, head), encoding=encoding)
        table = read_both(path)
        zips = table["zip"].to_pylist()
        assert table["n"].type == pa.int64()
        assert sorted(zip.strip() for zip in zips)[:2] == ["00001", "00002"]


@pytest.mark.parametrize("packing", ["gz", "zst"])
def test_codes_are_found_in_packed_files(tmp_path, packing):
    codec = pa.Codec("gzip" if packing == "gz" else "zstd")
    path = tmp_path / f"t.csv.{packing}"
    path.write_bytes(codec.compress(make_zips().encode(), asbytes=True))
    assert read_both(path)["zip"][-1].as_py() == "00001"


def test_lines_that_are_left_out_are_counted_beside_codes(put):
    text = "zip,n\n007,1\n" + "5,6\n" * 100_000 + "8\n" * 3
    source = open_source(put(text), on_error="skip")
    assert source.read(0, 1)["zip"].to_pylist() == ["007"]
    assert "has 3 lines with too few or too many cells" in source.skipped[0]
    # Its file is open at a row in the middle.
    watch = weakref.ref(source)
    del source
    gc.collect()
    assert watch() is None


def test_codes_are_found_across_parts_of_a_file(put, monkeypatch):
    # One digit of a code is in one part, the others in the next.
    monkeypatch.setattr(leading_zeros, "_PART_BYTES", 7)
    for n_before in range(14):
        content = "a\n" + "1" * n_before + "\n007\n"
        watch = leading_zeros.ZeroWatch(",", "utf8")
        watch.add_all(pa.py_buffer(content.encode()))
        assert watch.may_be


@pytest.mark.parametrize(
    "text", ["minute\n05\n10\n", "x\n1000\n0\n", "x\n1.001\n0.001\n"]
)
def test_numbers_with_zeros_are_no_codes(put, text):
    assert read_both(put(text)).column(0).type != pa.string()


def test_zeros_in_texts_make_no_codes_of_other_columns(put):
    table = read_both(put('who,n\n"x 007",1\n"y, 008",20\n'))
    assert table["n"].type == pa.int64()


def test_codes_of_several_columns_and_long_lines(put):
    rows = [f"{j},{j},x\n" for j in range(1, 50_000)]
    rows += ["1,007,x\n", f'008,1,"{"x" * 3_000_000}"\n']
    table = read_both(put("a,b,c\n" + "".join(rows)))
    assert table.schema.types == [pa.string()] * 3
    assert table["a"][-1].as_py() == "008"


# New rows -----------------------------------------------------------------------------

# Texts of the fit, and those of new rows, all of which look like something else.
NEW = {
    "codes": (["01", "02", "A"], ["01", "02"]),
    "flags": (["TRUE", "FALSE", "unknown"], ["TRUE", "FALSE"]),
    "times": (["10:30", "11:30", "none"], ["10:30", "11:30"]),
    "numbers": (["1.0", "1e3", "many"], ["1.0", "1e3"]),
    "days": (["2024-01-01", "2024-01-02", "never"], ["2024-01-01", "2024-01-02"]),
    "hexadecimal": (["0x1", "0x2", "zero"], ["0x1", "0x2"]),
}


def write_sizes(cells, n, seed):
    """Return CSV of two groups by size, and a category that says nothing."""
    rng = np.random.default_rng(seed)
    rows = [
        f"{i:04d},{rng.normal(9 * (i % 2), 0.3):.4f},{cells[(i // 2) % len(cells)]}\n"
        for i in range(n)
    ]
    return "id,size,kind\n" + "".join(rows)


@pytest.mark.parametrize("kind", NEW)
def test_new_rows_are_read_as_those_of_the_fit(put, kind):
    old, new = NEW[kind]
    path = put(write_sizes(old, 120, 0))
    estimator = COR(2, n_outliers=2, random_state=0)
    model = TableModel(estimator, id_column="id").fit(read_table(path, texts="id"))
    assert model.encoder_.texts_ == ["id", "kind"]
    text = write_sizes(new, 40, 1)
    path = put(text, "new.csv")
    rows = [line.split(",") for line in text.splitlines()[1:]]
    ids, sizes, kinds = map(list, zip(*rows, strict=True))
    told = pa.table({"id": ids, "size": map_floats(sizes), "kind": kinds})
    expected = model.score_samples(told)
    table = read_table(path, texts=model.encoder_.texts_)
    assert model.encoder_.ids(table) == ids
    np.testing.assert_array_equal(model.score_samples(table), expected)
    # A source knows how to read them without being told.
    np.testing.assert_array_equal(model.score_samples(open_source(path)), expected)
    encoded = model.encode(open_source(path)).read(0, 40)
    assert encoded["kind"].to_pylist() == kinds


def map_floats(cells):
    return [float(cell) for cell in cells]


@pytest.mark.parametrize(
    "kinds", [[1, 2], [1.0, 2.5], [True, False]], ids=["whole", "floats", "flags"]
)
def test_categories_of_numbers_go_on_as_they_are(put, kinds):
    # pandas' and Arrow's categories may be of numbers, which CSV writes in many ways.
    cells = pa.array(kinds * 30).dictionary_encode()
    table = pa.table({"size": np.arange(60.0) % 7, "kind": cells})
    encoder = TableEncoder(scale="none").fit(table)
    assert encoder.categorical_names_ == ["kind"]
    assert encoder.texts_ == []
    source = open_source(put(f"size,kind\n1,{kinds[0]}\n2,{kinds[1]}\n"))
    found = encoder.transform(source).read(0, 2)["kind"].to_pylist()
    assert found == encoder.transform(table)["kind"].to_pylist()[:2]


def test_a_source_with_other_texts_is_told_apart(put):
    source = open_source(put("a,b\n1,2\n"))
    other = source.with_texts(["a", "not there"])
    assert source.with_texts(["not there"]) is source
    assert other.with_texts(["a"]) is other
    assert other.read(0, 1).to_pydict() == {"a": ["1"], "b": [2]}
    assert source.read(0, 1).to_pydict() == {"a": [1], "b": [2]}
    assert other.fingerprint() != source.fingerprint()


def test_ids_that_cannot_be_told_are_refused_before_the_fit():
    times = pa.array([0, 1], pa.timestamp("s", "Nowhere/At-all"))
    table = pa.table({"at": times, "size": [1.0, 2.0]})
    with pytest.raises(ValueError, match=r"Column 'at' .*Nowhere/At-all.* texts"):
        TableEncoder(id_column="at").fit(table)
