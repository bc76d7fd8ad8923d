"""Many K-means runs at once."""

import tracemalloc
import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.datasets import make_blobs

from corral import COR, _kmeans_runs, _ladder, _lloyd, _memory, _small_runs
from corral._assign import Layout, settle_close_calls
from corral._blocks import ArrayRows
from corral._kmeans_runs import KMeansSettings, fit_kmeans_runs
from corral._lloyd import LloydRuns, _are_small_whole
from corral._threads import use_threads
from corral._tiles import RowSpace, Tiles
from tests.slow_twins import lloyd, same_clustering

DEFAULTS = {
    "n_runs": 12,
    "k_range": (2, 6),
    "fine_range": None,
    "feature_share": None,
    "metric": "euclidean",
    "init": "random",
    "max_iter": 100,
    "tol": 0.0,
    "max_samples": None,
}


@pytest.fixture
def X():
    return make_blobs(400, n_features=5, centers=4, cluster_std=3, random_state=0)[0]


def fit_runs(X, seed=0, weights=None, n_jobs=1, **settings):
    with use_threads(n_jobs) as threads:
        return fit_kmeans_runs(
            ArrayRows(X),
            weights,
            KMeansSettings(**(DEFAULTS | settings)),
            np.random.default_rng(seed),
            threads,
        )


