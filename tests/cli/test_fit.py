import gzip
import json
import re

import numpy as np
import pytest
from scipy import sparse

from corral import persist
from corral.tables import read_table
from tests.cli.example import FIT, ODD, make_rows, read_rows, run_corral, write_table


@pytest.fixture(scope="module")
def plain(data):
    """Return the result of a fit without output files."""
    return run_corral("fit", data, *FIT)


def test_labels_go_to_stdout_and_the_summary_to_stderr(plain):
    assert plain.exit_code == 0, plain.output
    rows = read_rows(plain.stdout)
    assert [row["id"] for row in rows] == [f"p{i}" for i in range(150)]
    assert list(rows[0]) == [
        "id",
        "label",
        "nearest_label",
        "outlier_score",
        "known_share",
        "outlier_confidence",
        "label_confidence",
    ]
    assert "set aside 3 rows" in plain.stderr


def test_the_planted_rows_are_set_aside(plain):
    rows = read_rows(plain.stdout)
    assert {row["id"] for row in rows if row["label"] == "-1"} == set(ODD)
    assert all(row["nearest_label"] in "012" for row in rows)


def test_known_share_counts_the_cells_of_a_row(plain):
    # One of the six used columns is missing in three rows.
    shares = {row["id"]: float(row["known_share"]) for row in read_rows(plain.stdout)}
    assert {name for name, share in shares.items() if share < 1} == {"p3", "p50", "p77"}
    assert shares["p3"] == pytest.approx(5 / 6, abs=1e-6)


def test_summary_says_how_each_column_is_used(fitted):
    # With --labels it goes to standard output.
    summary = (fitted / "summary.txt").read_text()
    for line in (
        "data      150 rows",
        "4 columns as numbers, scaled by mean and deviation: a, b, c, d",
        "1 column as dates, scaled by mean and deviation: day",
        "1 column as categories: color",
        "rows are  named by name",
        "not used  same: every row has the same value 'yes'",
        "missing   3 cells: b 3",
        "clusters  3, with ",
        f"model     {fitted / 'model.skops'}",
    ):
        assert line in summary
    assert re.search(r"note: 150 distinct texts", summary)


def test_files_hold_the_same_labels_as_stdout(fitted, plain):
    assert (fitted / "labels.csv").read_text() == plain.stdout


def test_no_other_file_is_left(fitted):
    names = sorted(path.name for path in fitted.iterdir())
    assert names == ["labels.csv", "model.skops", "report.html", "summary.txt"]


def test_report_holds_the_command_that_made_it(fitted, data):
    page = (fitted / "report.html").read_text()
    assert "corral fit" in page
    assert "--n-outliers 3" in page
    assert "p127" in page


def test_json_is_all_there_is_on_stdout(data):
    result = run_corral("fit", data, *FIT, "--json")
    facts = json.loads(result.stdout)
    assert result.stderr == ""
    assert facts["n_rows"] == 150
    assert facts["n_outliers"] == 3
    assert sum(each["n_rows"] for each in facts["clusters"]) == 147
    assert facts["missing"] == {"b": 3}
    assert facts["used"]["color"] == "category"
    assert {each["id"] for each in facts["strangest"][:3]} == set(ODD)
    assert len(facts["labels"]["label"]) == 150


def test_json_with_labels_names_the_file_instead(data, tmp_path):
    path = tmp_path / "labels.csv"
    facts = json.loads(run_corral("fit", data, *FIT, "--json", "--labels", path).stdout)
    assert facts["files"] == {"labels": str(path)}
    assert "labels" not in facts


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.csv.gz", "x.parquet", "x.pq"])
def test_labels_are_written_in_every_form(data, tmp_path, name):
    result = run_corral("fit", data, *FIT, "--labels", tmp_path / name)
    assert result.exit_code == 0, result.output
    table = read_table(tmp_path / name)
    assert table.num_rows == 150
    assert table["label"].to_pylist().count(-1) == 3


def test_columns_and_exclude_choose_what_is_used(data):
    options = ("--columns", "a,b", "--columns", '"c", d', "--json")
    facts = json.loads(run_corral("fit", data, *FIT, *options).stdout)
    assert list(facts["used"]) == ["a", "b", "c", "d"]
    options = ("--exclude", "note,day,same", "--exclude", "color", "--json")
    facts = json.loads(run_corral("fit", data, *FIT, *options).stdout)
    assert list(facts["used"]) == ["a", "b", "c", "d"]
    assert facts["dropped"] == {}


