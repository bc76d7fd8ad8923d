"""Tables 2 and 3 and the suites: one table for each measure, data sets in rows."""

import warnings
from dataclasses import replace
from functools import partial

import numpy as np

from benchmarks.paper.expected import Cells
from benchmarks.paper.grids import CITED, Column, Grid
from benchmarks.paper.measures import MEASURES
from benchmarks.paper.score import Score, Spread, Summary, spread, summarise
from benchmarks.paper.tables._markdown import (
    NOTHING,
    name_column,
    write_spread,
    write_table,
)
from corral.metrics import overall_score


def compare_tables(grid: Grid, scores: list[Score], cited: Cells | None = None) -> str:
    """Return a table for each measure of a grid.

    Below the data sets stand the mean over them and the paper's score. Both are over
    the data sets at hand, also for the numbers that the paper prints.
    """
    summary = summarise(scores)
    find = partial(find_cell, summary, cited or {})
    parts = [
        f"### {MEASURES[name].label}\n\n{_write_measure(grid, find, name)}"
        for name in grid.measures
    ]
    return "\n\n".join([*parts, *_list_reasons(scores)])


def find_cell(
    summary: Summary, cited: Cells, column: Column, dataset: str, measure: str
) -> Spread | None:
    """Return what stands in a cell; None if a number for it is not there."""
    if column.minus is not None:
        ours = find_cell(summary, cited, replace(column, minus=None), dataset, measure)
        other = find_cell(summary, cited, column.minus, dataset, measure)
        return spread([ours.mean - other.mean]) if ours and other else None
    if column.source == CITED:
        mean, sd = cited.get((dataset, column.method, measure), (None, None))
        return None if mean is None else Spread(mean, sd, mean)
    return summary.get((dataset, column.source, column.method, measure))


def _write_measure(grid: Grid, find, measure: str) -> str:
    ours = [column for column in grid.columns if column.source != CITED]
    at_hand = [
        name
        for name in grid.datasets
        if any(find(column, name, measure) for column in ours)
    ]
    cells = {
        column: [find(column, name, measure) for name in at_hand]
        for column in grid.columns
    }
    columns = [column for column in grid.columns if any(cells[column])]
    if not columns:
        return "No runs yet."
    rows = [
        [name, *(write_spread(cells[c][i], c.minus is not None) for c in columns)]
        for i, name in enumerate(at_hand)
    ]
    rows.append(["**Average**", *(_write_average(c, cells[c]) for c in columns)])
    rows.append(["**Score**", *_write_scores(columns, cells)])
    return write_table(["data set", *map(name_column, columns)], rows)


def _write_average(column: Column, values: list[Spread | None]) -> str:
    """Return the mean; with the number of data sets if some have no result."""
    means = [value.mean for value in values if value is not None]
    sign = "+" if column.minus is not None else ""
    note = f" ({len(means)} of {len(values)})" if len(means) < len(values) else ""
    return f"{np.mean(means):{sign}.1f}{note}"


def _write_scores(
    columns: list[Column], cells: dict[Column, list[Spread | None]]
) -> list[str]:
    """Return the paper's score, in which a source competes with itself only."""
    found: dict[Column, str] = {}
    for source in dict.fromkeys(column.source for column in columns):
        rivals = [c for c in columns if c.source == source and c.minus is None]
        table = [
            [np.nan if value is None else value.mean for value in cells[column]]
            for column in rivals
        ]
        with warnings.catch_warnings():
            # Sets on which no method has a positive value count for nobody.
            warnings.simplefilter("ignore", UserWarning)
            numbers = overall_score(table) if np.nanmax(table) > 0 else [0] * len(table)
        found |= {c: f"{100 * x:.1f}" for c, x in zip(rivals, numbers, strict=True)}
    return [found.get(column, "") for column in columns]


def _list_reasons(scores: list[Score]) -> list[str]:
    """Return why cells are empty, one line for each reason."""
    reasons: dict[str, list[str]] = {}
    for score in scores:
        if score.reason:
            who = f"{score.key.method} on {score.key.dataset}"
            reasons.setdefault(score.reason, []).append(who)
    lines = [
        f"- {', '.join(dict.fromkeys(runs))}: {reason}"
        for reason, runs in reasons.items()
    ]
    return [f"{NOTHING} stands for no result:\n\n" + "\n".join(lines)] if lines else []
