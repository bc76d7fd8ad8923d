"""Lloyd's algorithm for many K-means runs at once: one sweep of a tile serves all."""

import threading

import numpy as np
from scipy import sparse

from corral._assign import (
    AssignWorkspace,
    Group,
    Layout,
    PackedCenters,
    ScoreCache,
    Selection,
    assign_sweep,
    distances_in_float64,
)
from corral._centers import (
    UPDATED_VALUES,
    FarRow,
    RunCenters,
    find_first_rows,
    weigh_rows,
)
from corral._grid import MAX_WHOLE_FLOAT32, Grid
from corral._small_runs import SmallRuns
from corral._threads import Threads
from corral._tiles import Tile, Tiles

# Where more than this share of a tile's labels changed, the sums are updated by a
# dense product, else by a sparse one. Both are exact, so the choice is only one of
# speed: measured on 2048 x 38 rows and 100 runs, they cost the same at about 8 %.
_MANY_CHANGES = 0.08

# Rows that changed are gathered over tiles up to this many before the sums follow.
_GATHERED_ROWS = 4096

# So few moves are carried out one by one; making a sparse matrix would take longer.
_FEW_MOVES = 1000

# Sparse rows of more columns have one level of the grid. The second takes a tenth more
# time with 2,000 columns.
_FEW_COLUMNS = 4096

# Values that are so many times larger than usual ones take a second level of the grid.
_WIDE_RANGE = 2.0**16

# Scores of sparse rows are kept up to this many.
_MAX_CACHED_SCORES = 2**24

# Up to so many products of values in one sweep over all rows and cells, the runs are
# done as small ones. With 100 runs, these are 2 times faster on 150 x 4 rows, 1.6 times
# on 336 x 7 and on 700 x 8 (2**21.7 products); both ways cost the same on 336 x 60.
_MAX_SMALL_PRODUCTS = 2**22


