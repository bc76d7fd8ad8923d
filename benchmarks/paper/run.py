"""Run what a grid asks for and is not stored yet; one file for each run."""

import warnings
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from benchmarks.paper import datasets, machine, methods
from benchmarks.paper.datasets import Dataset, MissingData, Rows
from benchmarks.paper.grids import Grid
from benchmarks.paper.methods import Method, Task
from benchmarks.paper.progress import open_bar
from benchmarks.paper.recipes import RECIPES, back_to_file, prepare, shuffle
from benchmarks.paper.results import Result
from benchmarks.paper.store import RunKey, Store
from corral import __version__


@dataclass(frozen=True)
class Settings:
    """What the command line says about running.

    Attributes
    ----------
    output : Path
        Folder for everything that is written.
    data_dir : Path or None
        Folder with the data; None means where it may be.
    force : bool
        Run again what is there already.
    show_bar : bool
        Whether a progress bar is shown.
    """

    output: Path
    data_dir: Path | None = None
    force: bool = False
    show_bar: bool = True


@dataclass
class Tally:
    """How the runs of a grid ended."""

    done: int = 0
    found: int = 0
    skipped: int = 0
    failed: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        parts = [f"{self.done} runs done", f"{self.found} were there"]
        parts += [f"{self.skipped} skipped"] if self.skipped else []
        parts += [f"{len(self.failed)} failed"] if self.failed else []
        parts += [f"no data for {', '.join(self.missing)}"] if self.missing else []
        return ", ".join(parts)


def plan(grid: Grid) -> dict[str, list[RunKey]]:
    """Return the runs of a grid by data set, so that each set is loaded once."""
    return {
        dataset: [
            RunKey(dataset, recipe, method, seed)
            for recipe, method in grid.runs
            for seed in grid.seeds_for(dataset, method)
        ]
        for dataset in grid.datasets
    }


def run_grid(grid: Grid, settings: Settings) -> Tally:
    """Run what is not stored yet.

    Whatever ends the process, finished runs are on disk: it loses the one under way.
    """
    planned = plan(grid)
    runner = Runner(
        settings, open_bar(sum(map(len, planned.values())), settings.show_bar)
    )
    try:
        for name, keys in planned.items():
            try:
                dataset = datasets.load(name, settings.data_dir)
            except MissingData as reason:
                runner.pass_over(name, len(keys), str(reason))
            else:
                runner.run_dataset(dataset, keys)
    finally:
        runner.bar.close()
    return runner.tally


class Runner:
    """Runs one after the other, stores each, and keeps count."""

    def __init__(self, settings: Settings, bar: Any) -> None:
        self.store = Store(settings.output)
        self.force = settings.force
        self.bar = bar
        self.tally = Tally()

    def pass_over(self, name: str, n_runs: int, reason: str) -> None:
        """Leave out a data set whose file is not here."""
        self.bar.write(f"skipped: {name}: {reason}")
        self.bar.update(n_runs)
        self.tally.missing.append(name)

    def run_dataset(self, dataset: Dataset, keys: list[RunKey]) -> None:
        """Run the missing ones of these runs, which all have the same data set."""
        rows = cache(lambda recipe: prepare(dataset, RECIPES[recipe]))
        for key in keys:
            self.bar.set_description(str(key))
            method = methods.find(key.method)
            estimator = method.build(_make_task(dataset, key))
            identity = identify(dataset, key, estimator)
            if not self.force and self.store.is_finished(key, identity):
                self.tally.found += 1
            elif reason := method.skip(dataset):
                record = {"identity": identity}
                self.store.write_reason(key, "skipped", reason, record)
                self.tally.skipped += 1
            else:
                self._run(key, method, estimator, rows(key.recipe), identity)
            self.bar.update()

    def _run(
        self, key: RunKey, method: Method, estimator: Any, X: Rows, identity: dict
    ) -> None:
        record = {"identity": identity, "machine": machine.describe()}
        try:
            result, messages = run_once(method, estimator, X, key.seed)
        except Exception as error:  # one method on one set: the others go on
            reason = f"{type(error).__name__}: {error}"
            self.store.write_reason(key, "failed", reason, record)
            self.bar.write(f"failed: {key}: {reason}")
            self.tally.failed.append(str(key))
        else:
            self.store.write(key, result, {**record, "warnings": messages})
            self.tally.done += 1


def run_once(
    method: Method, estimator: Any, X: Rows, seed: int
) -> tuple[Result, list[str]]:
    """Fit on rows shuffled by the seed; return the result in the order of the file."""
    order = shuffle(X.shape[0], seed)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = methods.fit(estimator, X[order], method.has_clusters)
    scores = None if found.scores is None else back_to_file(found.scores, order)
    result = replace(found, labels=back_to_file(found.labels, order), scores=scores)
    return result, sorted({str(each.message) for each in caught})


def identify(dataset: Dataset, key: RunKey, estimator: Any) -> dict:
    """Return what makes two runs the same; if it changes, a run is done again."""
    parameters = {
        name: value if isinstance(value, int | float | str | None) else repr(value)
        for name, value in estimator.get_params(deep=False).items()
        # What a run tells of itself changes no result.
        if name != "verbose"
    }
    return {
        "corral": __version__,
        "estimator": type(estimator).__name__,
        "parameters": parameters,
        "recipe": asdict(RECIPES[key.recipe]),
        "shape": list(dataset.X.shape),
        "seed": key.seed,
    }


def _make_task(dataset: Dataset, key: RunKey) -> Task:
    metric, rival_metric = RECIPES[key.recipe].metrics(dataset.kind)
    return Task(dataset.n_clusters, dataset.n_outliers, metric, rival_metric, key.seed)
