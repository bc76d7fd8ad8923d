"""Numbers on the command line, some of which may be left to the method."""

import math
import re
from typing import Any

import click

# The ends of a range are no larger.
_MAX_NUMBER = 10**9


class CountOrAuto(click.IntRange):
    """A whole number, or "auto"."""

    name = "integer or auto"

    def convert(self, value, param, ctx) -> Any:
        """Return the number, or "auto"."""
        if str(value).lower() == "auto":
            return "auto"
        return super().convert(value, param, ctx)


class NumberRange(click.FloatRange):
    """A number within limits, which "nan" is not, though no comparison tells."""

    def convert(self, value, param, ctx) -> Any:
        """Return the number."""
        number = super().convert(value, param, ctx)
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


class Size(click.ParamType):
    """A number of bytes, such as 2GB."""

    name = "size"

    def convert(self, value, param, ctx) -> str:
        """Return the text, checked; ``read_limit`` makes a number of it."""
        from corral._memory import read_limit

        try:
            read_limit(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        return str(value)


class Range(click.ParamType):
    """Two whole numbers parted by a comma, the smaller first, or "auto"."""

    name = "range"

    def convert(self, value, param, ctx) -> str:
        """Return the text, checked; ``read_range`` makes numbers of it."""
        text = "".join(str(value).lower().split())
        if text != "auto" and not self._is_range(text):
            self.fail(
                f"{str(value)[:40]!r} should be two whole numbers, the smaller first "
                f"and none above {_MAX_NUMBER:,}, such as 2,20; or auto.",
                param,
                ctx,
            )
        return text

    @staticmethod
    def _is_range(text: str) -> bool:
        # With so few digits, any of them can be read.
        found = re.fullmatch(r"([0-9]{1,10}),([0-9]{1,10})", text)
        if found is None:
            return False
        return 1 <= int(found[1]) <= int(found[2]) <= _MAX_NUMBER


def read_range(text: str | None) -> tuple[int, int] | str | None:
    """Return a range as COR takes it.

    Parameters
    ----------
    text : str or None
        Of the option.

    Returns
    -------
    limits : tuple of (int, int), "auto" or None
    """
    if text is None or text == "auto":
        return text
    low, high = map(int, text.split(","))
    return low, high
