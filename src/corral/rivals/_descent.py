"""Where the centres of K-means-- go, and when they rest, from sums of rows."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from corral._grid import Grid
from corral._outliers import costliest
from corral.rivals._totals import ExactTotal

# With weights the objective may rise, which ends a run; by less than this share of the
# sum of squares it is rounding. So it is where the objectives of two runs differ by
# less than this share of them.
_ROUNDING = 1e-12


def find_best_run(objectives: Sequence[float]) -> int:
    """Return which run has the lowest objective, the first of those that are equal.

    Some are but for rounding: a row that is a cluster costs nothing, whichever it is.
    """
    limit = min(objectives)
    limit += _ROUNDING * abs(limit)
    return next(run for run, each in enumerate(objectives) if each <= limit)


@dataclass(frozen=True)
class Rules:
    """What stays the same in all runs.

    Attributes
    ----------
    grid : Grid
        Of the sums.
    is_cosine : bool
    is_weighted : bool
    max_iter : int
    tol : float
    """

    grid: Grid
    is_cosine: bool
    is_weighted: bool
    max_iter: int
    tol: float

    def join(self, sums: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the sums of the rows and the weights of some cells.

        Parameters
        ----------
        sums : ndarray of shape (n_cells, n_levels, n_features + 1)
            As :class:`~corral.rivals._sweeps.CellSums` has them.
        """
        joined = self.grid.join(sums.reshape(len(sums), -1))
        return joined[:, :-1], joined[:, -1]


class Descent:
    """One run of K-means--, which knows the rows by their exact sums only.

    So it does not matter where the rows are. Sums are those of all clusters, without
    the rows that are set aside, and of these in the last cell.

    Parameters
    ----------
    rules : Rules
    centers : ndarray of shape (n_clusters, n_features), float64
        Where the run starts.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, n_features), float64
    history : list of float
        The objective after each iteration.
    converged : bool
    rose : bool
        Whether the run ended because the last step raised the objective; it is that
        before the last which counts.
    """

    def __init__(self, rules: Rules, centers: np.ndarray) -> None:
        self._rules = rules
        self.centers = centers
        self.history: list[float] = []
        self.converged = False
        self.rose = False

    @property
    def is_over(self) -> bool:
        """Whether there is no further step to take."""
        return self.converged or len(self.history) == self._rules.max_iter

    def begin(
        self, sums: np.ndarray, squares: ExactTotal, all_bases: ExactTotal
    ) -> None:
        """Take note of the rows as they lie around the first centres.

        Parameters
        ----------
        sums : ndarray of shape (n_clusters + 1, n_levels, n_features + 1)
        squares : ExactTotal
            Sum of the squared norms of all rows, times their weights.
        all_bases : ExactTotal
            Sum of what all rows cost beside the parts that depend on the centres.
        """
        self._all_bases = all_bases
        total, weight = (each.sum(axis=0) for each in self._rules.join(sums))
        square = float(np.einsum("i,i->", total, total))
        variance = float(squares) / weight - square / weight**2
        mean_variance = max(variance, 0.0) / len(total)
        self._tolerance = self._rules.tol * mean_variance

    def step(self, sums: np.ndarray) -> np.ndarray:
        """Move to the means of the rows that are kept, of unit length for cosine.

        A centre without rows, or without a direction, stays where it is.
        """
        self._sums = sums[:-1].copy()
        totals, weights = self._rules.join(self._sums)
        sizes = weights
        if self._rules.is_cosine:
            sizes = np.sqrt(np.einsum("ij,ij->i", totals, totals))
        exists = ((weights > 0) & (sizes > 0))[:, None]
        means = totals / np.where(exists, sizes[:, None], 1)
        self._before, self.centers = (
            self.centers,
            np.where(exists, means, self.centers),
        )
        return self.centers

    def judge(self, sums: np.ndarray, aside: ExactTotal) -> None:
        """Find out what the last step brought.

        The centres rest if the sums are what they were: their next step would lead
        nowhere.

        Parameters
        ----------
        sums : ndarray of shape (n_clusters + 1, n_levels, n_features + 1)
            Of the rows as they lie around the new centres.
        aside : ExactTotal
            The part in ``all_bases`` of the rows that are set aside.
        """
        objective = self._objective(sums[:-1], aside)
        if self._rises(objective):
            self.rose = self.converged = True
            return
        self.history.append(objective)
        moves = self.centers - self._before
        distance = np.einsum("ij,ij->", moves, moves)
        rests = np.array_equal(sums[:-1], self._sums)
        self.converged = bool(rests or distance <= self._tolerance)

    def _objective(self, sums: np.ndarray, aside: ExactTotal) -> float:
        """Return the sum of the costs of the rows that are kept, from the sums.

        ``sum |x - c|^2 = sum |x|^2 - 2 c . sum x + |c|^2 sum 1`` in each cluster.
        """
        totals, weights = self._rules.join(sums)
        kept = float(self._all_bases - aside)
        products = float(np.einsum("ij,ij->", self.centers, totals))
        if self._rules.is_cosine:
            return kept - products
        squares = np.einsum("ij,ij->i", self.centers, self.centers)
        return float(kept - 2 * products + squares @ weights)

    def _rises(self, objective: float) -> bool:
        """Tell whether the objective rises, which only weights can make it do."""
        if not self._rules.is_weighted or not self.history:
            return False
        return objective > self.history[-1] + _ROUNDING * float(self._all_bases)

    def conclude(self, total: ExactTotal) -> np.ndarray:
        """Return the history, the last of which is straight from the costs.

        The others may be off by rounding.
        """
        return np.minimum.accumulate([*self.history[:-1], float(total)])


def take_costliest(rows: np.ndarray, costs: np.ndarray, n: int) -> np.ndarray:
    """Return up to ``n`` of some rows, the costliest first; of equal ones the first.

    Parameters
    ----------
    rows : ndarray of int
        Sorted.
    costs : ndarray of shape (n_rows,)
        Of all rows.
    n : int
    """
    rows = rows[costliest(costs[rows], min(len(rows), n))]
    return rows[np.argsort(-costs[rows], kind="stable")]


def choose_refills(
    empty: np.ndarray, cells: np.ndarray, counts: np.ndarray
) -> list[tuple[int, int]]:
    """Choose the rows that move into cells that have none.

    Parameters
    ----------
    empty : ndarray of int
        The cells without rows.
    cells : ndarray of shape (n_candidates,)
        The cells of the rows that may move, the costliest row first.
    counts : ndarray of shape (n_cells,)
        How many rows cells have; kept up to date.

    Returns
    -------
    moves : list of (int, int)
        Which candidate moves into which cell.
    """
    moves = []
    candidates = iter(range(len(cells)))
    for cell in empty.tolist():
        # The only row of a cell would leave that one empty.
        row = next((row for row in candidates if counts[cells[row]] > 1), None)
        if row is None:
            break
        counts[cells[row]] -= 1
        moves.append((row, cell))
    return moves
