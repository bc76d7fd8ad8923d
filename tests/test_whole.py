"""The fusion of blocks, against that of all codes in memory."""

from fractions import Fraction

import numpy as np
import pytest

from corral._codes import CodeBook, encode, make_keys
from corral._divergences import COST_STEP, BernoulliKL, CodeLength
from corral._fusion import FusionSettings, Problem, Restart
from corral._journal import Journal
from corral._position import DISTANCE_STEP, FARTHEST
from corral._states import MemoryStates, SpilledStates, State, name_block, pack_state
from corral._threads import ONE_THREAD, use_threads
from corral._whole import Whole, _choose_moves, _Donor, find_aside, list_donors
from tests.test_fuser import draw_labels

CUTS = {"one": [240], "two": [100, 140], "many": [1, 7, 32] * 6, "rows": [1] * 240}
DIVERGENCES = {"code-length": CodeLength(0.01), "holoentropy": BernoulliKL(0.01)}


class Case:
    """Label rows, where they lie, and both ways to fuse them."""

    def __init__(
        self, seed=0, *, n_outliers=12, n_clusters=4, position=True, **options
    ):
        rng = np.random.default_rng(seed)
        self.labels, _ = draw_labels(seed, noise=0.3)
        if options.get("missing"):
            # One more than there are labels is unseen, two more is missing.
            self.labels[rng.random(self.labels.shape) < 0.2] = 5
        self.book = CodeBook(np.full(12, 4))
        self.divergence = DIVERGENCES[options.get("divergence", "code-length")]
        self.weights = options.get("weights")
        self.rarity = np.zeros(self.book.n_slots)
        self.distances = np.zeros(240)
        if position:
            self.rarity = rng.integers(2**34, size=self.book.n_slots) * COST_STEP
            self.distances = rng.integers(2**24, size=240) * DISTANCE_STEP
        separating = range(6, 12) if options.get("separating") else range(0)
        self.settings = FusionSettings(
            n_clusters, n_outliers, "random-codes", 3, 100, separating
        )

    def make_states(self, sizes, threads=ONE_THREAD):
        states = []
        for stop, size in zip(np.cumsum(sizes), sizes, strict=True):
            here = slice(stop - size, stop)
            weights = None if self.weights is None else self.weights[here]
            states.append(State(self.encode(here), self.distances[here], weights))
        return MemoryStates(states, threads)

    def encode(self, here=slice(None)):
        rows = np.ascontiguousarray(self.labels[here].T)
        return encode(self.book, 1, lambda *_: rows, ONE_THREAD)

    def make_whole(self, states):
        return Whole(states, self.book, self.divergence, self.rarity, self.settings)

    def make_problem(self):
        codes = self.encode()
        rare = self.rarity[self.labels + self.book.offsets].sum(axis=1)
        position = rare + self.distances if self.rarity.any() else None
        return Problem(
            codes, self.divergence, self.settings, ONE_THREAD, self.weights, position
        )

    def draw_start(self, seed=0):
        return self.make_problem().draw_start(np.random.default_rng(seed))

    def list_outliers(self, states, found):
        """Return the rows that an outcome sets aside."""
        centers, shares, cut = found.centers, found.shares, found.cut
        table = self.divergence.cost_table(centers, self.book, shares)
        table = table + self.rarity[:, None]

        def find(state, threads, n_level):
            _, costs = state.price_codes(table, threads)
            return find_aside(state, threads, costs, cut.cost, n_level)

        parts = states.map(find, each=cut.n_level)
        starts = np.cumsum(states.sizes) - states.sizes
        return np.concatenate([a + b for a, b in zip(parts, starts, strict=True)])


def assert_equal(case, states, found, fusion):
    """Compare the outcome of blocks with a fusion of codes."""
    np.testing.assert_array_equal(found.centers, fusion.centers)
    np.testing.assert_array_equal(found.shares, fusion.shares)
    np.testing.assert_allclose(found.history, fusion.history, rtol=1e-12)
    np.testing.assert_array_equal(case.list_outliers(states, found), fusion.outliers)
    assert found.converged == fusion.converged


