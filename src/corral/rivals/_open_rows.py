"""Rows of numbers that are read block by block, and where passes over them are made."""

from typing import Any

from sklearn.base import clone

from corral._answers import Columns, FileColumns, MemoryColumns
from corral._journal import Journal
from corral._memory import Budget
from corral._open import FIRST_ROWS, count_row_bytes
from corral._row_blocks import Block, RowBlocks, SourceBlocks, cut_sizes
from corral._threads import Threads
from corral._tree import add_in_tree
from corral._validation import Features
from corral._workplace import LocalWorkplace
from corral.rivals._base import JointClusterer

# Two labels and a score.
_ANSWER_BYTES = 16


class RowCheck:
    """Checks blocks of rows as a fit checks all rows; can travel to other machines.

    Parameters
    ----------
    model : JointClusterer
        Has seen the columns.
    """

    def __init__(self, model: JointClusterer) -> None:
        self._model = clone(model)
        for name in ("n_features_in_", "feature_names_in_"):
            if name in vars(model):
                setattr(self._model, name, getattr(model, name))

    def __call__(self, rows: Any) -> Block:
        numbers = self._model._read(rows, reset=False)
        return Block(Features(numbers, [], numbers.shape[0]), [])


def see_columns(model: JointClusterer, first: Any, budget: Budget) -> int:
    """Let a model see what the columns are in some rows; return the rows of a block."""
    numbers = model._read(first, reset=True)
    features = Features(numbers, [], numbers.shape[0])
    return budget.count_block_rows(count_row_bytes(features), 0)


def open_rows(model: JointClusterer, X: Any, budget: Budget) -> SourceBlocks:
    """Return the rows of a source in blocks.

    Parameters
    ----------
    model : JointClusterer
        Learns what the columns are.
    X : path, callable or source
    budget : Budget

    Returns
    -------
    blocks : SourceBlocks
    """
    from corral.sources import open_source

    source = open_source(X)
    first = source.read(0, min(source.shape[0], FIRST_ROWS))
    sizes = cut_sizes(source.shape[0], see_columns(model, first, budget))
    return SourceBlocks(source, RowCheck(model), sizes)


class LocalPlace(LocalWorkplace):
    """Passes on this machine: a :class:`~corral.rivals._block_runs.Place`.

    Parameters
    ----------
    rows : RowBlocks
    threads : Threads
    budget : Budget
    """

    def __init__(self, rows: RowBlocks, threads: Threads, budget: Budget) -> None:
        super().__init__(rows, threads)
        self._for_answers = budget.for_states

    def tell(self, function, *args, each) -> tuple[Any, Columns]:
        """Keep what a function tells all rows, and add up its summaries.

        Parameters
        ----------
        function : callable
            Takes a block, threads and what else is given, and returns something with
            ``columns`` and a ``summary``.
        *args : objects
            The same for all blocks.
        each : sequence
            One more argument, another one for each block.

        Returns
        -------
        summary : object
        columns : Columns
            In files if they are large.
        """
        n_rows = int(self.rows.sizes.sum())
        columns: Columns = MemoryColumns(n_rows)
        if n_rows * _ANSWER_BYTES > self._for_answers:
            home = Journal.temporary()
            columns = FileColumns(home.folder, n_rows, home)

        def tell_one(index: int, one: Any) -> Any:
            told = function(self.rows.read(index), self.threads, *args, one)
            columns.append(told.columns)
            return told.summary

        return add_in_tree(tell_one(*pair) for pair in enumerate(each)), columns
