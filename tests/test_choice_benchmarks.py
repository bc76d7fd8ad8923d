"""The benchmarks of choosing: rivals, tables on data sets, confidences."""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

pytest.importorskip("benchmarks.choice", reason="only in a copy of the repository")

from benchmarks.choice import _rivals, calibration, real
from benchmarks.choice._rivals import K_ONLY, Found, choose_by_hdbscan
from benchmarks.choice.calibration import (
    LABEL_EDGES,
    Bin,
    Case,
    Judged,
    calibration_error,
    count_bins,
    make_case,
    match_classes,
)
from benchmarks.paper.datasets import Dataset
from benchmarks.speed import __main__ as speed
from benchmarks.speed import choice as speed_of_choice


@pytest.fixture(autouse=True, scope="module")
def _one_thread():
    """Hold scikit-learn's K-means to one thread; on shared cores, more are slower."""
    with threadpool_limits(1):
        yield


@pytest.fixture(scope="module")
def three_blobs():
    """Three round clusters of 60 rows, 28 standard deviations apart."""
    # Not on a line: evenly spaced there, two clusters are no gain for the gap.
    rng = np.random.default_rng(0)
    return np.concatenate([rng.normal(20 * axis, 1, (60, 3)) for axis in np.eye(3)])


@pytest.mark.parametrize("choose", K_ONLY.values(), ids=K_ONLY)
def test_rivals_find_three_far_blobs(choose, three_blobs):
    assert choose(three_blobs, 0) == 3


@pytest.mark.parametrize("name", ["gap", "X-means"])
def test_one_blob_is_one_cluster(name):
    # The silhouette cannot say so: it compares two clusters at least.
    rows = np.random.default_rng(1).normal(size=(200, 3))
    assert K_ONLY[name](rows, 0) == 1


def test_x_means_sees_four_blobs_that_lie_evenly():
    # Cut in two, the corners of a square are no better than one cluster.
    rng = np.random.default_rng(2)
    corners = np.array([[0, 0], [0, 20], [20, 0], [20, 20]])
    rows = np.concatenate([rng.normal(corner, 1, (60, 2)) for corner in corners])
    assert K_ONLY["X-means"](rows, 0) == 4


def test_hdbscan_finds_blobs_and_lone_rows(three_blobs):
    # Five rows far from all; the edges of the blobs may be noise, too.
    lone = 200 * np.arange(1, 6)[:, None] * np.ones((1, 3))
    found = choose_by_hdbscan(np.concatenate([three_blobs, lone]), 0, 0.1)
    assert found.n_clusters == 3
    assert 5 <= found.n_outliers < 40


def test_noise_of_a_sample_is_scaled_up(three_blobs, monkeypatch):
    # Nothing but noise in half of the rows counts as noise in all of them.
    monkeypatch.setattr(_rivals, "_MAX_HDBSCAN_ROWS", 10)
    rows = 100.0 * np.arange(20)[:, None] ** 2
    assert choose_by_hdbscan(rows, 0, 0.9) == Found(0, 20)


def test_every_way_is_in_a_row_of_the_table(three_blobs):
    # Three blobs and a few strange rows go through all that the command does.
    strange = np.random.default_rng(3).uniform(-300, 300, (4, 3))
    y = np.repeat([0, 1, 2, -1], [60, 60, 60, 4])
    dataset = Dataset("blobs", np.concatenate([three_blobs, strange]), y, 3, 4)
    outcome = real.judge(dataset, 0)
    assert outcome.ours == Found(3, 4)
    assert outcome.nmi == outcome.jaccard == pytest.approx(100)
    header, _, row, *counts = real.format_table([outcome]).splitlines()
    assert len({line.count("|") for line in (header, row, *counts)}) == 1
    assert row.startswith("| blobs | 184 | 3, 4 | 3, 4 | 100.0 | 100.0 |")


def test_best_of_three_is_the_nearest_and_counts():
    some = Found(1, 0)
    outcome = real.Outcome(
        name="by hand",
        n_samples=100,
        truth=Found(5, 20),
        ours=Found(4, 24),
        nmi=50.0,
        jaccard=20.0,
        hdbscan=some,
        hdbscan_large=some,
        k_only={"silhouette": 2, "gap": 7, "X-means": 5},
        seconds={},
    )
    assert outcome.best == 5
    *_, exact, within, near = real.format_table([outcome]).splitlines()
    assert exact == "| K exact |  | 1 | 0 |  |  | 0 | 0 | 0 | 0 | 1 | 1 |"
    assert within == "| K within 1 |  | 1 | 1 |  |  | 0 | 0 | 0 | 0 | 1 | 1 |"
    # 24 are within 25 % of 20; none are not.
    assert near == "| o near |  | 1 | 1 |  |  | 0 | 0 |  |  |  |  |"


