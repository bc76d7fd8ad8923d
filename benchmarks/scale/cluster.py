"""A Dask cluster on this machine: time against rows and workers, and what travels.

Run from the root of the repository: ``python -m benchmarks.scale.cluster``.
"""

import argparse
import pickle
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np

from benchmarks.scale._rows import N_FEATURES, write_parquet
from corral._threads import Threads
from corral.dask import COR, start_cluster
from corral.dask._states import Tasks

_MB = 1e6


class Meter:
    """Counts what goes to the workers and comes back, pass by pass.

    It stands in the place of ``Tasks`` while it is open.
    """

    def __init__(self) -> None:
        self.sent: dict[str, int] = defaultdict(int)
        self.back: dict[str, int] = defaultdict(int)
        self._pass = ""

    def __enter__(self) -> "Meter":
        self._start, self._gather = Tasks.start, Tasks.gather
        meter = self

        def start(tasks, function, blocks, *args, each=None):
            meter._pass = function.__name__
            meter.sent[meter._pass] += len(pickle.dumps(args))
            return meter._start(tasks, function, blocks, *args, each=each)

        def gather(tasks, futures):
            found = meter._gather(tasks, futures)
            meter.back[meter._pass] += len(pickle.dumps(found))
            return found

        Tasks.start, Tasks.gather = start, gather
        return self

    def __exit__(self, *_) -> None:
        Tasks.start, Tasks.gather = self._start, self._gather


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, nargs="+", default=[1e6, 4e6, 16e6])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--folder", type=Path, help="for the rows (default: temporary)")
    options = parser.parse_args()
    print("| rows | workers | s | s per million rows and worker |")
    print("|---|---|---|---|")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        for n_rows in map(int, options.rows):
            path = Path(folder) / str(n_rows)
            write_parquet(path, n_rows)
            for n_workers in options.workers:
                meter, between, seconds = _fit(path, n_workers)
                rate = seconds / n_rows * 1e6 * n_workers
                print(f"| {n_rows:,} | {n_workers} | {seconds:.1f} | {rate:.2f} |")
        size = sum(each.stat().st_size for each in path.iterdir())
    _print_bytes(meter, between, n_rows, size)
    print(f"a task that does nothing takes {_time_tasks() * 1e3:.2f} ms in all")


def _time_tasks(n_tasks: int = 4000) -> float:
    """Return how long one of many tasks takes that do nothing."""
    with start_cluster(2) as client:
        tasks = Tasks(client)
        tasks.reduce(tasks.start(_do_nothing, range(100)))
        start = time.perf_counter()
        tasks.reduce(tasks.start(_do_nothing, range(n_tasks)))
        return (time.perf_counter() - start) / n_tasks


def _do_nothing(block: int, threads: Threads) -> int:
    return block


def _fit(path: Path, n_workers: int) -> tuple[Meter, int, float]:
    """Fit on so many workers; return what travelled and how long it took."""
    with start_cluster(n_workers) as client, Meter() as meter:
        client.wait_for_workers(n_workers)
        # The first fit loads what later ones find there.
        first = sorted(path.iterdir())[0]
        COR(2, n_outliers=1, n_partitions=5, random_state=0).fit(first)
        meter.sent.clear()
        meter.back.clear()
        before = _count_between(client)
        start = time.perf_counter()
        model = COR(10, contamination=0.001, random_state=0).fit(path)
        # Answers stay with the workers; wait until they are there.
        np.asarray(model.labels_[-1:])
        seconds = time.perf_counter() - start
        return meter, _count_between(client) - before, seconds


def _count_between(client) -> int:
    """Return how many bytes workers have sent each other so far."""

    def count(dask_worker) -> int:
        return sum(entry["total"] for entry in dask_worker.transfer_outgoing_log)

    return sum(client.run(count).values())


def _print_bytes(meter: Meter, between: int, n_rows: int, size: int) -> None:
    print()
    print(f"{n_rows:,} x {N_FEATURES} rows, {size / _MB:,.0f} MB as Parquet")
    print("| pass | to the workers, MB | back, MB |")
    print("|---|---|---|")
    for name in meter.sent:
        sent, back = meter.sent[name] / _MB, meter.back[name] / _MB
        print(f"| {name} | {sent:.2f} | {back:.2f} |")
    print(f"between workers: {between / _MB:.1f} MB")


if __name__ == "__main__":
    main()
