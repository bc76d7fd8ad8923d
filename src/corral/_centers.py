"""Centres of many K-means runs, which follow the exact sums of their cells' rows."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy import sparse

from corral._assign import Layout, half_squared_norms
from corral._grid import Grid

# Centres are set in groups of about this many values, to stay in the cache.
UPDATED_VALUES = 2**18

# Where to look for the first row of each cell; there are rows of most cells.
_FIRST_ROWS = 1024


class FarRow(NamedTuple):
    """A row that may fill an empty cell of a run.

    Attributes
    ----------
    cell : int
        In which it is.
    point : ndarray or csr_array of shape (1, n_features)
    weights : ndarray of shape (1,) or None
    """

    cell: int
    point: np.ndarray | sparse.csr_array
    weights: np.ndarray | None


class RunCenters:
    """The part of Lloyd's algorithm that does not look at rows.

    Parameters
    ----------
    layout : Layout
    grid : Grid
        Of the features and the weight.
    starts : ndarray of shape (n_cells, n_features) or None
        First centres, in the row space and in its precision. None if the runs start
        from labels.
    n_features : int
    dtype : numpy dtype
        Of the centres.
    features : ndarray of shape (n_runs, n_features), bool, or None
        The features that each run sees.
    spherical : bool
        Whether centres have unit length.

    Attributes
    ----------
    centers : ndarray of shape (n_cells, n_features)
    half_norms : ndarray of shape (n_cells,)
        See :class:`~corral._assign.PackedCenters`; infinite for a cell without rows.
    """

    def __init__(
        self,
        layout: Layout,
        grid: Grid,
        starts: np.ndarray | None,
        *,
        n_features: int,
        dtype: np.dtype,
        features: np.ndarray | None,
        spherical: bool,
    ) -> None:
        self._layout = layout
        self._grid = grid
        self._features = features
        self._spherical = spherical
        n_columns = grid.n_levels * (n_features + 1)
        self._sums: np.ndarray = np.zeros((layout.n_cells, n_columns), grid.dtype)
        if starts is None:
            self.centers = np.zeros((layout.n_cells, n_features), dtype)
            self.half_norms = np.full(layout.n_cells, np.inf)
            return
        self.centers = self._place(starts, slice(None))
        in_use = ~_repeated_starts(self.centers, layout.run_of_cell)
        self.half_norms = half_squared_norms(self.centers, in_use, spherical=spherical)

    def _set_centers(self, cells: np.ndarray) -> np.ndarray:
        """Set some centres to their means; return the squares of their moves."""
        means, filled = self._find_means(self._sums[cells], cells)
        steps = means - self.centers[cells]
        steps[~filled] = 0
        self.centers[cells] = means
        self.half_norms[cells] = half_squared_norms(
            means, filled, spherical=self._spherical
        )
        return np.einsum("ij,ij->i", steps, steps, dtype=np.float64)

    def _find_means(
        self, sums: np.ndarray, cells: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return the means of cells with these sums, and whether they have any row."""
        sums = self._grid.join(sums)
        filled = sums[:, -1] > 0
        means = sums[:, :-1] / np.where(filled, sums[:, -1], 1)[:, None]
        means = self._place(means, cells)
        return means.astype(self.centers.dtype, copy=False), filled

    def _place(self, centers: np.ndarray, cells) -> np.ndarray:
        """Return centres as their runs have them.

        The features that a run does not see are zero; for cosine the rest has unit
        length.
        """
        if self._features is not None:
            seen = self._features[self._layout.run_of_cell[cells]]
            centers = np.where(seen, centers, 0)
        if self._spherical:
            norms = np.sqrt(np.einsum("ij,ij->i", centers, centers, dtype=np.float64))
            unit = centers / np.where(norms > 0, norms, 1)[:, None]
            centers = unit.astype(centers.dtype, copy=False)
        return centers

    def _list_empty(self, cells: np.ndarray) -> np.ndarray:
        """Return which of some cells have no rows."""
        n_features = self.centers.shape[1]
        # The weight of a cell is exact, so that of an empty one is exactly zero.
        weights = self._sums[cells, n_features :: n_features + 1]
        return cells[~weights.any(axis=1)]

    def _fill_cells(self, empty: np.ndarray, rows: Iterable[FarRow]) -> int:
        """Move rows, farthest first, into the empty cells of a run.

        Returns
        -------
        n_moved : int
            How many; the sums follow.
        """
        n_moved = 0
        for cell, row in zip(empty, rows, strict=False):
            point = self._place(_dense(row.point), [cell])
            # A row that lies on its centre would leave a cell empty again.
            if np.array_equal(point[0], self.centers[row.cell]):
                break
            parts = _dense(self._grid.split(weigh_rows(row.point, row.weights)))[0]
            self._sums[row.cell] -= parts
            self._sums[cell] += parts
            n_moved += 1
        return n_moved

    def _sort_by(self, first_rows: np.ndarray) -> None:
        """Put the centres of each run in the order of their first rows."""
        layout = self._layout
        by_label = np.lexsort((layout.label_of_cell, layout.run_of_cell))
        by_row = np.lexsort((first_rows, layout.run_of_cell))
        # A few runs at a time, because a copy of all centres may be large.
        k_max = layout.n_clusters.max()
        step = max(UPDATED_VALUES // (k_max * self.centers.shape[1]), 1)
        borders = np.cumsum(layout.n_clusters)[step - 1 : -1 : step]
        for cells, sources in zip(
            np.split(by_label, borders), np.split(by_row, borders), strict=True
        ):
            self.centers[cells] = self.centers[sources]
            self.half_norms[cells] = self.half_norms[sources]


def find_first_rows(
    labels: np.ndarray, layout: Layout, cells: np.ndarray
) -> np.ndarray:
    """Return the first row of each of some cells.

    Parameters
    ----------
    labels : ndarray of shape (n_runs, n_rows)
    layout : Layout
    cells : ndarray of shape (n_cells,)

    Returns
    -------
    first_rows : ndarray of shape (n_cells,)
        An empty one has the number of rows.
    """
    n_rows = labels.shape[1]
    first_rows = np.full(len(cells), n_rows)
    missing = np.arange(len(cells))
    start, stop = 0, _FIRST_ROWS
    while len(missing) and start < n_rows:
        here = labels[:, start:stop][layout.run_of_cell[cells[missing]]]
        is_row_of = here == layout.label_of_cell[cells[missing], None]
        first = is_row_of.argmax(axis=1)
        found = is_row_of[np.arange(len(first)), first]
        first_rows[missing[found]] = start + first[found]
        missing = missing[~found]
        # What is left is rare, so look at more rows at once.
        start, stop = stop, 2 * stop
    return first_rows


def _dense(rows) -> np.ndarray:
    return rows.toarray() if sparse.issparse(rows) else rows


def weigh_rows(points, weights: np.ndarray | None):
    """Multiply rows by their weights and append the weight as a last column.

    Returns
    -------
    weighted : ndarray or csr_array of shape (n_rows, n_features + 1), float64
    """
    if weights is None:
        weights = np.ones(points.shape[0])
    if sparse.issparse(points):
        column = sparse.csr_array(weights[:, None])
        scaled = sparse.csr_array(
            (
                points.data * np.repeat(weights, np.diff(points.indptr)),
                points.indices,
                points.indptr,
            ),
            shape=points.shape,
        )
        return sparse.hstack([scaled, column], format="csr")
    weighted = np.empty((len(points), points.shape[1] + 1))
    np.multiply(points, weights[:, None], out=weighted[:, :-1])
    weighted[:, -1] = weights
    return weighted


def _repeated_starts(starts: np.ndarray, run_of_cell: np.ndarray) -> np.ndarray:
    """Mark cells that start on the same point as an earlier cell of their run.

    Equal points have equal projections on a fixed line; different ones that collide
    there do no harm, since a cell not in use is refilled like an empty one.
    """
    line = np.random.default_rng(0).normal(size=starts.shape[1])
    position = np.einsum("ij,j->i", starts, line, dtype=np.float64)
    order = np.lexsort((np.arange(len(starts)), position, run_of_cell))
    repeated = np.zeros(len(starts), dtype=bool)
    same_run = run_of_cell[order[1:]] == run_of_cell[order[:-1]]
    same_point = position[order[1:]] == position[order[:-1]]
    repeated[order[1:]] = same_run & same_point
    return repeated
