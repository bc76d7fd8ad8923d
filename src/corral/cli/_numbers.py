"""Numbers on the command line that may be left to the method."""

import re
from typing import Any

import click


class CountOrAuto(click.IntRange):
    """A whole number, or "auto"."""

    name = "integer or auto"

    def convert(self, value, param, ctx) -> Any:
        """Return the number, or "auto"."""
        if str(value).lower() == "auto":
            return "auto"
        return super().convert(value, param, ctx)


class Range(click.ParamType):
    """Two whole numbers parted by a comma, the smaller first, or "auto"."""

    name = "range"

    def convert(self, value, param, ctx) -> str:
        """Return the text, checked; ``read_range`` makes numbers of it."""
        text = "".join(str(value).lower().split())
        if text != "auto" and not self._is_range(text):
            self.fail(
                f"{value!r} should be two whole numbers, the smaller first, such as "
                "2,20; or auto.",
                param,
                ctx,
            )
        return text

    @staticmethod
    def _is_range(text: str) -> bool:
        found = re.fullmatch(r"([0-9]+),([0-9]+)", text)
        return found is not None and 1 <= int(found[1]) <= int(found[2])


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
