"""Results as text for people: facts in two columns, and small tables."""

import textwrap
from collections.abc import Iterable, Sequence

from corral._visible import spell_out

_WIDTH = 88
_INDENT = 10

# Longer lists are cut, and say by how much.
_N_LISTED = 12


def fact(name: str, text: str) -> str:
    """Return a fact with its name in the margin.

    Parameters
    ----------
    name : str
        Shorter than ten letters; empty for a line that goes on.
    text : str

    Returns
    -------
    lines : str
    """
    return textwrap.fill(
        one_line(text),
        width=_WIDTH,
        initial_indent=f"{name:<{_INDENT}}",
        subsequent_indent=" " * _INDENT,
        break_long_words=False,
        break_on_hyphens=False,
    )


def one_line(text: str) -> str:
    """Return a text of the user's data as one line that a terminal shows as it is.

    Parameters
    ----------
    text : str

    Returns
    -------
    line : str
        With the characters spelled out that would move the cursor, change colours or
        turn the order of letters.
    """
    return spell_out(" ".join(text.split()))


def listing(names: Iterable[object], limit: int = _N_LISTED) -> str:
    """Return names parted by commas; of many, only the first.

    Parameters
    ----------
    names : iterable
    limit : int, default=12

    Returns
    -------
    text : str
    """
    every = list(map(str, names))
    if len(every) <= limit + 1:
        return ", ".join(every)
    return f"{', '.join(every[:limit])} and {len(every) - limit:,} more"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: 1 row, 2 rows.

    Parameters
    ----------
    number : int
    noun : str

    Returns
    -------
    text : str
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def number(value: float) -> str:
    """Return a number short enough to be read, without powers of ten.

    Parameters
    ----------
    value : float

    Returns
    -------
    text : str
    """
    return f"{value:,.0f}" if 1000 <= abs(value) < 1e15 else f"{value:.4g}"


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table whose columns stand below each other, numbers to the right.

    Parameters
    ----------
    head : sequence of str
    rows : sequence of sequence of str

    Returns
    -------
    lines : str
    """
    columns = list(zip(head, *rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    is_number = [_are_numbers(column[1:]) for column in columns]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_number, strict=True)
        ).rstrip()
        for row in (head, *rows)
    )


def _are_numbers(cells: Sequence[str]) -> bool:
    marks = str.maketrans("", "", ",.-%")
    return all(
        not cell.translate(marks) or cell.translate(marks).isdigit() for cell in cells
    )
