"""What is kept of each block of rows between passes, in memory or on disk."""

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from corral._atomic import append_array
from corral._codes import CodeBook, Codes, OneHot
from corral._divergences import COST_STEP
from corral._journal import Journal
from corral._leftovers import TemporaryFolder
from corral._position import DISTANCE_STEP
from corral._threads import Threads
from corral._tree import add_in_tree

# So many distances, in their steps, add up below 2**63.
_EXACT_TERMS = 2**20


class State:
    """What the passes need to know of a block of rows.

    Parameters
    ----------
    codes : Codes
        Of the rows of the block.
    distances : ndarray of shape (n_rows,)
        How far each row lies from the centres of its cells; zeros if that does not
        count.
    weights : ndarray of shape (n_rows,) or None
    """

    def __init__(
        self, codes: Codes, distances: np.ndarray, weights: np.ndarray | None = None
    ) -> None:
        self.codes = codes
        self.distances = distances
        self.weights = weights
        self._priced: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.distances)

    @property
    def n_bytes(self) -> int:
        """Memory of what has to be kept."""
        codes = self.codes
        arrays = (codes.rows, codes.inverse, codes.counts, self.distances)
        return sum(array.nbytes for array in arrays)

    @cached_property
    def one_hot(self) -> OneHot:
        """The codes as one-hot rows."""
        return OneHot(self.codes)

    @cached_property
    def code_weights(self) -> np.ndarray:
        """The weight of each code, of shape (n_codes,)."""
        return self.codes.weigh(self.weights)

    @cached_property
    def n_known(self) -> np.ndarray:
        """How many labels of each code are not missing, of shape (n_codes,)."""
        return self.one_hot.count_known()

    @cached_property
    def distance_steps(self) -> int:
        """The sum of all distances in steps of costs, exact."""
        return count_steps(self.distances)

    def price_codes(
        self, table: np.ndarray, threads: Threads
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the cheapest cluster of each code and what the code costs there.

        Kept until another table comes: several passes use the same one.

        Parameters
        ----------
        table : ndarray of shape (n_slots, n_clusters)
        threads : Threads

        Returns
        -------
        labels, costs : ndarray of shape (n_codes,)
        """
        priced = self._priced
        # On a cluster, each pass brings a copy of the table.
        if priced is None or not np.array_equal(priced[0], table):
            labels, costs = self.one_hot.find_nearest([table], threads)
            priced = self._priced = table, labels[0], costs[0]
        return priced[1:]

    def __sizeof__(self) -> int:
        # Dask asks it to know how much a worker holds.
        return self.n_bytes

    def __getstate__(self) -> tuple:
        # What can be made again does not travel.
        return self.codes, self.distances, self.weights

    def __setstate__(self, parts: tuple) -> None:
        self.__init__(*parts)  # type: ignore[misc]


def count_steps(distances: np.ndarray) -> int:
    """Return the sum of distances in steps of costs, exact."""
    whole = (distances / DISTANCE_STEP).astype(np.int64)
    # A few at a time: whole numbers of any size add up without an overflow.
    total = sum(int(part.sum()) for part in np.array_split(whole, _split_in(whole)))
    return total * round(DISTANCE_STEP / COST_STEP)


def _split_in(whole: np.ndarray) -> int:
    return max(-(-len(whole) // _EXACT_TERMS), 1)


class States(Protocol):
    """The states of all blocks, wherever they are.

    Attributes
    ----------
    sizes : ndarray of shape (n_blocks,)
        Number of rows of each block.
    threads : Threads
        For what is done in one place.
    place : {"memory", "disk", "workers"}
        Where the states are.
    """

    sizes: np.ndarray
    threads: Threads
    place: str

    @property
    def whole(self) -> State | None:
        """The state of all rows, if they are one block in memory."""

    def keep_codes(self, n_slots: int) -> None:
        """Keep the one-hot rows of codes if they have no more slots than this."""

    def map(
        self, function: Callable, *args: Any, each: Sequence[Any] | None = None
    ) -> Iterator:
        """Apply ``function(state, threads, *args)`` to the states of all blocks.

        Parameters
        ----------
        function : callable
            Defined at the top of a module, so that it can travel.
        *args : objects
            The same for all blocks.
        each : sequence, default=None
            One more argument, another one for each block.

        Returns
        -------
        results : iterator
            In the order of the blocks.
        """

    def reduce(
        self, function: Callable, *args: Any, each: Sequence[Any] | None = None
    ) -> Any:
        """Add up what :meth:`map` would return, in the order of a binary tree."""

    def merge(
        self, split: Callable, arg: Any, join: Callable, n_parts: int
    ) -> list[Any]:
        """Bring together parts of all blocks that belong together.

        Parameters
        ----------
        split : callable
            ``split(state, threads, arg)`` returns a list of ``n_parts`` arrays.
        arg : object
        join : callable
            Takes the arrays of one number of all blocks.
        n_parts : int

        Returns
        -------
        results : list
            What was joined, number by number.
        """


class LocalStates:
    """What states on this machine have in common."""

    def reduce(self, function, *args, each=None):
        """Add up what a function gives for all states; see :class:`States`."""
        return add_in_tree(self.map(function, *args, each=each))

    def merge(self, split, arg, join, n_parts):
        """Bring together parts of all blocks; see :class:`States`."""
        blocks = self.map(split, arg)
        if n_parts == 1:
            return [join([parts[0] for parts in blocks])]
        home = TemporaryFolder()
        try:
            return _merge_in_files(home.path, blocks, join, n_parts)
        finally:
            home.remove()

    def map(self, function, *args, each=None):
        """Apply a function to all states; see :class:`States`."""
        raise NotImplementedError


class MemoryStates(LocalStates):
    """States in memory: :class:`States`.

    Parameters
    ----------
    states : list of State
    threads : Threads
    """

    place = "memory"

    def __init__(self, states: list[State], threads: Threads) -> None:
        self._states = states
        self.threads = threads
        self.sizes = np.array([state.n_rows for state in states])
        if len(states) == 1:
            # Of many blocks, they would take more than the states themselves.
            states[0].one_hot.keep()

    def map(self, function, *args, each=None):
        """Apply a function to all states; see :class:`States`."""
        for index, state in enumerate(self._states):
            more = () if each is None else (each[index],)
            yield function(state, self.threads, *args, *more)

    def keep_codes(self, n_slots: int) -> None:
        """Keep the one-hot rows of codes if they have no more slots than this."""
        for state in self._states:
            state.one_hot.keep(n_slots)

    @property
    def whole(self) -> State | None:
        """The state of all rows, if they are one block."""
        return self._states[0] if len(self._states) == 1 else None


class SpilledStates(LocalStates):
    """States in files, one of which is in memory at a time: :class:`States`.

    Parameters
    ----------
    journal : Journal
        Holds an entry for each block.
    book : CodeBook
    sizes : ndarray of shape (n_blocks,)
    threads : Threads
    """

    place = "disk"
    whole: State | None = None

    def __init__(
        self, journal: Journal, book: CodeBook, sizes: np.ndarray, threads: Threads
    ) -> None:
        self._journal = journal
        self._book = book
        self.threads = threads
        self.sizes = sizes

    def keep_codes(self, n_slots: int) -> None:
        """Keep nothing: there is too much of it."""

    def map(self, function, *args, each=None):
        """Apply a function to all states; see :class:`States`."""
        for index in range(len(self.sizes)):
            state = unpack_state(self._journal.read(name_block(index)), self._book)
            more = () if each is None else (each[index],)
            yield function(state, self.threads, *args, *more)


def _merge_in_files(
    folder: Path, blocks: Iterator[list[np.ndarray]], join: Callable, n_parts: int
) -> list[Any]:
    """Write the parts of all blocks to a file for each number, and join these."""
    paths = [folder / str(number) for number in range(n_parts)]
    kind = np.dtype(np.uint64)
    for parts in blocks:
        for path, part in zip(paths, parts, strict=True):
            append_array(path, part.astype(kind, copy=False))
    return [join([np.fromfile(path, kind)]) for path in paths]


def name_block(index: int) -> str:
    """Return the name of a block's entry in the journal."""
    return f"block-{index:06d}"


def pack_state(state: State) -> dict[str, np.ndarray]:
    """Return the arrays of a state."""
    codes = state.codes
    narrow = np.min_scalar_type(max(len(codes.rows) - 1, 0))
    return {
        "rows": codes.rows,
        "inverse": codes.inverse.astype(narrow),
        "counts": codes.counts,
        "distances": state.distances,
    }


def unpack_state(arrays: dict[str, np.ndarray], book: CodeBook) -> State:
    """Return the state with these arrays."""
    codes = Codes(book, arrays["rows"], arrays["inverse"], arrays["counts"])
    return State(codes, arrays["distances"])
