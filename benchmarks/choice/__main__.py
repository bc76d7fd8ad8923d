"""The command ``python -m benchmarks.choice``."""

import argparse
import sys
import time
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

import corral
from benchmarks.choice._cases import (
    DEVELOPMENT_SEEDS,
    KINDS,
    TEST_SEEDS,
    Case,
    make_case,
)

# Where single criteria draw the line, as rules for the worst pair or the whole.
LEVELS = {"told": 0.88, "border": 0.55, "stability": 0.9}
_GAP = "the widest gap of position, if it is a sign"


class Outcome(NamedTuple):
    """What was chosen for a case, beside the truth."""

    seed: int
    kind: str
    n_samples: int
    n_clusters: int
    n_outliers: int
    chosen_clusters: int
    chosen_outliers: int
    # What single criteria would choose.
    alone: dict[str, int]
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
        choose_alone(found),
        time.perf_counter() - start,
    )


def choose_alone(found: corral.Selection) -> dict[str, int]:
    """Choose a number of clusters by each criterion, and of outliers by the gap.

    Clusters are judged with the number of outliers that was chosen.
    """
    columns = found.columns
    here = columns["n_outliers"] == found.n_outliers_
    numbers = columns["n_clusters"][here]
    values = {
        name: columns[name][here]
        for name in ("told", "border", "description_length", "stability")
    }
    lengths = values.pop("description_length")
    alone = {"description length, the least": int(numbers[np.nanargmin(lengths)])}
    for name, value in values.items():
        level = LEVELS[name]
        able = numbers[(value >= level) & (numbers > 1)]
        alone[f"{name}, the largest K with {level}"] = int(able.max(initial=1))
    is_sign = found.gap_widths > found.gap_threshold
    widest = found.gap_numbers[found.gap_widths.argmax()] if is_sign.any() else 0
    return alone | {_GAP: int(widest)}


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


def format_alone(outcomes: list[Outcome]) -> str:
    """Return how often single criteria are right, as Markdown tables."""
    lines = ["| K by one criterion | exact | within 1 |", "|---|---|---|"]
    names = [name for name in outcomes[0].alone if name != _GAP]
    for name in names:
        off = [abs(each.alone[name] - each.n_clusters) for each in outcomes]
        exact, within = _share(d == 0 for d in off), _share(d <= 1 for d in off)
        lines.append(f"| {name} | {exact} | {within} |")
    gaps = [each._replace(chosen_outliers=each.alone[_GAP]) for each in outcomes]
    clean = [each.chosen_outliers == 0 for each in gaps if each.is_clean]
    lines += [
        "",
        "| o by one criterion | near | clean: none claimed |",
        "|---|---|---|",
        f"| {_GAP} | {_share(each.is_near for each in gaps)} "
        f"| {sum(clean)} of {len(clean)} |",
    ]
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
    print(f"\n{format_alone(outcomes)}")
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
