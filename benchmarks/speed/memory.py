"""How much memory a fit needs beside the rows, measured in a process of its own."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from benchmarks.speed._data import REPOSITORY, load_standardised, make_noisy_blobs
from benchmarks.speed._measure import Options, Row, at_most, rows_or_note
from benchmarks.speed._process import check_memory_is_counted, read_status
from corral import COR

_MB = 1e6
_N_PARTITIONS = 100
# Room for what does not grow with the rows: buffers of the threads, centres, codes.
_ALLOWANCE = 300 * _MB


def measure(options: Options) -> list[Row]:
    """Answer: does a fit keep to a byte per row and partition?"""
    n_samples = 250_000 if options.quick else 1_000_000
    return [
        *rows_or_note("memory: blobs", lambda: _measure_blobs(n_samples)),
        *rows_or_note("memory: kddcup", _measure_kddcup),
    ]


def _measure_blobs(n_samples: int) -> Iterator[Row]:
    X = make_noisy_blobs(n_samples)
    parameters = {"n_clusters": 5, "contamination": 0.01}
    yield _compare(f"memory: blobs, {n_samples:,} x {X.shape[1]}", X, parameters)


def _measure_kddcup() -> Iterator[Row]:
    X = load_standardised("kddcup")
    yield _compare("memory: kddcup", X, {"n_clusters": 3, "n_outliers": 8752})


def _compare(what: str, X: np.ndarray, parameters: dict) -> Row:
    """Compare the extra memory of a fit with what it may take."""
    check_memory_is_counted()
    allowed = len(X) * _N_PARTITIONS + _ALLOWANCE
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "X.npy"
        np.save(path, X)
        extra = _fit_elsewhere(path, parameters)
    return Row(
        f"{what}, fit beside X / allowed",
        extra / _MB,
        allowed / _MB,
        at_most(1),
        unit="MB",
    )


def _fit_elsewhere(path: Path, parameters: dict) -> int:
    """Fit in a fresh process; return the bytes that it needed in addition."""
    command = [sys.executable, "-m", "benchmarks.speed.memory"]
    # The rows come from a file, so that nothing larger than them was there before.
    finished = subprocess.run(
        [*command, str(path), json.dumps(parameters)],
        cwd=REPOSITORY,
        env=os.environ,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return int(finished.stdout)


def _print_extra_memory(path: str, parameters: dict) -> None:
    """Fit, and print how far the peak lies above what was held before."""
    X = np.load(path)
    # The first fit loads what later ones find there.
    COR(n_clusters=2, n_outliers=1, random_state=0).fit(X[:200])
    before = read_status("VmRSS")
    COR(**parameters, random_state=0).fit(X)
    print(read_status("VmHWM") - before)


if __name__ == "__main__":
    _print_extra_memory(sys.argv[1], json.loads(sys.argv[2]))
