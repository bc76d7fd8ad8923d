import numpy as np
import pytest

from corral import COR
from corral._consensus import consensus
from corral.report._agreement import choose_pairs, describe_agreement
from corral.report._outcome import Outcome, read_outcome


def _outcome(labels):
    labels = np.asarray(labels)
    scores = np.random.default_rng(0).random(len(labels))
    return Outcome(labels, np.maximum(labels, 0), scores, 1.0, labels.max() + 1)


@pytest.mark.parametrize(
    ("sizes", "n_outliers"),
    [([500, 300, 5], 10), ([4000] * 3, 0), ([30] * 100, 50), ([3], 1), ([1, 1], 0)],
    ids=["unequal", "no outliers", "many clusters", "tiny", "single rows"],
)
def test_sample_is_small_and_ordered_by_cluster(sizes, n_outliers):
    # At most 120 rows, each listed cluster together, the outliers last.
    labels = np.repeat([*range(len(sizes)), -1], [*sizes, n_outliers])
    labels = np.random.default_rng(1).permutation(labels)
    rows = choose_pairs(_outcome(labels))
    assert 0 < len(rows) <= 120
    assert len(set(rows.tolist())) == len(rows)
    order = np.where(labels[rows] == -1, len(sizes), labels[rows])
    assert (np.diff(order) >= 0).all()
    assert (labels[rows] == -1).sum() == min(n_outliers, 24)


def test_small_cluster_is_in_the_sample():
    labels = np.repeat([0, 1], [5000, 4])
    rows = choose_pairs(_outcome(labels))
    assert (labels[rows] == 1).sum() >= 2


def test_agreement_is_the_share_of_the_partitions(planted):
    # Percentages of what consensus gives, and high within the groups that were planted.
    model = COR(3, n_outliers=6, n_partitions=40, random_state=0).fit(planted.X)
    outcome = read_outcome(model, None, is_training=True)
    agreement = describe_agreement(model, planted.X, outcome)
    shares = consensus(model, planted.X, choose_pairs(outcome))
    np.testing.assert_allclose(agreement["percents"], 100 * shares, atol=0.5)
    assert sum(group["size"] for group in agreement["groups"]) == len(shares)
    *clusters, outliers = agreement["groups"]
    assert outliers["label"] == -1
    for group in clusters:
        assert group["within"] > 2 * group["between"]


def test_agreement_of_unknown_pairs_is_none():
    # The first two rows have no partition in common.
    labels = np.array([[0, -1], [-1, 0], [0, 0], [1, 1], [1, 1]])
    model = COR(2, n_outliers=0, random_state=0).fit_partitions(labels)
    outcome = read_outcome(model, None, is_training=True)
    agreement = describe_agreement(model, labels, outcome)
    assert sum(row.count(None) for row in agreement["percents"]) == 2
