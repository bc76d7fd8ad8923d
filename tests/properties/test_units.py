"""The unit and the origin of the columns: what should not matter does not."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from corral.detectors import TONMF
from corral.rivals import DBSCAN
from tests.properties.methods import (
    CASES,
    Outcome,
    assert_same,
    draw_rows,
    fit,
    tell,
    try_to_fit,
    try_to_solve,
)
from tests.properties.strategies import few_numbers_for, spread_rows

SCALED = [name for name, case in CASES.items() if case.degree is not None]
SHIFTED = [name for name, case in CASES.items() if case.shifts]
# Something is drawn for each feature: whether it is seen, or its part in topics.
BY_FEATURE = {"cor, some features", "iforest", "tonmf"}
# Values are compared with borders that are rounded themselves, or two rows of a cluster
# with each other, which tie but for rounding. The last starts of k-means++ among few
# rows are such: if one of two is drawn, the other is as far away.
BY_ROUNDING = {"holoentropy", "iforest", "lagrangian", "k-center", "k-median"}
BY_ROUNDING |= {"cor, k-means++"}

# Smaller ones reach where scikit-learn's 1e-10 counts; larger ones make whole numbers,
# which Holoentropy takes for categories.
_LEAST_POWER = {"lof": 0}
_LARGEST_POWER = {"holoentropy": 0}


def scale(outcome, name, factor):
    """Return the outcome of rows in another unit."""
    return Outcome(outcome.labels, outcome.scores * factor ** CASES[name].degree)


@pytest.mark.parametrize("name", [name for name in SCALED if name != "lagrangian"])
@given(data=st.data())
def test_powers_of_two_change_nothing_but_the_unit_of_scores(name, data):
    """Exempt are DBSCAN and TONMF, whose parameters have the unit of X; see below.

    So is Lagrangian clustering: of two rows that are a cluster, either may be the
    exemplar.
    """
    X = draw_rows(data, name)
    numbers = data.draw(few_numbers_for(len(X)))
    least, largest = _LEAST_POWER.get(name, -60), _LARGEST_POWER.get(name, 60)
    factor = 2.0 ** data.draw(st.integers(least, largest))
    expected = scale(try_to_solve(name, X, *numbers), name, factor)
    found = try_to_solve(name, factor * X, *numbers)
    assert_same(found, expected, 1e-5 if name == "lof" else 1e-12)


@pytest.mark.parametrize("name", [name for name in SCALED if name not in BY_ROUNDING])
@given(data=st.data())
def test_any_factor_changes_nothing_but_the_unit_of_scores(name, data):
    """Exempt are those above, and methods in which rounding decides.

    Isolation forests and the bins of Holoentropy round borders and values in their own
    ways, so that a value may change its side. Of two rows that are a cluster, either
    may be the exemplar. In one column, a row may be half-way between two others.
    """
    X = draw_rows(data, name, min_columns=2)
    numbers = data.draw(few_numbers_for(len(X)))
    factor = data.draw(st.floats(1.0, 1000.0))
    expected = scale(try_to_solve(name, X, *numbers), name, factor)
    assert_same(try_to_solve(name, factor * X, *numbers), expected, 1e-4)


@given(X=spread_rows(), power=st.integers(-60, 60))
def test_powers_of_two_change_nothing_if_the_radius_has_the_same_unit(X, power):
    factor = 2.0**power
    usual = tell(fit(DBSCAN(1.0, min_samples=2), X))
    scaled = tell(fit(DBSCAN(factor, min_samples=2), factor * X))
    np.testing.assert_array_equal(scaled.labels, usual.labels)
    np.testing.assert_array_equal(scaled.scores, factor * usual.scores)


@given(X=spread_rows(min_columns=3, max_columns=4), power=st.integers(-10, 10))
def test_even_powers_of_two_change_nothing_if_penalties_have_the_same_unit(X, power):
    # With X times the square of a root, both factors get the root, and all terms of the
    # objective its fourth power.
    def solve_in(root):
        model = TONMF(2, alpha=10 * root**2, beta=0.1 * root**3, n_outliers=2)
        outcome = tell(fit(model.set_params(random_state=0), root**2 * np.abs(X)))
        return Outcome(outcome.labels, outcome.scores / root**2)

    assert_same(solve_in(2.0**power), solve_in(1.0), 1e-9)


@pytest.mark.parametrize("name", SHIFTED)
@given(data=st.data())
def test_whole_shifts_of_columns_change_nothing(name, data):
    """Exempt are cosine distance and TONMF, which measure from the origin.

    Rows are multiples of 2**-12, so that no sum is rounded.
    """
    X = draw_rows(data, name)
    numbers = data.draw(few_numbers_for(len(X)))
    shifts = st.lists(st.integers(-999, 999), min_size=X.shape[1], max_size=X.shape[1])
    expected = try_to_solve(name, X, *numbers)
    found = try_to_solve(name, X + data.draw(shifts), *numbers)
    assert_same(found, expected, max(CASES[name].rounding, 1e-6))


@pytest.mark.parametrize("name", [name for name in CASES if name not in BY_FEATURE])
@given(data=st.data())
def test_constant_columns_change_nothing(name, data):
    """Exempt is what draws something for each feature: features to see, or topics.

    For cosine distance they are columns of zeros. K-means runs to its end: where it may
    stop is a part of the mean variance of the features.
    """
    X = draw_rows(data, name)
    model = CASES[name].make(*data.draw(few_numbers_for(len(X))))
    tolerances = [key for key in model.get_params() if key.endswith("kmeans_tol")]
    model.set_params(**dict.fromkeys(tolerances, 0))
    value = data.draw(st.integers(-100, 100)) if CASES[name].shifts else 0
    expected = try_to_fit(model, X)
    wider = try_to_fit(model, np.insert(X, 0, value, axis=1))
    np.testing.assert_array_equal(wider.labels, expected.labels)
