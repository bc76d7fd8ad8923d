"""Names of files and lists of names on the command line."""

import csv
import io
import os
from typing import Any

import click


class FilePath(click.Path):
    """A path that is not empty, as the value of a forgotten variable would be.

    Python takes an empty path for the current folder.
    """

    def convert(self, value, param, ctx) -> Any:
        """Return the path."""
        if not os.fspath(value):
            self.fail("the path is empty. Name one.", param, ctx)
        return super().convert(value, param, ctx)


class Names(click.ParamType):
    """Names parted by commas; one with a comma or line end stands in double quotes."""

    name = "names"

    def convert(self, value, param, ctx) -> list[str]:
        """Return the names."""
        if isinstance(value, list):
            return value
        try:
            names = next(csv.reader([value], skipinitialspace=True), [])
        except csv.Error:
            self.fail(
                f"{value!r} has a line end. A name with one stands in double quotes.",
                param,
                ctx,
            )
        found = [each for each in map(str.strip, names) if each]
        if not found:
            self.fail(f"{value!r} has no name. Give at least one.", param, ctx)
        return found


def join_names(names: list[str]) -> str:
    """Return names as the command line takes them.

    Parameters
    ----------
    names : list of str

    Returns
    -------
    text : str
    """
    text = io.StringIO()
    # The writer quotes names with the characters that would end its line.
    csv.writer(text, lineterminator="\r\n").writerow(names)
    return text.getvalue().removesuffix("\r\n")


def flatten(
    ctx: click.Context, param: click.Parameter, values: tuple[list[str], ...]
) -> list[str] | None:
    """Return all names of an option that may stand several times, or None.

    Parameters
    ----------
    ctx : click.Context
    param : click.Parameter
    values : tuple of list of str

    Returns
    -------
    names : list of str or None
        Each once.
    """
    return list(dict.fromkeys(name for each in values for name in each)) or None
