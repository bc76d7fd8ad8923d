"""Stage 3: K-means-- on codes."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from corral import COR, _codes, _fusion
from corral._codes import CodeBook
from corral._divergences import COST_STEP, BernoulliKL
from corral._fusion import FusionSettings, Problem, Restart, fuse_codes
from corral._threads import use_threads
from tests.slow_twins import kmeans_minus_minus, one_hot, same_clustering
from tests.test_codes import encode_matrix

EPS = 2.220446049250313e-16
STARTS = ["random-partition", "random-codes", "k-means++"]


def problem_of(labels, n_clusters=3, n_outliers=6, eps=EPS, **options):
    """Return the fusion problem of a label matrix."""
    settings = FusionSettings(
        n_clusters, n_outliers, options.pop("init", STARTS[0]), 1, 100
    )
    codes = encode_matrix(labels)
    with use_threads(1) as threads:
        return Problem(
            codes,
            BernoulliKL(eps),
            settings,
            threads,
            options.get("sample_weight"),
            options.get("cost_offsets"),
        )


def solve(problem, start):
    """Run one restart from these centres."""
    (restart,) = problem.solve([Restart(start)])
    return restart.to_fusion(problem.codes)


def labels_of(fusion, codes):
    """Return the labels of samples, -1 for those set aside."""
    labels = fusion.code_labels[codes.inverse].copy()
    labels[fusion.outliers] = -1
    return labels


def fuse(
    labels, n_clusters=3, n_outliers=6, init=STARTS[0], n_init=5, seed=0, **options
):
    codes = encode_matrix(labels)
    settings = FusionSettings(n_clusters, n_outliers, init, n_init, 100)
    with use_threads(1) as threads:
        fusion = fuse_codes(
            codes,
            BernoulliKL(options.pop("eps", EPS)),
            settings,
            np.random.default_rng(seed),
            threads,
            **options,
        )
    return fusion, labels_of(fusion, codes)


def test_by_hand():
    # Two groups of three rows that agree in all three partitions, and a row that
    # agrees with the first group in one partition and has a label of its own in two.
    # Setting it aside leaves two clusters without any disorder: objective 0.
    labels = np.array([[0, 0, 0]] * 3 + [[1, 1, 1]] * 3 + [[0, 2, 2]])
    fusion, found = fuse(labels, n_clusters=2, n_outliers=1, n_init=50)
    assert same_clustering(found, [0, 0, 0, 1, 1, 1, -1])
    # Not quite 0: a probability of 0 or 1 is clipped.
    assert fusion.objective == pytest.approx(0, abs=1e-8)
    # Kept, it joins the first group, where two labels (p = 3/4 and p = 1/4) of two
    # partitions then have the entropy H(1/4) each, for 4 of 7 rows.
    fusion, _ = fuse(labels, n_clusters=2, n_outliers=0, n_init=50)
    h = -(0.25 * np.log(0.25) + 0.75 * np.log(0.75))
    assert fusion.objective == pytest.approx(4 * h * 4 / 7)


@pytest.mark.parametrize("n_outliers", [0, 1, 6, 12])
@pytest.mark.parametrize("eps", [EPS, 1e-2])
def test_fusion_on_codes_is_fusion_on_rows(partitions, n_outliers, eps, seed):
    # From the same centres: the same labels, outliers and objectives as Algorithm 1.
    problem = problem_of(partitions, n_outliers=n_outliers, eps=eps)
    is_label = problem.codes.book.is_label
    n_compared = 0
    for stream in np.random.default_rng(seed).spawn(10):
        start = problem.draw_start(stream)
        twin = kmeans_minus_minus(
            one_hot(partitions),
            start[:, is_label],
            n_outliers,
            eps,
            problem.codes.book.n_labels,
            COST_STEP,
        )
        if twin is not None:
            fusion = solve(problem, start)
            np.testing.assert_array_equal(labels_of(fusion, problem.codes), twin[0])
            np.testing.assert_allclose(fusion.history, twin[1], rtol=1e-6)
            n_compared += 1
    assert n_compared >= 3


@pytest.mark.parametrize("init", STARTS)
@pytest.mark.parametrize("eps", [EPS, 1e-3, 0.1])
def test_objective_never_rises(partitions, init, eps, seed):
    for restart in range(20):
        fusion, _ = fuse(
            partitions, init=init, n_init=1, seed=100 * seed + restart, eps=eps
        )
        assert (np.diff(fusion.history) <= 0).all()
        assert fusion.objective == fusion.history[-1]


@pytest.mark.parametrize("init", STARTS)
def test_exactly_so_many_are_set_aside(partitions, init):
    for n_outliers in (0, 1, 17, 40):
        fusion, found = fuse(partitions, n_outliers=n_outliers, init=init)
        assert np.count_nonzero(found == -1) == n_outliers == len(fusion.outliers)


def test_more_outliers_and_more_clusters_cost_less(partitions):
    by_outliers = [fuse(partitions, n_outliers=o)[0].objective for o in (0, 5, 15, 30)]
    by_clusters = [fuse(partitions, n_clusters=k)[0].objective for k in (1, 2, 3, 5)]
    assert by_outliers == sorted(by_outliers, reverse=True)
    assert by_clusters == sorted(by_clusters, reverse=True)


def test_best_restart_is_kept(partitions):
    many, _ = fuse(partitions, n_init=8)
    with use_threads(1) as threads:
        problem = problem_of(partitions)
        problem._threads = threads
        each = [
            problem.solve([Restart(problem.draw_start(stream))])[0].objective
            for stream in np.random.default_rng(0).spawn(8)
        ]
    assert many.objective == min(each)


@pytest.mark.parametrize("init", STARTS)
def test_order_of_samples_does_not_matter(partitions, init):
    order = np.random.default_rng(0).permutation(len(partitions))
    # No tie at the threshold: there, the order of the samples does decide.
    fusion, found = fuse(partitions, init=init, n_outliers=0)
    other, found_in_order = fuse(partitions[order], init=init, n_outliers=0)
    np.testing.assert_array_equal(found[order], found_in_order)
    assert fusion.objective == other.objective


def test_names_of_labels_and_order_of_partitions_do_not_matter(partitions):
    rng = np.random.default_rng(5)
    renamed = partitions.copy()
    for column in renamed.T:
        column[:] = rng.permutation(column.max() + 1)[column]
    columns = rng.permutation(partitions.shape[1])
    problem = problem_of(partitions)
    memberships = rng.random((len(partitions), 3))

    def solve_labels(labels):
        # The same start: every sample a little in each cluster.
        problem = problem_of(labels)
        by_code = np.zeros((problem.n_codes, 3))
        np.add.at(by_code, problem.codes.inverse, memberships)
        fusion = solve(problem, problem.means(lambda here: by_code[here]))
        return labels_of(fusion, problem.codes)

    expected = solve_labels(partitions)
    np.testing.assert_array_equal(solve_labels(renamed), expected)
    np.testing.assert_array_equal(solve_labels(partitions[:, columns]), expected)
    assert problem.n_codes > 3


def test_weights_are_repeated_rows(partitions):
    weights = np.random.default_rng(1).integers(1, 4, size=len(partitions))
    repeated = np.repeat(partitions, weights, axis=0)
    rng = np.random.default_rng(2)
    start = problem_of(partitions).draw_start(rng)
    one = problem_of(partitions, n_outliers=0, sample_weight=weights.astype(float))
    other = problem_of(repeated, n_outliers=0)
    a, b = solve(one, start), solve(other, start)
    np.testing.assert_array_equal(
        np.repeat(labels_of(a, one.codes), weights), labels_of(b, other.codes)
    )
    assert a.objective == pytest.approx(b.objective)


def test_cost_offset_decides_who_is_set_aside(partitions):
    offsets = np.zeros(len(partitions))
    offsets[[11, 30]] = 1e4
    fusion, _ = fuse(partitions, n_outliers=2, cost_offsets=offsets)
    np.testing.assert_array_equal(fusion.outliers, [11, 30])
    assert (np.diff(fusion.history) <= 0).all()


def test_zero_offsets_and_unit_weights_change_nothing(partitions):
    # Choosing samples by codes and choosing them one by one is the same.
    plain, found = fuse(partitions)
    zeros = np.zeros(len(partitions))
    ones = np.ones(len(partitions))
    for options in ({"cost_offsets": zeros}, {"sample_weight": ones}):
        fusion, other = fuse(partitions, **options)
        np.testing.assert_array_equal(found, other)
        assert plain.objective == pytest.approx(fusion.objective)


def test_kmeans_plusplus_where_all_others_cost_nothing():
    # Rows with a missing label agree with the chosen one as far as they go.
    labels = np.array([[0, 0], [0, -1], [-1, 0]])
    model = COR.paper(3, n_outliers=0, init="k-means++", n_init=5, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"Only \d of n_clusters=3"):
        model.fit_partitions(labels)
    assert model.objective_ == pytest.approx(0, abs=1e-6)


def test_emptied_cluster_is_refilled():
    # Both starting centres are the same, so the second one gets nothing.
    labels = np.array([[0, 0, 0]] * 4 + [[1, 1, 1]] * 4 + [[0, 1, 0]])
    problem = problem_of(labels, n_clusters=2, n_outliers=0)
    start = problem.means(lambda here: np.ones((problem.n_codes, 2))[here])
    fusion = solve(problem, start)
    assert np.isfinite(fusion.centers).all()
    assert set(fusion.code_labels) == {0, 1}
    assert (np.diff(fusion.history) <= 0).all()


def test_missing_labels_give_no_cost_and_no_weight():
    # The cluster's shares come from known labels only: 2 of 3 have label 0.
    book_labels = np.array([[0, 0], [0, 1], [1, 1], [2, 1]])
    codes = encode_matrix(book_labels)
    # Label 2 of the first partition stands for "missing" from here on.
    book = CodeBook(np.array([2, 2]))
    rows = codes.rows.copy()
    rows[rows[:, 0] == 2, 0] = 3
    codes = type(codes)(book, rows, codes.inverse, codes.counts)
    settings = FusionSettings(1, 0, STARTS[0], 1, 100)
    with use_threads(1) as threads:
        problem = Problem(codes, BernoulliKL(EPS), settings, threads, None, None)
        centers = problem.means(lambda here: np.ones((len(rows), 1))[here])
        np.testing.assert_allclose(
            centers[0, book.is_label], [2 / 3, 1 / 3, 1 / 4, 3 / 4]
        )
        _, (costs,) = problem.assign([Restart(centers)])
    missing = np.flatnonzero(rows[:, 0] == 3)[0]
    assert costs[missing] == pytest.approx(-2 * np.log(3 / 4))


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize("kept", [0, 2**23])
@pytest.mark.parametrize("together", [1, 2**21])
def test_blocks_and_threads_change_nothing(
    partitions, monkeypatch, n_jobs, kept, together
):
    expected, found = fuse(partitions)
    monkeypatch.setattr(_codes, "_BLOCK_SLOTS", 20)
    monkeypatch.setattr(_fusion, "_RESTART_CODES", together)
    monkeypatch.setattr(_codes, "_KEPT_SLOTS", kept)
    codes = encode_matrix(partitions)
    with use_threads(n_jobs) as threads:
        fusion = fuse_codes(
            codes,
            BernoulliKL(EPS),
            FusionSettings(3, 6, STARTS[0], 5, 100),
            np.random.default_rng(0),
            threads,
        )
    np.testing.assert_array_equal(labels_of(fusion, codes), found)
    np.testing.assert_array_equal(fusion.centers, expected.centers)