def label_rows(runs, X):
    labeller = runs.label_blocks(ArrayRows(X))
    workspace = labeller.make_workspace()
    n_blocks = -(-X.shape[0] // labeller.block_rows)
    blocks = [labeller.label(index, workspace).copy() for index in range(n_blocks)]
    return np.concatenate(blocks, axis=1)


def run_from(X, starts, weights=None, **options):
    """Run Lloyd's algorithm once from these centres; return labels and centres."""
    rows = ArrayRows(X)
    space = RowSpace("euclidean", None, 1.0, X.dtype)
    tiles = Tiles(rows, space, len(starts), 100).keep()
    runs = LloydRuns(tiles, weights, Layout(np.array([len(starts)])), starts, **options)
    with use_threads(1) as threads:
        runs.run(300, np.zeros(1), threads)
    return runs._labels[0], runs.centers


@pytest.mark.parametrize("many_changes", [0.0, 1.0])
def test_lloyd_is_its_plain_twin(X, monkeypatch, many_changes):
    # With dense and with sparse updates of the sums.
    monkeypatch.setattr(_lloyd, "_MANY_CHANGES", many_changes)
    starts = X[[3, 50, 200, 311]].copy()
    labels, centers = run_from(X, starts.copy())
    expected, means = lloyd(X, starts)
    np.testing.assert_array_equal(labels, expected)
    np.testing.assert_allclose(centers, means)


def test_run_is_that_of_scikit_learn(X):
    starts = X[[3, 50, 200, 311]].copy()
    labels, centers = run_from(X, starts.copy())
    km = KMeans(4, init=starts, n_init=1, tol=0).fit(X)
    np.testing.assert_array_equal(labels, km.labels_)
    np.testing.assert_allclose(centers, km.cluster_centers_)


def test_weights_are_repeated_rows(X):
    weights = np.random.default_rng(0).integers(1, 4, size=len(X))
    starts = X[[3, 50, 200, 311]].copy()
    labels, centers = run_from(X, starts.copy(), weights=weights.astype(float))
    repeated, means = run_from(np.repeat(X, weights, axis=0), starts.copy())
    np.testing.assert_array_equal(np.repeat(labels, weights), repeated)
    np.testing.assert_allclose(centers, means)


def test_empty_cell_takes_the_farthest_row():
    X = np.array([[0.0], [1.0], [2.0], [3.0], [100.0]])
    labels, centers = run_from(X, np.array([[1.0], [1.0]]))
    np.testing.assert_array_equal(labels, [0, 0, 0, 0, 1])
    np.testing.assert_allclose(centers, [[1.5], [100.0]])


def test_fewer_distinct_rows_than_clusters_leave_cells_empty():
    X = np.repeat([[0.0, 1.0], [5.0, 5.0]], 10, axis=0)
    runs = fit_runs(X, k_range=(4, 4))
    labels = label_rows(runs, X)
    assert np.isfinite(runs.centers).all()
    assert all(len(set(row)) == 2 for row in labels)


def test_inertia_is_as_low_as_that_of_scikit_learn(X):
    runs = fit_runs(X, n_runs=60, k_range=(4, 4), tol=1e-4)
    shift = runs.space.shift
    ours = []
    for run in range(60):
        centers = runs.centers[runs.layout.cell(run, np.arange(4))] + shift
        ours.append(((X[:, None] - centers) ** 2).sum(axis=2).min(axis=1).sum())
    theirs = [
        KMeans(4, init="random", n_init=1, random_state=i).fit(X).inertia_
        for i in range(60)
    ]
    assert np.mean(ours) == pytest.approx(np.mean(theirs), rel=0.05)


def test_number_of_clusters_is_drawn_from_the_range(X):
    n_clusters = fit_runs(X, n_runs=300, k_range=(2, 6)).n_labels
    assert set(n_clusters) == {2, 3, 4, 5, 6}
    counts = np.bincount(n_clusters)[2:]
    assert counts.min() > 300 / 5 / 2


def test_random_features_are_all_a_run_sees(X):
    runs = fit_runs(X, n_runs=40, feature_share=0.4)
    for run, k in enumerate(runs.layout.n_clusters):
        centers = runs.centers[runs.layout.cell(run, np.arange(k))]
        assert np.count_nonzero(centers.any(axis=0)) == 2
    # A run's labels do not change with features that it does not see.
    seen = runs.centers[runs.layout.cell(0, np.arange(2))].any(axis=0)
    other = X.copy()
    other[:, ~seen] = np.random.default_rng(0).normal(0, 100, size=(len(X), 3))
    np.testing.assert_array_equal(label_rows(runs, X)[0], label_rows(runs, other)[0])


def test_spherical_centres_have_unit_length(X):
    runs = fit_runs(X, metric="cosine")
    np.testing.assert_allclose(np.linalg.norm(runs.centers, axis=1), 1)
    labels = label_rows(runs, X)
    np.testing.assert_array_equal(labels, label_rows(runs, X * 7.5))
    for run, k in enumerate(runs.layout.n_clusters):
        units = X / np.linalg.norm(X, axis=1, keepdims=True)
        for label in range(k):
            mean = units[labels[run] == label].mean(axis=0)
            center = runs.centers[runs.layout.cell(run, label)]
            np.testing.assert_allclose(center, mean / np.linalg.norm(mean), atol=1e-6)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_is_dense(metric, seed):
    X = np.random.default_rng(seed).poisson(0.3, size=(300, 40)).astype(float)
    X[:, 0] += 1
    dense = fit_runs(X, metric=metric)
    from_sparse = fit_runs(sparse.csr_array(X), metric=metric)
    np.testing.assert_array_equal(
        label_rows(dense, X), label_rows(from_sparse, sparse.csr_array(X))
    )


def test_kept_scores_are_fresh_scores(monkeypatch):
    X = np.random.default_rng(0).poisson(0.3, size=(300, 40)).astype(float)
    expected = fit_runs(sparse.csr_array(X))
    monkeypatch.setattr(_lloyd, "_MAX_CACHED_SCORES", 0)
    np.testing.assert_array_equal(
        fit_runs(sparse.csr_array(X)).centers, expected.centers
    )


@pytest.mark.parametrize("form", [np.asarray, sparse.csr_array])
def test_groups_of_runs_give_what_one_group_gives(X, monkeypatch, form):
    X = form(np.abs(X))
    whole = fit_runs(X)
    monkeypatch.setattr(_kmeans_runs, "_MAX_GROUP_VALUES", 60)
    parts = fit_runs(X)
    np.testing.assert_array_equal(whole.centers, parts.centers)
    np.testing.assert_array_equal(whole.half_norms, parts.half_norms)


def test_wide_rows_take_memory_for_a_few_runs_at_a_time(monkeypatch):
    # One group takes 90 bytes for each value of the centres, which have 8 themselves.
    monkeypatch.setattr(_kmeans_runs, "_MAX_GROUP_VALUES", 2**14)
    X = np.random.default_rng(0).normal(size=(10, 1000))
    tracemalloc.start()
    try:
        runs = fit_runs(X, n_runs=100)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 16 * runs.centers.size


def test_centers_that_do_not_fit_into_memory_are_refused_before_they_are_learned(
    monkeypatch,
):
    monkeypatch.setattr(_kmeans_runs, "_MAX_GROUP_VALUES", 2**16)
    monkeypatch.setattr(_memory, "_find_available", lambda root, with_swap: 10**8)
    X = np.zeros((10, 20_000))
    message = (
        r"^Learning \d+ centres of 20,000 features needs about .* MB, and at most 100 "
        r"MB are free\. Lower n_partitions \(now \d+ by K-means\), leave out features"
    )
    with pytest.raises(MemoryError, match=message):
        COR(2, n_outliers=1).fit(X)


@pytest.mark.parametrize("n_jobs", [2, 3])
@pytest.mark.parametrize("tile_rows", [64, 100, 6144])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_and_tiles_change_no_bit(X, monkeypatch, n_jobs, tile_rows, dtype):
    # Nor do the ways of adding up.
    X = X.astype(dtype)
    expected = fit_runs(X)
    monkeypatch.setattr(_lloyd, "_FEW_MOVES", 50)
    monkeypatch.setattr(_lloyd, "_GATHERED_ROWS", 30)
    monkeypatch.setattr(_kmeans_runs, "MAX_TILE_ROWS", tile_rows)
    monkeypatch.setattr(_kmeans_runs, "MAX_LLOYD_TILE_ROWS", tile_rows)
    runs = fit_runs(X, n_jobs=n_jobs)
    np.testing.assert_array_equal(runs.centers, expected.centers)
    np.testing.assert_array_equal(label_rows(runs, X), label_rows(expected, X))


def make_ties(seed):
    """Rows of whole numbers, many of them equal or on a border between centres."""
    return np.random.default_rng(seed).integers(0, 3, size=(200, 3)).astype(float)


@pytest.mark.parametrize("few_members", [0, 10**9])
@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"metric": "cosine"},
        {"tol": 1e-2},
        {"max_iter": 2},
        {"feature_share": 0.5},
        {"k_range": (2, 20)},
    ],
)
def test_small_runs_are_the_same_to_the_last_bit(
    X, monkeypatch, settings, few_members, seed
):
    monkeypatch.setattr(_small_runs, "_FEW_MEMBERS", few_members)
    weights = np.random.default_rng(seed).random(len(X)) + 0.1
    far = X.copy()
    far[7] = 1e9
    cases = [(X, weights), (X.astype(np.float32), None), (far, None)]
    cases += [(make_ties(seed), None)]
    small = [fit_runs(rows, seed, weights=w, **settings) for rows, w in cases]
    monkeypatch.setattr(_lloyd, "_MAX_SMALL_PRODUCTS", 0)
    monkeypatch.setattr(_lloyd, "SmallRuns", None)
    for runs, (rows, w) in zip(small, cases, strict=True):
        expected = fit_runs(rows, seed, weights=w, **settings)
        np.testing.assert_array_equal(runs.centers, expected.centers)
        np.testing.assert_array_equal(runs.half_norms, expected.half_norms)


