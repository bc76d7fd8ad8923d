"""Basic partitions by many K-means runs: how k, features and starts are drawn."""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.cluster import kmeans_plusplus
from sklearn.utils.extmath import randomized_svd

from corral._assign import (
    AssignWorkspace,
    Layout,
    PackedCenters,
    Selection,
    assign_sweep,
)
from corral._blocks import ArrayRows, DenseRows, RowSource
from corral._lloyd import LloydRuns
from corral._random import draw_seed
from corral._threads import Threads
from corral._tiles import (
    MAX_LLOYD_TILE_ROWS,
    MAX_TILE_ROWS,
    RowSpace,
    Tiles,
)

# Lloyd's algorithm runs on a small part of the rows first and then on ever larger
# ones, starting from the centres of the part before. Most iterations are done where
# they are cheap; the last ones see all rows. Growing by 8 was the fastest of the
# ladders tried on shuttle and kddcup (2 and 4 times faster than all rows at once), at
# the same inertia. Below these numbers of rows, a part costs more than it saves.
_LADDER_GROWTH = 8
_LADDER_MIN_ROWS = 2048

# Wide rows are first reduced to this many directions. Lloyd's algorithm is cheap there
# and ends so close to an optimum in all features that few iterations are left: on k1b
# (21,839 words) 2 instead of 20 for most runs, and the mean inertia is 2 % lower.
_N_DIRECTIONS = 64
_MIN_WIDTH = 8 * _N_DIRECTIONS

# The directions are found from this many rows, and rows are turned to them in blocks of
# this many values: both are copied to float64, which may be large.
_DIRECTION_ROWS = 2048
_TURNED_VALUES = 2**21

# Sparse rows have long centres. Runs are done in groups whose sums need no more than
# this many values.
_MAX_GROUP_VALUES = 2**24


@dataclass(frozen=True)
class KMeansSettings:
    """How the K-means runs are drawn and run; see the parameters of COR."""

    n_runs: int
    k_range: tuple[int, int]
    feature_share: float | None
    metric: str
    init: str
    max_iter: int
    tol: float
    max_samples: int | None


class DistinctRuns(NamedTuple):
    """Runs of which no two have the same centres, in the place of all runs.

    K-means often ends in the same centres from different starts (of 100 runs on
    kddcup, about 50 differ). Sums are exact and labels have an order of their own, so
    such runs are equal to the last bit, and need to be done only once.

    Attributes
    ----------
    selection : Selection
        The first run of each kind.
    which : ndarray of shape (n_runs,)
        The place in the selection of each run's equal.
    cells : ndarray of shape (n_cells,)
        The same for each cell.
    """

    selection: Selection
    which: np.ndarray
    cells: np.ndarray

    @classmethod
    def find(
        cls,
        layout: Layout,
        centers: np.ndarray,
        in_use: np.ndarray,
        features: np.ndarray | None = None,
    ) -> "DistinctRuns":
        """Compare the centres of runs.

        Parameters
        ----------
        layout : Layout
        centers : ndarray of shape (n_cells, n_features)
        in_use : ndarray of shape (n_cells,), bool
        features : ndarray of shape (n_runs, n_features), bool, or None
            The features that each run sees, if that counts as well.
        """
        place_of_kind: dict[tuple, int] = {}
        which = np.empty(layout.n_runs, dtype=np.intp)
        for run, k in enumerate(layout.n_clusters):
            cells = layout.cell(run, np.arange(k))
            seen = b"" if features is None else features[run].tobytes()
            kind = (centers[cells].tobytes(), in_use[cells].tobytes(), seen)
            which[run] = place_of_kind.setdefault(kind, len(place_of_kind))
        _, first_runs = np.unique(which, return_index=True)
        selection = layout.select(first_runs)
        cells = selection.layout.cell(which[layout.run_of_cell], layout.label_of_cell)
        return cls(selection, which, cells)

    @property
    def are_all(self) -> bool:
        """Whether no two runs are equal."""
        return len(self.selection.runs) == len(self.which)


