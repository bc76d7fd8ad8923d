"""Runs of K-means-- on rows that are read block by block; one pass serves all runs."""

from collections.abc import Generator, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from corral._answers import Columns
from corral._cut import Cut, share_out
from corral._row_blocks import RowBlocks
from corral._scan import share_out_rows
from corral._threads import Threads
from corral._tree import add_in_tree
from corral.rivals._descent import Descent, Rules, choose_refills, find_best_run
from corral.rivals._questions import (
    AddUpCosts,
    Farthest,
    FindFarthest,
    Ground,
    Inside,
    Look,
    Outcome,
    Question,
    Sight,
    Spot,
    Survey,
    ask_block,
    stack,
    survey_block,
    tell_block,
)
from corral.rivals._sweeps import Points, choose_grid, choose_space, spread_out
from corral.rivals._totals import ExactTotal

# Rows whose costs come near the cut are brought to one place, up to so many numbers in
# all runs. More are told apart in one more pass.
_GATHERED_VALUES = 2**21

# The cut is looked for so close to that of the iteration before, as a part of it; and
# from the third iteration on within so many times its last move.
_CLOSE_BY = 0.01
_MOVES = 4
_CLOSEST = 1e-9


class Place(Protocol):
    """Where rows are, and passes over them are made."""

    rows: RowBlocks
    threads: Threads

    def add_up(self, function, *args, each=None) -> Any:
        """Add up a function over blocks; see :class:`~corral._workplace.Workplace`."""

    def tell(self, function, *args, each) -> tuple[Any, Columns]:
        """Keep what a function tells all rows, and add up its summaries."""


def list_spots(sizes: np.ndarray) -> list[Spot]:
    """Return which blocks there are."""
    starts = np.cumsum(sizes) - sizes
    return [Spot(index, start) for index, start in enumerate(starts.tolist())]


class Start(NamedTuple):
    """What is known after the first pass.

    Attributes
    ----------
    ground : Ground
    rows : ndarray or CSR of shape (n_wanted, n_features)
        The rows that were asked for.
    """

    ground: Ground
    rows: Any


def survey(place: Place, metric: str, n_clusters: int, wanted: np.ndarray) -> Start:
    """Look at all rows for the first time.

    Parameters
    ----------
    place : Place
    metric : {"euclidean", "cosine"}
    n_clusters : int
    wanted : ndarray of int
        Rows to return, sorted.

    Returns
    -------
    start : Start
    """
    sizes = place.rows.sizes
    n_rows = int(sizes.sum())
    each = zip(list_spots(sizes), share_out_rows(wanted, sizes), strict=True)
    seen: Survey = place.add_up(survey_block, spread_out(n_rows), each=list(each))
    some = stack(seen.some)
    space = choose_space(metric, some, seen.ends)
    squares = Points(some, space, n_clusters, place.threads).squares
    grid = choose_grid(space, seen.ends, squares, n_rows)
    return Start(Ground(space, grid, n_clusters, seen.n_terms), stack(seen.starts))


class BlockRun(NamedTuple):
    """A run that came to rest, or to its last iteration.

    Attributes
    ----------
    descent : Descent
    cut : Cut
        Where the rows that are set aside begin.
    n_filled : int
        Number of clusters that kept a row.
    """

    descent: Descent
    cut: Cut
    n_filled: int


class BestRun:
    """The run that is kept.

    Parameters
    ----------
    run : BlockRun
    total : ExactTotal
        Sum of the costs of the rows that are kept.
    """

    def __init__(self, run: BlockRun, total: ExactTotal) -> None:
        self.centers = run.descent.centers
        self.history = run.descent.conclude(total)
        self.converged = run.descent.converged
        self.n_filled = run.n_filled


@dataclass(frozen=True)
class _Found:
    """The rows around some centres, and which are set aside."""

    sums: np.ndarray
    aside: ExactTotal
    squares: ExactTotal
    cut: Cut


