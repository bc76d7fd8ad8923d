"""What it costs a row to lie where it lies."""

import numpy as np
import pytest
from scipy import sparse

from corral import COR, _position
from corral._blocks import ArrayRows
from corral._codes import CodeBook, Codes
from corral._encoded import pick_rows, weigh_slots
from corral._kmeans_runs import KMeansSettings, fit_kmeans_runs
from corral._position import (
    _COARSE_WEIGHT,
    _DISTANCE_WEIGHT,
    _FAR,
    DISTANCE_STEP,
    rarity_table,
)
from corral._states import State
from corral._threads import use_threads


def make_runs(X, metric="euclidean", n_runs=6):
    settings = KMeansSettings(
        n_runs=n_runs,
        k_range=(2, 5),
        fine_range=None,
        feature_share=None,
        metric=metric,
        init="random",
        max_iter=100,
        tol=0.0,
        max_samples=None,
    )
    with use_threads(1) as threads:
        rng = np.random.default_rng(0)
        return fit_kmeans_runs(ArrayRows(X), None, settings, rng, threads)


def fit_ruler(*arguments):
    with use_threads(1) as threads:
        return _position.fit_ruler(*arguments, threads)


def measure(ruler, runs, X):
    labeller = runs.label_blocks(ArrayRows(X))
    workspace = labeller.make_workspace()
    tile, labels = labeller.label_tile(0, workspace)
    return ruler.measure(tile, labels), labels.copy()


def points_of(X, metric):
    rows = X.toarray() if sparse.issparse(X) else X
    if metric == "cosine":
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return rows


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
def test_distances_are_those_to_the_centres_of_the_cells(kind, metric):
    # Against the formula, with the centres as means of the cells' points.
    X = np.abs(np.random.default_rng(1).normal(size=(80, 5))) + 0.1
    runs = make_runs(kind(X), metric)
    ruler = fit_ruler(runs, 2, ArrayRows(kind(X)), None, 3.0, np.random.default_rng(0))
    found, labels = measure(ruler, runs, kind(X))
    points = points_of(X, metric)
    expected = np.zeros(80)
    # Fine runs by twice the mean, coarse ones by the standard deviation.
    for run in range(4) if metric == "cosine" else range(4, 6):
        squares = np.empty(80)
        for label in np.unique(labels[run]):
            here = labels[run] == label
            center = points[here].mean(axis=0)
            if metric == "cosine":
                center /= np.linalg.norm(center)
            squares[here] = ((points[here] - center) ** 2).sum(axis=1)
        unit = squares.std() if metric == "cosine" else 2 * squares.mean()
        expected += 3.0 * _DISTANCE_WEIGHT * squares / unit
    np.testing.assert_allclose(found, expected, rtol=1e-4)
    assert (found % DISTANCE_STEP == 0).all()


def test_far_rows_are_in_order_and_not_too_far():
    # Also those whose squares no number can hold.
    X = np.random.default_rng(1).normal(size=(60, 3))
    runs = make_runs(X)
    ruler = fit_ruler(runs, 3, ArrayRows(X), None, 1.0, np.random.default_rng(0))
    far = np.outer([1e2, 1e3, 1e4, 1e5, 1e200], np.ones(3))
    found, _ = measure(ruler, runs, far)
    assert (np.diff(found) > 0).all()
    assert found[-1] == 2 * _FAR


@pytest.mark.parametrize("size", [1e5, 1e8, 1e11])
def test_one_far_row_does_not_hide_the_others(size, seed):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), 200)
    X = rng.normal(size=(600, 2)) + 30 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    angles = rng.uniform(0, 2 * np.pi, 12)
    X[:12] += 8 * np.column_stack([np.cos(angles), np.sin(angles)])
    X[300] = size
    model = COR(3, n_outliers=13, random_state=seed).fit(X)
    assert np.count_nonzero(model.labels_[:12] == -1) >= 11
    assert model.labels_[300] == -1
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array], ids=["dense", "csr"])
@pytest.mark.parametrize("apart", [1e5, 1e7, 1e9])
def test_distances_keep_their_digits_in_groups_that_are_far_apart(kind, apart, seed):
    # Products of rows so far from the origin have no digit left for them.
    rng = np.random.default_rng(seed)
    group = np.repeat([0, 1], 60)
    X = rng.normal(size=(120, 3)) + apart * group[:, None]
    runs = make_runs(kind(X))
    ruler = fit_ruler(runs, 6, ArrayRows(kind(X)), None, 1.0, rng)
    found, labels = measure(ruler, runs, kind(X))
    points = X - runs.space.shift
    expected = np.zeros(120)
    for place, run in enumerate(ruler.runs):
        centers = ruler.centers[ruler.layout.cell(place, labels[run].astype(int))]
        squares = ((points - centers) ** 2).sum(axis=1)
        times = np.count_nonzero(runs.distinct.which == runs.distinct.which[run])
        expected += times * _DISTANCE_WEIGHT * squares / (2 * squares.mean())
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_labels_count_however_far_a_row_is(seed):
    # Farther out in the same direction is the same cluster.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 2)) + 9 * np.eye(2)[np.repeat([0, 1], 150)]
    model = COR(2, n_outliers=0, random_state=seed).fit(X)
    near = model.predict([[1e4, 0.0], [0.0, 1e4]])
    far = model.predict([[1e9, 0.0], [0.0, 1e9]])
    np.testing.assert_array_equal(far, near)


