"""Passes over rows on the workers of a Dask cluster."""

from collections.abc import Callable
from typing import Any

import numpy as np

from corral._answers import Answer, Columns, Summary, answer_rows
from corral._journal import Journal
from corral._partitions import Partitioner
from corral._profiles import Members, Profile, RoughRows, Sums, View
from corral._row_blocks import RowBlocks, check_rows
from corral._scan import Glance, Scan, glance, note_scan, share_out_rows
from corral._states import State, States, name_block, pack_state, unpack_state
from corral._threads import Threads
from corral._workplace import encode_block, find_members
from corral.dask._columns import DaskColumns
from corral.dask._rows import DaskRows, Reader
from corral.dask._states import DaskStates, Tasks


class DaskWorkplace:
    """Passes on a cluster: a :class:`~corral._workplace.Workplace`.

    Parameters
    ----------
    rows : DaskRows
    tasks : Tasks
    threads : Threads
        For what is done in one place.
    journal : Journal or None
        In a folder that all workers see.
    """

    def __init__(
        self, rows: DaskRows, tasks: Tasks, threads: Threads, journal: Journal | None
    ) -> None:
        self.rows: RowBlocks = rows
        self._blocks, self._read = rows.blocks, rows.reader
        self.threads = threads
        self.journal = journal
        self._tasks = tasks

    def add_up(self, function, *args, each=None):
        """Add up a function over all blocks of rows, on the workers."""
        blocks = self._blocks
        found = self._tasks.start(
            work_on_block, blocks, self._read, function, *args, each=each
        )
        return self._tasks.reduce(found)

    def scan(self, rows: np.ndarray) -> Scan:
        """Look at all rows for the first time, and take some."""
        sizes = self.rows.sizes
        starts = (np.cumsum(sizes) - sizes).tolist()
        wanted = list(zip(share_out_rows(rows, sizes), starts, strict=True))

        def look() -> Glance:
            found = self._tasks.start(scan_block, self._blocks, self._read, each=wanted)
            return self._tasks.reduce(found)

        return note_scan(look, rows, self.journal)

    def encode(self, partitioner: Partitioner, weights: np.ndarray | None) -> States:
        """Label all rows and find their codes."""
        found = self._tasks.start(
            label_block,
            self._blocks,
            self._read,
            partitioner,
            self.journal,
            each=range(len(self.rows.sizes)),
        )
        # Where they are is known when all of them are there.
        self._tasks.wait(found)
        return DaskStates(self._tasks, found, self.rows.sizes, self.threads)

    def answer(
        self, states: States, args: tuple, n_level: tuple[int, ...]
    ) -> tuple[Summary, Columns]:
        """Label and score all rows; the answers stay where they are."""
        assert isinstance(states, DaskStates)
        answers = self._tasks.start(answer_rows, states.futures, *args, each=n_level)
        self._tasks.wait(answers)
        summary = self._tasks.reduce(self._tasks.start(_get_summary, answers))
        return summary, DaskColumns(self._tasks, answers, self.rows.sizes)

    def profile(
        self, columns: Columns, summary: Summary, weights: np.ndarray | None
    ) -> Profile:
        """Describe the clusters."""
        assert isinstance(columns, DaskColumns)
        n_kept = summary.n_kept
        view = View.of(self._look(columns.answers, n_kept), len(n_kept))
        parts = self._tasks.start(
            add_up_block, self._blocks, self._read, n_kept, view, each=columns.answers
        )
        return view.conclude(self._tasks.reduce(parts))

    def _look(self, answers: list[Any], n_kept: np.ndarray) -> RoughRows:
        """Gather a few rows of each cluster; few more blocks are read than need be."""
        rough = RoughRows(len(n_kept))
        start, n_blocks = 0, 1
        while start < len(answers):
            here = slice(start, start + n_blocks)
            found = self._tasks.start(
                look_at_block,
                self._blocks[here],
                self._read,
                n_kept,
                each=answers[here],
            )
            if any(rough.extend(part) for part in self._tasks.gather(found)):
                break
            # Ever more at once: a cluster may be rare, and blocks many.
            start, n_blocks = here.stop, 2 * n_blocks
        return rough


def work_on_block(
    block: Any, threads: Threads, read: Reader, function: Callable, *args: Any
) -> Any:
    """Read a block and apply a function to it."""
    return function(read(block), threads, *args)


def scan_block(
    block: Any, threads: Threads, read: Reader, rows_and_start: tuple[np.ndarray, int]
) -> Glance:
    """Look at a block for the first time, and take some of its rows."""
    rows, start = rows_and_start
    name = "X" if read.source is None else read.source
    return glance(check_rows(read.check, read.read(block), start, name), rows)


def label_block(
    block: Any,
    threads: Threads,
    read: Reader,
    partitioner: Partitioner,
    journal: Journal | None,
    index: int,
) -> State:
    """Label the rows of a block, or return what was noted of that."""
    if journal is not None and journal.has(name_block(index)):
        return unpack_state(journal.read(name_block(index)), partitioner.book)
    state = encode_block(partitioner, read(block), None, None, threads)
    if journal is not None:
        journal.write(name_block(index), pack_state(state))
    return state


def _get_summary(answer: Answer, threads: Threads) -> Summary:
    return answer.summary


def _find_members(
    block: Any, read: Reader, n_kept: np.ndarray, answer: Answer
) -> Members:
    columns = answer.columns
    return find_members(
        read(block),
        columns["labels_"],
        columns["nearest_labels_"],
        n_kept,
        None,
    )


def look_at_block(
    block: Any, threads: Threads, read: Reader, n_kept: np.ndarray, answer: Answer
) -> RoughRows:
    """Return the first rows of each cluster in a block."""
    rough = RoughRows(len(n_kept))
    rough.look_at(_find_members(block, read, n_kept, answer))
    return rough


def add_up_block(
    block: Any,
    threads: Threads,
    read: Reader,
    n_kept: np.ndarray,
    view: View,
    answer: Answer,
) -> Sums:
    """Return the sums over the rows of each cluster in a block."""
    return view.add_up(_find_members(block, read, n_kept, answer), threads)
