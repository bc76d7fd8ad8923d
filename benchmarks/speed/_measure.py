"""What a question is asked with and answers with, and how two sides are timed."""

import statistics
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple


@dataclass(frozen=True)
class Options:
    """What the command line asks for.

    Attributes
    ----------
    quick : bool
        Few rounds, and without what takes long.
    threads : int
        For both sides.
    """

    quick: bool
    threads: int

    def rounds(self, quick: int, full: int) -> int:
        """Return how many rounds to run."""
        return quick if self.quick else full


class Bar(NamedTuple):
    """What a ratio should be.

    With ``faster``, the ratio is other / ours and should be at least the limit; else
    it is ours / other and should be at most the limit.
    """

    limit: float
    faster: bool

    def ratio(self, ours: float, other: float) -> float:
        """Return the ratio that this bar speaks of."""
        return other / ours if self.faster else ours / other

    def holds(self, ratio: float) -> bool:
        """Return whether the ratio is on the right side."""
        return ratio >= self.limit if self.faster else ratio <= self.limit

    def __str__(self) -> str:
        return f">= {self.limit:g}x" if self.faster else f"<= {self.limit:g}"


def at_most(limit: float) -> Bar:
    """Ours should be at most so many times the other."""
    return Bar(limit, faster=False)


def times_faster(limit: float) -> Bar:
    """Ours should be at least so many times faster than the other."""
    return Bar(limit, faster=True)


@dataclass(frozen=True)
class Row:
    """A line of the table.

    Attributes
    ----------
    what : str
    ours, other : float or None
        The two sides; None where nothing was measured.
    bar : Bar or None
    unit : str
        Of the two sides.
    note : str
        Why nothing was measured.
    """

    what: str
    ours: float | None = None
    other: float | None = None
    bar: Bar | None = None
    unit: str = "s"
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """The ratio that the bar speaks of."""
        return None if self.bar is None else self.bar.ratio(self.ours, self.other)

    @property
    def holds(self) -> bool | None:
        """Whether the bar holds; None where nothing was measured."""
        return None if self.bar is None else self.bar.holds(self.ratio)


class CannotMeasure(Exception):
    """Something that a measurement needs is missing; the text says what to do."""


def rows_or_note(what: str, measure: Callable[[], Iterable[Row]]) -> list[Row]:
    """Return the rows of a measurement, or one that says why there are none."""
    try:
        return list(measure())
    except CannotMeasure as reason:
        return [Row(what, note=f"skipped: {reason}")]


def alternate(rounds: int, *sides: Callable[[int], object]) -> list[list[float]]:
    """Time the sides in turn, so that a slow spell of the machine meets all of them.

    Parameters
    ----------
    rounds : int
    *sides : callables
        Called with the number of the round, which serves as a seed.

    Returns
    -------
    seconds : list of lists
        For each side, the seconds of each round.
    """
    seconds: list[list[float]] = [[] for _ in sides]
    for number in range(rounds):
        for side, times in zip(sides, seconds, strict=True):
            start = time.perf_counter()
            side(number)
            times.append(time.perf_counter() - start)
    return seconds


def shortest(seconds: list[list[float]]) -> list[float]:
    """Return each side's shortest time: for work that is the same in every round."""
    return [min(times) for times in seconds]


def middle(seconds: list[list[float]]) -> list[float]:
    """Return each side's median: for work that depends on the round's seed."""
    return [statistics.median(times) for times in seconds]
