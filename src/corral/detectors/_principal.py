"""Rows seen from their mean, and the direction along which they vary most."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import eigh_tridiagonal

from corral._blocks import cut_rows

# How many values a block of rows may hold, 8 MB of float64: small beside the rows, and
# large enough for the matrix products to run at full speed.
BLOCK_VALUES = 2**20

# Lanczos: vectors kept between two restarts, restarts, and the residual, relative to
# the variance, at which the direction counts as found.
_KRYLOV_SIZE = 24
_MAX_RESTARTS = 100
_RESIDUAL = 1e-12

# What the vector of ones counts for at the start of the pass over the rows: little
# beside any row, and the number in the authors' program.
_START_WEIGHT = 1e-4

# Deviations of the fit are at most 1. New rows that are farther out than this are drawn
# in, so that their squares are numbers; which way they lie is all that counts there.
_FAR = 2.0**200

# A scale is a power of two no farther from 1 than this, so that it is a number.
_MAX_EXPONENT = 1000

# The same for the deviations, small enough to be multiplied with the above.
_MAX_ZOOM_EXPONENT = 500


def as_float64(X):
    """Return the rows in float64; sparse ones as an array, whose operators differ."""
    if sparse.issparse(X):
        X = sparse.csr_array(X)
    return X.astype(np.float64, copy=False)


def multiply_rows(rows: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Return the product of each row with the matrix, the same in any company.

    ``rows @ matrix.T`` adds up a row's products in an order that depends on the number
    of rows. Here each row has a product of its own, and so its last bit, too.

    Parameters
    ----------
    rows : ndarray of shape (n_rows, n_features), in C order
    matrix : ndarray of shape (n_outputs, n_features)

    Returns
    -------
    products : ndarray of shape (n_rows, n_outputs)
    """
    return np.matmul(matrix, rows[:, :, None])[:, :, 0]


def row_lengths(rows: np.ndarray) -> np.ndarray:
    """Return the Euclidean norm of each row, the same in any company."""
    return np.sqrt(np.einsum("ij,ij->i", rows, rows))


class View(NamedTuple):
    """How rows are seen: from a mean, and at a scale at which they can be squared.

    Attributes
    ----------
    mean : ndarray of shape (n_features,)
        Of the rows times ``scale``.
    scale : float
        A power of two that brings the largest value near 1.
    zoom : float
        A power of two that brings the largest deviation near 1.
    """

    mean: np.ndarray
    scale: float
    zoom: float

    def deviate(self, block) -> np.ndarray:
        """Return the deviations of a block of rows, dense or sparse, as a new array."""
        if sparse.issparse(block):
            block = block.toarray()
        with np.errstate(over="ignore"):
            deviations = block * self.scale
        _draw_in(deviations, block, _FAR**2)
        deviations -= self.mean
        deviations *= self.zoom
        _draw_in(deviations, deviations, _FAR)
        return deviations

    @property
    def exponent(self) -> int:
        """The power of two that deviations are multiplied by in all."""
        return int(np.frexp(self.scale)[1] + np.frexp(self.zoom)[1]) - 2

    def restore_square(self, square: float) -> float:
        """Return a squared deviation in the units of the rows, 0 or inf if need be."""
        with np.errstate(over="ignore", under="ignore"):
            return float(np.ldexp(square, -2 * self.exponent))


