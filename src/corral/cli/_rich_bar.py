"""The progress bar of rich; the only module that imports rich."""

import threading

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.text import Text

from corral.cli._text import one_line

# Seconds before the bar appears: what is over sooner needs none.
_DELAY = 1.0


class RichBar:
    """A bar with rate and time left, or a spinner where the length is unknown."""

    def __init__(self) -> None:
        # The caller has decided to show it, so rich need not look for a terminal.
        console = Console(stderr=True, force_terminal=True, force_interactive=True)
        self._progress = Progress(
            SpinnerColumn(),
            # As it is: brackets in the name of a file are no colours.
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            _Rate(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
        )
        self._task = self._progress.add_task("", total=None)
        self._stage = ""
        self._lock = threading.Lock()
        self._timer = threading.Timer(_DELAY, self._progress.start)
        self._timer.daemon = True

    def __enter__(self) -> "RichBar":
        self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._timer.cancel()
        self._timer.join()
        if self._progress.live.is_started:
            self._progress.stop()

    def stage(self, text: str) -> None:
        """Begin something of unknown length."""
        with self._lock:
            self._begin(text, None)

    def tick(self, stage: str, done: int, total: int) -> None:
        """Show how far a stage is."""
        # Of one step it is not known how far it is.
        known = total if total > 1 else None
        with self._lock:
            # A method that fits many models goes through its stages again and again.
            if stage != self._stage or done < self._progress.tasks[0].completed:
                self._begin(stage, known)
            self._progress.update(self._task, completed=done)

    def _begin(self, text: str, total: int | None) -> None:
        self._stage = text
        # A new task, for a total once set cannot be taken back.
        self._progress.remove_task(self._task)
        self._task = self._progress.add_task(one_line(text), total=total)


class _Rate(ProgressColumn):
    """What is done, how fast, and the time left."""

    def render(self, task: Task) -> Text:
        """Return the text for the state of a task."""
        if task.total is None:
            return Text("")
        parts = [f"{task.completed:,.0f} of {task.total:,.0f}"]
        if task.speed:
            parts.append(f"{task.speed:,.0f}/s")
        if task.time_remaining is not None:
            parts.append(f"{task.time_remaining:.0f} s left")
        return Text(", ".join(parts))
