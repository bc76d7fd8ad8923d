"""What the paper proves, checked by numbers against explicit [B B~] and KL."""

import numpy as np
import pytest

from corral._codes import CodeBook
from corral._divergences import COST_STEP, BernoulliKL
from corral._threads import use_threads
from tests.slow_twins import entropy, kl, one_hot, paper_distances
from tests.test_fusion import problem_of

EPS = 2.220446049250313e-16


@pytest.fixture
def clusters(partitions):
    """Return B, an assignment to 3 clusters, and the means as the fusion takes them."""
    labels = np.random.default_rng(0).integers(3, size=len(partitions))
    labels[:3] = [0, 1, 2]
    problem = problem_of(partitions)
    members = np.zeros((problem.n_codes, 3))
    np.add.at(members, (problem.codes.inverse, labels), 1)
    with use_threads(1) as threads:
        problem._threads = threads
        means = problem.means(lambda here: members[here])
    return one_hot(partitions), labels, means[:, problem.codes.book.is_label]


def look_up(partitions, centers, eps):
    """Return the cost of each row in each cluster, from the table."""
    book = CodeBook(partitions.max(axis=0) + 1)
    table = BernoulliKL(eps).cost_table(pad(centers, book), book)
    return np.array([table[book.offsets + row].sum(axis=0) for row in partitions])


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


def test_theorem_2_costs_add_up_to_the_holoentropy(partitions, clusters):
    # sum of f(b, m) + f(b~, m~) = sum_k |C_k| HL(C_k)
    B, labels, means = clusters
    right = sum(np.sum(labels == k) * entropy(means[k]) for k in range(3))
    mine = (np.arange(len(B)), labels)
    assert paper_distances(B, means, EPS)[mine].sum() == pytest.approx(right, rel=1e-9)
    assert look_up(partitions, means, EPS)[mine].sum() == pytest.approx(right, rel=1e-7)


@pytest.mark.parametrize("eps", [EPS, 1e-6, 1e-2, 0.2])
def test_table_lookup_is_the_explicit_distance(partitions, clusters, eps):
    B, _, means = clusters
    np.testing.assert_allclose(
        look_up(partitions, means, eps),
        paper_distances(B, means, eps),
        rtol=1e-8,
        atol=1e-8,
    )


@pytest.mark.parametrize("eps", [EPS, 1e-2, 0.2])
def test_mean_minimises_the_cost_of_a_cluster(partitions, clusters, eps):
    # The update can only lower the objective, however large eps is.
    _, labels, means = clusters
    rng = np.random.default_rng(1)
    mine = labels == 0
    at_mean = look_up(partitions, means[:1], eps)[mine].sum()
    for _ in range(50):
        other = np.clip(means[:1] + rng.normal(0, 0.1, means.shape[1]), 0, 1)
        assert at_mean <= look_up(partitions, other, eps)[mine].sum() + 1e-6


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
