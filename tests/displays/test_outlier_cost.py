"""The curve of outlier scores."""

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.ensemble import IsolationForest

from corral import COR, CORDetector, all_methods
from corral.displays import OutlierCostDisplay

METHODS = all_methods()


def test_curve_is_the_sorted_scores_of_the_model(model):
    display = OutlierCostDisplay.from_estimator(model)
    ranks, scores = display.line_.get_data()
    np.testing.assert_array_equal(ranks, np.arange(1, 187))
    np.testing.assert_array_equal(scores, np.sort(model.outlier_scores_)[::-1])
    np.testing.assert_array_equal(model.outlier_scores_[display.rows], scores)


def test_outliers_and_cut_are_those_of_the_model(model):
    display = OutlierCostDisplay.from_estimator(model)
    ranks, scores = display.outlier_line_.get_data()
    np.testing.assert_array_equal(ranks, np.arange(1, 7))
    assert set(display.rows[:6]) == set(np.flatnonzero(model.labels_ == -1))
    assert display.cut == -model.offset_
    assert set(display.cut_line_.get_ydata()) == {-model.offset_}
    assert (scores > display.cut).all()
    assert display.outlier_line_.get_label() == "outliers (6)"


def test_new_rows_are_scored_anew(model, planted):
    new = np.concatenate([planted.X[:20], [[500.0, 500, 0, 0]]])
    display = OutlierCostDisplay.from_estimator(model, X=new)
    np.testing.assert_array_equal(
        display.scores, np.sort(-model.score_samples(new))[::-1]
    )
    assert display.rows[0] == 20
    np.testing.assert_array_equal(
        display.is_outlier, model.predict(new)[display.rows] == -1
    )


def test_rank_may_be_logarithmic(model):
    assert OutlierCostDisplay.from_estimator(model).ax_.get_xscale() == "linear"
    display = OutlierCostDisplay.from_estimator(model, log_rank=True, color="red")
    assert display.ax_.get_xscale() == "log"
    assert display.line_.get_color() == "red"


def test_no_outliers_have_no_cut(planted):
    model = COR(3, n_outliers=0, n_partitions=5, random_state=0).fit(planted.X)
    display = OutlierCostDisplay.from_estimator(model)
    assert display.cut is None
    assert display.cut_line_ is None
    assert display.outlier_line_.get_label() == "outliers (0)"


def test_of_equal_scores_outliers_come_first():
    display = OutlierCostDisplay.from_predictions([1, 2, 2, 0], [0, 0, -1, 0])
    np.testing.assert_array_equal(display.rows, [2, 1, 0, 3])
    np.testing.assert_array_equal(display.is_outlier, [True, False, False, False])


@pytest.mark.parametrize("name", METHODS)
def test_any_method_can_be_drawn(name, planted):
    parameters = METHODS[name].parameters
    wanted = {"n_clusters": 3, "n_outliers": 6, "n_partitions": 5, "random_state": 0}
    wanted = {key: value for key, value in wanted.items() if key in parameters}
    fitted = METHODS[name].make(**wanted).fit(np.abs(planted.X))
    display = OutlierCostDisplay.from_estimator(fitted)
    source = fitted.estimator_ if name == "cor-detector" else fitted
    np.testing.assert_array_equal(display.scores, np.sort(source.outlier_scores_)[::-1])
    assert display.is_outlier.sum() == (source.labels_ == -1).sum()


def test_detectors_of_scikit_learn_are_drawn_with_x(planted):
    forest = IsolationForest(random_state=0, contamination=0.05).fit(planted.X)
    display = OutlierCostDisplay.from_estimator(forest, X=planted.X)
    assert display.cut == -forest.offset_
    assert display.is_outlier.sum() == (forest.predict(planted.X) == -1).sum()
    with pytest.raises(TypeError, match="IsolationForest has no outlier_scores_"):
        OutlierCostDisplay.from_estimator(forest)


def test_detector_draws_what_its_estimator_found(model, planted):
    detector = CORDetector(COR(**model.get_params())).fit(planted.X)
    display = OutlierCostDisplay.from_estimator(detector)
    np.testing.assert_array_equal(display.scores, np.sort(model.outlier_scores_)[::-1])


def test_method_without_scores_is_refused(planted):
    kmeans = KMeans(3, n_init=1).fit(planted.X)
    with pytest.raises(TypeError, match="KMeans has no outlier_scores_"):
        OutlierCostDisplay.from_estimator(kmeans)
    hdbscan = METHODS["hdbscan"].make().fit(planted.X)
    message = "HDBSCAN has no score_samples and no predict.*Leave X out"
    with pytest.raises(TypeError, match=message):
        OutlierCostDisplay.from_estimator(hdbscan, X=planted.X)


@pytest.mark.parametrize(
    ("scores", "labels", "message"),
    [
        ([1, 2, 3], [0, 0], "scores has 3 entries but labels has 2"),
        ([], [], r"scores has shape \(0,\); it should be \(n_samples,\)"),
        ([[1, 2]], [0, 0], r"scores has shape \(1, 2\)"),
    ],
    ids=["lengths", "empty", "two axes"],
)
def test_wrong_predictions_are_refused(scores, labels, message):
    with pytest.raises(ValueError, match=message):
        OutlierCostDisplay.from_predictions(scores, labels)
