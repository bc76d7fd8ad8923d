import csv
import re
import sys

import pytest
from click.testing import CliRunner

from corral.cli._demo import _demo_data, demo
from corral.cli._group import corral as command


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("demo") / "made" / "here"


@pytest.fixture(scope="module")
def result(folder):
    return CliRunner().invoke(command, ["demo", "--output", str(folder)])


def test_demo_writes_both_files_and_nothing_else(result, folder):
    # The folder is made, and no temporary file is left in it.
    assert result.exit_code == 0, result.output
    assert sorted(path.name for path in folder.iterdir()) == [
        "labels.csv",
        "report.html",
    ]


def test_demo_labels_match_what_it_prints(result, folder):
    # One line per row; as many outliers as the terminal says.
    with (folder / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["id"]) for row in rows] == list(range(len(rows)))
    assert f"{len(rows):,} rows x" in result.output
    outliers = [row for row in rows if row["label"] == "-1"]
    assert f"set aside {len(outliers)} rows" in result.output
    lowest = min(float(row["outlier_score"]) for row in outliers)
    others = (float(row["outlier_score"]) for row in rows if row["label"] != "-1")
    assert max(others) <= lowest
    assert all(int(row["nearest_label"]) >= 0 for row in rows)


def test_demo_finds_the_numbers_itself(result):
    assert "5, with 400, 400, 400, 400, 400 rows" in result.output
    words = " ".join(result.output.split())
    assert "chosen Any two of 5 clusters are told apart" in words


def test_demo_finds_most_of_what_was_planted(result):
    # A demo that misses a quarter of the planted rows shows nothing.
    found = re.search(r"(\d+) of the 40 planted ones", result.output)
    assert int(found[1]) >= 30


def test_demo_says_where_the_files_are(result, folder):
    assert str(folder / "labels.csv") in result.output
    assert str(folder / "report.html") in result.output


def test_demo_repeats_itself(result, folder, tmp_path):
    # The same seed gives the same labels and scores, byte for byte, also where older
    # files are to be replaced.
    (tmp_path / "labels.csv").write_text("old")
    CliRunner().invoke(command, ["demo", "--output", str(tmp_path), "--force"])
    again = (tmp_path / "labels.csv").read_bytes()
    assert again == (folder / "labels.csv").read_bytes()


@pytest.mark.parametrize("inside", ["", "folder"], ids=["file", "below a file"])
def test_demo_refuses_a_file_as_folder(tmp_path, inside):
    # One sentence, exit code 2, and the file is left as it was.
    taken = tmp_path / "taken"
    taken.write_text("mine")
    arguments = ["demo", "--output", str(taken / inside)]
    result = CliRunner().invoke(command, arguments)
    assert result.exit_code == 2
    assert result.stderr == (
        f"Error: '{taken / inside}' cannot be a folder, because a file is in its "
        "place. Name another folder.\n"
    )
    assert taken.read_text() == "mine"


def test_demo_without_jinja2_says_what_to_install(tmp_path, monkeypatch):
    # The sentence of the report, without a traceback, and no half of a result.
    monkeypatch.setitem(sys.modules, "jinja2", None)
    result = CliRunner().invoke(command, ["demo", "--output", str(tmp_path)])
    assert result.exit_code == 2
    assert result.stderr == (
        "Error: The HTML report needs jinja2. "
        'Install it with: pip install "corral[report]"\n'
    )
    assert list(tmp_path.iterdir()) == []


def test_demo_data_depends_on_the_seed_only():
    first, again, other = _demo_data(0), _demo_data(0), _demo_data(1)
    assert (first.X == again.X).all()
    assert first.planted.tolist() != other.planted.tolist()
    assert len(first.planted) == len(other.planted) == 40


def test_demo_help_names_the_defaults():
    output = CliRunner().invoke(demo, ["--help"]).output
    assert "demo-output" in output
    assert "default: 0" in output
