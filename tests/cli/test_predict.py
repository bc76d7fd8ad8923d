import json

import numpy as np
import pyarrow.parquet as pq
import pytest

import corral
from corral.tables import read_table
from tests.cli.example import (
    ODD,
    make_rows,
    only_line,
    read_rows,
    run_corral,
    write_table,
)


@pytest.fixture(scope="module")
def expected(fitted):
    """Return the labels of the fit, without what is known of its own rows only."""
    rows = read_rows((fitted / "labels.csv").read_text())
    return [
        {name: cell for name, cell in row.items() if "confidence" not in name}
        for row in rows
    ]


def test_rows_of_the_fit_get_their_labels_again(model, data, expected):
    result = run_corral("predict", model, data)
    assert result.exit_code == 0, result.output
    assert read_rows(result.stdout) == expected
    assert "set aside 3 rows" in result.stderr


def test_new_rows_are_answered_one_by_one(model, tmp_path):
    rows = [make_rows()[i] for i in (7, 0, 4)]
    new = write_table(tmp_path / "new.csv", rows)
    answers = read_rows(run_corral("predict", model, new).stdout)
    assert [row["id"] for row in answers] == ["p7", "p0", "p4"]
    assert answers[0]["label"] == "-1"
    assert answers[1]["label"] == answers[1]["nearest_label"] != answers[2]["label"]
    assert float(answers[0]["outlier_score"]) > float(answers[1]["outlier_score"])


def write_words(path, letters):
    """Write thirty equal rows of each letter, and a last one that is of two."""
    rows = [
        [each] + [each + part for part in "xyz"] for each in letters for _ in range(30)
    ]
    rows.append(["p", "qx", "py", "qz"])
    return write_lines(path, [["a", "b", "c", "d"], *rows])


def write_tiny(path, letters):
    """Write two groups of tiny numbers, whose scores are near to zero."""
    X = np.random.default_rng(0).normal(0, 0.1, (100, 2))
    X[50:] += 5
    rows = [[str(cell * 1e-6) for cell in row] for row in X]
    return write_lines(path, [["a", "b"], *(rows if letters == "pq" else rows[::-1])])


def write_lines(path, rows):
    path.write_text("".join(",".join(row) + "\n" for row in rows))
    return path


@pytest.mark.parametrize("in_blocks", [False, True], ids=["whole", "blocks"])
@pytest.mark.parametrize(
    ("write", "options"),
    [(write_words, ()), (write_tiny, ("--method", "kmeans--", "--scale", "none"))],
    ids=["ties", "tiny"],
)
def test_as_many_other_rows_are_not_those_of_the_fit(
    write, options, in_blocks, tmp_path
):
    # Where all scores are equal, or all nearly zero, they do not tell rows apart.
    data = write(tmp_path / "data.csv", "pq")
    model = tmp_path / "model.skops"
    numbers = ("--n-clusters", 2, "--n-outliers", 1, "--seed", 0)
    result = run_corral("fit", data, *numbers, *options, "--model", model)
    assert result.exit_code == 0, result.output
    turned = write(tmp_path / "turned.csv", "qp")
    table = read_table(turned)
    if in_blocks:
        turned = tmp_path / "rows"
        turned.mkdir()
        pq.write_table(table, turned / "part.parquet")
    found = read_rows(run_corral("predict", model, turned).stdout)
    expected = corral.load(model).predict(table).tolist()
    assert [int(row["label"]) for row in found] == expected
    told = run_corral("explain", model, turned, "--row", 0, "--json").stdout
    (reason,) = json.loads(told)
    assert reason["label"] == expected[0] == reason["nearest_label"]


def test_labels_go_to_a_file_and_the_summary_to_stdout(model, data, expected, tmp_path):
    path = tmp_path / "again.csv"
    result = run_corral("predict", model, data, "--labels", path)
    assert read_rows(path.read_text()) == expected
    assert f"labels    {path}" in result.stdout
    assert result.stderr == ""


def test_json_is_all_there_is_on_stdout(model, data):
    result = run_corral("predict", model, data, "--json")
    facts = json.loads(result.stdout)
    assert facts["n_outliers"] == 3
    assert {each["id"] for each in facts["strangest"][:3]} == set(ODD)
    assert facts["missing"] == {"b": 3}
    assert result.stderr == ""


def test_standard_input_is_read(model, data, expected):
    result = run_corral("predict", model, "-", input=data.read_bytes())
    assert read_rows(result.stdout) == expected


def test_missing_cells_are_counted_in_the_new_rows(model, tmp_path):
    rows = make_rows()[:3]
    rows[1]["c"] = ""
    new = write_table(tmp_path / "new.csv", rows)
    result = run_corral("predict", model, new)
    assert "missing   1 cell: c 1" in result.stderr
    assert read_rows(result.stdout)[1]["known_share"] == "0.833333"


@pytest.mark.parametrize("method", ["cor-detector", "lof"])
def test_a_detector_answers_with_1_and_minus_1(data, tmp_path, method):
    # COR below the detector would say clusters.
    path = tmp_path / "model.skops"
    options = ("--method", method, "--n-outliers", 3, "--id-column", "name")
    run_corral("fit", data, *options, "--model", path)
    new = write_table(tmp_path / "new.csv", [make_rows()[i] for i in (7, 0)])
    answers = read_rows(run_corral("predict", path, new).stdout)
    assert [row["label"] for row in answers] == ["-1", "1"]
    assert ("nearest_label" in answers[0]) == (method == "cor-detector")


def test_columns_that_are_missing_are_named(model, tmp_path):
    rows = [{k: v for k, v in row.items() if k not in "bc"} for row in make_rows()]
    result = run_corral("predict", model, write_table(tmp_path / "new.csv", rows))
    assert result.exit_code == 2
    assert "The fit used 'b', 'c', which the table does not have." in only_line(
        result.stderr
    )


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("model.csv", b"a,b\n1,2\n", "is not a model that corral wrote"),
        ("model.skops", b"", "is empty."),
        ("gone.skops", None, "is not there."),
        ("model.skops", b"\x80\x04pickled", "looks like a pickle."),
    ],
    ids=["a table", "empty", "gone", "a pickle"],
)
def test_what_is_no_model_is_one_sentence(data, tmp_path, name, content, message):
    path = tmp_path / name
    if content is not None:
        path.write_bytes(content)
    result = run_corral("predict", path, data)
    assert result.exit_code == 2
    assert message in only_line(result.stderr)
    assert result.stdout == ""


def test_a_bare_estimator_is_refused(data, tmp_path):
    from corral import COR

    path = tmp_path / "model.skops"
    COR(2, random_state=0).fit([[0.0], [1.0]]).save(path)
    result = run_corral("predict", path, data)
    assert result.exit_code == 2
    assert "holds a COR, which knows nothing of files" in only_line(result.stderr)


def test_a_method_without_answers_for_new_rows_says_so(data, tmp_path):
    path = tmp_path / "model.skops"
    run_corral("fit", data, "--method", "hdbscan", "--model", path)
    result = run_corral("predict", path, data)
    assert result.exit_code == 2
    assert "HDBSCAN has no answer for rows that were not in the fit" in only_line(
        result.stderr
    )
