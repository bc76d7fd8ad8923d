"""The call of a command, written so that it can be repeated."""

import shlex
from collections.abc import Collection
from typing import Any

import click
from click.core import ParameterSource

from corral.cli._names import Names, join_names

# What the user said, as against defaults.
_SAID = (ParameterSource.COMMANDLINE, ParameterSource.DEFAULT_MAP)

# They change how a call looks, or what it may replace, not what it finds.
_LEFT_OUT = {"force", "show"}


def command_line(ctx: click.Context) -> str:
    """Return the command line with all options said, in a file or not.

    Parameters
    ----------
    ctx : click.Context

    Returns
    -------
    line : str
    """
    return shlex.join([*ctx.command_path.split(), *said_words(ctx)])


def said_words(ctx: click.Context, leave_out: Collection[str] = ()) -> list[str]:
    """Return the arguments and options said, in a file or not, as a line has them.

    Parameters
    ----------
    ctx : click.Context
    leave_out : collection of str, default=()
        Names of parameters.

    Returns
    -------
    words : list of str
    """
    words = []
    for param in ctx.command.params:
        name = str(param.name)
        is_said = ctx.get_parameter_source(name) in _SAID
        if is_said and name in ctx.params and name not in {*leave_out, *_LEFT_OUT}:
            words += _words(param, ctx.params[name])
    return words


def as_argument(value: object) -> str:
    """Return an argument so that no command takes it for an option.

    Parameters
    ----------
    value : object
        Path of a file, or "-" for standard input.

    Returns
    -------
    word : str
    """
    word = str(value)
    return f"./{word}" if word.startswith("-") and word != "-" else word


def _words(param: click.Parameter, value: Any) -> list[str]:
    if isinstance(param, click.Argument):
        values = value if param.nargs == -1 else [value]
        return [as_argument(each) for each in values]
    option = max(param.opts, key=len)
    if getattr(param, "is_flag", False):
        if value:
            return [option]
        return [max(param.secondary_opts, key=len)] if param.secondary_opts else []
    if isinstance(param.type, Names):
        # A file of options may have an empty list.
        return [option, join_names(value)] if value else []
    values = value if isinstance(value, list | tuple) else [value]
    return [word for each in values for word in (option, str(each))]
