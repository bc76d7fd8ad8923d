"""Stage 4: what all rows are told, block by block, and where the answers are kept."""

import weakref
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from corral._atomic import append_array
from corral._confidence import compare_labels
from corral._cut import chunk_rows, cost_rows
from corral._states import State
from corral._threads import Threads
from corral._whole import find_aside


class Tables(NamedTuple):
    """What slots cost.

    Attributes
    ----------
    labels : ndarray of shape (n_slots, n_clusters)
        In each cluster.
    rarity : ndarray of shape (n_slots,)
        In all clusters.
    """

    labels: np.ndarray
    rarity: np.ndarray

    @property
    def all(self) -> np.ndarray:
        """Both together, of shape (n_slots, n_clusters)."""
        return self.labels + self.rarity[:, None]


class Summary(NamedTuple):
    """What the answers of a block, or of several, add up to.

    Attributes
    ----------
    n_kept : ndarray of shape (n_clusters,)
        Number of rows of each cluster that are kept.
    largest : float
        The largest cost of a row that is kept; minus infinity if none is.
    n_nearest : ndarray of shape (n_clusters,)
        Number of rows that are nearest to each cluster.
    n_again : ndarray of shape (n_resamples, 2, n_clusters)
        How many of these stay, and how many are nearest, if partitions are drawn again.
    """

    n_kept: np.ndarray
    largest: float
    n_nearest: np.ndarray
    n_again: np.ndarray

    def __add__(self, other):
        return Summary(
            self.n_kept + other.n_kept,
            max(self.largest, other.largest),
            self.n_nearest + other.n_nearest,
            self.n_again + other.n_again,
        )


class Answer(NamedTuple):
    """What the rows of a block are told.

    Attributes
    ----------
    columns : dict of str to ndarray of shape (n_rows,)
        By the names of COR's attributes.
    summary : Summary
    """

    columns: dict[str, np.ndarray]
    summary: Summary


def answer_rows(
    state: State,
    threads: Threads,
    tables: Tables,
    table: np.ndarray,
    cut: float,
    resamples: list[np.ndarray],
    n_level: int,
) -> Answer:
    """Label and score the rows of a block.

    Parameters
    ----------
    state : State
    threads : Threads
    tables : Tables
    table : ndarray of shape (n_slots, n_clusters)
        All of the tables together, which is made once.
    cut : float
        Rows that cost more are set aside.
    resamples : list of ndarray
        Partitions that are drawn again; none leaves the confidence out.
    n_level : int
        So many rows that cost as much as the cut are set aside, too.

    Returns
    -------
    answer : Answer
    """
    code_labels, code_costs = state.price_codes(table, threads)
    aside = find_aside(state, threads, code_costs, cut, n_level)
    nearest = code_labels[state.codes.inverse]
    labels = nearest.copy()
    labels[aside] = -1
    scores = np.empty(state.n_rows)
    for here in chunk_rows(state):
        scores[here] = cost_rows(state, code_costs, here)
    n_clusters = table.shape[1]
    columns = {"labels_": labels, "nearest_labels_": nearest, "outlier_scores_": scores}
    n_again = np.zeros((0, 2, n_clusters))
    if resamples:
        shares, n_again = compare_labels(
            state.codes, code_labels, tables.labels, resamples, threads
        )
        columns["label_confidence_"] = shares[state.codes.inverse]
    kept = labels >= 0
    return Answer(
        columns,
        Summary(
            np.bincount(labels[kept], minlength=n_clusters),
            float(scores[kept].max(initial=-np.inf)),
            np.bincount(nearest, minlength=n_clusters),
            n_again,
        ),
    )


class Columns(Protocol):
    """Where the answers of rows are kept."""

    def append(self, columns: dict[str, np.ndarray]) -> None:
        """Add the answers of the next block."""

    def scatter(self, name: str, rows: np.ndarray, values: np.ndarray) -> None:
        """Add a column of zeros with these values in some rows, which are sorted."""

    def read(self, name: str, start: int, stop: int) -> np.ndarray:
        """Return a part of a column."""

    def close(self) -> dict[str, np.ndarray]:
        """Return all columns, whole."""


