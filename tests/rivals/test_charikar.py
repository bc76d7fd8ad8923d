"""K-center and K-median with outliers: what is proved of them, on small data."""

import itertools

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning

from corral.rivals._charikar import (
    KCenterOutliers,
    KMedianOutliers,
    cover_rows,
    hold_auction,
    keep_unshared,
    opening_time,
    raise_bids,
    search_radius,
)

BOTH = [KCenterOutliers, KMedianOutliers]


def draw(seed, kind="normal", n_samples=10):
    rng = np.random.default_rng(seed)
    if kind == "grid":
        # Ties and duplicates everywhere.
        return rng.integers(0, 4, size=(n_samples, 2)).astype(float)
    return rng.normal(size=(n_samples, 2))


def slow_optimum(distances, n_clusters, n_outliers, measure):
    """Try all sets of centres; the farthest rows are the outliers."""
    n_kept = len(distances) - n_outliers
    return min(
        measure(np.sort(distances[list(centers)].min(axis=0))[:n_kept])
        for centers in itertools.combinations(range(len(distances)), n_clusters)
    )


def slow_cover(distances, radius, n_clusters):
    """Take disks as the paper says, counting rows anew each time."""
    n = len(distances)
    uncovered = set(range(n))
    centers = []
    for _ in range(n_clusters):
        if not uncovered:
            break
        held = [sum(distances[j, i] <= radius for i in uncovered) for j in range(n)]
        center = held.index(max(held))
        centers.append(center)
        uncovered -= {i for i in uncovered if distances[center, i] <= 3 * radius}
    return centers, len(uncovered)


def slow_bids(distances, cost, n_outliers, n_steps=4000):
    """Raise the bids in small steps of time; return them and the rows that open."""
    n = len(distances)
    horizon = cost + distances.max()
    bids = np.zeros(n)
    bidding, opened = set(range(n)), []
    for time in np.linspace(0, horizon, n_steps):
        if len(bidding) <= n_outliers:
            break
        bids[list(bidding)] = time
        for j in range(n):
            paid = sum(max(bids[i] - distances[i, j], 0) for i in range(n))
            if j not in opened and paid >= cost and len(bidding) > n_outliers:
                opened.append(j)
                bidding -= {i for i in bidding if distances[i, j] <= time}
        for i in sorted(bidding):
            if len(bidding) > n_outliers and any(
                distances[i, j] <= time for j in opened
            ):
                bidding.remove(i)
    return bids, opened


@pytest.mark.parametrize("kind", ["normal", "grid"])
@pytest.mark.parametrize("n_clusters", [1, 2, 3])
@pytest.mark.parametrize("n_outliers", [0, 1, 2])
def test_k_center_is_within_thrice_the_optimum(seed, kind, n_clusters, n_outliers):
    X = draw(seed, kind)
    model = KCenterOutliers(n_clusters, n_outliers=n_outliers).fit(X)
    optimum = slow_optimum(cdist(X, X), n_clusters, n_outliers, np.max)
    assert model.lower_bound_ <= optimum + 1e-12
    assert model.objective_ <= 3 * model.lower_bound_ + 1e-12
    assert len(model.exemplars_) <= n_clusters


@pytest.mark.parametrize("kind", ["normal", "grid"])
@pytest.mark.parametrize("n_clusters", [1, 2, 3])
def test_cover_rows_is_the_papers_loop(seed, kind, n_clusters):
    distances = cdist(*[draw(seed, kind, 25)] * 2)
    for radius in np.quantile(distances, [0.0, 0.05, 0.1, 0.2, 0.5, 1.0]):
        centers, n_uncovered = cover_rows(distances, radius, n_clusters)
        expected = slow_cover(distances, radius, n_clusters)
        assert (centers.tolist(), n_uncovered) == expected


def test_search_radius_stops_between_failure_and_success(seed):
    distances = cdist(*[draw(seed, n_samples=20)] * 2)
    cover = search_radius(distances, 3, 2)
    assert slow_cover(distances, cover.radius, 3)[1] <= 2
    smaller = distances[distances < cover.radius].max()
    assert slow_cover(distances, smaller, 3)[1] > 2


def test_k_center_by_hand():
    """Two disks of radius 1 cover all but the last row, which is out of their reach."""
    X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [12.0], [99.0]])
    model = KCenterOutliers(2, n_outliers=1).fit(X)
    assert model.exemplars_.tolist() == [1, 4]
    assert model.labels_.tolist() == [0, 0, 0, 1, 1, 1, -1]
    assert model.objective_ == model.lower_bound_ == 1.0
    assert model.offset_ == -1.0


