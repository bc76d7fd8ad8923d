"""The heat map of agreement."""

import numpy as np
import pytest

from corral import COR, CORDetector
from corral._consensus import consensus
from corral.displays import ConsensusDisplay
from corral.rivals import KCC, KMeansMinusMinus


def test_map_is_the_agreement_of_the_model(model, planted):
    display = ConsensusDisplay.from_estimator(model, planted.X)
    expected = consensus(model, planted.X, display.rows)
    np.testing.assert_array_equal(display.image_.get_array(), expected)
    assert display.image_.get_clim() == (0, 1)
    np.testing.assert_array_equal(display.labels, model.labels_[display.rows])


def test_rows_are_ordered_by_cluster_with_outliers_last(model, planted):
    display = ConsensusDisplay.from_estimator(model, planted.X, n_rows=60)
    labels = display.labels
    assert labels.tolist() == sorted(labels[labels >= 0]) + [-1] * 6
    for cluster in (-1, 0, 1, 2):
        scores = model.outlier_scores_[display.rows[labels == cluster]]
        assert (np.diff(scores) >= 0).all()
    names = [text.get_text() for text in display.ax_.get_yticklabels()]
    assert names == ["0", "1", "2", "outliers"]


def test_planted_clusters_agree_more_than_others(model, planted):
    display = ConsensusDisplay.from_estimator(model, planted.X)
    together = display.labels[:, None] == display.labels
    kept = np.ix_(display.labels >= 0, display.labels >= 0)
    shares, together = display.shares[kept], together[kept]
    assert shares[together].min() > shares[~together].max()


def test_only_a_sample_is_compared_with_outliers_in_it(model, planted):
    display = ConsensusDisplay.from_estimator(model, planted.X, n_rows=20)
    assert display.shares.shape == (20, 20)
    # A fifth of the places, of the six outliers.
    assert (display.labels == -1).sum() == 4


def test_other_methods_with_partitions_can_be_drawn(planted):
    kcc = KCC(3, n_partitions=5, random_state=0).fit(planted.X)
    assert ConsensusDisplay.from_estimator(kcc, planted.X).image_ is not None
    detector = CORDetector(COR(3, n_outliers=6, n_partitions=5)).fit(planted.X)
    display = ConsensusDisplay.from_estimator(detector, planted.X)
    assert set(display.labels) == {-1, 0, 1, 2}


def test_labels_take_the_place_of_rows(partitions):
    model = COR(3, n_outliers=2, random_state=0).fit_partitions(partitions)
    display = ConsensusDisplay.from_estimator(model, partitions)
    rows = partitions[display.rows]
    expected = (rows[:, None] == rows).mean(axis=2)
    np.testing.assert_allclose(display.shares, expected)


def test_extra_partitions_are_passed_on(planted):
    extra = planted.y
    settings = {"n_outliers": 6, "n_partitions": 5, "random_state": 0}
    model = COR(3, **settings).fit(planted.X, extra_partitions=extra)
    display = ConsensusDisplay.from_estimator(
        model, planted.X, extra_partitions=extra, n_rows=30
    )
    expected = consensus(model, planted.X, display.rows, extra_partitions=extra)
    np.testing.assert_array_equal(display.shares, expected)


def test_predictions_are_put_in_order():
    shares = np.array([[1, 0.2, 0.9], [0.2, 1, 0.1], [0.9, 0.1, 1]])
    display = ConsensusDisplay.from_predictions(shares, [1, -1, 0], colorbar=False)
    np.testing.assert_array_equal(display.rows, [2, 0, 1])
    np.testing.assert_array_equal(
        display.shares, [[1, 0.9, 0.1], [0.9, 1, 0.2], [0.1, 0.2, 1]]
    )
    assert display.colorbar_ is None


def test_method_without_partitions_is_refused(planted):
    model = KMeansMinusMinus(3, n_outliers=6).fit(planted.X)
    with pytest.raises(TypeError, match="KMeansMinusMinus does not fuse partitions"):
        ConsensusDisplay.from_estimator(model, planted.X)


def test_shares_of_another_shape_are_refused():
    message = r"shares has shape \(2, 3\); it should be \(3, 3\)"
    with pytest.raises(ValueError, match=message):
        ConsensusDisplay.from_predictions(np.ones((2, 3)), [0, 1, 2])
