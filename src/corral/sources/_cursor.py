"""Blocks that come in order, read in any ranges of rows."""

import os
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from corral.sources._errors import UnreadableBlockError

# Streams of a parent process, kept so that they are not closed.
_ABANDONED: list[Any] = []


class Cursor:
    """A place in a stream of blocks, from where it goes on or begins again.

    Only the last block is kept, so ranges that follow each other take every block
    once.

    Parameters
    ----------
    begin : callable
        Takes one of ``starts`` and returns an iterator over the blocks from it on.
    starts : sequence of int, default=(0,)
        The rows at which a stream can begin, ascending, the first of them 0.
    """

    def __init__(
        self, begin: Callable[[int], Iterator[Any]], starts: Sequence[int] = (0,)
    ) -> None:
        self._begin = begin
        self._starts = starts
        # Estimators read on threads, but a stream has one place only.
        self._lock = threading.Lock()
        self._process = os.getpid()
        self._leave()

    def read(self, start: int, stop: int, join: Callable[[Iterator[Any]], Any]) -> Any:
        """Return what ``join`` makes of the pieces of the rows start to stop - 1.

        A piece is a part of a block, and good until the next one is taken.
        """
        with self._lock:
            try:
                return join(self._pieces(start, stop))
            except BaseException:
                self._leave()
                raise

    def _leave(self) -> None:
        self._stream: Iterator[Any] | None = None
        self._block: Any = None
        self._first = self._end = 0

    def _pieces(self, start: int, stop: int) -> Iterator[Any]:
        if start < stop:
            self._go_to(start)
        while start < stop:
            if start >= self._end:
                self._advance()
                continue
            end = min(stop, self._end)
            yield self._block[start - self._first : end - self._first]
            start = end

    def _go_to(self, row: int) -> None:
        """Begin where the row is nearest, unless the stream will come by."""
        origin = self._starts[bisect_right(self._starts, row) - 1]
        # A process that was forked shares the place in the file with its parent.
        if self._process != os.getpid():
            # Never closed: that would wait for threads that stayed with the parent.
            _ABANDONED.append(self._stream)
            self._process = os.getpid()
        elif self._stream and self._first <= row and origin <= self._end:
            return
        self._leave()
        self._stream = self._begin(origin)
        self._first = self._end = origin

    def _advance(self) -> None:
        assert self._stream is not None
        # Not held while the next one is made.
        self._block = None
        block = next(self._stream, None)
        if block is None:
            raise UnreadableBlockError(
                f"The rows end after {self._end:,}, but more were there before. The "
                "data should not change while it is read."
            )
        self._block = block
        self._first, self._end = self._end, self._end + block.shape[0]
