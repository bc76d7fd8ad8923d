"""Tables in Markdown, aligned so that they can be read as they are."""

from benchmarks.paper import methods
from benchmarks.paper.grids import CITED, Column
from benchmarks.paper.score import Spread

# A cell without a number.
NOTHING = "–"

_SOURCES = {CITED: ", printed", "paper": ", as in the paper", "ours": ""}


def name_column(column: Column) -> str:
    """Return the title of a column."""
    if column.minus is not None:
        return "difference"
    if column.source == CITED and column.method == "cor":
        return "COR, printed"
    return methods.find(column.method).label + _SOURCES[column.source]


def write_spread(value: Spread | None, is_difference: bool = False) -> str:
    """Return "mean ± sd", or a difference with its sign."""
    if value is None:
        return NOTHING
    if is_difference:
        return f"{value.mean:+.1f}"
    return f"{value.mean:.1f}" + ("" if value.sd is None else f" ± {value.sd:.1f}")


def write_table(header: list[str], rows: list[list[str]]) -> str:
    """Return a table: the first column to the left, numbers to the right."""
    widths = [
        max(len(line[place]) for line in [header, *rows])
        for place in range(len(header))
    ]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    lines = [_write_row(line, widths) for line in (header, rule, *rows)]
    return "\n".join(lines)


def _write_row(cells: list[str], widths: list[int]) -> str:
    first, *others = (
        text.ljust(width) if place == 0 else text.rjust(width)
        for place, (text, width) in enumerate(zip(cells, widths, strict=True))
    )
    return "| " + " | ".join([first, *others]) + " |"
