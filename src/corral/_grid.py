"""Sums that are exact, and therefore the same in any order."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import sparse

# Bits of a float64's significand, less one so that a sum may reach the bound.
_SIGNIFICAND_BITS = 52


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
    """

    steps: np.ndarray
    bits: int
    n_levels: int

    @classmethod
    def fit(cls, bounds: np.ndarray, n_terms: int, n_levels: int = 2) -> "Grid":
        """Choose the steps for sums of ``n_terms`` numbers of at most ``bounds``."""
        bits = _SIGNIFICAND_BITS - max(int(n_terms - 1).bit_length(), 1)
        _, exponents = np.frexp(np.asarray(bounds, dtype=np.float64))
        # No smaller than what float64 divides by without overflow.
        return cls(np.ldexp(1.0, np.maximum(exponents - bits, -1000)), bits, n_levels)

    def split(self, values):
        """Return the whole numbers of all levels side by side.

        Parameters
        ----------
        values : ndarray or csr_array of shape (n_rows, n_columns)

        Returns
        -------
        parts : the same kind, of shape (n_rows, n_levels * n_columns), float64
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
            yield whole
            multiples = (multiples - whole) * 2.0**self.bits

    def join(self, sums: np.ndarray) -> np.ndarray:
        """Turn sums of parts back into sums of values."""
        coarse, *fine = np.split(sums, self.n_levels, axis=1)
        for level in fine:
            coarse = coarse + level / 2.0**self.bits
        return coarse * self.steps
