"""How rows are stored, cut and shared among threads: it changes no label."""

from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from corral._memory import Budget
from tests.properties.methods import (
    CASES,
    assert_same,
    draw_rows,
    fit,
    solve,
    tell,
    try_to_solve,
)
from tests.properties.strategies import few_numbers_for, whole_rows

SPARSE = [name for name, case in CASES.items() if case.takes_sparse]
THREADED = [name for name, case in CASES.items() if case.has_threads]
IN_FLOAT32 = [name for name in CASES if not name.endswith(("cosine", "k-means++"))]
IN_BLOCKS = [name for name in CASES if name.startswith(("cor", "kmeans--"))]
IN_BLOCKS.remove("cor-detector")


def assert_equal(found, expected):
    np.testing.assert_array_equal(found.labels, expected.labels)
    np.testing.assert_array_equal(found.scores, expected.scores)


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
def test_the_order_of_cells_in_memory_changes_nothing(name, data):
    X = draw_rows(data, name)
    numbers = data.draw(few_numbers_for(len(X)))
    expected = try_to_solve(name, X, *numbers)
    assert_equal(solve(name, np.asfortranarray(X), *numbers), expected)
    # Neither in rows nor in columns.
    wide = np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2]
    assert_equal(solve(name, wide, *numbers), expected)


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
def test_whole_numbers_are_numbers(name, data):
    """Holoentropy takes whole numbers for categories, of either type."""
    X = data.draw(whole_rows(min_rows=6, span=9))
    X = np.abs(X) if name == "tonmf" else X
    n_clusters = data.draw(st.integers(1, 2))
    expected = try_to_solve(name, X, n_clusters, 1)
    assert_equal(solve(name, X.astype(np.int16), n_clusters, 1), expected)


@pytest.mark.parametrize("name", IN_FLOAT32)
@given(data=st.data())
def test_float32_is_as_good_where_it_holds_the_rows(name, data):
    """Exempt is cosine distance: float32 does not hold rows of unit length.

    So are starts by k-means++: of two rows that are left, either is as good.
    """
    X = draw_rows(data, name)
    numbers = data.draw(few_numbers_for(len(X)))
    expected = try_to_solve(name, X, *numbers)
    assert_same(try_to_solve(name, X.astype(np.float32), *numbers), expected, 1e-4)


@pytest.mark.parametrize("name", SPARSE)
@given(data=st.data())
def test_sparse_rows_get_the_labels_of_dense_ones(name, data):
    """Some rows are zeros, but for K-means+1 by cosine.

    There they are equally far from all rows that scikit-learn's K-means may start from,
    and its rounding decides.
    """
    X = draw_rows(data, name)
    if name != "kmeans+1, cosine":
        X[data.draw(st.integers(0, 2)) :: 3] = 0
    numbers = data.draw(few_numbers_for(len(X)))
    expected = try_to_solve(name, X, *numbers)
    for kind in (sparse.csr_array, sparse.csc_array):
        found = try_to_solve(name, kind(X), *numbers)
        assert_same(found, expected, max(CASES[name].rounding, 1e-6))


@pytest.mark.parametrize("name", THREADED)
@given(data=st.data())
def test_threads_change_nothing(name, data):
    X = draw_rows(data, name)
    numbers = data.draw(few_numbers_for(len(X)))
    expected = try_to_solve(name, X, *numbers)
    model = CASES[name].make(*numbers).set_params(n_jobs=2)
    assert_equal(tell(fit(model, X)), expected)


@pytest.mark.parametrize("name", IN_BLOCKS)
@given(data=st.data())
def test_blocks_change_nothing(name, data):
    X = draw_rows(data, name)
    numbers = data.draw(few_numbers_for(len(X)))
    n_piece, n_block = (data.draw(st.integers(1, len(X))) for _ in range(2))

    def read_pieces():
        return iter([X[start : start + n_piece] for start in range(0, len(X), n_piece)])

    expected = try_to_solve(name, X, *numbers)
    with patch.object(Budget, "count_block_rows", lambda *_: n_block):
        assert_equal(solve(name, read_pieces, *numbers), expected)
