"""Cases that may crash, hang or use up memory, each watched from another process.

A case is a small value that says how to make a harmful input, usually a kind and a
seed. It is made and checked in a child process with a limit on its memory, and the
parent ends a child that takes too long. A child lives on from case to case, so that
ten thousand take a minute or two, and is replaced when a case ends it.
"""

import faulthandler
import multiprocessing as mp
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from typing import Any

from threadpoolctl import threadpool_limits

try:
    import resource
except ImportError:  # Windows has no such limits.
    resource = None

# A child imports its libraries and makes its inputs before its first case.
_SECONDS_TO_START = 120.0

# What a case is told that did not come to an end in its time.
_HANG = "took longer than {:g} seconds"


@dataclass(frozen=True)
class Outcome:
    """What became of a case.

    Attributes
    ----------
    case : Any
        As it was given.
    word : str
        What the check returned. Empty if it failed.
    failure : str
        The traceback, or how the child ended. Empty if all is well.
    seconds : float
        How long the check took.
    peak : int
        How many bytes more than at its start the child has had at most so far.
    """

    case: Any
    word: str = ""
    failure: str = ""
    seconds: float = 0.0
    peak: int = 0


@dataclass
class Tally:
    """What became of all cases."""

    outcomes: list[Outcome] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def failures(self) -> list[Outcome]:
        return [each for each in self.outcomes if each.failure]

    @property
    def words(self) -> Counter:
        """How often a check returned each word."""
        return Counter(each.word for each in self.outcomes if not each.failure)

    def describe(self, n_shown: int = 5) -> str:
        """Return figures and the first failures, with what repeats them."""
        slowest = max((each.seconds for each in self.outcomes), default=0.0)
        peak = max((each.peak for each in self.outcomes), default=0)
        lines = [
            f"{len(self.outcomes)} cases in {self.seconds:.1f} s: "
            f"{dict(self.words.most_common())}, {len(self.failures)} failed. The "
            f"slowest took {slowest:.2f} s, the peak was {peak / 2**20:.0f} MB."
        ]
        for each in self.failures[:n_shown]:
            lines += [f"case {each.case!r}:", each.failure]
        return "\n".join(lines)


def run_cases(
    check: Callable[[Any], str],
    cases: Iterable[Any],
    *,
    prepare: Callable[[], None] | None = None,
    memory: int = 2 * 2**30,
    seconds: float = 10.0,
    n_children: int = 1,
) -> Tally:
    """Check every case in child processes, and return what became of each.

    Parameters
    ----------
    check : callable
        Takes a case and returns a word for what became of it, such as "refused".
        Whatever it raises is a failure. A function of a module, not a nested one.
    cases : iterable
        Of values that can be pickled. A case holds its own seed, so that it can be
        repeated alone.
    prepare : callable, default=None
        Called once in each child before its memory is limited: for imports and for
        inputs that are the same in all cases. A function of a module.
    memory : int, default=2 GB
        Bytes of address space that a child may take beyond what it has when it is
        prepared. Not limited where the system cannot.
    seconds : float, default=10.0
        How long a case may take.
    n_children : int, default=1
        How many cases run at the same time.

    Returns
    -------
    tally : Tally
        With the outcomes in the order of the cases.
    """
    begin = time.perf_counter()
    found: dict[int, Outcome] = {}
    rest = iter(list(enumerate(cases)))
    # Not forked: threads of the parent's libraries would be missing in the copy.
    children = [
        _Child(mp.get_context("spawn"), check, prepare, memory)
        for _ in range(n_children)
    ]
    try:
        busy = [each for each in children if each.take(rest, seconds)]
        while busy:
            for each in list(_wait(busy)):
                index, outcome = each.give_back(seconds)
                found[index] = outcome
                if not each.take(rest, seconds):
                    busy.remove(each)
    finally:
        for each in children:
            each.end()
    ordered = [found[index] for index in sorted(found)]
    return Tally(ordered, time.perf_counter() - begin)


class _Child:
    """A process that checks one case after the other, seen from the parent."""

    def __init__(
        self,
        context: Any,
        check: Callable[[Any], str],
        prepare: Callable[[], None] | None,
        memory: int,
    ) -> None:
        self._context = context
        self._work = (check, prepare, memory)
        self._process: Any = None
        self._index = -1
        self._case: Any = None
        self.deadline = 0.0

    def take(self, rest: Iterator[tuple[int, Any]], seconds: float) -> bool:
        """Begin the next case, if there is one."""
        for self._index, self._case in rest:
            if self._process is None:
                self._start()
            self.pipe.send(self._case)
            self.deadline = time.monotonic() + seconds
            return True
        return False

    def give_back(self, seconds: float) -> tuple[int, Outcome]:
        """Return the case that came to an end, well or not."""
        if self.pipe.poll():
            with suppress(EOFError, ConnectionError):
                return self._index, self.pipe.recv()
            failure = "the process ended with the code {}"
        else:
            self._process.kill()
            failure = _HANG.format(seconds)
        outcome = Outcome(self._case, failure=failure.format(self.end()))
        return self._index, outcome

    def end(self) -> int | None:
        """End the process and return its exit code."""
        process, self._process = self._process, None
        if process is None:
            return None
        self.pipe.close()
        process.join(1)
        process.kill()
        process.join()
        return process.exitcode

    def _start(self) -> None:
        self.pipe, theirs = self._context.Pipe()
        self._process = self._context.Process(
            target=_serve, args=(theirs, *self._work), daemon=True
        )
        self._process.start()
        theirs.close()
        if not self.pipe.poll(_SECONDS_TO_START):
            raise RuntimeError(f"A child was not ready in {_SECONDS_TO_START:g} s.")
        # What the preparation raises is raised here, and not taken for a case.
        if failure := self.pipe.recv():
            raise RuntimeError(f"A child could not be prepared:\n{failure}")


def _wait(busy: list[_Child]) -> Iterator[_Child]:
    """Wait until a case comes to an end or its time is over."""
    left = min(each.deadline for each in busy) - time.monotonic()
    ready = wait([each.pipe for each in busy], max(left, 0.0))
    now = time.monotonic()
    return (each for each in busy if each.pipe in ready or each.deadline <= now)


def _serve(
    pipe: Connection,
    check: Callable[[Any], str],
    prepare: Callable[[], None] | None,
    memory: int,
) -> None:
    """Check the cases that come through a pipe, until it is closed."""
    faulthandler.enable()
    failure = ""
    try:
        if prepare is not None:
            prepare()
    except BaseException:
        failure = traceback.format_exc()
    _limit_memory(memory)
    start = _peak()
    pipe.send(failure)
    # Each child has one core, and threads would wait for each other.
    with threadpool_limits(1), suppress(EOFError):
        while True:
            pipe.send(_check_one(check, pipe.recv(), start))


def _check_one(check: Callable[[Any], str], case: Any, start: int) -> Outcome:
    begin = time.perf_counter()
    word, failure = "", ""
    try:
        word = check(case)
    except BaseException:
        failure = traceback.format_exc()
    seconds = time.perf_counter() - begin
    return Outcome(case, word, failure, seconds, _peak() - start)


def _limit_memory(memory: int) -> None:
    if resource is None:
        return
    # The address space that is taken, in pages; only Linux tells.
    with suppress(FileNotFoundError), open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
        limit = taken + memory
        resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def _peak() -> int:
    """Return the most memory that this process has had, in bytes."""
    if resource is None:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
