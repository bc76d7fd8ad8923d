"""What numbers of clusters are judged by: pairs, borders, lengths of descriptions."""

from math import lgamma, log

import numpy as np
import pytest

from corral._codes import CodeBook, Codes
from corral._criteria import (
    Borders,
    compare_pairs,
    describe_length,
    find_touching,
    measure_borders,
    rank_clusters,
)


def codes_of(labels):
    """Return codes of the rows of a label matrix, one per row."""
    labels = np.asarray(labels)
    book = CodeBook(labels.max(axis=0) + 1)
    n = len(labels)
    return Codes(book, labels.astype(book.dtype), np.arange(n), np.ones(n, int))


def test_pairs_by_hand():
    # Two clusters of two rows. The partition tells them apart, or not at all, or puts
    # one row of each into a shared cell: half of the rows are told.
    labels = np.array([0, 0, 1, 1])
    for cells, told in (([0, 0, 1, 1], 1), ([0, 1, 0, 1], 0), ([0, 1, 1, 2], 0.5)):
        codes = codes_of(np.array(cells)[:, None])
        pairs = compare_pairs(codes, labels, np.ones(4), 2, range(1))
        assert pairs.told == pytest.approx(told)


def test_pairs_report_the_two_that_are_hardest_to_tell_apart():
    # Clusters 0 and 1 share a cell, cluster 2 has its own.
    codes = codes_of(np.array([0, 0, 0, 0, 1, 1])[:, None])
    pairs = compare_pairs(codes, np.array([0, 0, 1, 1, 2, 2]), np.ones(6), 3, range(1))
    assert pairs.told == pytest.approx(0)
    assert pairs.mixed == pytest.approx(0.5)


def test_pairs_do_not_count_what_was_set_aside():
    codes = codes_of(np.array([0, 0, 1, 1])[:, None])
    kept = np.array([1, 1, 1, 0])
    pairs = compare_pairs(codes, np.array([0, 0, 1, 0]), kept, 2, range(1))
    assert pairs.told == pytest.approx(1)
    assert pairs.sizes.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("told", "best", "is_clear"),
    [
        ({1: 1, 2: 1, 3: 0.99, 4: 0.5, 5: 0.6}, 3, True),
        # A number between that was fused badly does not matter.
        ({1: 1, 2: 1, 3: 0.4, 4: 1, 5: 0.5}, 4, True),
        # A long shape is cut at little cost.
        ({1: 1, 2: 1, 3: 0.98, 4: 0.97, 5: 0.95}, 2, False),
        ({1: 1, 2: 0.6, 3: 0.6}, 1, True),
    ],
)
def test_most_clusters_that_are_told_apart_are_best(told, best, is_clear):
    ranking = rank_clusters(told)
    assert ranking.numbers[0] == best
    assert ranking.is_clear == is_clear


def test_border_by_hand():
    # On a line from left to right, ten rows of each cluster. The border of one towards
    # the other are its five nearest rows. The left one is emptiest at the border, where
    # rows have the ranks 0.55 to 0.95; the right one is fullest there: 0.05 to 0.45.
    x = np.arange(20.0)
    costs = np.column_stack([x, 19 - x])
    position = np.concatenate([np.arange(10), np.arange(10)]).astype(float)
    borders = measure_borders(costs, position, np.ones(20, bool))
    assert borders.empty == pytest.approx(0.25)
    assert borders.deviations == pytest.approx(-0.25 * np.sqrt(60))
    position[10:] = position[:9:-1]
    borders = measure_borders(costs, position, np.ones(20, bool))
    assert borders.empty == pytest.approx(0.75)
    assert borders.deviations == pytest.approx(0.25 * np.sqrt(60))