def test_of_many_columns_that_are_not_used_some_are_named(data, tmp_path):
    rows = [row | {f"same{j}": "yes" for j in range(20)} for row in make_rows()]
    table = write_table(tmp_path / "t.csv", rows)
    result = run_corral("fit", table, *FIT, "--n-partitions", 6)
    assert result.exit_code == 0, result.output
    # The example has two such columns itself.
    assert "same7: " in result.stderr
    assert "same8: " not in result.stderr
    assert "and 12 more columns\n" in result.stderr


def test_contamination_is_a_share(data):
    words = ("fit", data, "--n-clusters", 3, "--contamination", 0.1, "--json")
    assert json.loads(run_corral(*words).stdout)["n_outliers"] == 15


def test_same_seed_same_labels_and_another_seed_another_score(data, plain):
    assert run_corral("fit", data, *FIT, "--jobs", 1).stdout == plain.stdout
    assert run_corral("fit", data, *FIT, "--seed", 1).stdout != plain.stdout


@pytest.mark.parametrize("scale", ["standard", "robust", "none"])
def test_scale_reaches_the_encoder(data, scale):
    result = run_corral("fit", data, *FIT, "--scale", scale, "--json")
    assert json.loads(result.stdout)["scale"] == scale


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
def test_standard_input_is_read(data, plain, packed):
    content = data.read_bytes()
    sent = gzip.compress(content) if packed else content
    assert run_corral("fit", "-", *FIT, input=sent).stdout == plain.stdout


def test_format_tells_what_a_name_does_not(data, plain, tmp_path):
    odd = tmp_path / "data.dat"
    odd.write_bytes(data.read_bytes())
    assert run_corral("fit", odd, *FIT, "--format", "csv").stdout == plain.stdout
    assert run_corral("fit", odd, *FIT).exit_code == 2


@pytest.mark.parametrize("name", ["kmeans--", "KMeansMinusMinus", "KMEANS--"])
def test_methods_go_by_their_name_or_that_of_their_class(data, name):
    result = run_corral("fit", data, *FIT, "--method", name, "--json")
    facts = json.loads(result.stdout)
    assert facts["method"] == "kmeans--"
    assert "numbers only" in facts["dropped"]["color"]


@pytest.mark.parametrize("name", ["lof", "cor-detector"])
def test_detectors_say_1_or_minus_1(data, name):
    words = ("--n-outliers", 3, "--id-column", "name", "--method", name)
    rows = read_rows(run_corral("fit", data, *words).stdout)
    assert {row["label"] for row in rows} == {"1", "-1"}
    assert {row["id"] for row in rows if row["label"] == "-1"} == set(ODD)


def test_a_method_that_counts_by_itself_gives_its_own_number(data):
    result = run_corral("fit", data, "--method", "hdbscan", "--json")
    facts = json.loads(result.stdout)
    assert len(facts["clusters"]) == 3
    assert facts["n_outliers"] > 0


@pytest.fixture(scope="module")
def words(tmp_path_factory):
    """Return a sparse matrix of word counts in two topics."""
    rng = np.random.default_rng(0)
    rates = np.repeat([[3.0, 0.1], [0.1, 3.0]], [30, 30], axis=0)
    counts = rng.poisson(np.repeat(rates, 20, axis=1))
    path = tmp_path_factory.mktemp("words") / "words.npz"
    sparse.save_npz(path, sparse.csr_array(counts))
    return path


@pytest.mark.parametrize(
    ("options", "metric"),
    [
        (("--tfidf",), "cosine"),
        (("--tfidf", "--metric", "euclidean"), "euclidean"),
        ((), "euclidean"),
    ],
    ids=["implied", "said", "without"],
)
def test_tfidf_implies_cosine_unless_told_otherwise(words, tmp_path, options, metric):
    path = tmp_path / "model.skops"
    result = run_corral(
        "fit", words, "--n-clusters", 2, "--n-outliers", 1, "--model", path, *options
    )
    assert result.exit_code == 0, result.output
    model = persist.load(path)
    assert model.estimator_.metric == metric
    assert model.encoder_.tfidf == bool(options)


def test_tfidf_is_no_obstacle_to_methods_without_a_metric(words):
    options = ("--n-outliers", 1, "--method", "iforest", "--tfidf")
    assert run_corral("fit", words, *options).exit_code == 0


def test_strategy_and_partitions_reach_the_estimator(data, tmp_path):
    path = tmp_path / "model.skops"
    options = ("--strategy", "rfs", "--n-partitions", 20, "--seed", 5)
    run_corral("fit", data, *FIT, *options, "--model", path)
    estimator = persist.load(path).estimator_
    assert (estimator.strategy, estimator.n_partitions) == ("rfs", 20)
    assert estimator.random_state == 5


def test_rows_of_the_example_are_what_other_tests_count():
    assert len(make_rows()) == 150
