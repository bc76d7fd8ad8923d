"""The agreement of partitions on pairs of rows, against a count by hand."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from corral import COR, CORDetector
from corral._consensus import consensus, find_fuser
from corral.detectors import LOF
from corral.rivals import KCC

ROWS = [2, 0, 5, 9]


@pytest.fixture
def model(planted):
    return COR(3, n_outliers=6, n_partitions=12, random_state=0).fit(planted.X)


def test_shares_are_counted_over_partitions_where_both_rows_have_a_label():
    # Rows 0 and 1 share partition 0, row 2 has no label there; in partition 1 rows 0
    # and 2 agree; partition 2 tells all apart but row 1, which has no label.
    labels = np.array([[0, 0, 0], [0, 1, -1], [-1, 0, 1], [1, 1, 2]])
    model = COR(2, n_outliers=0, random_state=0).fit_partitions(labels)
    expected = np.array(
        [
            [1, 1 / 2, 1 / 2, 0],
            [1 / 2, 1, 0, 1 / 2],
            [1 / 2, 0, 1, 0],
            [0, 1 / 2, 0, 1],
        ]
    )
    np.testing.assert_allclose(consensus(model, labels, range(4)), expected)


def test_pair_without_a_common_partition_has_no_share():
    labels = np.array([[0, -1], [1, -1], [-1, 0], [-1, 1], [0, 0], [1, 1]])
    model = COR(2, n_outliers=0, random_state=0).fit_partitions(labels)
    shares = consensus(model, labels, [0, 2, 4])
    np.testing.assert_equal(shares, [[1, np.nan, 1], [np.nan, 1, 1], [1, 1, 1]])


def test_label_that_the_fit_did_not_see_is_none():
    labels = np.array([[0, 0], [1, 1], [0, 1], [1, 0]])
    model = COR(2, n_outliers=0, random_state=0).fit_partitions(labels)
    shares = consensus(model, [[7, 0], [7, 0], [0, 0]], [0, 1, 2])
    np.testing.assert_equal(shares, np.ones((3, 3)))


def test_order_of_the_rows_is_the_order_asked_for(model, planted):
    every = consensus(model, planted.X, range(len(planted.X)))
    assert every.min() == 0
    assert 0 < np.median(every) < 1
    np.testing.assert_array_equal(
        consensus(model, planted.X, ROWS), every[np.ix_(ROWS, ROWS)]
    )


@pytest.mark.parametrize(
    "change",
    [pd.DataFrame, pl.DataFrame, sparse.csr_array, sparse.coo_array, np.ndarray.tolist],
    ids=["pandas", "polars", "csr", "coo", "list"],
)
def test_kind_of_rows_makes_no_difference(change, planted):
    X = change(planted.X)
    settings = {"n_outliers": 6, "n_partitions": 12, "random_state": 0}
    expected = consensus(COR(3, **settings).fit(planted.X), planted.X, ROWS)
    found = consensus(COR(3, **settings).fit(X), X, ROWS)
    np.testing.assert_array_equal(found, expected)


def test_extra_partitions_count_too(planted):
    extra = np.arange(len(planted.X))
    settings = {"n_outliers": 6, "n_partitions": 9, "random_state": 0}
    plain = COR(3, **settings).fit(planted.X)
    model = COR(3, **settings).fit(planted.X, extra_partitions=extra)
    shares = consensus(model, planted.X, ROWS, extra_partitions=extra)
    # No two rows agree in the tenth partition, and each agrees with itself.
    expected = 0.9 * consensus(plain, planted.X, ROWS) + 0.1 * np.eye(len(ROWS))
    np.testing.assert_allclose(shares, expected)


def test_detectors_answer_through_their_estimator(model, planted):
    expected = consensus(model, planted.X, ROWS)
    detector = CORDetector(FrozenEstimator(model)).fit(planted.X)
    np.testing.assert_array_equal(consensus(detector, planted.X, ROWS), expected)
    kcc = KCC(3, n_partitions=12, random_state=0).fit(planted.X)
    assert find_fuser(kcc) is kcc
    assert consensus(kcc, planted.X, ROWS).shape == (4, 4)


def test_method_without_partitions_is_refused(planted):
    model = LOF(n_outliers=6).fit(planted.X)
    with pytest.raises(TypeError, match="LOF does not fuse partitions.*Use COR"):
        consensus(model, planted.X, ROWS)


def test_model_that_is_not_fitted_is_refused(planted):
    with pytest.raises(NotFittedError):
        consensus(COR(3), planted.X, ROWS)


def test_a_mask_is_no_list_of_places(model, planted):
    mask = np.arange(len(planted.X)) < 5
    with pytest.raises(TypeError, match=r"rows has the type bool.* np\.flatnonzero"):
        consensus(model, planted.X, mask)
