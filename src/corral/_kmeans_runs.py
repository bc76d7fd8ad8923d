"""Basic partitions by many K-means runs: how k, features and starts are drawn."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.cluster import kmeans_plusplus

from corral._assign import (
    AssignWorkspace,
    Layout,
    PackedCenters,
    Selection,
    assign_sweep,
)
from corral._block_ladder import BlockLadder, BlockRows, make_block_ladder
from corral._block_lloyd import BlockLloyd, BlockRung
from corral._blocks import ArrayRows, DenseRows, RowSource
from corral._ladder import (
    MAX_FIRST_ROWS,
    MIN_WIDTH,
    Ladder,
    Moments,
    Rung,
    make_ladder,
    turn_to_directions,
)
from corral._lloyd import LloydRuns
from corral._memory import need_memory
from corral._progress import LEARNING, Counter
from corral._random import SPARE_ROWS, draw_all_rows, draw_rows, draw_seed
from corral._threads import Threads
from corral._tiles import (
    MAX_LLOYD_TILE_ROWS,
    MAX_TILE_ROWS,
    RowSpace,
    Tile,
    Tiles,
    divide_rows,
    row_norms,
)

# Points may be so many times as far from the origin as half of them, when starts are
# drawn by their distances.
_FAR = 2**20

# Wide rows have long centres. Runs are done in groups whose sums need no more than
# this many values.
_MAX_GROUP_VALUES = 2**24

# Bytes for each value of the centres of a group while it learns, and of all centres to
# the end: as they are, for products and for distances. Measured on 10 x 100,000,
# 100 x 100,000, 10 x 400,000 and 3,000 x 10,000 cells, to a sixth.
_GROUP_BYTES = 24
_CENTER_BYTES = 16


@dataclass(frozen=True)
class KMeansSettings:
    """How the K-means runs are drawn and run; see the parameters of COR."""

    n_runs: int
    k_range: tuple[int, int]
    # Every other run draws its number of clusters from this range, if there is one.
    fine_range: tuple[int, int] | None
    feature_share: float | None
    metric: str
    init: str
    max_iter: int
    tol: float
    max_samples: int | None
    # Whether every other run does without some features, where cells are missing.
    spares_cells: bool = False
    # The features that some row has, of shape (n_features,); None means all.
    known_features: np.ndarray | None = None


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
    features : ndarray of shape (n_runs, n_features), bool, or None
        The features that each run sees; None if all see all.
    """

    space: RowSpace
    layout: Layout
    centers: np.ndarray
    half_norms: np.ndarray
    features: np.ndarray | None = None

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

    @property
    def seen(self) -> np.ndarray:
        """The features that some run sees, of shape (n_features,), bool."""
        if self.features is None:
            return np.ones(self.centers.shape[1], dtype=bool)
        return np.asarray(self.features.any(axis=0))

    @property
    def see_all(self) -> np.ndarray:
        """Whether each run sees all features that some run sees, of shape (n_runs,)."""
        if self.features is None:
            return np.ones(self.layout.n_runs, dtype=bool)
        return np.asarray((self.features == self.seen).all(axis=1))

    def lack(self, missing: np.ndarray) -> np.ndarray:
        """Return which rows lack a cell that a run sees.

        Parameters
        ----------
        missing : ndarray of shape (n_rows, n_features), bool

        Returns
        -------
        lacks : ndarray of shape (n_runs, n_rows), bool
        """
        if self.features is None:
            return np.broadcast_to(
                missing.any(axis=1), (self.layout.n_runs, len(missing))
            )
        return self.features.astype(np.float32) @ missing.T.astype(np.float32) > 0

    def fill(self, numbers: Any, missing: np.ndarray | None) -> Any:
        """Return rows with missing cells at the origin of the space.

        The runs that label such a row do not see these cells, but a huge number there
        would eat up the digits of the others. The same holds for features that no run
        sees, since no row had them in fit.

        Parameters
        ----------
        numbers : ndarray or CSR of shape (n_rows, n_features)
        missing : ndarray of shape (n_rows, n_features), bool, or None

        Returns
        -------
        filled : ndarray or CSR of shape (n_rows, n_features)
        """
        gone = ~self.seen if missing is None else missing | ~self.seen
        if sparse.issparse(numbers) or not gone.any():
            return numbers
        origin = 0 if self.space.shift is None else self.space.shift
        return np.where(gone, origin, numbers)

    def label_blocks(self, source: RowSource) -> "KMeansLabeller":
        """Make ready to label the rows of a source."""
        if source.is_sparse and self.space.is_filling:
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
        self.runs = runs
        self._distinct = runs.distinct
        part = self._distinct.selection
        self._tiles = Tiles(source, runs.space, part.layout.n_cells, MAX_TILE_ROWS)
        self._packed = PackedCenters.pack(
            part.layout,
            runs.centers,
            part.cells,
            runs.half_norms[part.cells],
            n_terms=self._tiles.n_terms,
            is_sparse=source.is_sparse,
        )
        self.n_rows = self._tiles.n_rows
        self.block_rows = self._tiles.tile_rows

    def make_workspace(self) -> AssignWorkspace:
        """Return buffers for one thread."""
        n_rows = min(self.block_rows, self._tiles.n_rows)
        return AssignWorkspace(self._packed.layout, n_rows)

    @property
    def n_blocks(self) -> int:
        """Number of blocks."""
        return len(self._tiles)

    def label(self, index: int, workspace: AssignWorkspace) -> np.ndarray:
        """Return the labels of block ``index``; see :meth:`label_tile`."""
        return self.label_tile(index, workspace)[1]

    def label_tile(
        self, index: int, workspace: AssignWorkspace
    ) -> tuple[Tile, np.ndarray]:
        """Return the tile of block ``index`` and its labels.

        The labels are of shape (n_runs, n_rows) and valid until the workspace is used
        again.
        """
        tile = self._tiles[index]
        labels = assign_sweep(tile, self._packed, workspace)
        return tile, labels if self._distinct.are_all else labels[self._distinct.which]


