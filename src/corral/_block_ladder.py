"""Smaller stand-ins for more rows than memory holds, gathered by passes."""

from collections.abc import Callable
from copy import deepcopy as copy
from typing import Any, NamedTuple

import numpy as np

from corral._block_lloyd import BlockRung, Learned, Place
from corral._blocks import ArrayRows, RowSource, share_out_rows
from corral._journal import Journal
from corral._ladder import (
    MAX_FIRST_ROWS,
    Moments,
    Rung,
    choose_sizes,
    draw_rung,
    find_largest,
    find_mean,
    measure_rows,
    share_chances,
)
from corral._lloyd import find_largest_values
from corral._random import SPARE_ROWS, skip_draws
from corral._row_blocks import Block
from corral._threads import Threads
from corral._tiles import RowSpace


class BlockRows:
    """All rows of a workplace, which are read block by block in passes.

    As a :class:`~corral._blocks.RowSource` it gives the few rows that were taken.

    Parameters
    ----------
    place : Place
    sizes : ndarray of shape (n_blocks,)
        Number of rows of each block.
    taken : RowSource
        The rows that were taken, which are dense.
    means : ndarray of shape (n_features,) or None
        What missing cells hold, if there are any.
    known : ndarray of shape (n_features,), bool, or None
        The features that some row has; None means all.
    n_complete : int
        Rows without missing cells of these.
    """

    is_sparse = False

    def __init__(
        self,
        place: Place,
        sizes: np.ndarray,
        taken: RowSource,
        means: np.ndarray | None,
        known: np.ndarray | None,
        n_complete: int,
    ) -> None:
        self._taken = taken
        self.shape = taken.shape
        self.dtype = taken.dtype
        self.max_row_values = taken.max_row_values
        self.place = place
        self.sizes = sizes
        self.means = means
        self.known = known
        self._n_complete = n_complete

    def take(self, rows: np.ndarray) -> np.ndarray:
        """Return some of the rows that were taken."""
        return self._taken.take(rows)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Return a range of rows, all of which were taken."""
        return self._taken.read(start, stop)

    def count_learned(self, weights) -> int:
        """Return how many rows are learned from, with weights or without any."""
        return self.shape[0] if weights is None else self._n_complete


class BlockLadder(NamedTuple):
    """Ever larger parts of the rows, as :class:`~corral._ladder.Ladder` has them."""

    space: RowSpace
    rungs: list[Rung | BlockRung]


class Survey(NamedTuple):
    """What is known of the rows to learn from before there is a space.

    Attributes
    ----------
    largest : ndarray of shape ()
        The largest size of a value.
    n_learned : ndarray of shape (n_blocks,)
        How many rows of each block are learned from.
    rows : ndarray of shape (n_rows,)
        Those of the rows asked for that are learned from, sorted.
    numbers : ndarray of shape (n_rows, n_features)
    """

    largest: np.ndarray
    n_learned: np.ndarray
    rows: np.ndarray
    numbers: np.ndarray

    def __add__(self, other):
        joined = [np.concatenate(p) for p in zip(self[1:], other[1:], strict=True)]
        return Survey(np.maximum(self.largest, other.largest), *joined)


class Measures(NamedTuple):
    """What is known of all points.

    Attributes
    ----------
    distance : ndarray of shape ()
        The sum of the squared distances to the mean.
    bounds : ndarray of shape (n_features + 1,)
        The largest sizes of values, and of a weight.
    total, sums, squares : ndarray
        See :class:`~corral._ladder.Moments`.
    """

    distance: np.ndarray
    bounds: np.ndarray
    total: np.ndarray
    sums: np.ndarray
    squares: np.ndarray

    def __add__(self, other):
        return Measures(
            self.distance + other.distance,
            np.maximum(self.bounds, other.bounds),
            *(a + b for a, b in zip(self[2:], other[2:], strict=True)),
        )


class Drawn(NamedTuple):
    """Rows that were drawn, with their chances and what was drawn for them."""

    numbers: np.ndarray
    chances: np.ndarray
    draws: np.ndarray

    def __add__(self, other):
        return Drawn(*(np.concatenate(p) for p in zip(self, other, strict=True)))


def make_block_ladder(
    source: BlockRows,
    weights,
    order: np.ndarray,
    *,
    metric: str,
    k_max: int,
    rng: np.random.Generator,
    threads: Threads,
) -> BlockLadder:
    """Draw the parts of the rows that :func:`~corral._ladder.make_ladder` draws.

    Three passes over the rows: for the origin of the space, for distances to the mean,
    and for the rows of the parts.

    Parameters
    ----------
    source : BlockRows
    weights : CompleteRows or None
        If given, rows with missing cells are left out.
    order : ndarray
        The first rows in random order.
    metric : {"euclidean", "cosine"}
    k_max : int
        Most clusters of a run.
    rng : numpy Generator
    threads : Threads
        Not used: passes have their own.
    """
    n_rows = source.count_learned(weights)
    learned = Learned(source.means, source.known, weights is not None)
    sizes = choose_sizes(n_rows, source.shape[1], k_max)
    if len(sizes) == 1:
        # No more rows than a first part may have.
        survey = _survey(source, learned, np.arange(source.shape[0]))
        ones = None if weights is None else np.ones(n_rows)
        space = RowSpace.fit(metric, survey.numbers)
        return BlockLadder(space, [Rung(ArrayRows(survey.numbers), ones)])
    n_first = min(sizes[0], MAX_FIRST_ROWS)
    n_asked = n_first if weights is None else SPARE_ROWS * n_first
    survey = _survey(source, learned, np.sort(order[:n_asked]))
    some_rows = _pick_first(survey, order, n_first)
    space = RowSpace.fit(metric, some_rows, float(survey.largest))
    mean = find_mean(some_rows, space)
    measures = _measure(source, learned, space, mean)
    starts = (np.cumsum(survey.n_learned) - survey.n_learned).tolist()
    chances = Chances(space, mean, measures.distance, n_rows)
    drawn = _draw(source, learned, chances, sizes[-2], rng, starts)
    skip_draws(rng, n_rows)
    largest = Rung(ArrayRows(drawn.numbers), None)
    rungs: list[Rung | BlockRung] = [
        draw_rung(largest, size * drawn.chances, drawn.draws) for size in sizes[:-1]
    ]
    moments = Moments(*measures[2:])
    last = BlockRung(source.place, learned, starts, n_rows, measures.bounds, moments)
    return BlockLadder(space, [*rungs, last])


class Chances(NamedTuple):
    """What the chances of rows go by.

    Attributes
    ----------
    space : RowSpace
    mean : ndarray of shape (n_features,)
    distance : ndarray of shape ()
        The sum of all squared distances to the mean.
    n_rows : int
    """

    space: RowSpace
    mean: np.ndarray
    distance: np.ndarray
    n_rows: int

    def find(self, numbers: np.ndarray, threads: Threads) -> np.ndarray:
        """Return the chances of some rows."""
        distances = measure_rows(ArrayRows(numbers), self.space, self.mean, threads)
        even = np.full(len(distances), 1 / self.n_rows)
        return share_chances(even, distances, self.distance)


def _note(journal: Journal | None, name: str, kind: type, find: Callable) -> Any:
    """Return what was noted of a pass, or do it and note what it found."""
    if journal is not None and journal.has(name):
        return kind(**journal.read(name))
    found = find()
    if journal is not None:
        journal.write(name, found._asdict())
    return found


def _survey(source: BlockRows, learned: Learned, rows: np.ndarray) -> Survey:
    place, sizes = source.place, source.sizes
    shares = share_out_rows(rows, sizes)
    starts = (np.cumsum(sizes) - sizes).tolist()
    each = list(zip(shares, starts, strict=True))

    def find() -> Survey:
        return place.add_up(survey_block, learned, each=each)

    return _note(place.journal, "survey", Survey, find)


def _pick_first(survey: Survey, order: np.ndarray, n_first: int) -> np.ndarray:
    """Return the numbers of the first rows in an order, sorted by rows."""
    usable = order[np.isin(order, survey.rows)]
    return survey.numbers[np.searchsorted(survey.rows, np.sort(usable[:n_first]))]


def _measure(
    source: BlockRows, learned: Learned, space: RowSpace, mean: np.ndarray
) -> Measures:
    place = source.place

    def find() -> Measures:
        return place.add_up(measure_block, learned, space, mean)

    return _note(place.journal, "measures", Measures, find)


def _draw(
    source: BlockRows,
    learned: Learned,
    chances: Chances,
    n_wanted: int,
    rng: np.random.Generator,
    starts: list[int],
) -> Drawn:
    place, same = source.place, copy(rng)

    def find() -> Drawn:
        return place.add_up(draw_block, learned, chances, n_wanted, same, each=starts)

    return _note(place.journal, "drawn", Drawn, find)


def survey_block(
    block: Block, threads: Threads, learned: Learned, asked: tuple[np.ndarray, int]
) -> Survey:
    """Look at the rows of a block that are learned from.

    Parameters
    ----------
    block : Block
    threads : Threads
    learned : Learned
    asked : tuple of (rows, start)
        The rows of the block that are asked for, and the row that it starts with.
    """
    rows, start = asked
    here, numbers = learned.find(block), learned.take(block)
    chosen = np.isin(here, rows, assume_unique=True)
    return Survey(
        np.array(find_largest(ArrayRows(numbers), threads)),
        np.array([len(here)]),
        start + here[chosen],
        numbers[chosen],
    )


def measure_block(
    block: Block,
    threads: Threads,
    learned: Learned,
    space: RowSpace,
    mean: np.ndarray,
) -> Measures:
    """Measure the points of a block."""
    tiles = learned.cut(block, space, 1)
    distances = measure_rows(ArrayRows(learned.take(block)), space, mean, threads)
    return Measures(
        distances.sum(),
        find_largest_values(tiles, None),
        *Moments.add_up(tiles, None),
    )


def draw_block(
    block: Block,
    threads: Threads,
    learned: Learned,
    chances: Chances,
    n_wanted: int,
    rng: np.random.Generator,
    start: int,
) -> Drawn:
    """Draw rows of a block for the largest part that is held in memory.

    Parameters
    ----------
    block : Block
    threads : Threads
    learned : Learned
    chances : Chances
    n_wanted : int
        How many rows of all blocks the part should have.
    rng : numpy Generator
        Before it draws for the first row of all; left as it is.
    start : int
        How many rows are learned from before the block.
    """
    numbers = learned.take(block)
    found = chances.find(numbers, threads)
    here = copy(rng)
    skip_draws(here, start)
    draws = here.random(len(numbers))
    chosen = draws < np.minimum(n_wanted * found, 1)
    return Drawn(numbers[chosen], found[chosen], draws[chosen])
