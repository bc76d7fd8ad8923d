"""Stage 3 on all rows: passes over blocks, of which only small arrays come back."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from corral._codes import CodeBook, make_keys
from corral._cut import Cut, chunk_rows, cost_rows, find_cut
from corral._divergences import COST_STEP, Divergence
from corral._fusion import (
    FusionSettings,
    Restart,
    measure_separation,
    take_means,
)
from corral._journal import Journal
from corral._progress import FUSING, report
from corral._states import State, States, count_steps
from corral._threads import Threads

_STEPS_OF_ONE = round(1 / COST_STEP)


@dataclass(frozen=True)
class Outcome:
    """Clusters of all rows, and where the outliers begin.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, n_slots)
        Share of each label in each cluster: the centres in partition space.
    shares : ndarray of shape (n_clusters,)
        Share of each cluster in the rows kept.
    cut : Cut
        Where the rows that are set aside begin.
    objective : float
        Mean cost of a row that was kept, Eq. (2) of the paper.
    history : ndarray of shape (n_iter,)
        The objective after each iteration; never rises.
    converged : bool
    """

    centers: np.ndarray
    shares: np.ndarray
    cut: Cut
    objective: float
    history: np.ndarray
    converged: bool


class _Tally(NamedTuple):
    """What the rows of a block, or of several, that are kept add up to.

    Attributes
    ----------
    sums : ndarray of shape (n_slots, n_clusters)
        Weight of each slot in each cluster.
    sizes : ndarray of shape (n_clusters,)
        Weight of each cluster.
    named : ndarray of shape (n_clusters,)
        Weight of the labels that are known in each cluster.
    total : int or float
        Sum of the costs in their steps, exact; with weights, a rounded one.
    """

    sums: np.ndarray
    sizes: np.ndarray
    named: np.ndarray
    total: int | float

    def __add__(self, other):
        return _Tally(
            *(ours + theirs for ours, theirs in zip(self, other, strict=True))
        )


class _Donor(NamedTuple):
    """A code that may refill an empty cluster."""

    cost: float
    key: int
    cluster: int


class _Placement(NamedTuple):
    """Where all rows are: what is set aside, and what the others add up to."""

    cut: Cut
    tally: _Tally


class Whole:
    """The fusion of all rows, wherever they are.

    K-means-- as in :class:`~corral._fusion.Problem`, for one restart at a time. Weights
    of codes and costs are whole numbers of their steps, so that the sums of blocks are
    exact: the outcome does not depend on how rows are cut into blocks.

    Parameters
    ----------
    states : States
    book : CodeBook
    divergence : Divergence
    rarity : ndarray of shape (n_slots,)
        What each slot costs in all clusters.
    settings : FusionSettings
    journal : Journal or None
        Where the outcome of each pass is noted, or was before.
    """

    def __init__(
        self,
        states: States,
        book: CodeBook,
        divergence: Divergence,
        rarity: np.ndarray,
        settings: FusionSettings,
        journal: Journal | None = None,
    ) -> None:
        self.states = states
        self.settings = settings
        self._book = book
        self._divergence = divergence
        self._rarity = rarity
        self._journal = journal
        self._n_passes = 0
        self._guess: float | None = None

    def adopt(self, found: Restart) -> Outcome:
        """Return the outcome of a restart that came to rest on all rows."""
        centers, shares, _ = found.best
        placement = self._settle(self._price(centers, shares))
        return _conclude(found, centers, shares, placement)

    def finish(self, found: Restart, n_iter: int) -> Outcome:
        """Go on for a little with what came to rest on some of the rows."""
        restart = Restart(found.centers, is_even=found.is_even)
        restart.shares = found.shares
        self.solve(restart, min(n_iter, self.settings.max_iter) - 1)
        if not restart.converged:
            # Nobody asks for the means after the last iteration.
            self._place(restart)
        restart.converged = found.converged
        return _conclude(restart, *restart.best)

    def solve(self, restart: Restart, max_iter: int | None = None) -> Restart:
        """Iterate until the objective rests; return the restart."""
        for number in range(self.settings.max_iter if max_iter is None else max_iter):
            report(FUSING, number, number + 1)
            table, placement = self._place(restart)
            if restart.converged:
                break
            self._update(restart, table, placement)
        return restart

    def solve_best(self, starts: Sequence[np.ndarray]) -> Outcome:
        """Restart from each of these centres; return the outcome of the best."""
        restarts = [self.solve(Restart(centers)) for centers in starts]
        n_clusters = self.settings.n_clusters
        most = max(np.count_nonzero(_sizes(each)) for each in restarts)
        if self.settings.separating and most < n_clusters:
            # As the number was asked for, clusters then count as equally large.
            even = [Restart(centers, is_even=True) for centers in starts]
            restarts += [self.solve(each) for each in even]
        if not self.settings.separating:
            best = min(restarts, key=lambda each: each.objective)
        else:
            best = max(restarts, key=self._grade)
        return _conclude(best, *best.best)

    def _grade(self, restart: Restart) -> tuple[int, float]:
        """Return how many clusters kept a row, and how well they are told apart."""
        tally, sizes = restart.best[2].tally, _sizes(restart)
        offsets, n_labels = self._book.offsets, self._book.n_labels
        joint = (
            tally.sums[offsets[j] : offsets[j] + n_labels[j] + 1].T
            for j in self.settings.separating
        )
        return int(np.count_nonzero(sizes)), measure_separation(sizes, joint)

    def _price(self, centers: np.ndarray, shares: np.ndarray) -> np.ndarray:
        """Return what slots cost in each cluster, what is common to all among it."""
        table = self._divergence.cost_table(centers, self._book, shares)
        return table + self._rarity[:, None]

    def _place(self, restart: Restart) -> tuple[np.ndarray, _Placement]:
        """Put rows to the nearest centres and set the costliest aside."""
        table = self._price(restart.centers, restart.shares)
        placement = self._settle(table)
        kept = placement.tally.sizes.sum()
        if not kept:
            raise ValueError(
                f"The {self.settings.n_outliers} outliers have all of sample_weight. "
                "Lower the number of outliers."
            )
        restart.note(placement.tally.total / (kept * _STEPS_OF_ONE), placement)
        return table, placement

    def _settle(self, table: np.ndarray) -> _Placement:
        """Return the outcome of a pass, which may be noted already."""
        if self._journal is None:
            return self._pass(table)
        name = f"pass-{self._n_passes:06d}"
        self._n_passes += 1
        if not self._journal.has(name):
            self._journal.write(name, _pack(self._pass(table)))
        return _unpack(self._journal.read(name))

    def _pass(self, table: np.ndarray) -> _Placement:
        n_outliers = self.settings.n_outliers
        cut = find_cut(self.states, table, self._book, n_outliers, self._guess)
        self._guess = cut.cost
        return _Placement(cut, self._tally(table, cut, {}))

    def _tally(self, table: np.ndarray, cut: Cut, moves: dict[int, int]) -> _Tally:
        """Add up the rows that are kept, with some codes moved to other clusters."""
        return self.states.reduce(tally_kept, table, cut.cost, moves, each=cut.n_level)

    def _update(
        self, restart: Restart, table: np.ndarray, placement: _Placement
    ) -> None:
        """Set the centres to the means of their clusters, empty ones refilled."""
        tally = self._refill(table, placement)
        filled = tally.sizes[:, None] > 0
        means = take_means(tally.sums, self._book)
        restart.centers = np.where(filled, means, restart.centers)
        if not restart.is_even and tally.named.any():
            # A cluster is named once for each label that is known.
            restart.shares = tally.named / tally.named.sum()

    def _refill(self, table: np.ndarray, placement: _Placement) -> _Tally:
        """Give each cluster that kept no row the costliest code of another.

        Its labels then cost nothing. With a price on naming a small cluster the
        objective can rise all the same, and the restart ends at the state before.
        """
        cut, tally = placement
        empty = np.flatnonzero(tally.sizes == 0)
        if not len(empty):
            return tally
        # What is common to all clusters does not make a code costly.
        labels_only = table - self._rarity[:, None]
        # A cluster that has more codes than there are empty ones never runs out.
        found = self.states.map(
            list_donors, table, labels_only, cut.cost, len(empty) + 1, each=cut.n_level
        )
        moves = _choose_moves([each for part in found for each in part], empty)
        return self._tally(table, cut, moves) if moves else tally


def _sizes(restart: Restart) -> np.ndarray:
    return restart.best[2].tally.sizes


def _conclude(
    restart: Restart, centers: np.ndarray, shares: np.ndarray, placement: _Placement
) -> Outcome:
    return Outcome(
        centers=centers,
        shares=shares,
        cut=placement.cut,
        objective=restart.objective,
        history=np.array(restart.history),
        converged=restart.converged,
    )


def _pack(placement: _Placement) -> dict[str, np.ndarray]:
    """Return the arrays of a placement, for a journal."""
    cut, tally = placement
    return {
        "cost": np.array(cut.cost),
        "n_level": np.array(cut.n_level),
        "sums": tally.sums,
        "sizes": tally.sizes,
        "named": tally.named,
        # Too large for any number of NumPy's; with weights it is none that is whole.
        "total": np.array(repr(tally.total)),
    }


def _unpack(arrays: dict[str, np.ndarray]) -> _Placement:
    cut = Cut(float(arrays["cost"]), tuple(arrays["n_level"].tolist()))
    text = str(arrays["total"])
    total = float(text) if "." in text or "e" in text else int(text)
    tally = _Tally(arrays["sums"], arrays["sizes"], arrays["named"], total)
    return _Placement(cut, tally)


def find_aside(
    state: State, threads: Threads, code_costs: np.ndarray, cut: float, n_level: int
) -> np.ndarray:
    """Return the rows of a block that are set aside, sorted.

    Parameters
    ----------
    state : State
    threads : Threads
    code_costs : ndarray of shape (n_codes,)
    cut : float
        Rows that cost more are set aside.
    n_level : int
        So many rows with this very cost are, too: the first ones.
    """

    def work(here: slice) -> tuple[np.ndarray, np.ndarray]:
        costs = cost_rows(state, code_costs, here)
        rows = np.flatnonzero(costs >= cut)
        return rows + here.start, costs[rows] == cut

    parts = list(threads.map(work, chunk_rows(state)))
    rows = np.concatenate([rows for rows, _ in parts])
    is_level = np.concatenate([level for _, level in parts])
    return rows[~is_level | (np.cumsum(is_level) <= n_level)]


def _keep(
    state: State, threads: Threads, code_costs: np.ndarray, cut: float, n_level: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows that are set aside, and the weight of each code that is kept."""
    if np.isinf(cut):
        return np.zeros(0, dtype=np.intp), state.code_weights
    aside = find_aside(state, threads, code_costs, cut, n_level)
    weights = None if state.weights is None else state.weights[aside]
    codes = state.codes.inverse[aside]
    gone = np.bincount(codes, weights, minlength=len(state.code_weights))
    return aside, state.code_weights - gone


