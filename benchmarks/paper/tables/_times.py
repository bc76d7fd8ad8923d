"""Table 4: median seconds, and ratios to K-means beside the paper's."""

from typing import NamedTuple

from benchmarks.paper.expected import read_seconds
from benchmarks.paper.grids import Grid
from benchmarks.paper.score import Score, summarise
from benchmarks.paper.tables._markdown import NOTHING, write_table


class _Line(NamedTuple):
    """A row of the table: a method of ours, or a stage of it, and the paper's name."""

    label: str
    method: str
    stage: str
    cited: str | None


_LINES = (
    _Line("K-means", "kmeans", "total", "kmeans"),
    _Line("LOF", "lof", "total", "lof"),
    _Line("COF", "cof", "total", "cof"),
    _Line("LDOF", "ldof", "total", "ldof"),
    _Line("FABOD", "fabod", "total", "fabod"),
    _Line("iForest", "iforest", "total", "iforest"),
    _Line("OPCA", "opca", "total", "opca"),
    _Line("TONMF", "tonmf", "total", "tonmf"),
    _Line("K-means--", "kmeans--one-start", "total", "kmeans--"),
    _Line("COR.paper(), 100 basic partitions", "cor-paper", "partitions", "partitions"),
    _Line("COR.paper(), the rest", "cor-paper", "fusion", "fusion"),
    _Line("COR(), basic partitions", "cor", "partitions", None),
    _Line("COR(), the rest", "cor", "fusion", None),
)
_BASELINE = "kmeans"


def time_tables(grid: Grid, scores: list[Score]) -> str:
    """Return the seconds of both, and how many times K-means that is for each."""
    ours = _find_ours(grid, scores)
    cited = read_seconds()
    seconds = _write(grid, lambda line, name: _pair(line, name, cited, ours))
    ratios = _write(
        grid,
        lambda line, name: (
            _divide(cited, (line.cited, name), (_BASELINE, name)),
            _divide(ours, (line, name), (_LINES[0], name)),
        ),
    )
    return (
        f"### Seconds, the paper's / ours\n\n{seconds}\n\n"
        f"### Times K-means, the paper's / ours\n\n{ratios}"
    )


def _find_ours(grid: Grid, scores: list[Score]) -> dict:
    summary = summarise(scores)
    return {
        (line, name): summary[key].median
        for line in _LINES
        for name in grid.datasets
        if (key := (name, "ours", line.method, f"seconds_{line.stage}")) in summary
    }


def _pair(line: _Line, name: str, cited: dict, ours: dict):
    return cited.get((line.cited, name)), ours.get((line, name))


def _divide(seconds: dict, one: tuple, other: tuple) -> float | None:
    if one not in seconds or other not in seconds:
        return None
    return seconds[one] / seconds[other]


def _write(grid: Grid, find) -> str:
    header = ["", *grid.datasets]
    rows = [
        [line.label, *(_write_pair(*find(line, name)) for name in grid.datasets)]
        for line in _LINES
    ]
    return write_table(header, rows)


def _write_pair(cited: float | None, ours: float | None) -> str:
    return f"{_write_number(cited)} / {_write_number(ours)}"


def _write_number(number: float | None) -> str:
    if number is None:
        return NOTHING
    return f"{number:.0f}" if number >= 100 else f"{number:.2g}"
