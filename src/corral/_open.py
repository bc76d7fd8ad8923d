"""How a fit begins on rows that are not in memory, or goes on after it was ended."""

from typing import TYPE_CHECKING, Any

from scipy import sparse
from sklearn.base import clone

from corral._identity import describe
from corral._journal import Journal
from corral._memory import Budget
from corral._partition_mixin import make_block
from corral._row_blocks import Block, RowBlocks, SourceBlocks, cut_sizes

if TYPE_CHECKING:
    from corral._cor import COR

# From so many rows it is told what the columns are.
FIRST_ROWS = 1000

# Parameters that do not change results.
_FREE = {"n_jobs", "verbose", "memory_limit", "checkpoint_dir"}


class BlockCheck:
    """Checks blocks of rows as a fit checks all rows; can travel to other machines.

    Parameters
    ----------
    model : COR
        Has seen the columns.
    """

    def __init__(self, model: "COR") -> None:
        self._model = clone(model)
        for name in ("_is_precomputed", "n_features_in_", "feature_names_in_"):
            if name in vars(model):
                setattr(self._model, name, getattr(model, name))

    def __call__(self, rows: Any) -> Block:
        return make_block(*self._model._read(rows, reset=False))


def open_blocks(model: "COR", X: Any, budget: Budget) -> SourceBlocks:
    """Return the rows of a source in blocks.

    Parameters
    ----------
    model : COR
        Learns what the columns are.
    X : path, callable or source
    budget : Budget

    Returns
    -------
    blocks : SourceBlocks
    """
    from corral.sources import open_source

    source = open_source(X)
    n_samples = source.shape[0]
    first = source.read(0, min(n_samples, FIRST_ROWS))
    features, _ = model._read(first, reset=True)
    block_rows = budget.count_block_rows(count_row_bytes(features), model.n_partitions)
    sizes = cut_sizes(n_samples, block_rows)
    return SourceBlocks(source, BlockCheck(model), sizes)


def count_row_bytes(features: Any) -> int:
    """Return the bytes of the numbers of a row."""
    numbers = features.numbers
    if numbers is None:
        return 0
    if sparse.issparse(numbers):
        return 12 * (-(-numbers.nnz // numbers.shape[0]) + 1)
    return numbers.shape[1] * numbers.itemsize


def open_journal(model: "COR", rows: RowBlocks) -> tuple[Journal, RowBlocks]:
    """Return the journal of a fit, and its rows in the blocks that are noted there.

    Parameters
    ----------
    model : COR
    rows : RowBlocks

    Returns
    -------
    journal : Journal
    rows : RowBlocks
    """
    settings = {
        name: describe(value)
        for name, value in model.get_params(deep=False).items()
        if name not in _FREE
    }
    identity = {**settings, "rows": rows.fingerprint()}
    journal = Journal.open(model.checkpoint_dir, identity)
    try:
        if not journal.has("blocks"):
            journal.write("blocks", {"sizes": rows.sizes})
        return journal, rows.cut(journal.read("blocks")["sizes"])
    except BaseException:
        journal.close()
        raise
