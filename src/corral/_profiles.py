"""What rows of a cluster look like, and which features set a row apart from it."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from corral._threads import ONE_THREAD, Threads
from corral._tree import add_in_tree

# Rows that are added up at once, and of which a cluster's rough mean is taken.
_SUM_ROWS = 2**15
_ROUGH_ROWS = 32

_TINY = np.finfo(np.float64).tiny

# A variance that is so small a part of the mean square is the rounding of sums, and a
# difference that is so small a part of the values is that of a mean.
_ROUNDING = 1e-13

# Numbers that are compared at once.
_BLOCK_NUMBERS = 2**21


@dataclass(frozen=True)
class Profile:
    """Means and spreads of the features in each cluster.

    Attributes
    ----------
    centers : ndarray of shape (n_clusters, n_features)
        Mean of the cells that are known; that of all rows where a cluster has none.
    spreads : ndarray of shape (n_clusters, n_features)
        Their standard deviation.
    sizes : ndarray of shape (n_clusters,)
        Weight of the rows of each cluster.
    """

    centers: np.ndarray
    spreads: np.ndarray
    sizes: np.ndarray

    @cached_property
    def units(self) -> np.ndarray:
        """The spreads that differences are measured by; zero where no row differs.

        Had one more row of a cluster of n rows differed as rows do over all clusters,
        its spread would be that of all rows over the square root of n + 1: less than
        that cannot be known from n rows.
        """
        shares = self.sizes / max(self.sizes.sum(), _TINY)
        with np.errstate(over="ignore", invalid="ignore"):
            apart = np.abs(self.centers - shares @ self.centers)
            # Squares of huge and tiny numbers are beyond all numbers.
            scale = _level(np.maximum(self.spreads, apart).max(axis=0))
            variance = shares @ ((self.spreads * scale) ** 2 + (apart * scale) ** 2)
            floor = np.sqrt(variance / (self.sizes[:, None] + 1)) / scale
            return np.fmax(self.spreads, floor)


def profile_clusters(
    X,
    labels: np.ndarray,
    n_clusters: int,
    *,
    weights: np.ndarray | None = None,
    missing: np.ndarray | None = None,
    threads: Threads | None = None,
) -> Profile:
    """Describe the clusters of some rows.

    Parameters
    ----------
    X : ndarray or CSR of shape (n_samples, n_features)
        NaN means that a cell is not known.
    labels : ndarray of shape (n_samples,)
        Rows with a label below zero are left out.
    n_clusters : int
    weights : ndarray of shape (n_samples,) or None
    missing : ndarray of shape (n_samples, n_features) or None
        Further cells that are not known.
    threads : Threads or None

    Returns
    -------
    profile : Profile
    """
    block = Members(X, labels, weights, missing)
    view = View.fit([block], n_clusters)
    return view.conclude(view.add_up(block, ONE_THREAD if threads is None else threads))


class Members(NamedTuple):
    """Rows with the clusters that they belong to.

    Attributes
    ----------
    X : ndarray or CSR of shape (n_rows, n_features)
        NaN means that a cell is not known.
    labels : ndarray of shape (n_rows,)
        Rows with a label below zero are left out.
    weights : ndarray of shape (n_rows,) or None
    missing : ndarray of shape (n_rows, n_features) or None
        Further cells that are not known.
    """

    X: Any
    labels: np.ndarray
    weights: np.ndarray | None = None
    missing: np.ndarray | None = None

    @property
    def shares(self) -> np.ndarray:
        """How much each row counts."""
        shares = (self.labels >= 0).astype(np.float64)
        return shares if self.weights is None else shares * self.weights


class Sums(NamedTuple):
    """Sums over the rows of each cluster, as they are looked at.

    Attributes
    ----------
    values, squares, known : ndarray of shape (n_clusters, n_features)
        Of the cells that are known, and the weight of these.
    sizes : ndarray of shape (n_clusters,)
        Weight of all rows.
    """

    values: np.ndarray
    squares: np.ndarray
    known: np.ndarray
    sizes: np.ndarray

    def __add__(self, other):
        return Sums(*(ours + theirs for ours, theirs in zip(self, other, strict=True)))


class RoughRows:
    """The first rows of each cluster, gathered block by block.

    Parameters
    ----------
    n_clusters : int
    """

    def __init__(self, n_clusters: int) -> None:
        self._parts: list[list[Any]] = [[] for _ in range(n_clusters)]
        self.n_features = 0
        self.is_sparse = False

    def look_at(self, block: Members) -> bool:
        """Add rows of a block; return whether there are enough now."""
        self.n_features = block.X.shape[1]
        self.is_sparse = sparse.issparse(block.X)
        members = np.where(block.shares > 0, block.labels, -1)
        n_clusters = len(self._parts)
        # Few clusters fit into few bits, which sort faster.
        kind = np.min_scalar_type(-max(n_clusters, 1))
        order = np.argsort(members.astype(kind), kind="stable")
        firsts = np.searchsorted(members[order], np.arange(n_clusters + 1))
        for k, (first, end) in enumerate(pairwise(firsts)):
            some = order[first : min(end, first + self._n_wanted(k))]
            rows = block.X[some].astype(np.float64)
            if block.missing is not None:
                rows[block.missing[some]] = np.nan
            self._parts[k].append(rows)
        return self.is_enough

    def extend(self, other: "RoughRows") -> bool:
        """Add the rows of blocks that come later; return whether there are enough."""
        self.n_features, self.is_sparse = other.n_features, other.is_sparse
        for k, parts in enumerate(self._parts):
            for part in other._parts[k]:
                parts.append(part[: self._n_wanted(k)])
        return self.is_enough

    @property
    def is_enough(self) -> bool:
        """Whether no more rows are wanted."""
        return not any(self._n_wanted(k) for k in range(len(self._parts)))

    def _n_wanted(self, k: int) -> int:
        return _ROUGH_ROWS - sum(part.shape[0] for part in self._parts[k])

    def of_cluster(self, k: int):
        """Return the rows of a cluster, cells that are not known NaN."""
        if self.is_sparse:
            return sparse.vstack(self._parts[k], format="csr")
        return np.concatenate([np.zeros((0, self.n_features)), *self._parts[k]])


@dataclass(frozen=True)
class View:
    """From where rows are looked at, so that squares lose few digits.

    Attributes
    ----------
    shifts : ndarray of shape (n_clusters, n_features)
        A point among the rows of each cluster. Of sparse rows, zero where most of them
        are, as zeros that are shifted have to be written.
    scale : ndarray of shape (n_features,)
        Powers of two, so that nothing is rounded.
    """

    shifts: np.ndarray
    scale: np.ndarray

    @classmethod
    def fit(cls, blocks: Iterable[Members], n_clusters: int) -> "View":
        """Look at a few rows of each cluster; no more blocks are read than need be."""
        rough = RoughRows(n_clusters)
        for block in blocks:
            if rough.look_at(block):
                break
        return cls.of(rough, n_clusters)

    @classmethod
    def of(cls, rough: RoughRows, n_clusters: int) -> "View":
        """Choose the point and the scale from a few rows of each cluster."""
        shifts = np.zeros((n_clusters, rough.n_features))
        sizes = np.zeros(rough.n_features)
        for k in range(n_clusters):
            rows = rough.of_cluster(k)
            look = _look_at_sparse if rough.is_sparse else _look_at
            shifts[k], spans = look(rows)
            np.maximum(sizes, spans, out=sizes)
        if rough.is_sparse:
            # A few rows have no value in many columns, where others may have one.
            sizes[sizes == 0] = sizes.max(initial=0)
        return cls(shifts, _level(sizes))

    @cached_property
    def _written_shifts(self) -> sparse.csr_array:
        return sparse.csr_array(self.shifts)

    def add_up(self, block: Members, threads: Threads) -> Sums:
        """Return the sums over the rows of a block."""
        n_clusters = len(self.shifts)
        shares, members = block.shares, np.maximum(block.labels, 0)

        def work(start: int) -> Sums:
            # Not times zero: the square of a far outlier may be infinite.
            kept = start + np.flatnonzero(shares[start : start + _SUM_ROWS])
            at = members[kept]
            adder = sparse.csc_array(
                (shares[kept], at, np.arange(len(at) + 1)), shape=(n_clusters, len(at))
            )
            gone = None if block.missing is None else block.missing[kept]
            with np.errstate(over="ignore", invalid="ignore"):
                return _add_up(adder, *self.place(block.X[kept], at, gone))

        # Blocks of so many rows times a power of two add up in the same order as all
        # rows at once.
        return add_in_tree(threads.map(work, range(0, block.X.shape[0], _SUM_ROWS)))

    def place(
        self, rows, at: np.ndarray, gone: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Return rows as they are seen from here, and which cells are missing."""
        if sparse.issparse(rows):
            rows = rows.astype(np.float64) - self._written_shifts[at]
            rows.data *= self.scale[rows.indices]
            return rows, None
        rows = rows - self.shifts.take(at, axis=0)
        rows *= self.scale
        gone = np.isnan(rows) if gone is None else gone | np.isnan(rows)
        if not gone.any():
            return rows, None
        rows[gone] = 0
        return rows, gone

    def conclude(self, sums: Sums) -> Profile:
        """Return the profile of the clusters with these sums over all rows."""
        known = sums.known
        counts = np.where(known > 0, known, 1)
        means = sums.values / counts
        with np.errstate(over="ignore", invalid="ignore"):
            variances = sums.squares / counts - means**2
            variances[variances <= _ROUNDING * sums.squares / counts] = 0
            variances[np.isnan(variances)] = np.inf
        centers = means / self.scale + self.shifts
        overall = (centers * (known / np.maximum(known.sum(axis=0), _TINY))).sum(axis=0)
        centers = np.where(known > 0, centers, overall)
        return Profile(centers, np.sqrt(variances) / self.scale, sums.sizes)


