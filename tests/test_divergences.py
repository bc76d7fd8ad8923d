"""The code length of labels, against its formula and its promises."""

import numpy as np
import pytest

from corral import COR
from corral._codes import CodeBook
from corral._divergences import _CLUSTER_WEIGHT, COST_STEP, CodeLength, raise_to_floor
from corral._fusion import FusionSettings, Problem, Restart
from corral._threads import use_threads
from tests.slow_twins import one_hot
from tests.test_codes import encode_matrix
from tests.test_fusion import labels_of


def shares_of(labels, members, book):
    """Return the share of each label in each cluster, with all slots."""
    columns = []
    for j, n in enumerate(book.n_labels):
        hot = np.eye(n)[labels[:, j]]
        counts = np.array([hot[members == k].sum(axis=0) for k in (0, 1, 2)])
        means = counts / counts.sum(axis=1, keepdims=True)
        columns.append(np.column_stack([means, np.zeros((3, 2))]))
    return np.concatenate(columns, axis=1)


@pytest.fixture
def clustered():
    """Return labels of three partitions, clusters of the rows, and the book."""
    rng = np.random.default_rng(0)
    members = rng.integers(0, 3, size=200)
    n_labels = np.array([3, 4, 2])
    noise = rng.integers(0, n_labels, size=(200, 3))
    clear = np.minimum(members[:, None], n_labels - 1)
    labels = np.where(rng.random((200, 3)) < 0.3, noise, clear)
    return labels, members, CodeBook(n_labels)


def entropy(shares):
    shares = shares[shares > 0]
    return -(shares * np.log(shares)).sum()


def test_the_cost_of_a_partition_is_what_its_labels_do_not_tell(clustered):
    # H(L) - I + lambda H(C), added up over the partitions.
    labels, members, book = clustered
    centers = shares_of(labels, members, book)
    sizes = np.bincount(members) / len(members)
    table = CodeLength(1e-12).cost_table(centers, book, sizes)
    slots = labels + book.offsets
    found = table[slots, members[:, None]].sum() / len(members)
    expected = 0
    for j, n in enumerate(book.n_labels):
        joint = np.zeros((3, n))
        np.add.at(joint, (members, labels[:, j]), 1 / len(members))
        information = entropy(joint.sum(0)) + entropy(sizes) - entropy(joint.ravel())
        expected += (
            entropy(joint.sum(0)) - information + _CLUSTER_WEIGHT * entropy(sizes)
        )
    assert found == pytest.approx(expected, abs=1e-6)


def test_no_share_is_below_its_floor_and_all_add_up_to_one(clustered):
    labels, members, book = clustered
    centers = shares_of(labels, members, book)
    floor = np.full(book.n_slots, 0.08)
    shares = raise_to_floor(centers, floor, book)
    assert (shares >= 0.08).all()
    sums = np.add.reduceat(np.where(book.is_label, shares, 0), book.offsets, axis=1)
    np.testing.assert_allclose(sums, 1)
    low = (centers < 0.08) & book.is_label
    assert low.any()
    np.testing.assert_array_equal(shares[low], 0.08)


def test_raised_shares_cost_least_of_all_above_the_floor(seed):
    # Against many others above the floor, for the same counts.
    rng = np.random.default_rng(seed)
    book = CodeBook(np.array([5]))
    counts = rng.integers(0, 4, size=5) * np.array([0, 1, 10, 30, 2])
    counts[2] += 1
    centers = np.append(counts / counts.sum(), [0, 0])[None]
    best = raise_to_floor(centers, np.full(7, 0.03), book)[0, :5]
    lowest = -(counts * np.log(best)).sum()
    others = 0.03 + 0.85 * rng.dirichlet(np.full(5, 0.5), size=20000)
    costs = -(counts * np.log(others)).sum(axis=1)
    assert lowest <= costs.min() + 1e-9


def test_missing_costs_nothing_and_unseen_costs_the_most(clustered):
    labels, members, book = clustered
    centers = shares_of(labels, members, book)
    table = CodeLength(0.01).cost_table(centers, book, np.full(3, 1 / 3))
    assert (table[book.is_missing] == 0).all()
    unseen = ~book.is_label & ~book.is_missing
    for j, slot in enumerate(np.flatnonzero(unseen)):
        here = slice(book.offsets[j], book.offsets[j] + book.n_labels[j])
        assert (table[slot] >= table[here]).all()
    np.testing.assert_array_equal(table % COST_STEP, 0)


@pytest.mark.parametrize("eps", [1e-12, 0.01, 0.3])
@pytest.mark.parametrize("with_offsets", [False, True])
def test_objective_never_rises(eps, with_offsets, seed):
    # Every iteration, not only those that are kept: each is started by itself.
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, size=(150, 6))
    offsets = rng.exponential(size=150) if with_offsets else None
    settings = FusionSettings(3, 12, "random-codes", 1, 1)
    with use_threads(1) as threads:
        problem = Problem(
            encode_matrix(labels), CodeLength(eps), settings, threads, None, offsets
        )
        restart = Restart(problem.draw_start(np.random.default_rng(seed)))
        before = np.inf
        for _ in range(8):
            step = Restart(restart.centers)
            step.shares = restart.shares
            problem.solve([step])
            assert step.objective <= before + 1e-9
            before, restart = step.objective, step
            if problem.n_filled(step) < settings.n_clusters:
                # To refill a cluster that lost all its rows is no step downhill.
                break


def test_fusion_on_codes_is_fusion_on_rows(seed):
    # Repeated rows count as often as they stand there.
    rng = np.random.default_rng(seed)
    few = rng.integers(0, 3, size=(12, 5))
    labels = few[rng.integers(0, 12, size=90)]
    settings = FusionSettings(2, 5, "random-codes", 1, 100)
    codes = encode_matrix(labels)
    with use_threads(1) as threads:
        problem = Problem(codes, CodeLength(0.01), settings, threads, None, None)
        [restart] = problem.solve(
            [Restart(problem.draw_start(np.random.default_rng(seed)))]
        )
    fusion = restart.to_fusion(codes)
    found = labels_of(fusion, codes)
    kept = found >= 0
    sizes = np.bincount(found[kept], minlength=2)
    if not sizes.all():
        pytest.skip("a cluster is empty with this seed")
    hot = one_hot(labels)
    means = np.array([hot[found == k].mean(axis=0) for k in (0, 1)])
    np.testing.assert_allclose(fusion.centers[:, codes.book.is_label], means)
    np.testing.assert_allclose(fusion.shares, sizes / sizes.sum())


def test_all_clusters_are_kept_where_nothing_tells_them_apart(seed):
    # Uniform rows: one cluster would be the shortest description.
    X = np.random.default_rng(seed).uniform(size=(300, 6))
    model = COR(4, n_outliers=10, random_state=seed).fit(X)
    assert set(model.labels_) == {-1, 0, 1, 2, 3}


def test_clusters_of_unequal_size_are_kept(seed):
    # The paper's distance would rather halve the large one. Of any five draws of
    # partitions, most; one draw in seventy does not.
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1, 2], [800, 60, 60])
    X = rng.normal(size=(920, 2)) + 12 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    are_kept = []
    for draw in range(5):
        model = COR(3, n_outliers=0, n_resamples=0, random_state=100 * draw + seed)
        sizes = sorted(np.bincount(model.fit(X).labels_))
        are_kept.append(sizes == [60, 60, 800])
    assert sum(are_kept) >= 3
