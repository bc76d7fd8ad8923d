"""How far a fit is: stages report, and whoever watches is told."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Callback = Callable[[str, int, int], None]

LEARNING = "learning partitions"
LABELLING = "labelling rows"
FUSING = "fusing"


class _Watcher:
    """Tells a callback what the threads of a fit report, one report at a time."""

    def __init__(self, callback: Callback) -> None:
        self._callback = callback
        # Reports that the callback has not been told yet. Nobody waits to tell: a
        # callback that fits or asks a model itself would wait for itself.
        self._reports: deque[tuple[str, int, int]] = deque()
        self._telling = threading.Lock()

    def take(self, report: tuple[str, int, int]) -> None:
        """Tell a report, or leave it to who is telling already."""
        self._reports.append(report)
        # Looked at again after the lock is free: another may have left one just then.
        while self._reports and self._telling.acquire(blocking=False):
            try:
                while self._reports:
                    self._callback(*self._reports.popleft())
            except BaseException:
                # The fit ends here, and its other threads have nothing to tell.
                self._reports.clear()
                raise
            finally:
                self._telling.release()


# Who watches the fit that this thread works for: fits in other threads have others.
_watchers: ContextVar[tuple[_Watcher, ...]] = ContextVar("watchers", default=())


@contextmanager
def watch(callback: Callback) -> Iterator[None]:
    """Have a callback told how far the fits inside the ``with`` block are.

    Fits of other threads that run at the same time are not among them.

    Parameters
    ----------
    callback : callable
        Gets the stage, what is done and what there is to do in all; called from one
        thread at a time. What it raises ends the fit.
    """
    token = _watchers.set((*_watchers.get(), _Watcher(callback)))
    try:
        yield
    finally:
        _watchers.reset(token)


def report(stage: str, done: int, total: int) -> None:
    """Tell all watchers of this fit how far a stage is."""
    for watcher in _watchers.get():
        watcher.take((stage, done, total))


class Counter:
    """Counts what threads have done of a stage, and reports it."""

    def __init__(self, stage: str, total: int) -> None:
        self._stage = stage
        self._total = total
        self._done = 0
        self._lock = threading.Lock()

    def add(self, n_done: int) -> None:
        """Add what was done since the last call."""
        with self._lock:
            self._done += n_done
            done = self._done
        report(self._stage, done, self._total)
