"""The first pass over the rows of a source: what stage 1 has to know of all of them."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from corral._blocks import RowSource, share_out_rows, tidy_rows
from corral._journal import Journal
from corral._partitions import find_labels
from corral._row_blocks import Block, RowBlocks
from corral._tree import add_in_tree
from corral._validation import add_up_known, find_complete, take_known_means


class Glance(NamedTuple):
    """What is learned from a block, or from several.

    Attributes
    ----------
    n_rows : int
    sums : ndarray of shape (n_numbers,) or None
        Of the cells that are known, as :func:`~corral._validation.add_up_known` has
        them; None if there are no numbers.
    n_known : ndarray of shape (n_numbers,) or None
    n_lacking : ndarray of shape (n_numbers + 1,) or None
        How many rows have no missing cell, how many have one, two and so on.
    labels : list of ndarray
        The labels that occur in each label column, sorted.
    rows : list of arrays
        The rows that were asked for, as they are, missing cells NaN.
    """

    n_rows: int
    sums: np.ndarray | None
    n_known: np.ndarray | None
    n_lacking: np.ndarray | None
    labels: list[np.ndarray]
    rows: list[Any]

    def __add__(self, other):
        known = zip(self.labels, other.labels, strict=True)
        return Glance(
            self.n_rows + other.n_rows,
            None if self.sums is None else self.sums + other.sums,
            None if self.n_known is None else self.n_known + other.n_known,
            None if self.n_lacking is None else self.n_lacking + other.n_lacking,
            [np.union1d(ours, theirs) for ours, theirs in known],
            self.rows + other.rows,
        )


class TakenRows:
    """A few rows that were taken from a source: a :class:`~corral._blocks.RowSource`.

    Parameters
    ----------
    n_samples : int
        Of the source.
    rows : ndarray
        Which rows were taken, sorted.
    numbers : ndarray or CSR of shape (n_rows, n_numbers)
        Missing cells hold the mean of their column.
    """

    def __init__(self, n_samples: int, rows: np.ndarray, numbers: Any) -> None:
        self._rows = rows
        self._numbers = numbers
        self.shape = (n_samples, numbers.shape[1])
        self.dtype = numbers.dtype
        self.is_sparse = sparse.issparse(numbers)
        self.max_row_values = numbers.shape[1]

    def take(self, rows: np.ndarray):
        """Return some of the rows that were taken."""
        places = np.searchsorted(self._rows, rows)
        assert np.array_equal(self._rows[places], rows)
        return self._numbers[places]

    def read(self, start: int, stop: int):
        """Return a range of rows, all of which were taken."""
        return self.take(np.arange(start, stop))


class CompleteRows:
    """Weights that leave out rows with missing cells, of the rows that were taken.

    Parameters
    ----------
    is_complete : ndarray of shape (n_rows,), bool
    rows : ndarray, default=None
        Which rows these are, sorted; None means all.
    """

    def __init__(self, is_complete: np.ndarray, rows: np.ndarray | None = None) -> None:
        self._is_complete = is_complete
        self._rows = rows

    def __getitem__(self, rows: np.ndarray) -> np.ndarray:
        places = rows if self._rows is None else np.searchsorted(self._rows, rows)
        return self._is_complete[places].astype(np.float64)


def glance(block: Block, rows: np.ndarray) -> Glance:
    """Look at a block.

    Parameters
    ----------
    block : Block
    rows : ndarray
        The rows of the block that are wanted, sorted.
    """
    features, numbers = block.features, block.features.numbers
    labels = find_labels(block.columns)
    if numbers is None:
        return Glance(features.n_samples, None, None, None, labels, [])
    n_rows, n_numbers = numbers.shape
    wanted = numbers[rows]
    if features.missing is None:
        sums = np.zeros(n_numbers)
        if not sparse.issparse(numbers):
            sums = add_up_known(numbers, np.array(True))
        n_known = np.full(n_numbers, n_rows)
        n_missing = np.zeros(n_rows, dtype=np.intp)
    else:
        sums = add_up_known(numbers, ~features.missing)
        wanted = np.where(features.missing[rows], np.nan, wanted)
        n_known = n_rows - np.count_nonzero(features.missing, axis=0)
        n_missing = np.count_nonzero(features.missing, axis=1)
    n_lacking = np.bincount(n_missing, minlength=n_numbers + 1)
    return Glance(n_rows, sums, n_known, n_lacking, labels, [wanted])


class Scan(NamedTuple):
    """What stage 1 has to know of all rows.

    Attributes
    ----------
    source : RowSource or None
        The rows to learn from; None if there are no numbers.
    complete : CompleteRows or None
        Which of them are complete, if some rows are not and at least half are.
    known : ndarray of shape (n_numbers,), bool, or None
        The features that some row has; None means all.
    has_missing : bool
        Whether cells of these features are missing.
    labels : list of ndarray
        The labels of each label column.
    means : ndarray of shape (n_numbers,) or None
        What missing cells hold, if there are any.
    n_complete : int
        Rows without missing cells of these features.
    """

    source: RowSource | None
    complete: CompleteRows | None
    known: np.ndarray | None
    has_missing: bool
    labels: list[np.ndarray]
    means: np.ndarray | None = None
    n_complete: int = 0


def scan_blocks(
    blocks: RowBlocks, rows: np.ndarray, journal: Journal | None = None
) -> Scan:
    """Look at all blocks of a source, and take some rows.

    Parameters
    ----------
    blocks : RowBlocks
    rows : ndarray
        The rows to take, sorted.
    journal : Journal or None
        Where what was seen is noted, or was before.

    Returns
    -------
    scan : Scan
    """
    shares = share_out_rows(rows, blocks.sizes)

    def look() -> Glance:
        return add_in_tree(
            glance(blocks.read(index), share) for index, share in enumerate(shares)
        )

    return note_scan(look, rows, journal)


def note_scan(
    look: Callable[[], Glance], rows: np.ndarray, journal: Journal | None
) -> Scan:
    """Look at all rows, or return what was noted of that."""
    name = f"scan-{len(rows)}"
    if journal is not None and journal.has(name):
        return _conclude_scan(_unpack(journal.read(name)), rows)
    seen = look()
    if journal is not None and not _has_sparse(seen):
        journal.write(name, _pack(seen))
    return _conclude_scan(seen, rows)


def _has_sparse(seen: Glance) -> bool:
    return any(sparse.issparse(part) for part in seen.rows)


_OF_NUMBERS = ("sums", "n_known", "n_lacking")


def _pack(seen: Glance) -> dict[str, np.ndarray]:
    """Return the arrays of a glance, for a journal."""
    arrays = {f"labels-{j}": labels for j, labels in enumerate(seen.labels)}
    arrays["n_rows"] = np.array(seen.n_rows)
    if seen.rows:
        arrays |= {name: getattr(seen, name) for name in _OF_NUMBERS}
        arrays["rows"] = np.concatenate(seen.rows)
    return arrays


def _unpack(arrays: dict[str, np.ndarray]) -> Glance:
    n_labels = sum(name.startswith("labels-") for name in arrays)
    return Glance(
        n_rows=arrays["n_rows"].item(),
        labels=[arrays[f"labels-{j}"] for j in range(n_labels)],
        rows=[arrays["rows"]] if "rows" in arrays else [],
        **{name: arrays.get(name) for name in _OF_NUMBERS},
    )


def _conclude_scan(seen: Glance, rows: np.ndarray) -> Scan:
    """Return what was seen in all blocks, with missing cells filled."""
    if seen.sums is None or seen.n_known is None or seen.n_lacking is None:
        return Scan(None, None, None, False, seen.labels)
    known, has_missing = find_known(seen.n_known, seen.n_rows)
    # All rows lack the features that none has.
    n_complete = int(seen.n_lacking[0 if known is None else np.sum(~known)])
    stack = sparse.vstack if sparse.issparse(seen.rows[0]) else np.concatenate
    numbers = stack(seen.rows)
    complete, means = None, None
    if sparse.issparse(numbers):
        numbers = tidy_rows(sparse.csr_array(numbers))
    elif seen.n_lacking[0] < seen.n_rows:
        missing = np.isnan(numbers)
        if has_missing and 2 * n_complete >= seen.n_rows:
            complete = CompleteRows(find_complete(missing, known), rows)
        means = take_known_means(seen.sums, seen.n_known).astype(numbers.dtype)
        numbers = np.where(missing, means, numbers)
    source = TakenRows(seen.n_rows, rows, numbers)
    return Scan(source, complete, known, has_missing, seen.labels, means, n_complete)


def find_known(n_known: np.ndarray, n_rows: int) -> tuple[np.ndarray | None, bool]:
    """Find the features that no row has: they tell nothing of any row.

    Parameters
    ----------
    n_known : ndarray of shape (n_numbers,)
        How many rows have each feature.
    n_rows : int

    Returns
    -------
    known : ndarray of shape (n_numbers,), bool, or None
        The features that some row has; None means all, also where rows have none.
    has_missing : bool
        Whether cells of these are missing.
    """
    known = n_known > 0
    if known.all() or not known.any():
        return None, bool((n_known < n_rows).any())
    return known, bool((n_known[known] < n_rows).any())