@dataclass(frozen=True)
class KMeansRuns:
    """Fitted K-means runs: they label rows, each run in its own way.

    Attributes
    ----------
    space : RowSpace
    layout : Layout
    centers : ndarray of shape (n_cells, n_features)
        In the row space; run j's centre k is row ``layout.cell(j, k)``.
    half_norms : ndarray of shape (n_cells,)
        See :class:`~corral._assign.PackedCenters`.
    """

    space: RowSpace
    layout: Layout
    centers: np.ndarray
    half_norms: np.ndarray

    @property
    def n_labels(self) -> np.ndarray:
        """Number of labels of each run, of shape (n_runs,)."""
        return self.layout.n_clusters

    @cached_property
    def distinct(self) -> DistinctRuns:
        """The runs that differ."""
        return DistinctRuns.find(
            self.layout, self.centers, np.isfinite(self.half_norms)
        )

    def label_blocks(self, source: RowSource) -> "KMeansLabeller":
        """Make ready to label the rows of a source."""
        if source.is_sparse and self.space.shift is not None:
            # The runs were learned from dense rows, which were shifted.
            source = DenseRows(source)
        return KMeansLabeller(self, source)


class KMeansLabeller:
    """Labels of a source's rows in all runs, block by block.

    Parameters
    ----------
    runs : KMeansRuns
    source : RowSource
    """

    def __init__(self, runs: KMeansRuns, source: RowSource) -> None:
        self._distinct = runs.distinct
        part = self._distinct.selection
        self._tiles = Tiles(source, runs.space, part.layout.n_cells, MAX_TILE_ROWS)
        self._packed = PackedCenters.pack(
            part.layout,
            runs.centers,
            part.cells,
            runs.half_norms[part.cells],
            n_terms=source.max_row_values,
            is_sparse=source.is_sparse,
        )
        self.n_rows = self._tiles.n_rows
        self.block_rows = self._tiles.tile_rows

    def make_workspace(self) -> AssignWorkspace:
        """Return buffers for one thread."""
        n_rows = min(self.block_rows, self._tiles.n_rows)
        return AssignWorkspace(self._packed.layout, n_rows)

    def label(self, index: int, workspace: AssignWorkspace) -> np.ndarray:
        """Return the labels of block ``index``, of shape (n_runs, n_rows)."""
        labels = assign_sweep(self._tiles[index], self._packed, workspace)
        return labels if self._distinct.are_all else labels[self._distinct.which]


def fit_kmeans_runs(
    source: RowSource,
    weights: np.ndarray | None,
    settings: KMeansSettings,
    rng: np.random.Generator,
    threads: Threads,
) -> KMeansRuns:
    """Run K-means many times, on a sample of the rows or on all of them.

    Parameters
    ----------
    source : RowSource
    weights : ndarray of shape (n_samples,) or None
        Rows of weight zero are not learned from.
    settings : KMeansSettings
    rng : numpy Generator
    threads : Threads

    Returns
    -------
    runs : KMeansRuns
    """
    order = _draw_order(source.shape[0], weights, settings.max_samples, rng)
    # Sorted, because runs with the same number of clusters share operations.
    n_clusters = np.sort(_draw_n_clusters(settings, len(order), rng))
    features = _draw_features(settings, source.shape[1], rng)
    ladder = _make_ladder(source, weights, order, n_clusters.max())
    first = ladder[0]
    space = RowSpace.fit(settings.metric, first.source.read(0, first.source.shape[0]))

    layout = Layout(n_clusters)
    centers = np.empty((layout.n_cells, source.shape[1]), dtype=space.dtype)
    half_norms = np.empty(layout.n_cells)
    rows = _draw_start_rows(first, space, layout, features, settings, rng)
    labels = None
    if features is None and min(first.source.shape) >= _MIN_WIDTH:
        labels = _label_in_few_directions(first, space, layout, rows, settings, threads)
    groups = _group_runs(layout, source)
    for runs in groups:
        part = layout.select(runs)
        seen = None if features is None else features[runs]
        if labels is None:
            start = _Start(_take_points(first, space, rows[part.cells]))
        else:
            start = _Start(None, labels[runs])
        for step in ladder:
            found = step.climb(space, part.layout, start, seen, settings, threads)
            start = _Start(found.centers)
        if len(groups) == 1:
            return KMeansRuns(space, layout, found.centers, found.half_norms)
        centers[part.cells] = found.centers
        half_norms[part.cells] = found.half_norms
    return KMeansRuns(space, layout, centers, half_norms)


