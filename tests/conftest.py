"""Small data with known outliers, and the seeds that tests run with."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

# Read once: some tests take the variable away.
_NAMED_DATA = os.environ.get("CORRAL_DATA")


def pytest_generate_tests(metafunc):
    # One seed by default; CORRAL_TEST_SEEDS=100 runs such tests with a hundred.
    if "seed" in metafunc.fixturenames:
        n_seeds = int(os.environ.get("CORRAL_TEST_SEEDS", "1"))
        metafunc.parametrize("seed", range(n_seeds))


class Planted(NamedTuple):
    """Rows, and what was planted among them."""

    X: np.ndarray
    y: np.ndarray

    @property
    def outliers(self):
        return np.flatnonzero(self.y == -1)


def plant(seed, n_per_cluster=60, n_outliers=6, n_features=4):
    """Return three tight groups and a few rows far from all of them, shuffled."""
    rng = np.random.default_rng(seed)
    centers = 12 * np.eye(3, n_features)
    groups = [
        rng.normal(center, 0.5, (n_per_cluster, n_features)) for center in centers
    ]
    directions = rng.normal(size=(n_outliers, n_features))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    far = directions * rng.uniform(60, 120, (n_outliers, 1))
    X = np.concatenate([*groups, far])
    y = np.repeat([0, 1, 2, -1], [n_per_cluster] * 3 + [n_outliers])
    order = rng.permutation(len(X))
    return Planted(X[order], y[order])


@pytest.fixture
def planted():
    return plant(0)


@pytest.fixture
def partitions():
    """Return random partitions with few distinct rows, 60 x 7, of 2 to 4 labels."""
    rng = np.random.default_rng(3)
    n_labels = rng.integers(2, 5, size=7)
    prototypes = rng.integers(0, n_labels, size=(3, 7))
    labels = prototypes[rng.integers(3, size=60)]
    noise = rng.random(labels.shape) < 0.15
    labels = np.where(noise, rng.integers(0, n_labels, size=labels.shape), labels)
    labels[: n_labels.max()] = np.minimum(
        np.arange(n_labels.max())[:, None], n_labels - 1
    )
    return labels


@pytest.fixture
def data_folder():
    """Return the folder with the paper's data, or skip."""
    for folder in (_NAMED_DATA, "../shared/data"):
        if folder and Path(folder, "ecoli.npz").exists():
            return Path(folder)
    pytest.skip("the paper's data is not here: set CORRAL_DATA to its folder")
