"""How many distinct codes there are in all blocks, also where they are very many."""

from typing import NamedTuple

import numpy as np

from corral._codes import make_keys
from corral._states import State, States
from corral._threads import Threads

# Keys of codes are brought to one place up to this many; more are counted range by
# range, and no place holds more than about so many.
_MERGED_CODES = 2**22


class Census(NamedTuple):
    """The distinct codes of all rows.

    Attributes
    ----------
    n_codes : int
    n_ranges : int
        In how many ranges of keys they were counted; 1 if they were merged in one
        place.
    """

    n_codes: int
    n_ranges: int


def count_codes(states: States) -> Census:
    """Count the distinct codes of all blocks, by their keys.

    Codes of different blocks that share a key count as one, which may happen to one of
    billions of codes. Nothing else depends on it.

    Parameters
    ----------
    states : States

    Returns
    -------
    census : Census
    """
    n_all = states.reduce(count_block)
    if len(states.sizes) == 1:
        return Census(n_all, 1)
    # A power of two, so that a range is the first bits of a key.
    n_bits = max(-(-n_all // _MERGED_CODES) - 1, 0).bit_length()
    counts = states.merge(split_keys, n_bits, count_distinct, 2**n_bits)
    return Census(sum(counts), 2**n_bits)


def count_block(state: State, threads: Threads) -> int:
    """Return the number of codes of a block."""
    return len(state.codes.rows)


def split_keys(state: State, threads: Threads, n_bits: int) -> list[np.ndarray]:
    """Return the keys of a block's codes, range by range."""
    keys = np.sort(make_keys(state.codes))
    if not n_bits:
        return [keys]
    starts = np.arange(1, 2**n_bits, dtype=np.uint64) << np.uint64(64 - n_bits)
    return np.split(keys, np.searchsorted(keys, starts))


def count_distinct(parts: list[np.ndarray]) -> int:
    """Return how many different keys there are."""
    return len(np.unique(np.concatenate(parts)))
