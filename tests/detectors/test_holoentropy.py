"""Holoentropy: the outlier factor, what it says of the entropy, and categories."""

import math
import tracemalloc
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy.sparse import csr_matrix

from corral.detectors._holoentropy import Bins, Holoentropy, find_distinct


def draw(seed, n_samples=40):
    """Return columns of text with a few, and with many, values; some occur once."""
    rng = np.random.default_rng(seed)
    sizes = [1, 2, 5, 30]
    skewed = [np.minimum(rng.geometric(0.4, n_samples), size) for size in sizes]
    return np.array(
        [[f"v{value}" for value in row] for row in zip(*skewed, strict=True)]
    )


def slow_entropy(column):
    total = len(column)
    return -sum(n / total * math.log(n / total) for n in Counter(column).values())


def slow_weights(X):
    return [2 * (1 - 1 / (1 + math.exp(-slow_entropy(column)))) for column in X.T]


def slow_holoentropy(X, weights):
    pairs = zip(weights, X.T, strict=True)
    return sum(weight * slow_entropy(column) for weight, column in pairs)


def slow_delta(n):
    return 0.0 if n == 1 else (n - 1) * math.log(n - 1) - n * math.log(n)


def slow_factors(X):
    """Sum the factors as the paper defines them: 0 for a value that occurs once."""
    weights = slow_weights(X)
    counts = [Counter(column) for column in X.T]
    return [
        sum(
            weight * slow_delta(count[value])
            for weight, count, value in zip(weights, counts, row, strict=True)
        )
        for row in X
    ]


def test_scores_are_the_papers_outlier_factors(seed):
    X = draw(seed)
    detector = Holoentropy(n_outliers=3).fit(X)
    np.testing.assert_allclose(detector.outlier_scores_, slow_factors(X))
    np.testing.assert_allclose(detector.weights_, slow_weights(X))
    np.testing.assert_allclose(
        detector.entropies_, [slow_entropy(column) for column in X.T], atol=1e-15
    )


def test_score_is_exactly_what_removal_saves_up_to_constants(seed):
    """The formula of the Notes, with the weights of all rows."""
    X = draw(seed)
    n = len(X)
    weights = slow_weights(X)
    before = slow_holoentropy(X, weights)
    scores = Holoentropy().fit(X).outlier_scores_
    for i in range(n):
        fall = before - slow_holoentropy(np.delete(X, i, axis=0), weights)
        said = (scores[i] - sum(weights) * slow_delta(n) - before) / (n - 1)
        assert fall == pytest.approx(said, abs=1e-12)


@pytest.mark.parametrize(("n_common", "sign"), [(20, 1), (3, -1)])
def test_new_weights_turn_the_order_of_columns_with_much_entropy(n_common, sign):
    """As the Notes say: w H rises with H up to 1.28 nats and falls from there."""
    X = np.array([["a"]] * n_common + [[v] for v in "bcdefgh"])
    entropy = slow_entropy(X[:, 0])
    assert (entropy < 1.28) == (sign == 1)
    before = slow_holoentropy(X, slow_weights(X))
    falls = []
    for i in (0, len(X) - 1):
        rest = np.delete(X, i, axis=0)
        falls.append(before - slow_holoentropy(rest, slow_weights(rest)))
    scores = Holoentropy().fit(X).outlier_scores_
    assert scores[-1] > scores[0]
    assert sign * (falls[1] - falls[0]) > 0


def test_holoentropy_is_entropy_plus_total_correlation(seed):
    """The identity that makes the sum over columns possible."""
    X = draw(seed)
    joint = slow_entropy([tuple(row) for row in X])
    marginals = [slow_entropy(column) for column in X.T]
    total_correlation = sum(marginals) - joint
    entropies = Holoentropy().fit(X).entropies_
    assert entropies.sum() == pytest.approx(joint + total_correlation)


