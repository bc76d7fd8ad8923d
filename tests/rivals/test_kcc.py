"""KCC against K-means on an explicit one-hot matrix, and what it promises."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from corral import COR
from corral._fusion import FusionSettings, Problem
from corral._partition_mixin import make_block
from corral._random import draw_fit_seed, make_streams
from corral._row_blocks import MemoryBlocks
from corral._threads import use_threads
from corral._workplace import LocalWorkplace
from corral.rivals._kcc import KCC
from tests.conftest import plant
from tests.slow_twins import same_clustering

# The distance of a one-hot label b to shares m, of one partition.
DISTANCES = {
    "U_c": lambda b, m: np.sum((b - m) ** 2),
    "U_H": lambda b, m: -np.log(max(m @ b, np.finfo(float).eps)),
    "U_cos": lambda b, m: 1 - (m @ b) / np.linalg.norm(m) if m.any() else 1.0,
    "U_Lp": lambda b, m: 1 - (m @ b / np.sum(m**5) ** 0.2) ** 4 if m.any() else 1.0,
}
MU = {
    "U_c": lambda m: np.sum(m**2),
    "U_H": lambda m: np.sum(m[m > 0] * np.log(m[m > 0])),
    "U_cos": lambda m: np.linalg.norm(m),
    "U_Lp": lambda m: np.sum(m**5) ** 0.2,
}

all_utilities = pytest.mark.parametrize("utility", DISTANCES)
both_forms = pytest.mark.parametrize("normalized", [False, True])


def split_one_hot(labels):
    """Return the one-hot matrix of each partition; rows of a missing label are NaN."""
    blocks = []
    for column in labels.T:
        block = (column[:, None] == np.arange(column.max() + 1)).astype(float)
        block[column == -1] = np.nan
        blocks.append(block)
    return blocks


def literal_distances(utility, blocks, centers, factors):
    """Return the distance of each row to each centre, partition by partition."""
    n, n_centers = len(blocks[0]), len(centers[0])
    total = np.zeros((n, n_centers))
    for block, center, factor in zip(blocks, centers, factors, strict=True):
        for row, b in enumerate(block):
            if not np.isnan(b).any():
                for k, m in enumerate(center):
                    total[row, k] += factor * DISTANCES[utility](b, m)
    return total


def known_mean(block):
    known = block[~np.isnan(block).any(axis=1)]
    return known.mean(axis=0) if len(known) else np.zeros(block.shape[1])


def literal_kmeans(utility, blocks, centers, normalized, max_iter=50):
    """Run K-means on the one-hot rows; None if a cluster loses all its rows."""
    factors = [1.0] * len(blocks)
    if normalized:
        factors = [1 / abs(MU[utility](known_mean(block))) for block in blocks]
    history = []
    while len(history) < max_iter:
        distances = literal_distances(utility, blocks, centers, factors)
        # To the step of the table, so that ties are ties here as well.
        distances = np.round(distances, 8)
        labels = distances.argmin(axis=1)
        history.append(distances.min(axis=1).mean())
        if len(history) > 1 and not history[-1] < history[-2] - 1e-9:
            return labels, np.array(history[:-1])
        if len(set(labels)) < distances.shape[1]:
            return None
        centers = [
            np.array([known_mean(b[labels == k]) for k in range(distances.shape[1])])
            for b in blocks
        ]
    raise AssertionError("did not come to rest")


def draw_start(labels, n_groups, seed):
    """Return the centres that KCC starts from with this seed, one array a partition."""
    model = KCC(n_groups, outlier_cluster=False, partitions="precomputed")
    model._is_precomputed = True
    block = make_block(*model._read(labels, reset=True))
    streams = make_streams(draw_fit_seed(seed))
    settings = FusionSettings(n_groups, 0, "random-codes", 1, 100)
    with use_threads(1) as threads:
        place = LocalWorkplace(MemoryBlocks(block), threads)
        partitioner, _ = model._fit_partitions(place, None, streams)
        codes = partitioner.open(None, block.columns).encode(threads)
        problem = Problem(codes, None, settings, threads, None, None)
        centers = problem.draw_start(streams.fusion.spawn(1)[0])
    slots = centers[:, codes.book.is_label]
    return np.split(slots, np.cumsum(codes.book.n_labels)[:-1], axis=1)


def noisy_partitions(seed, n=60, r=7, n_groups=3, noise=0.1):
    """Return partitions of rows in groups, of 3 to 5 labels, and the groups."""
    rng = np.random.default_rng(seed)
    n_labels = rng.integers(n_groups, 6, size=r)
    groups = rng.permutation(np.arange(n) % n_groups)
    names = [rng.permutation(k)[:n_groups] for k in n_labels]
    labels = np.stack([name[groups] for name in names], axis=1)
    changed = rng.random(labels.shape) < noise
    labels = np.where(changed, rng.integers(0, n_labels, size=labels.shape), labels)
    return compress(labels), groups


def compress(labels):
    """Return labels from 0 up without gaps; -1 stays."""
    columns = [
        np.unique(np.append(column, -1), return_inverse=True)[1][:-1] - 1
        for column in labels.T
    ]
    return np.stack(columns, axis=1)


def fit_labels(labels, n_clusters=3, **parameters):
    parameters = {"random_state": 0, "outlier_cluster": False, **parameters}
    return KCC(n_clusters, partitions="precomputed", **parameters).fit(labels)


@all_utilities
@both_forms
@pytest.mark.parametrize("missing", [0.0, 0.2], ids=["complete", "incomplete"])
def test_equals_kmeans_on_the_one_hot_matrix(utility, normalized, missing, seed):
    labels, _ = noisy_partitions(seed)
    rng = np.random.default_rng(seed + 100)
    gone = rng.random(labels.shape) < missing
    labels = compress(np.where(gone, -1, labels))
    n_compared = 0
    for start in range(3):
        literal = literal_kmeans(
            utility, split_one_hot(labels), draw_start(labels, 3, start), normalized
        )
        if literal is None:
            continue
        model = fit_labels(
            labels, utility=utility, normalized=normalized, n_init=1, random_state=start
        )
        np.testing.assert_array_equal(model.labels_, literal[0])
        np.testing.assert_allclose(
            model.objective_history_[: len(literal[1])], literal[1], atol=1e-6
        )
        n_compared += 1
    assert n_compared > 0


@all_utilities
@both_forms
def test_utility_is_that_of_the_contingency_tables(utility, normalized, seed):
    # All clusters, with that of the outliers, count in the utility.
    labels, _ = noisy_partitions(seed)
    model = fit_labels(
        labels, utility=utility, normalized=normalized, outlier_cluster=True
    )
    clusters, mu = model.labels_, MU[utility]
    total = 0
    for column in labels.T:
        block = (column[:, None] == np.arange(column.max() + 1)).astype(float)
        whole = mu(block.mean(axis=0))
        gain = -whole
        for k in np.unique(clusters):
            inside = block[clusters == k]
            gain += len(inside) / len(block) * mu(inside.mean(axis=0))
        total += gain / abs(whole) if normalized else gain
    assert model.utility_ == pytest.approx(total, abs=1e-6)


def test_category_utility_ends_where_plain_kmeans_rests(seed):
    # Random weights, as rows at the same distance to two centres would be ambiguous.
    labels, _ = noisy_partitions(seed)
    weights = np.random.default_rng(seed).uniform(0.5, 1.5, size=len(labels))
    model = KCC(3, partitions="precomputed", outlier_cluster=False, random_state=seed)
    model.fit(labels, sample_weight=weights)
    rows = np.concatenate(split_one_hot(labels), axis=1)
    kmeans = KMeans(3, init=model.partition_centers_, n_init=1, tol=0)
    kmeans.fit(rows, sample_weight=weights)
    np.testing.assert_array_equal(model.labels_, kmeans.labels_)
    np.testing.assert_allclose(
        model.partition_centers_, kmeans.cluster_centers_, atol=1e-12
    )
    assert model.objective_ == pytest.approx(kmeans.inertia_ / weights.sum())


@all_utilities
@both_forms
@pytest.mark.parametrize("init", ["random-codes", "random-partition", "k-means++"])
def test_objective_never_rises(utility, normalized, init, partitions, seed):
    labels = np.where(np.arange(partitions.size) % 11 == 0, -1, partitions.ravel())
    labels = labels.reshape(partitions.shape)
    model = fit_labels(
        labels,
        4,
        utility=utility,
        normalized=normalized,
        init=init,
        n_init=2,
        random_state=seed,
    )
    assert (np.diff(model.objective_history_) <= 0).all()
    assert model.objective_ == model.objective_history_[-1]
    assert model.n_iter_ == len(model.objective_history_)


def test_more_restarts_are_never_worse(partitions):
    objectives = [fit_labels(partitions, 5, n_init=n).objective_ for n in (1, 3, 10)]
    assert objectives == sorted(objectives, reverse=True)
    assert objectives[0] > objectives[-1]


@all_utilities
@both_forms
def test_names_of_labels_and_order_of_partitions_change_nothing(
    utility, normalized, seed
):
    labels, _ = noisy_partitions(seed, noise=0.05)
    rng = np.random.default_rng(seed)
    renamed = np.stack([rng.permutation(9)[column] for column in labels.T], axis=1)
    renamed = renamed[:, rng.permutation(labels.shape[1])]
    parameters = {"utility": utility, "normalized": normalized, "n_init": 20}
    one, other = fit_labels(labels, **parameters), fit_labels(renamed, **parameters)
    assert same_clustering(one.labels_, other.labels_)
    assert one.objective_ == pytest.approx(other.objective_, abs=1e-6)
    np.testing.assert_allclose(one.outlier_scores_, other.outlier_scores_, atol=1e-6)


@all_utilities
@pytest.mark.parametrize("outlier_cluster", [False, True])
def test_weights_are_repetitions(utility, outlier_cluster, seed):
    labels, _ = noisy_partitions(seed)
    weights = np.random.default_rng(seed).integers(0, 4, size=len(labels))
    parameters = {"utility": utility, "outlier_cluster": outlier_cluster}
    # A label that only rows without weight have would be unknown to the repetition.
    for column in labels.T:
        weights[np.unique(column, return_index=True)[1]] += 1
    weighted = KCC(3, partitions="precomputed", random_state=0, **parameters)
    weighted.fit(labels, sample_weight=weights)
    repeated = fit_labels(np.repeat(labels, weights, axis=0), **parameters)
    np.testing.assert_array_equal(
        np.repeat(weighted.labels_, weights), repeated.labels_
    )
    assert weighted.objective_ == pytest.approx(repeated.objective_)
    assert weighted.utility_ == pytest.approx(repeated.utility_)


@all_utilities
@both_forms
def test_finds_planted_clusters(utility, normalized, seed):
    truth = plant(seed, n_outliers=0)
    model = KCC(
        3,
        utility=utility,
        normalized=normalized,
        outlier_cluster=False,
        n_partitions=30,
        # Of ten starts, all miss them in four draws of a hundred.
        n_init=30,
        random_state=seed,
    ).fit(truth.X)
    assert same_clustering(model.labels_, truth.y)
    assert model.n_outliers_ == 0
    assert model.offset_ == -np.inf
    assert not hasattr(model, "outlier_center_")


@all_utilities
def test_the_smallest_cluster_is_that_of_the_outliers(utility):
    labels, groups = noisy_partitions(0, n_groups=4, noise=0.02)
    order = np.argsort(groups != 3, kind="stable")[10:]
    labels, groups = labels[order], groups[order]
    model = fit_labels(labels, 3, utility=utility, outlier_cluster=True)
    assert np.count_nonzero(groups == 3) == 5
    np.testing.assert_array_equal(model.labels_ == -1, groups == 3)
    assert set(model.labels_) == {-1, 0, 1, 2}
    assert model.n_outliers_ == 5


def test_by_hand():
    # Rows AABBC in one partition: three codes, three clusters, and C is the smallest.
    # The cost of a code in its own cluster is 0, and 2 in others.
    labels = np.array([[0], [0], [1], [1], [2]])
    model = fit_labels(labels, 2, outlier_cluster=True)
    assert same_clustering(model.labels_, [0, 0, 1, 1, -1])
    np.testing.assert_array_equal(model.outlier_scores_, [-2, -2, -2, -2, 2])
    np.testing.assert_array_equal(model.outlier_center_, [0, 0, 1])
    assert model.objective_ == 0
    # Sum of the squared shares in clusters, which is 1, less that in all rows.
    assert model.utility_ == pytest.approx(1 - (4 + 4 + 1) / 25)
    # A label that is new costs 2 everywhere, and a tie is no outlier.
    assert model.predict([[7]]) == [0]
    assert model.score_samples([[7]]) == [0]


def test_of_equal_clusters_the_first_is_that_of_the_outliers():
    labels = np.array([[0], [0], [1], [1]])
    model = fit_labels(labels, 1, outlier_cluster=True)
    plain = fit_labels(labels, 2)
    np.testing.assert_array_equal(model.labels_ == -1, plain.labels_ == 0)


@pytest.mark.parametrize("outlier_cluster", [False, True])
@pytest.mark.parametrize("kind", [np.array, sparse.csr_array], ids=["dense", "sparse"])
def test_rows_of_the_fit_get_their_answers_again(outlier_cluster, kind, seed):
    X = kind(plant(seed).X)
    model = KCC(
        3, n_partitions=20, outlier_cluster=outlier_cluster, random_state=seed
    ).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(model.score_samples(X), -model.outlier_scores_)
    is_outlier = model.decision_function(X) < 0
    np.testing.assert_array_equal(is_outlier, model.labels_ == -1)
    inside = model.labels_ >= 0
    np.testing.assert_array_equal(model.nearest_labels_[inside], model.labels_[inside])
    assert model.nearest_labels_.min() >= 0


def test_cor_makes_the_same_partitions(planted):
    kcc = KCC(3, n_partitions=15, random_state=5).fit(planted.X)
    cor = COR(3, n_partitions=15, k_range=(2, 6), random_state=5).fit(planted.X)
    np.testing.assert_array_equal(kcc.n_labels_, cor.n_labels_)
    assert kcc.n_codes_ == cor.n_codes_
    np.testing.assert_array_equal(
        kcc._partitioner.runs.n_labels, cor._partitioner.runs.n_labels
    )


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_number_of_threads_changes_nothing(dtype, planted):
    X = planted.X.astype(dtype)
    one, two = (
        KCC(3, n_partitions=10, n_jobs=n, random_state=0).fit(X) for n in (1, 2)
    )
    np.testing.assert_array_equal(one.labels_, two.labels_)
    np.testing.assert_array_equal(one.outlier_scores_, two.outlier_scores_)


def test_partitions_of_other_clusterers_and_categories(planted):
    # The category tells the groups apart as well as the clusterer does.
    X = np.column_stack([planted.X, planted.y])
    model = KCC(
        3,
        outlier_cluster=False,
        partitions=[KMeans(4, n_init=1), "kmeans"],
        n_partitions=5,
        categorical_features=[4],
        random_state=0,
    ).fit(X)
    assert model.n_partitions_ == 7
    np.testing.assert_array_equal(model.predict(X), model.labels_)


def test_a_constant_column_changes_nothing(planted):
    more = np.column_stack([planted.X, np.full(len(planted.X), 3.0)])
    one = KCC(3, n_partitions=10, random_state=0).fit(planted.X)
    other = KCC(3, n_partitions=10, random_state=0).fit(more)
    np.testing.assert_array_equal(one.labels_, other.labels_)


def test_an_emptied_cluster_is_refilled(seed):
    # More clusters than groups, all started near the mean: some lose their rows.
    labels, _ = noisy_partitions(seed)
    model = fit_labels(labels, 6, init="random-partition", n_init=1, random_state=seed)
    assert len(np.unique(model.labels_)) == 6


@pytest.mark.parametrize("random_state", range(4))
def test_missing_labels_can_leave_clusters_without_rows(random_state):
    # Three codes that agree wherever both have a label: one cluster holds them all.
    labels = np.array([[0, 0], [0, -1], [-1, 0]])
    with pytest.warns(ConvergenceWarning, match="Only [12] of 3 clusters, with"):
        model = fit_labels(
            labels, 2, outlier_cluster=True, n_init=1, random_state=random_state
        )
    assert model.n_outliers_ == 0
    assert model.objective_ == 0


def test_stops_at_max_iter(partitions):
    with pytest.warns(ConvergenceWarning, match="stopped at max_iter=1 "):
        fit_labels(partitions, 3, max_iter=1)


def test_as_many_clusters_as_rows():
    labels = np.arange(4)[:, None]
    assert fit_labels(labels, 4).objective_ == 0
    assert fit_labels(labels, 3, outlier_cluster=True).n_outliers_ == 1


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"utility": "U_x"}, "The 'utility' parameter of KCC must be a str among"),
        ({"p": 1}, r"The 'p' parameter of KCC must be a float in the range \(1"),
        ({"n_clusters": 0}, "The 'n_clusters' parameter of KCC must be an int"),
        ({"outlier_cluster": 2}, "The 'outlier_cluster' parameter of KCC"),
        ({"k_range": (3, 2)}, r"k_range=\(3, 2\) should be two whole numbers"),
    ],
)
def test_bad_parameters(parameters, message, planted):
    with pytest.raises(ValueError, match=message):
        KCC(**parameters).fit(planted.X)


def test_too_few_rows_or_codes():
    with pytest.raises(
        ValueError, match=r"n_samples=3 should be at least n_clusters=3 \+ 1 for the"
    ):
        KCC(3).fit(np.eye(3))
    with pytest.raises(
        ValueError,
        match=r"The number of distinct codes, 1, should be at least n_clusters=2\. ",
    ):
        KCC(2, outlier_cluster=False, n_partitions=4).fit(np.ones((10, 2)))


def test_wrong_number_of_partitions(partitions):
    model = fit_labels(partitions)
    with pytest.raises(ValueError, match="X has 6 partitions but KCC was fitted on 7"):
        model.predict(partitions[:, :6])


def test_rows_without_any_label_are_refused(partitions):
    model = fit_labels(partitions)
    with pytest.raises(ValueError, match="1 rows have no label in any partition"):
        model.predict(np.full((1, 7), -1))


def test_a_second_fit_forgets_the_first(planted):
    model = KCC(3, n_partitions=5, random_state=0).fit(planted.X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.set_params(outlier_cluster=False).fit(planted.X[:, :2])
    assert model.n_features_in_ == 2
    assert model.offset_ == -np.inf
    assert not hasattr(model, "outlier_center_")
