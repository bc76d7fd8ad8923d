"""Numbers that were not given are chosen, and the choice is told."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

from corral import COR, persist
from corral._doubts import count_doubts
from corral.cli._methods import make_method
from corral.cli._numbers import read_range
from corral.tables import read_table
from tests.cli.example import only_line, read_rows, run_corral, write_table


@pytest.fixture(scope="module")
def groups(tmp_path_factory):
    """Return a table of three groups and five rows far from all, and nothing else."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(c, 0.5, (60, 2)) for c in ((0, 0), (9, 0), (0, 9))])
    far = np.array([[40, 40], [-40, 30], [35, -45], [-50, -35], [60, 5]])
    rows = [{"x": x, "y": y} for x, y in np.concatenate([X, far]).round(3).tolist()]
    return write_table(tmp_path_factory.mktemp("groups") / "groups.csv", rows)


def facts_of(command, *words):
    result = run_corral(command, *words, "--json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture(scope="module")
def fit(groups, tmp_path_factory):
    """Return the words, the model and the report of a fit without numbers."""
    folder = tmp_path_factory.mktemp("chosen")
    words = [
        word
        for key, name in (
            ("model", "m.skops"),
            ("labels", "l.csv"),
            ("report", "r.html"),
        )
        for word in (f"--{key}", folder / name)
    ]
    result = run_corral("fit", groups, *words)
    assert result.exit_code == 0, result.output
    return SimpleNamespace(
        words=" ".join(result.stdout.split()),
        model=persist.load(folder / "m.skops"),
        page=(folder / "r.html").read_text(),
        labels=read_table(folder / "l.csv"),
    )


def test_fit_without_numbers_chooses_both(fit):
    assert fit.labels["label"].to_pylist().count(-1) == 5
    assert len(set(fit.labels["label"].to_pylist())) == 4
    assert "chosen 3 clusters and 5 outliers. Any two of 3 clusters" in fit.words
    assert "The runner-up is " in fit.words
    assert "Why these numbers" in fit.page
    assert fit.model.estimator_.selection_.n_clusters_ == 3


def test_json_has_the_choice_with_its_candidates(groups, fit):
    facts = facts_of("fit", groups)
    selection = facts["selection"]
    chosen = fit.model.estimator_.selection_
    assert (selection["n_clusters"], selection["n_outliers"]) == (3, 5)
    assert selection["reason"] == chosen.reason
    assert selection["runner_up"] == list(chosen.runner_up)
    (taken,) = (each for each in selection["candidates"] if each["is_chosen"])
    assert (taken["n_clusters"], taken["n_outliers"]) == (3, 5)


def test_numbers_that_are_given_are_not_chosen(groups):
    result = run_corral("fit", groups, "--n-clusters", 2, "--n-outliers", 4)
    assert "chosen" not in result.stderr
    words = ("--n-clusters", 2, "--n-outliers", 4)
    assert facts_of("fit", groups, *words)["selection"] is None


@pytest.mark.parametrize(
    ("words", "n_clusters", "n_outliers"),
    [
        (("--n-clusters", 2), 2, 5),
        (("--n-outliers", 6), 3, 6),
        (("--contamination", 0.05), 3, 9),
        (("--n-clusters", "auto", "--n-outliers", "AUTO"), 3, 5),
        (("--k-max", 2), 2, 5),
        (("--contamination-max", 0), None, 0),
        (("--k-range", "auto"), 3, 5),
        (("--k-range", "2, 8"), 3, 5),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_options_of_the_choice(groups, words, n_clusters, n_outliers):
    facts = facts_of("fit", groups, *words)
    assert facts["n_outliers"] == n_outliers
    assert n_clusters in (None, len(facts["clusters"]))
    assert facts["selection"]["n_outliers"] == n_outliers


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--k-max", 0), "0 is not in the range x>=1"),
        (("--contamination-max", 1), "1.0 is not in the range 0<=x<1"),
        (("--k-range", "5"), "'5' should be two whole numbers, the smaller first"),
        (("--k-range", "9,2"), "'9,2' should be two whole numbers, the smaller first"),
        (("--k-range", "0,2"), "such as 2,20; or auto"),
        (("--k-range", "2," + "9" * 23), "first and none above 1,000,000,000, such as"),
        (("--k-range", "2," + "9" * 5000), "first and none above 1,000,000,000"),
        (("--k-range", "2,1000000001"), "'2,1000000001' should be two whole numbers"),
        (("--k-range", "few"), "'few' should be two whole numbers"),
        (("--n-clusters", "many"), "'many' is not a valid integer or auto"),
        (
            ("--n-outliers", "auto", "--contamination", 0.1),
            "Set either --n-outliers or --contamination, not both.",
        ),
        (
            ("--method", "lof", "--k-max", 3),
            "--k-max cannot be set for --method lof. Leave it out.",
        ),
        (
            ("--method", "kmeans--", "--n-clusters", "auto"),
            "--n-clusters auto cannot be set for --method kmeans--: only cor chooses.",
        ),
        (
            ("--method", "kcc", "--k-range", "auto"),
            "--k-range auto cannot be set for --method kcc: only cor chooses.",
        ),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_bad_requests_are_one_sentence(groups, words, message):
    result = run_corral("fit", groups, *words)
    assert result.exit_code == 2
    assert message in only_line(result.stderr)
    assert result.stdout == ""


def test_other_methods_keep_their_defaults(groups):
    facts = facts_of("fit", groups, "--method", "kmeans--")
    assert len(facts["clusters"]) == 8
    assert facts["selection"] is facts["confidence"] is None
    # A detector sets aside its share.
    assert facts_of("fit", groups, "--method", "cor-detector")["n_outliers"] == 9


def test_range_reaches_the_estimator():
    assert read_range("2,20") == (2, 20)
    assert read_range("auto") == "auto"
    assert read_range(None) is None
    assert make_method("cor", {"k_range": (2, 20)}).k_range == (2, 20)


@pytest.mark.parametrize("text", ['"2,8"', "[2, 8]"], ids=["text", "list"])
def test_options_of_the_choice_stand_in_a_file(groups, tmp_path, text):
    path = tmp_path / "corral.toml"
    path.write_text(f"k-max = 4\ncontamination_max = 0.1\nk-range = {text}\n")
    report = tmp_path / "r.html"
    words = ("--config", path, "--report", report, "--model", tmp_path / "m.skops")
    assert run_corral("fit", groups, *words).exit_code == 0
    estimator = persist.load(tmp_path / "m.skops").estimator_
    assert (estimator.k_max, estimator.contamination_max) == (4, 0.1)
    assert estimator.k_range == (2, 8)
    # The report has the line without the file.
    line = "--k-max 4 --contamination-max 0.1 --k-range 2,8"
    assert line in report.read_text()


def test_auto_on_the_line_wins_over_a_number_in_the_file(groups, tmp_path):
    path = tmp_path / "corral.toml"
    path.write_text("n-clusters = 2\n")
    words = ("--config", path, "--n-clusters", "auto")
    assert len(facts_of("fit", groups, *words)["clusters"]) == 3


def test_compare_gives_all_methods_the_numbers_of_cor(groups):
    facts = facts_of("compare", groups, "--methods", "kmeans--,lof,cor,hdbscan")
    found = facts["methods"]
    assert list(found) == ["kmeans--", "lof", "cor", "hdbscan"]
    assert {found[name]["n_outliers"] for name in ("kmeans--", "lof", "cor")} == {5}
    assert len(found["kmeans--"]["clusters"]) == len(found["cor"]["clusters"]) == 3
    assert facts["selection"]["n_clusters"] == 3


def test_compare_chooses_without_cor_among_the_methods(groups):
    words = ("compare", groups, "--methods", "kmeans--,lof")
    facts = facts_of(*words)
    assert list(facts["methods"]) == ["kmeans--", "lof"]
    assert facts["methods"]["lof"]["n_outliers"] == 5
    text = " ".join(run_corral(*words).stdout.split())
    assert "chosen 3 clusters and 5 outliers, by cor for all methods that" in text


@pytest.mark.parametrize(
    ("words", "n_clusters", "n_outliers"),
    [
        (("--n-clusters", 2), 2, 5),
        (("--n-outliers", 6), 3, 6),
        (("--contamination", 0.1), 3, 18),
        (("--n-clusters", 2, "--n-outliers", 4), 2, 4),
    ],
    ids=lambda value: " ".join(map(str, value)) if isinstance(value, tuple) else "",
)
def test_compare_chooses_only_what_is_not_given(groups, words, n_clusters, n_outliers):
    facts = facts_of("compare", groups, "--methods", "cor,kmeans--", *words)
    for found in facts["methods"].values():
        assert len(found["clusters"]) == n_clusters
        assert found["n_outliers"] == n_outliers
    assert (facts["selection"] is None) == (len(words) == 4)


def test_compare_does_not_choose_for_methods_without_numbers(groups, monkeypatch):
    monkeypatch.setattr(COR, "fit", None)
    facts = facts_of("compare", groups, "--methods", "hdbscan")
    assert facts["selection"] is None


def test_compare_that_cannot_choose_says_what_to_give(tmp_path):
    path = write_table(tmp_path / "tiny.csv", [{"x": 1.0}, {"x": 2.0}])
    result = run_corral("compare", path, "--methods", "kmeans--", "--n-outliers", 9)
    assert result.exit_code == 2
    line = only_line(result.stderr)
    assert line.startswith("Error: The same numbers for all methods cannot be chosen.")
    assert line.endswith("Give --n-clusters and --n-outliers.")


def test_confidences_are_columns_of_a_fit(fit, groups, tmp_path):
    for name in ("outlier_confidence", "label_confidence"):
        expected = getattr(fit.model.estimator_, f"{name}_")
        np.testing.assert_array_equal(fit.labels[name].to_numpy(), expected)
    assert "sure If partitions are drawn again, " in fit.words
    assert "how often set aside" in fit.page
    # New rows have none, even if they are those of the fit.
    persist.save(fit.model, tmp_path / "m.skops")
    result = run_corral("predict", tmp_path / "m.skops", groups)
    assert read_rows(result.stdout)[0].keys() == {
        "id",
        "label",
        "nearest_label",
        "outlier_score",
    }


def test_confidences_are_in_json(groups, fit):
    facts = facts_of("fit", groups)
    doubts = count_doubts(fit.model.estimator_)
    assert facts["confidence"]["n_sure"] == doubts.n_sure > 100
    assert facts["labels"]["label_confidence"] == fit.model.label_confidence_.tolist()
    assert facts["strangest"][0]["outlier_confidence"] > 0.5


def test_confidences_can_be_left_out(groups):
    result = run_corral("fit", groups, "--n-resamples", 0)
    assert "confidence" not in result.stdout
    assert "\nsure " not in result.stderr
    result = run_corral("fit", groups, "--n-resamples", -1)
    assert "-1 is not in the range x>=0" in only_line(result.stderr)
