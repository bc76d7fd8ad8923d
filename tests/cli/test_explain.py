import json
import re

import numpy as np
import pytest
from scipy import sparse

from corral.cli._reasons import _sum
from tests.cli.example import FIT, ODD, only_line, run_corral


def test_a_strange_row_is_explained_in_words(model, data):
    result = run_corral("explain", model, data, "--row", 7)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[0] == "Row 7, p7"
    score, cut = map(
        float,
        re.search(
            r"its score ([\d.]+) is above the cut, ([\d.]+)\.", lines[1]
        ).groups(),
    )
    assert score > cut
    assert re.search(r"nearest cluster is \d; \d+ of 101 partitions disagree", lines[2])
    assert re.search(r"^    [abcd] +\d+\.\d (above|below) the mean, at -?\d", lines[5])


def test_the_costs_that_are_shown_add_up(model, data):
    # To the last digit, whatever rounding does.
    words = [w for row in range(20) for w in ("--row", row)]
    text = run_corral("explain", model, data, *words).stdout
    sums = re.findall(
        r"labels (\S+) \+ rarity (\S+) \+ distance (\S+) = (\S+)\.\n", text
    )
    assert len(sums) == 20
    for label, rarity, distance, total in sums:
        parts = [round(100 * float(each)) for each in (label, rarity, distance)]
        assert sum(parts) == round(100 * float(total))


def test_a_row_that_is_kept_says_so(model, data):
    assert (
        "It is kept: its score" in run_corral("explain", model, data, "--row", 0).stdout
    )


def test_rows_go_by_name_too(model, data):
    words = ("--id", "p67", "--row", 7, "--id", "p7")
    reasons = json.loads(run_corral("explain", model, data, *words, "--json").stdout)
    assert [each["id"] for each in reasons] == ["p7", "p67"]
    assert [each["row"] for each in reasons] == [7, 67]


def test_json_holds_what_the_labels_file_says(model, data, fitted):
    words = [w for name in ODD for w in ("--id", name)]
    reasons = json.loads(run_corral("explain", model, data, *words, "--json").stdout)
    assert [each["label"] for each in reasons] == [-1, -1, -1]
    lines = (fitted / "labels.csv").read_text().splitlines()
    scores = {line.split(",")[0]: float(line.split(",")[3]) for line in lines[1:]}
    for each in reasons:
        costs = (each["label_cost"], each["rarity_cost"], each["distance_cost"])
        assert sum(costs) == pytest.approx(each["score"], rel=1e-12)
        assert each["score"] == pytest.approx(scores[each["id"]], rel=1e-9)


def test_direction_and_value_are_those_of_the_table(model, data):
    # The largest difference of a planted row is in one of its numbers, 30 or more away.
    words = ("--row", 7, "--json", "--n-features", 1)
    (reason,) = json.loads(run_corral("explain", model, data, *words).stdout)
    (feature,) = reason["features"]
    header, *lines = data.read_text().splitlines()
    row = dict(zip(header.split(","), lines[7].split(","), strict=True))
    assert float(feature["value"]) == float(row[feature["feature"]])
    assert (feature["difference"] > 0) == (float(feature["value"]) > 0)


def test_a_category_is_told_with_its_value(tmp_path):
    # One green row among the red ones.
    lines = ["x,color"] + [f"{i % 10},red" for i in range(60)]
    lines += [f"{100 + i % 10},green" for i in range(60)]
    lines[1] = "0,green"
    data, model = tmp_path / "data.csv", tmp_path / "model.skops"
    data.write_text("\n".join(lines) + "\n")
    run_corral("fit", data, "--n-clusters", 2, "--n-outliers", 1, "--model", model)
    text = run_corral("explain", model, data, "--row", 0).stdout
    assert re.search(r"color = green +as rare as \d+\.\d spreads", text)


def test_missing_cells_make_the_disagreement_a_share(model, data):
    text = run_corral("explain", model, data, "--row", 3).stdout
    assert re.search(r"\d+% of the partitions that know it disagree", text)


def test_other_methods_are_explained_by_features_alone(data, tmp_path):
    path = tmp_path / "model.skops"
    words = ("--n-outliers", 3, "--method", "iforest", "--id-column", "name")
    run_corral("fit", data, *words, "--model", path)
    text = run_corral("explain", path, data, "--row", 7).stdout
    assert "It is set aside" in text
    assert "in spreads of the rows that are kept" in text
    assert "partitions" not in text


def fit_model(table, path, *words):
    """Fit a small model to a table; return its path."""
    result = run_corral("fit", table, *words, "--n-partitions", 6, "--model", path)
    assert result.exit_code == 0, result.output
    return path


def draw_two_groups():
    rng = np.random.default_rng(0)
    X = rng.poisson(1.0, (24, 4)).astype(float)
    X[::2, 0] += 300
    X[5, 1] = 999
    return X


@pytest.mark.parametrize("kind", ["sparse", "wide"])
def test_rows_of_matrices_are_explained_together(tmp_path, monkeypatch, kind):
    # Wide arrays do not become tables.
    monkeypatch.setattr("corral.tables._arrays.WIDEST_TABLE", 3)
    X, table = draw_two_groups(), tmp_path / ("X.npz" if kind == "sparse" else "X.npy")
    if kind == "sparse":
        sparse.save_npz(table, sparse.csr_array(X))
    else:
        np.save(table, X)
    words = ("--n-clusters", 2, "--n-outliers", 1, "--scale", "none")
    path = fit_model(table, tmp_path / "m.skops", *words)
    words = ("--row", 5, "--row", 0, "--json")
    odd, other = json.loads(run_corral("explain", path, table, *words).stdout)
    assert (odd["row"], other["row"]) == (5, 0)
    assert odd["label"] == -1
    assert odd["features"][0]["feature"] == "feature 1"
    assert odd["features"][0]["value"] == "999"


