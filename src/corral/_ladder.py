"""Smaller stand-ins for many or wide rows, on which K-means runs are cheap to start."""

from typing import NamedTuple

import numpy as np
from sklearn.utils.extmath import randomized_svd

from corral._blocks import ArrayRows, RowSource, cut_rows, find_size
from corral._grid import round_sums
from corral._threads import Threads
from corral._tiles import RowSpace, Tiles, multiply_rows

# Lloyd's algorithm runs on a small part of the rows first and then on ever larger
# ones, starting from the centres of the part before. Most iterations are done where
# they are cheap; the last ones see all rows. Growing by 8 was the fastest of the
# ladders tried on shuttle and kddcup (2 and 4 times faster than all rows at once).
# Below this number of rows, a part costs more than it saves.
_GROWTH = 8
_MIN_ROWS = 2048

# Parts between the first and all rows that are larger than this are left out: where
# rows are read block by block, the others are held in memory with their labels.
_MAX_PART_ROWS = 2**18
MAX_HELD_VALUES = 2**24

# Origin and mean are those of so many random rows at most.
MAX_FIRST_ROWS = 2**16

# Wide rows are first reduced to this many directions. Lloyd's algorithm is cheap there
# and ends so close to an optimum in all features that few iterations are left: on k1b
# (21,839 words) 2 instead of 20 for most runs, and the mean inertia is 2 % lower.
N_DIRECTIONS = 64
MIN_WIDTH = 8 * N_DIRECTIONS

# Only so many columns, those with the largest squares, have a part in the directions.
# On k1b they hold 85 % of the squares, and the runs end with the same inertia (to
# 0.01 %) as with all columns; the directions take a third of the time.
_DIRECTION_COLUMNS = 2048

# The directions are found from this many rows. They and the blocks that rows are read
# in, of so many values, are copied to float64.
_DIRECTION_ROWS = 2048
_BLOCK_VALUES = 2**21


class Rung(NamedTuple):
    """A part of the rows, with what each of them counts."""

    source: RowSource
    weights: np.ndarray | None


class Moments(NamedTuple):
    """Sums over the points of rows, each times what the row counts.

    Attributes
    ----------
    total : ndarray of shape (), of the weights
    sums, squares : ndarray of shape (n_features,)
    """

    total: np.ndarray
    sums: np.ndarray
    squares: np.ndarray

    @classmethod
    def add_up(cls, tiles: Tiles, weights: np.ndarray | None) -> "Moments":
        """Add up the points of tiles."""
        moments = cls(np.zeros(()), *np.zeros((2, tiles.n_features)))
        for tile in tiles:
            shares = np.ones(tile.stop - tile.start)
            if weights is not None:
                shares = weights[tile.start : tile.stop]
            here = shares @ tile.points, shares @ tile.points**2
            moments += cls(shares.sum(), *here)
        return moments

    def __add__(self, other):
        return Moments(*(a + b for a, b in zip(self, other, strict=True)))

    def share_variances(self, features: np.ndarray | None, n_runs: int) -> np.ndarray:
        """Return for each run the mean variance of the features that it sees.

        Parameters
        ----------
        features : ndarray of shape (n_runs, n_features), bool, or None
        n_runs : int
        """
        means = self.sums / self.total
        variances = np.maximum(self.squares / self.total - means**2, 0)
        if features is None:
            return round_sums(np.full(n_runs, variances.mean()))
        return round_sums(features @ variances / features.sum(axis=1))


class Ladder(NamedTuple):
    """Ever larger parts of the rows; the last one holds all to learn from.

    Attributes
    ----------
    space : RowSpace
        The space in which K-means is run.
    rungs : list of Rung
    """

    space: RowSpace
    rungs: list[Rung]


def make_ladder(
    source: RowSource,
    weights,
    order: np.ndarray,
    *,
    metric: str,
    k_max: int,
    rng: np.random.Generator,
    threads: Threads,
) -> Ladder:
    """Draw the parts of the rows.

    A part that were drawn with equal chances would miss the few far rows that decide
    where some centres lie: on kddcup, K-means then ended with 2 % more inertia. So
    each part is a lightweight coreset (Bachem, Lucic and Krause 2018,
    https://doi.org/10.1145/3219819.3219973): half of a row's chance is the same for
    all, or goes in part by its weight, half goes by its squared distance to the mean,
    and what it counts makes up for its chance.

    Parameters
    ----------
    source : RowSource
    weights : ndarray of shape (n_samples,), CompleteRows or None
    order : ndarray
        The rows to learn from; the first ones are random.
    metric : {"euclidean", "cosine"}
    k_max : int
        Most clusters of a run; no part is so small that they would starve.
    rng : numpy Generator
    threads : Threads
    """
    sizes = choose_sizes(len(order), source.shape[1], k_max)
    all_rows = np.sort(order)
    is_all = len(order) == source.shape[0]
    last = Rung(
        source if is_all else ArrayRows(source.take(all_rows)),
        None if weights is None else weights[all_rows],
    )
    if len(sizes) == 1:
        return Ladder(RowSpace.fit(metric, last.source.read(0, len(order))), [last])
    first = np.sort(order[: min(sizes[0], MAX_FIRST_ROWS)])
    some_rows = last.source.take(np.searchsorted(all_rows, first))
    space = RowSpace.fit(metric, some_rows, find_largest(last.source, threads))
    chances = _find_chances(last, space, find_mean(some_rows, space), threads)
    # The same draws for all parts, so that each holds the one before.
    draws = rng.random(len(order))
    rungs = [draw_rung(last, size * chances, draws) for size in sizes[:-1]]
    return Ladder(space, [*rungs, last])