def test_by_hand():
    """Columns a a a b: H = 0.5623, w = 0.7260, delta(3) = 2 log 2 - 3 log 3."""
    X = np.array([["a"], ["a"], ["a"], ["b"]])
    detector = Holoentropy(n_outliers=1).fit(X)
    assert detector.entropies_[0] == pytest.approx(0.5623, abs=1e-4)
    assert detector.weights_[0] == pytest.approx(0.7260, abs=1e-4)
    common = detector.weights_[0] * (2 * math.log(2) - 3 * math.log(3))
    np.testing.assert_allclose(detector.outlier_scores_, [common] * 3 + [0])
    assert detector.labels_.tolist() == [1, 1, 1, -1]
    assert detector.category_counts_ == [{"a": 3, "b": 1}]


def test_planted_rare_rows_are_found(seed):
    rng = np.random.default_rng(seed)
    X = rng.choice(["x", "y"], size=(100, 6)).astype(object)
    X[[7, 42]] = ["rare"] * 6, ["odd"] * 6
    detector = Holoentropy(n_outliers=2).fit(X)
    assert np.flatnonzero(detector.labels_ == -1).tolist() == [7, 42]


def test_unseen_values_are_the_strangest():
    X = np.array([["a"], ["a"], ["a"], ["b"], ["c"], ["c"]])
    detector = Holoentropy(n_outliers=1).fit(X)
    scores = -detector.score_samples(np.array([["a"], ["c"], ["b"], ["new"]]))
    assert (np.diff(scores) > 0).all()
    # The last step is the one from a value seen twice to a value seen once.
    assert scores[3] - scores[2] == pytest.approx(scores[2] - scores[1])
    assert detector.predict(np.array([["new"]])).tolist() == [-1]


def test_rows_of_the_fit_get_their_scores_one_by_one(seed):
    X = draw(seed)
    detector = Holoentropy(n_outliers=4).fit(X)
    for i, row in enumerate(X):
        assert detector.score_samples(row[None])[0] == -detector.outlier_scores_[i]


def test_names_of_categories_do_not_matter(seed):
    X = draw(seed)
    scores = Holoentropy().fit(X).outlier_scores_
    numbers = np.column_stack([find_distinct(column).places for column in X.T])
    for same in (numbers, numbers.astype(np.float32), numbers * -2.5, X.astype(object)):
        np.testing.assert_array_equal(Holoentropy().fit(same).outlier_scores_, scores)


MIXED = {
    "text": ["a", "a", None, "b", "a", None],
    "number": [1, 1, 2, 2, 2, 2],
    "truth": [True, True, True, True, False, True],
    "float": [0.5, 0.5, None, None, 0.5, 7.0],
}
MIXED_COUNTS = [
    {"a": 3, None: 2, "b": 1},
    {1: 2, 2: 4},
    {True: 5, False: 1},
    {0.5: 3, None: 2, 7.0: 1},
]


def mixed_frames():
    strings = pd.DataFrame(MIXED)
    nullable = strings.convert_dtypes()
    categorical = strings.assign(text=strings["text"].astype("category"))
    arrow = pa.table(MIXED)
    encoded = arrow.set_column(0, "text", arrow["text"].dictionary_encode())
    polars = pl.DataFrame(MIXED)
    return {
        "pandas": strings,
        "pandas nullable": nullable,
        "pandas categorical": categorical,
        "polars": polars,
        "polars categorical": polars.with_columns(pl.col("text").cast(pl.Categorical)),
        "pyarrow": arrow,
        "pyarrow dictionary": encoded,
    }


@pytest.mark.parametrize("kind", mixed_frames())
def test_frames_of_all_kinds_have_the_same_categories(kind):
    """Missing values are one category, whatever their name."""
    frame = mixed_frames()[kind]
    detector = Holoentropy(n_outliers=1).fit(frame)
    assert detector.category_counts_ == MIXED_COUNTS
    assert detector.feature_names_in_.tolist() == list(MIXED)
    np.testing.assert_array_equal(
        detector.score_samples(frame), -detector.outlier_scores_
    )