def test_small_runs_settle_rows_on_a_border(monkeypatch):
    settled = []

    def settle(tile, located, runs, rows):
        settled.append(len(rows))
        return settle_close_calls(tile, located, runs, rows)

    monkeypatch.setattr(_small_runs, "settle_close_calls", settle)
    fit_runs(make_ties(0))
    assert sum(settled) > 0


def test_small_run_that_starts_from_labels_with_an_empty_cell(X):
    # Half of the rows have to change; cell 2 is empty at first.
    tiles = Tiles(ArrayRows(X), RowSpace("euclidean", None, 1.0, X.dtype), 3, 1000)
    runs = LloydRuns(tiles.keep(), None, Layout(np.array([3])), None)
    with use_threads(1) as threads:
        runs.start_from(np.arange(len(X))[None] % 2, threads)
        runs.run(300, np.zeros(1), threads)
    means = [X[runs.labels[0] == label].mean(axis=0) for label in range(3)]
    np.testing.assert_allclose(runs.centers, means)


def test_small_runs_leave_empty_cells_to_the_others():
    X = np.repeat([[0.0], [1.0], [2.0], [50.0]], 5, axis=0)
    starts = np.array([[0.0], [1.0], [0.0], [0.0]])
    layout = Layout(np.array([2, 2]))
    tiles = Tiles(ArrayRows(X), RowSpace("euclidean", None, 1.0, X.dtype), 4, 100)
    runs = LloydRuns(tiles.keep(), None, layout, starts)
    is_finished = runs._run_small(300, np.zeros(2))
    # Run 0 starts on 0 and 0, run 1 on 1 and 0.
    np.testing.assert_array_equal(is_finished, [False, True])
    assert (runs.labels[0] == runs._no_label).all()
    np.testing.assert_allclose(
        np.sort(runs.centers[layout.cell(1, np.arange(2))].T), [[1, 50]]
    )


