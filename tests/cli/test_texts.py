"""Commands read names and categories of CSV as they are written."""

import json

import pytest

from corral.tables import read_table
from tests.cli.example import FIT, make_rows, read_rows, run_corral, write_table

# As numbers, there would be three of these.
NAMES = [f"98765432109876543{i:03d}" for i in range(150)]

CODES = ["01", "02", "A"]


def make_named(codes=CODES):
    return [
        {**row, "name": name, "color": codes[i % len(codes)]}
        for i, (row, name) in enumerate(zip(make_rows(), NAMES, strict=True))
    ]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with a table, a model of it, and new rows without letters."""
    folder = tmp_path_factory.mktemp("texts")
    write_table(folder / "data.csv", make_named())
    write_table(folder / "new.csv", make_named(CODES[:2]))
    outputs = ("--labels", folder / "l.csv", "--model", folder / "m.skops")
    outputs += ("--report", folder / "r.html")
    run("fit", folder / "data.csv", *FIT, *outputs)
    return folder


@pytest.fixture(params=["in memory", "in blocks"])
def way(request, monkeypatch):
    if request.param == "in blocks":
        monkeypatch.setattr("corral.cli._plan.LEAST_REST", 0)
        monkeypatch.setattr("corral.cli._plan._BYTES_PER_BYTE", 10**8)
    return request.param


def run(*words):
    result = run_corral(*words)
    assert result.exit_code == 0, result.output
    return result


def ids_of(text):
    return [row["id"] for row in read_rows(text)]


def test_fit_names_rows_as_the_file_does(folder, way):
    result = run("fit", folder / "data.csv", *FIT)
    assert ("block by block" in result.stderr) == (way == "in blocks")
    assert ids_of(result.stdout) == NAMES
    assert result.stdout == (folder / "l.csv").read_text()


def test_predict_reads_rows_as_the_fit_did(folder, way, tmp_path):
    found = read_rows(run("predict", folder / "m.skops", folder / "new.csv").stdout)
    assert [row["id"] for row in found] == NAMES
    # A letter in the last row makes texts of the column.
    rows = make_named(CODES[:2])
    rows[-1]["color"] = "A"
    mixed = write_table(tmp_path / "mixed.csv", rows)
    expected = read_rows(run("predict", folder / "m.skops", mixed).stdout)
    assert found[:-1] == expected[:-1]


def test_explain_finds_names_and_categories(folder, way):
    words = ("--id", NAMES[4], "--id", NAMES[3], "--n-features", 8, "--json")
    result = run("explain", folder / "m.skops", folder / "new.csv", *words)
    reasons = json.loads(result.stdout)
    assert [each["row"] for each in reasons] == [4, 3]
    named = [part["feature"] for each in reasons for part in each["features"]]
    colors = {name for name in named if name.startswith("color")}
    assert colors <= {"color = 01", "color = 02"}
    assert colors


def test_report_reads_rows_as_the_fit_did(folder, tmp_path):
    words = ("--output", tmp_path / "r.html")
    result = run("report", folder / "m.skops", folder / "data.csv", *words)
    assert "those of the fit" in result.stdout
    page = (tmp_path / "r.html").read_text()
    assert NAMES[7] in page
    # The lines of Python that make the model again read the names so, too.
    call = "data.csv&#39;, texts=&#39;name&#39;)"
    assert call in page
    assert call in (folder / "r.html").read_text()


def test_compare_names_rows_as_the_file_does(folder, tmp_path):
    labels = tmp_path / "l.csv"
    words = ("--methods", "lof", "--n-outliers", 3, "--id-column", "name")
    run("compare", folder / "data.csv", *words, "--labels", labels)
    assert ids_of(labels.read_text()) == NAMES
    assert len(set(read_table(labels, texts="id")["id"].to_pylist())) == 150


def test_a_dry_run_reads_the_table_of_the_fit(folder, way):
    words = ("--dry-run", "--json")
    facts = json.loads(run("fit", folder / "data.csv", *FIT, *words).stdout)
    assert facts["n_rows"] == 150