def test_frames_and_arrays_can_take_turns():
    frame = pd.DataFrame(MIXED)
    detector = Holoentropy(n_outliers=1).fit(frame)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        scores = detector.score_samples(
            np.array(list(zip(*MIXED.values(), strict=True)), dtype=object)
        )
    np.testing.assert_array_equal(scores, -detector.outlier_scores_)
    np.testing.assert_array_equal(
        detector.score_samples(pl.DataFrame(MIXED)), -detector.outlier_scores_
    )


def test_missing_values_of_arrays_are_one_category():
    objects = np.array(
        [["a"], [None], [np.nan], [pd.NA], [pd.NaT], [np.datetime64("NaT", "s")]],
        object,
    )
    assert Holoentropy().fit(objects).category_counts_ == [{"a": 1, None: 5}]
    floats = np.array([[1.0], [np.nan], [np.nan], [np.inf]])
    counts = Holoentropy().fit(floats).category_counts_
    assert counts == [{1.0: 1, math.inf: 1, None: 2}]


def test_constant_and_unique_columns_do_not_change_the_order(seed):
    X = draw(seed)
    plain = Holoentropy().fit(X).outlier_scores_
    unique = np.column_stack([X, [f"id{i}" for i in range(len(X))]])
    np.testing.assert_allclose(Holoentropy().fit(unique).outlier_scores_, plain)
    constant = np.column_stack([X, ["same"] * len(X)])
    shifted = Holoentropy().fit(constant).outlier_scores_
    np.testing.assert_allclose(shifted - plain, slow_delta(len(X)))


def test_whole_numbers_are_categories_as_floats_too():
    X = np.random.default_rng(0).integers(0, 40, size=(200, 3))
    whole = Holoentropy().fit(X).outlier_scores_
    np.testing.assert_array_equal(Holoentropy().fit(X * 1.0).outlier_scores_, whole)


@pytest.mark.parametrize(
    ("dtype", "size"), [(np.float64, 1e17), (np.float64, 1e300), (np.float32, 1e10)]
)
def test_large_floats_are_measured_though_they_are_whole(dtype, size):
    X = np.random.default_rng(0).normal(size, size / 10, (200, 1)).astype(dtype)
    X[0] = 3 * size
    assert np.array_equal(X, np.rint(X))
    detector = Holoentropy(n_outliers=1).fit(X)
    assert len(detector.category_counts_[0]) <= 10
    assert np.flatnonzero(detector.labels_ == -1).tolist() == [0]


def test_whole_numbers_below_the_limit_are_categories():
    X = (2.0**53 - np.arange(1, 13))[:, None]
    assert Holoentropy().fit(X).bins_ == [None]
    assert Holoentropy().fit(X + 1).bins_ != [None]


def test_memory_is_a_few_columns():
    """Not the places of the values of all columns, which would be as large as X."""
    X = np.random.default_rng(0).integers(0, 5, size=(2000, 60))
    tracemalloc.start()
    try:
        Holoentropy().fit(X)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < X.nbytes / 4


def test_bins_make_categories_of_measured_numbers():
    X = np.append(np.linspace(0, 1, 50), 30.0)[:, None]
    assert (Holoentropy(n_bins=None).fit(X).outlier_scores_ == 0).all()
    detector = Holoentropy(n_outliers=1, n_bins=10).fit(X)
    assert detector.category_counts_ == [{0: 50, 9: 1}]
    assert np.flatnonzero(detector.labels_ == -1).tolist() == [50]
    # Below, within an empty bin, and above: not seen by the fit.
    unseen = -detector.score_samples([[-0.1], [15.0], [30.1]])
    assert (unseen > detector.outlier_scores_.max()).all()
    np.testing.assert_array_equal(detector.predict(X), detector.labels_)


def test_bins_include_both_ends():
    bins = Bins(0.1, 0.7, (0.7 - 0.1) / 3)
    values = np.array([0.1, 0.2, 0.5, 0.7, np.nextafter(0.7, 1), 0.09, np.nan])
    places = bins.place(values)
    np.testing.assert_array_equal(places, [0, 0, 2, 2, 3, -1, np.nan])


