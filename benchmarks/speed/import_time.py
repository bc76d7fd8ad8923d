"""Importing corral, against importing the part of scikit-learn that it builds on."""

import subprocess
import sys

from benchmarks.speed._measure import Options, Row, alternate, at_most, shortest


def measure(options: Options) -> list[Row]:
    """Answer: does importing corral cost more than what it builds on?"""

    def import_ours(_: int) -> None:
        # Names load when they are asked for, so the package alone would cost nothing.
        _run("from corral import COR")

    def import_theirs(_: int) -> None:
        _run("import sklearn.cluster")

    # The first round reads the files and may compile them.
    alternate(1, import_ours, import_theirs)
    seconds = alternate(options.rounds(7, 9), import_ours, import_theirs)
    return [Row("import: COR / sklearn.cluster", *shortest(seconds), at_most(1.2))]


def _run(code: str) -> None:
    subprocess.run([sys.executable, "-c", code], check=True)
