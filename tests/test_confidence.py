"""How sure labels are, against loops over resamples and rows."""

from types import SimpleNamespace

import numpy as np
import pytest

from corral import COR, _confidence
from corral._confidence import (
    compare_labels,
    draw_again,
    measure_stability,
    set_aside_again,
)
from corral._divergences import CodeLength
from corral._encoded import EncodedRows
from corral._fusion import FusionSettings, fuse_codes
from corral._position import DISTANCE_STEP
from corral._states import MemoryStates, State
from corral._threads import use_threads
from tests.conftest import plant
from tests.test_codes import encode_matrix

SURE = ("outlier_confidence_", "label_confidence_", "cluster_stability_")


def slow_costs(row, partitions, table):
    """Add up what the labels of a row cost in each cluster, in these partitions."""
    costs = np.zeros(table.shape[1])
    for partition in partitions:
        costs += table[row[partition]]
    return costs


def slow_agreement(slots, nearest, table, resamples):
    """Label each row again in each resample; return how much stays.

    Returns
    -------
    shares : of the resamples, per row
    stability : mean Jaccard index, per cluster
    """
    n_clusters = table.shape[1]
    same, jaccard = np.zeros(len(slots)), np.zeros(n_clusters)
    for partitions in resamples:
        costs = np.array([slow_costs(row, partitions, table) for row in slots])
        own = costs[np.arange(len(slots)), nearest]
        again = np.where(own <= costs.min(axis=1), nearest, costs.argmin(axis=1))
        same += again == nearest
        for k in range(n_clusters):
            before, after = set(*np.where(nearest == k)), set(*np.where(again == k))
            either = before | after
            jaccard[k] += len(before & after) / len(either) if either else 1
    return same / len(resamples), jaccard / len(resamples)


def slow_outliers(slots, table, rarity, distances, n_outliers, resamples):
    """Set the costliest aside in each resample; return how often each row is."""
    n_samples, n_partitions = slots.shape
    outlier = np.zeros(n_samples)
    for partitions in resamples if n_outliers else []:
        scores = []
        for row, distance in zip(slots, distances, strict=True):
            cost = slow_costs(row, partitions, table).min()
            rare = sum(rarity[row[partition]] for partition in partitions)
            scores.append(cost + rare + len(partitions) * distance / n_partitions)
        cut = sorted(scores)[-n_outliers]
        n_above, n_tied = sum(x > cut for x in scores), scores.count(cut)
        # Rows that tie share the places that are left.
        share = (n_outliers - n_above) / n_tied
        outlier += [1 if x > cut else share if x == cut else 0 for x in scores]
    return outlier / len(resamples)


def draw(sizes, n_partitions, rng):
    """Draw partitions for 20 resamples, so many in turn."""
    return [
        rng.integers(n_partitions, size=sizes[number % len(sizes)])
        for number in range(20)
    ]


def gather_all(codes, distances, table, threads):
    """Return all rows as candidates."""
    states = MemoryStates([State(codes, distances)], threads)
    # All that a gathering of rows asks of a partitioner is its book.
    partitioner = SimpleNamespace(book=codes.book)
    encoded = EncodedRows(partitioner, states, table[:, 0], has_numbers=False)
    return encoded.gather_candidates(table, len(distances))


def fuse(codes, n_clusters, n_outliers, position, threads):
    """Return a fusion of codes and what their labels cost."""
    divergence = CodeLength(0.01)
    fusion = fuse_codes(
        codes,
        divergence,
        FusionSettings(n_clusters, n_outliers, "random-codes", 5, 50),
        np.random.default_rng(0),
        threads,
        cost_offsets=position,
    )
    table = divergence.cost_table(fusion.centers, codes.book, fusion.shares)
    return fusion, table


