"""The utilities against contingency tables, and their distances against Bregman's."""

import numpy as np
import pytest
from sklearn.metrics import mutual_info_score

from corral._partitions import LabelColumns, Partitioner, find_labels
from corral._threads import use_threads
from corral.rivals._utilities import (
    CategoryUtility,
    ConsensusDistance,
    CosineUtility,
    EntropyUtility,
    LpUtility,
    share_labels,
)

UTILITIES = {
    "U_c": CategoryUtility(),
    "U_H": EntropyUtility(),
    "U_cos": CosineUtility(),
    "U_L5": LpUtility(5),
    "U_L8": LpUtility(8),
    "U_L1.5": LpUtility(1.5),
}

# The convex function of each, of one vector of shares.
MU = {
    "U_c": lambda m: np.sum(m**2),
    "U_H": lambda m: np.sum(m[m > 0] * np.log(m[m > 0])),
    "U_cos": lambda m: np.sqrt(np.sum(m**2)),
    "U_L5": lambda m: np.sum(m**5) ** (1 / 5),
    "U_L8": lambda m: np.sum(m**8) ** (1 / 8),
    "U_L1.5": lambda m: np.sum(m**1.5) ** (1 / 1.5),
}

all_utilities = pytest.mark.parametrize("name", UTILITIES)
both_forms = pytest.mark.parametrize("normalized", [False, True])


def contingency(clusters, partition):
    """Return the shares p_kj of the rows that are in cluster k and have label j."""
    counts = np.zeros((clusters.max() + 1, partition.max() + 1))
    np.add.at(counts, (clusters, partition), 1)
    return counts / counts.sum()


def literal_utility(name, clusters, partition, normalized):
    """Return U(pi, pi_i) of rows that all have a label, from the contingency table."""
    p = contingency(clusters, partition)
    mu, whole = MU[name], p.sum(axis=0)
    gain = sum(row.sum() * mu(row / row.sum()) for row in p if row.any()) - mu(whole)
    return gain / abs(mu(whole)) if normalized else gain


def encode(labels):
    """Return the codes of a matrix of labels, -1 missing."""
    columns = [(column, column == -1) for column in labels.T]
    partitioner = Partitioner(None, [], LabelColumns(find_labels(columns)))
    with use_threads(1) as threads:
        return partitioner.open(None, columns).encode(threads)


def make_distance(name, codes, normalized):
    shares = share_labels(codes, codes.counts.astype(float))
    return ConsensusDistance(
        UTILITIES[name], codes.book, *shares, normalized=normalized
    )


def slots_of(codes):
    """Return the columns of each row's labels in the one-hot matrix."""
    return (codes.rows + codes.book.offsets)[codes.inverse]


def mean_cost(name, labels, clusters, normalized):
    """Return what a row costs on average at the centres of these clusters."""
    codes = encode(labels)
    slots = slots_of(codes)
    centers = np.zeros((clusters.max() + 1, codes.book.n_slots))
    for k in range(len(centers)):
        for j, column in enumerate(slots[clusters == k].T):
            known = column[labels[clusters == k, j] != -1]
            np.add.at(centers[k], known, 1 / max(len(known), 1))
    distance = make_distance(name, codes, normalized)
    table = distance.cost_table(centers, codes.book)
    costs = sum(table[slots[:, j], clusters] for j in range(slots.shape[1]))
    return costs.mean(), distance.cost_of_one_cluster


def random_case(seed, n=80, r=6, n_clusters=4):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, rng.integers(2, 6, size=r), size=(n, r))
    labels[:6] = np.minimum(np.arange(6)[:, None], labels.max(axis=0))
    return labels, rng.permutation(np.arange(n) % n_clusters)


@all_utilities
@both_forms
def test_objective_is_a_constant_less_the_utilities(name, normalized, seed):
    """Proves the theorem of KCC: K-means' objective and the utilities add up."""
    labels, clusters = random_case(seed)
    cost, constant = mean_cost(name, labels, clusters, normalized)
    total = sum(
        literal_utility(name, clusters, column, normalized) for column in labels.T
    )
    assert total > 0
    assert constant - cost == pytest.approx(total, abs=1e-7)


@all_utilities
@both_forms
def test_partitions_with_missing_labels_count_by_their_share(name, normalized, seed):
    """Proves the theorem for incomplete partitions."""
    labels, clusters = random_case(seed)
    rng = np.random.default_rng(seed + 1000)
    labels = np.where(rng.random(labels.shape) < 0.3, -1, labels)
    cost, constant = mean_cost(name, labels, clusters, normalized)
    total = 0
    for column in labels.T:
        known = column >= 0
        gain = literal_utility(name, clusters[known], column[known], normalized)
        total += known.mean() * gain
    assert constant - cost == pytest.approx(total, abs=1e-7)


@all_utilities
def test_distance_is_bregmans(name, seed):
    """Compares with mu(b) - mu(m) - (b - m) grad mu(m), the gradient by differences."""
    rng = np.random.default_rng(seed)
    codes = encode(np.arange(4)[:, None])
    mu, step = MU[name], 1e-6
    m = rng.dirichlet(np.ones(4))
    gradient = [(mu(m + step * e) - mu(m - step * e)) / (2 * step) for e in np.eye(4)]
    centers = np.append(m, [0, 0])[None]
    distances = UTILITIES[name].distances(centers, codes.book)[0]
    for j, b in enumerate(np.eye(4)):
        bregman = mu(b) - mu(m) - (b - m) @ gradient
        assert distances[j] == pytest.approx(bregman, abs=1e-5)


