"""From raw outputs to numbers: each run is measured, nothing is run."""

import csv
import statistics
from dataclasses import dataclass
from pathlib import Path

from benchmarks.paper import datasets
from benchmarks.paper.datasets import MissingData
from benchmarks.paper.grids import Grid
from benchmarks.paper.measures import measure
from benchmarks.paper.run import plan
from benchmarks.paper.store import RunKey, Store


@dataclass(frozen=True)
class Score:
    """The numbers of one run.

    Attributes
    ----------
    key : RunKey
    values : dict of str to float
        Measures in percent, without those that the method has nothing for.
    seconds : dict of str to float
        In total and of stages; empty where the run has no output.
    reason : str
        Why it has none.
    """

    key: RunKey
    values: dict[str, float]
    seconds: dict[str, float]
    reason: str = ""


def score_grid(grid: Grid, output: Path, data_dir: Path | None) -> list[Score]:
    """Return the numbers of all stored runs of a grid."""
    store = Store(output)
    scores: list[Score] = []
    for name, keys in plan(grid).items():
        truth = _load_truth(name, data_dir)
        scores += [
            _score(key, store, truth, grid.measures)
            for key in keys
            if store.read_record(key) is not None
        ]
    return scores


def _load_truth(name: str, data_dir: Path | None):
    try:
        return datasets.load(name, data_dir).y
    except MissingData:
        return None


def _score(key: RunKey, store: Store, truth, measures: list[str]) -> Score:
    result = store.read(key)
    if result is None:
        return Score(key, {}, {}, store.read_record(key)["reason"])
    if truth is None:
        return Score(key, {}, result.seconds)
    found = {name: measure(name, truth, result) for name in measures}
    values = {name: value for name, value in found.items() if value is not None}
    return Score(key, values, result.seconds)


def write_scores(path: Path, scores: list[Score]) -> None:
    """Write one line for each run and measure."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["dataset", "recipe", "method", "seed", "measure", "value"])
        for score in scores:
            key = score.key
            run = [key.dataset, key.recipe, key.method, key.seed]
            for name, value in score.values.items():
                writer.writerow([*run, name, f"{value:.4f}"])
            for name, value in score.seconds.items():
                writer.writerow([*run, f"seconds_{name}", f"{value:.4f}"])


@dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over the seeds; the median is for times."""

    mean: float
    sd: float | None
    median: float


def spread(numbers: list[float]) -> Spread:
    """Return what describes some runs; of one run there is no deviation."""
    sd = statistics.stdev(numbers) if len(numbers) > 1 else None
    return Spread(statistics.fmean(numbers), sd, statistics.median(numbers))


# (data set, recipe, method, measure) -> spread over the seeds.
Summary = dict[tuple[str, str, str, str], Spread]


def summarise(scores: list[Score]) -> Summary:
    """Return mean and standard deviation over the seeds of all measures and times."""
    numbers: dict[tuple[str, str, str, str], list[float]] = {}
    for score in scores:
        run = (score.key.dataset, score.key.recipe, score.key.method)
        for name, value in score.values.items():
            numbers.setdefault((*run, name), []).append(value)
        for name, value in score.seconds.items():
            numbers.setdefault((*run, f"seconds_{name}"), []).append(value)
    return {key: spread(values) for key, values in numbers.items()}
