"""How far a fit is: stages report, and whoever watches is told."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Callback = Callable[[str, int, int], None]

LEARNING = "learning partitions"
LABELLING = "labelling rows"
FUSING = "fusing"

# A fit works in several threads, and one watcher may see several fits.
_watchers: list[Callback] = []

# Reports that no watcher has been told yet. Nobody waits to tell: a callback that fits
# or asks a model itself would wait for itself.
_reports: deque[tuple[str, int, int]] = deque()
_telling = threading.Lock()


@contextmanager
def watch(callback: Callback) -> Iterator[None]:
    """Have a callback told how far the fits inside the ``with`` block are.

    Parameters
    ----------
    callback : callable
        Gets the stage, what is done and what there is to do in all; called from one
        thread at a time.
    """
    _watchers.append(callback)
    try:
        yield
    finally:
        _watchers.remove(callback)


def report(stage: str, done: int, total: int) -> None:
    """Tell all watchers how far a stage is, or leave it to who is telling already."""
    if not _watchers:
        return
    _reports.append((stage, done, total))
    # Looked at again after the lock is free: another may have left a report just then.
    while _reports and _telling.acquire(blocking=False):
        try:
            while _reports:
                _tell(*_reports.popleft())
        except BaseException:
            # The fit ends here: what it left is not for the next watcher.
            _reports.clear()
            raise
        finally:
            _telling.release()


def _tell(stage: str, done: int, total: int) -> None:
    for callback in tuple(_watchers):
        callback(stage, done, total)


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