def test_where_no_row_is_set_aside_there_is_no_cut(data, tmp_path):
    words = ("--n-clusters", 3, "--n-outliers", 0, "--id-column", "name")
    path = fit_model(data, tmp_path / "m.skops", *words)
    text = run_corral("explain", path, data, "--row", 7).stdout
    assert re.search(r"It is kept, as all rows are: its score is \d+\.\d\d\.\n", text)


def test_clusters_without_partitions_have_none_that_disagree(data, tmp_path):
    words = ("--method", "kmeans--", *FIT, "--model", tmp_path / "m.skops")
    assert run_corral("fit", data, *words).exit_code == 0
    text = run_corral("explain", tmp_path / "m.skops", data, "--row", 0).stdout
    assert re.search(r"Its nearest cluster is \d\.\n", text)


def test_a_row_in_the_middle_is_set_apart_by_nothing(tmp_path):
    table = tmp_path / "t.csv"
    sizes = [-1, 0, 1] * 8 + [99, 100, 101] * 8
    table.write_text("size\n" + "\n".join(map(str, sizes)) + "\n")
    words = ("--n-clusters", 2, "--n-outliers", 0)
    path = fit_model(table, tmp_path / "m.skops", *words)
    assert "sets it apart" not in run_corral("explain", path, table, "--row", 1).stdout
    assert "sets it apart" in run_corral("explain", path, table, "--row", 0).stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "Say which rows to explain: --row or --id."),
        (
            ("--row", 150),
            "--row 150 is not there: the data has 150 rows, from 0 to 149.",
        ),
        (("--row", -1), "-1 is not in the range x>=0"),
        (("--id", "p1577"), "--id 'p1577' is not there. Did you mean 'p"),
    ],
    ids=["none", "too large", "negative", "unknown"],
)
def test_wrong_rows_are_one_sentence(model, data, words, message):
    result = run_corral("explain", model, data, *words)
    assert result.exit_code == 2
    assert message in only_line(result.stderr)


def test_rows_that_tie_at_the_cut_are_told_as_the_labels_file_has_them(tmp_path):
    data, labels = tmp_path / "ties.csv", tmp_path / "labels.csv"
    rows = [f"{i % 4},{i % 3}" for i in range(60)] + ["50,50"] * 6
    data.write_text("\n".join(["x,y", *rows]))
    words = ("--n-clusters", 2, "--n-outliers", 3, "--labels", labels)
    model = tmp_path / "model.skops"
    summary = run_corral("fit", data, *words, "--model", model).stdout
    assert re.search(r"3 rows, whose scores are above or at [\d,]+\n", summary)
    written = [int(line.split(",")[1]) for line in labels.read_text().splitlines()[1:]]
    assert written.count(-1) == 3
    asked = [w for row in range(60, 66) for w in ("--row", row)]
    told = json.loads(run_corral("explain", model, data, *asked, "--json").stdout)
    assert [each["label"] for each in told] == written[60:]
    text = run_corral("explain", model, data, *asked).stdout
    assert len(re.findall(r"It is set aside: its score \S+ is at the cut", text)) == 3
    assert text.count("It is kept: ") == 3


@pytest.mark.parametrize("method", ["lof", "iforest"])
def test_the_cut_is_that_of_the_labels(data, tmp_path, method):
    # Both keep a detector of scikit-learn, whose cut is another.
    words = ("--method", method, "--n-outliers", 20, "--columns", "a,b,c,d")
    found = json.loads(run_corral("fit", data, *words, "--json").stdout)
    labels, scores = found["labels"]["label"], found["labels"]["outlier_score"]
    assert labels.count(-1) == 20
    above = [score > found["cut"] for score in scores]
    assert above == [label == -1 for label in labels]


def test_a_cut_of_zero_has_no_sign(data):
    words = ("--method", "kcc", "--n-clusters", 3)
    assert "above 0\n" in run_corral("fit", data, *words).stderr


def test_names_from_the_data_stay_on_their_line(tmp_path):
    data, model = tmp_path / "data.csv", tmp_path / "model.skops"
    rows = [f"{i % 5},{i % 7},r\x1b[31m{i}" for i in range(40)]
    data.write_text("\n".join(['"a\nb\x1b[2J",c,who', *rows, "99,99,odd"]))
    words = ("--n-clusters", 2, "--n-outliers", 1, "--id-column", "who")
    done = run_corral("fit", data, *words, "--model", model)
    assert done.exit_code == 0, done.output
    text = run_corral("explain", model, data, "--row", 40, "--row", 0).stdout
    assert "\x1b" not in text + done.stderr
    assert re.search(r"^    a b\\x1b\[2J  \d+\.\d above the mean, at 99$", text, re.M)


def test_no_part_of_the_cost_is_shown_below_zero():
    costs = {"label_cost": 1.006, "rarity_cost": 1.006, "distance_cost": 0.0}
    shown = _sum({"score": 2.012, **costs})
    assert shown.endswith("labels 1.00 + rarity 1.01 + distance 0.00 = 2.01.")
