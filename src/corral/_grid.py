"""Sums that are exact, and therefore the same in any order."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

# Bits of a float64's significand, less one so that a sum may reach the bound.
_SIGNIFICAND_BITS = 52

# Sums that were rounded are kept to so many bits, as many as float32 has.
_KEPT_BITS = 24

# Whole numbers up to this one are exact in float32.
MAX_WHOLE_FLOAT32 = 2.0**24


@dataclass(frozen=True)
class Grid:
    """Splits numbers into whole multiples of a step, so that float64 adds them exactly.

    A number is written as ``coarse * step + fine * step / 2**bits`` with two whole
    numbers. Whole numbers below 2**53 add without rounding, so a sum does not depend
    on the order of its terms: not on threads, blocks or the storage of the rows, and
    a term that is added and later taken away leaves nothing behind. Two levels keep
    ``2 * bits`` bits below the largest value of a column: a value of 1e12 does not
    wipe out its neighbours of size 1. With one level the fine part is dropped.

    Attributes
    ----------
    steps : ndarray of shape (n_columns,)
        The coarse step of each column, a power of two.
    bits : int
        Bits of a level; ``n_terms * 2**bits`` stays below 2**53.
    n_levels : {1, 2}
    dtype : numpy dtype
        Of the whole numbers and their sums; float32 where it is known to do.
    """

    steps: np.ndarray
    bits: int
    n_levels: int
    dtype: type = np.float64

    @classmethod
    def fit(cls, bounds: np.ndarray, n_terms: int, n_levels: int = 2) -> "Grid":
        """Choose the steps for sums of ``n_terms`` numbers of at most ``bounds``."""
        bits = _SIGNIFICAND_BITS - max(int(n_terms - 1).bit_length(), 1)
        _, exponents = np.frexp(np.asarray(bounds, dtype=np.float64))
        # No smaller than what float64 divides by without overflow.
        return cls(np.ldexp(1.0, np.maximum(exponents - bits, -1000)), bits, n_levels)

    @classmethod
    def of_whole_numbers(cls, n_columns: int) -> "Grid":
        """Make the grid of whole numbers whose sums no float32 has to round.

        No sum of their sizes may be above ``MAX_WHOLE_FLOAT32``.
        """
        return cls(np.ones(n_columns), 0, 1, np.float32)

    def split(self, values):
        """Return the whole numbers of all levels side by side.

        Parameters
        ----------
        values : ndarray or csr_array of shape (n_rows, n_columns)

        Returns
        -------
        parts : the same kind, of shape (n_rows, n_levels * n_columns)
        """
        if sparse.issparse(values):
            levels = [
                sparse.csr_array(
                    (level, values.indices, values.indptr), shape=values.shape
                )
                for level in self._levels(values.data / self.steps[values.indices])
            ]
            return sparse.hstack(levels, format="csr")
        return np.concatenate(list(self._levels(values / self.steps)), axis=1)

    def _levels(self, multiples: np.ndarray) -> Iterator[np.ndarray]:
        """Yield the whole numbers of each level, from coarse to fine."""
        for _ in range(self.n_levels):
            whole = np.rint(multiples)
            yield whole.astype(self.dtype, copy=False)
            multiples = (multiples - whole) * 2.0**self.bits

    def join(self, sums: np.ndarray) -> np.ndarray:
        """Turn sums of parts back into sums of values."""
        levels = sums.reshape(len(sums), self.n_levels, -1)
        values = levels[:, 0]
        if self.n_levels == 2:
            values = values + levels[:, 1] / 2.0**self.bits
        return values * self.steps


def round_sums(sums: np.ndarray | float) -> np.ndarray:
    """Return sums of float64 to the digits that do not depend on the order of terms."""
    digits, exponents = np.frexp(sums)
    return np.ldexp(np.rint(np.ldexp(digits, _KEPT_BITS)), exponents - _KEPT_BITS)
