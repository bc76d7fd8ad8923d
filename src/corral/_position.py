r"""How empty the place is where a row lies: how rare its cells are, how far it is out.

A code says in which cells a row lies and forgets where in them, so a lone far row can
share all its labels with a cluster. The position cost puts that back. K-means with
clusters c of :math:`n_c` of n rows, centres :math:`m_c` and the mean squared distance
:math:`s^2` is a mixture of round clouds of one size, and under it a row x of cell c has
the code length

.. math::

    -\log \frac{n_c}{n} + \frac{\lVert x - m_c \rVert^2}{2 s^2} + \text{const}

if the second term is that of one number, the distance, and not of all coordinates:
features share what they tell, and a term for each would drown the first one. Coarse
partitions tell whether a row belongs to a small group, fine ones whether its
neighbourhood is thin. In coarse cells the distance says little, so only the first term
counts there, twice; in fine ones the distance counts a little less than that.

With cosine distance it is the other way round. Rows on a sphere of many dimensions are
all about as far from a centre, so :math:`2 s^2` is too large a unit: the standard
deviation of the squared distances is taken in its place. And in fine cells, which are
a handful of such rows, a centre follows each of its rows; those of coarse cells do not.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy import sparse

from corral._assign import Layout
from corral._blocks import ArrayRows, RowSource
from corral._codes import CodeBook
from corral._threads import Threads
from corral._tiles import Tile, measure_apart, multiply_rows, row_squares

# Chosen on two suites of data sets, see docs/dev/decisions/0007. A smaller weight of
# coarse cells finds fewer groups of outliers, a larger one makes rows of small clusters
# look strange; a larger weight of distances hides tight groups of outliers.
_COARSE_WEIGHT = 2.0
_DISTANCE_WEIGHT = 0.7

# The unit of a run's distances is measured on so many rows.
_UNIT_ROWS = 4096

# With many rows a few runs are measured in the place of all, so many that rows times
# runs are about this. On sets of 20,000 to 60,000 rows, 12 of 50 runs change AUC by
# less than 0.2 points.
_MEASURED_PAIRS = 2**19
_MIN_MEASURED = 12

# A variance that is so small a part of the squared mean is the rounding of sums.
_ROUNDING = 1e-14

# A squared distance that is so small a part of the row's squared norm is the rounding
# of a centre, which has the precision of the rows: cells of equal rows have no spread.
_CENTER_ROUNDING = {"float32": 1e-14, "float64": 1e-28}

# A squared distance that is so small a part of the row's squared norm has few digits if
# it comes from products, and is taken from differences.
_CANCELLED = 2.0**-20

# Products round the distances of rows above this scaled squared norm by more than a
# thousandth of their step. Of such rows, which are rare, they come from differences.
_FAR_NORM = 2.0**16

# Distances are whole multiples of this, because dense and sparse rows are added up in
# different orders; what is left of the difference is lost.
DISTANCE_STEP = 2.0**-20

# Larger distances are drawn together, so that none is twice as large as this: sums of
# costs stay below 2**21, where multiples of 2**-32 add up exactly, and a far row's
# labels still count.
_FAR = 2.0**19
FARTHEST = 2 * _FAR


@dataclass(frozen=True)
class Ruler:
    """Measures how far rows lie from the centres of their cells in some K-means runs.

    Attributes
    ----------
    runs : ndarray of shape (n_measured,)
        The runs.
    layout : Layout
        Of these runs.
    centers : ndarray of shape (n_cells, n_features), float64
    scales : ndarray of shape (n_measured,)
        A weight over the unit of a run's squared distances: twice their mean, or
        their standard deviation in spherical K-means.
    typical : float
        What it measures on average.
    """

    runs: np.ndarray
    layout: Layout
    centers: np.ndarray
    scales: np.ndarray
    typical: float = 0.0

    @cached_property
    def _biases(self) -> np.ndarray:
        squares = np.einsum("ij,ij->i", self.centers, self.centers)
        return squares * self.scales[self.layout.run_of_cell]

    @cached_property
    def _sparse_centers(self) -> sparse.csr_array:
        return sparse.csr_array(self.centers)

    def measure(self, tile: Tile, labels: np.ndarray) -> np.ndarray:
        """Return the scaled squared distances of rows, added up over the runs.

        Parameters
        ----------
        tile : Tile
        labels : ndarray of shape (n_runs, n_rows)
            Of all runs.

        Returns
        -------
        distances : ndarray of shape (n_rows,)
        """
        cells = self._cells(labels)
        points = tile.points.astype(np.float64, copy=False)
        with np.errstate(over="ignore", invalid="ignore"):
            if tile.is_sparse:
                picked = _products(points, self.centers, cells)
                pulls = (picked * self.scales[:, None]).sum(axis=0)
            else:
                pulled = self._members(cells) @ self.centers
                pulls = multiply_rows(points, pulled)
            norms = row_squares(points) * self.scales.sum()
            sums = norms - 2 * pulls + self._biases[cells].sum(axis=0)
            far = np.flatnonzero(norms > _FAR_NORM)
            if len(far):
                sums[far] = self._measure_apart(points, far, cells)
        sums = np.where(np.isfinite(sums), np.maximum(sums, 0), np.inf)
        sums = np.where(sums > _FAR, _FAR * (2 - _FAR / np.maximum(sums, _FAR)), sums)
        return np.rint(sums / DISTANCE_STEP) * DISTANCE_STEP

    def squares(self, tile: Tile, labels: np.ndarray) -> np.ndarray:
        """Return the squared distances, of shape (n_measured, n_rows)."""
        cells = self._cells(labels)
        norms = np.einsum("ij,ij->i", self.centers, self.centers)
        own = row_squares(tile.points)
        found = own - 2 * _products(tile.points, self.centers, cells) + norms[cells]
        for squares, here in zip(found, cells, strict=True):
            lost = np.flatnonzero(squares <= _CANCELLED * own)
            if len(lost):
                centers = self._centers_as(tile.points)
                squares[lost] = measure_apart(tile.points, centers, lost, here)
        return found

    def _measure_apart(self, points, rows: np.ndarray, cells: np.ndarray) -> np.ndarray:
        """Return the sums of some rows, from differences."""
        centers = self._centers_as(points)
        sums = np.zeros(len(rows))
        for scale, here in zip(self.scales, cells, strict=True):
            sums += scale * measure_apart(points, centers, rows, here)
        return sums

    def _centers_as(self, points):
        """Return the centres stored as points are."""
        return self._sparse_centers if sparse.issparse(points) else self.centers

    def _members(self, cells: np.ndarray) -> sparse.csr_array:
        """Return the scales of the runs at the cells of each row."""
        n_runs, n_rows = cells.shape
        return sparse.csr_array(
            (
                np.tile(self.scales, n_rows),
                cells.T.ravel(),
                np.arange(n_rows + 1, dtype=np.int32) * n_runs,
            ),
            shape=(n_rows, self.layout.n_cells),
        )

    def _cells(self, labels: np.ndarray) -> np.ndarray:
        runs = np.arange(len(self.runs))[:, None]
        # Narrow, because sparse products are faster with narrow indices.
        return self.layout.cell(runs, labels[self.runs]).astype(np.int32)


def _products(points, centers: np.ndarray, cells: np.ndarray) -> np.ndarray:
    """Return the product of each row with the centres of its cells."""
    products = points.astype(np.float64) @ centers.T
    return products[np.arange(products.shape[0]), cells]


def fit_ruler(
    runs,
    n_fine: int,
    source: RowSource,
    weights: np.ndarray | None,
    weight: float,
    rng: np.random.Generator,
    threads: Threads,
) -> Ruler:
    """Make a ruler for the fine runs, or for the coarse ones of spherical K-means.

    Parameters
    ----------
    runs : KMeansRuns
    n_fine : int
        The last so many runs are fine.
    source : RowSource
        Rows to measure the units on.
    weights : ndarray of shape (n_samples,) or None
        Rows of weight zero do not count.
    weight : float
        What distances are multiplied by.
    rng : numpy Generator
    threads : Threads

    Returns
    -------
    ruler : Ruler
    """
    coarse, fine = np.split(np.arange(runs.layout.n_runs), [-n_fine])
    measured = coarse if _is_spherical(runs) else fine
    # Where cells are missing, some runs see a part of the features only; the others are
    # measured in their place.
    few = measured[runs.see_all[measured]]
    few = _spread_out(few, _MEASURED_PAIRS // source.shape[0])
    # Equal runs are measured once, and count as often as there are of them.
    _, first, times = np.unique(
        runs.distinct.which[few], return_index=True, return_counts=True
    )
    order = np.argsort(first)
    part = runs.layout.select(few[first[order]])
    centers = runs.centers[part.cells].astype(np.float64, copy=False)
    # The centre of a cell without rows is never the nearest one.
    centers[~np.isfinite(runs.half_norms[part.cells])] = 0
    each = len(measured) / max(len(few), 1)
    ruler = Ruler(part.runs, part.layout, centers, times[order] * each)
    rows = draw_unit_rows(source.shape[0], weights, rng)
    shares = np.ones(len(rows)) if weights is None else weights[rows]
    means, units = _measure_units(ruler, runs, source.take(rows), shares, threads)
    factors = weight * _DISTANCE_WEIGHT * ruler.scales
    scales = np.zeros_like(units)
    np.divide(factors, units, out=scales, where=units > 0)
    typical = np.rint(scales @ means / DISTANCE_STEP) * DISTANCE_STEP
    return replace(ruler, scales=scales, typical=float(typical))


def draw_unit_rows(
    n_samples: int, weights: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    """Return the rows that units are measured on, sorted."""
    if weights is None and n_samples > _UNIT_ROWS:
        return np.sort(rng.choice(n_samples, _UNIT_ROWS, replace=False))
    rows = np.arange(n_samples) if weights is None else np.flatnonzero(weights)
    if len(rows) > _UNIT_ROWS:
        rows = np.sort(rng.choice(rows, _UNIT_ROWS, replace=False))
    return rows


def _spread_out(runs: np.ndarray, n_wanted: int) -> np.ndarray:
    """Return about as many runs as wanted, but not too few, from all over the list."""
    n_wanted = min(max(n_wanted, _MIN_MEASURED), len(runs))
    return runs[np.linspace(0, len(runs) - 1, n_wanted).round().astype(np.intp)]


def _is_spherical(runs) -> bool:
    return runs.space.metric == "cosine"


def _measure_units(
    ruler: Ruler, runs, rows, shares: np.ndarray, threads: Threads
) -> tuple[np.ndarray, np.ndarray]:
    """Return mean and unit of squared distances in each run, 0 if but rounding."""
    labeller = runs.label_blocks(ArrayRows(rows))
    spherical = _is_spherical(runs)
    rounding = _CENTER_ROUNDING[runs.space.dtype.name]

    def work(index: int) -> tuple[np.ndarray, np.ndarray | float]:
        tile, labels = labeller.label_tile(index, labeller.make_workspace())
        squares = ruler.squares(tile, labels)
        squares[squares <= rounding * row_squares(tile.points)] = 0
        here = shares[tile.start : tile.stop]
        return squares @ here, squares**2 @ here if spherical else 0.0

    # Blocks are added up in their order, however many threads there are.
    parts = list(threads.map(work, range(labeller.n_blocks)))
    means = sum(part for part, _ in parts) / shares.sum()
    units = 2 * means
    if spherical:
        sums_of_squares = sum(part for _, part in parts)
        variances = sums_of_squares / shares.sum() - means**2
        units = np.sqrt(np.where(variances > _ROUNDING * means**2, variances, 0))
    # Rounded, so that dense and sparse rows have the same.
    means, units = np.array([means, units], np.float32).astype(np.float64)
    return means, units


def rarity_table(
    book: CodeBook, slot_weights: np.ndarray, n_runs: int, n_fine: int
) -> np.ndarray:
    r"""Return what each slot costs for being rare: :math:`-\log(n_c / n)`.

    A missing label of a K-means run costs the mean of that, so that a row with missing
    cells is neither stranger nor more usual for it.

    Parameters
    ----------
    book : CodeBook
    slot_weights : ndarray of shape (n_slots,)
        Weight of the rows that have each slot.
    n_runs : int
        The first so many partitions are K-means runs; the others cost nothing.
    n_fine : int
        The last so many runs are fine; a rare cell of the others costs twice.

    Returns
    -------
    table : ndarray of shape (n_slots,)
    """
    table = np.zeros(book.n_slots)
    for j in range(n_runs):
        here = slice(book.offsets[j], book.offsets[j] + book.n_labels[j] + 1)
        counts = slot_weights[here]
        known = counts.sum()
        # A label of no row is as rare as that of one more row.
        shares = np.full(len(counts), 1 / (known + 1))
        np.divide(counts, known, out=shares, where=counts > 0)
        weight = 1.0 if j >= n_runs - n_fine else _COARSE_WEIGHT
        table[here] = -weight * np.log(shares)
        # A label that is not known is as rare as labels are on average.
        table[here.stop] = table[here] @ counts / max(known, 1)
    return table
