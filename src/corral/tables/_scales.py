"""How far numbers are shifted and what they are divided by."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse

from corral.tables._rows import Matrix

# Quartiles are found digit by digit in the bits of numbers; so many bits are a digit.
# Counts of all digits take 64 KB, for up to six digits sought in each column.
_DIGIT_BITS = 13

# So many columns are counted at once, in at most 100 MB.
_COLUMNS_AT_ONCE = 256

_QUARTERS = np.array([0.25, 0.5, 0.75])


@dataclass(frozen=True)
class Scales:
    """What makes numbers comparable.

    Attributes
    ----------
    center : ndarray of shape (n_columns,) or None
        What is taken away; None for sparse rows, which are not shifted.
    unit : ndarray of shape (n_columns,)
        What they are then divided by.
    """

    center: np.ndarray | None
    unit: np.ndarray

    def apply(self, numbers: Matrix) -> Matrix:
        """Scale numbers in place, and return them."""
        if sparse.issparse(numbers):
            numbers.data /= self.unit.take(numbers.indices)
            return numbers
        numbers -= self.center
        numbers /= self.unit
        return numbers


class Moments:
    """Mean and variance of columns, added up piece by piece.

    Each piece is measured by itself in two steps, first the mean, then squares of what
    differs from it; then pieces are joined in their order (Chan, Golub and LeVeque,
    doi:10.1080/00031305.1983.10483115). So a small spread around a large number is
    not lost, and the same pieces give the same bits wherever they come from.

    Parameters
    ----------
    n_columns : int

    Attributes
    ----------
    n_known, mean : ndarray of shape (n_columns,)
        Of the cells that are not missing.
    """

    def __init__(self, n_columns: int) -> None:
        self.n_known = np.zeros(n_columns)
        self.mean = np.zeros(n_columns)
        self._squares = np.zeros(n_columns)

    @classmethod
    def stack(cls, parts: "Sequence[Moments]") -> "Moments":
        """Return moments of columns side by side."""
        stacked = cls(0)
        for name in vars(stacked):
            arrays = [getattr(part, name) for part in (stacked, *parts)]
            setattr(stacked, name, np.concatenate(arrays))
        return stacked

    def take(self, places: np.ndarray) -> "Moments":
        """Return those of some columns."""
        taken = Moments(len(places))
        for name, values in vars(self).items():
            setattr(taken, name, values[places])
        return taken

    @property
    def variance(self) -> np.ndarray:
        """Variance of each column; infinite or NaN if numbers are too large for it."""
        return self._squares / np.maximum(self.n_known, 1)

    @property
    def unit(self) -> np.ndarray:
        """Standard deviation; 1 where it is 0, which nothing can be divided by."""
        spread = np.sqrt(self.variance)
        return np.where(spread == 0, 1.0, spread)

    def add(self, numbers: Matrix) -> None:
        """Add the next piece, of shape (n_rows, n_columns); NaN is a missing cell."""
        with np.errstate(over="ignore", invalid="ignore"):
            if sparse.issparse(numbers):
                self._join(*_measure_sparse(numbers))
            else:
                measured = [_measure_column(column) for column in numbers.T]
                self._join(*np.array(measured).reshape(-1, 3).T)

    def _join(self, n: np.ndarray, mean: np.ndarray, squares: np.ndarray) -> None:
        total = np.maximum(self.n_known + n, 1)
        step = mean - self.mean
        # The share comes first: with nothing before, a huge step counts nothing.
        self._squares += squares + step * (self.n_known / total) * step * n
        self.mean += step * (n / total)
        self.n_known += n


def _measure_column(numbers: np.ndarray) -> tuple[float, float, float]:
    """Return number, mean and squared deviations of the cells that are there."""
    known = numbers[~np.isnan(numbers)].astype(np.float64, copy=False)
    n = len(known)
    if not n:
        return 0.0, 0.0, 0.0
    middle = known.mean()
    known -= middle
    # What the mean was rounded by.
    rest = known.mean()
    squares = np.square(known).sum() - n * rest * rest
    return n, middle + rest, max(squares, 0.0)


def _measure_sparse(rows: Matrix) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    n_rows, n_columns = rows.shape
    places, cells = rows.indices, rows.data.astype(np.float64)
    mean = np.bincount(places, cells, n_columns) / max(n_rows, 1)
    squares = np.bincount(places, np.square(cells - mean[places]), n_columns)
    n_zeros = n_rows - np.bincount(places, minlength=n_columns)
    return np.full(n_columns, float(n_rows)), mean, squares + n_zeros * mean**2


def standard_scales(moments: Moments, *, is_shifted: bool) -> Scales:
    """Return scales for the mean 0 and the standard deviation 1."""
    return Scales(moments.mean if is_shifted else None, moments.unit)


def robust_scales(
    quartiles: np.ndarray, moments: Moments, *, is_shifted: bool
) -> Scales:
    """Return scales for the median 0 and the distance 1 between quartiles.

    Parameters
    ----------
    quartiles : ndarray of shape (3, n_columns)
    moments : Moments
        Where half of the numbers are the same, quartiles do not tell the scale, and
        the standard deviation is used.
    is_shifted : bool

    Returns
    -------
    scales : Scales
    """
    low, median, high = quartiles
    unit = np.where(high == low, moments.unit, high - low)
    return Scales(median if is_shifted else None, unit)


def find_quartiles(numbers: Matrix) -> np.ndarray:
    """Return the quartiles of the columns of a matrix in memory; zeros count.

    Parameters
    ----------
    numbers : ndarray or CSR of shape (n_samples, n_columns)

    Returns
    -------
    quartiles : ndarray of shape (3, n_columns)
        Of the cells that are not missing.
    """
    if not sparse.issparse(numbers):
        return np.nanquantile(numbers, _QUARTERS, axis=0)
    columns = numbers.tocsc()
    found = [
        np.quantile(columns[:, [j]].toarray(), _QUARTERS)
        for j in range(columns.shape[1])
    ]
    return np.array(found).reshape(-1, 3).T


def find_quartiles_by_pieces(
    read: Callable[[Sequence[int]], Iterable[list[np.ndarray]]], n_known: np.ndarray
) -> np.ndarray:
    """Return the exact quartiles of columns that are read piece by piece.

    The bits of a number, read as a whole number, sort as the number does. So a number
    of a known rank is found digit by digit: count the first digits of all numbers, see
    in which the rank falls, count the second digits of those that have it, and so on.
    That takes five passes, and memory for the counts alone.

    Parameters
    ----------
    read : callable
        Given places of columns, starts a pass that yields these columns of each piece,
        as ndarrays of shape (n_rows,) in float64; NaN is a missing cell.
    n_known : ndarray of shape (n_columns,)
        Cells that are not missing in each column.

    Returns
    -------
    quartiles : ndarray of shape (3, n_columns)
    """
    n_columns = len(n_known)
    found = np.empty((3, n_columns))
    for first in range(0, n_columns, _COLUMNS_AT_ONCE):
        places = range(first, min(first + _COLUMNS_AT_ONCE, n_columns))
        searches = [_RankSearch(int(n_known[place])) for place in places]
        for last_bit in _digit_starts():
            for columns in read(places):
                for search, column in zip(searches, columns, strict=True):
                    search.count(column, last_bit)
            for search in searches:
                search.settle()
        found[:, places] = np.array([search.quartiles() for search in searches]).T
    return found


def _digit_starts() -> list[int]:
    """Return the lowest bit of each digit, from the first digit to the last."""
    return [max(64 - done, 0) for done in range(_DIGIT_BITS, 77, _DIGIT_BITS)]


class _RankSearch:
    """The numbers on both sides of each quartile of a column, digit by digit."""

    def __init__(self, n_known: int) -> None:
        places = _QUARTERS * (n_known - 1)
        below = np.floor(places).astype(np.int64)
        self._shares = places - below
        # Ranks among the numbers that begin with the digits found so far.
        self._ranks = np.concatenate([below, np.minimum(below + 1, n_known - 1)])
        self._found = np.zeros(6, dtype=np.uint64)
        self._last_bit = 64
        self._counts: dict[int, np.ndarray] = {}

    def count(self, numbers: np.ndarray, last_bit: int) -> None:
        """Count the digit that ends at a bit, of the numbers that are still sought."""
        keys = _to_keys(numbers[~np.isnan(numbers)])
        digits = keys >> np.uint64(last_bit)
        n_bits = np.uint64(self._last_bit - last_bit)
        heads = digits >> n_bits
        digits &= (np.uint64(1) << n_bits) - np.uint64(1)
        self._next_bit = last_bit
        for head in np.unique(self._found).tolist():
            counts = np.bincount(
                digits[heads == head].astype(np.int64), minlength=1 << int(n_bits)
            )
            self._counts[head] = self._counts.get(head, 0) + counts

    def settle(self) -> None:
        """Choose the digit of each rank after a pass."""
        n_bits = self._last_bit - self._next_bit
        for i, head in enumerate(self._found.tolist()):
            ends = np.cumsum(self._counts[head])
            digit = int(np.searchsorted(ends, self._ranks[i], side="right"))
            self._ranks[i] -= ends[digit] - self._counts[head][digit]
            self._found[i] = (head << n_bits) | digit
        self._last_bit = self._next_bit
        self._counts = {}

    def quartiles(self) -> np.ndarray:
        """Return the quartiles, between the two numbers nearest to each."""
        low, high = _to_numbers(self._found).reshape(2, 3)
        return low + (high - low) * self._shares


_SIGN = np.uint64(1 << 63)


def _to_keys(numbers: np.ndarray) -> np.ndarray:
    """Return whole numbers that sort as the numbers do."""
    # Adding zero makes one zero of the two.
    bits = (numbers + 0.0).view(np.uint64)
    return np.where(bits & _SIGN, ~bits, bits | _SIGN)


def _to_numbers(keys: np.ndarray) -> np.ndarray:
    return np.where(keys & _SIGN, keys ^ _SIGN, ~keys).view(np.float64)
