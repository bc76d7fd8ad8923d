"""One seed in, an independent stream of random numbers per purpose out."""

from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state

from corral._journal import Journal

# So many rows are shuffled as a whole to draw some of them.
_SHUFFLED_ROWS = 2**20

# So many times more rows are drawn than learned from: where at least half of the rows
# can be used, enough of these can.
SPARE_ROWS = 4


class Streams(NamedTuple):
    """Generators that do not disturb each other.

    Drawing more of one kind (say, restarts of the fusion) leaves the others as they
    are, so the same seed gives the same partitions whatever is done with them.
    """

    partitions: np.random.Generator
    fusion: np.random.Generator
    position: np.random.Generator
    choice: np.random.Generator
    confidence: np.random.Generator


def draw_fit_seed(random_state, journal: Journal | None = None) -> int:
    """Turn scikit-learn's ``random_state`` into the seed of a fit.

    A fit that goes on from a journal has the seed that is noted there.
    """
    if journal is not None and journal.has("seed"):
        return int(journal.read("seed")["seed"])
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    if journal is not None:
        journal.write("seed", {"seed": np.array(seed)})
    return seed


def make_streams(seed: int) -> Streams:
    """Turn the seed of a fit into generators, one per purpose."""
    children = np.random.SeedSequence(seed).spawn(len(Streams._fields))
    return Streams(*(np.random.default_rng(child) for child in children))


def draw_rows(rng: np.random.Generator, n_rows: int, n_drawn: int) -> np.ndarray:
    """Draw rows without repetition, in random order.

    Takes memory for the rows that are drawn only where there are very many.

    Parameters
    ----------
    rng : numpy Generator
    n_rows, n_drawn : int

    Returns
    -------
    rows : ndarray of shape (min(n_drawn, n_rows),)
    """
    if n_rows <= _SHUFFLED_ROWS:
        return rng.permutation(n_rows)[:n_drawn]
    return rng.choice(n_rows, min(n_drawn, n_rows), replace=False)


def draw_all_rows(rng: np.random.Generator, n_rows: int, n_drawn: int) -> np.ndarray:
    """Return all rows, the first of which are those of :func:`draw_rows`.

    The others are in random order as well, unless there are very many.

    Parameters
    ----------
    rng : numpy Generator
    n_rows, n_drawn : int

    Returns
    -------
    rows : ndarray of shape (n_rows,)
    """
    if n_rows <= _SHUFFLED_ROWS:
        return rng.permutation(n_rows)
    drawn = draw_rows(rng, n_rows, n_drawn)
    is_left = np.ones(n_rows, dtype=bool)
    is_left[drawn] = False
    return np.concatenate([drawn, np.flatnonzero(is_left)])


def skip_draws(rng: np.random.Generator, n_draws: int) -> None:
    """Go on as if so many numbers had been drawn by ``rng.random``.

    Parameters
    ----------
    rng : numpy Generator
        As :func:`make_streams` makes them.
    n_draws : int
    """
    bits = rng.bit_generator
    assert isinstance(bits, np.random.PCG64)
    before = bits.state
    bits.advance(n_draws)
    after = bits.state
    # Half a number that whole numbers left over is not touched by ``random``.
    after["has_uint32"], after["uinteger"] = before["has_uint32"], before["uinteger"]
    bits.state = after


def draw_seed(rng: np.random.Generator) -> int:
    """Draw a seed for code that wants an integer ``random_state``."""
    return int(rng.integers(np.iinfo(np.int32).max))
