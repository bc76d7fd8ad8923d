"""Labelling all rows in all partitions, against the bare matrix product behind it."""

from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.speed._data import load_standardised
from benchmarks.speed._inside import (
    N_PARTITIONS,
    Threads,
    fit_runs,
    get_centers,
    prepare_labelling,
    use_threads,
)
from benchmarks.speed._measure import (
    Options,
    Row,
    alternate,
    at_most,
    rows_or_note,
    shortest,
)

_WHAT = f"assignment: kddcup, {N_PARTITIONS} partitions / matrix product"
_BLOCK_ROWS = (1024, 2048, 4096, 8192)
_MAX_SAMPLES = 8192  # The default of COR; which centres they are does not matter.


def measure(options: Options) -> list[Row]:
    """Answer: how much does labelling cost beside its product?"""
    return rows_or_note(_WHAT, lambda: _measure(options))


def _measure(options: Options) -> Iterator[Row]:
    X = load_standardised("kddcup")
    runs = fit_runs(X, 3, seed=0, threads=options.threads, max_samples=_MAX_SAMPLES)
    all_centers = np.concatenate(get_centers(runs))
    # Inside, BLAS is held to one thread for both sides.
    with use_threads(options.threads) as pool:
        label_all = prepare_labelling(runs, X, pool)
        multiply = _find_fastest_product(X, all_centers, pool)
        seconds = alternate(options.rounds(5, 15), label_all, multiply)
    yield Row(_WHAT, *shortest(seconds), at_most(2))


def _find_fastest_product(
    X: np.ndarray, centers: np.ndarray, pool: Threads
) -> Callable[[int], None]:
    """Try block sizes and both orders of the factors; return the fastest product."""
    forms = [
        prepare(X, centers, block_rows, pool)
        for prepare in (_prepare_by_row, _prepare_by_center)
        for block_rows in _BLOCK_ROWS
    ]
    times = shortest(alternate(3, *forms))
    return forms[int(np.argmin(times))]


def _prepare_by_row(
    X: np.ndarray, centers: np.ndarray, block_rows: int, pool: Threads
) -> Callable[[int], None]:
    """Return a function that computes ``X @ centers.T`` in blocks of rows."""
    buffers = _make_buffers(pool, block_rows, len(centers))
    factor = np.ascontiguousarray(centers.T)

    def multiply(block: np.ndarray, number: int) -> None:
        np.matmul(block, factor, out=buffers[number][: len(block)])

    return _over_blocks(X, block_rows, pool, multiply)


def _prepare_by_center(
    X: np.ndarray, centers: np.ndarray, block_rows: int, pool: Threads
) -> Callable[[int], None]:
    """Return a function that computes ``centers @ X.T`` in blocks of rows."""
    buffers = [
        buffer.reshape(-1) for buffer in _make_buffers(pool, block_rows, len(centers))
    ]

    def multiply(block: np.ndarray, number: int) -> None:
        scores = buffers[number][: len(centers) * len(block)]
        np.matmul(centers, block.T, out=scores.reshape(len(centers), len(block)))

    return _over_blocks(X, block_rows, pool, multiply)


def _make_buffers(pool: Threads, block_rows: int, n_centers: int) -> list[np.ndarray]:
    shape = (block_rows, n_centers)
    return [np.empty(shape, dtype=np.float32) for _ in range(pool.n_threads)]


def _over_blocks(
    X: np.ndarray,
    block_rows: int,
    pool: Threads,
    multiply: Callable[[np.ndarray, int], None],
) -> Callable[[int], None]:
    starts = range(0, len(X), block_rows)

    def multiply_all(_: int) -> None:
        def work(number: int, share: range) -> None:
            for index in share:
                multiply(X[starts[index] : starts[index] + block_rows], number)

        pool.share(len(starts), work)

    return multiply_all
