"""What rows of a cluster look like, and which features set a row apart from it."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import sparse

from corral._threads import Threads

# Rows that are added up at once, and of which a rough mean is taken.
_SUM_ROWS = 2**15
_ROUGH_ROWS = 1024

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
        mean = shares @ self.centers
        variance = shares @ (self.spreads**2 + (self.centers - mean) ** 2)
        floor = np.sqrt(variance / (self.sizes[:, None] + 1))
        return np.maximum(self.spreads, floor)


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
    shares = (labels >= 0).astype(np.float64)
    if weights is not None:
        shares *= weights
    members = np.maximum(labels, 0)
    sizes = np.bincount(members, shares, minlength=n_clusters)
    shift = _rough_mean(X)

    def work(start: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        here = slice(start, start + _SUM_ROWS)
        at = members[here]
        adder = sparse.csc_array(
            (shares[here], at, np.arange(len(at) + 1)), shape=(n_clusters, len(at))
        )
        gone = None if missing is None else missing[here]
        return _add_up(adder, X[here], gone, shift)

    starts = range(0, X.shape[0], _SUM_ROWS)
    parts = map(work, starts) if threads is None else threads.map(work, starts)
    sums, squares, known = (sum(part) for part in zip(*parts, strict=True))
    counts = np.where(known > 0, known, 1)
    means = sums / counts
    variances = squares / counts - means**2
    variances[variances <= _ROUNDING * squares / counts] = 0
    overall = sums.sum(axis=0) / np.maximum(known.sum(axis=0), _TINY)
    centers = np.where(known > 0, means, overall) + (0 if shift is None else shift)
    return Profile(centers, np.sqrt(variances), sizes)


def _rough_mean(X) -> np.ndarray | None:
    """Return a point near the rows; squares from there on lose few digits."""
    if sparse.issparse(X):
        return None
    rows = np.asarray(X[:_ROUGH_ROWS], dtype=np.float64)
    known = ~np.isnan(rows)
    sums = np.where(known, rows, 0).sum(axis=0)
    return sums / np.maximum(known.sum(axis=0), 1)


def _add_up(
    adder: sparse.csc_array,
    rows,
    gone: np.ndarray | None,
    shift: np.ndarray | None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sums and sums of squares over each cluster, and the weight of cells."""
    sizes = adder.sum(axis=1)[:, None]
    if sparse.issparse(rows):
        known = np.broadcast_to(sizes, (len(sizes), rows.shape[1]))
        return (adder @ rows).toarray(), (adder @ rows.power(2)).toarray(), known
    assert shift is not None
    rows = np.subtract(rows, shift, dtype=np.float64)
    gone = np.isnan(rows) if gone is None else gone | np.isnan(rows)
    if gone.any():
        rows[gone] = 0
        known = adder @ (~gone).astype(np.float64)
    else:
        known = np.broadcast_to(sizes, (len(sizes), rows.shape[1]))
    return adder @ rows, adder @ rows**2, known


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
    apart = rows - centers
    apart[np.abs(apart) <= _ROUNDING * (np.abs(rows) + np.abs(centers))] = 0
    alone = np.sign(apart) * np.sqrt(profile.sizes[nearest] + 1)[:, None]
    differences = np.divide(apart, units, out=alone, where=units > 0)
    return np.where(np.isnan(differences), 0, differences)


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
    """Return the columns of the largest numbers of each row, the largest first."""
    if n_found < sizes.shape[1]:
        columns = np.argpartition(-sizes, n_found, axis=1)[:, :n_found]
        columns.sort(axis=1)
    else:
        columns = np.broadcast_to(np.arange(n_found), sizes.shape)
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
