"""What stages 1 and 2 made: the codes of all rows and their position, wherever."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from corral._census import Census, count_block, count_codes
from corral._codes import Codes, encode, make_keys
from corral._confidence import Candidates
from corral._cut import Cut, chunk_rows, cost_rows, find_cut
from corral._memory import format_bytes
from corral._partitions import Partitioner
from corral._states import MemoryStates, State, States
from corral._threads import ONE_THREAD, Threads
from corral._whole import find_aside


@dataclass(frozen=True)
class EncodedRows:
    """What the fusion needs to know of all rows.

    Attributes
    ----------
    partitioner : Partitioner
    states : States
    rarity : ndarray of shape (n_slots,)
        What each slot costs for being rare, in all clusters.
    has_numbers : bool
        Whether rows have any numbers, of which clusters have means.
    """

    partitioner: Partitioner
    states: States
    rarity: np.ndarray
    has_numbers: bool

    @property
    def n_samples(self) -> int:
        """Number of rows."""
        return int(self.states.sizes.sum())

    @property
    def has_position(self) -> bool:
        """Whether it counts where a row lies."""
        return bool(self.rarity.any())

    @cached_property
    def borders(self) -> np.ndarray:
        """The first row of each block, and the number of rows."""
        return np.concatenate([[0], np.cumsum(self.states.sizes)])

    @cached_property
    def census(self) -> Census:
        """How many distinct codes there are, and how they were counted."""
        return count_codes(self.states)

    @property
    def n_codes(self) -> int:
        """Number of distinct codes."""
        return self.census.n_codes

    @property
    def whole(self) -> State | None:
        """The state of all rows, if they are one block in memory."""
        return self.states.whole

    def keep(self, rows: np.ndarray) -> "EncodedRows":
        """Return some rows only, of one block in memory."""
        assert self.whole is not None
        state = State(self.whole.codes.take(rows), self.whole.distances[rows])
        states = MemoryStates([state], self.states.threads)
        return replace(self, states=states)

    def merge_codes(self, most_bytes: int) -> Codes:
        """Return the distinct codes of all rows, but not which row has which.

        Parameters
        ----------
        most_bytes : int
            Refused if they take more memory.
        """
        book = self.partitioner.book
        # Of all blocks: a code may be in several.
        n_codes = self.states.reduce(count_block)
        n_bytes = n_codes * (len(book.n_labels) * book.dtype.itemsize + 16)
        if n_bytes > most_bytes:
            raise ValueError(
                f"The {n_codes} codes of the blocks of rows need "
                f"{format_bytes(n_bytes)}, and {format_bytes(most_bytes)} are left for "
                "them. Use init='linkage', which needs a few only, or raise "
                "memory_limit."
            )
        found = list(self.states.map(list_codes))
        keys, rows, counts = (
            np.concatenate(parts) for parts in zip(*found, strict=True)
        )
        _, first, places = np.unique(keys, return_index=True, return_inverse=True)
        nobody = np.zeros(0, dtype=np.int32)
        return Codes(book, rows[first], nobody, np.bincount(places, counts).astype(int))

    def take(self, rows: np.ndarray) -> tuple[Codes, np.ndarray]:
        """Return the codes of some rows, and what it costs where each of them lies.

        Parameters
        ----------
        rows : ndarray of sorted indices
        """
        ends = np.searchsorted(rows, self.borders)
        shares = [
            rows[first:end] - start
            for first, end, start in zip(
                ends[:-1], ends[1:], self.borders[:-1], strict=True
            )
        ]
        found = list(self.states.map(pick_rows, self.rarity, each=shares))
        labels = np.concatenate([labels for labels, _ in found])
        position = np.concatenate([position for _, position in found])
        book = self.partitioner.book
        codes = encode(book, 1, lambda *_: labels.T, ONE_THREAD)
        return codes, position

    def list_positions(self, n_largest: int) -> np.ndarray:
        """Return what it costs where the strangest rows lie, in no order."""
        table = self.rarity[:, None]
        cut = self.find_cut(table, min(n_largest, self.n_samples))
        found = self.states.map(list_costs, table, cut.cost, each=cut.n_level)
        return np.concatenate(list(found))

    def find_cut(self, table: np.ndarray, n_rows: int) -> Cut:
        """Find where the costliest rows begin; see :func:`~corral._cut.find_cut`."""
        return find_cut(self.states, table, self.partitioner.book, n_rows)

    def gather_candidates(self, table: np.ndarray, n_rows: int) -> Candidates:
        """Return the costliest rows with their codes."""
        cut = self.find_cut(table, n_rows)
        each = list(zip(cut.n_level, self.borders[:-1].tolist(), strict=True))
        found = self.states.map(pick_candidates, table, cut.cost, each=each)
        return Candidates.join(list(found))

    def weigh_slots(self) -> np.ndarray:
        """Return the weight of the rows that have each slot, of shape (n_slots,)."""
        return self.states.reduce(weigh_slots)

    def find_unlabelled(self) -> tuple[int, int]:
        """Return how many rows have no label in any partition, and the first of them.

        Only missing cells can bring that about.
        """
        found = list(self.states.map(find_unlabelled))
        total = sum(n_rows for n_rows, _ in found)
        firsts = [
            start + first
            for (n_rows, first), start in zip(found, self.borders[:-1], strict=True)
            if n_rows
        ]
        return total, int(firsts[0]) if firsts else 0


def list_codes(
    state: State, threads: Threads
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the keys of a block's codes, the codes, and how many rows have each."""
    return make_keys(state.codes), state.codes.rows, state.codes.counts


def pick_rows(
    state: State, threads: Threads, rarity: np.ndarray, rows: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the labels of some rows of a block, and what their position costs."""
    labels = state.codes.rows[state.codes.inverse[rows]]
    rare = rarity[labels + state.codes.book.offsets].sum(axis=1)
    return labels, rare + state.distances[rows]


def list_costs(
    state: State, threads: Threads, table: np.ndarray, cut: float, n_level: int
) -> np.ndarray:
    """Return the costs of the costliest rows of a block."""
    _, code_costs = state.price_codes(table, threads)

    def work(here: slice) -> np.ndarray:
        costs = cost_rows(state, code_costs, here)
        return costs[costs > cut]

    above = threads.map(work, chunk_rows(state))
    return np.concatenate([*above, np.full(n_level, cut)])


def pick_candidates(
    state: State,
    threads: Threads,
    table: np.ndarray,
    cut: float,
    level_and_start: tuple[int, int],
) -> Candidates:
    """Return the costliest rows of a block with their codes."""
    n_level, start = level_and_start
    _, code_costs = state.price_codes(table, threads)
    rows = find_aside(state, threads, code_costs, cut, n_level)
    codes, places = np.unique(state.codes.inverse[rows], return_inverse=True)
    return Candidates(
        rows + start, places, state.codes.rows[codes], state.distances[rows]
    )


def weigh_slots(state: State, threads: Threads) -> np.ndarray:
    """Return the weight of the rows of a block that have each slot."""
    weights = state.code_weights[:, None]
    return state.one_hot.add_up(weights.__getitem__, threads)[:, 0]


def find_unlabelled(state: State, threads: Threads) -> tuple[int, int]:
    """Return how many rows of a block have no label, and the first of them."""
    codes = state.codes
    silent = (codes.rows == codes.book.n_labels + 1).all(axis=1)
    if not silent.any():
        return 0, 0
    first = np.flatnonzero(silent[codes.inverse])[0]
    return int(codes.counts[silent].sum()), int(first)
