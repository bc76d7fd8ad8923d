"""NEO-K-Means: against the paper's Algorithm 1 done pair by pair, and K-means--."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from corral.rivals._kmeans_minus_minus import KMeansMinusMinus
from corral.rivals._neo_kmeans import NEOKMeans


def slow_neo_kmeans(X, centers, n_outliers, alpha):
    """Algorithm 1 of Whang, Dhillon and Gleich: one membership at a time."""
    n, n_clusters = len(X), len(centers)
    objectives = []
    while True:
        distances = np.array([[((x - m) ** 2).sum() for m in centers] for x in X])
        # Of equally near rows the last, as two rows of a cluster may be.
        pairs = sorted(
            (distances[i, k].round(10), -i, k)
            for i in range(n)
            for k in range(n_clusters)
        )
        U = np.zeros((n, n_clusters), dtype=bool)
        # n - beta n memberships, each of another row.
        while U.sum() < n - n_outliers:
            _, i, k = next(pair for pair in pairs if not U[-pair[1]].any())
            U[-i, k] = True
        # alpha n + beta n memberships of any rows.
        for _ in range(round(alpha * n) + n_outliers):
            _, i, k = next(pair for pair in pairs if not U[-pair[1], pair[2]])
            U[-i, k] = True
        objectives.append(distances[U].sum())
        new = np.array([X[U[:, k]].mean(axis=0) for k in range(n_clusters)])
        if np.allclose(new, centers, rtol=1e-13, atol=1e-13):
            return U, centers, np.array(objectives)
        centers = new


def blobs(seed, n_samples=60):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, 3))
    X += 2 * rng.normal(size=(3, 3))[rng.integers(3, size=n_samples)]
    return X, X[rng.choice(n_samples, 3, replace=False)]


def test_by_hand():
    # Centres 0 and 10. The row at 100 may be left out. Of the other pairs, the row at 4
    # is nearest to its second centre, and gets the one more membership.
    X = np.array([[-2.0], [-2.0], [4.0], [10.0], [10.0], [10.0], [100.0]])
    model = NEOKMeans(
        2, n_outliers=1, alpha=0.0, init=np.array([[0.0], [10.0]]), max_iter=300
    ).fit(X)
    # Then the means are 0 and 8.5: 4 costs 16 and 4.5^2, and 100 would cost 91.5^2.
    np.testing.assert_array_equal(
        model.memberships_.toarray(),
        np.array([[1, 0], [1, 0], [1, 1], [0, 1], [0, 1], [0, 1], [0, 0]], dtype=bool),
    )
    np.testing.assert_array_equal(model.labels_, [0, 0, 0, 1, 1, 1, -1])
    np.testing.assert_allclose(model.cluster_centers_, [[0.0], [8.5]])
    assert model.objective_ == pytest.approx(4 + 4 + 16 + 4.5**2 + 3 * 1.5**2)


@pytest.mark.parametrize("n_outliers", [0, 5])
@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5])
@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_matrix])
def test_is_the_algorithm_of_the_paper(seed, n_outliers, alpha, as_stored):
    X, starts = blobs(seed, n_samples=40)
    U, centers, objectives = slow_neo_kmeans(X, starts, n_outliers, alpha)
    model = NEOKMeans(3, n_outliers=n_outliers, alpha=alpha, init=starts)
    model.fit(as_stored(X))
    np.testing.assert_array_equal(model.memberships_.toarray(), U)
    np.testing.assert_allclose(model.cluster_centers_, centers, atol=1e-12)
    assert model.objective_ == pytest.approx(objectives[-1])
    np.testing.assert_array_equal(model.labels_ == -1, ~U.any(axis=1))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("n_outliers", [0, 1, 9])
def test_without_overlap_it_is_kmeans_minus_minus(seed, metric, n_outliers):
    X, starts = blobs(seed)
    theirs = KMeansMinusMinus(
        3, n_outliers=n_outliers, init=starts, tol=0, metric=metric
    ).fit(X)
    for alpha in (None, -n_outliers / len(X)):
        model = NEOKMeans(
            3, n_outliers=n_outliers, alpha=alpha, init=starts, metric=metric
        ).fit(X)
        np.testing.assert_array_equal(model.labels_, theirs.labels_)
        np.testing.assert_array_equal(model.nearest_labels_, theirs.nearest_labels_)
        np.testing.assert_allclose(model.cluster_centers_, theirs.cluster_centers_)
        np.testing.assert_allclose(model.objective_, theirs.objective_)
        assert model.offset_ == pytest.approx(theirs.offset_)
        assert model.n_outliers_ == n_outliers


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("alpha", [None, 0.0, 0.3])
def test_objective_never_rises(seed, metric, alpha):
    X, _ = blobs(seed, n_samples=150)
    model = NEOKMeans(5, n_outliers=12, alpha=alpha, metric=metric, random_state=seed)
    model.fit(X)
    assert (np.diff(model.objective_history_) <= 0).all()
    assert model.objective_history_[-1] == model.objective_
    assert len(model.objective_history_) == model.n_iter_
    n_total = 150 - 12 if alpha is None else round(150 * (1 + alpha))
    assert model.memberships_.sum() == n_total
    assert model.n_outliers_ <= 12


@pytest.mark.parametrize("as_stored", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_labels_memberships_and_scores_agree(seed, as_stored, dtype):
    # Whole numbers, so that many pairs tie.
    X = np.random.default_rng(seed).integers(-2, 3, size=(90, 3)).astype(dtype)
    X = as_stored(X)
    model = NEOKMeans(4, n_outliers=15, alpha=0.05, random_state=seed).fit(X)
    members = model.memberships_.toarray()
    np.testing.assert_array_equal(model.labels_ == -1, ~members.any(axis=1))
    kept = np.flatnonzero(model.labels_ >= 0)
    assert members[kept, model.labels_[kept]].all()
    np.testing.assert_array_equal(model.nearest_labels_[kept], model.labels_[kept])
    assert model.n_outliers_ == 90 - len(kept)
    np.testing.assert_array_equal(model.score_samples(X), -model.outlier_scores_)
    # Rows that tie at the threshold are in doubt only when they are asked again.
    sure = model.outlier_scores_ != -model.offset_
    np.testing.assert_array_equal(model.predict(X)[sure], model.labels_[sure])


def test_finds_planted_outliers(planted):
    model = NEOKMeans(3, n_outliers=6, alpha=None, random_state=0).fit(planted.X)
    np.testing.assert_array_equal(np.flatnonzero(model.labels_ == -1), planted.outliers)


def test_full_overlap_puts_every_row_everywhere(seed):
    X, _ = blobs(seed)
    model = NEOKMeans(3, n_outliers=0, alpha=2.0, random_state=seed).fit(X)
    assert model.memberships_.toarray().all()
    np.testing.assert_allclose(model.cluster_centers_, [X.mean(axis=0)] * 3)


def test_threads_change_nothing(seed):
    X, _ = blobs(seed)
    one, two = (
        NEOKMeans(3, alpha=0.1, n_jobs=n, random_state=seed).fit(X) for n in (1, 2)
    )
    np.testing.assert_array_equal(one.outlier_scores_, two.outlier_scores_)
    np.testing.assert_array_equal(one.cluster_centers_, two.cluster_centers_)


def test_emptied_cluster_is_refilled():
    X = np.array([[0.0], [1.0], [2.0], [10.0], [11.0], [17.0], [500.0]])
    starts = np.array([[1.0], [11.0], [1e9]])
    model = NEOKMeans(3, n_outliers=1, alpha=None, init=starts).fit(X)
    np.testing.assert_array_equal(model.labels_, [0, 0, 0, 1, 1, 2, -1])
    np.testing.assert_allclose(model.cluster_centers_, [[1.0], [10.5], [17.0]])


def test_all_rows_equal():
    model = NEOKMeans(2, n_outliers=3, alpha=None, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"Only 1 of n_clusters=2 clusters"):
        model.fit(np.ones((10, 2)))
    np.testing.assert_array_equal(model.labels_, [-1] * 3 + [0] * 7)
    np.testing.assert_array_equal(model.cluster_centers_, np.ones((2, 2)))


def test_max_iter_is_told():
    X, starts = blobs(0)
    model = NEOKMeans(3, init=starts, max_iter=1)
    with pytest.warns(ConvergenceWarning, match=r"stopped at max_iter=1 before"):
        model.fit(X)
    assert model.n_iter_ == 1


@pytest.mark.parametrize("alpha", [-0.2, 2.1])
def test_alpha_out_of_range(alpha):
    X, _ = blobs(0)
    message = rf"alpha={alpha} should be between .* = -0.1 and n_clusters - 1 = 2"
    with pytest.raises(ValueError, match=message):
        NEOKMeans(3, contamination=0.1, alpha=alpha).fit(X)


def test_fewer_rows_than_clusters():
    with pytest.raises(ValueError, match=r"n_samples=3 should be >= n_clusters=4"):
        NEOKMeans(4).fit(np.eye(3))
