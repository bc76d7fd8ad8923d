"""Stage 4: which samples are set aside."""

import numpy as np
import pytest

from corral._codes import CodeBook, Codes
from corral._outliers import costliest, find_offset, set_aside
from tests.test_codes import encode_matrix


@pytest.fixture
def codes(partitions):
    return encode_matrix(partitions)


def test_costliest_takes_the_largest_and_of_equal_ones_the_first():
    costs = np.array([1.0, 5.0, 3.0, 5.0, 3.0, 3.0])
    np.testing.assert_array_equal(costliest(costs, 0), [])
    np.testing.assert_array_equal(costliest(costs, 1), [1])
    np.testing.assert_array_equal(costliest(costs, 3), [1, 2, 3])
    np.testing.assert_array_equal(costliest(costs, 4), [1, 2, 3, 4])
    np.testing.assert_array_equal(costliest(costs, 6), np.arange(6))


@pytest.mark.parametrize("n_distinct", [1, 3, 1000])
def test_choosing_by_codes_is_choosing_by_samples(codes, n_distinct, seed):
    # With many ties, few ties and none.
    rng = np.random.default_rng(seed)
    costs = rng.integers(n_distinct, size=len(codes.rows)).astype(float)
    for n_outliers in range(len(codes.inverse)):
        by_code = set_aside(costs, codes, n_outliers)
        expected = costliest(costs[codes.inverse], n_outliers)
        np.testing.assert_array_equal(by_code.list_samples(codes), expected)
        by_sample = set_aside(
            costs, codes, n_outliers, cost_offsets=np.zeros(len(codes.inverse))
        )
        np.testing.assert_array_equal(by_sample.list_samples(codes), expected)
        np.testing.assert_array_equal(by_code.code_weights, by_sample.code_weights)


@pytest.mark.parametrize("n_distinct", [40, 10**9])
def test_choosing_by_codes_of_one_sample_each(n_distinct, seed):
    # No code can be left out of the search then: each place is taken by another one.
    n = 1000
    rng = np.random.default_rng(seed)
    rows = np.arange(n, dtype=np.uint16)[:, None]
    codes = Codes(CodeBook(np.array([n])), rows, rng.permutation(n), np.ones(n, int))
    costs = rng.integers(n_distinct, size=n).astype(float)
    for n_outliers in (0, 1, 2, 3, 10, 150, 151, n - 1, n):
        by_code = set_aside(costs, codes, n_outliers)
        expected = costliest(costs[codes.inverse], n_outliers)
        np.testing.assert_array_equal(by_code.list_samples(codes), expected)
        assert by_code.code_weights.sum() == n_outliers
        assert by_code.kept_offsets == 0


def test_what_is_set_aside_by_hand():
    # Samples cost 1, 5, 2, 5 and 1. With weights, two go for what they weigh.
    inverse = np.array([0, 1, 2, 1, 0])
    rows = np.arange(4, dtype=np.uint8)[:, None]
    codes = Codes(CodeBook(np.array([4])), rows, inverse, np.array([2, 2, 1, 0]))
    costs, weights = np.array([1.0, 5, 2, 9]), np.array([1.0, 2, 4, 8, 16])
    aside = set_aside(costs, codes, 2, sample_weight=weights)
    assert aside.samples.tolist() == [1, 3]
    assert aside.code_weights.tolist() == [0, 10, 0, 0]
    assert aside.kept_offsets == 0
    # With offsets, they cost 8, 5, 3, 5 and 1: the first and the second of equal ones.
    offsets = np.array([7.0, 0, 1, 0, 0])
    aside = set_aside(costs, codes, 2, cost_offsets=offsets)
    assert aside.samples.tolist() == [0, 1]
    assert aside.code_weights.tolist() == [1, 1, 0, 0]
    assert aside.kept_offsets == 1
    aside = set_aside(costs, codes, 1, sample_weight=weights, cost_offsets=offsets)
    assert aside.samples.tolist() == [0]
    assert aside.code_weights.tolist() == [1, 0, 0, 0]
    assert aside.kept_offsets == 4


def test_huge_offsets_that_are_set_aside_leave_the_sum_exact():
    codes = Codes(CodeBook(np.array([1])), np.zeros((1, 1), int), np.zeros(3, int), [3])
    offsets = np.array([1e300, 0.1, 0.2])
    aside = set_aside(np.zeros(1), codes, 1, cost_offsets=offsets)
    assert aside.kept_offsets == 0.1 + 0.2


def test_weights_and_offsets_are_added_up(codes):
    rng = np.random.default_rng(0)
    n_samples = len(codes.inverse)
    weights, offsets = rng.random(n_samples), rng.random(n_samples)
    costs = rng.random(len(codes.rows))
    aside = set_aside(costs, codes, 9, sample_weight=weights, cost_offsets=offsets)
    expected = np.argsort(-(costs[codes.inverse] + offsets))[:9]
    np.testing.assert_array_equal(aside.samples, np.sort(expected))
    kept = np.setdiff1d(np.arange(n_samples), expected)
    assert aside.kept_offsets == pytest.approx((weights * offsets)[kept].sum())
    assert aside.code_weights.sum() == pytest.approx(weights[expected].sum())


def test_offset_is_the_score_of_the_strangest_kept_sample():
    costs = np.array([1.0, 9.0, 4.0, 7.0])
    assert find_offset(costs, np.array([1, 3]), 2) == -4.0
    assert find_offset(costs, np.array([], dtype=int), 0) == -np.inf
