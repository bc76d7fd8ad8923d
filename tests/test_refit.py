"""Fits whose numbers change: each is the fit from the beginning."""

import numpy as np
import pytest

from corral import COR
from corral._refit import Refit
from corral.datasets import make_blobs_with_outliers, make_sparse_text

SURE = ("outlier_confidence_", "label_confidence_", "cluster_stability_")


def make_blobs(n_samples=200):
    return make_blobs_with_outliers(
        n_samples, 3, n_clusters=3, n_outliers=8, random_state=0
    )[0]


def make_gaps():
    X = make_blobs()
    X[np.random.default_rng(0).random(X.shape) < 0.03] = np.nan
    return X


def make_words():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(make_blobs(), columns=list("abc"))
    kind = (frame["a"] > frame["a"].median()).astype(int)
    return frame.assign(color=np.array(["red", "green"])[kind], word="same")


KINDS = {
    "dense": (make_blobs, {}),
    "missing": (make_gaps, {}),
    "categories": (make_words, {"categorical_features": ["color", "word"]}),
    "sparse cosine": (
        lambda: make_sparse_text(150, 80, n_clusters=3, random_state=0)[0],
        {"metric": "cosine"},
    ),
    # Nothing is shared but the partitions.
    "random starts": (make_blobs, {"init": "k-means++", "n_init": 2}),
    "holoentropy": (make_blobs, {"divergence": "holoentropy"}),
}


def assert_same_fit(one, other, X):
    names = {name for name in vars(one) if name.endswith("_") and name[0] != "_"}
    assert names == {name for name in vars(other) if name.endswith("_")}
    assert {"labels_", "outlier_scores_", "cluster_centers_"} <= names
    for name in names - {"selection_"}:
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), name)
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    np.testing.assert_array_equal(one.transform(X), other.transform(X))


@pytest.fixture(scope="module", params=KINDS)
def shared(request):
    make, settings = KINDS[request.param]
    X, settings = make(), settings | {"n_partitions": 20, "k_max": 5, "random_state": 3}
    return Refit(COR(**settings), X), X, settings


@pytest.mark.parametrize("numbers", [(3, 8), (1, 0), (5, 40)])
def test_a_fit_is_that_from_the_beginning(shared, numbers):
    refit, X, settings = shared
    n_clusters, n_outliers = numbers
    alone = COR(n_clusters, n_outliers=n_outliers, k_range="auto", **settings).fit(X)
    found = refit.fuse(n_clusters, n_outliers)
    assert_same_fit(found, alone, X)
    assert found.get_params() == alone.get_params()
    assert all(hasattr(found, name) for name in SURE)


def test_chosen_numbers_are_those_of_a_fit(shared):
    refit, X, settings = shared
    alone = COR(**settings).fit(X)
    assert_same_fit(refit.chosen, alone, X)
    assert refit.chosen.selection_.reason == alone.selection_.reason


def test_a_quick_fit_leaves_out_only_how_sure_labels_are(shared):
    refit, X, _ = shared
    full, quick = refit.fuse(3, 6), refit.fuse(3, 6, quick=True)
    assert not any(hasattr(quick, name) for name in SURE)
    for name in SURE:
        delattr(full, name)
    assert_same_fit(quick, full, X)
    # And the next one has it again.
    assert hasattr(refit.fuse(3, 6), "label_confidence_")


def test_numbers_of_the_estimator_do_not_count():
    X = make_blobs()
    one = Refit(COR(n_partitions=20, k_max=4, random_state=0), X)
    asked = COR(7, contamination=0.2, n_partitions=20, k_max=4, random_state=0)
    other = Refit(asked, X)
    assert_same_fit(one.fuse(2, 3), other.fuse(2, 3), X)
    assert (asked.n_clusters, asked.contamination) == (7, 0.2)
    assert not hasattr(asked, "labels_")


@pytest.mark.parametrize(
    "state", [None, np.random.RandomState(0)], ids=["none", "state"]
)
def test_all_fits_are_of_the_same_partitions_without_a_seed(state):
    X = make_blobs()
    refit = Refit(COR(n_partitions=20, k_max=4, random_state=state), X)
    one, other = refit.fuse(3, 8), refit.fuse(3, 8)
    assert_same_fit(one, other, X)
    # The seed that was drawn makes the same partitions in a fit of its own.
    again = COR(
        3,
        n_outliers=8,
        k_range="auto",
        n_partitions=20,
        k_max=4,
        random_state=one.random_state,
    )
    assert_same_fit(one, again.fit(X), X)
    np.testing.assert_array_equal(refit.fuse(5, 0).n_labels_, one.n_labels_)


def test_a_fit_stays_as_it_is_when_others_follow():
    X = make_blobs()
    refit = Refit(COR(n_partitions=20, k_max=4, random_state=0), X)
    first = refit.fuse(3, 8)
    labels, predicted = first.labels_.copy(), first.predict(X)
    refit.fuse(5, 20)
    np.testing.assert_array_equal(first.labels_, labels)
    np.testing.assert_array_equal(first.predict(X), predicted)
    assert (refit.chosen.n_clusters_, refit.chosen.n_outliers_) == (3, 8)


def test_trees_that_are_grown_ahead_change_nothing():
    # Also in the middle of it.
    X = make_blobs()
    numbers = [(3, 8), (2, 50), (4, 0), (3, 90), (5, 20)]
    settings = COR(n_partitions=20, k_max=4, random_state=0)
    alone, ahead = Refit(settings, X), Refit(settings, X)
    steps = ahead.prepare()
    beside = []
    for each in numbers:
        next(steps)
        beside.append(ahead.fuse(*each))
    assert len(list(steps)) > 1
    after = [ahead.fuse(*each) for each in numbers]
    for each, one, other in zip(numbers, beside, after, strict=True):
        expected = alone.fuse(*each)
        assert_same_fit(one, expected, X)
        assert_same_fit(other, expected, X)


def test_threads_change_nothing():
    X = make_blobs()
    one, two = (
        Refit(COR(n_partitions=20, k_max=4, random_state=0, n_jobs=n), X).fuse(3, 8)
        for n in (1, 2)
    )
    assert_same_fit(one, two, X)


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((0, 0), r"'n_clusters' parameter of COR must be .* Got 0"),
        ((2, -1), r"'n_outliers' parameter of COR must be .* Got -1"),
        ((2.5, 1), r"'n_clusters' parameter of COR must be .* Got 2.5"),
        ((201, 0), "n_samples=200 should be >= n_clusters=201. Lower n_clusters"),
        ((2, 198), "n_outliers=198 should be smaller than .* 200 - 2 = 198"),
    ],
)
def test_wrong_numbers_are_refused_as_by_a_fit(numbers, words):
    refit = Refit(COR(n_partitions=10, random_state=0), make_blobs())
    with pytest.raises(ValueError, match=words):
        refit.fuse(*numbers)


def test_more_clusters_than_codes_are_refused():
    refit = Refit(COR(n_partitions=10, random_state=0), np.ones((30, 2)))
    with pytest.raises(ValueError, match="Only 1 distinct codes .* n_clusters=2"):
        refit.fuse(2, 0)