def tally_kept(
    state: State,
    threads: Threads,
    table: np.ndarray,
    cut: float,
    moves: dict[int, int],
    n_level: int,
) -> _Tally:
    """Add up the rows of a block that are kept.

    Parameters
    ----------
    state : State
    threads : Threads
    table : ndarray of shape (n_slots, n_clusters)
    cut : float
    moves : dict of int to int
        Keys of codes, and the clusters that these are moved to.
    n_level : int

    Returns
    -------
    tally : _Tally
    """
    labels, code_costs = state.price_codes(table, threads)
    aside, kept = _keep(state, threads, code_costs, cut, n_level)
    if moves:
        labels = _move(labels, make_keys(state.codes), moves)
    n_clusters = table.shape[1]

    def memberships(here: slice) -> np.ndarray:
        shares = np.zeros((len(kept[here]), n_clusters))
        shares[np.arange(len(shares)), labels[here]] = kept[here]
        return shares

    return _Tally(
        sums=state.one_hot.add_up(memberships, threads),
        sizes=np.bincount(labels, kept, minlength=n_clusters),
        named=np.bincount(labels, kept * state.n_known, minlength=n_clusters),
        total=_add_up_costs(state, code_costs, kept, aside),
    )


def _move(labels: np.ndarray, keys: np.ndarray, moves: dict[int, int]) -> np.ndarray:
    labels = labels.copy()
    for key, cluster in moves.items():
        labels[keys == np.uint64(key)] = cluster
    return labels