def _look_at(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a point among rows, and how far they reach from it, in each column."""
    known = ~np.isnan(rows)
    # Divided first, because the sum of huge numbers is none.
    parts = rows / np.maximum(known.sum(axis=0), 1)
    point = np.where(known, parts, 0).sum(axis=0)
    with np.errstate(over="ignore"):
        apart = np.where(known, np.abs(rows - point), 0)
    return point, apart.max(axis=0, initial=0)


def _look_at_sparse(rows: sparse.csr_array) -> tuple[np.ndarray, np.ndarray]:
    """Return the same; the point is zero in columns where most rows are."""
    n_rows, n_features = rows.shape
    point, spans = np.zeros((2, n_features))
    np.maximum.at(spans, rows.indices, np.abs(rows.data))
    stored = np.bincount(rows.indices, minlength=n_features)
    full = np.flatnonzero(2 * stored > n_rows)
    point[full], spans[full] = _look_at(rows[:, full].toarray())
    return point, spans


def _level(sizes: np.ndarray) -> np.ndarray:
    """Return powers of two that make sizes about 1."""
    exponents = np.frexp(np.minimum(sizes, np.finfo(np.float64).max))[1]
    return np.ldexp(1.0, -np.clip(exponents, -1000, 1000))


def _add_up(adder: sparse.csc_array, rows, gone: np.ndarray | None) -> Sums:
    """Return the sums of rows over each cluster."""
    sizes = adder.sum(axis=1)
    known = np.broadcast_to(sizes[:, None], (len(sizes), rows.shape[1]))
    if sparse.issparse(rows):
        squares = adder @ rows.power(2)
        return Sums((adder @ rows).toarray(), squares.toarray(), known, sizes)
    if gone is not None:
        known = adder @ (~gone).astype(np.float64)
    return Sums(adder @ rows, adder @ rows**2, known, sizes)


def tell_apart(
    X, nearest: np.ndarray, profile: Profile, n_features: int
) -> tuple[np.ndarray, np.ndarray]:
    """Find the features that set rows apart from their clusters.

    Parameters
    ----------
    X : ndarray or CSR of shape (n_samples, n_features)
        NaN means that a cell is not known.
    nearest : ndarray of shape (n_samples,)
        The cluster that each row is compared with.
    profile : Profile
    n_features : int
        How many are wanted.

    Returns
    -------
    features : ndarray of shape (n_samples, n_features)
        Their columns, the most different first; -1 where there are fewer.
    differences : ndarray of shape (n_samples, n_features)
        From the cluster's mean, in the cluster's spread.
    """
    features = np.full((X.shape[0], n_features), -1, dtype=np.intp)
    differences = np.zeros((X.shape[0], n_features))
    for here in row_blocks(X):
        found = compare_rows(_dense(X[here]), nearest[here], profile)
        features[here], differences[here] = most_different(found, n_features)
    return features, differences


def compare_rows(rows: np.ndarray, nearest: np.ndarray, profile: Profile) -> np.ndarray:
    """Return how far rows are from their clusters' means, zero for missing cells.

    Where all rows of the profile have the same value and a row another one, as with a
    word that no other text has, the unit is the spread that the cluster would have with
    this row in it.
    """
    centers, units = profile.centers[nearest], profile.units[nearest]
    with np.errstate(over="ignore", invalid="ignore"):
        apart = rows - centers
        rounding = _ROUNDING * np.abs(rows) + _ROUNDING * np.abs(centers)
        apart[np.abs(apart) <= rounding] = 0
        alone = np.sign(apart) * np.sqrt(profile.sizes[nearest] + 1)[:, None]
        differences = np.divide(apart, units, out=alone, where=units > 0)
    # What is infinite becomes the largest number that is not.
    return np.nan_to_num(differences, copy=False)


def most_different(
    differences: np.ndarray, n_features: int
) -> tuple[np.ndarray, np.ndarray]:
    """Return the columns with the largest differences of each row, and these."""
    n_rows, n_columns = differences.shape
    n_found = min(n_features, n_columns)
    columns = _largest(np.abs(differences), n_found)
    features = np.full((n_rows, n_features), -1, dtype=np.intp)
    values = np.zeros((n_rows, n_features))
    values[:, :n_found] = np.take_along_axis(differences, columns, axis=1)
    features[:, :n_found] = np.where(values[:, :n_found] != 0, columns, -1)
    return features, values


def _largest(sizes: np.ndarray, n_found: int) -> np.ndarray:
    """Return the columns of the largest numbers of each row, the largest first.

    Of equal numbers those of the first columns. Which of them a partial sort takes
    depends on the processor, so it only tells how large the last one is.
    """
    n_rows, n_columns = sizes.shape
    columns = np.broadcast_to(np.arange(n_columns), sizes.shape)
    if n_found < n_columns:
        place = max(n_found - 1, 0)
        last = -np.partition(-sizes, place, axis=1)[:, [place]]
        is_larger, is_last = sizes > last, sizes == last
        n_left = n_found - is_larger.sum(axis=1, keepdims=True)
        is_found = is_larger | (is_last & (is_last.cumsum(axis=1) <= n_left))
        columns = columns[is_found].reshape(n_rows, n_found)
    order = np.argsort(
        -np.take_along_axis(sizes, columns, axis=1), axis=1, kind="stable"
    )
    return np.take_along_axis(columns, order, axis=1)


def row_blocks(X):
    """Return slices of as many rows as are compared at once."""
    step = max(_BLOCK_NUMBERS // max(X.shape[1], 1), 1)
    return (slice(start, start + step) for start in range(0, X.shape[0], step))


def _dense(rows) -> np.ndarray:
    rows = rows.toarray() if sparse.issparse(rows) else np.asarray(rows)
    return rows.astype(np.float64, copy=False)
