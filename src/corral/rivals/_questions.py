"""What runs of K-means-- ask the blocks of rows, and what adds up over these."""

from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse

from corral._cut import Cut
from corral._grid import Grid
from corral._row_blocks import Block
from corral._threads import Threads
from corral._tiles import RowSpace, count_terms
from corral.rivals._descent import take_costliest
from corral.rivals._sweeps import (
    Assignment,
    CellSums,
    Points,
    find_ends,
    recover_costs,
)
from corral.rivals._tally import Tally
from corral.rivals._totals import ExactTotal

# Bounds of costs are told apart to so many bits less than numbers have: to 1/256.
_BOUND_SHIFT = 44

_NONE = np.zeros(0)


class Spot(NamedTuple):
    """Which block it is, and its first row."""

    number: int
    start: int


@dataclass(frozen=True)
class Ground:
    """How rows become points and sums, the same for all blocks.

    Attributes
    ----------
    space : RowSpace
    grid : Grid
    n_clusters : int
    n_terms : int
        How many values a row of any block stores at most.
    """

    space: RowSpace
    grid: Grid
    n_clusters: int
    n_terms: int

    def place(self, rows: Any, threads: Threads) -> Points:
        """Return rows as points."""
        rows = rows.astype(self.space.dtype, copy=False)
        return Points(rows, self.space, self.n_clusters, threads, self.n_terms)

    def add_up(
        self, points: Points, cells: np.ndarray, old: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the sums of points that come into cells, and leave old ones if any.

        Returns
        -------
        sums : ndarray of shape (n_clusters + 1, n_levels, n_features + 1)
        """
        sums = CellSums(points, None, self.n_clusters + 1, self.grid)
        sums.move(slice(None), old, cells)
        return sums.values


class Survey:
    """What has to be known of all rows before the first run.

    Parameters
    ----------
    rows : ndarray or CSR
        Of a block.
    some : slice
        Those that stand for all; see :func:`~corral.rivals._sweeps.spread_out`.
    wanted : ndarray of int
        Those that runs start from.

    Attributes
    ----------
    ends : ndarray of shape (2, n_features)
    n_terms : int
    some, starts : list of ndarray or CSR
    """

    def __init__(self, rows: Any, some: slice, wanted: np.ndarray) -> None:
        self.ends = find_ends(rows)
        self.n_terms = count_terms(rows)
        self.some = [rows[some].copy()]
        self.starts = [rows[wanted]]

    def __add__(self, other: "Survey") -> "Survey":
        total = object.__new__(Survey)
        total.ends = np.stack(
            [
                np.maximum(self.ends[0], other.ends[0]),
                np.minimum(self.ends[1], other.ends[1]),
            ]
        )
        total.n_terms = max(self.n_terms, other.n_terms)
        total.some = self.some + other.some
        total.starts = self.starts + other.starts
        return total


def survey_block(
    block: Block, threads: Threads, step: int, one: tuple[Spot, np.ndarray]
) -> Survey:
    """Look at a block for the first time.

    Parameters
    ----------
    block : Block
    threads : Threads
    step : int
        From one to the next of the rows that stand for all.
    one : tuple of (Spot, ndarray of int)
        The block, and which of its rows runs start from.
    """
    spot, wanted = one
    return Survey(block.features.numbers, slice(-spot.start % step, None, step), wanted)


class Question(Protocol):
    """Asked in one pass over all blocks."""

    def answer(self, points: Points, rows: Any, ground: Ground, spot: Spot) -> Any:
        """Return something that can be added up over blocks."""


class Parts:
    """The answers to several questions.

    Parameters
    ----------
    each : list
    """

    def __init__(self, each: list[Any]) -> None:
        self.each = each

    def __add__(self, other: "Parts") -> "Parts":
        pairs = zip(self.each, other.each, strict=True)
        return Parts([one + another for one, another in pairs])


def ask_block(
    block: Block,
    threads: Threads,
    ground: Ground,
    questions: list[Question],
    spot: Spot,
) -> Parts:
    """Answer the questions of all runs from one reading of a block."""
    rows = block.features.numbers
    points = ground.place(rows, threads)
    return Parts([each.answer(points, rows, ground, spot) for each in questions])


@dataclass(frozen=True)
class Chosen:
    """Some rows of any blocks, with what they cost in their nearest clusters.

    Attributes
    ----------
    costs : ndarray of shape (n_chosen,)
    places : ndarray of shape (n_chosen,)
        Which of all rows they are.
    labels : ndarray of shape (n_chosen,)
    rows : ndarray or CSR of shape (n_chosen, n_features)
    """

    costs: np.ndarray
    places: np.ndarray
    labels: np.ndarray
    rows: Any

    @property
    def n_values(self) -> int:
        """How many numbers are held."""
        return self.rows.size + 3 * len(self.costs)

    def __add__(self, other: "Chosen") -> "Chosen":
        return Chosen(
            np.concatenate([self.costs, other.costs]),
            np.concatenate([self.places, other.places]),
            np.concatenate([self.labels, other.labels]),
            stack([self.rows, other.rows]),
        )

    def take(self, which: np.ndarray) -> "Chosen":
        """Return some of them."""
        each = (self.costs, self.places, self.labels, self.rows)
        return Chosen(*(values[which] for values in each))

    def sort(self) -> np.ndarray:
        """Return their order, the costliest first; of equal ones the first."""
        return np.lexsort((self.places, -self.costs))


def stack(parts: list[Any]) -> Any:
    """Return rows one below the other."""
    if sparse.issparse(parts[0]):
        return sparse.csr_array(sparse.vstack(parts, format="csr"))
    return np.concatenate(parts)


@dataclass(frozen=True)
class Inside:
    """The rows whose costs lie in the interval that was looked at.

    Attributes
    ----------
    tallies : dict of int to Tally
        Of each block that has any.
    chosen : Chosen or None
        None if they are too many.
    most_values : int
        How many numbers are not too many.
    """

    tallies: dict[int, Tally]
    chosen: Chosen | None
    most_values: int

    @classmethod
    def of(cls, index: int, chosen: Chosen, most_values: int) -> "Inside":
        """Return those of a block."""
        tallies = {index: Tally.of(chosen.costs)} if len(chosen.costs) else {}
        return cls(tallies, chosen, most_values)._limit()

    def __add__(self, other: "Inside") -> "Inside":
        tallies = self.tallies | other.tallies
        if self.chosen is None or other.chosen is None:
            return Inside(tallies, None, self.most_values)
        both = self.chosen + other.chosen
        return Inside(tallies, both, self.most_values)._limit()

    def _limit(self) -> "Inside":
        if self.chosen is None or self.chosen.n_values <= self.most_values:
            return self
        return Inside(self.tallies, None, self.most_values)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return sum(tally.n_costs for tally in self.tallies.values())


@dataclass(frozen=True)
class Sight:
    """What a look at rows shows.

    Attributes
    ----------
    sums : ndarray of shape (n_clusters + 1, n_levels, n_features + 1)
        Of the rows below the interval, by cluster, and of those above it.
    n_aside : int
        Number of rows above the interval.
    aside : ExactTotal
        What these cost beside the parts that depend on centres.
    squares : ExactTotal
        Of all rows, if they were asked for.
    bounds : tuple of Tally
        Lower and upper bounds of the costs of all rows, if they were asked for.
    inside : Inside
        The rows in the interval.
    """

    sums: np.ndarray
    n_aside: int
    aside: ExactTotal
    squares: ExactTotal
    bounds: tuple[Tally, Tally]
    inside: Inside

    def __add__(self, other: "Sight") -> "Sight":
        return Sight(
            self.sums + other.sums,
            self.n_aside + other.n_aside,
            self.aside + other.aside,
            self.squares + other.squares,
            (self.bounds[0] + other.bounds[0], self.bounds[1] + other.bounds[1]),
            self.inside + other.inside,
        )


@dataclass(frozen=True)
class Look:
    """Asks for the sums of all clusters, if the cut lies in an interval of costs.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, n_features)
    low, high : float
        Rows that cost more than ``high`` are set aside, and those that cost less than
        ``low`` are kept. Rows between are returned.
    n_level : tuple of int or None
        If it is known, how many rows of each block that cost so much are set aside,
        the first ones; all others between are kept.
    wants_bounds, wants_squares : bool
        Whether to count the bounds of all costs, and to add up the squares.
    most_values : int
        How many numbers rows that are returned may have.
    """

    centers: np.ndarray
    low: float
    high: float
    n_level: tuple[int, ...] | None
    wants_bounds: bool
    wants_squares: bool
    most_values: int

    def answer(self, points: Points, rows: Any, ground: Ground, spot: Spot) -> Sight:
        """Look at the rows of a block."""
        found = points.assign(points.pack(self.centers))
        floors, ceilings = bound_costs(points, found)
        is_above = floors > self.high
        perhaps = np.flatnonzero((ceilings >= self.low) & ~is_above)
        costs = points.costs(perhaps, found.labels[perhaps], found.centers)
        is_above[perhaps[costs > self.high]] = True
        is_inside = (costs >= self.low) & (costs <= self.high)
        inside, costs = perhaps[is_inside], costs[is_inside]
        if self.n_level is not None:
            is_above[inside[: self.n_level[spot.number]]] = True
            inside, costs = inside[:0], costs[:0]
        cells = np.where(is_above, np.int32(ground.n_clusters), found.labels)
        cells[inside] = -1
        aside = points.base_costs[is_above]
        chosen = Chosen(costs, inside + spot.start, found.labels[inside], rows[inside])
        bounds = (floors, ceilings) if self.wants_bounds else (_NONE, _NONE)
        return Sight(
            ground.add_up(points, cells),
            len(aside),
            ExactTotal.of(aside),
            ExactTotal.of(points.squares if self.wants_squares else _NONE),
            (Tally.of(bounds[0], _BOUND_SHIFT), Tally.of(bounds[1], _BOUND_SHIFT)),
            Inside.of(spot.number, chosen, self.most_values),
        )


def bound_costs(points: Points, found: Assignment) -> tuple[np.ndarray, np.ndarray]:
    """Return lower and upper bounds of what rows cost, in float64."""
    factor = 1.0 if points.is_cosine else 2.0
    floors, ceilings = (
        factor * each.astype(np.float64) for each in (found.floors, found.ceilings)
    )
    return floors, ceilings


class _Judged(NamedTuple):
    """Rows of a block around centres that are settled."""

    labels: np.ndarray
    costs: np.ndarray
    is_aside: np.ndarray


def _judge(points: Points, centers: np.ndarray, cut: Cut, spot: Spot) -> _Judged:
    found = points.assign(points.pack(centers))
    costs = points.costs(slice(None), found.labels, found.centers)
    is_aside = costs > cut.cost
    is_aside[np.flatnonzero(costs == cut.cost)[: cut.n_level[spot.number]]] = True
    return _Judged(found.labels, costs, is_aside)


@dataclass(frozen=True)
class Farthest:
    """The costliest rows that are kept, for clusters that have none."""

    chosen: Chosen
    n_most: int

    def __add__(self, other: "Farthest") -> "Farthest":
        both = self.chosen + other.chosen
        return Farthest(both.take(both.sort()[: self.n_most]), self.n_most)


@dataclass(frozen=True)
class FindFarthest:
    """Asks for the costliest rows that are kept and cost anything.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, n_features)
    cut : Cut
    """

    centers: np.ndarray
    cut: Cut

    def answer(self, points: Points, rows: Any, ground: Ground, spot: Spot) -> Farthest:
        """Find those of a block, one for each cluster."""
        judged = _judge(points, self.centers, self.cut, spot)
        movable = np.flatnonzero(~judged.is_aside & (judged.costs > 0))
        best = take_costliest(movable, judged.costs, ground.n_clusters)
        chosen = Chosen(
            judged.costs[best], best + spot.start, judged.labels[best], rows[best]
        )
        return Farthest(chosen, ground.n_clusters)


@dataclass(frozen=True)
class AddUpCosts:
    """Asks for the sum of the costs of all rows that are kept.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, n_features)
    cut : Cut
    """

    centers: np.ndarray
    cut: Cut

    def answer(
        self, points: Points, rows: Any, ground: Ground, spot: Spot
    ) -> ExactTotal:
        """Add up those of a block."""
        judged = _judge(points, self.centers, self.cut, spot)
        return ExactTotal.of(judged.costs[~judged.is_aside])


class Outcome(NamedTuple):
    """What the answers of a block, or of several, add up to.

    Attributes
    ----------
    total : ExactTotal
        Sum of the costs of the rows that are kept.
    largest : float
        Largest score of a row that is kept.
    """

    total: ExactTotal
    largest: float

    def __add__(self, other):
        return Outcome(self.total + other.total, max(self.largest, other.largest))


class Told(NamedTuple):
    """What the rows of a block are told.

    Attributes
    ----------
    columns : dict of str to ndarray of shape (n_rows,)
        By the names of attributes.
    summary : Outcome
    """

    columns: dict[str, np.ndarray]
    summary: Outcome


def tell_block(
    block: Block,
    threads: Threads,
    ground: Ground,
    centers: np.ndarray,
    cut: Cut,
    spot: Spot,
) -> Told:
    """Label and score the rows of a block."""
    points = ground.place(block.features.numbers, threads)
    judged = _judge(points, centers, cut, spot)
    scores = recover_costs(ground.space, judged.costs)
    kept = ~judged.is_aside
    columns = {
        "labels_": np.where(kept, judged.labels, np.int32(-1)),
        "nearest_labels_": judged.labels,
        "outlier_scores_": scores,
    }
    total = ExactTotal.of(judged.costs[kept])
    return Told(columns, Outcome(total, float(scores[kept].max(initial=-np.inf))))