class BlockRuns:
    """Runs of K-means-- that ask for passes over all rows.

    Parameters
    ----------
    place : Place
    ground : Ground
    rules : Rules
    n_outliers : int
    """

    def __init__(
        self, place: Place, ground: Ground, rules: Rules, n_outliers: int
    ) -> None:
        self._place = place
        self._ground = ground
        self._rules = rules
        self._n_outliers = n_outliers
        self._sizes = place.rows.sizes
        self._spots = list_spots(self._sizes)
        self._most_values = _GATHERED_VALUES

    def run(self, starts: list[np.ndarray]) -> list[BlockRun]:
        """Iterate from all starts until all centres rest."""
        self._most_values = _GATHERED_VALUES // len(starts)
        runs = [self._follow(centers) for centers in starts]
        found: dict[int, BlockRun] = {}
        questions = {number: next(run) for number, run in enumerate(runs)}
        while questions:
            parts = self._ask(questions.values())
            for number, part in zip(list(questions), parts, strict=True):
                try:
                    questions[number] = runs[number].send(part)
                except StopIteration as end:
                    found[number] = end.value
                    del questions[number]
        return [found[number] for number in range(len(runs))]

    def find_best(self, starts: list[np.ndarray]) -> tuple[BestRun, Outcome, Columns]:
        """Run from all starts, and label and score all rows by the best run.

        Returns
        -------
        best : BestRun
        told : Outcome
        columns : Columns
        """
        runs = self.run(starts)
        best = runs[0] if len(runs) == 1 else self._choose(runs)
        args = self._ground, best.descent.centers, best.cut
        told, columns = self._place.tell(tell_block, *args, each=self._spots)
        return BestRun(best, told.total), told, columns

    def _choose(self, runs: list[BlockRun]) -> BlockRun:
        """Return the run with the lowest objective, straight from the costs."""
        totals = self._ask([AddUpCosts(run.descent.centers, run.cut) for run in runs])
        ends = [
            run.descent.conclude(total)[-1]
            for run, total in zip(runs, totals, strict=True)
        ]
        return runs[find_best_run(ends)]

    def _ask(self, questions: Iterable[Question]) -> list[Any]:
        """Make a pass over all rows."""
        args = self._ground, list(questions)
        return self._place.add_up(ask_block, *args, each=self._spots).each

    def _follow(self, centers: np.ndarray) -> Generator[Question, Any, BlockRun]:
        """Iterate from these centres; yield questions and be sent their answers."""
        descent = Descent(self._rules, centers)
        found = yield from self._look(centers, [])
        descent.begin(found.sums, found.squares, self._find_bases(found.squares))
        cuts = [found.cut.cost]
        while not descent.is_over:
            sums = yield from self._refill(found, descent.centers)
            found = yield from self._look(descent.step(sums), cuts)
            descent.judge(found.sums, found.aside)
            cuts = [cuts[-1], found.cut.cost]
        counts = self._rules.join(found.sums[:-1])[1]
        return BlockRun(descent, found.cut, int(np.count_nonzero(counts)))

    def _find_bases(self, squares: ExactTotal) -> ExactTotal:
        if self._rules.is_cosine:
            return ExactTotal.of_whole(int(self._sizes.sum()))
        return squares

    def _look(
        self, centers: np.ndarray, cuts: list[float]
    ) -> Generator[Question, Sight, _Found]:
        """Find the rows around centres; the cuts before tell where this one may be."""
        n_outliers = self._n_outliers
        low, high = _guess(cuts)
        n_level = None if n_outliers else self._no_level
        n_missed = 0
        squares: ExactTotal | None = None
        while True:
            sight = yield Look(
                centers,
                low,
                high,
                n_level,
                wants_bounds=n_level is None,
                wants_squares=squares is None and not cuts,
                most_values=self._most_values,
            )
            squares = sight.squares if squares is None else squares
            n_wanted = n_outliers - sight.n_aside
            if n_level is not None:
                cut = Cut(low, n_level)
                return _Found(sight.sums, sight.aside, squares, cut)
            if not 0 <= n_wanted <= sight.inside.n_rows or np.isinf(low):
                n_missed += 1
                low, high = self._bound_cut(sight, n_missed)
            elif sight.inside.chosen is not None:
                return self._settle(sight, n_wanted, high, squares)
            else:
                low, high, n_level = self._narrow(sight.inside, n_wanted, high)

    @property
    def _no_level(self) -> tuple[int, ...]:
        return (0,) * len(self._sizes)

    def _bound_cut(self, sight: Sight, n_missed: int) -> tuple[float, float]:
        """Return an interval in which the cut is.

        The n-th largest of some numbers lies between that of their lower bounds and
        that of their upper bounds.
        """
        if n_missed > 1:
            # Only if a bound was none; then all costs are looked at.
            return 0.0, float(np.finfo(np.float64).max)
        floors, ceilings = sight.bounds
        return floors.find(self._n_outliers)[0], ceilings.find(self._n_outliers)[1]

    def _settle(
        self, sight: Sight, n_wanted: int, high: float, squares: ExactTotal
    ) -> _Found:
        """Set aside the costliest of the rows in the interval."""
        chosen = sight.inside.chosen
        assert chosen is not None
        if not len(chosen.costs):
            cut = Cut(high, self._no_level)
            return _Found(sight.sums, sight.aside, squares, cut)
        outliers = chosen.sort()[:n_wanted]
        cells = chosen.labels.copy()
        cells[outliers] = self._ground.n_clusters
        points = self._ground.place(chosen.rows, self._place.threads)
        cut = Cut(high, self._no_level)
        if n_wanted:
            cost = chosen.costs[outliers[-1]]
            places = chosen.places[outliers[chosen.costs[outliers] == cost]]
            blocks = np.searchsorted(np.cumsum(self._sizes), places, side="right")
            counts = np.bincount(blocks, minlength=len(self._sizes))
            cut = Cut(float(cost), tuple(counts.tolist()))
        return _Found(
            sight.sums + self._ground.add_up(points, cells),
            sight.aside + ExactTotal.of(points.base_costs[outliers]),
            squares,
            cut,
        )

    def _narrow(
        self, inside: Inside, n_wanted: int, high: float
    ) -> tuple[float, float, tuple[int, ...] | None]:
        """Return where the cut is among rows that are too many to be gathered.

        Where it is known exactly, how many rows of each block cost as much and are set
        aside comes with it.
        """
        if not n_wanted:
            return high, high, self._no_level
        tally = add_in_tree(inside.tallies.values())
        low, high = tally.find(n_wanted)
        if not tally.is_exact:
            return low, high, None
        tallies = inside.tallies
        counts = [
            tallies[index].count(low) if index in tallies else 0
            for index in range(len(self._sizes))
        ]
        return low, low, share_out(counts, n_wanted - tally.count_above(low))

    def _refill(
        self, found: _Found, centers: np.ndarray
    ) -> Generator[Question, Farthest, np.ndarray]:
        """Move the costliest rows that are kept into the clusters that have none."""
        counts = self._rules.join(found.sums)[1]
        empty = np.flatnonzero(counts[:-1] == 0)
        if not len(empty):
            return found.sums
        far = (yield FindFarthest(centers, found.cut)).chosen
        moves = choose_refills(empty, far.labels, counts)
        if not moves:
            return found.sums
        chosen, cells = (np.array(each) for each in zip(*moves, strict=True))
        moved = far.take(chosen)
        points = self._ground.place(moved.rows, self._place.threads)
        return found.sums + self._ground.add_up(points, cells, moved.labels)


def _guess(cuts: list[float]) -> tuple[float, float]:
    """Return where the next cut may be; nowhere if nothing is known."""
    if not cuts:
        return np.inf, np.inf
    width = _CLOSE_BY
    if len(cuts) > 1 and 0 < cuts[-1] < np.inf:
        move = _MOVES * abs(cuts[-1] - cuts[-2]) / cuts[-1]
        width = min(width, max(move, _CLOSEST))
    return cuts[-1] * (1 - width), cuts[-1] * (1 + width)
