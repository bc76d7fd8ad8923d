"""One machine: the same fit with all rows in memory and block by block.

Run from the root of the repository: ``python -m benchmarks.scale.one_machine``.
"""

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.scale._rows import N_FEATURES, write_npy
from benchmarks.speed._process import read_status
from corral import COR

_ROOT = Path(__file__).parents[2]
_GB = 1e9


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=50e6)
    parser.add_argument("--memory-limit", default="1.9GB")
    parser.add_argument("--folder", type=Path, help="for the rows (default: temporary)")
    options = parser.parse_args()
    n_rows = int(options.rows)
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        path = Path(folder) / "rows.npy"
        write_npy(path, n_rows)
        size = path.stat().st_size / _GB
        print(f"{n_rows:,} x {N_FEATURES} float32, {size:.2f} GB on disk")
        blocks = _fit_elsewhere(path, options.memory_limit)
        memory = _fit_elsewhere(path, "")
    for name, found in (("block by block", blocks), ("in memory", memory)):
        print(
            f"{name}: {found['seconds']:.0f} s, "
            f"{found['seconds'] / n_rows * 1e6:.2f} s per million rows, "
            f"peak {found['peak'] / _GB:.2f} GB, {found['storage']}"
        )
    print(f"memory limit: {options.memory_limit}")
    ratio = blocks["seconds"] / memory["seconds"]
    print(f"time per row, block by block / in memory: {ratio:.2f} (bar <= 2)")
    print(f"same labels and scores: {blocks['digest'] == memory['digest']}")


def _fit_elsewhere(path: Path, memory_limit: str) -> dict:
    """Fit in a fresh process, which tells what it needed."""
    finished = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale.one_machine", "--fit"]
        + [str(path), memory_limit],
        cwd=_ROOT,
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    return json.loads(finished.stdout)


def _fit(path: str, memory_limit: str) -> None:
    """Fit and print time, peak of memory and a digest of the answers."""
    model = COR(10, contamination=0.001, random_state=0)
    X = path if memory_limit else np.load(path)
    # In memory, nothing is to go to disk.
    model.set_params(memory_limit=memory_limit or "20GB")
    start = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - start
    peak = read_status("VmHWM")
    print(
        json.dumps(
            {
                "seconds": seconds,
                "peak": peak,
                "digest": _digest(model),
                "storage": str(model.storage_),
            }
        )
    )


def _digest(model: COR) -> str:
    """Return a digest of labels and scores, read a part at a time."""
    digest = hashlib.blake2b()
    for answers in (model.labels_, model.outlier_scores_):
        for start in range(0, len(answers), 2**20):
            digest.update(np.ascontiguousarray(answers[start : start + 2**20]).data)
    return digest.hexdigest()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--fit"]:
        _fit(*sys.argv[2:])
    else:
        main()