def fit_kmeans_runs(
    source: RowSource,
    weights,
    settings: KMeansSettings,
    rng: np.random.Generator,
    threads: Threads,
) -> KMeansRuns:
    """Run K-means many times, on a sample of the rows or on all of them.

    Parameters
    ----------
    source : RowSource
        All rows are learned from if they are :class:`BlockRows`.
    weights : ndarray of shape (n_samples,), CompleteRows or None
        Rows of weight zero are not learned from.
    settings : KMeansSettings
    rng : numpy Generator
    threads : Threads

    Returns
    -------
    runs : KMeansRuns
    """
    n_samples = source.shape[0]
    make: Callable[..., Ladder | BlockLadder] = partial(make_ladder, source)
    if isinstance(source, BlockRows):
        make = partial(make_block_ladder, source)
        order = draw_rows(rng, n_samples, SPARE_ROWS * MAX_FIRST_ROWS)
        n_rows = source.count_learned(weights)
    else:
        order = draw_order(n_samples, weights, settings.max_samples, rng)
        n_rows = len(order)
    # Sorted, because runs with the same number of clusters share operations.
    n_clusters = np.sort(_draw_n_clusters(settings, n_rows, rng))
    features = _draw_features(settings, source.shape[1], rng)
    space, rungs = make(
        weights,
        order,
        metric=settings.metric,
        k_max=n_clusters.max(),
        rng=rng,
        threads=threads,
    )
    first = rungs[0]
    assert isinstance(first, Rung)

    layout = Layout(n_clusters)
    groups = _group_runs(layout, source)
    centers = np.empty((layout.n_cells, source.shape[1]), dtype=space.dtype)
    half_norms = np.empty(layout.n_cells)
    rows = _draw_start_rows(first, space, layout, features, settings, rng)
    labels = None
    if features is None and min(first.source.shape) >= MIN_WIDTH:
        labels = _label_in_few_directions(first, space, layout, rows, settings, threads)
    counter = Counter(LEARNING, layout.n_runs * len(rungs))
    counter.add(0)
    for runs in groups:
        part = layout.select(runs)
        seen = None if features is None else features[runs]
        if labels is None:
            start = _Start(_take_points(first, space, rows[part.cells]))
        else:
            start = _Start(None, labels[runs])
        found = _Found.of(
            _run_lloyd(first, space, part.layout, start, seen, settings, threads)
        )
        counter.add(len(runs))
        for rung in rungs[1:]:
            climb = _Climb(rung, space, seen, settings, threads, counter)
            found = climb.go_on(part.layout, found)
        if len(groups) == 1:
            return KMeansRuns(space, layout, found.centers, found.half_norms, features)
        centers[part.cells] = found.centers
        half_norms[part.cells] = found.half_norms
        # Before the next group takes as much.
        del start, found
    return KMeansRuns(space, layout, centers, half_norms, features)


class _Start(NamedTuple):
    """Where runs start: from centres, or from labels of all rows."""

    centers: np.ndarray | None
    labels: np.ndarray | None = None


