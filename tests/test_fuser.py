"""Stage 3 for many numbers: shared trees, and fusions that do not remember."""

import numpy as np
import pytest
from scipy.cluster.hierarchy import linkage

from corral import _linkage
from corral._codes import CodeBook, Codes
from corral._divergences import BernoulliKL, CodeLength
from corral._fuser import Fuser, _list_steps
from corral._fusion import Fusion, FusionSettings, Problem, Restart
from corral._linkage import N_STARTS, Forest, grow_trees
from corral._position import DISTANCE_STEP
from corral._states import MemoryStates, State
from corral._threads import use_threads
from corral._whole import Whole, find_aside
from tests.slow_twins import same_clustering
from tests.test_codes import encode_matrix
from tests.test_fusion import labels_of


def draw_labels(seed=0, n_rows=240, n_clusters=4, n_partitions=12, noise=0.2):
    """Return label rows around a few prototypes, and which prototype each has."""
    rng = np.random.default_rng(seed)
    prototypes = np.array([rng.permutation(n_clusters) for _ in range(n_partitions)]).T
    y = np.arange(n_rows) % n_clusters
    is_noise = rng.random((n_rows, n_partitions)) < noise
    labels = np.where(
        is_noise, rng.integers(n_clusters, size=is_noise.shape), prototypes[y]
    )
    labels[: n_clusters + 1] = np.minimum(np.arange(n_clusters + 1), n_clusters - 1)[
        :, None
    ]
    return labels, y


@pytest.fixture
def labels():
    return draw_labels()[0]


@pytest.fixture
def position():
    drawn = np.random.default_rng(1).exponential(size=240)
    return np.rint(drawn / DISTANCE_STEP) * DISTANCE_STEP


class Fusing:
    """A fuser of some rows of a label matrix or of all; it fuses all rows."""

    def __init__(
        self, labels, threads, position=None, divergence=None, n_sampled=2**12
    ):
        self.divergence = divergence or CodeLength(0.01)
        self.codes = encode_matrix(labels)
        self.distances = np.zeros(len(labels)) if position is None else position
        separating = range(labels.shape[1]) if divergence is None else range(0)
        self.settings = FusionSettings(1, 0, "linkage", N_STARTS, 100, separating)
        self.is_sample = n_sampled < len(labels)
        rng = np.random.default_rng(0)
        rows = np.sort(rng.permutation(len(labels))[:n_sampled])
        problem = Problem(
            self.codes.take(rows),
            self.divergence,
            self.settings,
            threads,
            None,
            None if position is None else position[rows],
        )
        self.fuser = Fuser(problem, len(labels), rng)

    def fuse(self, n_clusters, n_outliers):
        """Come to rest with these numbers, and do the last iterations on all rows."""
        best = self.fuser.rest(n_clusters, n_outliers)
        codes, numbers = self.codes, (n_clusters, n_outliers)
        settings = FusionSettings(*numbers, "linkage", N_STARTS, 100)
        state = State(codes, self.distances)
        with use_threads(1) as threads:
            states = MemoryStates([state], threads)
            nothing = np.zeros(codes.book.n_slots)
            whole = Whole(states, codes.book, self.divergence, nothing, settings)
            found = whole.finish(best, 2) if self.is_sample else whole.adopt(best)
            table = self.divergence.cost_table(found.centers, codes.book, found.shares)
            labels, costs = state.price_codes(table, threads)
            (n_level,) = found.cut.n_level
            outliers = find_aside(state, threads, costs, found.cut.cost, n_level)
        return Fusion(
            found.centers,
            found.shares,
            labels,
            costs,
            outliers,
            found.objective,
            found.history,
            found.converged,
        )


def make_fuser(labels, threads, position=None, divergence=None):
    return Fusing(labels, threads, position, divergence).fuser


def fuse_alone(labels, numbers, position=None, **options):
    """Return the fusion of a fuser that does nothing else."""
    with use_threads(1) as threads:
        return Fusing(labels, threads, position, **options).fuse(*numbers)


def assert_same(one, other):
    np.testing.assert_array_equal(one.code_labels, other.code_labels)
    np.testing.assert_array_equal(one.code_costs, other.code_costs)
    np.testing.assert_array_equal(one.centers, other.centers)
    np.testing.assert_array_equal(one.outliers, other.outliers)
    assert one.objective == other.objective


def slow_trees(codes, present):
    """Link some codes by the share of known labels in which they differ."""
    missing = codes.book.n_labels + 1
    distances = []
    for i, a in enumerate(codes.rows[present]):
        for b in codes.rows[present][i + 1 :]:
            known = (a != missing) & (b != missing)
            distances.append(np.mean(a[known] != b[known]) if known.any() else 1.0)
    return [linkage(np.array(distances), method) for method in ("single", "average")]


