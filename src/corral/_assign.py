"""Nearest centres for a tile of rows, in many K-means runs at once."""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import NamedTuple

import numpy as np
from scipy import sparse

from corral._threads import ONE_THREAD, Threads
from corral._tiles import Tile, row_norms

# Rows whose two best centres are too close to call are compared again in float64, in
# groups of at most this many values.
_CLOSE_CALL_VALUES = 2**20

# Centres are packed in strips of about this many values, to stay in the cache.
_PACKED_VALUES = 2**17

# Where more than this share of the labels of a tile is in doubt, the whole tile is
# done again in float64, which costs about twice a product in float32.
_MANY_DOUBTS = 0.02

# This percentage of the runs shares one part of the doubts: some rows are in doubt
# without need, but a subtraction from all scores is saved.
_COMMON_DOUBT = 95

_NONE = np.zeros(0, dtype=np.intp)


class Group(NamedTuple):
    """Runs with the same number of clusters, side by side in a :class:`Layout`."""

    n_clusters: int
    n_runs: int
    runs: slice
    cells: slice
    rivals: slice

    @property
    def shape(self) -> tuple[int, int]:
        """Rivals of a run, and runs."""
        return self.n_clusters - 1, self.n_runs


class Layout:
    """Where the cells of many runs lie in one array.

    Runs with the same number of clusters form a group. The cells of a group lie
    together, first the cells 0 of its runs, then the cells 1, and so on, so that a
    step for all runs of a group is one operation on an array of shape
    (n_clusters, n_runs, n_rows), and no cell is padding.

    One cell of each run may serve as the reference to which the others are compared.
    These, the rivals, lie in the same order, with one cell less for each run.

    Parameters
    ----------
    n_clusters : ndarray of shape (n_runs,)
        Sorted.

    Attributes
    ----------
    n_runs, n_cells, n_rivals : int
    run_of_cell, label_of_cell : ndarray of shape (n_cells,)
    run_of_rival : ndarray of shape (n_rivals,)
    label_dtype : numpy dtype
        Unsigned, wide enough for the sums of labels in :func:`assign_sweep`, and so
        for one value that is no label.
    """

    def __init__(self, n_clusters: np.ndarray) -> None:
        self.n_clusters = n_clusters
        self.n_runs = len(n_clusters)
        self.n_cells = int(n_clusters.sum())
        self.n_rivals = self.n_cells - self.n_runs
        self.label_dtype = np.min_scalar_type(
            3 * int(n_clusters.max(initial=0)) ** 2 // 2
        )
        is_first = np.ones(self.n_runs, dtype=bool)
        np.not_equal(n_clusters[1:], n_clusters[:-1], out=is_first[1:])
        first_runs = np.flatnonzero(is_first)
        sizes = n_clusters[first_runs]
        n_runs_of_group = np.bincount(np.cumsum(is_first) - 1)
        first_cells = np.cumsum(n_runs_of_group * sizes) - n_runs_of_group * sizes
        self.groups = [
            Group(
                size,
                n_runs,
                slice(run, run + n_runs),
                slice(cell, cell + size * n_runs),
                slice(cell - run, cell - run + (size - 1) * n_runs),
            )
            for size, run, n_runs, cell in zip(
                sizes.tolist(),
                first_runs.tolist(),
                n_runs_of_group.tolist(),
                first_cells.tolist(),
                strict=True,
            )
        ]
        # Cell k of run j is number first[j] + k * step[j].
        self._step = np.repeat(n_runs_of_group, n_runs_of_group)
        self._first = np.arange(self.n_runs) + np.repeat(
            first_cells - first_runs, n_runs_of_group
        )
        runs = np.repeat(np.arange(self.n_runs), n_clusters)
        labels = np.arange(self.n_cells) - np.repeat(
            np.cumsum(n_clusters) - n_clusters, n_clusters
        )
        cells = self.cell(runs, labels)
        self.run_of_cell = np.empty(self.n_cells, dtype=np.intp)
        self.label_of_cell = np.empty(self.n_cells, dtype=np.intp)
        self.run_of_cell[cells] = runs
        self.label_of_cell[cells] = labels
        is_rival = self.label_of_cell > 0
        self.run_of_rival = self.run_of_cell[is_rival]
        self._number_of_rival = self.label_of_cell[is_rival] - 1

    def cell(self, run, label):
        """Return the cell of a label in a run; both may be arrays."""
        return self._first[run] + self._step[run] * label

    def rivals(self, references: np.ndarray) -> np.ndarray:
        """Return the cells of all labels but one of each run.

        Parameters
        ----------
        references : ndarray of shape (n_runs,)
            The labels to leave out.

        Returns
        -------
        cells : ndarray of shape (n_rivals,)
        """
        skipped = self._number_of_rival >= references[self.run_of_rival]
        return self.cell(self.run_of_rival, self._number_of_rival + skipped)

    def select(self, runs: np.ndarray) -> "Selection":
        """Return the layout of some of the runs.

        Parameters
        ----------
        runs : ndarray of sorted indices
        """
        layout = Layout(self.n_clusters[runs])
        cells = self.cell(runs[layout.run_of_cell], layout.label_of_cell)
        return Selection(runs, layout, cells)