@pytest.mark.parametrize("n_outliers", [0, 1, 9])
@pytest.mark.parametrize("has_position", [False, True])
@pytest.mark.parametrize("block_codes", [2**12, 1])
def test_shares_are_those_of_the_slow_twin(
    partitions, monkeypatch, n_outliers, has_position, block_codes, seed
):
    monkeypatch.setattr(_confidence, "_BLOCK_CODES", block_codes)
    rng = np.random.default_rng(seed)
    codes = encode_matrix(partitions)
    rarity, position = np.zeros(codes.book.n_slots), None
    distances = np.zeros(len(partitions))
    slots = partitions + codes.book.offsets
    if has_position:
        # Whole multiples of a step, as all costs of labels are.
        rarity = rng.integers(1024, size=codes.book.n_slots) / 1024
        distances = rng.exponential(size=len(partitions))
        distances = np.rint(distances / DISTANCE_STEP) * DISTANCE_STEP
        position = rarity[slots].sum(axis=1) + distances
    with use_threads(2) as threads:
        fusion, table = fuse(codes, 3, n_outliers, position, threads)
        for_labels, for_outliers = draw_again(partitions.shape[1], 20, rng.spawn(1)[0])
        code_shares, n_again = compare_labels(
            codes, fusion.code_labels, table, for_labels, threads
        )
        found = np.zeros(len(partitions))
        if n_outliers:
            whole = table + rarity[:, None]
            candidates = gather_all(codes, distances, whole, threads)
            np.testing.assert_array_equal(candidates.rows, np.arange(len(partitions)))
            found = set_aside_again(
                candidates, codes.book, whole, n_outliers, for_outliers, threads
            )
    again = np.random.default_rng(seed).spawn(1)[0]
    n_partitions = partitions.shape[1]
    resamples = draw(_confidence._LABEL_DRAWS, n_partitions, again)
    nearest = fusion.code_labels[codes.inverse]
    shares, stability = slow_agreement(slots, nearest, table, resamples)
    np.testing.assert_allclose(code_shares[codes.inverse], shares)
    n_nearest = np.bincount(nearest, minlength=3)
    np.testing.assert_allclose(measure_stability(n_nearest, n_again), stability)
    resamples = draw(_confidence._OUTLIER_DRAWS, n_partitions, again)
    outlier = slow_outliers(slots, table, rarity, distances, n_outliers, resamples)
    np.testing.assert_allclose(found, outlier)


def test_only_rows_near_the_cut_are_looked_at_again(monkeypatch):
    # Which changes nothing, if they are enough.
    X = plant(0).X
    fit = COR(3, n_outliers=6, n_partitions=30, random_state=0)
    expected = fit.fit(X).outlier_confidence_
    monkeypatch.setattr(_confidence, "_MORE_CANDIDATES", 20)
    np.testing.assert_array_equal(fit.fit(X).outlier_confidence_, expected)


@pytest.fixture(scope="module")
def far():
    """Return three far groups, six rows far from them, and the fit of these."""
    planted = plant(0)
    return planted, COR(3, n_outliers=6, random_state=0).fit(planted.X)


def test_shares_have_a_place_for_each_row_or_cluster(far):
    planted, model = far
    shapes = [getattr(model, name).shape for name in SURE]
    assert shapes == [(len(planted.X),), (len(planted.X),), (3,)]
    for name in SURE:
        assert getattr(model, name).dtype == np.float64
        assert ((getattr(model, name) >= 0) & (getattr(model, name) <= 1)).all()


def test_shares_are_whole_numbers_of_resamples(far):
    planted, _ = far
    model = COR(3, n_outliers=6, n_resamples=7, random_state=0).fit(planted.X)
    for name in SURE[:2]:
        times = 7 * getattr(model, name)
        np.testing.assert_allclose(times, np.rint(times))


def test_as_many_rows_are_set_aside_in_the_mean(far):
    # No two rows tie here, so that each resample sets aside six.
    planted, model = far
    assert model.outlier_confidence_.sum() == pytest.approx(6)
    more = COR(3, n_outliers=40, random_state=0).fit(planted.X)
    assert more.outlier_confidence_.sum() == pytest.approx(40, rel=0.02)


def test_far_rows_are_surely_outliers_and_far_groups_surely_clusters(far):
    planted, model = far
    assert model.outlier_confidence_[planted.outliers].min() > 0.95
    assert np.delete(model.outlier_confidence_, planted.outliers).max() < 0.1
    # A single coarse partition may put two groups into one cell.
    assert np.delete(model.label_confidence_, planted.outliers).min() > 0.9
    assert model.cluster_stability_.min() > 0.9


def test_rows_between_two_touching_groups_are_unsure(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(600, 2))
    X[300:, 0] += 4
    model = COR(2, n_outliers=0, random_state=seed).fit(X)
    between = np.abs(X[:, 0] - 2) < 0.3
    middle = np.abs(X[:, 0] - 2) > 1.5
    doubt = 1 - model.label_confidence_
    assert doubt[between].mean() > 100 * doubt[middle].mean()
    assert doubt[between].max() > 0.25
    assert (doubt[middle] == 0).mean() > 0.97


def test_clusters_that_were_cut_out_of_a_crowd_are_unstable(seed):
    rng = np.random.default_rng(seed)
    crowd = rng.normal(size=(300, 2))
    X = np.concatenate([crowd, rng.normal(size=(100, 2)) + 40])
    model = COR(4, n_outliers=0, random_state=seed).fit(X)
    whole = model.labels_[-1]
    assert (model.labels_[300:] == whole).all()
    assert model.cluster_stability_[whole] > 0.97
    pieces = np.delete(model.cluster_stability_, whole)
    assert pieces.mean() < 0.9
    assert pieces.max() < 0.95


