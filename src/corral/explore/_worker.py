"""One thing after the other; of the views that wait, only the newest."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Answer = TypeVar("Answer")


class OutdatedError(Exception):
    """Another view was asked for before this one had its turn."""


class Worker:
    """A thread that does all the work, so that the server can answer meanwhile."""

    def __init__(self) -> None:
        self._thread = ThreadPoolExecutor(1, "corral-explore")
        self._newest = 0

    async def run(self, work: Callable[[], Answer]) -> Answer:
        """Wait for one's turn, and do something.

        Parameters
        ----------
        work : callable

        Returns
        -------
        answer : object
        """
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, work)

    async def run_newest(self, work: Callable[[], Answer]) -> Answer:
        """Wait for one's turn, and do something if nobody has asked again since.

        Parameters
        ----------
        work : callable

        Returns
        -------
        answer : object
        """
        self._newest += 1
        mine = self._newest

        def work_if_newest() -> Answer:
            if mine != self._newest:
                raise OutdatedError
            return work()

        return await self.run(work_if_newest)

    def end(self) -> None:
        """Finish what was begun, and begin nothing else."""
        self._thread.shutdown(wait=True, cancel_futures=True)