def test_cells_of_equal_rows_have_no_distance():
    # With values that no product gets exactly right.
    X = np.repeat([[0.1, 0.7], [1.3, 1.9]], 10, axis=0)
    runs = make_runs(X, n_runs=2)
    ruler = fit_ruler(runs, 2, ArrayRows(X), None, 1.0, np.random.default_rng(0))
    found, _ = measure(ruler, runs, X)
    np.testing.assert_array_equal(ruler.scales, 0)
    np.testing.assert_array_equal(found, 0)


def test_equal_runs_are_measured_once():
    # Of two tight groups, every run with two clusters finds the same.
    X = np.random.default_rng(0).normal(size=(40, 2)) + np.repeat([[0], [99]], 20, 0)
    runs = make_runs(X, n_runs=8)
    assert len(np.unique(runs.distinct.which)) < 8
    ruler = fit_ruler(runs, 8, ArrayRows(X), None, 1.0, np.random.default_rng(0))
    assert len(ruler.runs) == len(np.unique(runs.distinct.which))
    # Each of the eight runs has half a squared distance per row in the mean.
    found, _ = measure(ruler, runs, X)
    assert found.mean() == pytest.approx(8 * _DISTANCE_WEIGHT / 2, rel=1e-4)


def test_rows_of_weight_zero_do_not_count_in_the_spread():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    runs = make_runs(X)
    more = np.concatenate([X, 1000 + rng.normal(size=(5, 2))])
    weights = np.repeat([1.0, 0.0], [60, 5])
    alone = fit_ruler(runs, 3, ArrayRows(X), None, 1.0, rng)
    both = fit_ruler(runs, 3, ArrayRows(more), weights, 1.0, rng)
    np.testing.assert_allclose(both.scales, alone.scales)


def test_many_rows_are_measured_in_a_few_runs(monkeypatch, seed):
    # From all over the fine ones, with the weight of all.
    X = np.random.default_rng(seed).normal(size=(400, 4))
    runs = make_runs(X, n_runs=80)
    rng = np.random.default_rng(0)
    all_runs = fit_ruler(runs, 40, ArrayRows(X), None, 1.0, rng)
    monkeypatch.setattr("corral._position._MEASURED_PAIRS", 400 * 20)
    few_runs = fit_ruler(runs, 40, ArrayRows(X), None, 1.0, rng)
    assert len(few_runs.runs) <= 20 < len(all_runs.runs) <= 40
    assert few_runs.typical == pytest.approx(all_runs.typical)
    few, many = measure(few_runs, runs, X)[0], measure(all_runs, runs, X)[0]
    assert np.corrcoef(few, many)[0, 1] > 0.98


def test_of_many_rows_with_weights_some_that_count_are_measured(monkeypatch):
    monkeypatch.setattr(_position, "_UNIT_ROWS", 20)
    weights = np.repeat([0.0, 1.0], 50)
    rows = _position.draw_unit_rows(100, weights, np.random.default_rng(0))
    assert len(np.unique(rows)) == 20
    assert rows.min() >= 50
    assert (np.diff(rows) > 0).all()