@pytest.mark.parametrize("kind", ["normal", "grid"])
@pytest.mark.parametrize("n_clusters", [1, 2, 3])
@pytest.mark.parametrize("n_outliers", [0, 1, 2])
def test_k_median_keeps_its_guarantee(seed, kind, n_clusters, n_outliers):
    X = draw(seed, kind)
    distances = cdist(X, X)
    model = KMedianOutliers(n_clusters, n_outliers=n_outliers).fit(X)
    optimum = slow_optimum(distances, n_clusters, n_outliers, np.sum)
    assert model.lower_bound_ <= optimum + 1e-9
    assert optimum <= model.objective_ + 1e-9
    assert 1 <= model.n_opened_ <= n_clusters
    if model.n_opened_ > 1:
        fewer = slow_optimum(distances, model.n_opened_ - 1, n_outliers, np.sum)
        assert model.objective_ <= 3 * fewer + 1e-9


@pytest.mark.parametrize("cost", [0.3, 1.0, 4.0])
@pytest.mark.parametrize("n_outliers", [0, 2])
def test_auction_satisfies_the_inequality_of_the_proof(seed, cost, n_outliers):
    """objective + 3 (s - 1) f <= 3 kept bids <= 3 (OPT_K + K f), for every K."""
    distances = cdist(*[draw(seed)] * 2)
    auction = hold_auction(distances, cost, n_outliers)
    nearest = np.sort(distances[auction.exemplars].min(axis=0))
    objective = nearest[: len(distances) - n_outliers].sum()
    n_extra = len(auction.exemplars) - 1
    assert objective + 3 * n_extra * cost <= 3 * auction.kept_bids + 1e-9
    for n_clusters in range(1, 5):
        optimum = slow_optimum(distances, n_clusters, n_outliers, np.sum)
        assert auction.kept_bids <= optimum + n_clusters * cost + 1e-9


@pytest.mark.parametrize("n_outliers", [0, 2])
def test_bids_are_feasible(seed, n_outliers):
    """No row is paid more than its cost, and the outliers have the largest bids."""
    distances = cdist(*[draw(seed, n_samples=40)] * 2)
    bids, opened = raise_bids(distances, 1.5, n_outliers)
    paid = np.maximum(bids - distances, 0).sum(axis=1)
    assert (paid <= 1.5 + 1e-9).all()
    np.testing.assert_allclose(paid[opened], 1.5)
    reached = (distances[opened] <= bids + 1e-12).any(axis=0)
    assert np.count_nonzero(~reached) <= n_outliers
    assert (bids[~reached] == bids.max()).all()


@pytest.mark.parametrize("n_outliers", [0, 2])
def test_bids_are_those_of_small_steps_of_time(seed, n_outliers):
    distances = cdist(*[draw(seed, n_samples=7)] * 2)
    bids, opened = raise_bids(distances, 1.0, n_outliers)
    slow, slow_opened = slow_bids(distances, 1.0, n_outliers)
    step = (1.0 + distances.max()) / 3999
    # Each event may come a step late and delay those after it.
    np.testing.assert_allclose(bids, slow, atol=20 * step)
    # Of two rows that are paid at the same time, the second need not open.
    assert set(opened.tolist()) <= set(slow_opened)
    assert opened[0] == slow_opened[0]


def test_auction_by_hand():
    """At cost 2, the middle of three rows in line is paid when all bid 4/3.

    Then the two at the ends have paid 1/3 each and the middle one 4/3.
    """
    positions = np.array([[0.0], [1.0], [2.0], [50.0]])
    distances = cdist(positions, positions)
    bids, opened = raise_bids(distances, 2.0, 1)
    assert opened.tolist() == [1]
    np.testing.assert_allclose(bids, 4 / 3)
    auction = hold_auction(distances, 2.0, 1)
    assert auction.exemplars.tolist() == [1]
    # The bound of the best solution, 2 for the centre and 2 for the distances.
    assert auction.kept_bids == pytest.approx(4.0)


def test_opening_time_counts_what_was_paid():
    distances = np.array([0.0, 1.0, 5.0])
    bidding = np.array([False, True, True])
    # 0.5 was paid by the first row; the second pays the rest at 1 + 1.5.
    time = opening_time(distances, np.array([0.5, np.nan, np.nan]), bidding, 2.0)
    assert time == pytest.approx(2.5)
    # Where nobody bids any more, nobody pays.
    assert opening_time(distances, np.zeros(3), np.zeros(3, bool), 2.0) == np.inf


def test_keep_unshared_keeps_the_first_of_those_with_a_common_payer():
    positions = np.array([[0.0], [1.0], [2.0], [9.0]])
    distances = cdist(positions, positions)
    bids = np.array([0.5, 1.5, 0.5, 0.5])
    assert keep_unshared(distances, bids, np.array([0, 2, 3])).tolist() == [0, 3]
    assert keep_unshared(distances, bids, np.array([2, 0, 3])).tolist() == [2, 3]


