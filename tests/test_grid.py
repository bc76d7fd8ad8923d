"""Exact sums."""

import numpy as np
import pytest
from scipy import sparse

from corral._grid import MAX_WHOLE_FLOAT32, Grid


def test_sums_are_the_same_in_any_order(seed):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(1000, 3)) * [1, 1e-6, 1e9]
    grid = Grid.fit(np.abs(values).max(axis=0), len(values))
    parts = grid.split(values)
    forwards = np.zeros(6)
    for row in parts:
        forwards += row
    backwards = np.zeros(6)
    for row in parts[::-1]:
        backwards += row
    np.testing.assert_array_equal(forwards, backwards)
    np.testing.assert_array_equal(forwards, parts.sum(axis=0))
    np.testing.assert_allclose(grid.join(forwards[None])[0], values.sum(axis=0))


def test_what_is_added_and_taken_away_leaves_nothing():
    values = np.array([[1e12], [0.3], [-7e11], [1e-3]])
    grid = Grid.fit(np.abs(values).max(axis=0), len(values))
    parts = grid.split(values)
    total = parts[1] + parts[3]
    for row in (0, 2):
        total = total + parts[row]
    for row in (0, 2):
        total = total - parts[row]
    np.testing.assert_array_equal(total, parts[1] + parts[3])


def test_two_levels_keep_small_values_beside_a_huge_one():
    values = np.array([[1e12], [1.0], [1.25]])
    bounds = np.abs(values).max(axis=0)
    two = Grid.fit(bounds, 2**14, n_levels=2)
    one = Grid.fit(bounds, 2**14, n_levels=1)
    small = np.array([[1.0], [1.25]])
    np.testing.assert_allclose(two.join(two.split(small)), small, rtol=1e-9)
    assert one.join(one.split(small))[0, 0] != pytest.approx(1.0, rel=0.1)


@pytest.mark.parametrize("n_levels", [1, 2])
def test_sparse_is_dense(n_levels):
    values = sparse.random_array(
        (50, 8), density=0.3, random_state=np.random.default_rng(0)
    )
    values = values.tocsr()
    grid = Grid.fit(np.ones(8), 50, n_levels=n_levels)
    np.testing.assert_array_equal(
        grid.split(values).toarray(), grid.split(values.toarray())
    )


def test_whole_numbers_add_up_exactly_in_float32():
    values = np.full((3, 2), MAX_WHOLE_FLOAT32 // 3)
    values[2] += [1, -1]
    grid = Grid.of_whole_numbers(2)
    parts = grid.split(sparse.csr_array(values))
    assert parts.dtype == np.float32
    sums = parts.toarray().cumsum(axis=0, dtype=np.float32)[-1:]
    np.testing.assert_array_equal(grid.join(sums)[0], values.sum(axis=0))
