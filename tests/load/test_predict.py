"""Answers for many rows, block by block: the same as at once, in little memory."""

import time

import numpy as np

from corral import COR
from tests.load.memory import Peak

N_FEATURES = 8
N_CLUSTERS = 5
BLOCK_ROWS = 100_000


def make_rows(block, n_rows=BLOCK_ROWS):
    """Return the rows of a block: five round groups, one row in a hundred anywhere."""
    centers = np.random.default_rng(0).normal(0, 6, (N_CLUSTERS, N_FEATURES))
    rng = np.random.default_rng([1, block])
    rows = rng.normal(size=(n_rows, N_FEATURES)) + centers[rng.integers(5, size=n_rows)]
    is_far = rng.random(n_rows) < 0.01
    rows[is_far] = rng.uniform(-30, 30, (np.count_nonzero(is_far), N_FEATURES))
    return rows


def test_blocks_are_answered_as_the_whole_in_bounded_memory(soak, figures):
    n_blocks, block_rows = (100, BLOCK_ROWS) if soak else (10, 2_000)
    model = COR(N_CLUSTERS, contamination=0.01, random_state=0)
    model.fit(make_rows(0, 20_000 if soak else 1_000))

    # The first block brings what is there once.
    labels = [model.predict(make_rows(1, block_rows))]
    seconds = 0.0
    peak = Peak()
    for block in range(2, n_blocks + 1):
        rows = make_rows(block, block_rows)
        start = time.perf_counter()
        labels.append(model.predict(rows))
        seconds += time.perf_counter() - start
    found = np.concatenate(labels)
    extra = peak.read() - found.nbytes

    n_rows = n_blocks * block_rows
    figures.append(
        f"predict: {n_rows:,} x {N_FEATURES} rows in blocks of {block_rows:,}: "
        f"{(n_rows - block_rows) / seconds:,.0f} rows per second, "
        f"{extra / 2**20:.0f} MB beside the labels"
    )
    assert found.shape == (n_rows,)
    assert set(np.unique(found)) == set(range(-1, N_CLUSTERS))
    # A block in all its forms, and what does not depend on the rows: far less than
    # the 640 MB of ten million rows.
    assert extra < 128 * 2**20

    n_whole = n_blocks // 10
    whole = [make_rows(block, block_rows) for block in range(1, n_whole + 1)]
    at_once = model.predict(np.concatenate(whole))
    np.testing.assert_array_equal(found[: len(at_once)], at_once)
