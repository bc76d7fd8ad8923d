"""Positions of curves, dots and ticks, in percent of a drawing; no words or colours."""

import math
from collections.abc import Callable, Mapping, Sequence
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

# Narrower gaps are drawn as wide as this, for they say nothing.
_MIN_GAP = 0.3

# An axis names so many numbers of clusters at most, and marks so far apart, in percent;
# so are the names of curves.
_MAX_NUMBERS = 16
_TICK_DISTANCE = 12
_NAME_DISTANCE = 8

# The words on a line across a chart take this much of it, in percent.
_LEVEL_WIDTH = 50
_LEVEL_HEIGHT = 12

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
    level : float or None
        The height of a line across the chart.
    names_level_left : bool
        Whether the words on that line stand at its left end.
    mark : (float, float) or None
        A point of the curve that counts more than the others.
    others : list of list of (float, float)
        Curves that count less.
    names : list of Tick
        Heights of curves at their right end, and what they are called.
    """

    points: list[tuple[float, float]]
    x_ticks: list[Tick]
    y_ticks: list[Tick]
    cut: float | None = None
    level: float | None = None
    names_level_left: bool = False
    mark: tuple[float, float] | None = None
    others: Sequence[list[tuple[float, float]]] = ()
    names: Sequence[Tick] = ()


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


def told_chart(selection: Mapping[str, Any]) -> Chart:
    """Draw how well clusters are told apart, by their number."""
    numbers, values = selection["told"]["numbers"], selection["told"]["values"]
    level = selection["told_threshold"]
    across = _linear(numbers[0], numbers[-1])
    # All of the axis is shown: a share is large or small by itself.
    heights, y_ticks = _vertical([*values, level, 0.0, 1.0])
    points = [(across(k), y) for k, y in zip(numbers, heights, strict=False)]
    return Chart(
        points=points,
        x_ticks=[Tick(across(k), f"{k:,}") for k in _thin(numbers, _MAX_NUMBERS)],
        y_ticks=y_ticks,
        level=heights[len(values)],
        names_level_left=_is_left_emptier(points, heights[len(values)]),
        mark=_find_mark(points, numbers, selection["n_clusters"]),
    )


def gap_chart(selection: Mapping[str, Any]) -> Chart:
    """Draw the widths of gaps by the rows above them, on logarithmic scales."""
    numbers, widths = selection["gaps"]["numbers"], selection["gaps"]["values"]
    level = selection["gap_threshold"]
    across = _logarithmic(numbers[0], numbers[-1])
    n_powers = math.ceil(math.log10(max(*widths, level, 10.0)))
    upwards = _logarithmic(_MIN_GAP, 10.0**n_powers)
    points = [
        (across(o), 100 - upwards(max(width, _MIN_GAP)))
        for o, width in zip(numbers, widths, strict=True)
    ]
    return Chart(
        points=points,
        x_ticks=_count_ticks(across, numbers[0], numbers[-1]),
        y_ticks=[
            Tick(100 - upwards(10.0**power), f"{10**power:,}")
            for power in range(n_powers + 1)
        ],
        level=100 - upwards(level),
        names_level_left=_is_left_emptier(points, 100 - upwards(level)),
        mark=_find_mark(points, numbers, selection["n_outliers"]),
    )


def objective_chart(selection: Mapping[str, Any]) -> Chart:
    """Draw the objective by the number of outliers, a curve for each K."""
    chosen, n_outliers = selection["n_clusters"], selection["n_outliers"]
    curves = {each["n_clusters"]: each["points"] for each in selection["objectives"]}
    numbers = [o for each in curves.values() for o in each["numbers"]]
    # One more, for there may be none.
    low, high = min(numbers), max(numbers)
    shifted = _logarithmic(low + 1, high + 1)
    heights, y_ticks = _vertical(
        [y for each in curves.values() for y in each["values"]]
    )
    rest = iter(heights)
    drawn = {
        k: [(shifted(o + 1), next(rest)) for o in each["numbers"]]
        for k, each in curves.items()
    }
    points = drawn.get(chosen, [])
    marked = curves[chosen]["numbers"] if chosen in curves else []
    return Chart(
        points=points,
        x_ticks=_count_ticks(lambda o: shifted(o + 1), low, high),
        y_ticks=y_ticks,
        mark=_find_mark(points, marked, n_outliers),
        others=[each for k, each in drawn.items() if k != chosen],
        names=_name_ends(drawn, chosen),
    )


def _is_left_emptier(points: Sequence[tuple[float, float]], level: float) -> bool:
    """Return whether words on a line hide fewer points at its left end."""
    near = [x for x, y in points if level - _LEVEL_HEIGHT <= y <= level]
    n_left = sum(x <= _LEVEL_WIDTH for x in near)
    n_right = sum(x >= 100 - _LEVEL_WIDTH for x in near)
    return n_left < n_right


def _find_mark(
    points: Sequence[tuple[float, float]], numbers: Sequence[int], chosen: int
) -> tuple[float, float] | None:
    return points[numbers.index(chosen)] if chosen in numbers else None


def _name_ends(
    drawn: Mapping[int, list[tuple[float, float]]], chosen: int
) -> list[Tick]:
    """Name curves at their right end: the chosen one, and others not too close."""
    names: list[Tick] = []
    for k in sorted(drawn, key=lambda k: abs(k - chosen)):
        height = drawn[k][-1][1]
        if all(abs(height - other.position) >= _NAME_DISTANCE for other in names):
            names.append(Tick(height, str(k)))
    return names


def _count_ticks(position: Callable[[float], float], low: int, high: int) -> list[Tick]:
    """Mark the ends of an axis of counts, and powers of ten that are not too near."""
    ends = [low, high] if high > low else [low]
    powers = [10**power for power in range(len(str(high))) if low < 10**power < high]
    inside = [
        power
        for power in powers
        if all(abs(position(power) - position(end)) > _TICK_DISTANCE for end in ends)
    ]
    return [Tick(position(count), f"{count:,}") for count in sorted([*ends, *inside])]


def _thin(numbers: Sequence[int], n_most: int) -> Sequence[int]:
    return numbers[:: math.ceil(len(numbers) / n_most)]


def _linear(low: float, high: float) -> Callable[[float], float]:
    """Return the function from values to percent of an axis."""
    span = (high - low) or 1.0
    return lambda value: 100 * (value - low) / span


def _logarithmic(low: float, high: float) -> Callable[[float], float]:
    """Return the same for a logarithmic axis."""
    scale = _linear(math.log(low), math.log(high))
    return lambda value: scale(math.log(value))


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
