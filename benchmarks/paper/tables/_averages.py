"""Means over all data sets of a grid: methods in rows, measures in columns."""

from statistics import fmean

from benchmarks.paper import methods
from benchmarks.paper.grids import Grid
from benchmarks.paper.measures import MEASURES
from benchmarks.paper.score import Score, Spread, Summary, summarise
from benchmarks.paper.tables._markdown import NOTHING, write_table


def average_table(grid: Grid, scores: list[Score]) -> str:
    """Return the averages, and the mean over sets of the deviation over seeds."""
    summary = summarise(scores)
    labels = [MEASURES[name].label for name in grid.measures]
    header = ["", "sets", *labels, *(f"sd of {label}" for label in labels)]
    rows = [
        [methods.find(method).label, *_write_row(grid, summary, recipe, method)]
        for recipe, method in grid.runs
    ]
    return f"### {grid.title}\n\n{write_table(header, rows)}"


def _write_row(grid: Grid, summary: Summary, recipe: str, method: str) -> list[str]:
    found = [
        _collect(grid, summary, recipe, method, measure) for measure in grid.measures
    ]
    means = [_write_mean([each.mean for each in values]) for values in found]
    deviations = [
        _write_mean([each.sd for each in values if each.sd is not None])
        for values in found
    ]
    return [str(max(map(len, found))), *means, *deviations]


def _collect(
    grid: Grid, summary: Summary, recipe: str, method: str, measure: str
) -> list[Spread]:
    keys = [(name, recipe, method, measure) for name in grid.datasets]
    return [summary[key] for key in keys if key in summary]


def _write_mean(numbers: list[float]) -> str:
    return f"{fmean(numbers):.1f}" if numbers else NOTHING
