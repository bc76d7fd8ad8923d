"""The detectors that look at neighbours: their memory, and their speed against PyOD."""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks.speed._data import REPOSITORY, make_noisy_blobs
from benchmarks.speed._measure import (
    CannotMeasure,
    Options,
    Row,
    alternate,
    at_most,
    rows_or_note,
    shortest,
    times_faster,
)
from benchmarks.speed._process import check_memory_is_counted, read_status
from corral.detectors import COF, LDOF, FastABOD

_MB = 1e6
_ALLOWED = 1000 * _MB
_N_NEIGHBORS = 50
_DETECTORS = {"COF": COF, "LDOF": LDOF, "FastABOD": FastABOD}


def measure(options: Options) -> list[Row]:
    """Answer: are 20,000 rows within reach, and is PyOD left behind?"""
    large = make_noisy_blobs(20_000, n_features=9)
    # PyOD's ABOD takes more than ten seconds for a thousand rows.
    n_angles = 1000 if options.quick else 5000
    return [
        *(row for name in _DETECTORS for row in _measure_large(name, large)),
        *_compare("COF", options, large[:5000].astype(np.float64)),
        *_compare("FastABOD", options, large[:n_angles].astype(np.float64)),
    ]


def _measure_large(name: str, X: np.ndarray) -> list[Row]:
    what = f"detectors: {name}, {len(X):,} x {X.shape[1]}, {_N_NEIGHBORS} neighbours"
    return rows_or_note(what, lambda: _fit_large(what, name, X))


def _fit_large(what: str, name: str, X: np.ndarray) -> Iterator[Row]:
    check_memory_is_counted()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        finished = subprocess.run(
            [sys.executable, "-m", "benchmarks.speed.detectors", name, str(path)],
            cwd=REPOSITORY,
            env=os.environ,
            stdout=subprocess.PIPE,
            check=True,
            text=True,
        )
    extra, seconds = json.loads(finished.stdout)
    yield Row(what, note=f"fitted in {seconds:.1f} s")
    yield Row(
        f"{what}, fit beside X / allowed",
        extra / _MB,
        _ALLOWED / _MB,
        at_most(1),
        unit="MB",
    )


def _print_large(name: str, path: str) -> None:
    """Fit, and print how far memory rose above what was held before, and the time."""
    X = np.load(path)
    detector = _DETECTORS[name](_N_NEIGHBORS)
    # The first fit loads what later ones find there.
    detector.fit(X[:200])
    before = read_status("VmRSS")
    start = time.perf_counter()
    detector.fit(X)
    seconds = time.perf_counter() - start
    print(json.dumps([read_status("VmHWM") - before, seconds]))


def _compare(name: str, options: Options, X: np.ndarray) -> list[Row]:
    what = f"detectors: {name} / PyOD, {len(X):,} x {X.shape[1]}"
    return rows_or_note(what, lambda: _time_both(what, name, options, X))


def _time_both(what: str, name: str, options: Options, X: np.ndarray) -> Iterator[Row]:
    make_theirs = _find_in_pyod(name)
    scores = {}

    def fit_ours(_: int) -> None:
        detector = _DETECTORS[name](_N_NEIGHBORS, n_jobs=options.threads)
        scores["ours"] = detector.fit(X).outlier_scores_

    def fit_theirs(_: int) -> None:
        scores["theirs"] = make_theirs().fit(X).decision_scores_

    # The first fit loads libraries; that of PyOD's ABOD compiles.
    _DETECTORS[name](_N_NEIGHBORS).fit(X[:100])
    make_theirs().fit(X[:100])
    rounds = options.rounds(1, 3) if name == "COF" else 1
    seconds = alternate(rounds, fit_ours, fit_theirs)
    yield Row(what, *shortest(seconds), times_faster(20))
    # Ours are the published formulas: tests/detectors has them written out.
    off = np.abs(scores["theirs"] / scores["ours"] - 1)
    yield Row(
        f"{what}, PyOD's scores",
        note=f"off the published formula by {np.median(off):.1%} in the middle, "
        f"{off.max():.1%} at most",
    )


def _find_in_pyod(name: str) -> Callable:
    try:
        from pyod.models.abod import ABOD
        from pyod.models.cof import COF as PyODsCOF
    except ImportError:
        raise CannotMeasure('pip install ".[bench]"') from None
    if name == "COF":
        return partial(PyODsCOF, n_neighbors=_N_NEIGHBORS, method="fast")
    return partial(ABOD, n_neighbors=_N_NEIGHBORS, method="fast")


if __name__ == "__main__":
    _print_large(sys.argv[1], sys.argv[2])
