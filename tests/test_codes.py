"""Stage 2: distinct codes."""

import numpy as np
import pytest

from corral import _codes
from corral._codes import CodeBook, encode
from corral._threads import use_threads


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
