"""The command ``python -m benchmarks.speed``."""

import argparse
import os
import sys
import time
from collections.abc import Callable

from joblib import cpu_count
from threadpoolctl import threadpool_limits

from benchmarks.speed import (
    assignment,
    choice,
    detectors,
    fit,
    import_time,
    linear,
    memory,
    minus_minus,
    partitions,
)
from benchmarks.speed._data import REPOSITORY
from benchmarks.speed._measure import Options, Row
from benchmarks.speed._neighbours import Neighbours
from benchmarks.speed._report import describe_machine, format_table, write_json

QUESTIONS: dict[str, Callable[[Options], list[Row]]] = {
    "assignment": assignment.measure,
    "partitions": partitions.measure,
    "fit": fit.measure,
    "choice": choice.measure,
    "memory": memory.measure,
    "linear": linear.measure,
    "detectors": detectors.measure,
    "minus-minus": minus_minus.measure,
    "import": import_time.measure,
}

_RESULTS = REPOSITORY / "benchmarks" / "results" / "speed.json"


def main() -> None:
    """Measure, print the table and write the same as JSON."""
    arguments = _parse()
    options = Options(quick=arguments.quick, threads=arguments.threads)
    # scikit-learn and the processes that are started look at the variable, the
    # libraries that are loaded already need to be told.
    os.environ["OMP_NUM_THREADS"] = str(options.threads)
    rows: list[Row] = []
    with threadpool_limits(options.threads):
        neighbours = Neighbours()
        for name in arguments.only or QUESTIONS:
            start = time.perf_counter()
            rows += QUESTIONS[name](options)
            seconds = time.perf_counter() - start
            print(f"{name}: measured in {seconds:.0f} s", file=sys.stderr)
        machine = describe_machine(options, neighbours.share())
    print(format_table(rows, machine))
    write_json(_RESULTS, rows, machine)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.speed", description=__doc__
    )
    parser.add_argument(
        "--quick",
        action="store_true",
        help="few rounds and smaller data, without what takes long",
    )
    parser.add_argument(
        "--only",
        nargs="+",
        choices=list(QUESTIONS),
        metavar="NAME",
        help=f"only these questions: {', '.join(QUESTIONS)}",
    )
    parser.add_argument(
        "--threads",
        type=int,
        default=cpu_count(),
        help="threads of both sides (default: all cores, here %(default)s)",
    )
    arguments = parser.parse_args()
    if arguments.threads < 1:
        parser.error(f"--threads={arguments.threads} should be at least 1.")
    return arguments


if __name__ == "__main__":
    main()