class _Start(NamedTuple):
    """Where runs start: from centres, or from labels of all rows."""

    centers: np.ndarray | None
    labels: np.ndarray | None = None


class _Found(NamedTuple):
    """Where runs ended."""

    centers: np.ndarray
    half_norms: np.ndarray


class _LadderStep(NamedTuple):
    """A part of the rows, with their weights."""

    source: RowSource
    weights: np.ndarray | None

    def climb(
        self,
        space: RowSpace,
        layout: Layout,
        start: _Start,
        features: np.ndarray | None,
        settings: KMeansSettings,
        threads: Threads,
    ) -> _Found:
        """Run Lloyd's algorithm on these rows."""
        if start.centers is None:
            lloyd = self._run(space, layout, start, features, settings, threads)
            return _Found(lloyd.centers, lloyd.half_norms)
        in_use = np.ones(layout.n_cells, dtype=bool)
        distinct = DistinctRuns.find(layout, start.centers, in_use, features)
        part = distinct.selection
        if not distinct.are_all:
            start = _Start(start.centers[part.cells])
            features = None if features is None else features[part.runs]
        lloyd = self._run(space, part.layout, start, features, settings, threads)
        if distinct.are_all:
            return _Found(lloyd.centers, lloyd.half_norms)
        return _Found(lloyd.centers[distinct.cells], lloyd.half_norms[distinct.cells])

    def label(
        self,
        space: RowSpace,
        layout: Layout,
        start: _Start,
        settings: KMeansSettings,
        threads: Threads,
    ) -> np.ndarray:
        """Run Lloyd's algorithm; return the labels, of shape (n_runs, n_rows)."""
        return self._run(space, layout, start, None, settings, threads).labels

    def _run(
        self,
        space: RowSpace,
        layout: Layout,
        start: _Start,
        features: np.ndarray | None,
        settings: KMeansSettings,
        threads: Threads,
    ) -> LloydRuns:
        tiles = Tiles(self.source, space, layout.n_cells, MAX_LLOYD_TILE_ROWS).keep()
        lloyd = LloydRuns(
            tiles,
            self.weights,
            layout,
            start.centers,
            features=features,
            spherical=settings.metric == "cosine",
        )
        if start.labels is not None:
            lloyd.start_from(start.labels, threads)
        tolerances = settings.tol * _mean_variances(tiles, features, layout.n_runs)
        lloyd.run(settings.max_iter, tolerances, threads)
        lloyd.sort_centers()
        return lloyd


def _take_points(step: _LadderStep, space: RowSpace, rows: np.ndarray) -> np.ndarray:
    """Return rows of a step as points of the space, dense."""
    distinct, place = np.unique(rows, return_inverse=True)
    points = space.place(step.source.take(distinct))
    points = points.toarray() if sparse.issparse(points) else points
    return points[place]


def _label_in_few_directions(
    step: _LadderStep,
    space: RowSpace,
    layout: Layout,
    rows: np.ndarray,
    settings: KMeansSettings,
    threads: Threads,
) -> np.ndarray:
    """Run Lloyd's algorithm in the principal directions of wide rows.

    Returns
    -------
    labels : ndarray of shape (n_runs, n_rows)
    """
    points = _turn_to_directions(step.source, space)
    if settings.metric == "cosine":
        few = RowSpace("euclidean", None, 1.0, points.dtype)
    else:
        few = RowSpace.fit("euclidean", points)
    reduced = _LadderStep(ArrayRows(points), step.weights)
    start = _Start(few.place(points[rows]))
    return reduced.label(few, layout, start, settings, threads)


