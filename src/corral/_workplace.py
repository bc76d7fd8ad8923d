"""Where blocks are worked on: passes over the rows of a fit, on this machine."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

from corral._answers import (
    Answer,
    Columns,
    FileColumns,
    MemoryColumns,
    Summary,
    answer_rows,
)
from corral._journal import Journal
from corral._memory import Budget
from corral._partitions import Partitioner
from corral._profiles import Members, Profile, View
from corral._progress import LABELLING, Counter
from corral._row_blocks import Block, RowBlocks
from corral._scan import Scan, scan_blocks
from corral._states import (
    MemoryStates,
    SpilledStates,
    State,
    States,
    name_block,
    pack_state,
)
from corral._threads import Threads
from corral._tree import add_in_tree


class Workplace(Protocol):
    """Does the passes over all rows; the stages say which.

    Attributes
    ----------
    rows : RowBlocks
    threads : Threads
        For what is done in one place.
    journal : Journal or None
        Where what was done is noted, if it is.
    """

    rows: RowBlocks
    threads: Threads
    journal: Journal | None

    def add_up(
        self, function: Callable, *args: Any, each: Sequence[Any] | None = None
    ) -> Any:
        """Add up ``function(block, threads, *args)`` over all blocks of rows.

        Parameters
        ----------
        function : callable
            Takes a :class:`~corral._row_blocks.Block`; defined at the top of a module,
            so that it can travel.
        *args : objects
            The same for all blocks.
        each : sequence, default=None
            One more argument, another one for each block.

        Returns
        -------
        total : whatever has ``+``
            Added up in the order of a binary tree.
        """

    def scan(self, rows: np.ndarray) -> Scan:
        """Look at all rows for the first time, and take some."""

    def encode(self, partitioner: Partitioner, weights: np.ndarray | None) -> States:
        """Label all rows and find their codes."""

    def answer(
        self, states: States, args: tuple, n_level: tuple[int, ...]
    ) -> tuple[Summary, Columns]:
        """Label and score all rows; see :func:`~corral._answers.answer_rows`."""

    def profile(
        self, columns: Columns, summary: Summary, weights: np.ndarray | None
    ) -> Profile:
        """Describe the clusters."""


def encode_block(
    partitioner: Partitioner,
    block: Block,
    weights: np.ndarray | None,
    counter: Counter | None,
    threads: Threads,
) -> State:
    """Stages 1 and 2 for a block: label its rows and find their codes."""
    features = block.features
    blocks = partitioner.open(
        features.numbers, block.columns, features.missing, counter
    )
    codes = blocks.encode(threads)
    return State(codes, blocks.distances, weights)


def find_members(
    block: Block,
    labels: np.ndarray,
    nearest: np.ndarray,
    n_kept: np.ndarray,
    weights: np.ndarray | None,
) -> Members:
    """Return the rows of a block with their clusters.

    The outliers next to clusters that kept no row are put back.
    """
    labels = np.where(n_kept[nearest] == 0, nearest, labels)
    return Members(block.features.numbers, labels, weights, block.features.missing)


class LocalWorkplace:
    """Passes on this machine: :class:`Workplace`.

    Parameters
    ----------
    rows : RowBlocks
    threads : Threads
    budget : Budget or None
        What memory the states of several blocks may take; None if it does not matter.
    journal : Journal or None
    """

    def __init__(
        self,
        rows: RowBlocks,
        threads: Threads,
        budget: Budget | None = None,
        journal: Journal | None = None,
    ) -> None:
        self.rows = rows
        self.threads = threads
        self.journal = journal
        self._budget = budget
        # Not to be lost while states are in it.
        self._spill: Journal | None = journal

    def add_up(self, function, *args, each=None):
        """Add up a function over all blocks of rows; see :class:`Workplace`."""
        more = [()] * len(self.rows.sizes) if each is None else [(one,) for one in each]
        return add_in_tree(
            function(self.rows.read(index), self.threads, *args, *one)
            for index, one in enumerate(more)
        )

    def scan(self, rows: np.ndarray) -> Scan:
        """Look at all rows for the first time, and take some."""
        return scan_blocks(self.rows, rows, self.journal)

    def encode(self, partitioner: Partitioner, weights: np.ndarray | None) -> States:
        """Label all rows and find their codes."""
        counter = Counter(LABELLING, int(self.rows.sizes.sum()))
        counter.add(0)
        kept: list[State] = []
        for index, size in enumerate(self.rows.sizes):
            if self.journal is not None and self.journal.has(name_block(index)):
                counter.add(int(size))
                continue
            block = self.rows.read(index)
            state = encode_block(partitioner, block, weights, counter, self.threads)
            kept.append(state)
            if self._is_too_much(kept):
                self._write(kept, index)
        if self._spill is None:
            return MemoryStates(kept, self.threads)
        return SpilledStates(
            self._spill, partitioner.book, self.rows.sizes, self.threads
        )

    def _is_too_much(self, kept: list[State]) -> bool:
        """Return whether states have to go to disk."""
        if self._spill is not None:
            return True
        if self._budget is None or len(self.rows.sizes) == 1:
            return False
        return sum(state.n_bytes for state in kept) > self._budget.for_states

    def _write(self, kept: list[State], last: int) -> None:
        """Write the states of the blocks up to the last one, and forget them."""
        if self._spill is None:
            self._spill = Journal.temporary()
        for index, state in enumerate(kept, start=last + 1 - len(kept)):
            self._spill.write(name_block(index), pack_state(state))
        kept.clear()

    def answer(
        self, states: States, args: tuple, n_level: tuple[int, ...]
    ) -> tuple[Summary, Columns]:
        """Label and score all rows; see :func:`~corral._answers.answer_rows`."""
        n_rows = int(self.rows.sizes.sum())
        columns: Columns = MemoryColumns(n_rows)
        if self._spill is not None:
            # Not beside states that end with the fit: answers outlive it.
            home = Journal.temporary() if self.journal is None else self.journal
            columns = FileColumns(home.folder, n_rows, home)

        def note(answer: Answer) -> Summary:
            columns.append(answer.columns)
            return answer.summary

        answers = states.map(answer_rows, *args, each=n_level)
        return add_in_tree(map(note, answers)), columns

    def profile(
        self, columns: Columns, summary: Summary, weights: np.ndarray | None
    ) -> Profile:
        """Describe the clusters."""
        view = View.fit(
            self._read_members(columns, summary, weights), len(summary.n_kept)
        )
        members = self._read_members(columns, summary, weights)
        sums = add_in_tree(view.add_up(block, self.threads) for block in members)
        return view.conclude(sums)

    def _read_members(
        self, columns: Columns, summary: Summary, weights: np.ndarray | None
    ) -> Iterator[Members]:
        stop = 0
        for index, size in enumerate(self.rows.sizes):
            start, stop = stop, stop + int(size)
            yield find_members(
                self.rows.read(index),
                columns.read("labels_", start, stop),
                columns.read("nearest_labels_", start, stop),
                summary.n_kept,
                weights,
            )
