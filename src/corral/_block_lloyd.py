"""Lloyd's algorithm for many K-means runs on more rows than memory holds, by passes."""

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from corral._assign import (
    AssignWorkspace,
    Layout,
    PackedCenters,
    Selection,
    assign_sweep,
    distances_in_float64,
)
from corral._blocks import ArrayRows
from corral._centers import (
    UPDATED_VALUES,
    FarRow,
    RunCenters,
    find_first_rows,
    weigh_rows,
)
from corral._grid import Grid
from corral._journal import Journal
from corral._ladder import Moments
from corral._progress import Counter
from corral._row_blocks import Block
from corral._threads import Threads
from corral._tiles import MAX_LLOYD_TILE_ROWS, RowSpace, Tile, Tiles
from corral._tree import add_in_tree
from corral._validation import find_complete

# Comes after all rows: the first row of a cell without rows.
_NO_ROW = np.iinfo(np.int64).max

# The entry of the journal that holds where the runs are.
_ENTRY = "lloyd"


class Place(Protocol):
    """What passes need of a :class:`~corral._workplace.Workplace`."""

    journal: Journal | None

    def add_up(
        self, function: Callable, *args: Any, each: Sequence[Any] | None = None
    ) -> Any:
        """Add up ``function(block, threads, *args)`` over all blocks of rows."""


@dataclass(frozen=True)
class Learned:
    """Which rows of a block are learned from, and what is in their missing cells.

    Attributes
    ----------
    means : ndarray of shape (n_features,) or None
        Of the columns; None if no cell is missing.
    known : ndarray of shape (n_features,), bool, or None
        The features that some row has; None means all.
    complete_only : bool
        Whether rows with missing cells of these are left out.
    """

    means: np.ndarray | None
    known: np.ndarray | None
    complete_only: bool

    def find(self, block: Block) -> np.ndarray:
        """Return where in a block they are, sorted."""
        missing = block.features.missing
        if missing is None or not self.complete_only:
            return np.arange(block.features.n_samples)
        return np.flatnonzero(find_complete(missing, self.known))

    def take(self, block: Block) -> np.ndarray:
        """Return the rows that are learned from."""
        numbers, missing = block.features.numbers, block.features.missing
        if missing is None:
            return np.ascontiguousarray(numbers)
        if self.complete_only:
            return numbers[self.find(block)]
        assert self.means is not None
        return np.where(missing, self.means, numbers)

    def cut(self, block: Block, space: RowSpace, n_scores: int) -> Tiles:
        """Return the rows that are learned from as tiles."""
        return Tiles(ArrayRows(self.take(block)), space, n_scores, MAX_LLOYD_TILE_ROWS)


class BlockRung(NamedTuple):
    """All rows to learn from, which are read again for each pass.

    Attributes
    ----------
    place : Place
    learned : Learned
    starts : list of int
        How many rows are learned from before each block.
    n_rows : int
        How many in all.
    bounds : ndarray of shape (n_features + 1,)
        The largest sizes of the points' values and of the weight.
    moments : Moments
    """

    place: Place
    learned: Learned
    starts: list[int]
    n_rows: int
    bounds: np.ndarray
    moments: Moments


class Sweep(NamedTuple):
    """What a pass knows of the rows of each cell.

    Attributes
    ----------
    sums : ndarray of shape (n_cells, n_columns)
        As the grid has them, exact.
    first_rows : ndarray of shape (n_cells,)
    """

    sums: np.ndarray
    first_rows: np.ndarray

    def __add__(self, other):
        return Sweep(
            self.sums + other.sums, np.minimum(self.first_rows, other.first_rows)
        )