def _turn_to_directions(source: RowSource, space: RowSpace) -> np.ndarray:
    """Return the rows in their principal directions.

    Computed in float64 and from rows that are not shifted, so that dense and sparse
    rows have the same directions.

    Returns
    -------
    points : ndarray of shape (n_rows, _N_DIRECTIONS), float32
    """

    def read(rows: np.ndarray):
        block = source.take(rows)
        block = space.place(block) if space.metric == "cosine" else block
        return block.astype(np.float64) * space.scale

    n_rows, n_features = source.shape
    spread = np.linspace(0, n_rows - 1, min(n_rows, _DIRECTION_ROWS)).astype(np.intp)
    _, _, directions = randomized_svd(
        read(spread), _N_DIRECTIONS, n_iter=1, random_state=0
    )
    n_blocks = -(-n_rows * n_features // _TURNED_VALUES)
    blocks = np.array_split(np.arange(n_rows), min(n_blocks, n_rows))
    points = [read(rows) @ directions.T for rows in blocks]
    return np.concatenate(points).astype(np.float32)


def _make_ladder(
    source: RowSource, weights: np.ndarray | None, order: np.ndarray, k_max: int
) -> list[_LadderStep]:
    """Return ever larger parts of the rows; the last one holds all to learn from."""
    sizes = [len(order)]
    while sizes[0] // _LADDER_GROWTH >= max(_LADDER_MIN_ROWS, 16 * k_max):
        sizes.insert(0, sizes[0] // _LADDER_GROWTH)
    ladder = []
    for size in sizes:
        rows = np.sort(order[:size])
        part = source if size == source.shape[0] else ArrayRows(source.take(rows))
        ladder.append(_LadderStep(part, None if weights is None else weights[rows]))
    return ladder


def _draw_order(
    n_samples: int,
    weights: np.ndarray | None,
    max_samples: int | None,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return the rows to learn from, in random order."""
    order = rng.permutation(n_samples)
    if weights is not None:
        order = order[weights[order] > 0]
    return order[:max_samples]


def _draw_n_clusters(
    settings: KMeansSettings, n_rows: int, rng: np.random.Generator
) -> np.ndarray:
    low, high = settings.k_range
    drawn = rng.integers(low, high, size=settings.n_runs, endpoint=True)
    return np.minimum(drawn, n_rows)


def _draw_features(
    settings: KMeansSettings, n_features: int, rng: np.random.Generator
) -> np.ndarray | None:
    """Return which features each run sees, of shape (n_runs, n_features), or None."""
    if settings.feature_share is None:
        return None
    n_seen = max(round(settings.feature_share * n_features), 1)
    order = rng.random((settings.n_runs, n_features)).argsort(axis=1)
    return order < n_seen


def _group_runs(layout: Layout, source: RowSource) -> list[np.ndarray]:
    """Cut the runs into groups that need little memory; one group for dense rows."""
    n_groups = 1
    if source.is_sparse:
        n_values = layout.n_cells * source.shape[1]
        n_groups = min(-(-n_values // _MAX_GROUP_VALUES), layout.n_runs)
    return np.array_split(np.arange(layout.n_runs), n_groups)


def _draw_start_rows(
    step: _LadderStep,
    space: RowSpace,
    layout: Layout,
    features: np.ndarray | None,
    settings: KMeansSettings,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return the rows on which the centres start, of shape (n_cells,)."""
    n_rows = step.source.shape[0]
    share = None if step.weights is None else step.weights / step.weights.sum()
    points = None
    if settings.init == "k-means++":
        points = space.place(step.source.read(0, n_rows))
    rows = np.empty(layout.n_cells, dtype=np.intp)
    for run, k in enumerate(layout.n_clusters):
        cells = layout.cell(run, np.arange(k))
        if points is None:
            rows[cells] = rng.choice(n_rows, size=k, replace=False, p=share)
        else:
            seen = points if features is None else points[:, features[run]]
            _, rows[cells] = kmeans_plusplus(
                seen, k, sample_weight=step.weights, random_state=draw_seed(rng)
            )
    return rows


def _mean_variances(
    tiles: Tiles, features: np.ndarray | None, n_runs: int
) -> np.ndarray:
    """Return for each run the mean variance of the features that it sees."""
    sums = np.zeros(tiles.n_features)
    squares = np.zeros(tiles.n_features)
    for tile in tiles:
        sums += tile.points.sum(axis=0, dtype=np.float64)
        squares += (tile.points**2).sum(axis=0, dtype=np.float64)
    variances = np.maximum(squares / tiles.n_rows - (sums / tiles.n_rows) ** 2, 0)
    if features is None:
        return np.full(n_runs, variances.mean())
    return features @ variances / features.sum(axis=1)
