"""Rows in the plane: which are drawn, and where."""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.linalg import ArpackError
from sklearn.decomposition import PCA
from sklearn.preprocessing import normalize

from corral.report._outcome import Outcome
from corral.report._rows import Rows
from corral.report._words import clip, say_share

# At most this many rows are drawn, and as many of them may be outliers.
MAX_ROWS = 5000
MAX_OUTLIERS = 1000

# The same rows are drawn each time.
_SEED = 0

# Values of a column of categories that fewer rows have do not shape the map.
_MIN_SHARE = 0.02

# The first view shows all rows, unless that makes it this many times larger than most
# of the rows need, all but two in a hundred.
_MAX_SHRINKAGE = 3.0
_MOST = (0.01, 0.99)

# Room around the rows in the first view, as a share of their extent.
_MARGIN = 0.05

# Rows further out, in first views, are drawn here.
_MAX_PLACE = 1e6

# Where fewer than this share of the places are distinct, as with labels, rows are moved
# a little, by this share of the first view on average.
_MIN_DISTINCT = 0.5
_SHIFT = 0.008


class Projection(NamedTuple):
    """Rows in the plane.

    Attributes
    ----------
    points : ndarray of shape (n_rows, 2)
    axes : list of str
        What the two axes are.
    variance : float or None
        Share of the variance that the plane keeps; None if it keeps all.
    """

    points: np.ndarray
    axes: list[str]
    variance: float | None


def choose_rows(outcome: Outcome, n_strangest: int) -> np.ndarray:
    """Choose the rows to draw, the strangest first.

    The strangest ones and the outliers, up to a limit, and a random part of the rest.
    """
    order = outcome.order
    if len(order) <= MAX_ROWS:
        return order
    is_outlier = outcome.is_outlier[order]
    chosen = np.zeros(len(order), dtype=bool)
    chosen[: min(n_strangest, MAX_OUTLIERS)] = True
    chosen[np.flatnonzero(is_outlier)[:MAX_OUTLIERS]] = True
    others = np.flatnonzero(~chosen & ~is_outlier)
    n_others = min(MAX_ROWS - int(chosen.sum()), len(others))
    rng = np.random.default_rng(_SEED)
    chosen[rng.choice(others, n_others, replace=False)] = True
    return order[chosen]


def project(
    rows: Rows, is_kept: np.ndarray, scores: np.ndarray, *, use_directions: bool
) -> Projection | None:
    """Put rows into the plane.

    One or two columns of numbers are drawn as they are, more of them in the two
    directions in which the rows that were kept differ most.

    Parameters
    ----------
    rows : Rows
        Those that are drawn.
    is_kept : ndarray of shape (n_rows,), bool
    scores : ndarray of shape (n_rows,)
        The second axis where there is but one column.
    use_directions : bool
        Whether only the direction of a row counts, as in cosine distance.
    """
    table = _as_numbers(rows, is_kept)
    if table is None:
        return None
    if use_directions:
        table = normalize(table)
    n_columns = table.shape[1]
    if n_columns <= 2:
        points = table.toarray() if sparse.issparse(table) else table
        axes = [clip(name) for name in rows.number_names] or ["value"]
        if n_columns == 1:
            return Projection(
                np.column_stack([points, scores]), [axes[0], "outlier score"], None
            )
        return Projection(points, axes if len(axes) == 2 else ["", ""], None)
    return _find_directions(table, is_kept)


def _find_directions(table, is_kept: np.ndarray) -> Projection:
    learn = table[is_kept] if is_kept.sum() > 2 else table
    if min(learn.shape) <= 2:
        return Projection(_dense(table)[:, :2], ["", ""], None)
    # The covariance of up to a thousand columns is quick and exact.
    few = table.shape[1] <= 1000 and not sparse.issparse(table)
    solver = "covariance_eigh" if few else "arpack"
    # A picture needs no more than a few digits.
    pca = PCA(2, svd_solver=solver, tol=1e-3, random_state=_SEED)
    try:
        with np.errstate(all="ignore"):
            pca.fit(learn)
    except ArpackError:
        # Sparse rows that are all the same have no directions.
        return Projection(np.zeros((table.shape[0], 2)), ["", ""], None)
    shares = np.nan_to_num(pca.explained_variance_ratio_)
    axes = [
        f"{which} direction ({say_share(share)} of the variance)"
        for which, share in zip(("first", "second"), shares.tolist(), strict=True)
    ]
    return Projection(pca.transform(table), axes, float(shares.sum()))


def _dense(table) -> np.ndarray:
    return table.toarray() if sparse.issparse(table) else table


def _as_numbers(rows: Rows, is_kept: np.ndarray):
    """Return all columns as numbers without gaps, None if there are none.

    Where there are categories, numbers are in standard deviations, and each value of a
    category is a column of its own, the larger the rarer it is: so each column of the
    table counts alike.
    """
    numbers = rows.numbers
    if numbers is not None and not sparse.issparse(numbers):
        numbers = _fill(numbers.astype(np.float64), is_kept)
    if not rows.categories:
        return numbers
    parts = [_one_hot(*column, is_kept) for column in rows.categories]
    if numbers is not None:
        dense = _dense(numbers)
        spread = dense[is_kept].std(axis=0) if is_kept.any() else dense.std(axis=0)
        parts.insert(0, dense / np.where(spread > 0, spread, 1))
    return np.concatenate(parts, axis=1)


def _fill(numbers: np.ndarray, is_kept: np.ndarray) -> np.ndarray:
    """Fill missing cells with the mean of their column in the rows that were kept."""
    gone = np.isnan(numbers)
    if not gone.any():
        return numbers
    known = ~gone & is_kept[:, None]
    sums = np.where(known, numbers, 0).sum(axis=0)
    return np.where(gone, sums / np.maximum(known.sum(axis=0), 1), numbers)


def _one_hot(values: np.ndarray, gone: np.ndarray, is_kept: np.ndarray) -> np.ndarray:
    known, places = np.unique(values, return_inverse=True)
    counts = np.bincount(places[is_kept & ~gone], minlength=len(known))
    common = np.flatnonzero(counts >= max(_MIN_SHARE * is_kept.sum(), 1))
    table = (places[:, None] == common) & ~gone[:, None]
    return table / np.sqrt(counts[common] / max(is_kept.sum(), 1))


def place(points: np.ndarray, is_kept: np.ndarray) -> np.ndarray:
    """Move and stretch points, so that the first view is from (0, 0) to (1, 1).

    The first view holds all points, unless some are so far out that the others would
    hardly be told apart.
    """
    kept = points[is_kept] if is_kept.any() else points
    low, high = np.quantile(kept, _MOST, axis=0)
    extent = np.where(high > low, high - low, np.ptp(kept, axis=0))
    extent = np.where(extent > 0, extent, np.maximum(np.abs(high), 1) * 1e-3)
    room = (_MAX_SHRINKAGE - 1) / 2 * extent
    low = np.maximum(points.min(axis=0), low - room)
    high = np.minimum(points.max(axis=0), high + room)
    extent = np.where(high > low, high - low, extent)
    low, extent = low - _MARGIN * extent, (1 + 2 * _MARGIN) * extent
    return np.clip((points - low) / extent, -_MAX_PLACE, _MAX_PLACE)


def part_ties(points: np.ndarray) -> tuple[np.ndarray, bool]:
    """Move rows a little if many lie on the same place; return whether it was done."""
    if len(np.unique(points, axis=0)) >= _MIN_DISTINCT * len(points):
        return points, False
    rng = np.random.default_rng(_SEED)
    return points + rng.normal(0, _SHIFT, size=points.shape), True