class LloydRuns(RunCenters):
    """Many K-means runs on the same rows, advanced together.

    The state of Lloyd's algorithm: every row's label in every run, and for each cell
    the exact sum of its rows. An iteration assigns all rows of a tile in all unfinished
    runs with one product and then moves only what changed: a row that leaves a cell is
    taken from its sum and added to the other's. The sums are exact (see
    :class:`~corral._grid.Grid`), so this leaves no error behind, and neither threads
    nor tiles change a bit of the result.

    Parameters
    ----------
    tiles : Tiles
        The rows to learn from.
    weights : ndarray of shape (n_rows,) or None
        Positive.
    layout : Layout
    starts : ndarray of shape (n_cells, n_features) or None
        First centres, in the row space and in its precision; overwritten. None if the
        runs start from labels.
    features : ndarray of shape (n_runs, n_features), bool, or None
        The features that each run sees. The centres of a run are zero in all others,
        which is all it takes.
    spherical : bool
        Whether to run spherical K-means: unit centres, largest cosine.

    Attributes
    ----------
    centers : ndarray of shape (n_cells, n_features)
    half_norms : ndarray of shape (n_cells,)
        See :class:`~corral._assign.PackedCenters`; infinite for a cell without rows.
    """

    def __init__(
        self,
        tiles: Tiles,
        weights: np.ndarray | None,
        layout: Layout,
        starts: np.ndarray | None,
        *,
        features: np.ndarray | None = None,
        spherical: bool = False,
    ) -> None:
        super().__init__(
            layout,
            _choose_grid(tiles, weights),
            starts,
            n_features=tiles.n_features,
            dtype=tiles.dtype,
            features=features,
            spherical=spherical,
        )
        self._tiles = tiles
        self._weights = weights
        self._lock = threading.Lock()
        self._workspaces: dict[int, AssignWorkspace] = {}
        self._cache = None
        if tiles.is_sparse and layout.n_cells * tiles.n_rows <= _MAX_CACHED_SCORES:
            self._cache = ScoreCache(layout.n_cells, tiles.n_rows, tiles.n_features)
        # Cells whose sums have changed since their centres were set.
        self._touched = np.zeros(layout.n_cells, dtype=bool)
        # No label is as large as this one: at first, every row has to change.
        self._no_label = np.iinfo(layout.label_dtype).max
        self._labels = np.full(
            (layout.n_runs, tiles.n_rows), self._no_label, layout.label_dtype
        )

    @property
    def labels(self) -> np.ndarray:
        """Labels of all rows, of shape (n_runs, n_rows)."""
        return self._labels

    def start_from(self, labels: np.ndarray, threads: Threads) -> None:
        """Take over the labels of all rows and set the centres to their means.

        Parameters
        ----------
        labels : ndarray of shape (n_runs, n_rows)
        threads : Threads
        """
        everything = self._layout.select(np.arange(self._layout.n_runs))
        if self._tiles.is_sparse:
            self._add_up_columns(labels, threads)
        else:
            self._add_up_tiles(labels, everything, threads)
        self._touched[:] = True
        self._labels[:] = labels
        self._update_centers(everything, threads)

    def _add_up_tiles(
        self, labels: np.ndarray, everything: Selection, threads: Threads
    ) -> None:
        """Add all dense rows to their first sums."""

        def work(_: int, share: range) -> None:
            for index in share:
                tile = self._tiles[index]
                here = np.s_[:, tile.start : tile.stop]
                self._move_many(tile, everything, self._labels[here], labels[here])

        threads.share(len(self._tiles), work)

    def _add_up_columns(self, labels: np.ndarray, threads: Threads) -> None:
        """Set the first sums of sparse rows, a strip of columns at a time.

        The sums of a strip are small, so memory for them is at hand: to get fresh
        memory for long sums takes as long as to add them up.
        """
        weighed = [self._weigh(tile, slice(None)) for tile in self._tiles]
        columns = self._split(sparse.vstack(weighed, format="csr")).T
        labels_of_runs = labels[self._layout.run_of_cell].T
        is_row_of = labels_of_runs == self._layout.label_of_cell
        members: np.ndarray = np.ascontiguousarray(is_row_of, dtype=self._grid.dtype)
        step = max(UPDATED_VALUES // self._layout.n_cells, 1)

        def work(_: int, share: range) -> None:
            for index in share:
                strip = slice(index * step, (index + 1) * step)
                self._sums[:, strip] = (columns[strip] @ members).T

        threads.share(-(-columns.shape[0] // step), work)

    def run(self, max_iter: int, tolerances: np.ndarray, threads: Threads) -> None:
        """Iterate until each run's centres rest, or ``max_iter`` times.

        Parameters
        ----------
        max_iter : int
        tolerances : ndarray of shape (n_runs,)
            A run stops when its centres' squared moves add up to no more than this.
        threads : Threads
        """
        runs = np.arange(self._layout.n_runs)
        if self._are_small:
            runs = runs[~self._run_small(max_iter, tolerances)]
            if not len(runs):
                return
        active = self._layout.select(runs)
        for _ in range(max_iter):
            changed = self._sweep(active, threads)
            changed[self._refill_empty_cells(active, threads)] = True
            moves = self._update_centers(active, threads)
            resting = ~changed | (moves <= tolerances[active.runs])
            if resting.all():
                break
            if resting.any():
                active = self._layout.select(active.runs[~resting])

    @property
    def _are_small(self) -> bool:
        tiles = self._tiles
        n_products = tiles.n_rows * tiles.n_features * self._layout.n_cells
        is_one_tile = len(tiles) == 1 and not tiles.is_sparse
        return is_one_tile and n_products <= _MAX_SMALL_PRODUCTS

    def _run_small(self, max_iter: int, tolerances: np.ndarray) -> np.ndarray:
        """Do the runs on few rows; return which are done."""
        tile = self._tiles[0]
        small = SmallRuns(
            tile,
            self._grid.split(self._weigh(tile, slice(None))),
            self._layout,
            self._find_means,
            spherical=self._spherical,
        )
        found = small.run(self.centers, self.half_norms, max_iter, tolerances)
        cells = np.flatnonzero(found.is_finished[self._layout.run_of_cell])
        self.centers[cells] = found.centers[cells]
        self.half_norms[cells] = found.half_norms[cells]
        label_of_cell = self._layout.label_of_cell.astype(self._labels.dtype)
        marks = found.is_row_of.view(np.uint8) * label_of_cell[:, None]
        labels = np.empty_like(self._labels)
        for group in self._layout.groups:
            of_group = marks[group.cells].reshape(group.n_clusters, group.n_runs, -1)
            labels[group.runs] = of_group.sum(axis=0)
        # The labels of the others stay, because their sums do.
        self._labels[found.is_finished] = labels[found.is_finished]
        return found.is_finished

    def pack(self, selection: Selection, threads: Threads) -> PackedCenters:
        """Pack the present centres of some runs for products with rows."""
        return PackedCenters.pack(
            selection.layout,
            self.centers,
            selection.cells,
            self.half_norms[selection.cells],
            n_terms=self._tiles.n_terms,
            is_sparse=self._tiles.is_sparse,
            cache=self._cache,
            threads=threads,
        )

    def sort_centers(self) -> None:
        """Put the centres of each run in the order of their first rows.

        In this order equal runs have equal centres, whatever their starts were. To be
        called last: labels and sums stay as they are.
        """
        everything = np.arange(self._layout.n_cells)
        self._sort_by(find_first_rows(self._labels, self._layout, everything))

    def _workspace(self, number: int) -> AssignWorkspace:
        if number not in self._workspaces:
            self._workspaces[number] = AssignWorkspace(
                self._layout, min(self._tiles.tile_rows, self._tiles.n_rows)
            )
        return self._workspaces[number]

    def _sweep(self, active: Selection, threads: Threads) -> np.ndarray:
        """Assign all rows in the active runs; return in which any label changed.

        The sums follow the labels, the centres do not yet.
        """
        packed = self.pack(active, threads)
        any_changed = np.zeros(len(active.runs), dtype=bool)

        def work(number: int, share: range) -> None:
            workspace = self._workspace(number)
            moves = _Moves()
            for index in share:
                tile = self._tiles[index]
                labels = assign_sweep(tile, packed, workspace)
                here = np.s_[active.runs, tile.start : tile.stop]
                old = self._labels[here]
                changed = labels != old
                n_changed = np.count_nonzero(changed)
                if n_changed == 0:
                    continue
                if n_changed > _MANY_CHANGES * changed.size:
                    self._move_many(tile, active, old, labels)
                else:
                    self._gather_moves(moves, tile, active.runs, old, labels, changed)
                self._labels[here] = labels
                any_changed[changed.any(axis=1)] = True
            self._carry_out(moves)

        threads.share(len(self._tiles), work)
        if self._cache is not None:
            self._cache.is_stale[active.cells] = False
        return any_changed

    def _move_many(
        self,
        tile: Tile,
        active: Selection,
        old: np.ndarray,
        new: np.ndarray,
    ) -> None:
        """Update the sums by a product of the tile with all changes of its labels."""
        parts = self._split(self._weigh(tile, slice(None)))
        self._touched[active.cells] = True
        for group in active.layout.groups:
            self._move_group(parts, group, active, old, new)

    def _move_group(
        self, parts, group: Group, active: Selection, old: np.ndarray, new: np.ndarray
    ) -> None:
        labels = np.arange(group.n_clusters, dtype=new.dtype)[:, None, None]
        enters = new[group.runs] == labels
        leaves = old[group.runs] == labels
        signs = np.subtract(enters, leaves, dtype=self._grid.dtype)
        signs = signs.reshape(-1, parts.shape[0])
        # Dense signs: with so many, even sparse rows are added up faster this way.
        change = (parts.T @ signs.T).T if sparse.issparse(parts) else signs @ parts
        cells = active.cells[group.cells]
        with self._lock:
            if cells[-1] - cells[0] == len(cells) - 1:
                # A slice saves two copies of long sums.
                self._sums[cells[0] : cells[-1] + 1] += change
            else:
                self._sums[cells] += change

    def _split(self, weighed):
        """Return the parts of rows, by columns if sparse: they will be transposed."""
        parts = self._grid.split(weighed)
        return parts.tocsc() if sparse.issparse(parts) else parts

    def _gather_moves(
        self,
        moves: "_Moves",
        tile: Tile,
        active_runs: np.ndarray,
        old: np.ndarray,
        new: np.ndarray,
        changed: np.ndarray,
    ) -> None:
        """Note which rows leave and enter which cells; act once there are many."""
        moved = changed.any(axis=0)
        pairs = np.flatnonzero(changed)
        before = old.reshape(-1)[pairs].astype(np.intp)
        after = new.reshape(-1)[pairs].astype(np.intp)
        runs = pairs // changed.shape[1]
        places = (np.cumsum(moved) - 1)[pairs - runs * changed.shape[1]]
        runs = active_runs[runs]
        left = before != self._no_label
        moves.add(
            self._weigh(tile, np.flatnonzero(moved)),
            enter=(self._layout.cell(runs, after), places),
            leave=(
                self._layout.cell(runs[left], before[left]),
                places[left],
            ),
        )
        if moves.n_rows >= _GATHERED_ROWS:
            self._carry_out(moves)

    def _carry_out(self, moves: "_Moves") -> None:
        """Update the sums by a sparse product with the gathered rows."""
        if moves.n_rows == 0:
            return
        cells, rows, signs, weighed = moves.drain()
        parts = self._grid.split(weighed)
        if len(cells) <= _FEW_MOVES and not sparse.issparse(parts):
            with self._lock:
                self._touched[cells] = True
                np.add.at(self._sums, cells, signs[:, None] * parts[rows])
            return
        shape = (self._layout.n_cells, parts.shape[0])
        change = sparse.coo_array((signs, (cells, rows)), shape=shape) @ parts
        with self._lock:
            self._touched[cells] = True
            if sparse.issparse(change):
                _add_sparse(self._sums, change)
            else:
                self._sums += change

    def _weigh(self, tile: Tile, rows: np.ndarray | slice):
        weights = None
        if self._weights is not None:
            weights = self._weights[tile.start : tile.stop][rows]
        return weigh_rows(tile.points[rows], weights)

    def _update_centers(self, active: Selection, threads: Threads) -> np.ndarray:
        """Set the centres to the means of their cells; return the runs' moves."""
        touched = active.cells[self._touched[active.cells]]
        self._touched[touched] = False
        squares = np.empty(len(touched))
        step = max(UPDATED_VALUES // self._tiles.n_features, 1)

        def work(_: int, share: range) -> None:
            for index in share:
                here = slice(index * step, (index + 1) * step)
                squares[here] = self._set_centers(touched[here])

        threads.share(-(-len(touched) // step), work)
        if self._cache is not None:
            self._cache.is_stale[touched] = True
        runs = self._layout.run_of_cell[touched]
        return np.bincount(runs, squares, self._layout.n_runs)[active.runs]

    def _refill_empty_cells(self, active: Selection, threads: Threads) -> np.ndarray:
        """Give each empty cell the row of its run that is farthest from its centre.

        Returns
        -------
        refilled : ndarray of indices into ``active.runs``
        """
        empty = self._list_empty(active.cells)
        if not len(empty):
            return np.zeros(0, dtype=np.intp)
        run_of_empty = self._layout.run_of_cell[empty]
        runs, n_empty = np.unique(run_of_empty, return_counts=True)
        farthest = self._find_farthest(runs, int(n_empty.max()), threads)
        refilled = [
            run
            for run, rows in zip(runs, farthest, strict=True)
            if self._refill_run(run, empty[run_of_empty == run], rows)
        ]
        return np.searchsorted(active.runs, refilled)

    def _refill_run(self, run: int, empty: np.ndarray, rows: np.ndarray) -> bool:
        """Move rows, farthest first, into the empty cells of a run."""
        old_cells = self._layout.cell(run, self._labels[run, rows].astype(np.intp))
        found = (self._take_row(*pair) for pair in zip(rows, old_cells, strict=True))
        moved = slice(self._fill_cells(empty, found))
        self._touched[[*old_cells[moved], *empty[moved]]] = True
        self._labels[run, rows[moved]] = self._layout.label_of_cell[empty[moved]]
        return moved.stop > 0

    def _take_row(self, row: int, cell: int) -> FarRow:
        tile = self._tiles[row // self._tiles.tile_rows]
        weights = None if self._weights is None else self._weights[row : row + 1]
        return FarRow(cell, tile.points[[row - tile.start]], weights)

    def _find_farthest(
        self, runs: np.ndarray, n_rows: int, threads: Threads
    ) -> list[np.ndarray]:
        """Return for each run the rows farthest from their centres, farthest first."""
        packed = self.pack(self._layout.select(runs), threads)
        features = None if self._features is None else self._features[runs]
        found: list[tuple[np.ndarray, np.ndarray]] = []

        def work(number: int, share: range) -> None:
            for index in share:
                tile = self._tiles[index]
                labels = assign_sweep(tile, packed, self._workspace(number))
                distances = distances_in_float64(tile, packed, labels, features)
                rows = np.arange(tile.start, tile.stop)
                # Of equally far rows the first, whatever the tiles are.
                top = [np.lexsort((rows, -each))[:n_rows] for each in distances]
                found.append(
                    (np.take_along_axis(distances, np.array(top), 1), rows[top])
                )

        threads.share(len(self._tiles), work)
        distances = np.concatenate([pair[0] for pair in found], axis=1)
        rows = np.concatenate([pair[1] for pair in found], axis=1)
        order = [np.lexsort(keys) for keys in zip(rows, -distances, strict=True)]
        return [row[first[:n_rows]] for row, first in zip(rows, order, strict=True)]


class _Moves:
    """Rows that change their cells, gathered over tiles."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        """Forget all moves."""
        self.n_rows = 0
        self._weighed: list = []
        self._entering: list[tuple[np.ndarray, np.ndarray]] = []
        self._leaving: list[tuple[np.ndarray, np.ndarray]] = []

    def add(self, weighed, enter: tuple, leave: tuple) -> None:
        """Add weighed rows, and pairs of cells and places among these rows."""
        self._weighed.append(weighed)
        self._entering.append((enter[0], enter[1] + self.n_rows))
        self._leaving.append((leave[0], leave[1] + self.n_rows))
        self.n_rows += weighed.shape[0]

    def drain(self) -> tuple:
        """Return cells, places of rows and signs of all moves, and the rows; clear."""
        cells, rows = (
            np.concatenate(part)
            for part in zip(*self._entering, *self._leaving, strict=True)
        )
        signs = np.ones(len(cells))
        signs[sum(len(pair[0]) for pair in self._entering) :] = -1
        stack = sparse.vstack if sparse.issparse(self._weighed[0]) else np.concatenate
        weighed = stack(self._weighed)
        self.clear()
        return cells, rows, signs, weighed


def _add_sparse(sums: np.ndarray, change: sparse.csr_array) -> None:
    """Add a sparse matrix to a dense one, row by row."""
    borders = change.indptr
    for row in np.flatnonzero(np.diff(borders)):
        part = slice(borders[row], borders[row + 1])
        sums[row, change.indices[part]] += change.data[part]


def _choose_grid(tiles: Tiles, weights: np.ndarray | None) -> Grid:
    if tiles.is_sparse and _are_small_whole(tiles, weights):
        return Grid.of_whole_numbers(tiles.n_features + 1)
    largest = find_largest_values(tiles, weights)
    return Grid.fit(largest, tiles.n_rows, n_levels=_count_levels(tiles))


def _are_small_whole(tiles: Tiles, weights: np.ndarray | None) -> bool:
    """Tell whether weighed sparse rows are whole numbers that float32 adds exactly."""
    sizes = np.zeros(tiles.n_features + 1)
    for tile in tiles:
        w = None if weights is None else weights[tile.start : tile.stop]
        weighed = weigh_rows(tile.points, w)
        if not np.array_equal(weighed.data, np.rint(weighed.data)):
            return False
        sizes += np.bincount(weighed.indices, np.abs(weighed.data), len(sizes))
    return sizes.max() <= MAX_WHOLE_FLOAT32


def find_largest_values(tiles: Tiles, weights: np.ndarray | None) -> np.ndarray:
    """Return the largest size of each column of the weighed rows."""
    largest = np.zeros(tiles.n_features + 1)
    for tile in tiles:
        w = None if weights is None else weights[tile.start : tile.stop]
        sizes = abs(weigh_rows(tile.points, w)).max(axis=0)
        sizes = sizes.toarray().ravel() if sparse.issparse(sizes) else sizes
        np.maximum(largest, sizes, out=largest)
    return largest


def _count_levels(tiles: Tiles) -> int:
    """Return how many levels the sums need; see :class:`~corral._grid.Grid`.

    The second level of many columns is costly, and in sparse rows these seldom have a
    wide range of values. Of few, dense and sparse rows have the same sums.
    """
    if not tiles.is_sparse or tiles.n_features <= _FEW_COLUMNS:
        return 2
    sizes = np.concatenate([np.abs(tile.points.data) for tile in tiles])
    sizes = sizes[sizes > 0]
    is_wide = len(sizes) > 0 and sizes.max() > _WIDE_RANGE * np.median(sizes)
    return 2 if is_wide else 1
