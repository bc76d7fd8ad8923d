"""Starts from trees of codes."""

import numpy as np
import pytest
from sklearn.datasets import make_moons

from corral import COR
from corral._codes import CodeBook, Codes
from corral._linkage import N_STARTS, _measure_pairs, list_linkage_starts


def codes_of(rows):
    rows = np.asarray(rows, dtype=np.uint8)
    n_labels = np.maximum(rows.max(axis=0).astype(int) + 1, 2)
    n_codes = len(rows)
    return Codes(
        CodeBook(n_labels), rows, np.arange(n_codes), np.ones(n_codes, dtype=int)
    )


def list_starts(codes, strange=(), n_clusters=2, n_starts=N_STARTS):
    rng = np.random.default_rng(0)
    aside = np.isin(np.arange(len(codes.rows)), strange).astype(float)
    return list_linkage_starts(
        codes, codes.weigh(None), aside, n_clusters, n_starts, rng
    )


def test_two_groups_are_the_first_start():
    # Codes 0 to 2 differ in one partition of four at most, from the others in three.
    codes = codes_of(
        [[0, 0, 0, 0], [0, 0, 0, 1], [0, 0, 1, 0], [2, 2, 2, 0], [2, 2, 2, 1]]
    )
    first = list_starts(codes)[0]
    np.testing.assert_array_equal(first.T, [[1, 1, 1, 0, 0], [0, 0, 0, 1, 1]])


def test_strange_samples_are_left_out_of_the_trees():
    codes = codes_of(
        [[0, 0, 0, 0], [0, 0, 0, 1], [2, 2, 2, 0], [2, 2, 2, 1], [3, 3, 3, 3]]
    )
    for start in list_starts(codes, strange=[4]):
        assert not start[4].any()


def test_strange_samples_stay_where_too_few_would_be_left():
    codes = codes_of([[0, 0], [1, 1], [2, 2]])
    [*_, last] = list_starts(codes, strange=[1, 2])
    assert (last.sum(axis=0) > 0).all()


@pytest.mark.parametrize("n_starts", [1, 3, N_STARTS])
def test_no_more_starts_than_asked(n_starts):
    codes = codes_of(np.random.default_rng(0).integers(0, 4, size=(40, 6)))
    starts = list_starts(codes, n_starts=n_starts)
    assert 1 <= len(starts) <= n_starts
    for start in starts:
        assert start.shape == (40, 2)
        assert (start.sum(axis=0) > 0).all()


def test_where_all_codes_are_equally_far_the_heaviest_are_the_start():
    # No tree comes apart: every pair differs in both partitions.
    codes = codes_of([[i, i] for i in range(10)])
    [start] = list_starts(codes, n_clusters=2)
    np.testing.assert_array_equal(start.sum(axis=0), [1, 1])


def test_missing_labels_do_not_count_in_a_distance():
    # 4 is the slot of a missing label: two known in both, of which one differs.
    rows = np.array([[0, 1, 0], [0, 0, 4], [1, 1, 2]], dtype=np.uint8)
    book = CodeBook(np.array([2, 2, 3]))
    codes = Codes(book, rows, np.arange(3), np.ones(3, dtype=int))
    distances = _measure_pairs(codes, np.arange(3))
    np.testing.assert_allclose(distances, [1 / 2, 2 / 3, 1])


def test_known_labels_have_the_same_distance_on_either_way():
    codes = codes_of(np.random.default_rng(0).integers(0, 3, size=(20, 6)))
    whole = _measure_pairs(codes, np.arange(20))
    gone = codes.rows.copy()
    gone = np.column_stack([gone, np.full(20, 3)])
    # One more partition that nobody has a label in changes nothing.
    book = CodeBook(np.append(codes.book.n_labels, 2))
    more = Codes(book, gone, codes.inverse, codes.counts)
    np.testing.assert_allclose(_measure_pairs(more, np.arange(20)), whole)


def test_shapes_with_a_gap_are_followed(seed):
    # Of any three draws of partitions, most; one draw in forty does not.
    X, y = make_moons(600, noise=0.05, random_state=seed)
    agreements = []
    for draw in range(3):
        model = COR(2, n_outliers=0, n_resamples=0, random_state=100 * draw + seed)
        agreement = np.mean(model.fit(X).labels_ == y)
        agreements.append(max(agreement, 1 - agreement))
    assert np.median(agreements) > 0.95


def test_many_rows_start_from_some_of_them(seed):
    # The starts are made on 8192 samples, the last iterations on all.
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), 5000)
    X = rng.normal(size=(15000, 3)) + 8 * np.eye(3)[y]
    model = COR(3, n_outliers=30, n_partitions=30, random_state=seed).fit(X)
    assert np.count_nonzero(model.labels_ == -1) == 30
    groups = {
        tuple(np.unique(model.labels_[(y == k) & (model.labels_ >= 0)]))
        for k in range(3)
    }
    assert groups == {(0,), (1,), (2,)}
    assert (np.diff(model.objective_history_) <= 0).all()


def test_rows_of_weight_zero_shape_no_tree():
    codes = codes_of([[0, 0, 0], [0, 0, 1], [2, 2, 2], [2, 2, 1], [3, 3, 3]])
    weights = np.array([1.0, 1.0, 1.0, 1.0, 0.0])
    rng = np.random.default_rng(0)
    for start in list_linkage_starts(codes, weights, np.zeros(5), 2, N_STARTS, rng):
        assert not start[4].any()


def test_few_rows_with_weight_among_many(seed):
    # The sample for the starts is drawn among them.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20_000, 2))
    weights = np.zeros(20_000)
    weights[rng.choice(20_000, 6, replace=False)] = 1
    model = COR(2, n_outliers=0, n_partitions=10, random_state=seed)
    assert np.isfinite(model.fit(X, sample_weight=weights).objective_)


def test_nearly_all_rows_can_be_set_aside():
    X = np.random.default_rng(0).normal(size=(10_000, 2))
    model = COR(1, n_outliers=9_998, n_partitions=4, random_state=0).fit(X)
    assert np.count_nonzero(model.labels_ == -1) == 9_998