def _add_up_costs(
    state: State, code_costs: np.ndarray, kept: np.ndarray, aside: np.ndarray
) -> int | float:
    """Return the sum of the costs of rows that are kept, in steps of costs."""
    if state.weights is not None:
        pulls = state.weights * state.distances
        # Added up by themselves: what is set aside can be far larger.
        far = np.delete(pulls, aside).sum()
        return float(code_costs @ kept + far) * _STEPS_OF_ONE
    whole = np.floor(code_costs)
    parts = ((code_costs - whole) * _STEPS_OF_ONE).astype(np.int64)
    near = int(whole @ kept) * _STEPS_OF_ONE + int(parts @ kept.astype(np.int64))
    return near + state.distance_steps - count_steps(state.distances[aside])


def list_donors(
    state: State,
    threads: Threads,
    table: np.ndarray,
    labels_only: np.ndarray,
    cut: float,
    n_codes: int,
    n_level: int,
) -> list[_Donor]:
    """Return the costliest codes of each cluster that are kept.

    Parameters
    ----------
    state : State
    threads : Threads
    table : ndarray of shape (n_slots, n_clusters)
    labels_only : ndarray of shape (n_slots, n_clusters)
        Without what is common to all clusters.
    cut : float
    n_codes : int
        So many of each cluster at most.
    n_level : int

    Returns
    -------
    donors : list of _Donor
    """
    _, code_costs = state.price_codes(table, threads)
    _, kept = _keep(state, threads, code_costs, cut, n_level)
    (labels,), (costs,) = state.one_hot.find_nearest([labels_only], threads)
    keys = make_keys(state.codes)
    present = np.flatnonzero(kept > 0)
    order = present[np.lexsort((keys[present], -costs[present]))]
    return [
        _Donor(float(costs[code]), int(keys[code]), int(labels[code]))
        for k in range(table.shape[1])
        for code in order[labels[order] == k][:n_codes]
    ]


def _choose_moves(found: list[_Donor], empty: np.ndarray) -> dict[int, int]:
    """Return which codes, by their keys, refill which clusters."""
    codes = {each.key: each for each in found}
    donors = sorted(codes.values(), key=lambda each: (-each.cost, each.key))
    sizes = Counter(each.cluster for each in donors)
    moves: dict[int, int] = {}
    for cluster in empty.tolist():
        donors = [each for each in donors if each.cost > 0 and sizes[each.cluster] > 1]
        if not donors:
            break
        first = donors.pop(0)
        sizes[first.cluster] -= 1
        sizes[cluster] += 1
        moves[first.key] = cluster
    return moves
