"""Gaps between the strangest rows, and more rows than a tail has."""

import numpy as np
import pytest

from corral._tails import (
    _HEAVY_TAIL,
    Gaps,
    _survival,
    count_excess,
    measure_gaps,
    standardize_costs,
)


def test_gap_is_widest_below_the_planted_rows():
    rng = np.random.default_rng(0)
    costs = np.concatenate([rng.exponential(size=300), 50 + rng.exponential(size=7)])
    gaps = measure_gaps(rng.permutation(costs), 70)
    assert gaps.widths.argmax() == 7
    assert gaps.list_candidates(3)[0] == 7


def test_gap_width_by_hand():
    # Ranks times steps from the top: 1*1, 2*1, 3*1, ...; the window of the first gap
    # holds those of ranks 2 to 31, whose mean is 16.5.
    gaps = measure_gaps(np.arange(40.0), 5)
    assert gaps.widths[1] == pytest.approx(1 / 16.5)


def test_gaps_of_exponential_costs_pass_the_threshold_as_rarely_as_promised():
    # At most one set in a hundred; eight of 200 are far out in that tail.
    rng = np.random.default_rng(0)
    claims = 0
    for _ in range(200):
        gaps = measure_gaps(rng.exponential(size=400), 100)
        claims += bool(gaps.list_candidates(1))
    assert claims < 8


def test_gaps_do_not_depend_on_the_unit_or_the_order():
    costs = np.random.default_rng(1).exponential(size=200)
    one, other = measure_gaps(costs, 50), measure_gaps(7 * costs[::-1] + 3, 50)
    np.testing.assert_allclose(one.widths, other.widths, rtol=1e-4)


def test_gaps_are_never_between_equal_rows():
    costs = np.concatenate([np.arange(60.0), [500.0] * 3])
    widths = measure_gaps(costs, 10).widths
    assert widths[1] == widths[2] == 0 < widths[3]


def test_costs_that_are_all_equal_have_no_gap():
    assert not measure_gaps(np.ones(50), 10).widths.any()


def test_gap_candidates_are_not_neighbours():
    widths = np.zeros(101)
    widths[[50, 51, 20]] = [30, 40, 20]
    assert Gaps(widths, 10.0).list_candidates(3) == [51, 20]
    assert Gaps(widths, 100.0).list_candidates(3) == []


def test_thinned_gaps_keep_the_widest_of_their_neighbours():
    widths = np.random.default_rng(0).random(5001)
    widths[[1234, 4567]] = [20, 30]
    numbers, thinned = Gaps(widths, 10.0).thin(50)
    assert len(numbers) <= 50
    assert {1234, 4567} <= set(numbers.tolist())
    assert (np.diff(numbers) > 0).all()
    np.testing.assert_array_equal(thinned, widths[numbers])


def test_outliers_that_are_sure_need_no_wide_gap():
    widths = np.zeros(101)
    widths[[2, 30]] = [5, 3]
    assert Gaps(widths, 10.0).list_candidates(3, least=10) == [30]


def test_standard_costs_by_hand():
    # The first cluster has its first decile at 1 and its median at 5, the second is
    # ten times as wide and higher up.
    costs = np.arange(11.0)
    labels = np.repeat([0, 4], 11)
    standard = standardize_costs(np.concatenate([costs, 100 + 10 * costs]), labels)
    expected = (costs - 5) / 4
    np.testing.assert_allclose(standard, np.tile(expected, 2))


def test_standard_costs_of_a_cluster_do_not_depend_on_the_others_or_on_outliers():
    rng = np.random.default_rng(0)
    costs, labels = rng.exponential(size=300), rng.integers(3, size=300)
    both = standardize_costs(costs, labels)
    here = labels == 1
    np.testing.assert_allclose(standardize_costs(costs[here], labels[here]), both[here])
    strange = costs.copy()
    strange[costs.argmax()] = 1e6
    moved = standardize_costs(strange, labels) != both
    assert np.flatnonzero(moved).tolist() == [costs.argmax()]


def test_standard_costs_where_the_usual_rows_are_equal_are_zero():
    costs = np.array([2.0] * 9 + [7.0])
    assert not standardize_costs(costs, np.zeros(10, int)).any()
    assert standardize_costs(np.array([3.0]), np.array([0])).tolist() == [0.0]
    assert len(standardize_costs(np.empty(0), np.empty(0, int))) == 0


