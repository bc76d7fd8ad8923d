"""Lloyd's algorithm for many K-means runs on few rows, where calls cost the most."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse

from corral._assign import (
    CellCenters,
    Layout,
    half_squared_norms,
    rounding_bound,
    settle_close_calls,
)
from corral._tiles import Tile

# A row is in doubt where another centre's score comes so many rounding errors near
# the best one; see SmallRuns._find_members.
_DOUBT = 80

# Masks of no more values than this are added up anew in each iteration. Larger ones
# are compared with the last ones, because most rows stay: on 336 x 7 rows, both ways
# cost the same for about 100 cells.
_FEW_MEMBERS = 2**15

# Finished runs are carried along up to this share: to leave them out takes copies.
_CARRIED = 0.2


class FinishedRuns(NamedTuple):
    """What became of the runs.

    Attributes
    ----------
    is_finished : ndarray of shape (n_runs,), bool
        Runs that had to be left out are not: they have a cell without rows.
    centers : ndarray of shape (n_cells, n_features)
    half_norms : ndarray of shape (n_cells,)
    is_row_of : ndarray of shape (n_cells, n_rows), bool
    """

    is_finished: np.ndarray
    centers: np.ndarray
    half_norms: np.ndarray
    is_row_of: np.ndarray


class SmallRuns:
    """Many K-means runs on one tile of dense rows, advanced together.

    The results are those of :class:`~corral._lloyd.LloydRuns` to the last bit. What
    takes its time on few rows are not the numbers but the calls, so there are as few
    as possible: one product in float64 for all scores, a mask of each cell's rows in
    the place of labels, and one sparse product that moves the sums.

    The cells lie in blocks, first the cells 0 of all runs, then the cells 1, and so
    on, with the runs in the order of falling numbers of clusters: the runs of a block
    are the first ones of the block before.

    Parameters
    ----------
    tile : Tile
    parts : ndarray of shape (n_rows, n_columns)
        The rows as the sums add them up.
    layout : Layout
    find_means : callable
        Gives for sums and cells the centres, and whether each cell has any row.
    spherical : bool
    """

    def __init__(
        self,
        tile: Tile,
        parts: np.ndarray,
        layout: Layout,
        find_means: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]],
        *,
        spherical: bool,
    ) -> None:
        self._tile = tile
        self._parts = parts
        self._layout = layout
        self._find_means = find_means
        self._spherical = spherical
        n_rows, n_features = tile.points.shape
        self._n_rows = n_rows
        # The last column meets the half norms.
        self._columns = np.vstack([tile.points.T, np.full(n_rows, -1.0)])
        self._error = _DOUBT * rounding_bound(n_features, np.float64)
        self._row_doubts = self._error * tile.norms**2
        self._augmented = np.empty((layout.n_cells, n_features + 1))
        self._scores = np.empty((layout.n_cells, n_rows))
        self._best = np.empty((layout.n_runs, n_rows))

    def run(
        self,
        centers: np.ndarray,
        half_norms: np.ndarray,
        max_iter: int,
        tolerances: np.ndarray,
    ) -> FinishedRuns:
        """Iterate as :meth:`~corral._lloyd.LloydRuns.run` does."""
        layout = self._layout
        found = FinishedRuns(
            np.zeros(layout.n_runs, dtype=bool),
            np.empty_like(centers),
            np.empty_like(half_norms),
            np.zeros((layout.n_cells, self._n_rows), dtype=bool),
        )
        cells = np.lexsort((-layout.run_of_cell, layout.label_of_cell))
        active = _Active(
            layout,
            cells,
            centers[cells],
            half_norms[cells],
            np.zeros((len(cells), self._n_rows), dtype=bool),
            np.zeros((len(cells), self._parts.shape[1])),
        )
        goes_on = active.have_rows()
        for iteration in range(max_iter):
            if np.count_nonzero(goes_on) < (1 - _CARRIED) * len(goes_on):
                active, goes_on = active.select(goes_on), goes_on[goes_on]
            if not len(goes_on):
                break
            moves = self._advance(active)
            goes_on &= active.have_rows()
            rests = goes_on & (moves <= tolerances[active.runs])
            if iteration == max_iter - 1:
                rests = goes_on
            if rests.any():
                active.put_into(found, rests)
                goes_on = goes_on & ~rests
        return found

    def _advance(self, active: "_Active") -> np.ndarray:
        """Do one iteration; return the squared moves of each run's centres."""
        self._add_up(active, self._find_members(active))
        centers, filled = self._find_means(active.sums, active.cells)
        steps = centers - active.centers
        active.centers = centers
        active.half_norms = half_squared_norms(
            centers, filled, spherical=self._spherical
        )
        squares = np.einsum("ij,ij->i", steps, steps, dtype=np.float64)
        return np.bincount(active.place_of_cell, squares)

    def _find_members(self, active: "_Active") -> np.ndarray:
        """Return which rows belong to each cell.

        With x the row's norm and r that of the run's centre next to the origin, the
        best centre is no longer than ``2 x + r``, and its score has an error of at
        most ``gamma (5.5 x^2 + 2 r^2)``. That of another one of at most ``4 x + 3 r``
        is ``gamma (19.5 x^2 + 12 r^2)``. Three times both is what a comparison in
        another order may call equal. The scores of longer centres are lower by a
        quarter of their squares, which no rounding makes up for.
        """
        n_cells = len(active.cells)
        augmented, scores = self._augmented[:n_cells], self._scores[:n_cells]
        augmented[:, :-1] = active.centers
        augmented[:, -1] = active.half_norms
        # BLAS may fill up columns with zeros and multiply infinite half norms by them,
        # in places that nobody reads.
        with np.errstate(invalid="ignore"):
            np.matmul(augmented, self._columns, out=scores)
        best = self._best[: len(active.runs)]
        np.copyto(best, scores[active.blocks[0]])
        for block in active.blocks[1:]:
            here = best[: block.stop - block.start]
            np.maximum(here, scores[block], out=here)
        # One part for all runs: it is small unless every centre of a run is far away.
        best -= self._row_doubts + 2 * self._error * active.smallest_half_norms().max()
        is_row_of = np.empty(scores.shape, dtype=bool)
        for block in active.blocks:
            here = best[: block.stop - block.start]
            np.greater_equal(scores[block], here, out=is_row_of[block])
        if np.count_nonzero(is_row_of) != best.size:
            self._settle(active, is_row_of)
        return is_row_of

    def _settle(self, active: "_Active", is_row_of: np.ndarray) -> None:
        """Leave each row in one cell of a run."""
        n_candidates = np.zeros(self._best[: len(active.runs)].shape, dtype=np.intp)
        for block in active.blocks:
            n_candidates[: block.stop - block.start] += is_row_of[block]
        places, rows = np.nonzero(n_candidates > 1)
        labels = settle_close_calls(
            self._tile, active.locate(), active.runs[places], rows
        )
        for label, block in enumerate(active.blocks):
            here = places < block.stop - block.start
            is_row_of[block][places[here], rows[here]] = labels[here] == label

    def _add_up(self, active: "_Active", is_row_of: np.ndarray) -> None:
        """Let the sums follow the rows."""
        if is_row_of.size <= _FEW_MEMBERS:
            active.sums = is_row_of.astype(np.float64) @ self._parts
        else:
            active.sums += self._find_change(active.is_row_of, is_row_of)
        active.is_row_of = is_row_of

    def _find_change(self, old: np.ndarray, new: np.ndarray) -> np.ndarray:
        """Return what the sums gain and lose."""
        pairs = np.flatnonzero(old != new)
        borders = np.arange(0, new.size + 1, self._n_rows)
        signs = np.where(new.reshape(-1)[pairs], 1.0, -1.0)
        moves = sparse.csr_array(
            (signs, pairs % self._n_rows, np.searchsorted(pairs, borders)),
            shape=new.shape,
        )
        return moves @ self._parts