def test_without_outliers_none_is_sure_to_be_one(far):
    model = COR(3, n_outliers=0, random_state=0).fit(far[0].X)
    assert not model.outlier_confidence_.any()
    assert model.label_confidence_.min() > 0


def test_one_cluster_is_sure():
    model = COR(1, n_outliers=5, random_state=0).fit(plant(0).X)
    assert (model.label_confidence_ == 1).all()
    assert model.cluster_stability_.tolist() == [1.0]


def test_no_resamples_no_shares(far):
    planted, _ = far
    model = COR(3, n_outliers=6, n_resamples=0, random_state=0).fit(planted.X)
    assert not any(hasattr(model, name) for name in SURE)
    model.set_params(n_resamples=5).fit(planted.X)
    assert all(hasattr(model, name) for name in SURE)
    # Those of another fit do not stay.
    model.set_params(n_resamples=0).fit(planted.X)
    assert not any(hasattr(model, name) for name in SURE)


def test_shares_change_no_label(far):
    planted, model = far
    other = COR(3, n_outliers=6, n_resamples=0, random_state=0).fit(planted.X)
    np.testing.assert_array_equal(model.labels_, other.labels_)
    np.testing.assert_array_equal(model.outlier_scores_, other.outlier_scores_)


def test_same_seed_same_shares_for_any_number_of_threads(far):
    planted, model = far
    for n_jobs in (1, 2):
        again = COR(3, n_outliers=6, n_jobs=n_jobs, random_state=0).fit(planted.X)
        for name in SURE:
            np.testing.assert_array_equal(getattr(again, name), getattr(model, name))


def test_order_of_rows_does_not_matter(partitions):
    # Partitions are given, as K-means runs start from other rows in another order. And
    # rows with the same labels have the same shares, wherever they stand.
    order = np.random.default_rng(0).permutation(len(partitions))
    settings = {"n_outliers": 0, "n_resamples": 30, "random_state": 0}
    here = COR(3, **settings).fit_partitions(partitions)
    there = COR(3, **settings).fit_partitions(partitions[order])
    np.testing.assert_array_equal(here.labels_[order], there.labels_)
    np.testing.assert_array_equal(
        here.label_confidence_[order], there.label_confidence_
    )
    np.testing.assert_allclose(here.cluster_stability_, there.cluster_stability_)


def test_equal_rows_are_equally_sure(far):
    # Also where they tie for the last place among the outliers.
    planted, _ = far
    X = np.concatenate([planted.X, np.repeat(planted.X[planted.outliers[:1]], 3, 0)])
    model = COR(3, n_outliers=2, random_state=0).fit(X)
    same = [planted.outliers[0], *range(len(planted.X), len(X))]
    assert len(set(model.outlier_confidence_[same])) == 1
    assert len(set(model.label_confidence_[same])) == 1


@pytest.mark.parametrize("n_samples", [1, 2, 3, 6])
def test_few_or_equal_rows_have_shares(n_samples):
    for X in (np.ones((n_samples, 2)), np.arange(2.0 * n_samples).reshape(-1, 2)):
        model = COR(1, n_outliers=n_samples // 3, random_state=0).fit(X)
        assert (model.label_confidence_ == 1).all()
        assert np.isfinite(model.outlier_confidence_).all()


def test_rows_without_any_label_have_shares():
    X = np.repeat([[0.0, 0.0], [9.0, 9.0]], 15, axis=0)
    X += np.random.default_rng(0).normal(size=X.shape)
    X[3] = np.nan
    with pytest.warns(UserWarning, match="no label in any partition"):
        model = COR(2, n_outliers=1, random_state=0).fit(X)
    for name in SURE:
        assert np.isfinite(getattr(model, name)).all()


def test_rows_without_a_label_are_as_sure_in_any_cluster():
    # Three far blobs; a cell is missing in every third row.
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 60)
    X = 30 * np.eye(3)[y] + rng.normal(size=(180, 3))
    X[::3, 0] = np.nan
    model = COR(3, n_outliers=0, random_state=0).fit(X)
    gone = np.isnan(X[:, 0])
    means = [model.label_confidence_[gone & (y == k)].mean() for k in range(3)]
    assert min(means) > 0.85
    assert model.cluster_stability_.min() > 0.85


def test_rows_that_tie_share_the_places_of_outliers():
    model = COR(1, n_outliers=3, random_state=0).fit(np.ones((50, 2)))
    np.testing.assert_allclose(model.outlier_confidence_, 3 / 50)
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(k, 0.1, (40, 2)) for k in (0, 9)])
    paper = COR.paper(2, n_outliers=5, random_state=0).fit(X)
    assert paper.outlier_confidence_.sum() == pytest.approx(5)
