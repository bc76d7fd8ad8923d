"""One seed in, an independent stream of random numbers per purpose out."""

from typing import NamedTuple

import numpy as np
from sklearn.utils import check_random_state


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


def make_streams(random_state) -> Streams:
    """Turn scikit-learn's ``random_state`` into generators, one per purpose."""
    seed = check_random_state(random_state).randint(np.iinfo(np.int32).max)
    children = np.random.SeedSequence(seed).spawn(len(Streams._fields))
    return Streams(*(np.random.default_rng(child) for child in children))


def draw_seed(rng: np.random.Generator) -> int:
    """Draw a seed for code that wants an integer ``random_state``."""
    return int(rng.integers(np.iinfo(np.int32).max))
