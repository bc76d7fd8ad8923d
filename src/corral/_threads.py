"""Threads: a pool of our own above, BLAS held to one thread below."""

import os
import threading
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import copy_context

from threadpoolctl import ThreadpoolController


class _BlasGuard:
    """Holds BLAS to one thread while any fit of this process needs it.

    The number of BLAS threads belongs to the process, not to a fit: the first fit to
    enter lowers it and the last one to leave restores it, so fits that overlap in
    time cannot leave it lowered.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # How often each thread is inside: a fit may enter again.
        self._depths: dict[int, int] = {}
        # The numbers of threads of each BLAS of the process before; empty if they are
        # as they were.
        self._before: list[int] = []
        self._n_blas_threads = 1
        self._controller: ThreadpoolController | None = None

    def enter(self) -> int:
        """Lower the limit; return the share of this thread in the threads before."""
        with self._lock:
            if not self._depths:
                self._lower()
            me = threading.get_ident()
            self._depths[me] = self._depths.get(me, 0) + 1
            return max(1, self._n_blas_threads // len(self._depths))

    def leave(self) -> None:
        """Undo one ``enter`` of this thread."""
        with self._lock:
            me = threading.get_ident()
            self._depths[me] -= 1
            if not self._depths[me]:
                del self._depths[me]
            if not self._depths:
                self._restore()

    def outlive_fork(self) -> None:
        """Forget the other threads, which a forked process does not have."""
        self._lock = threading.Lock()
        me = threading.get_ident()
        self._depths = {key: n for key, n in self._depths.items() if key == me}

    def _lower(self) -> None:
        # It is still lowered where the fits that did it were cut off: by a fork, or
        # by an interrupt on their way out.
        self._restore()
        if self._controller is None:
            # Looking through the process for its BLAS takes milliseconds.
            self._controller = ThreadpoolController().select(user_api="blas")
        self._before = self._count()
        self._n_blas_threads = max(self._before, default=_count_cores())
        try:
            self._set([1] * len(self._before))
        except BaseException:
            self._restore()
            raise

    def _restore(self) -> None:
        if self._before:
            self._set(self._before)
            self._before = []

    def _count(self) -> list[int]:
        assert self._controller is not None
        return [lib.num_threads for lib in self._controller.lib_controllers]

    def _set(self, counts: list[int]) -> None:
        """Set the numbers of threads, as far as threadpoolctl lets this thread.

        In release 3.8, the first thread that sets the number of a BLAS is the only one
        that can while it lives; one that ends at once keeps no other from it. Where
        there is such a thread already, it may be this one. Where each thread has a
        number of its own, that of this one counts.
        """
        assert self._controller is not None
        libraries = self._controller.lib_controllers

        def set_all() -> None:
            for library, count in zip(libraries, counts, strict=True):
                library.set_num_threads(count)

        if self._count() != counts:
            aside = threading.Thread(target=set_all, name="corral-blas")
            aside.start()
            aside.join()
        if self._count() != counts:
            set_all()


_blas_guard = _BlasGuard()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_blas_guard.outlive_fork)


class Threads:
    """A number of threads, and the one thing stages do with them: map over blocks."""

    def __init__(self, n_threads: int, pool: ThreadPoolExecutor | None) -> None:
        self.n_threads = n_threads
        self._pool = pool

    def map(self, function: Callable, items: Iterable) -> Iterator:
        """Apply ``function`` to each item; results come in the order of the items.

        The threads of the pool have the context of the caller: who watches the fit,
        and which floating-point errors NumPy lets pass.
        """
        if self._pool is None:
            return map(function, items)
        context = copy_context()
        # A context can be in one thread at a time, so each item has its own copy.
        return self._pool.map(lambda item: context.copy().run(function, item), items)

    def share(self, n_items: int, work: Callable[[int, range], None]) -> None:
        """Call ``work(number, share)`` once per thread with a share of the items.

        For sweeps whose threads each keep a workspace, found by the thread's number.
        Nothing may depend on which thread gets which item.
        """
        n_shares = max(1, min(self.n_threads, n_items))
        if n_shares == 1:
            return work(0, range(n_items))
        shares = [range(first, n_items, n_shares) for first in range(n_shares)]
        for _ in self.map(lambda number: work(number, shares[number]), range(n_shares)):
            pass


# For work that is too small to share.
ONE_THREAD = Threads(1, None)


@contextmanager
def hold_blas() -> Iterator[int]:
    """Hold BLAS to one thread; give how many a fit may use instead."""
    n_blas_threads = _blas_guard.enter()
    try:
        yield n_blas_threads
    finally:
        _blas_guard.leave()


@contextmanager
def contain_sklearn(n_jobs: int | None = None) -> Iterator[None]:
    """Keep calls of scikit-learn from leaving the process other than it was.

    Some hold BLAS themselves: where two of them overlap in time, the second to end
    sets the number of threads that it found, which is 1. Threads of theirs set filters
    of warnings, in no order, and put back what another one has set.

    Parameters
    ----------
    n_jobs : int or None, default=None
        That of scikit-learn. Filters belong to the whole process, and to put them back
        disturbs other threads that set them: so only where it has threads.
    """
    with hold_blas():
        if n_jobs in (None, 1):
            yield
            return
        with warnings.catch_warnings():
            yield


@contextmanager
def use_threads(n_jobs: int | None) -> Iterator[Threads]:
    """Open a pool of ``n_jobs`` threads with BLAS at one thread inside.

    Parameters
    ----------
    n_jobs : int or None
        None means as many threads as BLAS is allowed here, so that a fit inside a
        joblib or Dask worker keeps to the worker's share, divided by the number of
        threads of this process that fit at the moment. Negative numbers count back
        from the number of cores: -1 means all of them.
    """
    with hold_blas() as n_blas_threads:
        n_threads = count_threads(n_jobs, n_blas_threads)
        if n_threads == 1:
            yield Threads(1, None)
            return
        pool = ThreadPoolExecutor(n_threads, thread_name_prefix="corral")
        try:
            yield Threads(n_threads, pool)
        finally:
            # After an error there may be items that nobody waits for any longer.
            pool.shutdown(cancel_futures=True)


def _count_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def count_threads(n_jobs: int | None, n_blas_threads: int) -> int:
    if n_jobs == 0:
        raise ValueError(
            "n_jobs=0 should be a number of threads, -1 for all cores, or None."
        )
    if n_jobs is None:
        return max(1, min(n_blas_threads, _count_cores()))
    if n_jobs < 0:
        return max(1, _count_cores() + 1 + n_jobs)
    return n_jobs
