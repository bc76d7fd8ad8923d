"""The command ``python -m benchmarks.choice``."""

import argparse
import sys
import time
from collections.abc import Iterable
from typing import NamedTuple

from joblib import Parallel, delayed

import corral
from benchmarks.choice._cases import (
    DEVELOPMENT_SEEDS,
    KINDS,
    TEST_SEEDS,
    Case,
    make_case,
)


class Outcome(NamedTuple):
    """What was chosen for a case, beside the truth."""

    seed: int
    kind: str
    n_samples: int
    n_clusters: int
    n_outliers: int
    chosen_clusters: int
    chosen_outliers: int
    seconds: float

    @property
    def is_clean(self) -> bool:
        """Whether there are no outliers."""
        return self.n_outliers == 0

    @property
    def is_near(self) -> bool:
        """Whether the number of outliers is within 25 % or 3 rows of the truth."""
        off = abs(self.chosen_outliers - self.n_outliers)
        return off <= max(3, 0.25 * self.n_outliers)


def judge(case: Case) -> Outcome:
    """Choose both numbers for a case."""
    start = time.perf_counter()
    found = corral.select(case.X, metric=case.metric, n_jobs=1, random_state=case.seed)
    return Outcome(
        case.seed,
        case.kind,
        case.X.shape[0],
        case.n_clusters,
        case.n_outliers,
        found.n_clusters_,
        found.n_outliers_,
        time.perf_counter() - start,
    )


def format_table(outcomes: list[Outcome]) -> str:
    """Return the share of right answers per kind of case, as a Markdown table."""
    lines = [
        "| kind | cases | K exact | K within 1 | o near | clean: none claimed |",
        "|---|---|---|---|---|---|",
    ]
    for kind in [*KINDS, "all"]:
        here = [each for each in outcomes if kind in (each.kind, "all")]
        if not here:
            continue
        off = [abs(each.chosen_clusters - each.n_clusters) for each in here]
        near = _share(each.is_near for each in here)
        clean = [each.chosen_outliers == 0 for each in here if each.is_clean]
        lines.append(
            f"| {kind} | {len(here)} | {_share(d == 0 for d in off)} "
            f"| {_share(d <= 1 for d in off)} | {near} "
            f"| {sum(clean)} of {len(clean)} |"
        )
    return "\n".join(lines)


def _share(answers: Iterable[bool]) -> str:
    answers = list(answers)
    return f"{sum(answers) / len(answers):.0%}"


def _run(seed: int) -> Outcome:
    return judge(make_case(seed))


def main() -> None:
    """Choose for all seeds of one kind, and print the table and the misses."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.choice")
    parser.add_argument("--seeds", choices=["development", "test"], default="test")
    parser.add_argument("--quick", action="store_true", help="every eleventh seed")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    seeds = DEVELOPMENT_SEEDS if arguments.seeds == "development" else TEST_SEEDS
    # All kinds take turns, so a step that shares no factor with their number has all.
    chosen = seeds[::11] if arguments.quick else seeds
    outcomes = Parallel(n_jobs=arguments.processes)(map(delayed(_run), chosen))
    print(format_table(outcomes))
    print(f"{sum(each.seconds for each in outcomes):.0f} s", file=sys.stderr)
    for each in outcomes:
        if each.chosen_clusters != each.n_clusters or not each.is_near:
            print(
                f"{each.seed} {each.kind}, {each.n_samples} rows: K {each.n_clusters} "
                f"-> {each.chosen_clusters}, o {each.n_outliers} -> "
                f"{each.chosen_outliers}",
                file=sys.stderr,
            )


if __name__ == "__main__":
    main()
