"""Boxes for each number of partitions."""

from itertools import combinations

import numpy as np
import pytest

from corral import COR, CORDetector
from corral.displays import PartitionCountDisplay
from corral.metrics import nmi_score, outlier_jaccard_score
from corral.rivals import KCC

MEASURES = {"NMI": nmi_score, "outlier Jaccard": outlier_jaccard_score}

RUNS = {
    5: [[0, 0, 1, 1, -1], [0, 0, 0, 1, -1], [0, 1, 1, -1, 0]],
    20: [[0, 0, 1, 1, -1], [1, 1, 0, 0, -1], [0, 0, 1, -1, 1]],
}


def middle_lines(display, measure):
    return [line.get_ydata()[0] for line in display.boxes_[measure]["medians"]]


def test_without_truth_pairs_of_runs_are_compared():
    display = PartitionCountDisplay.from_predictions(RUNS)
    for name, measure in (
        ("NMI", nmi_score),
        ("outlier Jaccard", outlier_jaccard_score),
    ):
        expected = [
            [measure(one, other) for one, other in combinations(runs, 2)]
            for runs in RUNS.values()
        ]
        np.testing.assert_array_equal(display.scores[name], expected)
        np.testing.assert_allclose(
            middle_lines(display, name), np.median(expected, axis=1)
        )
    assert display.ax_.get_ylabel() == "agreement of runs with other seeds"


def test_with_truth_each_run_is_compared_with_it():
    y = [0, 0, 1, 1, -1]
    display = PartitionCountDisplay.from_predictions(RUNS, y=y)
    expected = [[nmi_score(y, run) for run in runs] for runs in RUNS.values()]
    np.testing.assert_array_equal(display.scores["NMI"], expected)
    np.testing.assert_array_equal(display.scores["outlier Jaccard"][1], [1, 1, 0])
    assert display.has_truth
    assert display.ax_.get_ylabel() == "agreement with the truth"


def test_boxes_stand_at_their_counts():
    display = PartitionCountDisplay.from_predictions(RUNS)
    names = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert names == ["5", "20"]
    legend = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert legend == ["NMI", "outlier Jaccard"]


def test_axis_ends_where_the_measures_end():
    same = {5: [[0, 0, 1, -1]] * 3}
    low, high = PartitionCountDisplay.from_predictions(same).ax_.get_ylim()
    assert 1 < high <= 1.02
    assert low <= 0.95


def test_counts_may_have_been_run_unequally_often():
    runs = {5: RUNS[5], 20: RUNS[20][:2]}
    display = PartitionCountDisplay.from_predictions(runs)
    np.testing.assert_array_equal(display.scores["NMI"][1], [1, np.nan, np.nan])
    assert middle_lines(display, "NMI")[1] == 1


@pytest.mark.parametrize("method", [COR(3, n_outliers=6), KCC(3)], ids=["cor", "kcc"])
def test_estimator_is_fitted_with_each_count_and_seed(method, planted, monkeypatch):
    seen = []
    fit = type(method).fit

    def spy(self, X, **kwargs):
        seen.append((self.n_partitions, self.random_state))
        return fit(self, X, **kwargs)

    monkeypatch.setattr(type(method), "fit", spy)
    display = PartitionCountDisplay.from_estimator(
        method, planted.X, counts=(3, 6), n_repeats=3, y=planted.y
    )
    assert [count for count, _ in seen] == [3] * 3 + [6] * 3
    seeds = [seed for _, seed in seen]
    assert seeds[:3] == seeds[3:]
    assert len(set(seeds)) == 3
    assert display.scores["NMI"].shape == (2, 3)
    # It was cloned.
    assert not hasattr(method, "labels_")
    assert method.n_partitions == 100


def test_more_partitions_find_what_was_planted(planted):
    display = PartitionCountDisplay.from_estimator(
        COR(3, n_outliers=6), planted.X, counts=(20,), n_repeats=2, y=planted.y
    )
    np.testing.assert_array_equal(display.scores["NMI"], 1)
    np.testing.assert_array_equal(display.scores["outlier Jaccard"], 1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"counts": ()}, r"counts=\[\] should be whole numbers"),
        ({"counts": (10, 0)}, r"counts=\[10, 0\] should be whole numbers"),
        ({"counts": (2.5,)}, r"counts=\[2.5\] should be whole numbers"),
        ({"n_repeats": 1}, "n_repeats=1 should be at least 2, or y should be given"),
        ({"n_repeats": 0, "y": [0]}, "n_repeats=0 should be at least 1"),
    ],
    ids=["none", "zero", "part", "one run", "no run"],
)
def test_wrong_settings_are_refused(settings, message, planted):
    with pytest.raises(ValueError, match=message):
        PartitionCountDisplay.from_estimator(COR(3), planted.X, **settings)


def test_truth_of_another_length_is_refused():
    with pytest.raises(ValueError, match="labels_true has 2 entries but labels_pred"):
        PartitionCountDisplay.from_predictions(RUNS, y=[0, 1])


def test_method_without_partitions_is_refused(planted):
    with pytest.raises(TypeError, match="CORDetector has no n_partitions and random"):
        PartitionCountDisplay.from_estimator(CORDetector(COR(3)), planted.X)
