"""Stage 2: distinct codes."""

import numpy as np
import pytest

from corral import _codes
from corral._codes import CodeBook, Codes, OneHot, encode, make_keys, one_hot_rows
from corral._threads import ONE_THREAD, use_threads


def encode_matrix(labels, block_rows=16, n_jobs=1):
    """Encode a label matrix of shape (n_samples, n_partitions) in blocks."""
    book = CodeBook(labels.max(axis=0) + 1)
    blocks = [labels[i : i + block_rows].T for i in range(0, len(labels), block_rows)]
    with use_threads(n_jobs) as threads:
        return encode(book, len(blocks), lambda _, index: blocks[index], threads)


def test_codes_are_the_distinct_rows(partitions):
    codes = encode_matrix(partitions)
    np.testing.assert_array_equal(codes.rows[codes.inverse], partitions)
    expected, counts = np.unique(partitions, axis=0, return_counts=True)
    assert {tuple(row) for row in codes.rows} == {tuple(row) for row in expected}
    assert len(codes.rows) == len(expected)
    order = np.lexsort(codes.rows.T[::-1])
    np.testing.assert_array_equal(codes.counts[order], counts)


@pytest.mark.parametrize("block_rows", [1, 7, 1000])
@pytest.mark.parametrize("n_jobs", [1, 3])
def test_codes_do_not_depend_on_blocks_or_threads(partitions, block_rows, n_jobs):
    codes = encode_matrix(partitions)
    other = encode_matrix(partitions, block_rows, n_jobs)
    np.testing.assert_array_equal(codes.rows, other.rows)
    np.testing.assert_array_equal(codes.inverse, other.inverse)


def test_order_of_codes_does_not_depend_on_order_of_samples(partitions):
    order = np.random.default_rng(0).permutation(len(partitions))
    codes, other = encode_matrix(partitions), encode_matrix(partitions[order])
    np.testing.assert_array_equal(codes.rows, other.rows)
    np.testing.assert_array_equal(codes.inverse[order], other.inverse)


@pytest.mark.parametrize("block_rows", [4, 1000])
def test_colliding_keys_are_noticed(partitions, monkeypatch, block_rows):
    # Keys that are the same for all codes at the first two attempts.
    make = _codes._KeyMaker.__init__

    def weak(self, book, seed):
        make(self, book, seed)
        if seed < 2:
            self._factors[:] = 0

    monkeypatch.setattr(_codes._KeyMaker, "__init__", weak)
    codes = encode_matrix(partitions, block_rows)
    np.testing.assert_array_equal(codes.rows[codes.inverse], partitions)


def test_many_labels_get_a_wider_type():
    labels = np.arange(600).reshape(-1, 1) // 2
    codes = encode_matrix(labels, block_rows=100)
    assert codes.rows.dtype == np.uint16
    np.testing.assert_array_equal(codes.rows[codes.inverse], labels)


def test_weights_add_up_by_code(partitions):
    codes = encode_matrix(partitions)
    weights = np.random.default_rng(0).random(len(partitions))
    expected = [weights[codes.inverse == i].sum() for i in range(len(codes.rows))]
    np.testing.assert_allclose(codes.weigh(weights), expected)
    np.testing.assert_array_equal(codes.weigh(None), codes.counts)


def all_codes():
    """Return codes of two partitions with 2 and 1 labels, with all kinds of slots.

    The first partition has a label that was not there before in the third code and no
    label in the last; the second one has none in the second.
    """
    rows = np.array([[0, 0], [1, 2], [2, 1], [3, 0]], dtype=np.uint8)
    inverse = np.array([3, 0, 1, 1, 2, 3, 0, 0])
    return Codes(CodeBook(np.array([2, 1])), rows, inverse, np.bincount(inverse))


def test_slots_by_hand():
    # Labels 0 and 1, unseen and missing; then label 0, unseen and missing.
    book = CodeBook(np.array([2, 1]))
    assert book.offsets.tolist() == [0, 4]
    assert book.n_slots == 7
    assert book.partition_of_slot.tolist() == [0, 0, 0, 0, 1, 1, 1]
    assert np.flatnonzero(book.is_label).tolist() == [0, 1, 4]
    assert np.flatnonzero(book.is_missing).tolist() == [3, 6]


@pytest.mark.parametrize(
    ("n_labels", "dtype"), [([], "u1"), ([3, 254], "u1"), ([255, 3], "u2")]
)
def test_codes_are_as_narrow_as_the_mark_of_a_missing_label(n_labels, dtype):
    assert CodeBook(np.array(n_labels, dtype=int)).dtype == dtype


def test_one_hot_rows_by_hand():
    codes = all_codes()
    expected = [
        [1, 0, 0, 0, 1, 0, 0],
        [0, 1, 0, 0, 0, 0, 1],
        [0, 0, 1, 0, 0, 1, 0],
        [0, 0, 0, 1, 1, 0, 0],
    ]
    np.testing.assert_array_equal(
        one_hot_rows(codes.rows, codes.book).toarray(), expected
    )


def test_codes_of_some_samples_by_hand():
    # Samples 2, 5 and 0 have the codes 1, 3 and 3.
    codes = all_codes()
    some = codes.take(np.array([2, 5, 0]))
    assert some.book is codes.book
    assert some.rows.tolist() == [[1, 2], [3, 0]]
    assert some.inverse.tolist() == [0, 1, 1]
    assert some.counts.tolist() == [1, 2]


def test_samples_are_counted_by_cluster_and_label():
    # Those without a label are left out; unseen labels are the last column.
    codes = all_codes()
    clusters, kept = np.array([0, 2, 2, 0], dtype=np.uint8), np.array([2.0, 1, 4, 9])
    counts = codes.count_jointly(clusters, kept, 3, 0)
    np.testing.assert_array_equal(counts, [[2, 0, 0], [0, 0, 0], [0, 1, 4]])
    counts = codes.count_jointly(clusters, kept, 3, 1)
    np.testing.assert_array_equal(counts, [[11, 0], [0, 0], [0, 4]])


