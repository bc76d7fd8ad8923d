"""The order of rows, and rows that occur more than once: what should not matter."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.base import clone

from corral.rivals import DBSCAN, KMeansMinusMinus, NEOKMeans
from tests.properties.methods import (
    CASES,
    Outcome,
    assert_same,
    draw_rows,
    fit,
    solve,
    tell,
)
from tests.properties.strategies import few_numbers_for, orders, spread_rows
from tests.slow_twins import same_clustering

# Of two rows that are equally far, which is common in one column only, the first is the
# neighbour.
BY_NEIGHBORS = ["lof", "cof", "ldof", "fast-abod"]
UNORDERED = [
    name
    for name, case in CASES.items()
    if not (case.by_position or name == "lagrangian")
]
GIVEN_STARTS = [KMeansMinusMinus, NEOKMeans]


def take(outcome, order):
    return Outcome(outcome.labels[order], outcome.scores[order])


@pytest.mark.parametrize("name", UNORDERED)
@given(data=st.data())
def test_the_order_of_rows_changes_nothing(name, data):
    """Exempt are methods with starts or draws that go by position, or with ties.

    Those are COR, CORDetector, KCC, K-means--, K-means+1 and NEO-K-Means, whose starts
    are drawn, isolation forests and TONMF; ``Case.by_position`` says why. Given starts
    or partitions, they are not exempt; see below and the tests of given partitions.
    K-center counts rows, and numbers of rows tie; so do exemplars. Of DBSCAN, border
    rows go to the first cluster, so that only outliers and scores are compared.
    """
    X = draw_rows(data, name, min_columns=2 if name in BY_NEIGHBORS else 1)
    order = data.draw(orders(len(X)))
    numbers = data.draw(few_numbers_for(len(X)))
    expected = take(solve(name, X, *numbers), order)
    found = solve(name, X[order], *numbers)
    if name == "dbscan":
        found, expected = (
            (each.labels == -1, each.scores) for each in (found, expected)
        )
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_allclose(found[1], expected[1], rtol=1e-9)
    else:
        assert_same(found, expected, max(CASES[name].rounding, 1e-7))


@given(data=st.data())
def test_the_order_of_rows_does_not_change_what_lagrangian_clustering_proves(data):
    """Of rows that are clusters of their own, the first are outliers.

    The search then goes on another way, but no objective is below any bound.
    """
    X = draw_rows(data, "lagrangian")
    order = data.draw(orders(len(X)))
    model = CASES["lagrangian"].make(*data.draw(few_numbers_for(len(X))))
    one, other = fit(model, X), fit(clone(model), X[order])
    # Objectives hold what exemplars cost.
    assume(one.creation_cost_ == pytest.approx(other.creation_cost_, rel=1e-12))
    slack = 1e-9 * one.objective_
    assert one.objective_ >= other.lower_bound_ - slack
    assert other.objective_ >= one.lower_bound_ - slack


@pytest.mark.parametrize("estimator", GIVEN_STARTS)
@given(data=st.data())
def test_the_order_of_rows_changes_nothing_if_starts_are_given(estimator, data):
    X = data.draw(spread_rows())
    order = data.draw(orders(len(X)))
    n_clusters, n_outliers = data.draw(few_numbers_for(len(X)))
    # Rows themselves would be equally far from each other.
    starts = X[:n_clusters] + 0.1
    model = estimator(n_clusters, n_outliers=n_outliers, init=starts)
    expected = take(tell(fit(model, X)), order)
    assert_same(tell(fit(model, X[order])), expected, 1e-9)


@given(data=st.data())
def test_weights_are_rows_that_occur_more_than_once(data):
    """For K-means-- from given starts: others are drawn by position.

    Without outliers, as each row counts as one of them, whatever its weight.
    """
    X = data.draw(spread_rows())
    weights = data.draw(hnp.arrays(np.int64, len(X), elements=st.integers(1, 4)))
    n_clusters = data.draw(st.integers(1, 3))
    model = KMeansMinusMinus(n_clusters, n_outliers=0, init=X[:n_clusters])
    repeated = np.repeat(np.arange(len(X)), weights)
    expected = tell(fit(model, X[repeated]))
    found = take(tell(fit(model, X, sample_weight=weights)), repeated)
    assert_same(found, expected, 1e-9)


@given(data=st.data())
def test_weights_of_dbscan_are_rows_that_occur_more_than_once(data):
    X = data.draw(spread_rows())
    weights = data.draw(hnp.arrays(np.int64, len(X), elements=st.integers(1, 4)))
    model = DBSCAN(eps=0.5, min_samples=4)
    repeated = np.repeat(np.arange(len(X)), weights)
    expected = tell(fit(model, X[repeated]))
    found = take(tell(fit(model, X, sample_weight=weights)), repeated)
    assert same_clustering(found.labels, expected.labels)
    np.testing.assert_array_equal(found.scores, expected.scores)


@pytest.mark.parametrize("factor", [2.0**-30, 3.0, 2.0**40])
@given(data=st.data())
def test_only_ratios_of_weights_count(factor, data):
    X = data.draw(spread_rows())
    elements = st.integers(0, 4).map(float)
    weights = data.draw(hnp.arrays(np.float64, len(X), elements=elements))
    weights[:3] = 1
    model = KMeansMinusMinus(2, n_outliers=2, init=X[:2])
    expected = tell(fit(model, X, sample_weight=weights))
    found = tell(fit(model, X, sample_weight=factor * weights))
    assert_same(found, expected, 1e-9)
