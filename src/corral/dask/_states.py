"""States on the workers of a cluster; only small arrays come back."""

import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from corral._states import State
from corral._threads import Threads, use_threads
from corral._tree import add_in_tree
from corral.dask._errors import need_dask, tell_loss

# So many parts that follow each other are added up in one task. A power of two: then
# the order is that of a binary tree.
_FAN_IN = 8


class Tasks:
    """Runs functions on the workers, and brings back what they return.

    Parameters
    ----------
    client : distributed.Client
    shows_progress : bool
        Whether Dask's bar is shown.
    """

    def __init__(self, client: Any, *, shows_progress: bool = False) -> None:
        self._client = client
        self._shows_progress = shows_progress

    def start(
        self,
        function: Callable,
        blocks: Sequence[Any],
        *args: Any,
        each: Sequence[Any] | None = None,
    ) -> list[Any]:
        """Start ``function(block, *args)`` for all blocks; return futures.

        Parameters
        ----------
        function : callable
        blocks : sequence
            Futures, Delayed, or what tells where rows are.
        *args : objects
            The same for all blocks: sent once, and kept by the scheduler, so that they
            can be sent again if a worker is lost.
        each : sequence, default=None
            One more argument, another one for each block.
        """
        shared = self.submit(_hold, args)
        more = [()] * len(blocks) if each is None else [(one,) for one in each]
        name = f"corral-{function.__name__.replace('_', '-')}-{uuid.uuid4().hex}"
        with tell_loss(self._client):
            homes = self._find_homes([*blocks, *(each or [])])
            return [
                self._start(f"{name}-{index}", homes, function, block, shared, *one)
                for index, (block, one) in enumerate(zip(blocks, more, strict=True))
            ]

    def _find_homes(self, values: list[Any]) -> dict[str, list[str]]:
        """Return the workers that hold futures, by the keys of these."""
        futures = [each for each in values if is_future(each)]
        held = self._client.who_has(futures) if futures else {}
        return {key: list(workers) for key, workers in held.items() if workers}

    def _start(
        self,
        key: str,
        homes: dict[str, list[str]],
        function: Callable,
        block: Any,
        shared: Any,
        *one: Any,
    ) -> Any:
        dask = need_dask("dask")
        if not dask.is_dask_collection(block):
            options: dict[str, Any] = {"key": key, "pure": False}
            known = [
                homes[each.key]
                for each in (block, *one)
                if is_future(each) and each.key in homes
            ]
            if known:
                # A block is large and its worker may be busy: the task waits for it,
                # unless the worker is lost.
                options |= {"workers": known[0], "allow_other_workers": True}
            return self._client.submit(_run, function, block, shared, *one, **options)
        # The rows of a collection come from tasks of its own, which nobody else needs.
        run = dask.delayed(_run, pure=False)
        task = run(function, block, shared, *one, dask_key_name=key)
        return self._client.compute(task)

    def gather(self, futures: list[Any]) -> list[Any]:
        """Return what futures hold, in their order."""
        with tell_loss(self._client):
            if self._shows_progress:
                need_dask("distributed").progress(futures, notebook=False)
            return self._client.gather(futures)

    def wait(self, futures: list[Any]) -> None:
        """Wait until all futures are there, or one of them cannot be."""
        with tell_loss(self._client):
            if self._shows_progress:
                need_dask("distributed").progress(futures, notebook=False)
            need_dask("distributed").wait(futures)

    def reduce(self, futures: list[Any]) -> Any:
        """Add up what futures hold on the workers, and return the sum."""
        while len(futures) > 1:
            groups = [
                futures[first : first + _FAN_IN]
                for first in range(0, len(futures), _FAN_IN)
            ]
            futures = [self.submit(add_in_tree, group) for group in groups]
        return self.gather(futures)[0]

    def submit(self, function: Callable, *args: Any) -> Any:
        """Start one task; return its future."""
        with tell_loss(self._client):
            return self._client.submit(function, *args, pure=False)


def is_future(value: Any) -> bool:
    """Return whether a value is held by a worker."""
    return isinstance(value, need_dask("distributed").Future)


def _hold(args: tuple) -> tuple:
    """Return what is the same for all tasks of a pass."""
    return args


def _run(function: Callable, block: Any, args: tuple, *one: Any) -> Any:
    """Do the work of a task, with one thread."""
    # BLAS of a worker must not use the cores of the others.
    with use_threads(1) as threads:
        return function(block, threads, *args, *one)


class DaskStates:
    """States on the workers: :class:`~corral._states.States`.

    Parameters
    ----------
    tasks : Tasks
    futures : list of Future
        Of a :class:`~corral._states.State` each. One that is lost with its worker is
        made again by the task that made it, from the rows.
    sizes : ndarray of shape (n_blocks,)
    threads : Threads
    """

    place = "workers"
    whole: State | None = None

    def __init__(
        self, tasks: Tasks, futures: list[Any], sizes: np.ndarray, threads: Threads
    ) -> None:
        self.tasks = tasks
        self.futures = futures
        self.sizes = sizes
        self.threads = threads

    def map(self, function, *args, each=None):
        """Apply a function to all states; see :class:`~corral._states.States`."""
        found = self.tasks.start(function, self.futures, *args, each=each)
        return iter(self.tasks.gather(found))

    def reduce(self, function, *args, each=None):
        """Add up what a function gives for all states."""
        found = self.tasks.start(function, self.futures, *args, each=each)
        return self.tasks.reduce(found)

    def merge(self, split, arg, join, n_parts):
        """Bring together parts of all blocks, on the workers."""
        found = self.tasks.start(split, self.futures, arg)
        joined = []
        for number in range(n_parts):
            parts = [self.tasks.submit(_pick, each, number) for each in found]
            joined.append(self.tasks.submit(join, parts))
        return self.tasks.gather(joined)

    def keep_codes(self, n_slots: int) -> None:
        """Keep nothing more: the memory is that of the workers."""


def _pick(parts: list[Any], number: int) -> Any:
    return parts[number]