def test_ladder_ends_on_all_rows(X, monkeypatch):
    # Started on 50 and 400 rows, each run still ends in a fixed point on all rows.
    monkeypatch.setattr(_ladder, "_MIN_ROWS", 40)
    runs = fit_runs(X, k_range=(2, 3))
    labels = label_rows(runs, X)
    for run, k in enumerate(runs.layout.n_clusters):
        centers = runs.centers[runs.layout.cell(run, np.arange(k))] + runs.space.shift
        means = [X[labels[run] == label].mean(axis=0) for label in range(k)]
        np.testing.assert_allclose(centers, means)


def test_sample_limits_the_rows_that_are_learned_from():
    X = np.random.default_rng(0).normal(size=(1000, 2))
    seen = []

    class Watched(ArrayRows):
        def take(self, rows):
            seen.append(len(rows))
            return super().take(rows)

    with use_threads(1) as threads:
        settings = KMeansSettings(**(DEFAULTS | {"max_samples": 100}))
        fit_kmeans_runs(Watched(X), None, settings, np.random.default_rng(0), threads)
    assert seen == [100]


def test_large_offset_does_not_eat_up_the_digits(X):
    # The same rows, far from the origin: the same labels, in float32 as well.
    X = np.round(X * 4) / 4
    near = label_rows(fit_runs(X.astype(np.float32)), X.astype(np.float32))
    far = (X + 2.0**16).astype(np.float32)
    np.testing.assert_array_equal(label_rows(fit_runs(far), far), near)


@pytest.mark.parametrize("share", [None, 0.7])
def test_a_far_row_is_not_the_only_start_of_kmeans_plusplus(seed, share):
    """At 1e12, scikit-learn rounds distances by more than other rows are apart.

    Whether a row there seems to be far from itself, is a matter of its last digits.
    """
    rng = np.random.default_rng(seed)
    settings = {"init": "k-means++", "k_range": (3, 3), "feature_share": share}
    group = np.repeat([0, 1], 12)
    for _ in range(40):
        X = rng.normal(scale=0.5, size=(24, 2)) + 9.0 * group[:, None]
        X = np.append(X, [[-1e12, -1e12]], axis=0)
        labels = label_rows(fit_runs(X, seed, **settings), X)[:, :-1]
        assert all(same_clustering(of_run, group) for of_run in labels)


def test_equal_runs_are_done_once_and_have_equal_labels(seed):
    # Two groups so far apart that every run with two clusters finds them.
    X, group = make_blobs(300, centers=[[0, 0], [50, 50]], random_state=seed)
    runs = fit_runs(X, seed, k_range=(2, 2))
    assert len(runs.distinct.selection.runs) == 1
    labels = label_rows(runs, X)
    assert labels.shape == (12, 300)
    assert (labels == labels[0]).all()
    assert len(set(zip(labels[0].tolist(), group.tolist(), strict=True))) == 2


def test_different_runs_stay_apart(X):
    runs = fit_runs(X, k_range=(2, 9))
    which = runs.distinct.which
    labels = label_rows(runs, X)
    for run, k in enumerate(runs.n_labels):
        centers = runs.centers[runs.layout.cell(run, np.arange(k))]
        nearest = ((runs.space.place(X)[:, None] - centers) ** 2).sum(axis=2).argmin(1)
        np.testing.assert_array_equal(labels[run], nearest)
    for first, second in zip(*np.triu_indices(12, 1), strict=True):
        same = np.array_equal(labels[first], labels[second])
        assert same == (which[first] == which[second])


