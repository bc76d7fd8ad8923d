"""From one cell to a hundred million: finite, as many outliers as asked, in bounds."""

import time

import numpy as np
import pytest

from corral import COR
from tests.load.memory import Peak

N_PARTITIONS = 100
# What a fit may take beside the rows: a byte per row and partition, what the model
# tells of each row (32 bytes), this, and the centres of all runs in float32, so often
# while they are learnt. Those count where rows are wide: 100 runs on 10 x 100,000 cells
# have 160 MB of centres.
ALLOWANCE = 300 * 10**6
COPIES_OF_CENTERS = 8

# Rows, features, clusters, outliers.
SMALL = [
    (1, 1, 1, 0),
    (1, 50, 1, 0),
    (2, 1, 2, 0),
    (3, 2, 1, 1),
    (20, 1, 3, 2),
    (10, 1_000, 2, 1),
]
LARGE = [
    (100, 1_000, 3, 5),
    (10, 100_000, 2, 1),
    (1_000, 10_000, 3, 10),
    (100_000, 1, 3, 1_000),
    (100_000, 100, 5, 1_000),
    (1_000_000, 2, 5, 10_000),
    (2_000_000, 50, 5, 20_000),
]


def make_rows(n_rows, n_features, n_clusters):
    """Return rows in float32, made in place: there may be much of them."""
    rng = np.random.default_rng([n_rows, n_features])
    rows = rng.standard_normal((n_rows, n_features), dtype=np.float32)
    rows += 8 * (np.arange(n_rows) % n_clusters)[:, None].astype(np.float32)
    return rows


def count_told(model, n_rows):
    """Return the bytes of labels, scores and what else a model tells of each row."""
    arrays = [each for each in vars(model).values() if isinstance(each, np.ndarray)]
    return sum(array.nbytes for array in arrays if len(array) == n_rows)


def check_fit(shape, figures):
    n_rows, n_features, n_clusters, n_outliers = shape
    X = make_rows(n_rows, n_features, n_clusters)
    model = COR(n_clusters, n_outliers=n_outliers, random_state=0)
    peak = Peak()
    start = time.perf_counter()
    model.fit(X)
    seconds = time.perf_counter() - start
    extra = peak.read()
    centers = 4 * int(np.sum(model.n_labels_)) * n_features
    allowed = N_PARTITIONS * n_rows + count_told(model, n_rows) + ALLOWANCE
    allowed += COPIES_OF_CENTERS * centers
    figures.append(
        f"fit: {n_rows:9,} x {n_features:7,}: {seconds:6.1f} s, "
        f"{extra / 1e6:5.0f} MB beside the rows (allowed {allowed / 1e6:.0f} MB)"
    )
    assert np.count_nonzero(model.labels_ == -1) == n_outliers
    assert set(model.nearest_labels_) <= set(range(n_clusters))
    assert np.isfinite(model.outlier_scores_).all()
    assert np.isfinite(model.objective_)
    assert extra < allowed


@pytest.mark.parametrize("shape", SMALL, ids=str)
def test_small_shapes_are_fitted(shape, figures):
    check_fit(shape, figures)


@pytest.mark.parametrize("shape", LARGE, ids=str)
def test_large_shapes_are_fitted_in_bounds(shape, soak, figures):
    if not soak:
        pytest.skip("takes minutes: set CORRAL_SOAK=1")
    check_fit(shape, figures)