class _Active:
    """The runs that go on; see :class:`SmallRuns` for the order of the cells."""

    def __init__(
        self,
        layout: Layout,
        cells: np.ndarray,
        centers: np.ndarray,
        half_norms: np.ndarray,
        is_row_of: np.ndarray,
        sums: np.ndarray,
    ) -> None:
        self._layout = layout
        self.cells = cells
        self.centers = centers
        self.half_norms = half_norms
        self.is_row_of = is_row_of
        self.sums = sums
        labels = layout.label_of_cell[cells]
        counts = np.bincount(labels, minlength=1)
        stops = np.cumsum(counts)
        self.blocks = [
            slice(stop - count, stop)
            for stop, count in zip(stops.tolist(), counts.tolist(), strict=True)
        ]
        self.runs = layout.run_of_cell[cells[self.blocks[0]]]
        self.place_of_cell = np.arange(len(cells)) - (stops - counts)[labels]

    def smallest_half_norms(self) -> np.ndarray:
        """Return that of the centre next to the origin, for each run."""
        smallest = np.full(len(self.runs), np.inf)
        np.minimum.at(smallest, self.place_of_cell, self.half_norms)
        return smallest

    def have_rows(self) -> np.ndarray:
        """Tell in which runs all cells are in use."""
        have = np.ones(len(self.runs), dtype=bool)
        have[self.place_of_cell[np.isinf(self.half_norms)]] = False
        return have

    def select(self, chosen: np.ndarray) -> "_Active":
        """Return some of the runs."""
        keep = chosen[self.place_of_cell]
        return _Active(
            self._layout,
            self.cells[keep],
            self.centers[keep],
            self.half_norms[keep],
            self.is_row_of[keep],
            self.sums[keep],
        )

    def locate(self) -> CellCenters:
        """Return the centres by the cells of the layout."""
        places = np.zeros(self._layout.n_cells, dtype=np.intp)
        places[self.cells] = np.arange(len(self.cells))
        half_norms = np.full(self._layout.n_cells, np.inf)
        half_norms[self.cells] = self.half_norms
        return CellCenters(
            self._layout, self.centers, places, half_norms, self.centers.shape[1]
        )

    def put_into(self, found: FinishedRuns, chosen: np.ndarray) -> None:
        """Write some runs down as finished."""
        found.is_finished[self.runs[chosen]] = True
        keep = np.flatnonzero(chosen[self.place_of_cell])
        cells = self.cells[keep]
        found.centers[cells] = self.centers[keep]
        found.half_norms[cells] = self.half_norms[keep]
        found.is_row_of[cells] = self.is_row_of[keep]
