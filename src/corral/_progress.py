"""How far a fit is: stages report, and whoever watches is told."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Callback = Callable[[str, int, int], None]

LEARNING = "learning partitions"
LABELLING = "labelling rows"
FUSING = "fusing"

# A fit works in several threads, and one watcher may see several fits.
_lock = threading.Lock()
_watchers: list[Callback] = []


@contextmanager
def watch(callback: Callback) -> Iterator[None]:
    """Have a callback told how far the fits inside the ``with`` block are.

    Parameters
    ----------
    callback : callable
        Gets the stage, what is done and what there is to do in all; called from one
        thread at a time.
    """
    with _lock:
        _watchers.append(callback)
    try:
        yield
    finally:
        with _lock:
            _watchers.remove(callback)


def report(stage: str, done: int, total: int) -> None:
    """Tell all watchers how far a stage is."""
    if not _watchers:
        return
    with _lock:
        for callback in _watchers:
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