@all_utilities
def test_value_is_the_convex_function(name, seed):
    labels, clusters = random_case(seed)
    codes = encode(labels)
    shares, known = share_labels(codes, codes.counts.astype(float))
    values = UTILITIES[name].value(shares[None], codes.book)[0]
    literal = [MU[name](np.bincount(column) / len(column)) for column in labels.T]
    np.testing.assert_allclose(values, literal)
    np.testing.assert_array_equal(known, 1)
    assert UTILITIES[name].value_of_code == MU[name](np.array([0.0, 1.0]))


def test_entropy_utility_is_mutual_information(seed):
    labels, clusters = random_case(seed)
    cost, constant = mean_cost("U_H", labels, clusters, normalized=False)
    total = sum(mutual_info_score(clusters, column) for column in labels.T)
    assert constant - cost == pytest.approx(total, abs=1e-8)


def test_by_hand():
    # One partition 0 0 1 1 of four rows, clusters 0 0 0 1: cluster 0 has shares 2/3
    # and 1/3, cluster 1 has 0 and 1, all rows have 1/2 and 1/2.
    labels, clusters = np.array([[0], [0], [1], [1]]), np.array([0, 0, 0, 1])
    by_hand = {
        "U_c": 3 / 4 * (4 / 9 + 1 / 9) + 1 / 4 - 1 / 2,
        "U_H": 3 / 4 * (2 / 3 * np.log(2 / 3) + 1 / 3 * np.log(1 / 3)) + np.log(2),
        "U_cos": 3 / 4 * np.sqrt(5) / 3 + 1 / 4 - np.sqrt(1 / 2),
        "U_L5": 3 / 4 * 33**0.2 / 3 + 1 / 4 - (1 / 16) ** 0.2,
    }
    whole = {"U_c": 1 / 2, "U_H": np.log(2), "U_cos": 0.5**0.5, "U_L5": 16**-0.2}
    for name, utility in by_hand.items():
        cost, constant = mean_cost(name, labels, clusters, normalized=False)
        assert constant - cost == pytest.approx(utility, abs=1e-9), name
        cost, constant = mean_cost(name, labels, clusters, normalized=True)
        assert constant - cost == pytest.approx(utility / whole[name], abs=1e-9), name


def test_distances_by_hand():
    # Shares 3/5 and 4/5 of the length 1: not shares at all, but easy to follow.
    book = encode(np.array([[0], [1]])).book
    center = np.array([[0.6, 0.8, 0.0, 0.0]])
    squared = UTILITIES["U_c"].distances(center, book)[0, :2]
    np.testing.assert_allclose(squared, [0.4**2 + 0.8**2, 0.6**2 + 0.2**2])
    cosine = UTILITIES["U_cos"].distances(center, book)[0, :2]
    np.testing.assert_allclose(cosine, [0.4, 0.2])
    kl = UTILITIES["U_H"].distances(center, book)[0, :2]
    np.testing.assert_allclose(kl, -np.log([0.6, 0.8]))


@all_utilities
def test_missing_labels_cost_nothing_and_new_ones_as_much_as_a_share_of_0(name):
    codes = encode(np.array([[0, 0], [0, 1], [1, -1]]))
    distance = make_distance(name, codes, normalized=False)
    # In the second cluster nobody has a label in the second partition.
    centers = np.array([[1.0, 0, 0, 0, 0.5, 0.5, 0, 0], [0.0, 1, 0, 0, 0, 0, 0, 0]])
    table = distance.cost_table(centers, codes.book)
    assert np.isfinite(table).all()
    assert not table[codes.book.is_missing].any()
    # Label 1 of the first partition is not in the first cluster; slot 2 is unseen.
    assert table[2, 0] == table[1, 0] > 0
    # No label of the second partition is nearer to the second cluster than another.
    assert table[4, 1] == table[5, 1] == table[6, 1] > 0


@all_utilities
def test_a_partition_with_one_label_tells_nothing(name):
    labels, clusters = random_case(0)
    constant_column = np.zeros((len(labels), 1), dtype=int)
    more = np.concatenate([labels, constant_column], axis=1)
    for normalized in (False, True):
        cost, constant = mean_cost(name, labels, clusters, normalized)
        cost_more, constant_more = mean_cost(name, more, clusters, normalized)
        assert constant_more - cost_more == pytest.approx(constant - cost)


def test_a_partition_without_labels_is_left_out():
    codes = encode(np.array([[0, -1], [1, -1]]))
    shares, known = share_labels(codes, np.array([1.0, 3.0]))
    np.testing.assert_array_equal(np.sort(shares), [0, 0, 0, 0, 0.25, 0.75])
    np.testing.assert_array_equal(known, [1, 0])
    assert make_distance("U_c", codes, normalized=True).weights[1] == 0


def test_high_norms_do_not_underflow():
    # 0.01 ** 400 is 0 in floating point.
    book = encode(np.array([[0], [1]])).book
    shares = np.array([[0.01, 0.01, 0.0, 0.0]])
    value = LpUtility(400).value(shares, book)[0, 0]
    assert value == pytest.approx(0.01 * 2 ** (1 / 400))
