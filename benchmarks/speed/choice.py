"""A fit that chooses its numbers, against one that is given the same."""

import time
from collections.abc import Iterator

import numpy as np

from benchmarks.speed._data import load_standardised, make_noisy_blobs
from benchmarks.speed._measure import (
    Options,
    Row,
    alternate,
    at_most,
    middle,
    rows_or_note,
)
from corral import COR
from corral._refit import Refit

_LIMIT = 3
# Seconds that choosing may add to a fit on half a million rows.
_ALLOWANCE = 10.0
# Seconds in which a slider should answer.
_MOVE = 0.2


def measure(options: Options) -> list[Row]:
    """Answer: what does it cost to choose the numbers of clusters and outliers?"""
    return [
        *_measure_blobs(options),
        *rows_or_note("choice: kddcup", lambda: _measure_kddcup(options)),
    ]


def _measure_blobs(options: Options) -> Iterator[Row]:
    n_samples = 100_000
    X = make_noisy_blobs(n_samples, n_features=8)
    seconds = _time_both(X, options.rounds(3, 5))
    name = f"choice: blobs, {n_samples:,} x {X.shape[1]}"
    yield Row(f"{name}, numbers chosen / given", *middle(seconds), at_most(_LIMIT))
    moves = _time_moves(X)
    yield Row(f"{name}, a slider's move / allowed", *middle([moves]), _MOVE, at_most(1))


def _time_moves(X: np.ndarray) -> list[float]:
    """Time fusions of the same partitions, as `corral explore` makes them."""
    refit = Refit(COR(random_state=0), X)
    list(refit.prepare())
    seconds = []
    for n_clusters in range(3, 9):
        for n_outliers in (100, 1000, 5000):
            start = time.perf_counter()
            refit.fuse(n_clusters, n_outliers, quick=True)
            seconds.append(time.perf_counter() - start)
    return seconds


def _measure_kddcup(options: Options) -> Iterator[Row]:
    seconds = _time_both(load_standardised("kddcup"), options.rounds(2, 5))
    yield Row(
        "choice: kddcup, numbers chosen / given", *middle(seconds), at_most(_LIMIT)
    )
    chosen, given = seconds
    extra = [long - short for long, short in zip(chosen, given, strict=True)]
    yield Row(
        "choice: kddcup, extra time / allowed", *middle([extra]), _ALLOWANCE, at_most(1)
    )


def _time_both(X: np.ndarray, rounds: int) -> list[list[float]]:
    """Time fits that choose, and fits that are given what the one before chose."""
    numbers = {}

    def fit_chosen(seed: int) -> None:
        model = COR(n_clusters="auto", n_outliers="auto", random_state=seed).fit(X)
        numbers.update(n_clusters=model.n_clusters_, n_outliers=model.n_outliers_)

    def fit_given(seed: int) -> None:
        COR(**numbers, k_range="auto", random_state=seed).fit(X)

    return alternate(rounds, fit_chosen, fit_given)
