"""Why the numbers were chosen, and how sure the labels are."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from corral import COR
from corral._doubts import Doubts, count_doubts, say_doubts
from corral.report import summarize, to_html
from corral.report._charts import gap_chart, objective_chart, told_chart
from corral.report._selection import describe_selection


@pytest.fixture
def described(estimator, selection):
    estimator.selection_ = selection
    return describe_selection(estimator)


def _pairs(described):
    return [
        (each["n_clusters"], each["n_outliers"]) for each in described["candidates"]
    ]


def test_summary_has_the_words_and_curves_of_the_choice(described):
    assert json.loads(json.dumps(described, allow_nan=False)) == described
    assert described["reason"] == "Two stand <apart>."
    assert described["runner_up"] == [3, 1]
    assert (described["n_clusters"], described["n_outliers"]) == (2, 1)
    assert described["told"] == {
        "numbers": [1, 2, 3, 9],
        "values": [1.0, 0.95, 0.5, 0.25],
    }
    assert described["gaps"]["values"] == [30.0, 2.0, 0.5]
    two, three = described["objectives"]
    assert two == {
        "n_clusters": 2,
        "points": {"numbers": [0, 1, 2, 3], "values": [10, 8, 6, 5]},
    }
    assert three["points"] == {"numbers": [1, 3], "values": [7, 9]}


def test_candidates_beside_the_chosen_one_are_listed(described):
    # Nine clusters are too far, and other numbers come with the chosen one only.
    assert _pairs(described) == [(2, 0), (1, 1), (2, 1), (3, 1), (2, 2), (2, 3)]
    assert described["n_candidates"] == 9
    chosen = described["candidates"][2]
    assert chosen["is_chosen"]
    assert chosen["criteria"] == {"told": 0.95, "gap": 30.0, "objective": 8.0}
    assert [each["is_runner_up"] for each in described["candidates"]].index(True) == 3
    assert described["candidates"][0]["criteria"]["told"] is None


def test_curves_that_end_before_the_others_are_left_out(estimator, selection):
    outliers = np.array([1, 1, 1, 1, 0, 0, 0, 2, 3])
    columns = selection.columns | {"n_outliers": outliers}
    estimator.selection_ = replace(selection, columns=columns)
    (two,) = describe_selection(estimator)["objectives"]
    assert two["n_clusters"] == 2


def test_runner_up_is_listed_wherever_it_is(estimator, selection):
    estimator.selection_ = replace(selection, runner_up=(9, 1))
    assert (9, 1) in _pairs(describe_selection(estimator))


def test_columns_may_be_absent(estimator, selection):
    columns = {
        name: selection.columns[name]
        for name in ("n_clusters", "n_outliers", "is_chosen")
    }
    estimator.selection_ = replace(selection, columns=columns, gap_widths=np.zeros(3))
    summary = summarize(estimator)
    assert summary["selection"]["told"] is None
    assert summary["selection"]["gaps"] is None
    assert summary["selection"]["objectives"] == []
    assert "Why these numbers" in to_html(summary)


def test_charts_mark_what_was_chosen(described):
    told = told_chart(described)
    assert told.mark == told.points[1] == (12.5, pytest.approx(5))
    assert told.level == pytest.approx(12)
    assert [tick.text for tick in told.x_ticks] == ["1", "2", "3", "9"]
    gaps = gap_chart(described)
    assert gaps.mark == gaps.points[0]
    assert gaps.mark[1] < gaps.level < gaps.points[1][1]
    assert [tick.text for tick in gaps.y_ticks] == ["1", "10", "100"]
    objective = objective_chart(described)
    assert objective.mark == objective.points[1]
    assert len(objective.others) == 1
    assert [name.text for name in objective.names] == ["2", "3"]


def test_words_on_a_line_stand_where_the_curve_is_not(described):
    described["gaps"] = {
        "numbers": [1, *range(30, 101)],
        "values": [1.0, *[1.5 * described["gap_threshold"]] * 71],
    }
    assert gap_chart(described).names_level_left
    described["gaps"] = {"numbers": [1, 2, 100], "values": [12.0, 12.0, 1.0]}
    assert not gap_chart(described).names_level_left
    # The first numbers of clusters are told apart best.
    assert not told_chart(described).names_level_left


@pytest.mark.parametrize("width", [1e-9, 1e9])
def test_charts_of_nasty_gaps_stay_inside(described, width):
    described["gaps"] = {"numbers": [7], "values": [width]}
    described["objectives"] = [
        {"n_clusters": 4, "points": {"numbers": [0, 100_000], "values": [1.0, 1.0]}}
    ]
    for chart in (gap_chart(described), objective_chart(described)):
        for points in (chart.points, *chart.others):
            assert all(0 <= x <= 100 and -0.01 <= y <= 100.01 for x, y in points)
        assert 0 <= (chart.level or 0) <= 100
        positions = [tick.position for tick in chart.x_ticks]
        assert positions == sorted(set(positions))


def test_page_says_why_and_marks_the_runner_up(estimator, selection):
    estimator.selection_ = selection
    page = to_html(summarize(estimator))
    assert "Two stand &lt;apart&gt;." in page
    assert page.count("runner-up</td>") == page.count("chosen</td>") == 1
    assert "Listed are 6 of 9 candidates" in page
    assert "hardest to tell" in page
    assert "the last before the steepest fall" in page
    assert "clear above" not in page
    assert "like any other place" not in page
    # Criteria that nobody knows have no column.
    assert "stability" not in page
    assert "told apart</th>" in page


def test_page_shows_criteria_by_any_name_where_they_are_known(estimator, selection):
    columns = selection.columns | {
        "some_criterion": np.linspace(0, 0.8, 9),
        "border": np.linspace(0.5, 1, 9),
        "smallest": np.full(9, 2.0),
        "stability": np.full(9, np.nan),
    }
    estimator.selection_ = replace(selection, columns=columns, n_searched=5)
    page = to_html(summarize(estimator))
    assert "like any other place at a half" in page
    assert "Sizes are those among the 5 rows that were searched." in page
    heads = re.findall(r'class="number">([^<]+)</th>', page)
    start = heads.index("told apart")
    assert heads[start : start + 6] == [
        "told apart",
        "empty border",
        "smallest cluster",
        "gap",
        "mean cost",
        "some criterion",
    ]
    assert "tability" not in page


def test_numbers_that_were_given_have_no_panel(estimator, six_rows, selection):
    estimator.selection_ = None
    summary = summarize(estimator, six_rows)
    assert summary["selection"] is summary["confidence"] is None
    assert "Why these numbers" not in to_html(summary)
    # Nor has a report on other rows than those of the fit.
    estimator.selection_ = selection
    estimator.predict = lambda X: estimator.labels_
    estimator.score_samples = lambda X: -estimator.outlier_scores_
    estimator.outlier_confidence_ = estimator.label_confidence_ = np.ones(6)
    summary = summarize(estimator, six_rows, is_training=False)
    assert summary["selection"] is summary["confidence"] is None
    assert summary["strangest"][0]["outlier_confidence"] is None


def test_confidences_stand_beside_rows_and_clusters(estimator, six_rows):
    estimator.outlier_confidence_ = np.array([0, 0.3, 0, 0, 0, 0.7])
    estimator.label_confidence_ = np.array([1, 0.95, 1, 0.6, np.nan, 0.8])
    estimator.cluster_stability_ = np.array([0.875, np.nan])
    summary = summarize(estimator, six_rows)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    strangest = {row["row"]: row for row in summary["strangest"]}
    assert strangest[5]["outlier_confidence"] == 0.7
    assert strangest[4]["label_confidence"] is None
    assert [each["stability"] for each in summary["clusters"]] == [0.875, None]
    confidence = summary["confidence"]
    assert (confidence["n_sure"], confidence["n_kept_in_doubt"]) == (3, 1)
    assert confidence["n_aside_in_doubt"] == 1
    page = to_html(summary)
    assert confidence["words"] in page
    assert "how often set aside" in page
    assert ">0.88<" in page
    assert "stability" in page


def test_confidences_are_left_out_where_they_are_not_known(estimator, six_rows):
    page = to_html(summarize(estimator, six_rows))
    assert "how often" not in page
    assert "stability" not in page.lower()


@pytest.mark.parametrize(
    ("doubts", "words"),
    [
        (
            Doubts(3, 3, 0, 0),
            "If partitions are drawn again, all of the rows are nearest to the same "
            "cluster in 9 of 10 cases or more. No row near the cut is in doubt.",
        ),
        (
            Doubts(1000, 999, 1, 0),
            "If partitions are drawn again, 99% of the rows are nearest to the same "
            "cluster in 9 of 10 cases or more. Near the cut, 1 row that is kept is "
            "judged otherwise in a quarter of the cases or more.",
        ),
        (
            Doubts(10, 0, 1200, 1),
            "If partitions are drawn again, 0% of the rows are nearest to the same "
            "cluster in 9 of 10 cases or more. Near the cut, 1,200 rows that are kept "
            "and 1 row that is set aside are judged otherwise in a quarter of the "
            "cases or more.",
        ),
    ],
    ids=["none", "one", "many"],
)
def test_doubts_in_words(doubts, words):
    assert say_doubts(doubts) == words


def test_a_method_that_does_not_know_has_no_doubts(estimator):
    assert count_doubts(estimator) is None


def test_fit_that_chooses_has_all_of_it(planted):
    model = COR(n_partitions=30, random_state=0).fit(planted.X)
    summary = summarize(model, planted.X)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert summary["selection"]["n_clusters"] == model.n_clusters_ == 3
    assert summary["selection"]["reason"] == model.selection_.reason
    assert "Why these numbers" in to_html(summary)