def slow_borders(costs, position, kept):
    """Return the least mean rank, by sorting each cluster towards each other one."""
    n_clusters = costs.shape[1]
    means = []
    for a in range(n_clusters):
        rows = [i for i in range(len(costs)) if kept[i] and costs[i].argmin() == a]
        rank = {
            i: (place + 0.5) / len(rows)
            for place, i in enumerate(sorted(rows, key=lambda i: position[i]))
        }
        n_border = min(max(int(0.15 * len(rows)), 5), len(rows))
        for b in set(range(n_clusters)) - {a}:
            border = sorted(rows, key=lambda i: costs[i, b] - costs[i, a])[:n_border]
            means.append(np.mean([rank[i] for i in border]))
    return min(means)


def test_border_is_that_of_the_slow_twin(seed):
    rng = np.random.default_rng(seed)
    costs, position = rng.exponential(size=(300, 4)), rng.exponential(size=300)
    kept = rng.random(300) < 0.9
    borders = measure_borders(costs, position, kept)
    assert borders.empty == pytest.approx(slow_borders(costs, position, kept))
    order = rng.permutation(300)
    again = measure_borders(costs[order][:, ::-1], position[order], kept[order])
    assert again == pytest.approx(borders)


def measure_cut(x, at=0.0):
    """Measure the border if rows on a line are cut, with what a place there costs."""
    density = np.exp(-((x[:, None] - x[None, :]) ** 2) / 0.1).mean(axis=1)
    costs = np.column_stack([x - at, at - x])
    return measure_borders(costs, -np.log(density), np.ones(len(x), bool))


def test_border_between_two_crowds_is_empty_and_through_one_is_full(seed):
    rng = np.random.default_rng(seed)
    apart = np.concatenate([rng.normal(-1.6, 1, 500), rng.normal(1.6, 1, 500)])
    assert measure_cut(apart).are_empty
    crowd = measure_cut(rng.normal(size=1000))
    assert crowd.empty < 0.3
    assert not crowd.are_empty


def test_border_of_rows_spread_evenly_is_like_any_other_place():
    # The places of a cluster have nothing to do with where its border is.
    rng = np.random.default_rng(0)
    costs = rng.random((4000, 2))
    borders = measure_borders(costs, rng.random(4000), np.ones(4000, bool))
    assert borders.empty == pytest.approx(0.5, abs=0.06)
    assert abs(borders.deviations) < 3


def test_borders_of_one_cluster_or_with_an_empty_one():
    rng = np.random.default_rng(0)
    kept = np.ones(10, bool)
    alone = measure_borders(rng.random((10, 1)), rng.random(10), kept)
    assert alone == (1.0, np.inf)
    costs = np.column_stack([rng.random(10), np.full(10, 9.0)])
    assert not measure_borders(costs, rng.random(10), kept).are_empty
    # A cluster whose rows were all set aside is empty, too.
    costs[0] = [9, 0]
    kept[0] = False
    assert not measure_borders(costs, rng.random(10), kept).are_empty


def slow_length(labels, clusters, n_outliers, n_labels):
    """Describe rows one after the other, -1 for outliers, and add up the nats."""

    def spell(words, n_words):
        """Return minus the log probability of a list under a Dirichlet-multinomial."""
        counts = [list(words).count(word) for word in range(n_words)]
        probability = lgamma(n_words / 2) - lgamma(len(words) + n_words / 2)
        probability += sum(lgamma(n + 0.5) - lgamma(0.5) for n in counts)
        return -probability

    n, kept = len(labels), clusters >= 0
    n_clusters = clusters.max() + 1
    total = spell(clusters[kept], n_clusters)
    total += lgamma(n + 1) - lgamma(n_outliers + 1) - lgamma(n - n_outliers + 1)
    n_partitions = labels.shape[1]
    for column, size in zip(labels.T, n_labels, strict=True):
        # One more word stands for labels that were not there before.
        known = sum(spell(column[clusters == k], size + 1) for k in range(n_clusters))
        total += 2 * (known + n_outliers * log(size)) / n_partitions
    return total / n