@pytest.mark.parametrize("has_missing", [False, True])
def test_trees_are_those_of_the_codes_that_are_not_strange(labels, has_missing):
    codes = encode_matrix(labels[:60])
    rng = np.random.default_rng(0)
    if has_missing:
        gone = rng.random(codes.rows.shape) < 0.1
        rows = np.where(gone, codes.book.n_labels + 1, codes.rows)
        codes = Codes(codes.book, rows, codes.inverse, codes.counts)
    weights = codes.weigh(None)
    forest = Forest(codes, weights, rng)
    for share in (0, 0.3, 0.8):
        strange = np.where(rng.random(len(weights)) < share, weights, 0)
        trees = forest.find_trees(strange, 2)
        present = np.flatnonzero(strange < weights)
        np.testing.assert_array_equal(trees.present, present)
        np.testing.assert_array_equal(trees.weights, weights - strange)
        for tree, expected in zip(trees.trees, slow_trees(codes, present), strict=True):
            np.testing.assert_allclose(tree, expected)


def test_trees_without_strange_codes_are_those_of_one_fusion(labels):
    codes = encode_matrix(labels)
    weights, rng = codes.weigh(None), np.random.default_rng(0)
    strange = np.zeros_like(weights)
    forest = Forest(codes, weights, rng).find_trees(strange, 3)
    alone = grow_trees(codes, weights, strange, 3, rng)
    for here, there in zip(
        forest.list_starts(3, N_STARTS), alone.list_starts(3, N_STARTS), strict=True
    ):
        np.testing.assert_array_equal(here, there)


def test_a_code_of_which_some_samples_are_strange_weighs_less():
    codes = encode_matrix(np.array([[0, 0]] * 5 + [[1, 1]] * 4 + [[1, 0]]))
    weights = codes.weigh(None)
    forest = Forest(codes, weights, np.random.default_rng(0))
    trees = forest.find_trees(np.minimum(weights, 2), 2)
    assert sorted(trees.weights) == [0, 2, 3]


def test_strange_codes_stay_where_too_few_would_be_left(labels):
    codes = encode_matrix(labels)
    weights = codes.weigh(None)
    forest = Forest(codes, weights, np.random.default_rng(0))
    strange = weights.copy()
    strange[:2] = 0
    assert len(forest.find_trees(strange, 2).present) == 2
    assert len(forest.find_trees(strange, 3).present) == len(weights)


def test_one_code_has_no_tree_and_is_one_start():
    codes = encode_matrix(np.zeros((5, 3), int))
    trees = Forest(codes, codes.weigh(None), np.random.default_rng(0)).find_trees(
        np.zeros(1), 1
    )
    assert trees.trees == []
    np.testing.assert_array_equal(trees.list_starts(1, N_STARTS), [[[5.0]]])


def test_trees_are_grown_once(labels, monkeypatch):
    codes = encode_matrix(labels)
    forest = Forest(codes, codes.weigh(None), np.random.default_rng(0))
    strange = np.zeros(len(codes.rows))
    trees = forest.find_trees(strange, 2)
    monkeypatch.setattr(_linkage, "linkage", None)
    assert forest.find_trees(strange.copy(), 7) is trees


def test_many_codes_are_thinned_out_and_strange_ones_are_not_among_them(monkeypatch):
    # Codes of 49 samples: a 49th, 49 times, is not quite one.
    monkeypatch.setattr(_linkage, "_TREE_SAMPLES", 30)
    rows = np.random.default_rng(0).permutation(60)[:, None].astype(np.uint8)
    codes = Codes(
        CodeBook(np.array([60])), rows, np.repeat(np.arange(60), 49), np.full(60, 49)
    )
    weights = codes.weigh(None)
    forest = Forest(codes, weights, np.random.default_rng(0))
    strange = np.zeros(60)
    assert len(forest.find_trees(strange, 2).present) == 30
    strange[::2] = 49
    present = forest.find_trees(strange, 2).present
    assert 5 < len(present) < 25
    assert (present % 2 == 1).all()


def test_steps_by_hand():
    # Powers of 1.25, rounded up: 1, 1.25, 1.56, 1.95, 2.44, 3.05, 3.81, 4.77, ...
    assert _list_steps(10).tolist() == [1, 2, 3, 4, 5, 6, 8, 10]


@pytest.mark.parametrize("n_samples", [1, 2, 7, 64, 1000])
def test_few_steps_reach_from_one_to_all(n_samples):
    steps = _list_steps(n_samples)
    assert (steps[0], steps[-1]) == (1, n_samples)
    assert (np.diff(steps) > 0).all()
    # Rounding up adds a quarter, and what makes the number whole.
    assert (steps[1:] <= np.ceil(1.25 * steps[:-1])).all()
    assert len(steps) <= 4 * np.log2(n_samples) + 1


NUMBERS = [(3, 5), (1, 0), (4, 40), (2, 0), (6, 13), (4, 5), (3, 6)]


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("n_sampled", [2**12, 100])
def test_fusions_are_the_same_whatever_was_fused_before(
    labels, position, n_jobs, n_sampled
):
    expected = {
        numbers: fuse_alone(labels, numbers, position, n_sampled=n_sampled)
        for numbers in NUMBERS
    }
    with use_threads(n_jobs) as threads:
        fusing = Fusing(labels, threads, position, n_sampled=n_sampled)
        for order in (NUMBERS, NUMBERS[::-1]):
            for numbers in order:
                assert_same(fusing.fuse(*numbers), expected[numbers])
        list(fusing.fuser.grow_trees())
        fusing.fuser.follow(fusing.fuser.sweep([2, 4], 9)[4], 30)
        for numbers in NUMBERS:
            assert_same(fusing.fuse(*numbers), expected[numbers])