class FarRows(NamedTuple):
    """The rows of each run that are farthest from their centres, farthest first.

    Attributes
    ----------
    layout : Layout
    n_wanted : int
        How many of each run at most.
    distances, rows, labels : ndarray of shape (n_runs, n_far)
    points : ndarray of shape (n_runs, n_far, n_features)
    first_rows : ndarray of shape (n_cells,)
        The first row of each cell that is none of these.
    """

    layout: Layout
    n_wanted: int
    distances: np.ndarray
    rows: np.ndarray
    labels: np.ndarray
    points: np.ndarray
    first_rows: np.ndarray

    @classmethod
    def none(cls, layout: Layout, n_wanted: int, tiles: Tiles) -> "FarRows":
        """Return what is found where there are no rows."""
        shape = (layout.n_runs, 0)
        return cls(
            layout,
            n_wanted,
            np.zeros(shape),
            np.zeros(shape, dtype=np.int64),
            np.zeros(shape, dtype=np.intp),
            np.zeros((*shape, tiles.n_features), tiles.dtype),
            np.full(layout.n_cells, _NO_ROW),
        )

    @classmethod
    def pick(
        cls,
        layout: Layout,
        n_wanted: int,
        tile: Tile,
        start: int,
        labels: np.ndarray,
        distances: np.ndarray,
    ) -> "FarRows":
        """Pick the farthest rows of a tile.

        Parameters
        ----------
        layout : Layout
        n_wanted : int
        tile : Tile
        start : int
            How many rows there are before the rows that the tile was cut from.
        labels, distances : ndarray of shape (n_runs, n_rows)
        """
        # Of equally far rows the first, whatever the tiles are.
        far = np.argsort(-distances, axis=1, kind="stable")[:, :n_wanted]
        others = labels.copy()
        np.put_along_axis(others, far, -1, axis=1)
        first_rows = np.full(layout.n_cells, _NO_ROW)
        _note_first_rows(first_rows, others, layout, start + tile.start)
        return cls(
            layout,
            n_wanted,
            np.take_along_axis(distances, far, axis=1),
            start + tile.start + far,
            np.take_along_axis(labels, far, axis=1),
            tile.points[far],
            first_rows,
        )

    def __add__(self, other):
        distances, rows, labels, points = (
            np.concatenate(pair, axis=1)
            for pair in zip(self[2:6], other[2:6], strict=True)
        )
        first_rows = np.minimum(self.first_rows, other.first_rows)
        order = np.lexsort((rows, -distances))
        far, near = np.split(order, [self.n_wanted], axis=1)
        cells = self.layout.cell(
            np.arange(len(rows))[:, None], np.take_along_axis(labels, near, axis=1)
        )
        np.minimum.at(first_rows, cells, np.take_along_axis(rows, near, axis=1))
        return FarRows(
            self.layout,
            self.n_wanted,
            np.take_along_axis(distances, far, axis=1),
            np.take_along_axis(rows, far, axis=1),
            np.take_along_axis(labels, far, axis=1),
            np.take_along_axis(points, far[:, :, None], axis=1),
            first_rows,
        )

    def list_rows(self, run: int, cells: np.ndarray) -> Iterator[FarRow]:
        """Yield the rows of a run, which are in these cells."""
        for cell, point in zip(cells, self.points[run], strict=True):
            yield FarRow(cell, point[None], None)


