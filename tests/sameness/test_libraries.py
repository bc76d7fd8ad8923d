"""Older NumPy gives the same numbers; `make test-oldest` runs this with it."""

import numpy as np

from corral._codes import CodeBook
from corral._confidence import Candidates, set_aside_again
from corral._threads import ONE_THREAD


def test_codes_in_small_types_cost_what_they_cost_in_large_ones(seed):
    # The offset of the second partition fits into a byte, a slot of it does not.
    rng = np.random.default_rng(seed)
    book = CodeBook(np.array([200, 200]))
    codes = rng.integers(0, 200, (50, 2))
    table = rng.integers(0, 99, (book.n_slots, 3)).astype(float)
    shares = [
        set_aside_again(
            Candidates(np.arange(50), np.arange(50), codes.astype(dtype), np.zeros(50)),
            book,
            table,
            5,
            [np.array([0, 1]), np.array([1, 1])],
            ONE_THREAD,
        )
        for dtype in (np.uint8, np.int64)
    ]
    np.testing.assert_array_equal(*shares)