def choose_sizes(n_rows: int, n_features: int, k_max: int) -> list[int]:
    """Return how many rows the parts have, all of them in the last place."""
    sizes = [n_rows]
    while sizes[0] // _GROWTH >= max(_MIN_ROWS, 16 * k_max):
        sizes.insert(0, sizes[0] // _GROWTH)
    most = min(_MAX_PART_ROWS, MAX_HELD_VALUES // n_features)
    return sizes[:1] + [size for size in sizes[1:-1] if size <= most] + sizes[1:][-1:]


def find_mean(rows, space: RowSpace) -> np.ndarray:
    """Return the mean of some rows, which distances are measured from."""
    return np.asarray(_to_float64(rows, space).mean(axis=0)).ravel()


def draw_rung(last: Rung, chances: np.ndarray, draws: np.ndarray) -> Rung:
    """Return the rows whose draws lie below their chances, which may be above one."""
    chances = np.minimum(chances, 1)
    rows = np.flatnonzero(draws < chances)
    weights = 1.0 if last.weights is None else last.weights[rows]
    return Rung(ArrayRows(last.source.take(rows)), weights / chances[rows])


def _find_chances(
    rung: Rung, space: RowSpace, mean: np.ndarray, threads: Threads
) -> np.ndarray:
    """Return the chance of each row to be drawn next; they add up to one."""
    distances = measure_rows(rung.source, space, mean, threads)
    even = np.full(len(distances), 1 / len(distances))
    if rung.weights is not None:
        distances *= rung.weights
        # Not by weight alone: a few heavy rows must not leave the part without others.
        even = (even + rung.weights / rung.weights.sum()) / 2
    return share_chances(even, distances, distances.sum())


def measure_rows(
    source: RowSource, space: RowSpace, mean: np.ndarray, threads: Threads
) -> np.ndarray:
    """Return the squared distance of each row to the mean."""
    distances = np.empty(source.shape[0])

    def measure(rows: slice) -> None:
        points = _to_float64(source.read(rows.start, rows.stop), space)
        distances[rows] = _squared_distances(points, mean)

    for _ in threads.map(measure, _split_rows(source)):
        pass
    return distances


def share_chances(
    even: np.ndarray, distances: np.ndarray, total: np.ndarray | float
) -> np.ndarray:
    """Return the chances of rows, half of which go by their part of all distances."""
    # Rows that are all equal have no distances.
    return even if total == 0 else (even + distances / round_sums(total)) / 2


def find_largest(source: RowSource, threads: Threads) -> float:
    """Return the largest size of a value."""

    def measure(rows: slice) -> float:
        block = source.read(rows.start, rows.stop)
        return find_size(block if isinstance(block, np.ndarray) else block.data)

    return max(threads.map(measure, _split_rows(source)), default=0.0)


def _squared_distances(points, mean: np.ndarray) -> np.ndarray:
    """Return each point's squared distance to the mean."""
    if isinstance(points, np.ndarray):
        points -= mean
        return multiply_rows(points, points)
    squares = np.asarray((points * points).sum(axis=1)).ravel()
    return np.maximum(squares - 2 * (points @ mean) + mean @ mean, 0)


def turn_to_directions(source: RowSource, space: RowSpace) -> np.ndarray:
    """Return the rows in their principal directions.

    Parameters
    ----------
    source : RowSource
    space : RowSpace

    Returns
    -------
    points : ndarray of shape (n_rows, N_DIRECTIONS), float32
    """
    n_rows = source.shape[0]
    spread = np.linspace(0, n_rows - 1, min(n_rows, _DIRECTION_ROWS)).astype(np.intp)
    some_rows = _to_float64(source.take(spread), space)
    columns = _find_strongest(some_rows, _DIRECTION_COLUMNS)
    _, _, directions = randomized_svd(
        some_rows[:, columns], N_DIRECTIONS, n_iter=1, random_state=0
    )
    points = [
        _to_float64(source.read(rows.start, rows.stop), space)[:, columns]
        @ directions.T
        for rows in _split_rows(source)
    ]
    return np.concatenate(points).astype(np.float32)


def _find_strongest(rows, n_columns: int) -> np.ndarray:
    """Return the columns with the largest sums of squares, sorted."""
    squares = np.asarray((rows * rows).sum(axis=0)).ravel()
    # To the digits that dense and sparse rows have in common.
    order = np.argsort(-squares.astype(np.float32), kind="stable")
    return np.sort(order[:n_columns])


def _split_rows(source: RowSource) -> list[slice]:
    """Return all rows in blocks of a bounded number of values."""
    n_rows, n_features = source.shape
    return cut_rows(n_rows, _BLOCK_VALUES // n_features)


def _to_float64(block, space: RowSpace):
    """Return the points of rows in float64."""
    return space.place(block).astype(np.float64)