class _Found(NamedTuple):
    """Where runs ended."""

    centers: np.ndarray
    half_norms: np.ndarray

    @classmethod
    def of(cls, lloyd: LloydRuns | BlockLloyd) -> "_Found":
        """Return the outcome of runs without what led to it, which is large."""
        return cls(lloyd.centers, lloyd.half_norms)


class _Climb(NamedTuple):
    """A step from the rung below to a larger one, and all it takes."""

    rung: Rung | BlockRung
    space: RowSpace
    features: np.ndarray | None
    settings: KMeansSettings
    threads: Threads
    counter: Counter

    def go_on(self, layout: Layout, below: _Found) -> _Found:
        """Go on from where the runs ended on the rung below, equal runs as one."""
        in_use = np.ones(layout.n_cells, dtype=bool)
        distinct = DistinctRuns.find(layout, below.centers, in_use, self.features)
        part = distinct.selection
        if distinct.are_all:
            return self._run(layout, below.centers, self.features)
        seen = None if self.features is None else self.features[part.runs]
        found = self._run(part.layout, below.centers[part.cells], seen)
        self.counter.add(layout.n_runs - part.layout.n_runs)
        return _Found(found.centers[distinct.cells], found.half_norms[distinct.cells])

    def _run(
        self, layout: Layout, starts: np.ndarray, features: np.ndarray | None
    ) -> _Found:
        rung, space, _, settings, threads, counter = self
        if isinstance(rung, BlockRung):
            return _run_passes(rung, space, layout, starts, features, settings, counter)
        start = _Start(starts)
        lloyd = _run_lloyd(rung, space, layout, start, features, settings, threads)
        counter.add(layout.n_runs)
        return _Found.of(lloyd)


def _run_passes(
    rung: BlockRung,
    space: RowSpace,
    layout: Layout,
    starts: np.ndarray,
    features: np.ndarray | None,
    settings: KMeansSettings,
    counter: Counter,
) -> _Found:
    """Run Lloyd's algorithm on all rows, block by block."""
    lloyd = BlockLloyd(
        rung,
        space,
        layout,
        starts,
        features=features,
        spherical=settings.metric == "cosine",
    )
    variances = rung.moments.share_variances(features, layout.n_runs)
    lloyd.run(settings.max_iter, settings.tol * variances, counter)
    lloyd.sort_centers()
    return _Found.of(lloyd)


def _run_lloyd(
    rung: Rung,
    space: RowSpace,
    layout: Layout,
    start: _Start,
    features: np.ndarray | None,
    settings: KMeansSettings,
    threads: Threads,
) -> LloydRuns:
    """Run Lloyd's algorithm on the rows of a rung."""
    tiles = Tiles(rung.source, space, layout.n_cells, MAX_LLOYD_TILE_ROWS).keep()
    lloyd = LloydRuns(
        tiles,
        rung.weights,
        layout,
        start.centers,
        features=features,
        spherical=settings.metric == "cosine",
    )
    if start.labels is not None:
        lloyd.start_from(start.labels, threads)
    moments = Moments.add_up(tiles, rung.weights)
    variances = moments.share_variances(features, layout.n_runs)
    lloyd.run(settings.max_iter, settings.tol * variances, threads)
    lloyd.sort_centers()
    return lloyd


def _take_points(rung: Rung, space: RowSpace, rows: np.ndarray) -> np.ndarray:
    """Return rows of a rung as points of the space, dense."""
    distinct, place = np.unique(rows, return_inverse=True)
    points = space.place(rung.source.take(distinct))
    points = points.toarray() if sparse.issparse(points) else points
    return points[place]


