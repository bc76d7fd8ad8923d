"""Sums of numbers of any size without rounding."""

import numpy as np

# Numbers that are added up at once: the sums of their halves stay below 2**53.
_PIECE = 2**20

# A float64 is a whole number of 53 bits times a power of two, no smaller than 2**-1126.
_BITS = 53
_LEAST = -1126

# Bits of the lower half of the whole number.
_LOW_BITS = 27


class ExactTotal:
    """A sum of float64 numbers, as one whole number of the smallest unit there is.

    It is rounded only when it becomes a float, so it depends neither on the order of
    its terms nor on how they were cut into blocks, and terms that are taken away leave
    nothing behind.

    Parameters
    ----------
    units : int, default=0
    """

    def __init__(self, units: int = 0) -> None:
        self.units = units

    @classmethod
    def of(cls, values: np.ndarray) -> "ExactTotal":
        """Add up finite numbers."""
        pieces = range(0, len(values), _PIECE)
        return cls(sum(_add_up(values[start : start + _PIECE]) for start in pieces))

    @classmethod
    def of_whole(cls, number: int) -> "ExactTotal":
        """Make a total of a whole number."""
        return cls(number << -_LEAST)

    def __add__(self, other: "ExactTotal") -> "ExactTotal":
        return ExactTotal(self.units + other.units)

    def __sub__(self, other: "ExactTotal") -> "ExactTotal":
        return ExactTotal(self.units - other.units)

    def __float__(self) -> float:
        return self.units / (1 << -_LEAST)


def _add_up(values: np.ndarray) -> int:
    """Return the sum in units: numbers with the same exponent are added up together."""
    digits, exponents = np.frexp(values)
    whole = np.ldexp(digits, _BITS).astype(np.int64)
    places = exponents - _BITS - _LEAST
    high = np.bincount(places, whole >> _LOW_BITS)
    low = np.bincount(places, whole & ((1 << _LOW_BITS) - 1))
    return sum(
        ((int(high[place]) << _LOW_BITS) + int(low[place])) << int(place)
        for place in np.flatnonzero((high != 0) | (low != 0))
    )
