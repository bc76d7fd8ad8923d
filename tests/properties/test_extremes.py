"""Rows of any size, equal rows, single rows: a valid answer, or a clear refusal."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from corral import all_methods
from tests.properties.methods import CASES, draw_rows, fit, tell
from tests.properties.strategies import extreme_rows, numbers_for, whole_rows
from tests.slow_twins import same_clustering

# What may be refused: values that cannot be computed with, and fewer rows, distinct
# rows or distinct codes than are needed.
_REFUSALS = re.compile(
    r"X holds .* too large for float\d\d to compute with: .* Divide the columns"
    r"|cannot be squared: values should be at most .* Leave out or clip rows"
    r"|which cannot be squared: it should be from .* Divide the columns"
    r"|gives .*row.* a score that is not a number.*\. .* divide the columns of X"
    r"|distances should be finite\. Rescale X"
    r"|distinct codes.* n_clusters=\d+.*[Ll]ower n_clusters"
    r"|n_samples=\d+ should be (at least|larger than|>=) "
    r"|min_samples \(\d+\) must be at most the number of samples"
    r"|HDBSCAN requires more than one sample"
)


def check_answer(name, X, n_clusters, n_outliers):
    """Fit and ask about the same rows; return whether there was an answer."""
    estimator = CASES[name].make(n_clusters, n_outliers)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            labels, scores = tell(fit(estimator, X))
            asked = -estimator.score_samples(X) if CASES[name].predicts else scores
        except ValueError as error:
            if not _REFUSALS.search(str(error)):
                raise
            return False
    assert labels.shape == scores.shape == (len(X),)
    assert np.isfinite(scores).all()
    assert labels.min() >= -1
    assert labels.max() <= max(n_clusters, 10)
    if CASES[name].counts:
        assert np.count_nonzero(labels == -1) == n_outliers
        if n_outliers:
            assert scores[labels == -1].min() >= scores[labels != -1].max()
    np.testing.assert_allclose(asked, scores, rtol=1e-9, atol=0)
    return True


def make_usable(name, X):
    return np.abs(X) if name == "tonmf" else X


def test_every_method_has_its_laws():
    assert set(all_methods()) <= set(CASES)


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
def test_rows_of_any_size_get_a_valid_answer_or_a_clear_refusal(name, data):
    X = make_usable(name, data.draw(extreme_rows()))
    check_answer(name, X, *data.draw(numbers_for(len(X))))


@pytest.mark.parametrize("name", CASES)
@given(data=st.data())
def test_few_and_equal_rows_get_a_valid_answer_or_a_clear_refusal(name, data):
    X = make_usable(name, data.draw(whole_rows(max_columns=2, span=1)))
    check_answer(name, X, *data.draw(numbers_for(len(X))))


_STEPS = np.array([[0.0], [-1.0], [1.0], [2.0], [1.0], [1.0], [-2.0]])
_WIDE = np.random.default_rng(0).normal(size=(12, 3))
_TURNS = np.array([[0, 1, 0], [0, 0, 0], [-1, 0, 1], [0, 0, 0], [-1, -1, 1]])
_TURNS = np.concatenate([_TURNS, [[-1, 0, 0], [1, 0, -1], [0, 1, -1]]])

# Rows that once made warnings of NumPy, infinite scores or errors from below.
ANSWERED = {
    "equal rows": ("cor", _STEPS, 2, 4),
    "equal rows of 1e150": ("kcc", 1e150 * _STEPS, 2, 0),
    "float32 below its smallest": ("cor", (1e-40 * _WIDE).astype("f4"), 2, 2),
    "float32 beyond the root of its largest": (
        "kmeans+1",
        _WIDE.astype("f4") * 1e25,
        2,
        0,
    ),
    "squares of float64 that vanish": ("kmeans+1", 1e-140 * _WIDE, 2, 0),
    "neighbours that are too near": ("fast-abod", 1e154 * _TURNS + 1e-20, 3, 4),
    "a range that is infinite": (
        "holoentropy",
        1.7e308 * np.linspace(-1, 1, 15)[:, None],
        1,
        3,
    ),
}
REFUSED = {
    "one row beside which others vanish": (
        "cor",
        np.vstack([_WIDE, [[1e200] * 3]]),
        2,
        1,
    ),
    "sums that are infinite": ("lof", 1.7e308 * np.sign(_WIDE), 2, 1),
    "differences that are infinite": ("cor", 3e38 * np.sign(_WIDE).astype("f4"), 2, 1),
    "infinite squares": ("kmeans--", 1e200 * _WIDE, 2, 1),
    "squares that vanish": ("kmeans--", 1e-200 * _WIDE, 2, 1),
    "infinite squares of pairs": ("neo-kmeans", 1e200 * _WIDE, 2, 1),
    "infinite distances": ("hdbscan", 1e155 * np.sign(_WIDE), 2, 1),
    "infinite distances to neighbours": ("dbscan", 1e200 * _WIDE, 2, 1),
    "infinite products": ("tonmf", 1e200 * np.abs(_WIDE), 2, 1),
}


@pytest.mark.parametrize("case", ANSWERED.values(), ids=ANSWERED)
def test_rows_that_once_had_no_valid_answer_have_one(case):
    assert check_answer(*case)


@pytest.mark.parametrize("case", REFUSED.values(), ids=REFUSED)
def test_rows_that_once_had_no_valid_answer_are_refused(case):
    assert not check_answer(*case)


@pytest.mark.parametrize("name", [name for name in CASES if CASES[name].predicts])
@given(data=st.data())
def test_new_rows_of_any_size_get_finite_scores_or_a_clear_refusal(name, data):
    fitted = draw_rows(data, name)
    X = make_usable(name, data.draw(extreme_rows(n_columns=fitted.shape[1])))
    model = CASES[name].make(1, 1)
    fit(model, fitted)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        try:
            scores, labels = model.score_samples(X), model.predict(X)
        except ValueError as error:
            if not _REFUSALS.search(str(error)):
                raise
            return
    assert np.isfinite(scores).all()
    assert set(labels) <= set(range(-1, 10))


def test_new_rows_whose_squares_are_infinite_are_refused():
    model = fit(CASES["kmeans--"].make(2, 1), _WIDE)
    X = np.array([[1, 2, 3], [1e200, 0, 0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="gives row 1 a score"):
            model.predict(X)


# Methods that cannot miss a row which is far from all others: the paper's starts may,
# with cosine distance it may be near them, and others look at directions or topics.
FAR_JOINT = ["cor", "cor, k-means++", "kmeans--", "neo-kmeans", "lagrangian"]
FAR_JOINT += ["k-center", "k-median", "cor-detector"]
FAR_DETECTORS = ["lof", "cof", "ldof", "iforest", "holoentropy"]


@pytest.mark.parametrize("name", FAR_JOINT + FAR_DETECTORS)
@given(data=st.data())
def test_one_far_row_is_set_aside_and_hides_no_groups(name, data):
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(scale=0.5, size=(24, 2)) + np.repeat([[0, 0], [9, 9]], 12, axis=0)
    far = data.draw(st.integers(0, len(X)))
    X = np.insert(X, far, data.draw(st.sampled_from([1e12, -1e12])), axis=0)
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    labels = tell(fit(CASES[name].make(2, 1), X.astype(dtype))).labels
    assert np.flatnonzero(labels == -1).tolist() == [far]
    if name in FAR_JOINT:
        kept = np.delete(labels, far)
        assert same_clustering(kept, np.repeat([0, 1], 12))


# CORDetector takes what its COR takes.
TAKES_MISSING = [name for name in CASES if name.startswith("cor")] + ["holoentropy"]
REFUSES_MISSING = [name for name in CASES if name not in TAKES_MISSING]


@pytest.mark.parametrize("name", TAKES_MISSING)
@given(data=st.data())
def test_missing_cells_get_a_valid_answer(name, data):
    X = draw_rows(data, name)
    is_missing = hnp.arrays(np.bool_, X.shape, fill=st.just(False))
    X[data.draw(is_missing)] = np.nan
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Too little is known", UserWarning)
        check_answer(name, X, 2, 1)


@pytest.mark.parametrize("name", REFUSES_MISSING)
def test_missing_cells_are_refused_where_nothing_is_known_of_them(name):
    X = np.arange(24.0).reshape(12, 2)
    X[3, 1] = np.nan
    with pytest.raises(ValueError, match="contains NaN"):
        CASES[name].make(2, 1).fit(X)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.counts])
@given(X=whole_rows(min_rows=5), n_more=st.integers(0, 3))
def test_more_outliers_than_rows_are_refused(name, X, n_more):
    with pytest.raises(ValueError, match=r"n_outliers=\d+ should be smaller than"):
        CASES[name].make(2, len(X) + n_more).fit(np.abs(X))