def test_rarity_is_the_negative_log_of_the_share():
    # Two K-means runs, the second fine, and one partition that is no run: labels 0
    # (three rows of four) and 1; 0 and 2 of three labels, one missing.
    rows = np.array([[0, 0, 0], [0, 2, 1], [1, 4, 0]], dtype=np.uint8)
    book = CodeBook(np.array([2, 3, 2]))
    codes = Codes(book, rows, np.array([0, 0, 1, 2]), np.array([2, 1, 1]))
    with use_threads(1) as threads:
        slot_weights = weigh_slots(State(codes, np.zeros(4)), threads)
    # Labels, the unseen one and the missing one of each partition.
    assert slot_weights.tolist() == [3, 1, 0, 0, 2, 0, 1, 0, 1, 3, 1, 0, 0]
    table = rarity_table(book, slot_weights, n_runs=2, n_fine=1)
    coarse = _COARSE_WEIGHT * -np.log([3 / 4, 1 / 4, 1 / 5])
    fine = -np.log([2 / 3, 1 / 4, 1 / 3, 1 / 4])
    # A missing label costs what labels cost on average.
    unknown = coarse[:2] @ [3 / 4, 1 / 4], fine[[0, 2]] @ [2 / 3, 1 / 3]
    expected = [*coarse, unknown[0], *fine, unknown[1], 0, 0, 0, 0]
    np.testing.assert_allclose(table, expected)


def test_codes_are_looked_up_slot_by_slot():
    # Both where all codes are priced and where some rows are picked.
    rng = np.random.default_rng(0)
    book = CodeBook(np.array([3, 4]))
    rows = np.array([[i, j] for i in range(5) for j in range(6)], dtype=np.uint8)
    codes = Codes(book, rows, np.arange(30), np.ones(30, dtype=int))
    table, distances = rng.normal(size=book.n_slots), rng.exponential(size=30)
    state, some = State(codes, distances), np.array([2, 3, 29])
    with use_threads(1) as threads:
        _, found = state.price_codes(table[:, None], threads)
        labels, position = pick_rows(state, threads, table, some)
    expected = np.array([table[i] + table[5 + j] for i in range(5) for j in range(6)])
    np.testing.assert_allclose(found, expected)
    np.testing.assert_array_equal(labels, rows[some])
    np.testing.assert_allclose(position, expected[some] + distances[some])


@pytest.mark.parametrize("n_features", [2, 10, 50])
def test_lone_far_rows_are_found_in_any_dimension(n_features, seed):
    # The labels alone cannot tell: with few clusters a far row shares them with the
    # nearest one.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, n_features))
    X[:300] += 8
    # On a circle, so that none is near another.
    angles = 2 * np.pi * (np.arange(10) + rng.random()) / 10
    plane, _ = np.linalg.qr(rng.normal(size=(n_features, 2)))
    far = np.column_stack([np.cos(angles), np.sin(angles)]) @ plane.T
    X[-10:] = 14 * np.sqrt(n_features) * far
    model = COR(2, n_outliers=10, random_state=seed).fit(X)
    assert set(np.flatnonzero(model.labels_ == -1)) == set(range(590, 600))


def test_a_tight_group_of_outliers_is_found(seed):
    # A lone group is no cluster of its own where clusters are much larger. Of three
    # draws of partitions, most find all of it but a row; one in sixteen does not.
    rng = np.random.default_rng(seed)
    groups = [rng.normal(c, 1, (300, 5)) for c in (0, 7, 14)]
    X = np.concatenate([*groups, rng.normal((0, 7, 14, 0, 7), 0.3, (15, 5))])
    n_found = []
    for draw in range(3):
        model = COR(3, n_outliers=15, n_resamples=0, random_state=100 * draw + seed)
        n_found.append(np.count_nonzero(model.fit(X).labels_[-15:] == -1))
    assert np.median(n_found) >= 14


def test_weight_zero_looks_at_labels_only():
    # Rows with the same labels then have the same score.
    X = np.random.default_rng(0).normal(size=(300, 2))
    model = COR(2, n_outliers=10, position_weight=0.0, random_state=0).fit(X)
    assert len(np.unique(model.outlier_scores_)) <= model.n_codes_
    placed = COR(2, n_outliers=10, random_state=0).fit(X)
    assert len(np.unique(placed.outlier_scores_)) > placed.n_codes_


def test_precomputed_partitions_have_no_position():
    labels = np.random.default_rng(0).integers(0, 3, size=(60, 5))
    with_weight = COR(2, n_outliers=3, random_state=0).fit_partitions(labels)
    without = COR(2, n_outliers=3, position_weight=0.0, random_state=0)
    without.fit_partitions(labels)
    np.testing.assert_array_equal(with_weight.outlier_scores_, without.outlier_scores_)
