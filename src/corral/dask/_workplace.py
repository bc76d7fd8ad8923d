"""Passes over rows on the workers of a Dask cluster."""

from typing import Any

import numpy as np

from corral._answers import Answer, Columns, Summary, answer_rows
from corral._journal import Journal
from corral._partitions import Partitioner
from corral._profiles import Members, Profile, RoughRows, Sums, View
from corral._row_blocks import Block, RowBlocks
from corral._scan import Glance, Scan, conclude_scan, glance
from corral._states import State, States, name_block, pack_state, unpack_state
from corral._threads import Threads
from corral._workplace import encode_block, find_members
from corral.dask._columns import DaskColumns
from corral.dask._rows import DaskRows, Piece
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
        self._blocks, self._check = rows.blocks, rows.check
        self.threads = threads
        self.journal = journal
        self._tasks = tasks

    def scan(self, rows: np.ndarray) -> Scan:
        """Look at all rows for the first time, and take some."""
        borders = np.concatenate([[0], np.cumsum(self.rows.sizes)])
        ends = np.searchsorted(rows, borders)
        wanted = [
            rows[ends[index] : ends[index + 1]] - borders[index]
            for index in range(len(self.rows.sizes))
        ]
        found = self._tasks.start(scan_block, self._blocks, self._check, each=wanted)
        return conclude_scan(self._tasks.reduce(found), rows)

    def encode(self, partitioner: Partitioner, weights: np.ndarray | None) -> States:
        """Label all rows and find their codes."""
        found = self._tasks.start(
            label_block,
            self._blocks,
            self._check,
            partitioner,
            self.journal,
            each=range(len(self.rows.sizes)),
        )
        return DaskStates(self._tasks, found, self.rows.sizes, self.threads)

    def answer(
        self, states: States, args: tuple, n_level: tuple[int, ...]
    ) -> tuple[Summary, Columns]:
        """Label and score all rows; the answers stay where they are."""
        assert isinstance(states, DaskStates)
        answers = self._tasks.start(answer_rows, states.futures, *args, each=n_level)
        summary = self._tasks.reduce(self._tasks.start(_get_summary, answers))
        return summary, DaskColumns(self._tasks, answers, self.rows.sizes)

    def profile(
        self, columns: Columns, summary: Summary, weights: np.ndarray | None
    ) -> Profile:
        """Describe the clusters."""
        assert isinstance(columns, DaskColumns)
        check, n_kept = self._check, summary.n_kept
        rough = RoughRows(len(n_kept))
        for block, answer in zip(self._blocks, columns.answers, strict=True):
            (found,) = self._tasks.start(
                look_at_block, [block], check, n_kept, each=[answer]
            )
            if rough.extend(self._tasks.gather([found])[0]):
                break
        view = View.of(rough, len(n_kept))
        parts = self._tasks.start(
            add_up_block, self._blocks, check, n_kept, view, each=columns.answers
        )
        return view.conclude(self._tasks.reduce(parts))


def _read(block: Any, check: Any) -> Block:
    return check(block() if isinstance(block, Piece) else block)


def scan_block(block: Any, threads: Threads, check: Any, rows: np.ndarray) -> Glance:
    """Look at a block for the first time, and take some of its rows."""
    return glance(_read(block, check), rows)


def label_block(
    block: Any,
    threads: Threads,
    check: Any,
    partitioner: Partitioner,
    journal: Journal | None,
    index: int,
) -> State:
    """Label the rows of a block, or return what was noted of that."""
    if journal is not None and journal.has(name_block(index)):
        return unpack_state(journal.read(name_block(index)), partitioner.book)
    state = encode_block(partitioner, _read(block, check), None, None, threads)
    if journal is not None:
        journal.write(name_block(index), pack_state(state))
    return state


def _get_summary(answer: Answer, threads: Threads) -> Summary:
    return answer.summary


def _find_members(
    block: Any, check: Any, n_kept: np.ndarray, answer: Answer
) -> Members:
    columns = answer.columns
    return find_members(
        _read(block, check),
        columns["labels_"],
        columns["nearest_labels_"],
        n_kept,
        None,
    )


def look_at_block(
    block: Any, threads: Threads, check: Any, n_kept: np.ndarray, answer: Answer
) -> RoughRows:
    """Return the first rows of each cluster in a block."""
    rough = RoughRows(len(n_kept))
    rough.look_at(_find_members(block, check, n_kept, answer))
    return rough


def add_up_block(
    block: Any,
    threads: Threads,
    check: Any,
    n_kept: np.ndarray,
    view: View,
    answer: Answer,
) -> Sums:
    """Return the sums over the rows of each cluster in a block."""
    return view.add_up(_find_members(block, check, n_kept, answer), threads)