def test_jumped_numbers_are_filled_up():
    """Three corners of one triangle: one centre or three, so the second is added."""
    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(0.75)]])
    model = KMedianOutliers(2, n_outliers=0).fit(X)
    assert len(model.exemplars_) == 2
    assert model.objective_ == pytest.approx(1.0)


def test_few_distinct_rows_are_announced():
    X = np.repeat([[0.0], [5.0]], 4, axis=0)
    model = KMedianOutliers(3, n_outliers=0)
    with pytest.warns(ConvergenceWarning, match=r"Only 2 clusters .* n_clusters=3"):
        model.fit(X)
    assert model.labels_.tolist() == [0] * 4 + [1] * 4
    assert model.objective_ == 0


def test_k_center_with_few_distinct_rows_has_fewer_clusters():
    X = np.repeat([[0.0], [5.0]], 4, axis=0)
    model = KCenterOutliers(3, n_outliers=0).fit(X)
    assert model.labels_.tolist() == [0] * 4 + [1] * 4
    assert model.objective_ == 0


@pytest.mark.parametrize("estimator", BOTH)
def test_planted_outliers_are_found(estimator, planted):
    model = estimator(3, n_outliers=6).fit(planted.X)
    np.testing.assert_array_equal(np.flatnonzero(model.labels_ == -1), planted.outliers)
    for label in range(3):
        assert len(np.unique(planted.y[model.labels_ == label])) == 1
    np.testing.assert_array_equal(model.predict(planted.X), model.labels_)
    alone = np.concatenate([model.predict(row[None]) for row in planted.X])
    np.testing.assert_array_equal(alone, model.labels_)


def test_k_median_proves_its_solution_best_on_separate_groups(planted):
    model = KMedianOutliers(3, n_outliers=6).fit(planted.X)
    assert model.lower_bound_ == pytest.approx(model.objective_)


@pytest.mark.parametrize("estimator", BOTH)
def test_exactly_so_many_rows_are_set_aside(estimator, seed):
    X = draw(seed, "grid", 30)
    for n_outliers in (0, 1, 5, 12):
        model = estimator(3, n_outliers=n_outliers).fit(X)
        assert np.count_nonzero(model.labels_ == -1) == n_outliers
        kept = model.labels_ >= 0
        assert model.outlier_scores_[kept].max() <= -model.offset_
        if n_outliers:
            assert model.outlier_scores_[~kept].min() >= -model.offset_


@pytest.mark.parametrize("estimator", BOTH)
def test_all_rows_equal(estimator):
    model = estimator(1, n_outliers=3).fit(np.ones((10, 3)))
    assert model.labels_.tolist() == [-1] * 3 + [0] * 7
    assert model.objective_ == 0


@pytest.mark.parametrize("estimator", BOTH)
def test_one_row(estimator):
    model = estimator(1, n_outliers=0).fit([[3.0, 4.0]])
    assert model.labels_.tolist() == [0]
    assert model.exemplars_.tolist() == [0]


@pytest.mark.parametrize("estimator", BOTH)
def test_kinds_of_input_agree(estimator, planted):
    expected = estimator(3, n_outliers=6).fit(planted.X).labels_
    for X in (csr_matrix(planted.X), planted.X.astype(np.float32)):
        model = estimator(3, n_outliers=6).fit(X)
        np.testing.assert_array_equal(model.labels_, expected)
    wide = np.column_stack([planted.X, np.full(len(planted.X), 7.0)])
    np.testing.assert_array_equal(
        estimator(3, n_outliers=6).fit(wide).labels_, expected
    )


@pytest.mark.parametrize(("estimator", "per_pair"), [(BOTH[0], 16), (BOTH[1], 8)])
def test_memory_is_refused_before_it_is_taken(estimator, per_pair):
    needed = per_pair * 30_000**2
    message = (
        rf"{estimator.__name__} holds .* n_samples=30000 needs {needed} bytes, "
        r"memory_limit='5GB' allows 5000000000\. Fit a subsample"
    )
    with pytest.raises(MemoryError, match=message):
        estimator(2, memory_limit="5GB").fit(np.zeros((30_000, 1)))


@pytest.mark.parametrize("estimator", BOTH)
@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_clusters": 0}, r"'n_clusters' parameter .* must be"),
        ({"n_clusters": 11}, r"n_samples=10 should be >= n_clusters=11"),
        ({"n_clusters": 3, "n_outliers": 7}, r"n_outliers=7 should be smaller than"),
        ({"metric": "precomputed"}, r"metric='precomputed' is not known: X should"),
        ({"memory_limit": "5 apples"}, r"memory_limit='5 apples' should be a number"),
        ({"n_outliers": 1, "contamination": 0.1}, r"either n_outliers or contaminat"),
    ],
)
def test_bad_parameters(estimator, parameters, message):
    with pytest.raises(ValueError, match=message):
        estimator(**parameters).fit(draw(0))
