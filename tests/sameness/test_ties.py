"""What ties goes to the first, and no rounding nor processor has a say in it."""

import numpy as np

from corral._criteria import measure_borders
from corral._fusion import measure_separation
from corral._profiles import most_different


def test_clusters_with_other_numbers_are_as_well_separated(seed):
    # Restarts often come to the same clusters, and the first of them is kept.
    rng = np.random.default_rng(seed)
    joint = [rng.integers(0, 40, (7, 30)).astype(float) for _ in range(5)]
    sizes = rng.integers(1, 90, 7).astype(float)
    expected = measure_separation(sizes, joint)
    for _ in range(50):
        order = rng.permutation(7)
        assert measure_separation(sizes[order], [x[order] for x in joint]) == expected


def test_border_rows_that_tie_are_the_first(seed):
    # All rows of a cluster have the same code, so all of them tie for its border.
    n_rows = 2000
    labels = np.repeat([0, 1], n_rows)
    costs = np.where(labels[:, None] == [0, 1], 0.0, 1.0)
    position = np.random.default_rng(seed).random(2 * n_rows)
    found = measure_borders(costs, position, np.ones(2 * n_rows, bool))
    first = int(0.15 * n_rows)
    position = position.reshape(2, n_rows)
    ranks = (position.argsort(axis=1).argsort(axis=1) + 0.5) / n_rows
    assert found.empty == ranks[:, :first].mean(axis=1).min()


def test_features_that_differ_equally_are_the_first(seed):
    rng = np.random.default_rng(seed)
    differences = rng.integers(-3, 4, (50, 300)).astype(float)
    features, values = most_different(differences, 8)
    assert most_different(differences, 0)[0].shape == (50, 0)
    order = np.argsort(-np.abs(differences), axis=1, kind="stable")[:, :8]
    np.testing.assert_array_equal(features, order)
    np.testing.assert_array_equal(
        values, np.take_along_axis(differences, order, axis=1)
    )
