"""Stage 4: which samples are set aside."""

import numpy as np
import pytest

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
