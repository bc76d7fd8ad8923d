"""Positions of curves and ticks, in percent of the drawing; no words and no colours."""

import math
from collections.abc import Sequence
from typing import NamedTuple

# An axis aims at this many steps between its ticks.
_N_STEPS = 4

# An axis spans at least this share of the largest value, so that its ticks stay short.
_MIN_SPAN = 1e-6


class Tick(NamedTuple):
    """A mark on an axis."""

    position: float
    text: str


class Chart(NamedTuple):
    """A curve with its axes; positions run from left to right and from top to bottom.

    Attributes
    ----------
    points : list of (float, float)
    x_ticks, y_ticks : list of Tick
    cut : float or None
        Where a vertical line divides the chart.
    """

    points: list[tuple[float, float]]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    cut: float | None = None


def score_chart(
    ranks: Sequence[int], scores: Sequence[float], n_outliers: int
) -> Chart:
    """Draw scores by rank, with the rank on a logarithmic scale."""
    width = math.log(ranks[-1]) or 1.0

    def position(rank: float) -> float:
        return 100 * math.log(rank) / width

    powers = [10**exponent for exponent in range(len(str(ranks[-1])))]
    heights, y_ticks = _vertical(scores)
    return Chart(
        points=[(position(rank), y) for rank, y in zip(ranks, heights, strict=True)],
        x_ticks=[Tick(position(power), f"{power:,}") for power in powers],
        y_ticks=y_ticks,
        cut=min(position(n_outliers + 0.5), 100.0) if n_outliers else None,
    )


def history_chart(values: Sequence[float]) -> Chart:
    """Draw values by iteration, counted from 1."""
    width = max(len(values) - 1, 1)
    step = max(1, round(_nice_step(width / _N_STEPS)))
    marks = sorted({1, *range(step, len(values) + 1, step)})
    heights, y_ticks = _vertical(values)
    return Chart(
        points=[(100 * index / width, y) for index, y in enumerate(heights)],
        x_ticks=[Tick(100 * (mark - 1) / width, f"{mark:,}") for mark in marks],
        y_ticks=y_ticks,
    )


def _vertical(values: Sequence[float]) -> tuple[list[float], list[Tick]]:
    low, high = min(values), max(values)
    # A curve that is all but flat is drawn flat.
    span = max(high - low, _MIN_SPAN * abs(high)) or 1.0
    step = _nice_step(span / _N_STEPS)
    first, last = math.floor(low / step), math.ceil(high / step)
    last = max(last, first + 1)

    def position(value: float) -> float:
        return 100 * (last - value / step) / (last - first)

    decimals = max(0, -math.floor(math.log10(step)))
    ticks = [
        Tick(position(count * step), f"{count * step:,.{decimals}f}")
        for count in range(first, last + 1)
    ]
    return [position(value) for value in values], ticks


def _nice_step(step: float) -> float:
    """Return the next of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(nice * power for nice in (1, 2, 5, 10) if nice * power >= step)
