"""K-means--: against a literal version, and what must not change its result."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from corral._outliers import costliest
from corral._threads import use_threads
from corral._tiles import measure_apart
from corral.rivals import KMeansPlusOne, NEOKMeans, _sweeps
from corral.rivals._descent import find_best_run
from corral.rivals._kmeans_minus_minus import KMeansMinusMinus


def unit(rows):
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(norms > 0, norms, 1)


def costs_of(X, centers, metric):
    """Return d(x, c) for each row and centre."""
    if metric == "cosine":
        return 1 - unit(X) @ centers.T
    return ((X[:, None, :] - centers[None, :, :]) ** 2).sum(axis=2)


def slow_kmeans_minus_minus(X, centers, n_outliers, metric="euclidean", weights=None):
    """Algorithm 1 of Chawla and Gionis, line by line."""
    weights = np.ones(len(X)) if weights is None else weights
    points = unit(X) if metric == "cosine" else X
    centers = unit(centers) if metric == "cosine" else centers.copy()
    objectives = []
    while True:
        costs = costs_of(X, centers, metric)
        labels = costs.argmin(axis=1)
        # Re-order the points by distance, farthest first; the first of equal ones.
        order = np.argsort(-costs.min(axis=1).round(10), kind="stable")
        outliers, kept = order[:n_outliers], np.sort(order[n_outliers:])
        objectives.append((weights * costs.min(axis=1))[kept].sum())
        old = centers.copy()
        for k in np.setdiff1d(range(len(centers)), labels[kept]):
            # Ours: an empty cluster gets the farthest row that is not alone in its own.
            alone = np.bincount(labels[kept], minlength=len(centers)) == 1
            labels[next(i for i in order[n_outliers:] if not alone[labels[i]])] = k
        for k in range(len(centers)):
            rows = kept[labels[kept] == k]
            mean = np.average(points[rows], axis=0, weights=weights[rows])
            centers[k] = unit(mean[None])[0] if metric == "cosine" else mean
        if np.allclose(old, centers, rtol=1e-13, atol=1e-13):
            labels[outliers] = -1
            return labels, centers, np.array(objectives)


def noise_around_blobs(seed, n_samples=150, n_features=5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    X += 3 * rng.normal(size=(4, n_features))[rng.integers(4, size=n_samples)]
    return X, X[rng.choice(n_samples, 4, replace=False)]


def from_starts(X, starts, **parameters):
    parameters = {"tol": 0.0, "n_outliers": 7, **parameters}
    return KMeansMinusMinus(len(starts), init=starts, **parameters).fit(X)


def test_by_hand():
    # With starts 0 and 10 the row at 100 is farthest from its centre and is set aside;
    # the centres move to 0.5 and 10.5, where the four others cost 1/4 each.
    X = np.array([[0.0], [1.0], [10.0], [11.0], [100.0]])
    model = from_starts(X, np.array([[0.0], [10.0]]), n_outliers=1)
    np.testing.assert_array_equal(model.labels_, [0, 0, 1, 1, -1])
    np.testing.assert_array_equal(model.nearest_labels_, [0, 0, 1, 1, 1])
    np.testing.assert_allclose(model.cluster_centers_, [[0.5], [10.5]])
    np.testing.assert_allclose(model.outlier_scores_, [0.25] * 4 + [89.5**2])
    assert model.objective_ == pytest.approx(1.0)
    assert model.offset_ == pytest.approx(-0.25)
    np.testing.assert_array_equal(model.predict([[10.7], [12.0]]), [1, -1])


@pytest.mark.parametrize("n_outliers", [0, 1, 7, 40])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_matrix])
def test_is_the_algorithm_of_the_paper(seed, metric, n_outliers, as_stored):
    X, starts = noise_around_blobs(seed)
    labels, centers, objectives = slow_kmeans_minus_minus(X, starts, n_outliers, metric)
    model = from_starts(as_stored(X), starts, n_outliers=n_outliers, metric=metric)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(model.cluster_centers_, centers, atol=1e-12)
    np.testing.assert_allclose(
        model.outlier_scores_, costs_of(X, centers, metric).min(axis=1), atol=1e-12
    )
    # The first objective of the slow version is that of the starts.
    n = min(model.n_iter_, len(objectives) - 1)
    np.testing.assert_allclose(model.objective_history_[:n], objectives[1 : n + 1])
    assert model.objective_ == pytest.approx(objectives[-1])


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_objective_never_rises(seed, metric, is_weighted):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 3))
    weights = rng.exponential(size=200) ** 3 if is_weighted else None
    model = KMeansMinusMinus(
        6, n_outliers=20, metric=metric, n_init=3, random_state=seed
    ).fit(X, sample_weight=weights)
    assert (np.diff(model.objective_history_) <= 0).all()
    assert len(model.objective_history_) == model.n_iter_
    kept = model.labels_ >= 0
    assert np.count_nonzero(~kept) == model.n_outliers_ == 20
    weights = np.ones(200) if weights is None else weights
    total = (weights * model.outlier_scores_)[kept].sum()
    assert model.objective_ == pytest.approx(total)


@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_matrix])
def test_finds_planted_outliers(planted, as_stored):
    X = as_stored(planted.X)
    model = KMeansMinusMinus(3, n_outliers=6, random_state=0).fit(X)
    np.testing.assert_array_equal(np.flatnonzero(model.labels_ == -1), planted.outliers)
    for label in range(3):
        assert len(np.unique(planted.y[model.labels_ == label])) == 1
    np.testing.assert_array_equal(model.predict(X), model.labels_)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_array])
def test_threads_and_blocks_change_nothing(seed, metric, as_stored, monkeypatch):
    rng = np.random.default_rng(seed)
    # Whole numbers: many rows lie on borders and are equally far from their centres.
    X = as_stored(rng.integers(-3, 4, size=(1000, 4)).astype(np.float32))
    starts = X[rng.choice(1000, 5, replace=False)]
    starts = starts.toarray() if sparse.issparse(starts) else starts
    one = from_starts(X, starts, metric=metric, n_jobs=1, n_outliers=90)
    monkeypatch.setattr(_sweeps, "_MAX_BLOCK_ROWS", 37)
    monkeypatch.setattr(_sweeps, "_PIECE_VALUES", 1)
    monkeypatch.setattr(_sweeps, "_MIN_SHARED_VALUES", 0)
    many = from_starts(X, starts, metric=metric, n_jobs=3, n_outliers=90)
    np.testing.assert_array_equal(one.labels_, many.labels_)
    np.testing.assert_array_equal(one.nearest_labels_, many.nearest_labels_)
    np.testing.assert_array_equal(one.cluster_centers_, many.cluster_centers_)
    np.testing.assert_array_equal(one.outlier_scores_, many.outlier_scores_)
    np.testing.assert_array_equal(one.objective_history_, many.objective_history_)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_float32_has_the_labels_of_float64(seed, metric):
    X, starts = (each.astype(np.float32) for each in noise_around_blobs(seed))
    narrow = from_starts(X, starts, metric=metric)
    wide = from_starts(X.astype(np.float64), starts, metric=metric)
    assert narrow.cluster_centers_.dtype == np.float32
    np.testing.assert_array_equal(narrow.labels_, wide.labels_)
    np.testing.assert_allclose(
        narrow.cluster_centers_, wide.cluster_centers_, atol=1e-6
    )
    np.testing.assert_allclose(
        narrow.outlier_scores_, wide.outlier_scores_, rtol=1e-5, atol=1e-6
    )


def test_large_offset_does_not_eat_the_digits(seed):
    X, starts = noise_around_blobs(seed)
    offset = 2.0**16
    X, starts = ((each + offset).astype(np.float32) for each in (X, starts))
    labels, centers, _ = slow_kmeans_minus_minus(
        X.astype(np.float64) - offset, starts.astype(np.float64) - offset, 7
    )
    model = from_starts(X, starts)
    np.testing.assert_array_equal(model.labels_, labels)
    np.testing.assert_allclose(
        model.outlier_scores_,
        costs_of(X - offset, centers, "euclidean").min(axis=1),
        rtol=1e-4,
    )


@pytest.mark.parametrize("apart", [1e5, 1e9])
def test_costs_keep_their_digits_in_groups_that_are_far_apart(apart, seed):
    # Products of sparse rows so far from the origin have no digit left for them.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(90, 3)) + apart * np.repeat([0, 1, 2], 30)[:, None]
    for rows in (X, sparse.csr_array(X)):
        model = from_starts(rows, X[::30], n_outliers=5)
        squares = costs_of(X, model.cluster_centers_, "euclidean").min(axis=1)
        np.testing.assert_allclose(model.outlier_scores_, squares, rtol=1e-5)
        aside = np.flatnonzero(model.labels_ == -1)
        assert set(aside) == set(np.argsort(squares)[-5:])


@pytest.mark.parametrize("make", [KMeansMinusMinus, NEOKMeans, KMeansPlusOne])
@pytest.mark.parametrize(("offset", "dtype"), [(1e30, np.float32), (1e200, np.float64)])
def test_huge_constant_column_tells_nothing_sparse_as_dense(make, offset, dtype, seed):
    # Its size was taken for that of all distances, beside which the others vanish.
    X = np.random.default_rng(seed).normal(size=(60, 3))
    X[30:] += 8
    X[:, 1] = offset
    rows = X.astype(dtype)
    dense, found = (
        make(2, random_state=0).fit(kind(rows))
        for kind in (np.asarray, sparse.csr_array)
    )
    np.testing.assert_array_equal(found.labels_, dense.labels_)
    scores = found.outlier_scores_, dense.outlier_scores_
    np.testing.assert_allclose(*scores, rtol=1e-4, atol=1e-4 * scores[1].max())
    assert len(np.unique(found.nearest_labels_)) == 2
    assert found.cluster_centers_[:, 1] == pytest.approx([offset] * 2)


@pytest.mark.parametrize("n_features", [3, 60])
def test_differences_of_sparse_rows_are_those_of_dense_ones(n_features, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(50, n_features)) * (rng.random((50, n_features)) < 0.3)
    centers = rng.normal(size=(4, n_features)) * (rng.random((4, n_features)) < 0.5)
    chosen, labels = rng.choice(50, 20, replace=False), rng.integers(4, size=50)
    expected = ((rows - centers[labels]) ** 2).sum(axis=1)[chosen]
    points = sparse.csr_array(rows)
    for stored in (centers, sparse.csr_array(centers)):
        found = measure_apart(points, stored, chosen, labels)
        np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(measure_apart(rows, centers, chosen, labels), expected)


def test_one_far_row_does_not_wipe_out_the_others(seed):
    X, starts = noise_around_blobs(seed)
    far = np.concatenate([X, np.full((1, X.shape[1]), 1e12)]).astype(np.float32)
    model = from_starts(far, starts.astype(np.float32), n_outliers=1)
    near = from_starts(X.astype(np.float32), starts.astype(np.float32), n_outliers=0)
    np.testing.assert_array_equal(model.labels_, [*near.labels_, -1])
    np.testing.assert_allclose(model.cluster_centers_, near.cluster_centers_, atol=1e-5)


def test_tiny_column_beside_a_usual_one(seed):
    X, starts = (each.astype(np.float32) for each in noise_around_blobs(seed))
    X[:, 2] *= np.float32(1e-36)
    starts[:, 2] *= np.float32(1e-36)
    model = from_starts(X, starts)
    for label in range(4):
        mean = X[model.labels_ == label].mean(axis=0, dtype=np.float64)
        np.testing.assert_allclose(model.cluster_centers_[label], mean, rtol=1e-4)


def test_rows_without_weight_do_not_fill_a_cluster():
    X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [40.0], [41.0]])
    starts = np.array([[1.0], [10.0], [1e9]])
    model = KMeansMinusMinus(3, n_outliers=0, init=starts, tol=0).fit(
        X, sample_weight=[1, 1, 1, 1, 1, 0, 0]
    )
    # Rows 5 and 6 are far but weigh nothing: another row fills the third cluster.
    assert len(np.unique(model.labels_[:5])) == 3
    np.testing.assert_allclose(model.cluster_centers_, [[1.5], [10.5], [0.0]])


def test_weights_are_repeated_rows_if_all_are_kept(seed):
    X, starts = noise_around_blobs(seed)
    weights = np.random.default_rng(seed).integers(0, 4, len(X))
    weighted = KMeansMinusMinus(4, n_outliers=0, init=starts, tol=0).fit(
        X, sample_weight=weights
    )
    repeated = from_starts(np.repeat(X, weights, axis=0), starts, n_outliers=0)
    np.testing.assert_array_equal(
        np.repeat(weighted.labels_, weights), repeated.labels_
    )
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_)
    assert weighted.objective_ == pytest.approx(repeated.objective_)


def test_weights_are_repeated_rows_beside_single_outliers(planted):
    weights = np.random.default_rng(0).integers(1, 4, len(planted.X))
    weights[planted.outliers] = 1
    starts = np.array([planted.X[planted.y == label][0] for label in range(3)])
    weighted = KMeansMinusMinus(3, n_outliers=6, init=starts, tol=0).fit(
        planted.X, sample_weight=weights
    )
    X = np.repeat(planted.X, weights, axis=0)
    repeated = from_starts(X, starts, n_outliers=6)
    np.testing.assert_array_equal(
        np.repeat(weighted.labels_, weights), repeated.labels_
    )
    np.testing.assert_allclose(weighted.cluster_centers_, repeated.cluster_centers_)


@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_matrix])
def test_weighted_means(seed, as_stored):
    X, starts = noise_around_blobs(seed)
    weights = np.random.default_rng(seed).uniform(0.5, 1.5, len(X))
    model = KMeansMinusMinus(4, n_outliers=7, init=starts, tol=0).fit(
        as_stored(X), sample_weight=weights
    )
    groups = [model.labels_ == k for k in range(4)]
    means = [np.average(X[rows], axis=0, weights=weights[rows]) for rows in groups]
    # A run ends before centres that would make its objective rise.
    assert np.allclose(model.cluster_centers_, means) or (
        measure_objective(X, weights, means, n_outliers=7) > model.objective_
    )


def measure_objective(X, weights, centers, n_outliers):
    """Return the weighted sum of squares of all rows but the farthest."""
    squares = cdist(X, centers, "sqeuclidean").min(axis=1)
    kept = np.argsort(squares)[: len(X) - n_outliers]
    return weights[kept] @ squares[kept]


def test_without_outliers_it_is_kmeans(seed):
    X, starts = noise_around_blobs(seed)
    model = from_starts(X, starts, n_outliers=0)
    kmeans = KMeans(4, init=starts, n_init=1, tol=0).fit(X)
    np.testing.assert_array_equal(model.labels_, kmeans.labels_)
    assert model.objective_ == pytest.approx(kmeans.inertia_)
    assert model.offset_ == -np.inf
    assert (model.predict(X + 1e6) >= 0).all()


@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_each_row_gets_the_answers_of_the_fit(seed, metric, as_stored):
    X, _ = noise_around_blobs(seed)
    X = as_stored(X)
    model = KMeansMinusMinus(4, metric=metric, init="k-means++", random_state=seed)
    model.fit(X)
    np.testing.assert_array_equal(model.score_samples(X), -model.outlier_scores_)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    costs = model.transform(X)
    np.testing.assert_array_equal(costs.argmin(axis=1), model.nearest_labels_)
    np.testing.assert_array_equal(costs.min(axis=1), model.outlier_scores_)
    for row in (0, 77):
        assert model.score_samples(X[[row]])[0] == -model.outlier_scores_[row]
    np.testing.assert_array_equal(
        model.decision_function(X), model.score_samples(X) - model.offset_
    )


def test_costs_of_long_rows_do_not_depend_on_their_neighbours():
    X = np.random.default_rng(0).normal(size=(9, 20_000))
    model = KMeansMinusMinus(2, n_outliers=1, random_state=0).fit(X)
    for row in range(9):
        assert model.score_samples(X[[row]])[0] == -model.outlier_scores_[row]


def test_emptied_cluster_is_refilled():
    # Nothing is near the third start; the farthest row that is kept takes its place.
    X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [17.0], [500.0]])
    model = from_starts(X, np.array([[1.0], [11.0], [1e9]]), n_outliers=1)
    np.testing.assert_array_equal(model.labels_, [0, 0, 0, 1, 1, 2, -1])
    np.testing.assert_allclose(model.cluster_centers_, [[1.0], [10.5], [17.0]])
    assert (np.diff(model.objective_history_) <= 0).all()


def test_all_clusters_but_one_emptied_at_once(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 2))
    starts = np.concatenate([[[0.0, 0.0]], np.full((4, 2), 1e6)])
    model = from_starts(X, starts, n_outliers=3)
    assert sorted(set(model.labels_.tolist())) == [-1, 0, 1, 2, 3, 4]
    assert np.isfinite(model.cluster_centers_).all()
    assert (np.diff(model.objective_history_) <= 0).all()


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_matrix])
def test_all_rows_equal(metric, as_stored):
    X = as_stored(np.full((10, 3), 0.1))
    model = KMeansMinusMinus(2, n_outliers=3, metric=metric, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"Only 1 of n_clusters=2 clusters"):
        model.fit(X)
    np.testing.assert_array_equal(model.labels_, [-1] * 3 + [0] * 7)
    assert np.isfinite(model.cluster_centers_).all()
    assert model.objective_ == pytest.approx(0, abs=1e-12)


def test_of_equally_far_rows_the_first_are_set_aside():
    X = np.array([[0.0]] * 10 + [[5.0]] * 3 + [[-5.0]])
    model = from_starts(X, np.array([[0.0]]), n_outliers=2, max_iter=300)
    # The mean of all but rows 10 and 11 is 0, where all four of them cost 25.
    np.testing.assert_array_equal(np.flatnonzero(model.labels_ == -1), [10, 11])
    # Asked again they tie with rows that were kept.
    np.testing.assert_array_equal(model.predict([[5.0], [5.1]]), [0, -1])


@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_matrix])
def test_rows_that_are_equally_far_but_for_rounding_tie(seed, as_stored):
    # Two rows are equally far from their mean, however their distances are added up.
    rng = np.random.default_rng(seed)
    pair = rng.normal(size=(2, 7))
    X = np.concatenate([pair, pair.mean(axis=0) + rng.normal(size=(30, 1)) * 1e-3])
    starts = pair.mean(axis=0)[None]
    model = from_starts(as_stored(X), starts, n_outliers=1)
    assert model.labels_[0] == -1
    assert (model.labels_[1:] == 0).all()


def test_more_restarts_are_no_worse(seed):
    X, _ = noise_around_blobs(seed)
    objectives = [
        KMeansMinusMinus(5, init="random", n_init=n, random_state=seed)
        .fit(X)
        .objective_
        for n in (1, 3, 10)
    ]
    assert objectives == sorted(objectives, reverse=True)
    auto = KMeansMinusMinus(5, init="random", random_state=seed).fit(X)
    assert auto.objective_ == objectives[-1]


def test_same_seed_same_result(seed):
    X, _ = noise_around_blobs(seed)
    first, second = (
        KMeansMinusMinus(4, random_state=seed).fit(X).cluster_centers_ for _ in range(2)
    )
    np.testing.assert_array_equal(first, second)


def test_max_iter_is_told():
    X, starts = noise_around_blobs(0)
    with pytest.warns(ConvergenceWarning, match=r"stopped at max_iter=1 before"):
        model = from_starts(X, starts, max_iter=1)
    assert model.n_iter_ == 1


def test_tolerance_ends_a_run_early():
    X, starts = noise_around_blobs(0, n_samples=500)
    early = from_starts(X, starts, tol=0.1)
    late = from_starts(X, starts)
    assert early.n_iter_ < late.n_iter_
    assert early.objective_ >= late.objective_


def test_a_row_of_zeros_costs_one_everywhere():
    X = np.array([[1.0, 0.1], [1.0, 0.0], [0.0, 0.0], [0.1, 1.0], [0.0, 1.0]])
    model = from_starts(X, np.eye(2), n_outliers=1, metric="cosine")
    np.testing.assert_array_equal(model.labels_, [0, 0, -1, 1, 1])
    assert model.outlier_scores_[2] == 1
    np.testing.assert_allclose(np.linalg.norm(model.cluster_centers_, axis=1), 1)


def test_constant_columns_change_nothing(seed):
    X, starts = noise_around_blobs(seed)
    wider, wider_starts = (np.insert(each, 2, 7.5, axis=1) for each in (X, starts))
    np.testing.assert_array_equal(
        from_starts(wider, wider_starts).labels_, from_starts(X, starts).labels_
    )


@pytest.mark.parametrize(
    ("factor", "dtype"),
    [(2.0**110, np.float32), (2.0**-60, np.float32), (2.0**400, np.float64)],
)
def test_huge_and_tiny_values(factor, dtype):
    X, starts = (each.astype(dtype) for each in noise_around_blobs(0))
    usual = from_starts(X, starts)
    other = from_starts(X * dtype(factor), starts * dtype(factor))
    np.testing.assert_array_equal(other.labels_, usual.labels_)
    np.testing.assert_array_equal(other.predict(X * dtype(factor)), usual.labels_)
    np.testing.assert_allclose(
        other.cluster_centers_ / dtype(factor), usual.cluster_centers_, rtol=1e-5
    )


def test_rows_far_beyond_those_of_the_fit():
    X, starts = noise_around_blobs(0)
    model = from_starts(X.astype(np.float32), starts)
    far = np.full((1, X.shape[1]), 1.5e38, dtype=np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert model.predict(far) == [-1]
        assert model.score_samples(far)[0] < -1e70


def test_labels_are_those_of_exact_arithmetic(seed):
    # Rows within a few roundings of the border between two far centres.
    rng = np.random.default_rng(seed)
    centers = np.array([[1000.0, 3.0], [1001.0, 3.0], [1000.5, 900.0]])
    X = np.column_stack([1000.5 + rng.normal(size=500) * 1e-4, rng.normal(size=500)])
    X = X.astype(np.float32)
    exact = costs_of(X.astype(np.float64), centers, "euclidean")
    space = _sweeps.fit_space("euclidean", X, _sweeps.find_ends(X))
    with use_threads(1) as threads:
        points = _sweeps.Points(X, space, 3, threads)
        found = points.assign(points.pack(_sweeps.place_centers(space, centers)))
        np.testing.assert_array_equal(found.labels, exact.argmin(axis=1))
        costs = points.costs(slice(None), found.labels, found.centers)
        np.testing.assert_allclose(costs, exact.min(axis=1), rtol=1e-6)
        for n in (0, 1, 100, 499, 500):
            np.testing.assert_array_equal(
                points.find_costliest(found, n), costliest(costs, n)
            )


def test_sums_follow_the_rows_exactly(seed):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(300, 3)) * [1, 1e-3, 1e9]).astype(np.float32)
    ends = _sweeps.find_ends(X)
    space = _sweeps.fit_space("euclidean", X, ends)
    cells = rng.integers(3, size=(5, 300))
    with use_threads(2) as threads:
        points = _sweeps.Points(X, space, 2, threads)
        grid = _sweeps.choose_grid(space, ends, points.squares, 300)
        moved, fresh = (_sweeps.CellSums(points, None, 3, grid) for _ in range(2))
        moved.move(slice(None), None, cells[0])
        for old, new in zip(cells, cells[1:], strict=False):
            rows = np.flatnonzero(old != new)
            moved.move(rows, old[rows], new[rows])
        fresh.move(slice(None), None, cells[-1])
    np.testing.assert_array_equal(moved.values, fresh.values)
    wide = points.values.astype(np.float64)
    means = [wide[cells[-1] == cell].sum(axis=0) for cell in range(3)]
    sums = grid.join(fresh.values.reshape(3, -1))
    np.testing.assert_allclose(sums[:, :-1], means, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("n_samples", [1, 63, 64, 65, 200])
def test_ends_of_columns(n_samples):
    X = np.random.default_rng(0).normal(size=(n_samples, 3))
    expected = [X.max(axis=0), X.min(axis=0)]
    np.testing.assert_array_equal(_sweeps.find_ends(X), expected)
    np.testing.assert_array_equal(_sweeps.find_ends(sparse.csr_array(X)), expected)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        (
            {"init": np.zeros((2, 5))},
            r"init has shape \(2, 5\); it should be .*\(4, 5\)",
        ),
        (
            {"n_outliers": 146},
            r"n_outliers=146 should be smaller than n_samples - n_cl",
        ),
        ({"n_outliers": 3, "contamination": 0.1}, r"Set either n_outliers or"),
        ({"metric": "manhattan"}, r"'metric' parameter of KMeansMinusMinus must be"),
        ({"n_init": 0}, r"'n_init' parameter of KMeansMinusMinus must be"),
    ],
)
def test_bad_parameters(parameters, message):
    X, _ = noise_around_blobs(0)
    with pytest.raises(ValueError, match=message):
        KMeansMinusMinus(4, **parameters).fit(X)


def test_fewer_rows_than_clusters():
    with pytest.raises(ValueError, match=r"n_samples=3 should be >= n_clusters=4"):
        KMeansMinusMinus(4).fit(np.eye(3))


def test_smallest_data():
    model = KMeansMinusMinus(1, n_outliers=1, random_state=0)
    model.fit(np.array([[0.0], [1.0], [9.0]]))
    np.testing.assert_array_equal(np.flatnonzero(model.labels_ == 0), [0, 1])


def test_of_runs_that_are_equal_but_for_rounding_the_first_is_kept():
    assert find_best_run([2.0, 1.0 + 1e-14, 1.0]) == 1
    assert find_best_run([2.0, 1.0 + 1e-10, 1.0]) == 2
    assert find_best_run([0.0, 0.0]) == 0
    assert find_best_run([-1.0, -1.0 - 1e-14, -2.0]) == 2


def test_of_rows_that_are_clusters_the_same_one_is_kept_in_any_unit():
    """Three rows beside a group, of which one is a cluster and two are set aside."""
    X = np.array([[-9.282, -25.64], [8.53, -6.549], [-4.555, -4.398], [-5.858, -3.978]])
    more = [[-5.897, -3.747], [-5.822, -4.248], [-5.326, -4.257], [-6.458, -4.934]]
    X = np.concatenate([X, more])
    model = KMeansMinusMinus(2, n_outliers=2, n_init=3, metric="cosine", random_state=0)
    expected = model.fit_predict(X)
    for factor in np.random.default_rng(0).uniform(1, 1000, 50):
        np.testing.assert_array_equal(model.fit_predict(factor * X), expected)