def test_bins_leave_other_columns_alone():
    frame = pd.DataFrame(
        {
            "measured": np.arange(12) + 0.5,
            "few": [0.25, 0.5] * 6,
            "whole": np.arange(12),
            "text": list("abcdefghijkl"),
        }
    )
    detector = Holoentropy(n_bins=3).fit(frame)
    assert [bins is None for bins in detector.bins_] == [False, True, True, True]
    assert detector.category_counts_[0] == {0: 4, 1: 4, 2: 4}


def test_all_rows_equal_and_single_row():
    detector = Holoentropy(n_outliers=2).fit(np.full((6, 3), "a"))
    assert detector.labels_.tolist() == [-1, -1, 1, 1, 1, 1]
    assert len(np.unique(detector.outlier_scores_)) == 1
    assert Holoentropy(n_outliers=0).fit([["a", "b"]]).labels_.tolist() == [1]


def test_without_outliers_nothing_is_one():
    detector = Holoentropy(n_outliers=0).fit(draw(0))
    assert (detector.labels_ == 1).all()
    assert detector.predict(np.array([["never"] * 4])).tolist() == [1]


def test_sparse_input_is_refused():
    with pytest.raises(TypeError, match="Sparse data was passed"):
        Holoentropy().fit(csr_matrix(np.eye(4)))


def test_values_that_cannot_be_categories_are_refused():
    X = np.array([[None], ["a"]], dtype=object)
    X[0, 0] = ["a list"]
    with pytest.raises(TypeError, match=r"cannot be a category .*'list'.* hashable"):
        Holoentropy(n_outliers=0).fit(X)


@pytest.mark.parametrize(
    "column",
    [
        pl.Series([[1, 2], [1, 2], [3]]),
        pl.Series([[1, 2], [1, 2], [3, 4]], dtype=pl.Array(pl.Int64, 2)),
    ],
)
def test_lists_in_a_frame_are_refused(column):
    with pytest.raises(TypeError, match=r"cannot be a category .* hashable"):
        Holoentropy(n_outliers=0).fit(pl.DataFrame({"x": column}))


@pytest.mark.parametrize("value", ["a", "0.5", b"a", 3j, pd.Timestamp("2020-01-01")])
def test_what_is_no_number_is_unseen_in_a_column_of_numbers(value):
    X = np.random.default_rng(0).normal(size=(50, 1))
    detector = Holoentropy(n_outliers=1).fit(X)
    unseen = detector.score_samples([[1e6]])
    assert detector.score_samples(np.array([[value]], dtype=object)) == unseen
    assert detector.score_samples(np.array([[value], [X[3, 0]]], dtype=object))[1] == (
        -detector.outlier_scores_[3]
    )
    if isinstance(value, str):
        assert detector.predict([[value]]).tolist() == [-1]


def test_missing_values_stay_missing_beside_text_in_a_column_of_numbers():
    X = np.append(np.random.default_rng(0).normal(size=50), [np.nan] * 3)[:, None]
    detector = Holoentropy(n_outliers=1).fit(X)
    new = np.array([[None], ["a"], [pd.NA], [np.nan]], dtype=object)
    scores = -detector.score_samples(new)
    assert (scores[[0, 2, 3]] == detector.outlier_scores_[-1]).all()
    assert scores[1] > scores[0]


@pytest.mark.parametrize("frame", [pd.DataFrame({"a": []}), pl.DataFrame({"a": []})])
def test_empty_frames_are_refused(frame):
    with pytest.raises(
        ValueError, match=r"X has 0 sample.* Holoentropy needs at least"
    ):
        Holoentropy().fit(frame)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_bins": 1}, r"'n_bins' parameter .* must be"),
        ({"n_outliers": 40}, r"n_outliers=40 should be smaller than n_samples=40"),
        ({"contamination": 0.7}, r"'contamination' parameter .* must be"),
        ({"n_outliers": 1, "contamination": 0.1}, r"either n_outliers or contaminat"),
    ],
)
def test_bad_parameters(parameters, message):
    with pytest.raises(ValueError, match=message):
        Holoentropy(**parameters).fit(draw(0))