def test_many_clusters_are_counted_whatever_the_type_of_their_numbers():
    # 200 clusters of 7 slots are more places than a byte has.
    rows = np.arange(200, dtype=np.uint8)[:, None] % 5
    codes = Codes(CodeBook(np.array([5])), rows, np.arange(200), np.ones(200, int))
    clusters = np.arange(200, dtype=np.uint8)
    counts = codes.count_jointly(clusters, np.ones(200), 200, 0)
    np.testing.assert_array_equal(counts, np.eye(6)[np.arange(200) % 5])


@pytest.mark.parametrize("block_slots", [1, 5, 2**19])
def test_products_with_one_hot_rows_by_hand(monkeypatch, block_slots):
    monkeypatch.setattr(_codes, "_BLOCK_SLOTS", block_slots)
    codes = all_codes()
    one_hot = OneHot(codes)
    assert one_hot.count_known().tolist() == [2, 1, 2, 1]
    # Two tables of three and three clusters. In the first, the codes cost 1 + 10,
    # 2 + 0, 4 + 20 and 0 + 10 in cluster 0, always 7 + 7 in cluster 1 and 9 + 9 in 2.
    first = np.array([[1.0, 2, 4, 0, 10, 20, 0], [7.0] * 7, [9.0] * 7]).T
    second = first[:, [2, 1, 0]] + [0, 0, 100]
    labels, costs = one_hot.find_nearest([first, second], ONE_THREAD)
    np.testing.assert_array_equal(labels, [[0, 0, 1, 0], [1, 1, 1, 1]])
    assert labels.dtype == np.int32
    np.testing.assert_array_equal(costs, [[11, 2, 14, 10], [14, 14, 14, 14]])
    # All of the first two codes in cluster 0, a half and a quarter in cluster 1.
    shares = np.array([[1, 0], [1, 0], [0, 0.5], [0, 0.25]])
    sums = one_hot.add_up(lambda here: shares[here], ONE_THREAD)
    np.testing.assert_array_equal(
        sums.T, [[1, 1, 0, 0, 1, 0, 1], [0, 0, 0.5, 0.25, 0.25, 0.5, 0]]
    )


def test_of_equal_costs_the_first_cluster_is_the_nearest():
    labels, _ = OneHot(all_codes()).find_nearest([np.ones((7, 3))], ONE_THREAD)
    np.testing.assert_array_equal(labels, [[0, 0, 0, 0]])


@pytest.mark.parametrize(("n_slots", "is_kept"), [(7, False), (8, True), (None, True)])
def test_rows_are_kept_if_they_have_no_more_slots(n_slots, is_kept):
    # Four codes of two labels take eight slots.
    one_hot = OneHot(all_codes())
    assert one_hot.block(0) is not one_hot.block(0)
    one_hot.keep(n_slots)
    block = one_hot.block(0)
    assert (one_hot.block(0) is block) == is_kept
    # Asked again for less, they stay.
    one_hot.keep(1)
    assert (one_hot.block(0) is block) == is_kept
    np.testing.assert_array_equal(one_hot.block(0).toarray(), block.toarray())


def test_each_block_is_kept_by_itself(monkeypatch):
    monkeypatch.setattr(_codes, "_BLOCK_SLOTS", 4)
    codes = all_codes()
    one_hot = OneHot(codes)
    one_hot.keep()
    whole = one_hot_rows(codes.rows, codes.book).toarray()
    for start in (0, 2, 0, 2):
        np.testing.assert_array_equal(
            one_hot.block(start).toarray(), whole[start : start + 2]
        )


def test_few_slots_are_kept_if_nothing_is_said(monkeypatch):
    monkeypatch.setattr(_codes, "_KEPT_SLOTS", 7)
    one_hot = OneHot(all_codes())
    one_hot.keep()
    assert one_hot.block(0) is not one_hot.block(0)


@pytest.mark.parametrize("block_slots", [1, 20, 2**19])
def test_codes_are_in_the_order_of_their_keys(partitions, monkeypatch, block_slots):
    monkeypatch.setattr(_codes, "_BLOCK_SLOTS", block_slots)
    codes = encode_matrix(partitions)
    keys = make_keys(codes)
    assert keys.shape == codes.counts.shape
    assert (keys[1:] > keys[:-1]).all()


@pytest.mark.parametrize("n_labels", [241, 496])
def test_keys_are_two_random_sums_mixed(n_labels):
    # The sums are exact: the largest one, 256 or 511, leaves 44 bits of 53 to factors.
    book = CodeBook(np.array([6, 6, n_labels]))
    factors = np.random.default_rng(4).integers(2**44, size=(2, 3))
    labels = np.array([[0, 7, 3], [1, 7, 0], [2, n_labels + 1, 99]], dtype=np.uint16)
    expected = [
        (int(factors[0] @ column) * 0x9E3779B97F4A7C15 + int(factors[1] @ column))
        % 2**64
        for column in labels.T.astype(int)
    ]
    keys = _codes._KeyMaker(book, seed=4).keys(labels)
    assert [int(key) for key in keys] == expected


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_labels_are_read_by_numbered_threads(n_jobs):
    read = []

    def read_labels(number, index):
        read.append((number, index))
        return np.array([[index % 2]])

    with use_threads(n_jobs) as threads:
        encode(CodeBook(np.array([2])), 6, read_labels, threads)
    # Each thread has every so many blocks.
    assert sorted(read) == sorted((index % n_jobs, index) for index in range(6))