class Selection(NamedTuple):
    """Some runs of a larger layout: which, their own layout, and their cells there."""

    runs: np.ndarray
    layout: Layout
    cells: np.ndarray


@dataclass(frozen=True)
class CellCenters:
    """The centre of each cell.

    Attributes
    ----------
    layout : Layout
    centers : ndarray of shape (n_places, n_features)
        In the precision of the points.
    places : ndarray of shape (n_cells,)
        Where in ``centers`` the centre of each cell is.
    half_norms : ndarray of shape (n_cells,)
        ``|c|^2 / 2`` in float64, zero for cosine, infinite for a cell not in use.
    n_terms : int
        How many products are added up in a score at most: the number of features or
        of a sparse row's values.
    """

    layout: Layout
    centers: np.ndarray
    places: np.ndarray
    half_norms: np.ndarray
    n_terms: int

    @cached_property
    def is_spherical(self) -> bool:
        """Whether nearest means largest cosine."""
        return _are_spherical(self.half_norms)


@dataclass(frozen=True)
class PackedCenters(CellCenters):
    """Centres of many runs in the form that one matrix product needs.

    A row is nearest to the centre c with the largest score ``x.c - |c|^2 / 2`` (a
    point's own norm never matters; for cosine the second term is left out). Only
    differences of scores count, so each run has a reference: its centre r next to the
    origin. The product gives each other centre's score less the reference's,
    ``x.(c - r) - b`` with ``b = (|c|^2 - |r|^2) / 2``, plus a bound of its rounding
    error, ``gamma * (|x| |c - r| + |b|)``. The reference itself has the score zero and
    needs no product.

    Attributes
    ----------
    references : ndarray of shape (n_runs,)
        Labels.
    rivals : ndarray of shape (n_rivals,)
        The cells of all other labels.
    matrix : ndarray of shape (n_rivals, n_features + 2)
        Centres, biases and error bounds in the precision of the product. For sparse
        rows of all cells, not less the reference's, and transposed: there, a
        subtraction of the scores costs less than one of the centres. Only of the
        stale cells if there is a cache.
    is_sparse : bool
    cache : ScoreCache or None
    """

    references: np.ndarray
    rivals: np.ndarray
    matrix: np.ndarray
    is_sparse: bool
    cache: "ScoreCache | None" = None

    @classmethod
    def pack(
        cls,
        layout: Layout,
        centers: np.ndarray,
        places: np.ndarray,
        half_norms: np.ndarray,
        *,
        n_terms: int,
        is_sparse: bool,
        dtype=np.float32,
        cache: "ScoreCache | None" = None,
        threads: Threads = ONE_THREAD,
    ) -> "PackedCenters":
        """Pack centres; the parameters are the attributes of the same names."""
        references = _nearest_to_origin(layout, half_norms)
        rivals = layout.rivals(references)
        gamma = rounding_bound(n_terms, dtype)
        if is_sparse:
            to_pack = slice(None) if cache is None else cache.is_stale[places]
            shape = (centers.shape[1] + 2, len(places[to_pack]))
            matrix = np.empty(shape, dtype) if cache is None else cache.lend(shape)
            _pack_centers(
                matrix, centers, places[to_pack], half_norms[to_pack], gamma, threads
            )
        else:
            against = layout.cell(layout.run_of_rival, references[layout.run_of_rival])
            matrix = _pack_differences(
                centers,
                _Pairs(places[rivals], places[against]),
                _Pairs(half_norms[rivals], half_norms[against]),
                gamma,
                dtype,
            )
        return cls(
            layout=layout,
            centers=centers,
            places=places,
            half_norms=half_norms,
            references=references,
            rivals=rivals,
            matrix=matrix,
            n_terms=n_terms,
            is_sparse=is_sparse,
            cache=cache,
        )

    def score(self, tile: Tile, out: np.ndarray) -> None:
        """Write the scores of a tile's rows, of shape (n_rivals, n_rows)."""
        augmented = tile.augment(self.matrix.dtype)
        with np.errstate(invalid="ignore", over="ignore"):
            if not self.is_sparse:
                np.matmul(self.matrix, augmented.T, out=out)
                return
            scores = (augmented @ self.matrix).T
            if self.cache is not None:
                scores = self.cache.renew(scores, self.places, tile)
            against = self.reference_cells[self.layout.run_of_rival]
            np.subtract(scores[self.rivals], scores[against], out=out)

    @cached_property
    def reference_cells(self) -> np.ndarray:
        """The cells of the references, of shape (n_runs,)."""
        return self.layout.cell(np.arange(self.layout.n_runs), self.references)

    @cached_property
    def run_doubts(self) -> "_RunDoubts":
        """The runs' parts of the doubts; see :func:`_subtract_doubts`."""
        squares = 2 * self.half_norms[self.reference_cells]
        if self.is_spherical:
            squares = np.ones_like(squares)
        doubts = 24 * rounding_bound(self.n_terms, self.matrix.dtype) * squares
        common = np.partition(doubts, _COMMON_DOUBT * len(doubts) // 100)
        common = common[_COMMON_DOUBT * len(doubts) // 100]
        large_runs = np.flatnonzero(doubts > common)
        large = (doubts[large_runs] - common).astype(self.matrix.dtype)
        return _RunDoubts(common, large_runs, large)

    @cached_property
    def marks(self) -> tuple[np.ndarray, np.ndarray]:
        """What a candidate adds to a row's sum: each rival, and each reference.

        With K clusters, label k adds K + k; see :func:`_assign_where_certain`.
        """
        layout = self.layout
        n_clusters = layout.n_clusters[layout.run_of_rival]
        of_rivals = n_clusters + layout.label_of_cell[self.rivals]
        of_references = layout.n_clusters + self.references
        dtype = layout.label_dtype
        return of_rivals.astype(dtype)[:, None], of_references.astype(dtype)[:, None]

    @cached_property
    def wide(self) -> "PackedCenters":
        """The same centres, packed for products in float64."""
        return self.pack(
            self.layout,
            self.centers,
            self.places,
            self.half_norms,
            n_terms=self.n_terms,
            is_sparse=self.is_sparse,
            dtype=np.float64,
        )


class _RunDoubts(NamedTuple):
    """A part that holds for all runs, and what a few runs need on top of it."""

    common: float
    large_runs: np.ndarray
    large: np.ndarray


@lru_cache
def rounding_bound(n_terms: int, dtype) -> float:
    """Bound the error of a score, relative to |x||c| + |c|^2 / 2.

    The error of a sum of n products is at most n u, and with overwhelming
    probability at most 8 sqrt(n) u (Higham and Mary 2019,
    https://doi.org/10.1137/18M1226312), where u is half the machine epsilon; the rest
    covers the rounding of point and centre, the bias, the bound itself and the
    comparison.
    """
    n_terms += 2
    return (min(n_terms, 8 * np.sqrt(n_terms)) + 8) * float(np.finfo(dtype).eps) / 2


def half_squared_norms(
    centers: np.ndarray, in_use: np.ndarray, *, spherical: bool
) -> np.ndarray:
    """Return what is taken from a product to give the score; see PackedCenters."""
    if spherical:
        return np.where(in_use, 0.0, np.inf)
    squares = np.einsum("ij,ij->i", centers, centers, dtype=np.float64)
    return np.where(in_use, squares / 2, np.inf)


class _Pairs(NamedTuple):
    """What belongs to each rival, and to the reference of its run."""

    rivals: np.ndarray
    references: np.ndarray


def _pack_differences(
    centers: np.ndarray, places: _Pairs, half_norms: _Pairs, gamma: float, dtype
) -> np.ndarray:
    """Return the matrix of :class:`PackedCenters` for dense rows."""
    n_features = centers.shape[1]
    precision = np.result_type(centers.dtype, dtype)
    in_use = np.isfinite(half_norms.rivals)
    of_rivals = np.where(in_use, half_norms.rivals, 0)
    biases = of_rivals - half_norms.references
    # The norms are rounded too, which counts where their difference is small.
    errors = gamma * np.abs(biases)
    errors += rounding_bound(n_features, np.float64) * (
        of_rivals + half_norms.references
    )
    matrix = np.empty((len(in_use), n_features + 2), dtype=dtype)
    # A few centres at a time, because copies of all may be large.
    step = max(_PACKED_VALUES // n_features, 1)
    with np.errstate(over="ignore", invalid="ignore"):
        for start in range(0, len(in_use), step):
            strip = slice(start, start + step)
            differences = np.subtract(
                centers[places.rivals[strip]],
                centers[places.references[strip]],
                dtype=precision,
            )
            matrix[strip, :n_features] = differences
            matrix[strip, n_features + 1] = gamma * row_norms(differences)
        matrix[:, n_features] = errors - biases
    _mark_unused(matrix, ~in_use)
    return matrix


def _pack_centers(
    matrix: np.ndarray,
    centers: np.ndarray,
    places: np.ndarray,
    half_norms: np.ndarray,
    gamma: float,
    threads: Threads,
) -> None:
    """Fill the matrix of :class:`PackedCenters` for sparse rows."""
    n_features = centers.shape[1]
    step = max(_PACKED_VALUES // max(len(places), 1), 1)

    def work(_: int, share: range) -> None:
        for index in share:
            strip = slice(index * step, (index + 1) * step)
            with np.errstate(over="ignore"):
                matrix[:n_features][strip] = centers[:, strip][places].T

    threads.share(-(-n_features // step), work)
    norms = 1.0 if _are_spherical(half_norms) else np.sqrt(2 * half_norms)
    with np.errstate(over="ignore", invalid="ignore"):
        matrix[n_features] = -(1 - gamma) * half_norms
        matrix[n_features + 1] = gamma * norms
    _mark_unused(matrix.T, np.isinf(half_norms))


def _mark_unused(matrix: np.ndarray, unused: np.ndarray) -> None:
    """Give centres that are not in use a score below all others."""
    if unused.any():
        matrix[unused] = 0
        matrix[unused, -2] = -np.finfo(matrix.dtype).max / 8


class ScoreCache:
    """Scores of all rows for all cells, from one iteration to the next.

    A centre whose cell neither lost nor gained a row has not moved, so its scores
    still hold: towards the end, those are most of them. Worth its memory where a
    product costs much more than a copy, which is so for sparse rows.

    Parameters
    ----------
    n_cells, n_rows, n_features : int

    Attributes
    ----------
    is_stale : ndarray of shape (n_cells,), bool
        Cells whose centres have moved since their scores were computed.
    """

    def __init__(self, n_cells: int, n_rows: int, n_features: int) -> None:
        self._scores = np.empty((n_cells, n_rows), dtype=np.float32)
        self._matrix = np.empty(n_cells * (n_features + 2), dtype=np.float32)
        self.is_stale = np.ones(n_cells, dtype=bool)

    def lend(self, shape: tuple[int, int]) -> np.ndarray:
        """Return room for a matrix of packed centres, until it is lent again.

        Fresh memory for each would cost more time than what is written there.
        """
        return self._matrix[: shape[0] * shape[1]].reshape(shape)

    def renew(self, fresh: np.ndarray, cells: np.ndarray, tile: Tile) -> np.ndarray:
        """Put in the scores of the stale cells and return those of all cells.

        Parameters
        ----------
        fresh : ndarray of shape (n_stale, n_rows)
        cells : ndarray of shape (n_cells,)
        tile : Tile

        Returns
        -------
        scores : ndarray of shape (n_cells, n_rows)
        """
        here = self._scores[:, tile.start : tile.stop]
        here[cells[self.is_stale[cells]]] = fresh
        return here[cells]


def _are_spherical(half_norms: np.ndarray) -> bool:
    """Tell whether centres count as of unit length, so that no term is left out."""
    return not half_norms[np.isfinite(half_norms)].any()


def _nearest_to_origin(layout: Layout, half_norms: np.ndarray) -> np.ndarray:
    """Return for each run the label of the smallest centre that is in use."""
    labels = np.empty(layout.n_runs, dtype=np.intp)
    for group in layout.groups:
        of_group = half_norms[group.cells].reshape(group.n_clusters, -1)
        of_group.argmin(axis=0, out=labels[group.runs])
    return labels


class AssignWorkspace:
    """Buffers of one thread for :func:`assign_sweep`, made once and reused.

    Parameters
    ----------
    layout : Layout
        The largest one that will be used.
    tile_rows : int
        Rows of the largest tile.
    dtype : numpy dtype
        Of the scores.
    """

    def __init__(self, layout: Layout, tile_rows: int, dtype=np.float32) -> None:
        self._made_for = (layout, tile_rows)
        self._scores = np.empty(layout.n_rivals * tile_rows, dtype)
        self._is_candidate = np.empty(layout.n_rivals * tile_rows, bool)
        self._marks = np.empty(layout.n_rivals * tile_rows, layout.label_dtype)
        self._best = np.empty(layout.n_runs * tile_rows, dtype)
        self._is_reference = np.empty(layout.n_runs * tile_rows, bool)
        self._labels = np.empty(layout.n_runs * tile_rows, layout.label_dtype)
        self._shaped_for: tuple[Layout, int] | None = None

    @cached_property
    def wide(self) -> "AssignWorkspace":
        """A workspace of the same size for scores in float64."""
        return AssignWorkspace(*self._made_for, dtype=np.float64)

    def shape_for(self, layout: Layout, n_rows: int) -> None:
        """Cut the buffers to this layout and number of rows."""
        if self._shaped_for == (layout, n_rows):
            return
        n_scores, n_labels = layout.n_rivals * n_rows, layout.n_runs * n_rows
        self.scores = self._scores[:n_scores].reshape(-1, n_rows)
        self.is_candidate = self._is_candidate[:n_scores].reshape(-1, n_rows)
        self.marks = self._marks[:n_scores].reshape(-1, n_rows)
        self.best = self._best[:n_labels].reshape(-1, n_rows)
        self.is_reference = self._is_reference[:n_labels].reshape(-1, n_rows)
        self.labels = self._labels[:n_labels].reshape(-1, n_rows)
        self.n_clusters = layout.n_clusters.astype(self.labels.dtype)[:, None]
        self.groups = [
            _GroupViews(
                scores=self.scores[group.rivals].reshape(*group.shape, n_rows),
                is_candidate=self.is_candidate[group.rivals].reshape(
                    *group.shape, n_rows
                ),
                marks=self.marks[group.rivals].reshape(*group.shape, n_rows),
                best=self.best[group.runs],
                labels=self.labels[group.runs],
            )
            for group in layout.groups
        ]
        self._shaped_for = (layout, n_rows)


class _GroupViews(NamedTuple):
    """The part of a workspace that belongs to one group of runs."""

    scores: np.ndarray
    is_candidate: np.ndarray
    marks: np.ndarray
    best: np.ndarray
    labels: np.ndarray


def assign_sweep(
    tile: Tile, packed: PackedCenters, workspace: AssignWorkspace
) -> np.ndarray:
    """Find each row's nearest centre in every run.

    One product in float32 gives the scores of the tile for all centres; the rest are
    whole-array operations, because looking for the maximum along a short axis is many
    times slower. A row has its label at once if just one centre's score lies above the
    best score less twice the rounding error. The few other rows are settled in
    float64. So a label does not depend on the rows beside it, on the size of the tile
    or on how BLAS adds: it is the label of exact arithmetic, and the lower label where
    two centres are equally near to the precision of float64.

    Parameters
    ----------
    tile : Tile
    packed : PackedCenters
    workspace : AssignWorkspace

    Returns
    -------
    labels : ndarray of shape (n_runs, n_rows), unsigned
        Valid until the workspace is used again.
    """
    doubtful = _assign_where_certain(tile, packed, workspace)
    if len(doubtful) > _MANY_DOUBTS * workspace.labels.size:
        packed, workspace = packed.wide, workspace.wide
        doubtful = _assign_where_certain(tile, packed, workspace)
    labels = workspace.labels
    if len(doubtful):
        n_rows = labels.shape[1]
        runs = doubtful // n_rows
        rows = doubtful - runs * n_rows
        labels[runs, rows] = settle_close_calls(tile, packed, runs, rows)
    return labels


def _assign_where_certain(
    tile: Tile, packed: PackedCenters, workspace: AssignWorkspace
) -> np.ndarray:
    """Fill the workspace; return where in its flat labels there is no label yet.

    The candidates of a row are marked by a sum: with K clusters, label k counts K + k.
    One candidate gives a sum from K to 2K - 1, and two or more give at least 2K. One
    sum takes the place of a count and a maximum.
    """
    workspace.shape_for(packed.layout, tile.stop - tile.start)
    best, labels = workspace.best, workspace.labels
    packed.score(tile, workspace.scores)
    for group in workspace.groups:
        np.maximum.reduce(group.scores, axis=0, out=group.best, initial=0)
    with np.errstate(invalid="ignore", over="ignore"):
        _subtract_doubts(best, tile.norms, packed)
    rival_marks, reference_marks = packed.marks
    for group in workspace.groups:
        np.greater(group.scores, group.best, out=group.is_candidate)
    np.multiply(workspace.is_candidate.view(np.uint8), rival_marks, out=workspace.marks)
    for group in workspace.groups:
        np.add.reduce(group.marks, axis=0, dtype=group.marks.dtype, out=group.labels)
    np.less(best, 0, out=workspace.is_reference)
    labels += workspace.is_reference.view(np.uint8) * reference_marks
    labels -= workspace.n_clusters
    # Unsigned: no candidate at all gives a large number as well.
    is_doubtful = labels >= workspace.n_clusters
    return np.flatnonzero(is_doubtful) if is_doubtful.any() else _NONE


def _subtract_doubts(
    best: np.ndarray, norms: np.ndarray, packed: PackedCenters
) -> None:
    """Take from the best scores twice a bound of their rounding errors.

    With x the row's norm and r that of the run's reference, the best centre c is no
    farther from the row than the reference, so ``|c - r| <= 2 (x + r)`` and its error
    is at most ``4 gamma (x + r)^2``, and ``gamma (3 x^2 + 2 r^2)`` for the rounding of
    the norms. Twice this is no more than ``24 gamma x^2 + 24 gamma r^2``: a part of the
    row and a part of the run. The scores of sparse rows, which are differences of
    rounded scores, obey the same bound. A row whose part overflows has no candidate.

    Parameters
    ----------
    best : ndarray of shape (n_runs, n_rows)
    norms : ndarray of shape (n_rows,)
    packed : PackedCenters
    """
    doubts = packed.run_doubts
    of_rows = 24 * rounding_bound(packed.n_terms, best.dtype) * norms**2
    of_rows += doubts.common
    of_rows = of_rows.astype(best.dtype)
    of_rows[np.isinf(of_rows)] = np.nan
    best -= of_rows
    if len(doubts.large_runs):
        best[doubts.large_runs] -= doubts.large[:, None]


def settle_close_calls(
    tile: Tile, located: CellCenters, runs: np.ndarray, rows: np.ndarray
) -> np.ndarray:
    """Return the labels of pairs of a run and a row, computed in float64."""
    layout = located.layout
    labels = np.empty(len(runs), layout.label_dtype)
    candidates = np.arange(layout.n_clusters[runs].max())
    step = max(_CLOSE_CALL_VALUES // (len(candidates) * max(located.n_terms, 1)), 1)
    gamma = rounding_bound(tile.points.shape[1], np.float64)
    for start in range(0, len(runs), step):
        part = slice(start, start + step)
        exists = candidates < layout.n_clusters[runs[part], None]
        cells = layout.cell(runs[part, None], np.where(exists, candidates, 0))
        products = _products_in_float64(tile.points[rows[part]], located, cells)
        scores = np.where(exists, products - located.half_norms[cells], -np.inf)
        # Equal up to rounding is equal: rows on a border, as whole numbers often are,
        # get the same label however their products were added up.
        halves = np.where(exists, located.half_norms[cells], 0)
        sizes = 1.0 if located.is_spherical else np.sqrt(2 * halves)
        with np.errstate(invalid="ignore"):
            lengths = tile.norms[rows[part], None] * sizes
        errors = gamma * np.where(np.isfinite(lengths + halves), lengths + halves, 0)
        best = scores.argmax(axis=1)[:, None]
        least = np.take_along_axis(scores - errors, best, axis=1)
        labels[part] = (scores + errors >= least).argmax(axis=1)
    return labels


def distances_in_float64(
    tile: Tile,
    located: CellCenters,
    labels: np.ndarray,
    features: np.ndarray | None = None,
) -> np.ndarray:
    """Return how far each row is from its centre, in each run.

    Half the squared distance, or one less the cosine, to nine digits: the same for a
    row in any tile, and for rows that are equally far but for rounding.

    Parameters
    ----------
    tile : Tile
    located : CellCenters
    labels : ndarray of shape (n_runs, n_rows)
    features : ndarray of shape (n_runs, n_features), bool, or None
        The features that each run sees.

    Returns
    -------
    distances : ndarray of shape (n_runs, n_rows)
    """
    distances = np.empty(labels.shape)
    squares = tile.norms**2 / 2
    for run, row_labels in enumerate(labels):
        if features is not None:
            squares = row_norms(tile.points[:, features[run]]) ** 2 / 2
        cells = located.layout.cell(run, row_labels.astype(np.intp))[:, None]
        products = _products_in_float64(tile.points, located, cells)
        halves = located.half_norms[cells]
        distances[run] = (halves - products)[:, 0] + squares
    digits, exponents = np.frexp(distances)
    return np.ldexp(np.rint(digits * 2**30), exponents - 30)


def _products_in_float64(points, located: CellCenters, cells: np.ndarray) -> np.ndarray:
    """Return the dot product of each point with the centres of its row of cells.

    Each is added up in one order, whatever the product of the tile did.

    Parameters
    ----------
    points : ndarray or csr_array of shape (n_points, n_features)
    located : CellCenters
    cells : ndarray of shape (n_points, n_candidates)
    """
    if not sparse.issparse(points):
        centers = located.centers[located.places[cells]].astype(np.float64)
        return np.einsum("pd,pkd->pk", points.astype(np.float64), centers)
    owner = np.repeat(np.arange(points.shape[0]), np.diff(points.indptr))
    products = np.empty(cells.shape)
    for k in range(cells.shape[1]):
        centers = located.centers[located.places[cells[owner, k]], points.indices]
        terms = points.data.astype(np.float64) * centers
        products[:, k] = np.bincount(owner, terms, minlength=len(cells))
    return products
