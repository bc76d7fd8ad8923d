"""Where the costliest rows begin: the exact n-th largest cost over all blocks."""

from typing import NamedTuple

import numpy as np

from corral._codes import CodeBook
from corral._divergences import COST_STEP
from corral._position import FARTHEST
from corral._states import State, States
from corral._threads import Threads

# Rows whose costs are looked at together.
CHUNK_ROWS = 2**17

# Costs are counted in so many bins, until no more than so many are in the bin of the
# one that is wanted; these are gathered.
_N_BINS = 2**16
_GATHERED = 2**18

# The cut of one iteration is looked for so close to that of the one before, as a part
# of it, and only else in all costs.
_CLOSE_BY = 0.01


class Cut(NamedTuple):
    """The lowest cost among the costliest rows.

    Attributes
    ----------
    cost : float
        Infinite if there are no such rows.
    n_level : tuple of int
        How many rows of each block with this very cost are among them: the first ones.
    """

    cost: float
    n_level: tuple[int, ...]


def chunk_rows(state: State) -> list[slice]:
    """Return the rows of a block in parts that are looked at together."""
    starts = range(0, state.n_rows, CHUNK_ROWS)
    return [slice(start, min(start + CHUNK_ROWS, state.n_rows)) for start in starts]


def cost_rows(state: State, code_costs: np.ndarray, here: slice) -> np.ndarray:
    """Return what rows cost: as much as their codes, and for where they lie."""
    return code_costs[state.codes.inverse[here]] + state.distances[here]


def find_cut(
    states: States,
    table: np.ndarray,
    book: CodeBook,
    n_rows: int,
    guess: float | None = None,
) -> Cut:
    """Find where the ``n_rows`` costliest rows begin.

    Costs are whole multiples of a step, so they can be counted in bins that are ever
    narrower; a handful of passes finds the exact one. Of rows with the same cost, the
    first count as costlier.

    Parameters
    ----------
    states : States
    table : ndarray of shape (n_slots, n_clusters)
        What slots cost; rows cost the least over the clusters.
    book : CodeBook
    n_rows : int
    guess : float, default=None
        Where it may be. If it is close by, one pass is enough.

    Returns
    -------
    cut : Cut
    """
    if n_rows == 0:
        return Cut(np.inf, (0,) * len(states.sizes))
    if guess is not None and int(states.sizes.sum()) > _GATHERED:
        near = [guess * (1 - _CLOSE_BY), guess * (1 + _CLOSE_BY)]
        # No block tells more costs than its share of what may be gathered.
        most = _GATHERED // len(states.sizes)
        gathered = list(states.map(gather_costs, table, *near, most))
        n_wanted = n_rows - sum(part.n_above for part in gathered)
        is_known = all(part.is_whole for part in gathered)
        if is_known and 0 < n_wanted <= sum(len(part.costs) for part in gathered):
            return _settle(gathered, n_wanted)
    low, width = 0.0, _find_limit(table, book)
    n_inside, n_wanted = int(states.sizes.sum()), n_rows
    while n_inside > _GATHERED and width > COST_STEP:
        # No narrower than a step, so that fewer bins may part the one before.
        n_bins = int(min(width / COST_STEP, _N_BINS))
        width /= n_bins
        totals = states.reduce(count_costs, table, low, width)[:n_bins]
        above = totals[::-1].cumsum()
        place = n_bins - 1 - int(np.searchsorted(above, n_wanted))
        n_inside = int(totals[place])
        n_wanted -= int(above[n_bins - 1 - place]) - n_inside
        low += place * width
    if n_inside > _GATHERED:
        # So many rows cost the very same.
        counts = list(states.map(count_level, table, low))
        return Cut(low, share_out(counts, n_wanted))
    return _settle(list(states.map(gather_costs, table, low, low + width)), n_wanted)


class Gathered(NamedTuple):
    """Costs of some rows of a block.

    Attributes
    ----------
    costs : ndarray
    n_above : int
        How many rows cost more.
    is_whole : bool
        Whether there were not too many of them to be told.
    """

    costs: np.ndarray
    n_above: int
    is_whole: bool = True


def _settle(gathered: list[Gathered], n_wanted: int) -> Cut:
    """Return the cut among the costs that were gathered."""
    costs = np.concatenate([part.costs for part in gathered])
    cost = float(np.partition(costs, len(costs) - n_wanted)[len(costs) - n_wanted])
    n_level = n_wanted - int(np.count_nonzero(costs > cost))
    counts = [int(np.count_nonzero(part.costs == cost)) for part in gathered]
    return Cut(cost, share_out(counts, n_level))


def _find_limit(table: np.ndarray, book: CodeBook) -> float:
    """Return a power of two that no cost reaches."""
    largest = np.maximum.reduceat(table.max(axis=1), book.offsets).sum()
    return 2.0 ** int(np.ceil(np.log2(largest + FARTHEST + 1)))


def share_out(counts: list[int], n_wanted: int) -> tuple[int, ...]:
    """Return how many rows of each block are taken if the first ones are."""
    before = np.cumsum(counts) - counts
    return tuple(np.clip(n_wanted - before, 0, counts).tolist())


def count_costs(
    state: State, threads: Threads, table: np.ndarray, low: float, width: float
) -> np.ndarray:
    """Return how many rows have costs in each bin, of shape (n_bins,)."""
    _, code_costs = state.price_codes(table, threads)

    def work(here: slice) -> np.ndarray:
        bins = np.floor((cost_rows(state, code_costs, here) - low) / width)
        inside = bins[(bins >= 0) & (bins < _N_BINS)]
        return np.bincount(inside.astype(np.intp), minlength=_N_BINS)

    return sum(threads.map(work, chunk_rows(state)))


def count_level(state: State, threads: Threads, table: np.ndarray, cost: float) -> int:
    """Return how many rows cost so much."""
    _, code_costs = state.price_codes(table, threads)

    def work(here: slice) -> int:
        return int(np.count_nonzero(cost_rows(state, code_costs, here) == cost))

    return sum(threads.map(work, chunk_rows(state)))


def gather_costs(
    state: State,
    threads: Threads,
    table: np.ndarray,
    low: float,
    high: float,
    most: int | None = None,
) -> Gathered:
    """Return the costs of rows that are at least ``low`` and less than ``high``.

    Where there are more than ``most``, none are told: the guess was of no use.
    """
    _, code_costs = state.price_codes(table, threads)

    def work(here: slice) -> tuple[np.ndarray, int]:
        costs = cost_rows(state, code_costs, here)
        costs = costs[costs >= low]
        inside = costs[costs < high]
        return inside, len(costs) - len(inside)

    parts = list(threads.map(work, chunk_rows(state)))
    if most is not None and sum(len(costs) for costs, _ in parts) > most:
        return Gathered(np.zeros(0), 0, is_whole=False)
    return Gathered(
        np.concatenate([costs for costs, _ in parts]), sum(above for _, above in parts)
    )
