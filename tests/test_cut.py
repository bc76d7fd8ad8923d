"""Where the costliest rows begin, against a sort of the costs of all rows."""

import numpy as np
import pytest

from corral import _cut
from corral._codes import CodeBook, encode
from corral._cut import CHUNK_ROWS, chunk_rows, find_cut
from corral._divergences import COST_STEP
from corral._position import DISTANCE_STEP, FARTHEST
from corral._states import MemoryStates, State
from corral._threads import ONE_THREAD, use_threads

BOOK = CodeBook(np.array([3, 2, 4]))


def make_states(labels, distances, sizes, threads=ONE_THREAD):
    """Return the states of blocks of rows of these sizes."""
    states = []
    for stop, size in zip(np.cumsum(sizes), sizes, strict=True):
        here = slice(stop - size, stop)
        rows = np.ascontiguousarray(labels[here].T)
        codes = encode(BOOK, 1, lambda *_, rows=rows: rows, ONE_THREAD)
        states.append(State(codes, distances[here]))
    return MemoryStates(states, threads)


def draw(rng, n_rows, *, n_steps=2**40, n_far=2**20):
    """Return labels, distances and a table; all costs are multiples of a step."""
    labels = np.column_stack([rng.integers(k + 2, size=n_rows) for k in BOOK.n_labels])
    table = rng.integers(n_steps, size=(BOOK.n_slots, 3)) * COST_STEP
    return labels, rng.integers(n_far, size=n_rows) * DISTANCE_STEP, table


def cost(labels, distances, table):
    """Add up what the labels of each row cost in its cheapest cluster."""
    slots = labels + BOOK.offsets
    return table[slots].sum(axis=1).min(axis=1) + distances


def slow_cut(costs, sizes, n_rows):
    """Sort all costs, the first of equal ones before the others."""
    order = np.lexsort((np.arange(len(costs)), -costs))[:n_rows]
    last = costs[order[-1]]
    level = np.sort(order[costs[order] == last])
    borders = np.concatenate([[0], np.cumsum(sizes)])
    return last, tuple(np.histogram(level, borders - 0.5)[0].tolist())


def cut_randomly(rng, n_rows, n_blocks):
    borders = np.sort(rng.choice(np.arange(1, n_rows), n_blocks - 1, replace=False))
    return np.diff([0, *borders, n_rows])


def shrink(monkeypatch, n_bins, n_gathered):
    """Count in few bins, and gather few costs, as if there were many more rows."""
    monkeypatch.setattr(_cut, "_N_BINS", n_bins)
    monkeypatch.setattr(_cut, "_GATHERED", n_gathered)


@pytest.mark.parametrize("bins", [(2**16, 2**20), (2**16, 5), (4, 3), (2, 0), (64, 1)])
@pytest.mark.parametrize("n_steps", [2**40, 2**12, 3, 1])
@pytest.mark.parametrize("n_far", [2**40, 2**12, 1])
def test_equals_a_sort_of_all_costs(monkeypatch, bins, n_steps, n_far, seed):
    # From costs that all differ to costs that are a few steps apart or all the same.
    shrink(monkeypatch, *bins)
    rng = np.random.default_rng(seed)
    parts = draw(rng, 60, n_steps=n_steps, n_far=n_far)
    labels, distances, table = parts
    costs = cost(*parts)
    sizes = cut_randomly(rng, 60, 5)
    states = make_states(labels, distances, sizes)
    for n_rows in (1, 2, 17, 59, 60):
        found = find_cut(states, table, BOOK, n_rows)
        last, n_level = slow_cut(costs, sizes, n_rows)
        assert found.cost == np.partition(costs, 60 - n_rows)[60 - n_rows] == last
        assert found.n_level == n_level


@pytest.mark.parametrize("bins", [(4, 3), (2, 0)])
@pytest.mark.parametrize("n_steps", [2**40, 3])
def test_a_guess_changes_nothing(monkeypatch, bins, n_steps, seed):
    # However far off it is.
    shrink(monkeypatch, *bins)
    rng = np.random.default_rng(seed)
    labels, distances, table = draw(rng, 60, n_steps=n_steps)
    states = make_states(labels, distances, [20, 1, 39])
    for n_rows in (1, 17, 60):
        expected = find_cut(states, table, BOOK, n_rows)
        for factor in (0, 0.5, 0.995, 1, 1.005, 1.01, 2):
            guess = factor * expected.cost
            assert find_cut(states, table, BOOK, n_rows, guess) == expected


