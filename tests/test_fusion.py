"""Stage 3: K-means-- on codes."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from corral import COR, _codes, _fusion, _linkage
from corral._codes import CodeBook, Codes
from corral._divergences import COST_STEP, BernoulliKL, CodeLength
from corral._fusion import (
    FusionSettings,
    Placed,
    Problem,
    Restart,
    fuse_codes,
    measure_separation,
    take_means,
)
from corral._linkage import N_STARTS, list_linkage_starts
from corral._outliers import SetAside
from corral._progress import FUSING, watch
from corral._threads import ONE_THREAD, use_threads
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
        if n_compared == 3:
            break
    assert n_compared == 3


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


def few_codes(n_clusters=2, divergence=None, **options):
    """Return the problem of five samples of four codes, in the order of the codes.

    The codes are 00, 01, 1? and ?1 with ? for a missing label; the first one has two
    samples.
    """
    rows = np.array([[0, 0], [0, 1], [1, 3], [3, 1]], dtype=np.uint8)
    inverse = np.array([0, 0, 1, 2, 3])
    codes = Codes(CodeBook(np.array([2, 2])), rows, inverse, np.array([2, 1, 1, 1]))
    return Problem(
        codes,
        divergence or BernoulliKL(EPS),
        FusionSettings(n_clusters, 0, STARTS[0], 1, 100),
        ONE_THREAD,
        options.get("sample_weight"),
        options.get("cost_offsets"),
    )


def put(problem, labels, aside=(0, 0, 0, 0), objective=1.0):
    """Return a restart whose codes are in these clusters."""
    labels = np.array(labels)
    restart = Restart(np.zeros((problem.settings.n_clusters, 8)))
    placed = Placed(labels, np.zeros(4), SetAside(np.array(aside, dtype=float)))
    restart.note(objective, placed)
    return restart


def test_some_samples_have_their_share_of_the_outliers():
    settings = FusionSettings(3, 30, STARTS[0], 1, 100)
    assert settings.scale(200, 200) is settings
    assert settings.scale(50, 200) == replace(settings, n_outliers=8)
    # As many as clusters are kept.
    settings = replace(settings, n_outliers=190)
    assert settings.scale(10, 200) == replace(settings, n_outliers=7)
    assert settings.scale(3, 200) == replace(settings, n_outliers=0)
    assert settings.scale(2, 200) == replace(settings, n_outliers=0)


def test_a_restart_rests_when_its_objective_does():
    restart = Restart(np.zeros((4, 3)))
    assert restart.shares.tolist() == [0.25] * 4
    assert restart.is_even is False
    for objective, placed in ((5.0, "first"), (3.0, "second")):
        restart.note(objective, placed)
        assert restart.converged is False
    restart.note(3.0, "third")
    assert restart.converged is True
    assert restart.history == [5, 3, 3]
    assert restart.best == (restart.centers, restart.shares, "third")


def test_a_restart_that_gets_worse_ends_at_the_state_before():
    restart = Restart(np.zeros((2, 3)))
    restart.note(5.0, "first")
    before = restart.centers, restart.shares
    restart.centers, restart.shares = np.ones((2, 3)), np.array([0.1, 0.9])
    restart.note(5.1, "second")
    assert restart.converged is True
    assert restart.history == [5]
    assert restart.best == (*before, "first")


def test_outcome_of_a_restart_is_its_best_state():
    problem = few_codes()
    restart = put(problem, [0, 1, 1, 0], aside=[1, 0, 0, 1])
    centers, shares, placed = restart.best
    restart.centers, restart.shares = None, None
    fusion = restart.to_fusion(problem.codes)
    assert fusion.centers is centers
    assert fusion.shares is shares
    assert fusion.code_labels is placed.labels
    assert fusion.code_costs is placed.costs
    # The first sample of the first code, and the one of the last.
    np.testing.assert_array_equal(fusion.outliers, [0, 4])
    assert (fusion.objective, fusion.history.tolist()) == (1.0, [1.0])
    assert fusion.converged is False


def test_samples_without_weight_cost_nothing():
    # Without the last row, two clusters have no disorder.
    labels = np.array([[0, 0, 0]] * 3 + [[1, 1, 1]] * 3 + [[0, 2, 2]])
    weights = np.array([1.0] * 6 + [0])
    fusion, _ = fuse(labels, 2, 0, n_init=20, sample_weight=weights)
    assert fusion.objective == pytest.approx(0, abs=1e-8)


def test_strange_samples_are_weighed_by_code():
    # Samples 1, 3 and 4 have the largest offsets.
    offsets = np.array([1.0, 9.0, 2.0, 8.0, 7.0])
    weights = np.array([1.0, 2.0, 4.0, 8.0, 16.0])
    assert few_codes().weigh_strange(3).tolist() == [0, 0, 0, 0]
    problem = few_codes(cost_offsets=offsets)
    assert problem.weigh_strange(3).tolist() == [1, 0, 1, 1]
    assert problem.weigh_strange(2).tolist() == [1, 0, 1, 0]
    problem = few_codes(cost_offsets=offsets, sample_weight=weights)
    assert problem.weigh_strange(3).tolist() == [2, 0, 8, 16]
    assert problem.weigh_strange(2).tolist() == [2, 0, 8, 0]


@pytest.mark.parametrize("n_init", [1, N_STARTS])
def test_linkage_starts_from_the_branches_of_trees(partitions, monkeypatch, n_init):
    # Few of the codes are in the trees; which ones is drawn.
    monkeypatch.setattr(_linkage, "_TREE_SAMPLES", 15)
    offsets = np.random.default_rng(7).random(len(partitions))
    fusion, _ = fuse(partitions, init="linkage", n_init=n_init, cost_offsets=offsets)
    problem = problem_of(partitions, cost_offsets=offsets)
    members = list_linkage_starts(
        problem.codes,
        problem.weights,
        problem.weigh_strange(6),
        3,
        n_init,
        np.random.default_rng(0),
    )
    found = [solve(problem, problem.means(each.__getitem__)) for each in members]
    best = min(found, key=lambda each: each.objective)
    assert fusion.objective == best.objective
    np.testing.assert_array_equal(fusion.centers, best.centers)
    # The first start is not the best one, so it counts how many there are.
    assert (best is found[0]) == (n_init == 1)


def test_clusters_count_as_equally_large_where_they_would_vanish():
    # All rows of three bits: a cluster of the first row alone is not worth its name.
    problem = problem_of(np.array(list(product([0, 1], repeat=3))), 2, 0)
    problem.divergence = CodeLength(0.01)
    first = np.arange(8) == problem.codes.inverse[0]
    start = problem.means(np.column_stack([~first, first]).astype(float).__getitem__)
    (vanished,) = problem.solve_all([start])
    assert problem.n_filled(vanished) == 1
    # Restarts are added only if clusters should be told apart.
    problem.settings = replace(problem.settings, separating=range(3))
    plain, even = problem.solve_all([start])
    assert (problem.n_filled(plain), problem.n_filled(even)) == (1, 2)
    assert plain.is_even is False
    assert even.is_even is True
    assert even.shares.tolist() == [0.5, 0.5]
    np.testing.assert_array_equal(even.best[2].labels, first)
    # If any start fills all clusters, that will do.
    parted = problem.means(np.eye(2)[problem.codes.rows[:, 0]].__getitem__)
    restarts = problem.solve_all([start, parted])
    assert [problem.n_filled(each) for each in restarts] == [1, 2]


def test_best_restart_has_the_lowest_objective_and_is_the_first():
    problem = few_codes()
    restarts = [put(problem, [0, 1, 1, 0], objective=each) for each in (3, 2, 2, 4)]
    assert problem.choose(restarts) is restarts[1]


def test_restarts_that_tell_clusters_apart_are_best():
    problem = few_codes(n_clusters=3)
    problem.settings = replace(problem.settings, separating=[1])
    # Clusters 0 and 1 have one label of the second partition each, the third none.
    apart = put(problem, [0, 1, 2, 1], objective=9)
    mixed = put(problem, [0, 0, 2, 1], objective=1)
    fewer = put(problem, [0, 1, 1, 1], objective=1)
    assert [problem.n_filled(each) for each in (apart, mixed, fewer)] == [3, 3, 2]
    assert problem.separation(apart) > problem.separation(mixed)
    again = put(problem, [0, 1, 2, 1], objective=0)
    assert problem.choose([fewer, mixed, apart, again]) is apart


def test_clusters_without_a_sample_that_is_kept_do_not_count():
    problem = few_codes(n_clusters=3)
    assert problem.n_filled(put(problem, [0, 0, 1, 2], aside=[1, 1, 0, 1])) == 2
    weighted = few_codes(n_clusters=3, sample_weight=np.array([1, 1, 0, 1, 1.0]))
    assert weighted.n_filled(put(weighted, [0, 1, 2, 2])) == 2


def test_separation_is_that_of_the_samples_kept():
    # Two samples of 00 and one of 1? are kept in cluster 0, one of 01 in cluster 1, and
    # none in cluster 2. In each partition, those without a label are left out.
    problem = few_codes(n_clusters=3)
    problem.settings = replace(problem.settings, separating=[0, 1])
    restart = put(problem, [0, 1, 0, 1], aside=[0, 0, 0, 1])
    sizes = np.array([3.0, 1.0, 0.0])
    first = np.array([[2.0, 1, 0], [1, 0, 0], [0, 0, 0]])
    second = np.array([[2.0, 0, 0], [0, 1, 0], [0, 0, 0]])
    expected = measure_separation(sizes, [first, second])
    assert problem.separation(restart) == expected > 0


def test_separation_by_hand():
    apart, mixed = np.diag([2.0, 2.0]), np.ones((2, 2))
    assert measure_separation(np.array([2, 2]), [apart]) == pytest.approx(1)
    assert measure_separation(np.array([2, 2]), [mixed]) == pytest.approx(0, abs=1e-15)
    # That the second cluster has two labels takes nothing away.
    more = np.array([[2.0, 0, 0], [0, 1, 1]])
    assert measure_separation(np.array([2, 2]), [more]) == pytest.approx(1)
    # The mean over partitions; one in which no label is known tells nothing.
    several = [apart, mixed, apart, np.zeros((2, 2))]
    assert measure_separation(np.array([2, 2]), several) == pytest.approx(0.5)
    # Two labels that tell all of unequal clusters, 3 to 1: H / (H^0.85 log(2)^0.15).
    h = -(0.75 * np.log(0.75) + 0.25 * np.log(0.25))
    uneven = measure_separation(np.array([3, 1]), [np.diag([6.0, 2.0])])
    assert uneven == pytest.approx((h / np.log(2)) ** 0.15)
    # Weights may be small.
    light = measure_separation(np.array([0.03, 0.01]), [np.diag([0.03, 0.01])])
    assert light == pytest.approx(uneven)
    # One of three clusters is empty: log(2) / (log(2)^0.85 log(3)^0.15).
    empty = measure_separation(np.array([2, 2, 0]), [np.diag([2.0, 2.0, 0.0])])
    assert empty == pytest.approx((np.log(2) / np.log(3)) ** 0.15)
    # Which cluster is no question if there is one.
    assert measure_separation(np.array([4, 0]), [np.array([[3.0, 1], [0, 0]])]) == 0


def test_samples_without_a_label_do_not_make_clusters_look_apart():
    # Two of 100 samples are clusters by themselves. A partition that knows one sample
    # of each tells them apart as well as one that knows all, and not better.
    sizes = np.array([98.0, 1, 1])
    whole = measure_separation(sizes, [np.diag(sizes)])
    assert whole < 1
    assert measure_separation(sizes, [np.eye(3)]) == pytest.approx(whole)
    # One that knows a single cluster tells nothing.
    lone = np.diag([50.0, 0, 0])
    assert measure_separation(sizes, [lone]) == 0
    assert measure_separation(sizes, [lone, np.eye(3)]) == pytest.approx(whole / 2)


def test_iterations_end_at_the_number_given(partitions):
    problem = problem_of(partitions)
    start = problem.draw_start(np.random.default_rng(0))
    n_needed = len(solve(problem, start).history)
    assert n_needed > 3
    (restart,) = problem.solve([Restart(start)], 2)
    assert (len(restart.history), restart.converged) == (2, False)
    problem.settings = replace(problem.settings, max_iter=3)
    (restart,) = problem.solve([Restart(start)])
    assert (len(restart.history), restart.converged) == (3, False)


def test_progress_is_how_many_restarts_rest(partitions):
    problem = problem_of(partitions)
    starts = [problem.draw_start(each) for each in np.random.default_rng(0).spawn(3)]
    reports = []
    with watch(lambda *report: reports.append(report)):
        problem.solve([Restart(each) for each in starts])
    stages, done, totals = zip(*reports, strict=True)
    assert set(stages) == {FUSING}
    assert set(totals) == {3}
    assert (done[0], done[-1]) == (0, 3)
    assert list(done) == sorted(done)
    # Told before each iteration, and when all of them rest.
    longest = max(len(solve(problem, each).history) for each in starts)
    assert len(reports) == longest + 1


def test_objective_is_the_mean_of_costs_and_offsets_of_the_samples_kept():
    # Labels cost 2 * 1 + 1 * 2 + 5 * 4, and the samples weigh 8.
    costs, kept = np.array([1.0, 2, 3, 4]), np.array([2.0, 1, 0, 5])
    aside = SetAside(np.array([1.0, 0, 1, 0]), kept_offsets=16.0)
    assert few_codes().measure(costs, kept, aside) == 24 / 8
    problem = few_codes(cost_offsets=np.zeros(5))
    assert problem.measure(costs, kept, aside) == (24 + 16) / 8


def test_costs_of_codes_are_those_of_the_objective(partitions):
    fusion, found = fuse(partitions)
    costs = fusion.code_costs[encode_matrix(partitions).inverse]
    assert costs[found >= 0].mean() == pytest.approx(fusion.objective)
    assert costs[found == -1].min() >= costs[found >= 0].max()


def test_outliers_with_all_of_the_weight_are_refused(partitions):
    weights = np.zeros(len(partitions))
    weights[4] = 1
    offsets = 1e6 * weights
    message = (
        r"^The 6 outliers have all of sample_weight\. Lower the number of outliers\.$"
    )
    with pytest.raises(ValueError, match=message):
        fuse(partitions, sample_weight=weights, cost_offsets=offsets)


def refill(n_clusters, labels, costs, kept=None):
    """Return what becomes of the labels of so many codes."""
    problem = problem_of(np.eye(2, dtype=int), n_clusters, 0)
    kept = np.ones(len(labels)) if kept is None else np.array(kept, dtype=float)
    labels = np.array(labels)
    refilled = problem.refill(labels, np.array(costs, dtype=float), kept)
    assert (refilled is labels) == np.array_equal(refilled, labels)
    return refilled.tolist()


def test_refill_by_hand():
    # The costliest codes, to the empty clusters in their order.
    assert refill(3, [0, 0, 0, 0], [1, 4, 3, 2]) == [0, 1, 2, 0]
    # Of equal ones the first.
    assert refill(2, [0, 0, 0], [0.5, 0.7, 0.7]) == [0, 1, 0]
    assert refill(2, [0] * 100, [7] * 100) == [1] + [0] * 99
    # Not from a cluster of one code, nor the last of one that gave before.
    assert refill(4, [0, 1, 1, 3], [9, 7, 8, 6]) == [0, 1, 2, 3]
    assert refill(4, [0, 0, 0], [3, 2, 1]) == [1, 2, 0]
    assert refill(5, [0, 0, 1, 1], [9, 8, 7, 6]) == [2, 0, 3, 1]
    # Codes that are set aside neither fill a cluster nor move.
    kept = [1, 0, 1, 0, 1]
    assert refill(3, [0, 0, 0, 2, 0], [5, 9, 4, 9, 3], kept) == [1, 0, 2, 2, 0]
    assert refill(2, [0, 0, 0], [2, 9, 1], [0.5, 0, 0.5]) == [1, 0, 0]


def test_codes_that_cost_nothing_do_not_move():
    problem = problem_of(np.eye(2, dtype=int), 3, 0)
    labels = np.zeros(4, dtype=int)
    refilled = problem.refill(labels, np.array([0, 2.0, 0, 0]), np.ones(4))
    assert refilled.tolist() == [0, 1, 0, 0]
    assert labels.tolist() == [0, 0, 0, 0]


def test_update_by_hand():
    # Codes 00, 01 and 1? are in cluster 0 with weights 2, 1 and 1, and ?1 in 1.
    problem = few_codes(n_clusters=3)
    before = np.full((3, 8), 0.125)
    plain, even = Restart(before), Restart(before, is_even=True)
    labels, kept = np.array([0, 0, 0, 1]), np.array([2.0, 1, 1, 1])
    other = np.array([2, 0, 1, 1]), np.array([1.0, 0, 0, 2])
    problem.update([(plain, labels, kept), (even, *other)])
    # Known labels only; a cluster without weight stays where it is.
    expected = [
        [3 / 4, 1 / 4, 0, 0, 2 / 3, 1 / 3, 0, 0],
        [0, 0, 0, 0, 0, 1, 0, 0],
        [0.125] * 8,
    ]
    np.testing.assert_allclose(plain.centers, expected)
    # Clusters are named for 2 * 2 + 1 * 2 + 1 labels, and for one.
    np.testing.assert_allclose(plain.shares, [7 / 8, 1 / 8, 0])
    np.testing.assert_allclose(even.centers[0], [0.125] * 8)
    np.testing.assert_allclose(even.centers[1], [0, 0, 0, 0, 0, 1, 0, 0])
    np.testing.assert_allclose(even.centers[2], [1, 0, 0, 0, 1, 0, 0, 0])
    np.testing.assert_allclose(even.shares, [1 / 3] * 3)


def test_means_by_hand():
    # Unseen and missing labels count for nothing, and no label is known in the last.
    book = CodeBook(np.array([2, 1]))
    sums = np.array([[3.0, 1, 5, 7, 4, 1, 2], [0, 0, 2, 2, 1, 0, 0]]).T
    expected = [[0.75, 0.25, 0, 0, 1, 0, 0], [0, 0, 0, 0, 1, 0, 0]]
    np.testing.assert_array_equal(take_means(sums, book), expected)


def test_random_clusters_start_near_the_mean():
    # 6000 samples of three codes: a share in 2000 of them is off by 0.011 or so.
    rows = np.repeat([[0, 1], [1, 0], [2, 0]], [3000, 2000, 1000], axis=0)
    start = problem_of(rows).draw_start(np.random.default_rng(0))
    mean = [1 / 2, 1 / 3, 1 / 6, 0, 0, 1 / 2, 1 / 2, 0, 0]
    np.testing.assert_allclose(start, [mean] * 3, atol=0.06)
    assert (start[0] != start[1]).any()
    # With weights, in one cluster, it is the mean itself.
    weights = np.repeat([1.0, 0.5, 4.0], [3000, 2000, 1000])
    problem = problem_of(rows, n_clusters=1, sample_weight=weights)
    start = problem.draw_start(np.random.default_rng(0))
    mean = [3 / 8, 1 / 8, 1 / 2, 0, 0, 5 / 8, 3 / 8, 0, 0]
    np.testing.assert_allclose(start, [mean])


@pytest.mark.parametrize("init", STARTS[1:])
def test_starts_are_codes_of_samples_with_weight(init, seed):
    # All three codes with weight are taken, none twice, though with such a large eps
    # no code agrees with itself for nothing.
    for stream in np.random.default_rng(seed).spawn(20):
        problem = few_codes(
            3, BernoulliKL(0.3), sample_weight=np.array([1, 1, 0, 1, 1.0])
        )
        problem.settings = replace(problem.settings, init=init)
        start = problem.draw_start(stream)
        expected = [
            [0, 0, 0, 0, 0, 1, 0, 0],
            [0, 1, 0, 0, 0, 0, 0, 0],
            [1, 0, 0, 0, 1, 0, 0, 0],
        ]
        assert sorted(start.tolist()) == expected


@pytest.mark.parametrize("init", STARTS[1:])
def test_starts_are_drawn_in_proportion_to_weight(init, seed):
    # By chance, the code of nearly all of the weight is not taken once in 1e7 times.
    problem = few_codes(1, sample_weight=np.array([1, 1, 1, 1e9, 1]))
    problem.settings = replace(problem.settings, init=init)
    for stream in np.random.default_rng(seed).spawn(10):
        start = problem.draw_start(stream)
        np.testing.assert_array_equal(start, [[0, 1, 0, 0, 0, 0, 0, 0]])


def test_kmeans_plusplus_draws_in_proportion_to_cost(seed):
    # Of two blocks of equal rows, the second start is in the other block.
    problem = problem_of(np.array([[0, 0]] * 9 + [[1, 1]]), 2, 0, init="k-means++")
    for stream in np.random.default_rng(seed).spawn(10):
        start = problem.draw_start(stream)
        assert (start[0] != start[1]).any()


def test_kmeans_plusplus_takes_no_code_twice_where_all_cost_nothing(seed):
    # 0?, ?0 and 00: whichever is taken, those left may agree with it.
    rows = np.array([[0, 2], [2, 0], [0, 0]], dtype=np.uint8)
    codes = Codes(CodeBook(np.array([1, 1])), rows, np.arange(3), np.ones(3, int))
    settings = FusionSettings(3, 0, "k-means++", 1, 100)
    problem = Problem(codes, BernoulliKL(EPS), settings, ONE_THREAD, None, None)
    for stream in np.random.default_rng(seed).spawn(10):
        start = problem.draw_start(stream)
        expected = [[0, 0, 0, 1, 0, 0], [1, 0, 0, 0, 0, 0], [1, 0, 0, 1, 0, 0]]
        assert sorted(start.tolist()) == expected