def make_wide(n_rows=600, n_features=700, seed=0):
    """Rows with so many features that runs start in few directions."""
    rng = np.random.default_rng(seed)
    topics = rng.gamma(0.1, size=(6, n_features))
    return rng.poisson(3 * topics[rng.integers(6, size=n_rows)]).astype(float)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_wide_rows_end_where_lloyd_rests(metric):
    X = make_wide()
    runs = fit_runs(X, metric=metric)
    points = runs.space.place(X)
    labels = label_rows(runs, X)
    for run, k in enumerate(runs.n_labels):
        centers = runs.centers[runs.layout.cell(run, np.arange(k))]
        means = np.array([points[labels[run] == j].mean(axis=0) for j in range(k)])
        if metric == "cosine":
            means /= np.linalg.norm(means, axis=1, keepdims=True)
        np.testing.assert_allclose(centers, means, atol=1e-9)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_wide_rows_give_the_same_labels_dense_or_sparse_and_on_any_threads(
    metric, seed
):
    X = make_wide(seed=seed)
    labels = label_rows(fit_runs(X, seed, metric=metric), X)
    rows = sparse.csr_array(X)
    for n_jobs in (1, 2):
        runs = fit_runs(rows, seed, metric=metric, n_jobs=n_jobs)
        np.testing.assert_array_equal(label_rows(runs, rows), labels)


def test_starting_in_few_directions_is_no_worse(seed, monkeypatch):
    X = make_wide(seed=seed)

    def mean_inertia():
        runs = fit_runs(X, seed, n_runs=160, k_range=(4, 8))
        points, labels = runs.space.place(X), label_rows(runs, X)
        cells = [runs.layout.cell(run, each) for run, each in enumerate(labels)]
        return np.mean([((points - runs.centers[c]) ** 2).sum() for c in cells])

    in_few_directions = mean_inertia()
    monkeypatch.setattr(_kmeans_runs, "MIN_WIDTH", 10**9)
    assert in_few_directions < 1.02 * mean_inertia()


def test_wide_rows_in_float32_are_the_same_dense_or_sparse(seed):
    X = make_wide(seed=seed).astype(np.float32)
    rows = sparse.csr_array(X)
    np.testing.assert_array_equal(
        label_rows(fit_runs(rows, seed), rows), label_rows(fit_runs(X, seed), X)
    )


@pytest.mark.parametrize("value", [1.0, 2.0**23 + 1, 2.0**25, 0.5])
def test_counts_add_up_in_float32_only_where_that_is_exact(monkeypatch, value, seed):
    # Of an even number of rows, a median that is taken from counts may be a half.
    X = make_wide(n_rows=601, seed=seed)
    X[5:7, 3] = value
    rows = sparse.csr_array(X)
    runs = fit_runs(rows, seed)
    is_small_whole = []

    def note(tiles, weights):
        if tiles.is_sparse:
            is_small_whole.append(_are_small_whole(tiles, weights))
        return False

    monkeypatch.setattr(_lloyd, "_are_small_whole", note)
    np.testing.assert_array_equal(runs.centers, fit_runs(rows, seed).centers)
    assert is_small_whole == [value == 1]


def test_directions_come_from_the_strongest_columns(monkeypatch, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 700))
    X[:, 100:150] *= 10
    np.testing.assert_array_equal(_ladder._find_strongest(X, 50), np.arange(100, 150))
    monkeypatch.setattr(_ladder, "_DIRECTION_COLUMNS", 100)
    rows = sparse.csr_array(X)
    points = [
        _ladder.turn_to_directions(ArrayRows(each), RowSpace.fit("euclidean", each))
        for each in (X, rows)
    ]
    np.testing.assert_allclose(*points, rtol=1e-4, atol=1e-4)
    shares = (points[0] ** 2).sum() / (X**2).sum()
    # Of 64 directions, 50 hold all of the strongest columns.
    assert shares > (X[:, 100:150] ** 2).sum() / (X**2).sum()


def test_wide_rows_that_are_all_equal_have_one_cell():
    X = np.ones((600, 700))
    labels = label_rows(fit_runs(X), X)
    assert (labels == labels[:, :1]).all()


