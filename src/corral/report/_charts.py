"""Positions of curves, dots and ticks, in percent of a drawing; no words or colours."""

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any, NamedTuple

# An axis aims at this many steps between its ticks.
_N_STEPS = 4

# Clusters have so many colours, which then come again.
N_COLOURS = 8

# So many clusters, the largest, have their number on the map.
_MAX_NAMES = 20

# Rows outside of the view are drawn this near to its edge.
_EDGE = 1.5

# The agreement of two rows is drawn in so many steps.
_N_SHADES = 10

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


class Dots(NamedTuple):
    """Marks of the same kind, as the path of an SVG: a very short line for each."""

    colour: int
    path: str


class MapDrawing(NamedTuple):
    """The first view of the map.

    Attributes
    ----------
    clusters : list of Dots
    outliers : str
        The path of their marks.
    names : list of (int, float, float)
        Labels of clusters, and where they stand.
    n_outside : int
        Rows that are drawn at the edge because they are further out.
    """

    clusters: list[Dots]
    outliers: str
    names: list[tuple[int, float, float]]
    n_outside: int


def draw_map(row_map: Mapping[str, Any]) -> MapDrawing:
    """Draw the rows from (0, 0) to (1, 1) of the map."""
    x = [_inside(100 * value) for value in row_map["x"]]
    y = [_inside(100 * (1 - value)) for value in row_map["y"]]
    members: dict[int, list[int]] = {}
    for place, label in enumerate(row_map["labels"]):
        members.setdefault(label, []).append(place)
    outliers = members.pop(-1, [])
    colours: dict[int, list[str]] = {}
    for label in sorted(members):
        dots = [_dot(x[place], y[place]) for place in members[label]]
        colours.setdefault(label % N_COLOURS, []).extend(dots)
    largest = sorted(members, key=lambda label: -len(members[label]))[:_MAX_NAMES]
    return MapDrawing(
        clusters=[Dots(colour, "".join(dots)) for colour, dots in colours.items()],
        outliers="".join(_dot(x[place], y[place]) for place in outliers),
        names=[
            (
                label,
                median(x[place] for place in members[label]),
                median(y[place] for place in members[label]),
            )
            for label in sorted(largest)
        ],
        n_outside=sum(
            not (0 <= x <= 1 and 0 <= y <= 1)
            for x, y in zip(row_map["x"], row_map["y"], strict=True)
        ),
    )


def _inside(position: float) -> float:
    return min(max(position, _EDGE), 100 - _EDGE)


def _dot(x: float, y: float) -> str:
    # Without any length, the mark is not printed.
    return f"M{x:.2f} {y:.2f}h.01"


class HeatDrawing(NamedTuple):
    """The agreement of pairs.

    Attributes
    ----------
    size : int
        Number of rows, which is the side of the drawing.
    shades : list of (float, str)
        How strong each shade is, from 0 to 1, and the path of its cells.
    borders : list of int
        Where a group ends and another starts.
    middles : list of float
        The middle of each group, in percent.
    """

    size: int
    shades: list[tuple[float, str]]
    borders: list[int]
    middles: list[float]


def draw_agreement(agreement: Mapping[str, Any]) -> HeatDrawing:
    """Draw the agreement as a square of cells."""
    size = len(agreement["percents"])
    paths: list[list[str]] = [[] for _ in range(_N_SHADES + 1)]
    for row, percents in enumerate(agreement["percents"]):
        shades = [_shade(percent) for percent in percents]
        start = 0
        # Neighbours of the same shade are one line.
        for column in range(1, size + 1):
            if column == size or shades[column] != shades[start]:
                line = f"M{start} {row + 0.5:g}h{column - start}"
                paths[shades[start]].append(line)
                start = column
    borders = [0]
    for group in agreement["groups"]:
        borders.append(borders[-1] + group["size"])
    return HeatDrawing(
        size=size,
        shades=[
            (shade / _N_SHADES, "".join(path))
            for shade, path in enumerate(paths)
            if shade and path
        ],
        borders=borders[1:-1],
        middles=[
            50 * (low + high) / size
            for low, high in zip(borders[:-1], borders[1:], strict=True)
        ],
    )


def _shade(percent: int | None) -> int:
    return 0 if percent is None else round(percent * _N_SHADES / 100)


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