def test_sets_of_both_suites_are_there():
    assert len(real._PAPER) == 12
    assert len(real._NOISE) == 14


@pytest.mark.parametrize("number", calibration.DEVELOPMENT_SEEDS[:12])
def test_cases_are_as_described(number):
    case = make_case(number)
    n_samples, n_features = case.X.shape
    assert 300 <= n_samples <= 3000
    assert 2 <= n_features <= 20
    assert 2 <= len(np.unique(case.y[case.y >= 0])) <= 6
    assert (case.y == -1).mean() <= 0.1
    # Only outliers are hidden.
    assert (case.y[case.is_hidden] == -1).all()


def test_cases_overlap_and_hide_outliers():
    # Over the development seeds, some outliers are hidden and most are not.
    cases = [make_case(seed) for seed in calibration.DEVELOPMENT_SEEDS]
    hidden = sum(case.is_hidden.sum() for case in cases)
    planted = sum((case.y == -1).sum() for case in cases)
    assert 0 < hidden < 0.5 * planted


def test_seeds_are_separate():
    development = set(calibration.DEVELOPMENT_SEEDS)
    assert len(development) >= 30
    assert len(calibration.TEST_SEEDS) >= 60
    assert development.isdisjoint(calibration.TEST_SEEDS)


def test_classes_are_matched_one_to_one():
    # Cluster 7 has two rows of class 0 and one of 1; cluster 4 the rest of class 1.
    is_right = match_classes(np.array([0, 0, 1, 1, 1]), np.array([7, 7, 7, 4, 4]))
    assert is_right.tolist() == [True, True, False, True, True]


def test_a_cluster_without_a_class_is_wrong():
    # Three clusters for two classes: one row's cluster is matched with none.
    is_right = match_classes(np.array([0, 0, 0, 1]), np.array([0, 0, 1, 2]))
    assert is_right.tolist() == [True, True, False, True]


def test_bins_by_hand():
    judged = Judged(np.array([0.55, 0.5, 0.99, 1.0]), np.array([1, 0, 1, 1], bool))
    low, high = count_bins(judged, LABEL_EDGES)
    assert low == Bin(0.5, 0.6, 2, pytest.approx(0.525), 0.5)
    assert high == Bin(0.97, 1, 2, pytest.approx(0.995), 1.0)
    # Off by 0.025 and by 0.005, on two rows each.
    assert calibration_error([low, high]) == pytest.approx(0.015)


def test_error_tells_right_confidences_from_others():
    rng = np.random.default_rng(4)
    truth = rng.uniform(0.5, 1, 20_000)
    is_right = rng.random(len(truth)) < truth

    def error(confidence):
        return calibration_error(count_bins(Judged(confidence, is_right), LABEL_EDGES))

    assert error(truth) < 0.01
    assert error(np.sqrt(truth)) > 0.08


def test_known_confidences_are_judged_by_the_truth(three_blobs, monkeypatch):
    # Two far clusters and three strange rows, one of them said to be hidden.
    strange = np.array([[500.0, 0, 0], [0, 500.0, 0], [0, 0, 500.0]])
    X = np.concatenate([three_blobs[:120], strange])
    y = np.repeat([0, 1, -1], [60, 60, 3])
    is_hidden = np.arange(123) == 122
    seen = []

    def read(model):
        seen.append(model)
        return (model.labels_ == -1).astype(float), np.full(123, 0.9)

    monkeypatch.setattr(calibration, "confidences", read)
    outcome = calibration.judge(Case(X, y, is_hidden), 0)
    assert (seen[0].n_clusters_, seen[0].n_outliers_) == (2, 3)
    assert len(outcome.label.is_right) == 120
    assert outcome.label.is_right.all()
    assert len(outcome.outlier.is_right) == 122
    assert (outcome.outlier.confidence == outcome.outlier.is_right).all()
    report = calibration.format_report([outcome])
    assert "| 0.9 to 0.97 | 120 | 0.900 | 1.000 |" in report
    assert "| 0.9 to 1 | 2 | 1.000 | 1.000 |" in report
    assert "1 of 3 planted rows (33.3%)" in report


def test_a_fit_is_given_what_was_chosen(three_blobs, monkeypatch):
    # The second side of each round has the numbers and the seed of the first.
    asked = []

    class Watched(speed_of_choice.COR):
        def fit(self, X, y=None):
            asked.append((self.n_clusters, self.n_outliers, self.random_state))
            return super().fit(X)

    monkeypatch.setattr(speed_of_choice, "COR", Watched)
    chosen, given = speed_of_choice._time_both(three_blobs, 2)
    assert len(chosen) == len(given) == 2
    assert asked[0] == ("auto", "auto", 0)
    assert asked[1] == (3, 0, 0)
    assert asked[2:] == [("auto", "auto", 1), (3, 0, 1)]
    assert speed.QUESTIONS["choice"] is speed_of_choice.measure
