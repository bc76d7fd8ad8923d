"""The grouping of classes, and what the checksums notice."""

import dataclasses

import numpy as np
import pytest
from scipy import sparse

from corral.datasets._content import (
    Content,
    group_classes,
    sum_labels,
    sum_rows,
    verify_content,
)


def test_named_classes_are_clusters_and_the_others_outliers(toy):
    target = group_classes(toy.info, toy.classes)
    assert target.tolist() == [1, 0, 0, 0, -1, 1, 0, -1, 1]


def test_largest_classes_are_clusters_where_none_is_named(toy):
    info = dataclasses.replace(toy.info, cluster_classes=())
    np.testing.assert_array_equal(
        group_classes(info, toy.classes), group_classes(toy.info, toy.classes)
    )


def test_sum_of_rows_does_not_depend_on_storage():
    rows = np.array([[0.0, 1.5], [-0.0, 3.0]])
    assert sum_rows(rows) == sum_rows(np.asfortranarray(np.abs(rows)))
    counts = sparse.csr_array(rows[1:])
    wide = counts.astype(np.float32)
    wide.indices, wide.indptr = wide.indices.astype("i8"), wide.indptr.astype("i8")
    assert sum_rows(counts) == sum_rows(wide)


def test_sum_of_rows_notices_value_order_and_shape():
    rows = np.arange(6.0).reshape(2, 3)
    others = [np.nextafter(rows, 9), rows[::-1], rows.reshape(3, 2), rows.T]
    assert len({sum_rows(each) for each in [rows, *others]}) == 5


def test_sum_of_labels_ignores_spelling_only():
    target = np.array([0, 0, -1, 1])
    known = sum_labels(np.array(["a", "a", "b", "c"]), target)
    assert sum_labels(np.array(["Z", "Z", "Y", "X"]), target) == known
    assert sum_labels(np.array(["a", "b", "b", "c"]), target) != known
    assert sum_labels(np.array(["a", "a", "b", "c"]), target[::-1]) != known


def test_all_wrong_counts_are_named(toy):
    content = Content(toy.rows[:-1, :1], np.full(8, "e"))
    with pytest.raises(ValueError, match="'here' is not the data set 'toy'") as caught:
        verify_content(toy.info, content, "'here'")
    assert str(caught.value).partition(": ")[2] == (
        "n_samples is 8 and should be 9, rows with a class is 8 and should be 9, "
        "n_features is 1 and should be 2, n_clusters is 0 and should be 2, "
        "n_outliers is 8 and should be 2. "
        "Remove it and get the original from https://example.org/toy."
    )


def test_wrong_checksums_are_named_with_the_right_ones(toy):
    content = Content(toy.rows, toy.classes)
    info = dataclasses.replace(toy.info, sha256_rows="12ab", sha256_labels="34cd")
    words = "its rows is [0-9a-f]{64} and should be 12ab, .* labels .* should be 34cd"
    with pytest.raises(ValueError, match=words):
        verify_content(info, content, "'here'")


def test_right_checksums_pass(toy):
    content = Content(toy.rows, toy.classes)
    target = group_classes(toy.info, toy.classes)
    info = dataclasses.replace(
        toy.info,
        sha256_rows=sum_rows(toy.rows),
        sha256_labels=sum_labels(toy.classes, target),
    )
    np.testing.assert_array_equal(verify_content(info, content, "here"), target)