def test_no_row_costs_as_much_as_none():
    labels, distances, table = draw(np.random.default_rng(0), 9)
    states = make_states(labels, distances, [4, 5])
    assert find_cut(states, table, BOOK, 0) == (np.inf, (0, 0))


@pytest.mark.parametrize("n_gathered", [2**20, 2])
def test_first_of_equal_rows_are_taken_across_blocks(monkeypatch, n_gathered):
    # By hand: rows cost 1, 5, 1 | 1 | 1, 2, 1. The four costliest are the 5, the 2 and
    # the first two of those that cost 1, one of each of the first two blocks; the
    # sixth and last of all takes the third block's first, too.
    shrink(monkeypatch, 4, n_gathered)
    labels = np.zeros((7, 3), dtype=int)
    distances = np.array([1.0, 5, 1, 1, 1, 2, 1])
    states = make_states(labels, distances, [3, 1, 3])
    nothing = np.zeros((BOOK.n_slots, 1))
    assert find_cut(states, nothing, BOOK, 1) == (5, (1, 0, 0))
    assert find_cut(states, nothing, BOOK, 3) == (1, (1, 0, 0))
    assert find_cut(states, nothing, BOOK, 4) == (1, (2, 0, 0))
    assert find_cut(states, nothing, BOOK, 6) == (1, (2, 1, 1))


def test_costs_as_large_as_they_can_be_and_as_close():
    # The farthest row and one a step below it, with labels that cost a little.
    labels = np.zeros((3, 3), dtype=int)
    distances = np.array([FARTHEST - DISTANCE_STEP, FARTHEST, 0.0])
    table = np.full((BOOK.n_slots, 2), 7 * COST_STEP)
    states = make_states(labels, distances, [1, 1, 1])
    for n_rows, expected in ((1, distances[1]), (2, distances[0]), (3, 0.0)):
        found = find_cut(states, table, BOOK, n_rows)
        assert found.cost == expected + 21 * COST_STEP


@pytest.mark.parametrize("bins", [(2**16, 2**20), (4, 3)])
def test_neither_cut_nor_threads_change_anything(monkeypatch, bins):
    shrink(monkeypatch, *bins)
    monkeypatch.setattr(_cut, "CHUNK_ROWS", 7)
    rng = np.random.default_rng(1)
    labels, distances, table = draw(rng, 80, n_steps=4, n_far=3)
    whole = find_cut(make_states(labels, distances, [80]), table, BOOK, 31)
    for n_jobs in (1, 3):
        with use_threads(n_jobs) as threads:
            sizes = cut_randomly(rng, 80, 9)
            states = make_states(labels, distances, sizes, threads)
            found = find_cut(states, table, BOOK, 31)
        assert found.cost == whole.cost
        assert sum(found.n_level) == sum(whole.n_level)


def test_chunks_are_all_rows_once():
    codes = encode(BOOK, 1, lambda *_: np.zeros((3, 1), dtype=int), ONE_THREAD)
    for n_rows in (1, CHUNK_ROWS - 1, CHUNK_ROWS, 2 * CHUNK_ROWS + 1):
        chunks = chunk_rows(State(codes, np.zeros(n_rows)))
        assert [chunk.start for chunk in chunks] == list(range(0, n_rows, CHUNK_ROWS))
        assert sum(chunk.stop - chunk.start for chunk in chunks) == n_rows


def test_a_block_with_too_many_costs_near_the_guess_does_not_move_the_cut(monkeypatch):
    # More rows are wanted than a block has, so that no number of rows tells it.
    monkeypatch.setattr(_cut, "_GATHERED", 400)
    rng = np.random.default_rng(0)
    distances = rng.integers(100 * 2**20, size=2000) * DISTANCE_STEP
    distances[350:400] = 89.25 + np.arange(50) * DISTANCE_STEP
    labels = np.zeros((2000, len(BOOK.n_labels)), dtype=int)
    states = make_states(labels, distances, [50] * 40)
    table = np.zeros((BOOK.n_slots, 1))
    n_rows = np.count_nonzero(distances > 91) + 60
    expected = find_cut(states, table, BOOK, n_rows)
    assert expected.cost == np.sort(distances)[-n_rows]
    assert find_cut(states, table, BOOK, n_rows, guess=90.0) == expected