class MemoryColumns:
    """Answers in memory: :class:`Columns`.

    Parameters
    ----------
    n_rows : int
        Of all blocks.
    """

    def __init__(self, n_rows: int) -> None:
        self._n_rows = n_rows
        self._n_filled = 0
        self._arrays: dict[str, np.ndarray] = {}

    def append(self, columns: dict[str, np.ndarray]) -> None:
        """Add the answers of the next block."""
        n_here = len(columns["labels_"])
        if n_here == self._n_rows:
            self._arrays = columns
            return
        here = slice(self._n_filled, self._n_filled + n_here)
        for name, values in columns.items():
            if name not in self._arrays:
                self._arrays[name] = np.empty(self._n_rows, values.dtype)
            self._arrays[name][here] = values
        self._n_filled = here.stop

    def scatter(self, name: str, rows: np.ndarray, values: np.ndarray) -> None:
        """Add a column of zeros with these values in some rows, which are sorted."""
        self._arrays[name] = np.zeros(self._n_rows)
        self._arrays[name][rows] = values

    def read(self, name: str, start: int, stop: int) -> np.ndarray:
        """Return a part of a column."""
        return self._arrays[name][start:stop]

    def close(self) -> dict[str, np.ndarray]:
        """Return all columns, whole."""
        return self._arrays


class FileColumns:
    """Answers in files, which become memory maps: :class:`Columns`.

    Parameters
    ----------
    folder : Path
        What was there of an earlier run is written anew.
    n_rows : int
        Of all blocks.
    keeper : object, default=None
        Something that the maps keep alive, because the folder is removed with it.
    """

    # Zeros that are written at once.
    _ZEROS = 2**20

    def __init__(self, folder: Path, n_rows: int, keeper: Any = None) -> None:
        self._folder = folder
        self._n_rows = n_rows
        self._keeper = keeper
        self._kinds: dict[str, np.dtype] = {}

    def append(self, columns: dict[str, np.ndarray]) -> None:
        """Add the answers of the next block."""
        for name, values in columns.items():
            if name not in self._kinds:
                # Removed first: another model may have mapped it.
                self._path(name).unlink(missing_ok=True)
            self._kinds[name] = values.dtype
            append_array(self._path(name), values)

    def scatter(self, name: str, rows: np.ndarray, values: np.ndarray) -> None:
        """Add a column of zeros with these values in some rows, which are sorted."""
        self._kinds[name] = values.dtype
        self._path(name).unlink(missing_ok=True)
        for start in range(0, self._n_rows, self._ZEROS):
            stop = min(start + self._ZEROS, self._n_rows)
            here = slice(*np.searchsorted(rows, [start, stop]))
            part = np.zeros(stop - start, values.dtype)
            part[rows[here] - start] = values[here]
            append_array(self._path(name), part)

    def read(self, name: str, start: int, stop: int) -> np.ndarray:
        """Return a part of a column."""
        kind = self._kinds[name]
        # Not mapped: what is mapped counts as memory of the process.
        return np.fromfile(
            self._path(name), kind, stop - start, offset=start * kind.itemsize
        )

    def close(self) -> dict[str, np.ndarray]:
        """Return all columns, whole, as memory maps that are only read."""
        maps: dict[str, np.ndarray] = {
            name: np.memmap(self._path(name), kind, "r", shape=(self._n_rows,))
            for name, kind in self._kinds.items()
        }
        for array in maps.values():
            # Held until the map is gone: other processes map the file by its name.
            weakref.finalize(array, _release, self._keeper)
        return maps

    def _path(self, name: str) -> Path:
        return self._folder / f"{name.rstrip('_')}.bin"


def _release(keeper: Any) -> None:
    """Do nothing: what a finalizer was given goes with it."""