@pytest.fixture
def described(seed):
    """Return label rows and the clusters of these, -1 for outliers."""
    rng = np.random.default_rng(seed)
    clusters = rng.integers(-1, 3, size=80)
    labels = (clusters[:, None] + rng.integers(0, 2, size=(80, 5))) % 4
    labels[:4] = np.arange(4)[:, None]
    return labels, clusters


def measure_length(labels, clusters):
    codes = codes_of(labels)
    kept = (clusters >= 0).astype(float)
    nearest = np.maximum(clusters, 0)
    columns = range(labels.shape[1])
    return describe_length(codes, nearest, kept, clusters.max() + 1, columns)


def test_length_is_that_of_the_slow_twin(described):
    labels, clusters = described
    n_outliers = np.count_nonzero(clusters < 0)
    expected = slow_length(labels, clusters, n_outliers, labels.max(axis=0) + 1)
    assert measure_length(labels, clusters) == pytest.approx(expected)


def test_length_does_not_depend_on_order_or_names(described):
    labels, clusters = described
    rng = np.random.default_rng(0)
    expected = measure_length(labels, clusters)
    order = rng.permutation(len(labels))
    assert measure_length(labels[order], clusters[order]) == pytest.approx(expected)
    renamed = rng.permutation(4)[labels][:, ::-1]
    assert measure_length(renamed, clusters) == pytest.approx(expected)
    names = np.append(rng.permutation(3), -1)
    assert measure_length(labels, names[clusters]) == pytest.approx(expected)


def test_length_counts_rows_however_they_are_gathered_into_codes(described):
    labels, clusters = described
    rows, inverse, counts = np.unique(
        np.column_stack([labels, clusters]),
        axis=0,
        return_inverse=True,
        return_counts=True,
    )
    book = CodeBook(labels.max(axis=0) + 1)
    codes = Codes(book, rows[:, :-1], inverse.ravel(), counts)
    kept = np.where(rows[:, -1] >= 0, counts, 0)
    length = describe_length(codes, np.maximum(rows[:, -1], 0), kept, 3, range(5))
    assert length == pytest.approx(measure_length(labels, clusters))


def test_a_cluster_that_is_two_is_shorter_when_it_is_cut_and_one_is_not(seed):
    rng = np.random.default_rng(seed)
    halves = np.repeat([0, 1], 100)
    one = rng.integers(0, 4, size=(200, 8))
    two = halves[:, None] * 4 + one
    whole = np.zeros(200, int)
    assert measure_length(two, halves) < measure_length(two, whole)
    assert measure_length(one, halves) > measure_length(one, whole)


def test_a_row_like_no_other_is_shorter_as_an_outlier():
    # It alone has the last of many labels, in all partitions.
    labels = np.zeros((200, 6), int)
    labels[:100] = np.arange(100)[:, None] % 3
    labels[-1] = 3
    clusters = np.repeat([0, 1], 100)
    aside = clusters.copy()
    aside[-1] = -1
    usual = clusters.copy()
    usual[-2] = -1
    assert measure_length(labels, aside) < measure_length(labels, usual)


FAR, NEAR = Borders(0.8, 9.0), Borders(0.4, -3.0)


@pytest.mark.parametrize(
    ("told", "borders", "found"),
    [
        ({2: 0.85, 3: 0.85}, {2: FAR, 3: NEAR}, 2),
        # The largest number counts, whatever is between.
        ({2: 0.85, 3: 0.85, 4: 0.85}, {2: FAR, 3: NEAR, 4: FAR}, 4),
        ({2: 0.85}, {2: NEAR}, None),
        # An empty border is not enough if labels tell hardly anything.
        ({2: 0.5}, {2: FAR}, None),
        # Nor if it may be chance.
        ({2: 0.85}, {2: Borders(0.8, 1.0)}, None),
        ({}, {2: FAR}, None),
        ({}, {}, None),
    ],
)
def test_touching_clusters_have_empty_borders_and_are_told_apart(told, borders, found):
    assert find_touching(told, borders) == found