class Cloud:
    """Rows as a view shows them, read in blocks.

    Attributes
    ----------
    X : ndarray or CSR of shape (n_samples, n_features), float64
    view : View
    shape : tuple of (n_samples, n_features)
    """

    def __init__(self, X, view: View) -> None:
        self.X = X
        self.view = view
        self.shape: tuple[int, int] = X.shape

    def __len__(self) -> int:
        return self.shape[0]

    def cut(self, n_values: int) -> list[slice]:
        """Cut the rows into blocks, for work that holds so many values per row."""
        return cut_rows(len(self), BLOCK_VALUES // n_values)

    def read(self, rows: slice) -> np.ndarray:
        """Return the deviations of these rows, dense."""
        return self.view.deviate(self.X[rows])


class FitCloud(Cloud):
    """The rows of the fit, from their own mean, with the products Lanczos needs.

    Parameters
    ----------
    X : ndarray or CSR of shape (n_samples, n_features), float64

    Attributes
    ----------
    n_stored : int
        How many values X stores.
    rounding : float
        Deviations below this may be nothing but rounding.
    """

    def __init__(self, X) -> None:
        low, high = _find_range(X)
        sizes = np.maximum(high, -low)
        scale = _invert_size(sizes.max(), _MAX_EXPONENT)
        low, high, sizes = low * scale, high * scale, sizes * scale
        self._thin = _Thin.of(X, scale) if sparse.issparse(X) else None
        mean = _find_mean(X, scale) if self._thin is None else self._thin.mean
        spans = np.maximum(high - mean, mean - low)
        zoom = _invert_size(spans.max(), _MAX_ZOOM_EXPONENT)
        super().__init__(X, View(mean, scale, zoom))
        self.n_stored = X.size if self._thin is None else X.nnz
        lengths = 4.0 * np.finfo(np.float64).eps * np.linalg.norm(sizes)
        self.rounding = float(lengths * zoom)

    def combine(self, weights: np.ndarray) -> np.ndarray:
        """Return the sum of the deviations with weights of shape (n_samples,)."""
        if self._thin is not None:
            return self.view.zoom * self._thin.combine(weights)
        total = np.zeros(self.shape[1])
        for rows in self.cut(self.shape[1]):
            total += weights[rows] @ self.read(rows)
        return total

    def project(self, vector: np.ndarray) -> np.ndarray:
        """Return the deviations' products with a vector."""
        if self._thin is not None:
            return self.view.zoom * self._thin.project(vector)
        blocks = self.cut(self.shape[1])
        return np.concatenate([self.read(rows) @ vector for rows in blocks])

    def spread(self, vector: np.ndarray) -> np.ndarray:
        """Return the covariance times a vector."""
        return self.combine(self.project(vector)) / len(self)

    def spread_each(self, vectors: np.ndarray) -> np.ndarray:
        """Return the covariance times each row, the same in any company."""
        if self._thin is not None:
            images = self._thin.combine_each(self._thin.project_each(vectors))
            return images * (self.view.zoom**2 / len(self))
        total = np.zeros_like(vectors)
        for rows in self.cut(self.shape[1]):
            block = self.read(rows)
            total += multiply_rows(multiply_rows(vectors, block), block.T)
        return total / len(self)

    def copy(self) -> "FitCloud":
        """Return a cloud that does not share its rows."""
        return FitCloud(self.X.copy())


class _Thin:
    """Deviations of sparse rows that stay sparse.

    Where every row stores a value, the mean is taken from the values; they may be large
    and nearly equal. Elsewhere it is subtracted in the products. That costs no digits
    that count, as a column with a zero varies by its mean / sqrt(n_samples) or more.

    Attributes
    ----------
    values : CSR of shape (n_samples, n_features)
    rest : ndarray of shape (n_features,)
        What is still to be subtracted.
    mean : ndarray of shape (n_features,)
    """

    def __init__(self, values, rest: np.ndarray, mean: np.ndarray) -> None:
        self.values = values
        self.rest = rest
        self.mean = mean

    @classmethod
    def of(cls, X, scale: float) -> "_Thin":
        n_samples, n_features = X.shape
        values = X.data * scale
        means = np.bincount(X.indices, values, minlength=n_features) / n_samples
        stored = np.bincount(X.indices, minlength=n_features)
        shift = np.where(stored == n_samples, means, 0.0)
        values -= shift[X.indices]
        rest = np.bincount(X.indices, values, minlength=n_features) / n_samples
        thin = sparse.csr_array((values, X.indices.copy(), X.indptr.copy()), X.shape)
        return cls(thin, rest, shift + rest)

    def combine(self, weights: np.ndarray) -> np.ndarray:
        return self.values.T @ weights - self.rest * weights.sum()

    def project(self, vector: np.ndarray) -> np.ndarray:
        return self.values @ vector - self.rest @ vector

    # A sparse product adds up each column by itself.
    def combine_each(self, weights: np.ndarray) -> np.ndarray:
        sums = np.einsum("ij->i", weights)
        products = np.ascontiguousarray((self.values.T @ weights.T).T)
        return products - sums[:, None] * self.rest

    def project_each(self, vectors: np.ndarray) -> np.ndarray:
        products = np.ascontiguousarray((self.values @ vectors.T).T)
        return products - np.einsum("ij,j->i", vectors, self.rest)[:, None]


class Matrix:
    """The covariance written out.

    Called with directions of shape (n_rows, n_features), it returns their products,
    as does :class:`Products`. Those of a row do not depend on the others.

    Attributes
    ----------
    n_values : int
        How many values a product holds on the way, per direction.
    """

    def __init__(self, cloud: FitCloud) -> None:
        self.n_values = n_features = cloud.shape[1]
        self._matrix = np.zeros((n_features, n_features))
        for rows in cloud.cut(n_features):
            block = cloud.read(rows)
            self._matrix += block.T @ block
        self._matrix /= len(cloud)

    def __call__(self, directions: np.ndarray) -> np.ndarray:
        return multiply_rows(directions, self._matrix)


class Products:
    """The covariance left as two products with X; see :class:`Matrix`."""

    def __init__(self, cloud: FitCloud) -> None:
        self.n_values = len(cloud)
        # A copy: the rows are needed for new ones after the caller has gone on.
        self._cloud = cloud.copy()

    def __call__(self, directions: np.ndarray) -> np.ndarray:
        return self._cloud.spread_each(directions)


def choose_spread(cloud: FitCloud) -> Matrix | Products:
    """Write the covariance out only where that takes no more room than X."""
    if cloud.shape[1] ** 2 <= cloud.n_stored:
        return Matrix(cloud)
    return Products(cloud)


def find_direction(
    cloud: FitCloud, random_state: np.random.RandomState, *, in_one_pass: bool
) -> tuple[np.ndarray, float]:
    """Return the dominant principal direction and the variance along it.

    Both are 0 if the rows differ by no more than the rounding of their mean.
    """
    nothing = np.zeros(cloud.shape[1]), 0.0
    # A random sum of the deviations turns with the rows when they are rotated.
    start = cloud.combine(random_state.normal(size=len(cloud)))
    if not start.any():
        return nothing
    total = None
    if in_one_pass:
        direction, total = _run_one_pass(cloud)
    else:
        direction = _run_lanczos(cloud.spread, start)
    direction *= np.sign(direction[np.argmax(np.abs(direction))])
    projections = cloud.project(direction)
    if projections.std() <= cloud.rounding:
        return nothing
    total = projections @ projections if total is None else total
    return direction, float(total) / len(cloud)


def _run_one_pass(cloud: FitCloud) -> tuple[np.ndarray, float]:
    """Update a direction with each row; return it and the sum of squares it met."""
    # The weight is a square in the units of the rows. It has to stay a number.
    with np.errstate(over="ignore", under="ignore"):
        weight = np.ldexp(_START_WEIGHT, 2 * cloud.view.exponent)
    total = float(np.clip(weight, 1e-300, 1e300))
    direction = np.ones(cloud.shape[1])
    for rows in cloud.cut(cloud.shape[1]):
        for row in cloud.read(rows):
            projection = direction @ row
            total += projection**2
            # The same as keeping the sum of y x and dividing it by that of y^2.
            direction += (projection / total) * (row - projection * direction)
    return direction / np.linalg.norm(direction), total


def _run_lanczos(
    apply: Callable[[np.ndarray], np.ndarray], start: np.ndarray
) -> np.ndarray:
    """Return the dominant eigenvector of a positive semidefinite operator.

    ARPACK draws vectors of its own where the start lies in few dimensions, which would
    take the choice away from ``random_state``.
    """
    vector = start / np.linalg.norm(start)
    for _ in range(_MAX_RESTARTS):
        basis = [vector]
        diagonal: list[float] = []
        below: list[float] = []
        for _ in range(min(_KRYLOV_SIZE, len(start))):
            image = apply(basis[-1])
            diagonal.append(float(basis[-1] @ image))
            known = np.array(basis)
            # Twice, as one pass leaves a remainder where much is taken away.
            for _ in range(2):
                image = image - known.T @ (known @ image)
            below.append(float(np.linalg.norm(image)))
            if below[-1] <= _RESIDUAL * max(diagonal):
                break
            basis.append(image / below[-1])
        values, vectors = eigh_tridiagonal(diagonal, below[:-1])
        vector = np.array(basis[: len(diagonal)]).T @ vectors[:, -1]
        vector /= np.linalg.norm(vector)
        if below[-1] * abs(vectors[-1, -1]) <= _RESIDUAL * values[-1]:
            break
    return vector


def _find_range(X) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest value of each column."""
    low, high = X.min(axis=0), X.max(axis=0)
    if sparse.issparse(X):
        low, high = low.toarray(), high.toarray()
    return low.ravel(), high.ravel()


def _find_mean(X: np.ndarray, scale: float) -> np.ndarray:
    """Return the mean of the rows times scale."""
    mean = np.zeros(X.shape[1])
    # Once more from the first mean, as a long sum of large values is rounded much.
    for _ in range(2):
        total = np.zeros(X.shape[1])
        for rows in cut_rows(len(X), BLOCK_VALUES // X.shape[1]):
            total += (X[rows] * scale - mean).sum(axis=0)
        mean += total / len(X)
    return mean


def _draw_in(rows: np.ndarray, same: np.ndarray, limit: float) -> None:
    """Shorten rows with a value beyond the limit; the same rows in units that fit."""
    far = np.flatnonzero(np.maximum(rows.max(axis=1), -rows.min(axis=1)) > limit)
    sizes = np.abs(same[far]).max(axis=1, keepdims=True)
    rows[far] = same[far] / sizes * limit


def _invert_size(size: float, max_exponent: int) -> float:
    """Return a power of two that brings the size near 1."""
    exponent = np.clip(np.frexp(size)[1], -max_exponent, max_exponent)
    return float(np.ldexp(1.0, -exponent)) if size > 0 else 1.0
