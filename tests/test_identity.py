"""What parameters hold is described alike in all processes, and told apart."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import DBSCAN, AgglomerativeClustering

from corral._identity import describe

LINKS = sparse.coo_array(np.arange(81).reshape(9, 9) % 3)


def measure(first, second, power=2):
    return abs(first - second) ** power


def measure_words(first, second, *, ends=("a", "b")):
    return sum(each in {"sepal", "petal", "stem", *ends} for each in (first, second))


def sort_words(words):
    return sorted(words, key=lambda word: (word in {"one", "two", "three"}, word))


def make_measure(power):
    return lambda first, second: abs(first - second) ** power


def draw_parameters():
    return {
        "function": DBSCAN(metric=measure),
        "function-of-words": measure_words,
        "function-in-function": sort_words,
        "lambda": lambda row: row + 1,
        "dict": DBSCAN(metric="minkowski", metric_params={"p": np.float64(3)}),
        "sparse": AgglomerativeClustering(connectivity=LINKS),
        "array": np.linspace(0, 1, 5000),
    }


def test_other_processes_describe_alike():
    code = (
        "import json; from tests.test_identity import describe, draw_parameters; "
        "print(json.dumps(describe(draw_parameters())))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code],
        # Sets stand in another order with another seed.
        env={**os.environ, "PYTHONHASHSEED": "7"},
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert json.loads(found) == json.loads(json.dumps(describe(draw_parameters())))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (lambda row: row + 1, lambda row: row + 2),
        (lambda row: row.min(), lambda row: row.max()),
        (lambda row, by=1: row + by, lambda row, by=2: row + by),
        (lambda row, *, by=1: row + by, lambda row, *, by=2: row + by),
        (lambda row: row in {1, 2}, lambda row: row in {1, 3}),
        (lambda rows: [lambda: 1], lambda rows: [lambda: 2]),
        (measure, measure_words),
        (make_measure(1), make_measure(2)),
        ({"p": 1}, {"p": 2}),
        (sparse.eye_array(4), 2 * sparse.eye_array(4)),
        (sparse.csr_array([[1, 0]]), sparse.csr_array([[0, 1]])),
        (np.zeros(2), np.zeros(2, np.float32)),
    ],
)
def test_what_differs_is_told_apart(first, second):
    assert describe(first) != describe(second)
    assert describe(first) == describe(first)


def test_forms_of_one_sparse_matrix_are_alike():
    assert describe(LINKS.tocsr()) == describe(LINKS) == describe(LINKS.tocsc())


def test_functions_are_known_by_name():
    name, _ = describe(measure)
    assert name == f"{__name__}.measure"