def _label_in_few_directions(
    rung: Rung,
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
    points = turn_to_directions(rung.source, space)
    if settings.metric == "cosine":
        few = RowSpace("euclidean", None, 1.0, points.dtype)
    else:
        few = RowSpace.fit("euclidean", points)
    reduced = Rung(ArrayRows(points), rung.weights)
    start = _Start(few.place(points[rows]))
    return _run_lloyd(reduced, few, layout, start, None, settings, threads).labels


def draw_order(
    n_samples: int,
    weights,
    max_samples: int | None,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return the rows to learn from, in random order.

    Parameters
    ----------
    n_samples : int
    weights : ndarray of shape (n_samples,), CompleteRows or None
        Rows of weight zero are left out.
    max_samples : int or None
    rng : numpy Generator
    """
    if isinstance(weights, np.ndarray):
        # Any number of them may be zero.
        order = draw_rows(rng, n_samples, n_samples)
    elif max_samples is None:
        order = draw_all_rows(rng, n_samples, SPARE_ROWS * MAX_FIRST_ROWS)
    else:
        order = draw_rows(rng, n_samples, SPARE_ROWS * max_samples)
    if weights is not None:
        order = order[weights[order] > 0]
    return order[:max_samples]


def _draw_n_clusters(
    settings: KMeansSettings, n_rows: int, rng: np.random.Generator
) -> np.ndarray:
    ranges = np.tile(settings.k_range, (settings.n_runs, 1))
    if settings.fine_range is not None:
        ranges[1::2] = settings.fine_range
    drawn = rng.integers(ranges[:, 0], ranges[:, 1], endpoint=True)
    return np.minimum(drawn, n_rows)


def _draw_features(
    settings: KMeansSettings, n_features: int, rng: np.random.Generator
) -> np.ndarray | None:
    """Return which features each run sees, of shape (n_runs, n_features), or None."""
    n_runs, known = settings.n_runs, settings.known_features
    if settings.feature_share is None and not settings.spares_cells:
        return None if known is None else np.tile(known, (n_runs, 1))
    n_known = n_features if known is None else np.count_nonzero(known)
    if settings.feature_share is not None:
        n_seen = np.full(n_runs, max(round(settings.feature_share * n_known), 1))
    else:
        # Evenly on a log scale, so that rows of which little is known have labels.
        n_seen = np.exp(rng.uniform(0, np.log(n_known + 1), n_runs)).astype(int)
        n_seen[::2] = n_known
    seen = np.zeros((n_runs, n_features), dtype=bool)
    drawn = rng.random((n_runs, n_known)).argsort(axis=1) < n_seen[:, None]
    seen[:, slice(None) if known is None else known] = drawn
    return seen


def _group_runs(layout: Layout, source: RowSource) -> list[np.ndarray]:
    """Cut the runs into groups that need little memory."""
    n_values = layout.n_cells * source.shape[1]
    n_groups = min(-(-n_values // _MAX_GROUP_VALUES), layout.n_runs)
    if n_groups > 1:
        _check_centers(layout, source.shape[1])
    return np.array_split(np.arange(layout.n_runs), n_groups)


def _check_centers(layout: Layout, n_features: int) -> None:
    """Refuse rows so wide that their centres do not fit into memory."""
    n_values = layout.n_cells * n_features
    need_memory(
        _CENTER_BYTES * n_values + _GROUP_BYTES * _MAX_GROUP_VALUES,
        f"Learning {layout.n_cells:,} centres of {n_features:,} features",
        f"Lower n_partitions (now {layout.n_runs} by K-means), leave out features, or "
        "turn them into fewer first, such as with scikit-learn's PCA or TruncatedSVD.",
    )


def _draw_start_rows(
    rung: Rung,
    space: RowSpace,
    layout: Layout,
    features: np.ndarray | None,
    settings: KMeansSettings,
    rng: np.random.Generator,
) -> np.ndarray:
    """Return the rows on which the centres start, of shape (n_cells,)."""
    n_rows = rung.source.shape[0]
    share = None if rung.weights is None else rung.weights / rung.weights.sum()
    points = None
    if settings.init == "k-means++":
        points = space.place(rung.source.read(0, n_rows))
    drawn = []
    for run, k in enumerate(layout.n_clusters):
        if points is None:
            rows = rng.choice(n_rows, size=k, replace=False, p=share)
        else:
            seen = points if features is None else points[:, features[run]]
            _, rows = kmeans_plusplus(
                _pull_in(seen),
                k,
                sample_weight=rung.weights,
                random_state=draw_seed(rng),
            )
        drawn.append(rows)
    by_run = np.lexsort((layout.label_of_cell, layout.run_of_cell))
    rows_of_cells = np.empty(layout.n_cells, dtype=np.intp)
    rows_of_cells[by_run] = np.concatenate(drawn)
    return rows_of_cells


def _pull_in(points):
    """Return the points, those that are far beyond the others no farther than `_FAR`.

    Scikit-learn rounds distances to the size of the points: those at 1e12 would be far
    from themselves, and the only starts.
    """
    norms = row_norms(points)
    limit = _FAR * float(np.median(norms[norms > 0])) if norms.any() else 0.0
    if norms.max() <= limit:
        return points
    pulled = points.copy()
    divide_rows(pulled, np.maximum(norms / limit, 1))
    return pulled