KINDS = {
    "plain": {},
    "no position": {"position": False},
    "no outliers": {"n_outliers": 0},
    "many outliers": {"n_outliers": 200},
    "missing": {"missing": True},
    "holoentropy": {"divergence": "holoentropy"},
    "one cluster": {"n_clusters": 1},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut", CUTS)
def test_one_iteration_is_that_of_codes_in_memory(kind, cut, seed):
    case = Case(seed, **KINDS[kind])
    start = case.draw_start()
    problem, one = case.make_problem(), Restart(start)
    problem.update(problem.place([one]))
    other = Restart(start)
    case.make_whole(case.make_states(CUTS[cut])).solve(other, 1)
    np.testing.assert_array_equal(other.centers, one.centers)
    np.testing.assert_array_equal(other.shares, one.shares)
    assert other.objective == pytest.approx(one.objective, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut", ["one", "many"])
def test_rest_is_that_of_codes_in_memory(kind, cut, seed):
    # From the same starts, of which the best is kept.
    case = Case(seed, **KINDS[kind])
    problem = case.make_problem()
    starts = [case.draw_start(number) for number in range(3)]
    best = problem.choose(problem.solve_all(starts))
    states = case.make_states(CUTS[cut])
    found = case.make_whole(states).solve_best(starts)
    assert_equal(case, states, found, best.to_fusion(problem.codes))


@pytest.mark.parametrize("cut", ["one", "many"])
def test_best_start_is_the_one_that_is_told_apart(cut, seed):
    # More clusters than there are prototypes, so that some end up empty.
    case = Case(seed, n_clusters=9, separating=True)
    problem = case.make_problem()
    starts = [case.draw_start(number) for number in range(3)]
    best = problem.choose(problem.solve_all(starts))
    states = case.make_states(CUTS[cut])
    found = case.make_whole(states).solve_best(starts)
    assert_equal(case, states, found, best.to_fusion(problem.codes))


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_states_on_disk_are_those_in_memory(n_jobs, tmp_path):
    case = Case()
    starts = [case.draw_start()]
    with use_threads(n_jobs) as threads:
        states = case.make_states(CUTS["many"], threads)
        expected = case.make_whole(states).solve_best(starts)
        journal = Journal(tmp_path)
        for index, arrays in enumerate(states.map(lambda state, _: pack_state(state))):
            journal.write(name_block(index), arrays)
        spilled = SpilledStates(journal, case.book, states.sizes, threads)
        found = case.make_whole(spilled).solve_best(starts)
    np.testing.assert_array_equal(found.centers, expected.centers)
    assert found.cut == expected.cut
    assert found.history.tolist() == expected.history.tolist()


def test_history_is_the_same_to_the_last_bit_in_any_cut():
    # Sums of costs are whole numbers, so that they add up exactly.
    case = Case(n_outliers=3)
    case.distances[5:8] = FARTHEST - DISTANCE_STEP
    start = [case.draw_start()]
    histories = {
        tuple(case.make_whole(case.make_states(sizes)).solve_best(start).history)
        for sizes in CUTS.values()
    }
    assert len(histories) == 1
    (history,) = histories
    assert (np.diff(history) <= 0).all()


def test_objective_is_the_mean_cost_of_the_rows_kept():
    case = Case(n_outliers=7)
    states = case.make_states(CUTS["many"])
    found = case.make_whole(states).solve_best([case.draw_start()])
    table = case.divergence.cost_table(found.centers, case.book, found.shares)
    slots = case.labels + case.book.offsets
    costs = (table + case.rarity[:, None])[slots].sum(axis=1).min(axis=1)
    costs = np.delete(costs + case.distances, case.list_outliers(states, found))
    assert len(costs) == 233
    exact = sum(map(Fraction, costs.tolist())) / 233
    assert found.objective == pytest.approx(float(exact), rel=1e-15)


def test_a_restart_that_rests_is_adopted():
    case = Case()
    problem, states = case.make_problem(), case.make_states(CUTS["many"])
    (best,) = problem.solve([Restart(case.draw_start())])
    found = case.make_whole(states).adopt(best)
    assert_equal(case, states, found, best.to_fusion(problem.codes))


def test_the_last_iterations_begin_where_others_ended():
    # Two iterations of a fusion that goes on are the first two of one that does not.
    case = Case()
    states = case.make_states(CUTS["two"])
    begun = Restart(case.draw_start())
    found = case.make_whole(states).finish(begun, 2)
    whole = case.make_whole(states).solve(Restart(case.draw_start()))
    assert found.history.tolist() == whole.history[:2]
    assert not found.converged


def far_away(case, n_clusters=4):
    """Return centres of which all but the first hold labels that no row has."""
    centers = np.zeros((n_clusters, case.book.n_slots))
    centers[0] = case.draw_start()[0]
    case.labels[case.labels == 3] = 2
    for k in range(1, n_clusters):
        centers[k, case.book.offsets + 3] = 1
    return centers


@pytest.mark.parametrize("cut", CUTS)
@pytest.mark.parametrize("n_outliers", [0, 12])
def test_empty_clusters_are_refilled_as_in_memory(cut, n_outliers, seed):
    # With few distinct rows, so that codes are in several blocks.
    case = Case(seed, n_outliers=n_outliers)
    case.labels = case.labels[np.random.default_rng(seed).integers(20, size=240)]
    centers = far_away(case)
    problem, one = case.make_problem(), Restart(centers)
    members = problem.place([one])
    # Three clusters are empty and get one code each.
    labels = members[0][1]
    assert np.bincount(labels, minlength=4)[1:].tolist() == [1, 1, 1]
    problem.update(members)
    other = Restart(centers)
    case.make_whole(case.make_states(CUTS[cut])).solve(other, 1)
    np.testing.assert_array_equal(other.centers, one.centers)
    np.testing.assert_array_equal(other.shares, one.shares)


def test_donors_are_the_costliest_codes_that_are_kept():
    case = Case(n_outliers=20)
    (state,) = case.make_states([240])._states
    table = case.divergence.cost_table(case.draw_start(), case.book, np.full(4, 1 / 4))
    priced = table + case.rarity[:, None]
    _, code_costs = state.price_codes(priced, ONE_THREAD)
    cut = float(np.sort(code_costs[state.codes.inverse] + state.distances)[-20])
    found = list_donors(state, ONE_THREAD, priced, table, cut, 3, 1)
    aside = find_aside(state, ONE_THREAD, code_costs, cut, 1)
    left = np.delete(state.codes.inverse, aside)
    labels, costs = state.one_hot.find_nearest([table], ONE_THREAD)
    keys = make_keys(state.codes)
    for k in range(4):
        mine = [c for c in np.unique(left) if labels[0, c] == k]
        mine.sort(key=lambda c: (-costs[0, c], keys[c]))
        expected = [(costs[0, c], keys[c], k) for c in mine[:3]]
        assert [each for each in found if each.cluster == k] == expected


def test_moves_by_hand():
    # The costliest first, of a cluster that has another code; a code that is found in
    # two blocks moves once, and one that costs nothing does not move.
    donors = [
        _Donor(9.0, 1, 0),
        _Donor(7.0, 2, 0),
        _Donor(9.0, 1, 0),
        _Donor(8.0, 3, 1),
        _Donor(2.0, 4, 2),
        _Donor(0.0, 5, 2),
        _Donor(0.0, 6, 2),
    ]
    assert _choose_moves(donors, np.array([3])) == {1: 3}
    assert _choose_moves(donors, np.array([3, 4])) == {1: 3, 4: 4}
    assert _choose_moves(donors, np.array([3, 4, 5])) == {1: 3, 4: 4}
    assert _choose_moves([], np.array([0])) == {}


@pytest.mark.parametrize("position", [False, True])
def test_weights_count_as_in_memory(position, seed):
    weights = np.random.default_rng(seed).uniform(0, 2, 240)
    weights[::7] = 0
    case = Case(seed, position=position, weights=weights)
    starts = [case.draw_start()]
    problem = case.make_problem()
    fusion = problem.choose(problem.solve_all(starts)).to_fusion(problem.codes)
    states = case.make_states([240])
    found = case.make_whole(states).solve_best(starts)
    np.testing.assert_allclose(found.centers, fusion.centers, atol=1e-12)
    np.testing.assert_allclose(found.shares, fusion.shares, rtol=1e-12)
    assert found.objective == pytest.approx(fusion.objective, rel=1e-9)
    np.testing.assert_array_equal(case.list_outliers(states, found), fusion.outliers)


def test_whole_weights_are_rows_that_are_there_more_than_once():
    # But for the outliers, which are rows and not weights.
    rng = np.random.default_rng(0)
    times = rng.integers(1, 4, size=240)
    weighted = Case(n_outliers=0, weights=times.astype(float))
    repeated = Case(n_outliers=0)
    repeated.labels = np.repeat(repeated.labels, times, axis=0)
    repeated.distances = np.repeat(repeated.distances, times)
    starts = [weighted.draw_start()]
    one = weighted.make_whole(weighted.make_states([240])).solve_best(starts)
    sizes = [100, len(repeated.labels) - 100]
    other = repeated.make_whole(repeated.make_states(sizes)).solve_best(starts)
    np.testing.assert_allclose(one.centers, other.centers, atol=1e-12)
    assert one.objective == pytest.approx(other.objective, rel=1e-12)


def test_outliers_with_all_of_the_weight_are_refused():
    weights = np.zeros(240)
    weights[:5] = 1
    case = Case(n_outliers=5, weights=weights)
    case.distances[:5] += 2**18
    with pytest.raises(ValueError, match="The 5 outliers have all of sample_weight"):
        case.make_whole(case.make_states([240])).solve_best([case.draw_start()])
