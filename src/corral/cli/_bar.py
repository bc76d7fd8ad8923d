"""How far a command is, on standard error."""

import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from corral._progress import watch


class Bar(Protocol):
    """What shows how far a command is."""

    def stage(self, text: str) -> None:
        """Begin something of unknown length."""

    def tick(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage is."""


class _NoBar:
    def stage(self, text: str) -> None:
        """Show nothing."""

    def tick(self, stage: str, done: int, total: int) -> None:
        """Show nothing."""


@contextmanager
def progress(wanted: bool | None) -> Iterator[Bar]:
    """Show how far the block is, once it takes more than a second.

    Fits inside the block are watched.

    Parameters
    ----------
    wanted : bool or None
        None means if standard error is a terminal.

    Yields
    ------
    bar : Bar
    """
    # Standard error is None where it was closed, and then nobody sees a bar.
    is_seen = sys.stderr is not None and (wanted or sys.stderr.isatty())
    if wanted is False or not is_seen:
        yield _NoBar()
        return
    bar = _rich_bar(wanted)
    if bar is None:
        yield _NoBar()
        return
    with bar as shown, watch(shown.tick):
        yield shown


def _rich_bar(wanted: bool | None) -> AbstractContextManager[Bar] | None:
    try:
        from corral.cli._rich_bar import RichBar
    except ImportError as error:
        if wanted is None:
            # Nobody asked for the bar, and the result is the same without it.
            return None
        raise ImportError(
            'The progress bar needs rich. Install it with: pip install "corral[cli]"'
        ) from error
    return RichBar()