def test_ladder_parts_stand_for_all_rows(monkeypatch, seed):
    # Far rows are in every part, and weighted sums are those of all rows on average.
    monkeypatch.setattr(_ladder, "_MIN_ROWS", 100)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20_000, 3))
    X[:5] += 1000
    with use_threads(1) as threads:
        space, rungs = _ladder.make_ladder(
            ArrayRows(X),
            None,
            rng.permutation(len(X)),
            metric="euclidean",
            k_max=3,
            rng=rng,
            threads=threads,
        )
    assert [rung.source.shape[0] for rung in rungs][-1] == 20_000
    assert len(rungs) == 3
    for rung in rungs[:-1]:
        rows = rung.source.read(0, rung.source.shape[0])
        np.testing.assert_array_equal(rows[:5], X[:5])
        np.testing.assert_allclose(rung.weights[:5], 1)
        # Half of the chances are the same for all rows: no weight is above twice n/m.
        assert rung.weights.max() <= 2 * 20_000 / (rung.source.shape[0] * 0.8)
        np.testing.assert_allclose(rung.weights.sum(), 20_000, rtol=0.2)
        inertia = (rung.weights[:, None] * (rows - X.mean(axis=0)) ** 2).sum()
        np.testing.assert_allclose(inertia, ((X - X.mean(axis=0)) ** 2).sum(), rtol=0.1)


@pytest.mark.parametrize("storage", [sparse.csr_array, np.float32])
def test_ladder_is_the_same_in_any_storage_and_on_any_threads(
    monkeypatch, storage, seed
):
    monkeypatch.setattr(_ladder, "_MIN_ROWS", 100)
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(2000, 6)).astype(np.float32).astype(float)
    X[rng.random(X.shape) < 0.5] = 0
    labels = label_rows(fit_runs(X, seed), X)
    rows = storage(X)
    monkeypatch.setattr(_ladder, "_BLOCK_VALUES", 1000)
    runs = fit_runs(rows, seed, n_jobs=2)
    np.testing.assert_array_equal(label_rows(runs, rows), labels)


def test_few_heavy_rows_leave_the_ladder_enough_others():
    X = np.random.default_rng(0).normal(size=(20_000, 3))
    weights = np.ones(len(X))
    weights[0] = 1e9
    runs = fit_runs(X, weights=weights)
    assert np.isfinite(runs.centers).all()


def test_one_huge_row_anywhere_makes_no_warning(monkeypatch, seed):
    # Whether or not it is among the rows that the space is fitted on.
    monkeypatch.setattr(_ladder, "_MIN_ROWS", 100)
    X = np.random.default_rng(seed).normal(size=(2000, 3))
    X[7] = 1e150
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = label_rows(fit_runs(X, seed), X)
    assert (labels[:, 7] != labels[:, 8]).all()


@pytest.mark.parametrize(
    ("dtype", "exponent"), [("f4", -100), ("f4", 100), ("f8", -600), ("f8", 600)]
)
@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_array])
def test_cosine_does_not_see_the_length_of_a_row(dtype, exponent, storage):
    X = np.abs(np.random.default_rng(0).normal(size=(300, 3))).astype(dtype)
    labels = label_rows(fit_runs(X, metric="cosine"), X)
    X[::2] *= X.dtype.type(2.0**exponent)
    rows = storage(X)
    runs = fit_runs(rows, metric="cosine")
    np.testing.assert_array_equal(label_rows(runs, rows), labels)


def test_cosine_in_float32_is_the_same_dense_or_sparse_with_an_offset(seed):
    X = np.random.default_rng(seed).normal(1e3, 1, size=(300, 4)).astype(np.float32)
    rows = sparse.csr_array(X)
    np.testing.assert_array_equal(
        label_rows(fit_runs(rows, metric="cosine"), rows),
        label_rows(fit_runs(X, metric="cosine"), X),
    )


def test_rows_beyond_float32_are_labelled_by_a_float32_model():
    X = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    runs = fit_runs(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        labels = label_rows(runs, np.array([[1e300, 0, 0], [1e38, 0, 0]]))
    np.testing.assert_array_equal(labels[:, 0], labels[:, 1])


def test_runs_on_some_features_have_unit_centres_for_cosine():
    X = np.abs(np.random.default_rng(0).normal(size=(300, 6)))
    runs = fit_runs(X, metric="cosine", feature_share=0.5, max_iter=1)
    in_use = np.isfinite(runs.half_norms)
    np.testing.assert_allclose(np.linalg.norm(runs.centers[in_use], axis=1), 1)
