"""Errors as one sentence: what the user did, what it should be, what to do."""

import errno
import os
import sys
import tempfile
import traceback
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from difflib import get_close_matches

import click

from corral._visible import spell_out
from corral.cli._text import one_line

# What the exit codes mean; the reference page prints them.
EXIT_CODES = {
    0: "All went well. A page of corral explore ends so by Ctrl-C or a signal, too.",
    1: "The reader of the output has gone, or corral itself is at fault.",
    2: "The command line, a file or the data cannot be used; the message says why.",
    130: "Stopped by Ctrl-C. No file is half-written.",
    143: "Ended by a signal, as of kill or timeout. No file is half-written.",
}

# What the library raises where the request or the data is at fault.
_EXPECTED = (EOFError, ImportError, MemoryError, OSError, ValueError)

# Errors of a place that takes no more, and what they mean.
_FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "your share of the disk is full",
    errno.EFBIG: "files may not be that large there",
}

# The search for near names compares every letter; and a longer list helps nobody.
_MOST_SEARCHED = 2000
_MOST_TOLD = 50


class Failure(click.ClickException):
    """One sentence for the user, and the traceback if it was asked for.

    Parameters
    ----------
    message : str
    debug : bool, default=False
        Whether to show the traceback of the error behind it.
    """

    exit_code = 2

    def __init__(self, message: str, *, debug: bool = False):
        super().__init__(one_line(message))
        self.debug = debug

    def show(self, file=None) -> None:
        """Write the sentence to standard error."""
        if self.debug and self.__cause__ is not None:
            show_traceback(self.__cause__)
        super().show(file)


class Fault(Failure):
    """An error that is not the user's."""

    exit_code = 1


class Interrupted(click.ClickException):
    """Ctrl-C, said in one line."""

    exit_code = 130

    def show(self, file=None) -> None:
        """Write the line to standard error."""
        # A terminal has echoed ^C, and the cursor stands behind it.
        start = "\n" if sys.stderr is not None and sys.stderr.isatty() else ""
        click.echo(start + self.format_message(), err=True)


@contextmanager
def as_sentences(ctx: click.Context) -> Iterator[None]:
    """Turn what goes wrong inside into a sentence and an exit code.

    Parameters
    ----------
    ctx : click.Context
        Knows whether --debug was given, before or after the command.
    """
    try:
        with _plain_warnings():
            yield
    except (click.exceptions.NoArgsIsHelpError, BrokenPipeError):
        # Help is no error; and where the reader has gone, click ends quietly.
        raise
    except click.UsageError as error:
        raise Failure(_usage(error)) from error
    except KeyboardInterrupt as error:
        raise Interrupted("Stopped. No file is half-written.") from error
    except (click.ClickException, click.Abort, click.exceptions.Exit):
        raise
    except Exception as error:
        kind = Failure if isinstance(error, _EXPECTED) else Fault
        raise kind(sentence(error), debug=wants_traceback(ctx)) from error


def sentence(error: Exception) -> str:
    """Return an error as one line.

    Parameters
    ----------
    error : Exception

    Returns
    -------
    text : str
    """
    if isinstance(error, OSError) and error.errno in _FULL:
        return _say_full(error)
    if isinstance(error, OSError) and error.errno == errno.EROFS and error.filename:
        name = one_line(str(error.filename))
        return (
            f"'{name}' cannot be written, because its disk can only be read. Name a "
            "place on another disk."
        )
    if isinstance(error, OSError) and error.strerror and error.filename:
        name = one_line(str(error.filename))
        return f"'{name}' cannot be used: {_end(error.strerror)}"
    if isinstance(error, OSError) and error.strerror:
        return f"Reading or writing failed: {_end(error.strerror)}"
    text = one_line(str(error))
    if isinstance(error, MemoryError):
        return f"The memory is too small. {text}".rstrip()
    if isinstance(error, _EXPECTED) and text:
        return text
    return (
        f"corral met an error it does not expect, {_end(_name(error, text))} Run again "
        "with --debug and report what it shows."
    )


def _say_full(error: OSError) -> str:
    """Return what to do where a file finds no more room."""
    name = one_line(str(error.filename)) if error.filename else ""
    what = f"'{name}'" if name else "Standard output or a temporary file"
    why = _FULL[error.errno or 0]
    place = "name a place on another disk"
    if not name or name.startswith(os.path.join(tempfile.gettempdir(), "corral-")):
        place = "set TMPDIR to a folder on another disk"
    return f"{what} cannot be written, because {why}. Make room, or {place}."


def near_names(name: str, known: Iterable[str]) -> str:
    """Return a hint that names what was probably meant, or all that is known.

    Parameters
    ----------
    name : str
    known : iterable of str

    Returns
    -------
    hint : str
        A sentence; empty where too much is known to be searched or told.
    """
    names = list(known)
    if len(names) > _MOST_SEARCHED:
        return ""
    # Of names that differ in case alone, the first.
    lower = {each.lower(): each for each in reversed(names)}
    near = get_close_matches(name.lower(), lower, n=3, cutoff=0.5)
    if near:
        return f"Did you mean {' or '.join(repr(lower[each]) for each in near)}?"
    return f"Choose one of {', '.join(names)}." if len(names) <= _MOST_TOLD else ""


def show_traceback(error: BaseException) -> None:
    """Write the traceback of an error to standard error.

    Parameters
    ----------
    error : BaseException
    """
    lines = traceback.format_exception(error)
    click.echo(spell_out("".join(lines)), err=True)


def set_debug(ctx: click.Context, _: click.Parameter, value: bool) -> None:
    """Remember --debug for all commands of this call.

    Parameters
    ----------
    ctx : click.Context
    value : bool
    """
    if value:
        ctx.meta["corral.debug"] = True


def wants_traceback(ctx: click.Context) -> bool:
    """Return whether --debug was given.

    Parameters
    ----------
    ctx : click.Context

    Returns
    -------
    debug : bool
    """
    return bool(ctx.meta.get("corral.debug"))


def _name(error: Exception, text: str) -> str:
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def _end(text: str) -> str:
    """End a sentence, unless it has an end."""
    # Within brackets, too: "(Did you mean '--labels'?)" is a whole sentence.
    return text if text.endswith((".", "?", ".)", "?)")) else f"{text}."


def _usage(error: click.UsageError) -> str:
    message = _end(one_line(error.format_message()))
    place = error.ctx.command_path if error.ctx else "corral"
    return f"{message} See: {place} --help"


@contextmanager
def _plain_warnings() -> Iterator[None]:
    """Show warnings as sentences, without the line of code that gave them."""

    def show(message, category, filename, lineno, file=None, line=None):
        click.echo(f"Warning: {one_line(str(message))}", err=True)

    with warnings.catch_warnings():
        warnings.showwarning = show
        yield