class BlockLloyd(RunCenters):
    """Many K-means runs on rows that are read block by block, advanced together.

    One pass over the rows is one iteration of all runs that do not rest. What it
    brings back are exact sums, so the centres are those of
    :class:`~corral._lloyd.LloydRuns` to the last bit, however rows are cut and
    wherever they are added up. No labels are kept: where none changes, no centre
    moves. Each iteration is noted in the journal, in the place of the one before.

    Parameters
    ----------
    rung : BlockRung
    space : RowSpace
    layout : Layout
    starts : ndarray of shape (n_cells, n_features)
        First centres, in the row space and in its precision.
    features : ndarray of shape (n_runs, n_features), bool, or None
        The features that each run sees.
    spherical : bool
        Whether to run spherical K-means: unit centres, largest cosine.
    """

    def __init__(
        self,
        rung: BlockRung,
        space: RowSpace,
        layout: Layout,
        starts: np.ndarray,
        *,
        features: np.ndarray | None = None,
        spherical: bool = False,
    ) -> None:
        super().__init__(
            layout,
            Grid.fit(rung.bounds, rung.n_rows),
            starts,
            n_features=starts.shape[1],
            dtype=space.dtype,
            features=features,
            spherical=spherical,
        )
        self._rung = rung
        self._space = space
        self._first_rows = np.full(layout.n_cells, _NO_ROW)

    def run(self, max_iter: int, tolerances: np.ndarray, counter: Counter) -> None:
        """Iterate until each run's centres rest, or ``max_iter`` times.

        Parameters
        ----------
        max_iter : int
        tolerances : ndarray of shape (n_runs,)
            A run stops when its centres' squared moves add up to no more than this.
        counter : Counter
            Counts the runs that are done.
        """
        n_done, runs = self._read_note()
        counter.add(self._layout.n_runs - len(runs))
        while n_done < max_iter and len(runs):
            active = self._layout.select(runs)
            self._sweep(active)
            self._refill_empty_cells(active)
            moves = self._update_centers(active)
            n_done, runs = n_done + 1, runs[~(moves <= tolerances[runs])]
            self._write_note(n_done, runs)
            counter.add(len(active.runs) - len(runs))
        counter.add(len(runs))

    def sort_centers(self) -> None:
        """Put the centres of each run in the order of their first rows, at the end."""
        self._sort_by(self._first_rows)

    def _read_note(self) -> tuple[int, np.ndarray]:
        """Return how many iterations were done before, and which runs go on."""
        journal = self._rung.place.journal
        if journal is None or not journal.has(_ENTRY):
            return 0, np.arange(self._layout.n_runs)
        note = journal.read(_ENTRY)
        self.centers, self.half_norms = note["centers"], note["half_norms"]
        self._first_rows = note["first_rows"]
        return int(note["n_done"]), note["runs"]

    def _write_note(self, n_done: int, runs: np.ndarray) -> None:
        journal = self._rung.place.journal
        if journal is None:
            return
        note = {
            "n_done": np.array(n_done),
            "runs": runs,
            "centers": self.centers,
            "half_norms": self.half_norms,
            "first_rows": self._first_rows,
        }
        journal.write(_ENTRY, note)

    def _pass(self, function: Callable, selection: Selection, *args: Any) -> Any:
        """Add up what a function finds in all blocks with the centres of some runs."""
        packed = PackedCenters.pack(
            selection.layout,
            self.centers[selection.cells],
            np.arange(selection.layout.n_cells),
            self.half_norms[selection.cells],
            n_terms=self.centers.shape[1],
            is_sparse=False,
        )
        rung = self._rung
        given = rung.learned, self._space, packed, *args
        return rung.place.add_up(function, *given, each=rung.starts)

    def _sweep(self, active: Selection) -> None:
        """Assign all rows in the active runs; the sums follow, the centres do not."""
        found = self._pass(sweep_block, active, self._grid)
        self._sums[active.cells] = found.sums
        self._first_rows[active.cells] = found.first_rows

    def _update_centers(self, active: Selection) -> np.ndarray:
        """Set the centres to the means of their cells; return the runs' moves."""
        squares = np.empty(len(active.cells))
        step = max(UPDATED_VALUES // self.centers.shape[1], 1)
        for start in range(0, len(squares), step):
            here = slice(start, start + step)
            squares[here] = self._set_centers(active.cells[here])
        runs = self._layout.run_of_cell[active.cells]
        return np.bincount(runs, squares, self._layout.n_runs)[active.runs]

    def _refill_empty_cells(self, active: Selection) -> None:
        """Give each empty cell the row of its run that is farthest from its centre."""
        empty = self._list_empty(active.cells)
        if not len(empty):
            return
        run_of_empty = self._layout.run_of_cell[empty]
        runs, n_empty = np.unique(run_of_empty, return_counts=True)
        part = self._layout.select(runs)
        seen = None if self._features is None else self._features[runs]
        far = self._pass(find_far_rows, part, seen, int(n_empty.max()))
        self._first_rows[part.cells] = far.first_rows
        for number, run in enumerate(runs):
            cells, rows = empty[run_of_empty == run], far.rows[number]
            old_cells = self._layout.cell(run, far.labels[number])
            n_moved = self._fill_cells(cells, far.list_rows(number, old_cells))
            self._first_rows[cells[:n_moved]] = rows[:n_moved]
            np.minimum.at(self._first_rows, old_cells[n_moved:], rows[n_moved:])


def sweep_block(
    block: Block,
    threads: Threads,
    learned: Learned,
    space: RowSpace,
    packed: PackedCenters,
    grid: Grid,
    start: int,
) -> Sweep:
    """Assign the rows of a block in some runs; return the sums of their cells.

    Parameters
    ----------
    block : Block
    threads : Threads
    learned : Learned
    space : RowSpace
    packed : PackedCenters
    grid : Grid
    start : int
        How many rows are learned from before the block.
    """
    layout = packed.layout
    tiles = learned.cut(block, space, layout.n_cells)
    shape = (layout.n_cells, grid.n_levels * (tiles.n_features + 1))
    total = Sweep(np.zeros(shape), np.full(layout.n_cells, _NO_ROW))
    lock = threading.Lock()

    def work(_: int, share: range) -> None:
        workspace = AssignWorkspace(layout, min(tiles.tile_rows, tiles.n_rows))
        sums, first_rows = np.zeros_like(total.sums), np.full_like(total[1], _NO_ROW)
        for index in share:
            tile = tiles[index]
            labels = assign_sweep(tile, packed, workspace)
            parts = grid.split(weigh_rows(tile.points, None))
            sums += _find_members(labels, layout) @ parts
            _note_first_rows(first_rows, labels, layout, start + tile.start)
        with lock:
            np.add(total.sums, sums, out=total.sums)
            np.minimum(total.first_rows, first_rows, out=total.first_rows)

    threads.share(len(tiles), work)
    return total


def _find_members(labels: np.ndarray, layout: Layout) -> sparse.csc_array:
    """Return which rows are in each cell, of shape (n_cells, n_rows).

    Sparse: a product with rows then takes a time that does not depend on the numbers
    of clusters. With 100 runs it is as fast as a dense one for 4 clusters on average,
    twice as fast for 11 and ten times for 70.
    """
    n_runs, n_rows = labels.shape
    runs = np.arange(n_runs)[:, None]
    cells = layout.cell(runs, labels.astype(np.intp)).astype(np.int32)
    borders = np.arange(n_rows + 1, dtype=np.int32) * n_runs
    return sparse.csc_array(
        (np.ones(cells.size), cells.T.ravel(), borders),
        shape=(layout.n_cells, n_rows),
    )


def _note_first_rows(
    first_rows: np.ndarray, labels: np.ndarray, layout: Layout, start: int
) -> None:
    """Put in the first rows of cells that had none so far."""
    cells = np.flatnonzero(first_rows == _NO_ROW)
    found = find_first_rows(labels, layout, cells)
    is_found = found < labels.shape[1]
    first_rows[cells[is_found]] = start + found[is_found]


def find_far_rows(
    block: Block,
    threads: Threads,
    learned: Learned,
    space: RowSpace,
    packed: PackedCenters,
    features: np.ndarray | None,
    n_wanted: int,
    start: int,
) -> FarRows:
    """Return the rows of a block that are farthest from their centres in some runs.

    Parameters
    ----------
    block : Block
    threads : Threads
    learned : Learned
    space : RowSpace
    packed : PackedCenters
    features : ndarray of shape (n_runs, n_features), bool, or None
        The features that each run sees.
    n_wanted : int
        How many rows of each run.
    start : int
        How many rows are learned from before the block.
    """
    layout = packed.layout
    tiles = learned.cut(block, space, layout.n_cells)

    def look(tile: Tile) -> FarRows:
        workspace = AssignWorkspace(layout, tile.stop - tile.start)
        labels = assign_sweep(tile, packed, workspace).astype(np.intp)
        distances = distances_in_float64(tile, packed, labels, features)
        return FarRows.pick(layout, n_wanted, tile, start, labels, distances)

    nothing = FarRows.none(layout, n_wanted, tiles)
    return add_in_tree([nothing, *threads.map(look, tiles)])
