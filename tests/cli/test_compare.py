import json

import numpy as np
import pytest

from corral.cli._side_by_side import jaccard
from corral.tables import read_table
from tests.cli.example import FIT, ODD, only_line, run_corral

METHODS = ("--methods", "COR,KMeansMinusMinus", "--methods", "lof")


@pytest.fixture(scope="module")
def result(data):
    return run_corral("compare", data, *FIT, *METHODS)


def test_methods_stand_side_by_side(result):
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    head = next(i for i, line in enumerate(lines) if line.startswith("method"))
    names = [line.split()[0] for line in lines[head + 1 : head + 4]]
    assert names == ["cor", "kmeans--", "lof"]
    # A detector has no clusters.
    assert [line.split()[2] for line in lines[head + 1 : head + 4]] == ["3", "3", "-"]
    assert result.stderr == ""


def test_rows_that_all_set_aside_are_named(result):
    assert f"all agree to set aside 3 rows: {', '.join(ODD)}" in result.stdout


def test_json_and_labels_tell_the_same(data, tmp_path):
    path = tmp_path / "labels.csv"
    words = (*FIT, *METHODS, "--labels", path, "--json")
    facts = json.loads(run_corral("compare", data, *words).stdout)
    table = read_table(path).to_pydict()
    assert list(table) == ["id", "cor", "kmeans--", "lof"]
    for name, found in facts["methods"].items():
        assert table[name].count(-1) == found["n_outliers"] == 3
        assert found["seconds"] >= 0
    assert len(facts["jaccard"]) == 3
    assert all(each["jaccard"] == 1 for each in facts["jaccard"])
    assert facts["set_aside_by_all"] == list(ODD)


def test_options_count_for_the_methods_that_have_them(data):
    # HDBSCAN finds both numbers itself, and gets neither.
    result = run_corral("compare", data, *FIT, "--methods", "cor,hdbscan", "--json")
    facts = json.loads(result.stdout)
    assert facts["methods"]["cor"]["n_outliers"] == 3
    assert facts["methods"]["hdbscan"]["n_outliers"] > 0


def test_a_method_that_fails_does_not_take_the_others_along(data):
    # A detector sets aside no more than half of the rows.
    words = ("--n-clusters", 3, "--contamination", 0.6, "--methods", "cor,lof")
    result = run_corral("compare", data, *words)
    assert result.exit_code == 2
    assert "cor " in result.stdout
    line = only_line(result.stderr)
    assert line.startswith("Error: 1 of 2 methods failed. lof: ")


def test_what_several_methods_say_is_said_once(data):
    words = ("--n-clusters", 500, "--n-outliers", 3, "--methods", "cor,lof,kmeans--")
    result = run_corral("compare", data, *words)
    assert result.exit_code == 2
    assert only_line(result.stderr) == (
        "Error: 2 of 3 methods failed. cor, kmeans--: n_samples=150 should be >= "
        "n_clusters=500. Lower n_clusters."
    )


@pytest.mark.parametrize("how", [(), ("--json",)])
def test_where_all_methods_fail_nothing_is_shown_or_written(data, tmp_path, how):
    words = ("--contamination", 0.6, "--methods", "lof,iforest")
    words = (*words, "--labels", tmp_path / "labels.csv", *how)
    result = run_corral("compare", data, *words)
    assert result.exit_code == 2
    assert "2 of 2 methods failed. lof: " in only_line(result.stderr)
    assert list(tmp_path.iterdir()) == []
    if how:
        facts = json.loads(result.stdout)
        assert list(facts["failed"]) == ["lof", "iforest"]
        assert facts["methods"] == {}
    else:
        assert result.stdout == ""


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("cor,kmean--", "There is no method 'kmean--'. Did you mean 'kmeans--'"),
        (",", "',' has no name. Give at least one."),
    ],
)
def test_wrong_methods_are_one_sentence(data, names, message):
    result = run_corral("compare", data, "--methods", names)
    assert result.exit_code == 2
    assert message in only_line(result.stderr)


def test_jaccard_by_hand():
    # One of three rows is in both; and two empty sets agree.
    one, other = np.array([1, 1, 0, 0], bool), np.array([0, 1, 1, 0], bool)
    assert jaccard(one, other) == pytest.approx(1 / 3)
    assert jaccard(one & ~one, other & ~other) == 1
