"""Rows against one set of centres: labels, costs and exact sums, block by block."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from scipy import sparse

from corral._assign import rounding_bound
from corral._centers import weigh_rows
from corral._grid import Grid
from corral._outliers import costliest
from corral._threads import Threads
from corral._tiles import (
    RowSpace,
    count_terms,
    measure_apart,
    multiply_rows,
    row_squares,
)
from corral._validation import check_squares

# A block should be so large that the Python calls per block do not count. One sweep
# with 3 centres on 2 threads takes over 494,021 x 38 rows 10 ms in blocks of 8,192 rows
# and 8 ms in blocks of 52,428; over 58,000 x 9 rows 1.3 ms in blocks and 0.5 ms in one.
_MAX_BLOCK_ROWS = 2**16
_MAX_BLOCK_VALUES = 2**21
_MAX_BLOCK_SCORES = 2**19

# Less than so many values are not worth a second thread.
_MIN_SHARED_VALUES = 2**20

# Work in float64 is done in pieces of about so many values. Smaller ones fit the cache
# better, but two threads that make short calls wait for each other: all costs of
# 494,021 x 38 rows take 39 ms on 2 threads with 2**16 values and 22 ms with 2**18.
_PIECE_VALUES = 2**18

# The shift is the median of about this many rows.
_MEDIAN_ROWS = 2**9

# Rows that are laid side by side to find the largest and smallest values.
_FOLD = 64

# Larger scales of a column could overflow in float32.
_MAX_SCALE = 2.0**64

# How far apart the bounds of a score can be, in rounding errors; see `Points.assign`.
_SLACK = 24

# Costs are rounded to 53 - 12 bits, twelve digits: rows that are equally far but for
# the rounding of float64, as the two rows of a cluster are, tie whatever their storage.
_ROUNDED_BITS = 12
# What this may change in a cost, as a share of |x|^2 + |r|^2 with r the centre nearest
# to the origin; several times as much as it does.
_ROUNDED_SHARE = 2.0 ** (_ROUNDED_BITS - 50)

# A cost that is so small a part of the squares of both ends has lost so many digits if
# it comes from products, and is taken from differences.
_CANCELLED = 2.0 ** (2 - _ROUNDED_BITS)


def find_ends(X) -> np.ndarray:
    """Return the largest and the smallest value of each column, (2, n_features)."""
    if sparse.issparse(X):
        ends = [end.toarray().ravel() for end in (X.max(axis=0), X.min(axis=0))]
        return np.stack(ends)
    # Many rows side by side: NumPy is slow along an axis whose rows are short.
    n_folded = len(X) // _FOLD
    tops, bottoms = [X[n_folded * _FOLD :]], [X[n_folded * _FOLD :]]
    if n_folded:
        folded = X[: n_folded * _FOLD].reshape(n_folded, -1)
        tops.append(folded.max(axis=0).reshape(_FOLD, -1))
        bottoms.append(folded.min(axis=0).reshape(_FOLD, -1))
    return np.stack(
        [np.concatenate(tops).max(axis=0), np.concatenate(bottoms).min(axis=0)]
    )


def fit_space(metric: str, X, ends: np.ndarray) -> RowSpace:
    """Choose the space for rows, from some of them and from the range of all.

    Parameters
    ----------
    metric : {"euclidean", "cosine"}
    X : ndarray or CSR of shape (n_rows, n_features)
    ends : ndarray of shape (2, n_features)
        As :func:`find_ends` returns them.
    """
    return choose_space(metric, X[:: spread_out(X.shape[0])], ends)


def spread_out(n_rows: int) -> int:
    """Return the step from one to the next of some rows that stand for all."""
    return max(n_rows // _MEDIAN_ROWS, 1)


def choose_space(metric: str, some, ends: np.ndarray) -> RowSpace:
    """Choose the space for rows, from some of them and from the range of all.

    The median of some rows serves as well as that of all, which takes longer than a
    sweep. The largest and smallest values come along because they set the scale.

    Parameters
    ----------
    metric : {"euclidean", "cosine"}
    some : ndarray or CSR of shape (n_some, n_features)
        Every so many rows; see :func:`spread_out`.
    ends : ndarray of shape (2, n_features)
        Of all rows.
    """
    if metric == "cosine":
        return RowSpace.fit(metric, some)
    is_sparse = sparse.issparse(some)
    # An array of SciPy, whatever the rows are of, of the type that they have.
    ends = sparse.csr_array(ends.astype(some.dtype)) if is_sparse else ends
    stack = sparse.vstack if is_sparse else np.concatenate
    space = RowSpace.fit(metric, stack([some, ends]))
    check_squares(1 / space.scale, "distance of a value of X from the middle")
    return space


def choose_grid(
    space: RowSpace,
    ends: np.ndarray,
    squares: np.ndarray,
    n_rows: int,
    weights: np.ndarray | None = None,
) -> Grid:
    """Choose the grid on which rows are added up; the last column is the weight.

    One level does where its steps move a usual row no farther than the errors of a
    plain sum in the precision of the rows, which grow as the root of their number. The
    median, because one far row makes the steps large and must not be the measure.
    Weights have their own range and take two levels.

    Parameters
    ----------
    space : RowSpace
    ends : ndarray of shape (2, n_features)
        Largest and smallest value of each column, of all rows.
    squares : ndarray of shape (n_some,)
        Squared norms of some rows in the space; see :func:`spread_out`.
    n_rows : int
    weights : ndarray of shape (n_rows,), default=None
    """
    # The rows of a sphere have no value above 1.
    largest = np.ones(ends.shape[1])
    if space.metric != "cosine":
        largest = np.abs(space.place(ends)).max(axis=0).astype(np.float64)
    heaviest = 1.0 if weights is None else weights.max()
    grid = Grid.fit(np.append(largest, 1.0) * heaviest, n_rows)
    steps = grid.steps[:-1]
    step = np.sqrt(np.einsum("i,i->", steps, steps)) / 2
    error = np.sqrt(n_rows) * np.finfo(space.dtype).eps
    if weights is None and step <= error * np.sqrt(np.median(squares)):
        return replace(grid, n_levels=1)
    return grid


def place_centers(space: RowSpace, centers: np.ndarray) -> np.ndarray:
    """Return centres given in the units of the rows in their space, in float64."""
    wide = replace(space, dtype=np.dtype(np.float64))
    return wide.place(np.asarray(centers, dtype=np.float64))


def recover_centers(space: RowSpace, centers: np.ndarray) -> np.ndarray:
    """Return centres of the space in the units and the precision of the rows."""
    shift = 0 if space.shift is None else space.shift
    return (centers / space.scale + shift).astype(space.dtype)


def recover_costs(space: RowSpace, costs):
    """Return costs of the space in the units of the rows."""
    if space.metric == "cosine" or space.scale == 1:
        return costs
    # Twice, because the square of the scale may not be a number of float64.
    with np.errstate(over="ignore", under="ignore"):
        return costs / space.scale / space.scale


class Centers(NamedTuple):
    """Centres in the form that products with rows need.

    Attributes
    ----------
    values : ndarray of shape (n_clusters, n_features), float64
    halves : ndarray of shape (n_clusters,)
        ``|c|^2 / 2``; zero for cosine.
    sizes : ndarray of shape (n_clusters,)
        ``|c|``.
    matrix : ndarray of shape (n_padded, n_features + 2)
        Centres, biases and error bounds in the precision of the rows, and zeros.
    slack : float
        The centres' part of the slack of all scores.
    """

    values: np.ndarray
    halves: np.ndarray
    sizes: np.ndarray
    matrix: np.ndarray
    slack: float


@dataclass
class Assignment:
    """The nearest centre of each row, and bounds of what the row costs there.

    Attributes
    ----------
    centers : Centers
    labels : ndarray of shape (n_rows,), int32
    floors, ceilings : ndarray of shape (n_rows,)
        Bounds of the costs, up to a factor that all rows share.
    """

    centers: Centers
    labels: np.ndarray
    floors: np.ndarray
    ceilings: np.ndarray


class Points:
    """Rows in the space of a metric, ready for products with centres.

    A row is nearest to the centre with the largest score ``x.c - |c|^2 / 2``, or
    ``x.c`` for cosine, and costs ``|x - c|^2`` or ``1 - x.c`` there.

    Parameters
    ----------
    X : ndarray or CSR of shape (n_rows, n_features), float32 or float64
    space : RowSpace
    n_clusters : int
        How many centres there will be; sets the size of a block.
    threads : Threads
    n_terms : int, default=None
        How many values a row stores at most, if these are not all rows.

    Attributes
    ----------
    values : ndarray or csr_array of shape (n_rows, n_features)
    squares : ndarray of shape (n_rows,), float64
        ``|x|^2``.
    is_cosine : bool
    """

    def __init__(
        self,
        X,
        space: RowSpace,
        n_clusters: int,
        threads: Threads,
        n_terms: int | None = None,
    ) -> None:
        self.n_rows, self.n_features = X.shape
        self.is_cosine = space.metric == "cosine"
        self.is_sparse = sparse.issparse(X)
        self.dtype = space.dtype
        self.threads = threads
        self.squares = np.empty(self.n_rows)
        self.values = self._place(X, space)
        self._block_rows = self._choose_block_rows(n_clusters)
        self._buffers: dict[int, _Buffers] = {}
        # A sum has at most so many terms: those of a row, the bias and the bound.
        if n_terms is None:
            n_terms = count_terms(X)
        self._gamma = rounding_bound(n_terms, self.dtype)
        self._gamma_wide = rounding_bound(n_terms, np.float64)
        bases = 1.0 if self.is_cosine else self.squares / 2
        rounded = _ROUNDED_SHARE * (1.0 if self.is_cosine else self.squares)
        # New rows may lie anywhere; what overflows is settled in float64, or refused.
        with np.errstate(over="ignore", invalid="ignore"):
            self._bases = np.full(
                self.n_rows, bases * (1 - self._gamma) - rounded, self.dtype
            )
            # A row of zeros costs 1 with any direction, and that is rounded, too.
            largest = (
                np.maximum(self.squares, bases) if self.is_cosine else self.squares
            )
            self._slacks = (self._slack_share * largest).astype(self.dtype)

    @property
    def base_costs(self) -> np.ndarray:
        """What rows cost beside the parts that depend on centres, (n_rows,)."""
        return np.ones(self.n_rows) if self.is_cosine else self.squares

    def _place(self, X, space: RowSpace):
        """Fill the squares and return the rows in the space."""
        if self.is_sparse:
            points = space.place(sparse.csr_array(X))
            self.squares[:] = row_squares(points)
            return points
        # Beside each row a one and its norm, which meet the biases and the error
        # bounds of the centres in the product.
        self._augmented = np.empty((self.n_rows, self.n_features + 2), self.dtype)

        # NumPy is slow along an axis whose rows are short: take the shift from all rows
        # of a piece as a whole.
        shifts = None
        if space.shift is not None:
            shifts = np.tile(space.shift, (min(self.piece_rows, self.n_rows), 1))

        def place_piece(here: slice, buffers: np.ndarray) -> None:
            wide = buffers[0]
            shift = None if shifts is None else shifts[: len(wide)]
            points = replace(space, shift=shift).place(X[here])
            wide[:] = points
            self.squares[here] = multiply_rows(wide, wide)
            self._augmented[here, : self.n_features] = points
            self._augmented[here, -2] = 1
            self._augmented[here, -1] = np.sqrt(self.squares[here])

        self._over_pieces(place_piece)
        return self._augmented[:, : self.n_features]

    def _choose_block_rows(self, n_clusters: int) -> int:
        fitting = min(
            _MAX_BLOCK_VALUES // (self.n_features + 2),
            _MAX_BLOCK_SCORES // n_clusters,
            _MAX_BLOCK_ROWS,
        )
        n_blocks = -(-self.n_rows // max(fitting, 64))
        if n_blocks > 1:
            # As many for each thread.
            n_blocks += -n_blocks % self.threads.n_threads
        return -(-self.n_rows // n_blocks)

    def share(
        self, n_items: int, n_rows: int, work: Callable[[int, range], None]
    ) -> None:
        """Let the threads share work on rows; one of them does what is little."""
        if n_rows * self.n_features < _MIN_SHARED_VALUES:
            work(0, range(n_items))
        else:
            self.threads.share(n_items, work)

    def read(self, rows: np.ndarray | slice):
        """Return the values of some rows."""
        if self.is_sparse or isinstance(rows, slice):
            return self.values[rows]
        # Whole rows lie together in memory, which makes it twice as fast.
        return self.read_augmented(rows)[:, : self.n_features]

    def read_augmented(self, rows: np.ndarray | slice) -> np.ndarray:
        """Return some dense rows, each with a one and its norm."""
        if isinstance(rows, slice):
            return self._augmented[rows]
        return self._augmented.take(rows, axis=0)

    def pack(self, centers: np.ndarray) -> Centers:
        """Pack centres for products with the rows.

        Parameters
        ----------
        centers : ndarray of shape (n_clusters, n_features), float64
        """
        squares = np.einsum("ij,ij->i", centers, centers)
        halves = np.zeros(len(centers)) if self.is_cosine else squares / 2
        sizes = np.sqrt(squares)
        matrix = np.zeros((_pad(len(centers)), self.n_features + 2), self.dtype)
        matrix[: len(centers), : self.n_features] = centers
        nearest = float(squares.min())
        # The same for all scores, it makes room for the rounding of the costs.
        rounded = _ROUNDED_SHARE * nearest
        matrix[: len(centers), -2] = rounded - (1 - self._gamma) * halves
        matrix[: len(centers), -1] = self._gamma * sizes
        return Centers(centers, halves, sizes, matrix, self._slack_share * nearest)

    @property
    def _slack_share(self) -> float:
        return _SLACK * self._gamma + 4 * _ROUNDED_SHARE

    def assign(self, centers: Centers) -> Assignment:
        """Find each row's nearest centre.

        The product gives upper bounds of the scores: each score plus
        ``gamma (|x||c| + |c|^2 / 2)``, a bound of its rounding error. With r the
        centre nearest to the origin, the centre with the best bound is hardly farther
        from x than r, so ``|c| <= 2|x| + |r|`` but for rounding, and its bound exceeds
        its score by no more than ``2 gamma (|x||c| + |c|^2 / 2)``, which is less than
        ``gamma (11 |x|^2 + 4 |r|^2)``. The slack is ``24 gamma (|x|^2 + |r|^2)`` or
        more and covers this and the rounding of the rest. A row has its label at once
        if only one bound comes as near as the slack to the best; the few others are
        settled in float64, the lower label first where two centres are equally near but
        for rounding. So a label does not depend on the rows beside it, on the size of
        the blocks or on how BLAS adds.

        Parameters
        ----------
        centers : Centers

        Returns
        -------
        assignment : Assignment
        """
        found = Assignment(
            centers,
            labels=np.empty(self.n_rows, dtype=np.int32),
            floors=np.empty(self.n_rows, dtype=self.dtype),
            ceilings=np.empty(self.n_rows, dtype=self.dtype),
        )
        step = self._block_rows
        doubtful: list[np.ndarray] = []

        def work(number: int, share: range) -> None:
            buffers = self._find_buffers(number, len(centers.values))
            with np.errstate(over="ignore", invalid="ignore"):
                for index in share:
                    here = slice(index * step, min((index + 1) * step, self.n_rows))
                    doubtful.append(self._assign_block(here, found, buffers))

        self.share(-(-self.n_rows // step), self.n_rows, work)
        self._settle(np.concatenate(doubtful), found)
        return found

    def _find_buffers(self, number: int, n_clusters: int) -> "_Buffers":
        """Return the buffers of a thread."""
        if number not in self._buffers:
            n_rows = min(self._block_rows, self.n_rows)
            self._buffers[number] = _Buffers(n_clusters, n_rows, self.dtype)
        return self._buffers[number]

    def _assign_block(
        self, here: slice, found: Assignment, buffers: "_Buffers"
    ) -> np.ndarray:
        """Write labels and bounds of costs of a block; return the doubtful rows."""
        centers = found.centers
        n_clusters = len(centers.values)
        labels, floors, ceilings = (
            each[here] for each in (found.labels, found.floors, found.ceilings)
        )
        views = buffers.cut(len(labels))
        best, slacks, codes = views.best, views.slacks, views.codes
        self._score(here, centers, views.products)
        scores = views.products[:n_clusters]
        np.maximum.reduce(scores, axis=0, out=best)
        np.add(self._slacks[here], self.dtype.type(centers.slack), out=slacks)
        np.subtract(self._bases[here], best, out=floors)
        np.add(floors, slacks, out=ceilings)
        best -= slacks
        np.greater_equal(scores, best, out=views.is_candidate)
        # With K clusters, a candidate k counts K + k: one candidate gives a sum from K
        # to 2K - 1, and two or more give at least 2K. One sum takes the place of a
        # count and a search along a short axis.
        np.multiply(views.is_candidate.view(np.uint8), buffers.marks, out=views.marked)
        np.add.reduce(views.marked, axis=0, dtype=codes.dtype, out=codes)
        codes -= codes.dtype.type(n_clusters)
        labels[:] = codes
        # Unsigned: no candidate at all, as where a product overflows, is doubtful too.
        return np.flatnonzero(codes >= n_clusters) + here.start

    def _score(self, here: slice, centers: Centers, out: np.ndarray) -> None:
        """Write upper bounds of the scores, of shape (n_padded, n_rows)."""
        if not self.is_sparse:
            np.matmul(centers.matrix, self._augmented[here].T, out=out)
            return
        products = _slice_csr(self.values, here) @ centers.matrix[:, :-2].T
        norms = np.sqrt(self.squares[here]).astype(self.dtype)
        np.multiply(centers.matrix[:, -1:], norms, out=out)
        out += centers.matrix[:, -2:-1]
        out += products.T

    def _settle(self, doubtful: np.ndarray, found: Assignment) -> None:
        """Write the labels of some rows, computed in float64."""
        step = max(_PIECE_VALUES // (self.n_features + 2), 64)

        def work(_: int, share: range) -> None:
            with np.errstate(over="ignore", invalid="ignore"):
                for index in share:
                    rows = doubtful[index * step : (index + 1) * step]
                    found.labels[rows] = self._label(rows, found.centers)

        self.share(-(-len(doubtful) // step), len(doubtful), work)

    def _label(self, rows: np.ndarray, centers: Centers) -> np.ndarray:
        points = self.read(rows).astype(np.float64)
        scores = points @ centers.values.T - centers.halves
        # Equal up to rounding is equal: rows on a border, as whole numbers often are,
        # get the same label however their products were added up.
        norms = np.sqrt(self.squares[rows])[:, None]
        errors = self._gamma_wide * (norms * centers.sizes + centers.halves)
        best = scores.argmax(axis=1)[:, None]
        least = np.take_along_axis(scores - errors, best, axis=1)
        return (scores + errors >= least).argmax(axis=1)

    def find_costliest(self, found: Assignment, n: int) -> np.ndarray:
        """Return the ``n`` costliest rows, sorted; of equal ones the first.

        The bounds decide about nearly all rows: a row whose lower bound lies above the
        (n + 1)-th largest upper bound is one of them, and one whose upper bound lies
        below the n-th largest lower bound is not. Only the rest need exact costs.
        """
        if n == 0:
            return np.zeros(0, dtype=np.intp)
        lowest = np.partition(found.floors, self.n_rows - n)[self.n_rows - n]
        perhaps = np.flatnonzero(found.ceilings >= lowest)
        if len(perhaps) == n:
            return perhaps
        floors, ceilings = found.floors[perhaps], found.ceilings[perhaps]
        highest = np.partition(ceilings, len(perhaps) - n - 1)[len(perhaps) - n - 1]
        is_sure = floors > highest
        surely, perhaps = perhaps[is_sure], perhaps[~is_sure]
        costs = self.costs(perhaps, found.labels[perhaps], found.centers)
        chosen = perhaps[costliest(costs, n - len(surely))]
        return np.sort(np.concatenate([surely, chosen]))

    def costs(
        self, rows: np.ndarray | slice, labels: np.ndarray, centers: Centers
    ) -> np.ndarray:
        """Return what rows cost in clusters, in float64.

        Each cost is added up in one order, so that it does not depend on the other
        rows, and rounded to twelve digits.

        Parameters
        ----------
        rows : ndarray of indices, or slice(None)
        labels : ndarray of shape (n_chosen,)
        centers : Centers

        Returns
        -------
        costs : ndarray of shape (n_chosen,)
        """
        costs = np.empty(len(labels))

        def cost_piece(here: slice, buffers: np.ndarray) -> None:
            chosen = here if isinstance(rows, slice) else rows[here]
            exact = self._cost_piece(chosen, labels[here], centers, buffers)
            costs[here] = _round(exact)

        self._over_pieces(cost_piece, len(labels))
        return costs

    def all_costs(self, centers: Centers) -> np.ndarray:
        """Return what each row costs in each cluster, (n_rows, n_clusters)."""
        costs = np.empty((self.n_rows, len(centers.values)))
        for label in range(len(centers.values)):
            labels = np.full(self.n_rows, label)
            costs[:, label] = self.costs(slice(None), labels, centers)
        return costs

    def _cost_piece(
        self, rows, labels: np.ndarray, centers: Centers, buffers: np.ndarray
    ) -> np.ndarray:
        if self.is_sparse:
            points = self.read(rows)
            products = _multiply_sparse(points, labels, centers)
            if not self.is_cosine:
                ends = self.squares[rows] + 2 * centers.halves[labels]
                costs = ends - 2 * products
                # Of others, no digit is lost that is not rounded away.
                lost = np.flatnonzero(costs <= _CANCELLED * ends)
                costs[lost] = measure_apart(points, centers.values, lost, labels)
                return costs
        else:
            points, nearest = buffers
            points[:] = self.read(rows)
            # Without "clip" it would go through a buffer of its own.
            centers.values.take(labels, axis=0, out=nearest, mode="clip")
            if not self.is_cosine:
                points -= nearest
                return multiply_rows(points, points)
            products = multiply_rows(points, nearest)
        return np.maximum(1 - products, 0)

    def _over_pieces(
        self, work_on: Callable[[slice, np.ndarray], None], n_rows: int | None = None
    ) -> None:
        """Call a function with all rows, or the first so many, piece by piece.

        It also gets two buffers of the shape of the piece, in float64.
        """
        n_rows = self.n_rows if n_rows is None else n_rows
        step = self.piece_rows

        def work(_: int, share: range) -> None:
            n_columns = 0 if self.is_sparse else self.n_features
            buffers = np.empty((2, min(step, n_rows), n_columns))
            # Here and not around it: each thread has settings of its own.
            with np.errstate(over="ignore", invalid="ignore"):
                for index in share:
                    here = slice(index * step, min((index + 1) * step, n_rows))
                    work_on(here, buffers[:, : here.stop - here.start])

        self.share(-(-n_rows // step), n_rows, work)

    @property
    def piece_rows(self) -> int:
        """Rows that are worked on at once in float64."""
        if self.is_sparse:
            return _MAX_BLOCK_ROWS
        return max(_PIECE_VALUES // (self.n_features + 2), 64)


def _multiply_sparse(points, labels: np.ndarray, centers: Centers) -> np.ndarray:
    owners = np.repeat(np.arange(len(labels)), np.diff(points.indptr))
    terms = points.data * centers.values[labels[owners], points.indices]
    return np.bincount(owners, terms, minlength=len(labels))


class _Views(NamedTuple):
    products: np.ndarray
    is_candidate: np.ndarray
    marked: np.ndarray
    best: np.ndarray
    slacks: np.ndarray
    codes: np.ndarray


class _Buffers:
    """Buffers of one thread for a sweep, made once and cut to each block."""

    def __init__(self, n_clusters: int, n_rows: int, dtype: np.dtype) -> None:
        # Wide enough for the sum of all marks.
        mark_dtype = np.min_scalar_type(3 * n_clusters**2 // 2)
        self.marks = np.arange(n_clusters, 2 * n_clusters, dtype=mark_dtype)[:, None]
        self._whole = _Views(
            products=np.empty((_pad(n_clusters), n_rows), dtype),
            is_candidate=np.empty((n_clusters, n_rows), bool),
            marked=np.empty((n_clusters, n_rows), mark_dtype),
            best=np.empty(n_rows, dtype),
            slacks=np.empty(n_rows, dtype),
            codes=np.empty(n_rows, mark_dtype),
        )

    def cut(self, n_rows: int) -> _Views:
        """Return contiguous buffers for so many rows."""
        return _Views(
            *(
                each.reshape(-1)[: each.size // each.shape[-1] * n_rows].reshape(
                    *each.shape[:-1], n_rows
                )
                for each in self._whole
            )
        )


class CellSums:
    """The exact sum of the rows of each cell, which follows them when they move.

    Sums are exact (see :class:`~corral._grid.Grid`), so a row that comes and goes
    leaves nothing behind, and neither threads nor the order of the moves change a bit.

    Parameters
    ----------
    points : Points
    weights : ndarray of shape (n_rows,) or None
    n_cells : int
    grid : Grid
        As :func:`choose_grid` returns it.

    Attributes
    ----------
    values : ndarray of shape (n_cells, n_levels, n_features + 1)
        Whole numbers of each level of the grid.
    """

    def __init__(
        self,
        points: Points,
        weights: np.ndarray | None,
        n_cells: int,
        grid: Grid,
    ) -> None:
        self._points = points
        self._weights = weights
        self._cells = np.arange(n_cells, dtype=np.int32)[:, None]
        self._lock = threading.Lock()
        self._grid = grid
        if not points.is_sparse:
            self._scales = self._tile_scales()
        self.clear()

    def _tile_scales(self) -> np.ndarray:
        """Return what the columns of a piece are multiplied by, for all its rows.

        NumPy is slow along an axis whose rows are short, so a piece is multiplied as a
        whole. Of the augmented columns, the ones give the weights and the norms are not
        needed.
        """
        scales = np.append(1 / self._grid.steps, 0.0)
        is_safe = self._weights is None and scales.max() < _MAX_SCALE
        dtype = self._points.dtype if is_safe else np.dtype(np.float64)
        n_rows = min(self._points.piece_rows, self._points.n_rows)
        return np.tile(scales.astype(dtype), (n_rows, 1))

    @property
    def n_cells(self) -> int:
        """Number of cells."""
        return len(self._cells)

    def clear(self) -> None:
        """Take all rows out."""
        shape = (self.n_cells, self._grid.n_levels, len(self._grid.steps))
        self.values = np.zeros(shape)

    def move(
        self, rows: np.ndarray | slice, old: np.ndarray | None, new: np.ndarray
    ) -> None:
        """Take rows out of their old cells, if any, and put them into new ones.

        A cell that is not there, such as -1, stands for none.

        Parameters
        ----------
        rows : ndarray of indices, or slice(None)
        old, new : ndarray of shape (n_chosen,)
        """
        step = self._points.piece_rows
        add_parts = self._add_sparse if self._points.is_sparse else self._add_dense

        def work(_: int, share: range) -> None:
            change = np.zeros_like(self.values)
            for index in share:
                here = slice(index * step, min((index + 1) * step, len(new)))
                chosen = here if isinstance(rows, slice) else rows[here]
                signs = (self._cells == new[here]).astype(np.float64)
                if old is not None:
                    signs -= self._cells == old[here]
                add_parts(change, signs, chosen)
            with self._lock:
                self.values += change

        self._points.share(-(-len(new) // step), len(new), work)

    def _add_sparse(self, sums: np.ndarray, signs: np.ndarray, rows) -> None:
        """Add rows to the cells, or take them away, as the signs say."""
        weights = None if self._weights is None else self._weights[rows]
        parts = self._grid.split(weigh_rows(self._points.values[rows], weights))
        sums += (parts.T.tocsr() @ signs.T).T.reshape(sums.shape)

    def _add_dense(self, sums: np.ndarray, signs: np.ndarray, rows) -> None:
        """Add rows to the cells, or take them away, as the signs say.

        Level by level, and in float32 where the rows are: products with powers of two
        are exact, and so are differences of neighbours.
        """
        values = self._points.read_augmented(rows)
        multiples = values * self._scales[: len(values)]
        if self._weights is not None:
            multiples *= self._weights[rows, None]
        for level in range(self._grid.n_levels):
            whole = np.rint(multiples)
            parts = signs @ whole.astype(np.float64, copy=False)
            sums[:, level] += parts[:, :-1]
            if level + 1 < self._grid.n_levels:
                multiples -= whole
                multiples *= multiples.dtype.type(2.0**self._grid.bits)


def _pad(n_clusters: int) -> int:
    """Return how many rows a product should have: an even number, if not just one.

    A product with 3 centres takes a third longer than one with 4.
    """
    return n_clusters + n_clusters % 2 if n_clusters > 1 else 1


def _round(values: np.ndarray) -> np.ndarray:
    """Round to fewer bits, by Veltkamp's splitting."""
    shifted = values * (2.0**_ROUNDED_BITS + 1)
    rounded = shifted - (shifted - values)
    return np.where(np.isfinite(shifted), rounded, values)


def _slice_csr(rows: sparse.csr_array, here: slice) -> sparse.csr_array:
    """Return some rows without a copy of their values."""
    borders = rows.indptr[here.start : here.stop + 1]
    part = slice(borders[0], borders[-1])
    return sparse.csr_array(
        (rows.data[part], rows.indices[part], borders - borders[0]),
        shape=(len(borders) - 1, rows.shape[1]),
    )