def slow_survival(x, shape):
    """Return S(x) of a generalised Pareto tail above the median, as it is defined.

    x counts steps from the median to the upper quartile; the scale is the one for
    which a step halves the share.
    """
    if shape == 0:
        scale = 1 / np.log(2)
        return 0.5 * np.exp(-x / scale)
    scale = shape / (2**shape - 1)
    return 0.5 * (1 + shape * x / scale) ** (-1 / shape)


@pytest.mark.parametrize("shape", [0.0, 0.05, _HEAVY_TAIL, 1.0])
def test_tail_is_a_generalised_pareto_distribution(shape):
    x = np.array([0.0, 0.3, 1.0, 2.5, 40.0])
    np.testing.assert_allclose(_survival(x, shape), slow_survival(x, shape))
    assert _survival(np.array([0.0, 1.0]), shape) == pytest.approx([0.5, 0.25])


def slow_excess(costs, most):
    """Count the excess in loops: a sign with a heavy tail, then how much of it."""

    def settle(shape, deviations, rows):
        found = 0
        for _ in range(8):
            others = sorted(costs)[: len(costs) - found]
            middle, upper = np.percentile(others, [50, 75])
            if upper == middle:
                return 0
            best, best_sign = 0, -np.inf
            for n, cost in enumerate(sorted(costs, reverse=True)[:most], 1):
                x = max(cost - middle, 0) / (upper - middle)
                expected = len(others) * slow_survival(x, shape)
                sign = n - expected - deviations * expected**0.5 - rows
                if sign > best_sign:
                    best, best_sign = n - expected, sign
            if best_sign <= 0:
                return 0
            if abs(round(best) - found) <= 1:
                return round(best)
            found = round(best)
        return found

    return settle(0, 2, 0) if settle(0.2, 3, 2) else 0


@pytest.mark.parametrize("n_far", [0, 4, 15, 60])
def test_excess_is_that_of_the_slow_twin(n_far, seed):
    rng = np.random.default_rng(seed)
    costs = np.concatenate([rng.exponential(size=250), rng.uniform(5, 30, n_far)])
    rng.shuffle(costs)
    for most in (1, 10, 80):
        assert count_excess(costs, most) == slow_excess(costs.tolist(), most)


@pytest.mark.parametrize("n_samples", [60, 400, 3000])
@pytest.mark.parametrize("kind", ["exponential", "normal", "chi-squared"])
def test_clean_tails_have_no_excess(kind, n_samples):
    # Nearly never; in each of a hundred draws there are many places to look at.
    rng = np.random.default_rng(0)
    draw = {
        "exponential": rng.exponential,
        "normal": rng.normal,
        "chi-squared": lambda size: rng.chisquare(4, size),
    }[kind]
    found = [count_excess(draw(size=n_samples), n_samples // 4) for _ in range(100)]
    assert np.count_nonzero(found) <= 3


@pytest.mark.parametrize("share", [0.03, 0.08, 0.15])
def test_planted_rows_far_out_are_counted(share, seed):
    rng = np.random.default_rng(seed)
    n_far = int(share * 2000)
    costs = np.concatenate([rng.normal(size=2000 - n_far), rng.uniform(5, 40, n_far)])
    assert count_excess(costs, 500) == pytest.approx(n_far, rel=0.25)


def test_excess_does_not_depend_on_the_unit_or_the_order():
    rng = np.random.default_rng(0)
    costs = np.concatenate([rng.exponential(size=400), rng.uniform(10, 30, 40)])
    found = count_excess(costs, 100)
    assert found > 30
    assert count_excess(rng.permutation(7 * costs + 3), 100) == found


@pytest.mark.parametrize("most", [0, 1, 5, 20])
def test_excess_is_never_more_than_wanted(most):
    rng = np.random.default_rng(0)
    costs = np.concatenate([rng.exponential(size=300), 1e3 + rng.random(40)])
    assert 0 <= count_excess(costs, most) <= most
    # All that can be counted are far out, so that hardly one is expected there.
    if most == 20:
        assert count_excess(costs, most) == 20


@pytest.mark.parametrize(
    "costs",
    [
        [1.0],
        [1.0, 2.0],
        [0.0, 0.0, 5.0],
        [3.0] * 50,
        # More than half are tied, so that the quartiles say nothing of the tail.
        [3.0] * 40 + [9.0] * 3,
    ],
    ids=["one row", "two rows", "three rows", "constant", "tied"],
)
def test_few_or_equal_costs_have_no_excess(costs):
    assert count_excess(np.array(costs), min(10, len(costs))) == 0


def test_ties_far_out_are_counted_together():
    costs = np.random.default_rng(0).normal(size=2000)
    found = count_excess(np.append(costs, [50.0] * 60), 500)
    assert found == pytest.approx(60, abs=3)