def test_fusions_go_on_with_other_threads(labels, position):
    with use_threads(2) as threads:
        fusing = Fusing(labels, threads, position)
        before = fusing.fuse(3, 5)
    with use_threads(1) as threads:
        fusing.fuser.use_threads(threads)
        assert_same(fusing.fuse(3, 5), before)


@pytest.mark.parametrize("n_sampled", [2**12, 100])
@pytest.mark.parametrize("has_position", [False, True])
def test_exactly_so_many_are_set_aside_for_all_numbers(
    labels, position, n_sampled, has_position
):
    where = position if has_position else None
    with use_threads(1) as threads:
        fuser = Fusing(labels, threads, where, n_sampled=n_sampled)
        for n_clusters in (1, 2, 7):
            for n_outliers in (0, 1, 17, 120, 240 - n_clusters):
                fusion = fuser.fuse(n_clusters, n_outliers)
                assert len(np.unique(fusion.outliers)) == n_outliers
                assert fusion.centers.shape[0] == n_clusters
                assert fusion.code_labels.max() < n_clusters
                assert np.isfinite(fusion.objective)


def test_more_clusters_than_codes_that_are_not_strange(labels, position):
    # All but a few of the codes are strange; then all of them are in the trees.
    with use_threads(1) as threads:
        fuser = Fusing(labels[:30], threads, position[:30])
        n_codes = len(np.unique(labels[:30], axis=0))
        fusion = fuser.fuse(n_codes - 2, 2)
        assert len(fusion.outliers) == 2
        assert fusion.centers.shape[0] == n_codes - 2


def test_planted_clusters_are_found_with_the_samples_and_without(seed):
    labels, y = draw_labels(seed, noise=0.05)
    assert same_clustering(
        labels_of(fuse_alone(labels, (4, 0)), encode_matrix(labels))[5:], y[5:]
    )
    # Trees and restarts see a hundred samples, but all are labelled.
    fusion = fuse_alone(labels, (4, 0), n_sampled=100)
    assert same_clustering(labels_of(fusion, encode_matrix(labels))[5:], y[5:])


def test_samples_of_trees_have_their_share_of_the_outliers(labels, position):
    # Rows far out are set aside in the sample as they are in all rows.
    position[::10] += 100
    fusion = fuse_alone(labels, (4, 24), position, n_sampled=120)
    np.testing.assert_array_equal(fusion.outliers, np.arange(0, 240, 10))


def test_sweep_leaves_out_numbers_larger_than_that_of_codes():
    labels = np.repeat(np.eye(3, dtype=int), 10, axis=0)
    with use_threads(1) as threads:
        found = make_fuser(labels, threads).sweep(range(1, 6), 0)
    assert list(found) == [1, 2, 3]
    assert found[3].objective < found[2].objective < found[1].objective


def measure_objective(fuser, centers, shares, position, n_outliers):
    """Return the mean cost of the rows that these centres keep."""
    codes = fuser._problem.codes
    table = fuser._problem.divergence.cost_table(centers, codes.book, shares)
    slots = codes.rows + codes.book.offsets
    costs = table[slots].sum(axis=1).min(axis=1)[codes.inverse] + position
    return np.sort(costs)[: len(costs) - n_outliers].mean()


def test_sweep_ends_no_higher_than_any_start(labels, position):
    # Where restarts are compared by their objective.
    with use_threads(1) as threads:
        fuser = make_fuser(labels, threads, position, BernoulliKL(0.01))
        for n_clusters, fusion in fuser.sweep(range(1, 7), 12).items():
            assert (np.diff(fusion.history) <= 0).all()
            fuser._set_numbers(n_clusters, 12)
            for centers in fuser._list_starts():
                shares = Restart(centers).shares
                start = measure_objective(fuser, centers, shares, position, 12)
                assert fusion.objective <= start + 1e-9


@pytest.mark.parametrize("n_outliers", [0, 12, 60])
def test_follow_ends_no_higher_than_it_starts(labels, position, n_outliers):
    with use_threads(1) as threads:
        fuser = make_fuser(labels, threads, position)
        for fusion in fuser.sweep(range(1, 7), 12).values():
            followed = fuser.follow(fusion, n_outliers)
            start = measure_objective(
                fuser, fusion.centers, fusion.shares, position, n_outliers
            )
            assert followed.history[0] == pytest.approx(start)
            assert followed.objective <= start + 1e-9
            assert len(followed.outliers) == n_outliers
            assert len(followed.centers) == len(fusion.centers)


def test_no_start_is_made_twice(labels):
    with use_threads(1) as threads:
        fuser = make_fuser(labels, threads)
        fuser._set_numbers(4, 0)
        starts = fuser._list_starts()
    assert 1 <= len(starts) <= N_STARTS
    assert len({each.tobytes() for each in starts}) == len(starts)
