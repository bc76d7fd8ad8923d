"""What the paper proves, checked by numbers against explicit [B B~] and KL."""

import numpy as np
import pytest

from corral._codes import CodeBook
from corral._divergences import COST_STEP, BernoulliKL
from tests.slow_twins import entropy, kl, one_hot, paper_distances

EPS = 2.220446049250313e-16


@pytest.fixture
def clusters(partitions):
    """Return B, an assignment to 3 clusters, and the clusters' means."""
    B = one_hot(partitions)
    labels = np.random.default_rng(0).integers(3, size=len(B))
    labels[:3] = [0, 1, 2]
    means = np.array([B[labels == k].mean(axis=0) for k in range(3)])
    return B, labels, means


def pad(centers, book):
    """Write centres with a slot for unseen and missing labels, as the code does."""
    padded = np.zeros((len(centers), book.n_slots))
    padded[:, book.is_label] = centers
    return padded


def test_lemma_1_centre_is_share_of_each_label(partitions, clusters):
    _, labels, means = clusters
    column = 0
    for partition in partitions.T:
        for label in range(partition.max() + 1):
            shares = [np.mean(partition[labels == k] == label) for k in range(3)]
            np.testing.assert_allclose(means[:, column], shares)
            column += 1
    assert column == means.shape[1]


def test_theorem_1_distance_on_b_is_the_first_half_of_the_entropy(clusters):
    # sum of f(b, m) = -sum_k |C_k| sum_ij p log p
    B, labels, means = clusters
    left = sum(kl(b, means[k], EPS) for b, k in zip(B, labels, strict=True))
    p = np.clip(means, EPS, 1)
    right = -sum(np.sum(labels == k) * np.sum(p[k] * np.log(p[k])) for k in range(3))
    assert left == pytest.approx(right, rel=1e-9)


def test_theorem_2_distance_on_b_and_its_flip_is_the_holoentropy(clusters):
    # sum of f(b, m) + f(b~, m~) = sum_k |C_k| HL(C_k)
    B, labels, means = clusters
    distances = paper_distances(B, means, EPS)
    left = distances[np.arange(len(B)), labels].sum()
    right = sum(np.sum(labels == k) * entropy(means[k]) for k in range(3))
    assert left == pytest.approx(right, rel=1e-9)


@pytest.mark.parametrize("eps", [EPS, 1e-6, 1e-2, 0.2])
def test_table_lookup_is_the_explicit_distance(partitions, clusters, eps):
    B, _, means = clusters
    book = CodeBook(partitions.max(axis=0) + 1)
    table = BernoulliKL(eps).cost_table(pad(means, book), book)
    looked_up = np.array([table[book.offsets + row].sum(axis=0) for row in partitions])
    np.testing.assert_allclose(
        looked_up, paper_distances(B, means, eps), rtol=1e-8, atol=1e-8
    )


@pytest.mark.parametrize("eps", [EPS, 1e-2, 0.2])
def test_clipped_mean_minimises_the_cost_of_a_cluster(clusters, eps):
    # The update can only lower the objective, however large eps is.
    B, labels, means = clusters
    rng = np.random.default_rng(1)
    rows = B[labels == 0]
    at_mean = paper_distances(rows, means[:1], eps).sum()
    for _ in range(50):
        other = np.clip(means[0] + rng.normal(0, 0.1, means.shape[1]), 0, 1)
        assert at_mean <= paper_distances(rows, other[None], eps).sum() + 1e-9


def test_missing_label_costs_nothing_and_unseen_label_costs_most(partitions, clusters):
    _, _, means = clusters
    book = CodeBook(partitions.max(axis=0) + 1)
    table = BernoulliKL(1e-6).cost_table(pad(means, book), book)
    for offset, n_labels in zip(book.offsets, book.n_labels, strict=True):
        slots = table[offset : offset + n_labels + 2]
        assert (slots[n_labels + 1] == 0).all()
        assert (slots[n_labels] >= slots[:n_labels].max(axis=0)).all()


def test_costs_are_whole_multiples_of_a_step(partitions, clusters):
    # So that sums of them are exact, and equal costs are equal numbers.
    _, _, means = clusters
    book = CodeBook(partitions.max(axis=0) + 1)
    multiples = BernoulliKL(EPS).cost_table(pad(means, book), book) / COST_STEP
    np.testing.assert_array_equal(multiples, np.rint(multiples))
    assert np.abs(multiples).sum() < 2**53
