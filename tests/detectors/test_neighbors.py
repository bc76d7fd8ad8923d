"""The search for neighbours against a literal one, and the distances between them."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import cdist

from corral._offsets import find_medians
from corral._row_book import RowBook
from corral.detectors import COF, LDOF, LOF, FastABOD, IForest, _neighbors
from corral.detectors._neighbors import (
    Neighbors,
    _distances_within,
    divide,
    find_typical,
    shift,
)

METRICS = {
    "euclidean": lambda x, y: np.linalg.norm(x - y),
    "manhattan": lambda x, y: np.abs(x - y).sum(),
    "cosine": lambda x, y: 1 - x @ y / np.linalg.norm(x) / np.linalg.norm(y),
}


def literal_neighbors(X, row, k, skip=-1, metric="euclidean"):
    """Return the first k rows of X by (distance, index), and their distances."""
    distance = METRICS[metric]
    pairs = sorted((distance(X[j], row), j) for j in range(len(X)) if j != skip)[:k]
    return [j for _, j in pairs], [d for d, _ in pairs]


def check_training(X, k, given=None, **options):
    neighbors = Neighbors(X if given is None else given, k, **options)
    found = neighbors.of_training()
    for place, row in enumerate(neighbors.book.firsts):
        metric = options.get("metric", "euclidean")
        indices, distances = literal_neighbors(X, X[row], k, row, metric)
        assert found.indices[place].tolist() == indices
        np.testing.assert_allclose(
            found.distances[place], distances, rtol=1e-13, atol=1e-15
        )


def make_lattice(seed, n_samples=60, n_features=2):
    """Return rows of whole numbers, with many equal rows and equal distances."""
    rng = np.random.default_rng(seed)
    return rng.integers(0, 4, (n_samples, n_features)).astype(float)


@pytest.mark.parametrize("n_features", [2, 9], ids=["tree", "brute force"])
@pytest.mark.parametrize("k", [1, 7, 59])
def test_neighbors_of_training_rows_are_the_literal_ones(seed, n_features, k):
    X = np.random.default_rng(seed).normal(size=(60, n_features))
    check_training(X, k)


@pytest.mark.parametrize("n_features", [1, 2, 9], ids=["line", "tree", "brute force"])
@pytest.mark.parametrize("k", [1, 4, 25])
def test_ties_go_to_the_first_row(seed, n_features, k):
    check_training(make_lattice(seed, n_features=n_features), k)


def test_ties_of_more_rows_than_are_looked_at_first_go_to_the_first_row():
    # The corners of a cross: all 200 are as far from the middle.
    corners = np.vstack([np.eye(100), -np.eye(100)])
    X = np.vstack([corners, np.zeros((1, 100))])
    found = Neighbors(X, 3).of_training()
    assert found.indices[200].tolist() == [0, 1, 2]
    assert found.distances[200].tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize("n_features", [2, 9], ids=["tree", "brute force"])
def test_close_rows_far_from_the_origin_are_told_apart(seed, n_features):
    """The expanded formula for distances has no digit right here."""
    rng = np.random.default_rng(seed)
    spots = np.repeat([0.0, 1e3], 20)[:, None]
    check_training(1e6 + spots + 1e-6 * rng.normal(size=(40, n_features)), 5)


@pytest.mark.parametrize("n_features", [2, 9])
def test_neighbors_of_new_rows_are_the_literal_ones(seed, n_features):
    X, new = make_lattice(seed, 80, n_features), make_lattice(seed + 1000, 9) + 0.5
    new = np.pad(new, ((0, 0), (0, n_features - 2)))
    found = Neighbors(X, 6).of_new(new)
    for i, row in enumerate(new):
        indices, distances = literal_neighbors(X, row, 6)
        assert found.indices[i].tolist() == indices
        np.testing.assert_allclose(found.distances[i], distances, rtol=1e-13)


@pytest.mark.parametrize("metric", ["manhattan", "cosine"])
@pytest.mark.parametrize("n_features", [3, 9])
def test_other_metrics_find_the_literal_neighbors(seed, metric, n_features):
    X = np.random.default_rng(seed).normal(size=(40, n_features))
    X[7] = X[3]
    check_training(X, 6, metric=metric)


@pytest.mark.parametrize("metric", ["euclidean", "manhattan"])
def test_sparse_rows_have_the_neighbors_of_dense_ones(seed, metric):
    X = make_lattice(seed, n_features=5)
    check_training(X, 6, given=sparse.csr_array(X), metric=metric)


def test_small_blocks_find_the_same(seed, monkeypatch):
    X = np.vstack([make_lattice(seed, n_features=3), 0.25 * make_lattice(seed, 30, 3)])
    whole = Neighbors(X, 6).of_training()
    monkeypatch.setattr(_neighbors, "_BLOCK_BYTES", 1000)
    monkeypatch.setattr(_neighbors, "_SEARCH_BYTES", 20000)
    parts = Neighbors(X, 6).of_training()
    np.testing.assert_array_equal(parts.indices, whole.indices)
    np.testing.assert_array_equal(parts.distances, whole.distances)


def test_a_row_is_found_whatever_its_type():
    X = np.array([[0.0, 1.0], [2.0, 3.0], [0.0, 1.0], [0.5, 0.0]])
    book = RowBook(X)
    assert book.inverse.tolist() == [0, 1, 0, 2]
    assert book.firsts.tolist() == [0, 1, 3]
    asked = np.array([[0.5, -0.0], [7.0, 7.0], [2.0, 3.0]])
    assert book.find(asked).tolist() == [2, -1, 1]
    assert book.find(asked.astype(np.float32)).tolist() == [2, -1, 1]


def test_keys_of_rows_do_not_depend_on_blocks(monkeypatch):
    X = np.arange(30.0).reshape(10, 3) % 4
    whole = RowBook(X)
    # Two rows at a time.
    monkeypatch.setattr("corral._row_book._BLOCK_VALUES", 6)
    assert RowBook(X).inverse.tolist() == whole.inverse.tolist()
    assert whole.find(X[::-1]).tolist() == whole.inverse[::-1].tolist()


def test_sparse_rows_are_equal_whatever_their_zeros_and_order():
    plain = sparse.csr_array(np.array([[0.0, 1.0, 2.0]]))
    # The same row with columns in another order and a zero that is stored.
    odd = sparse.csr_array(
        (np.array([2.0, 0.0, 1.0]), np.array([2, 0, 1]), np.array([0, 3])), (1, 3)
    )
    assert RowBook(plain).find(odd).tolist() == [0]
    assert odd.nnz == 3


@pytest.mark.parametrize("n_columns", [1, 3, 50])
def test_distances_within_are_exact_for_close_points(seed, n_columns):
    """A clump far from the first point, with points that are nearly or quite equal."""
    rng = np.random.default_rng(seed)
    points = 100 + 1e-3 * rng.normal(size=(4, 12, n_columns))
    points[:, 0] = 0.0
    points[:, 5] = points[:, 4]
    points[:, 6] = points[:, 4] * (1 + 1e-12)
    computed = _distances_within(points)
    for each, distances in zip(points, computed, strict=True):
        np.testing.assert_allclose(distances, cdist(each, each), rtol=1e-10)
    assert (computed[:, 4, 5] == 0).all()


def test_map_blocks_gives_sparse_rows_as_dense_ones(seed):
    X = make_lattice(seed, n_features=6)
    X[:, 2] = 0.0
    answers = []
    for given in (X, sparse.csr_array(X)):
        neighbors = Neighbors(given, 5)
        answers.append(
            neighbors.map_blocks(
                lambda rows, near, distances: (
                    np.abs(near - rows[:, None]).sum(axis=(1, 2)) + distances[:, 0]
                ),
                neighbors.of_training(),
            )
        )
    np.testing.assert_allclose(answers[0], answers[1])


def test_divide_is_finite_and_grows_with_the_length():
    lengths = np.array([0.0, 2.0, 1.0, 2.0, 1e300])
    others = np.array([0.0, 4.0, 0.0, 0.0, 0.0])
    ratios = divide(lengths, others, 2.0)
    assert ratios[:2].tolist() == [1.0, 0.5]
    assert 1e15 < ratios[2] < ratios[3] < ratios[4] < np.inf
    assert divide(np.array([3.0]), np.array([0.0]), 0.0) < np.inf


def test_too_many_neighbors_are_reduced_with_a_warning():
    X = np.random.default_rng(0).normal(size=(10, 2))
    with pytest.warns(UserWarning, match=r"n_neighbors=20 should be .* 9 neighbours"):
        many = LDOF(n_neighbors=20).fit(X)
    assert many.n_neighbors_ == 9
    all_others = LDOF(n_neighbors=9).fit(X)
    np.testing.assert_array_equal(many.outlier_scores_, all_others.outlier_scores_)


def test_too_few_rows_are_refused():
    with pytest.raises(ValueError, match="n_samples=2 should be at least 3: LDOF"):
        LDOF().fit(np.eye(2))


class CountingNeighbors(Neighbors):
    """Counts how many candidates are looked at."""

    n_candidates = 0

    def _search_block(self, X, n_candidates):
        self.n_candidates += X.shape[0] * n_candidates
        return super()._search_block(X, n_candidates)


def count_candidates(X, **options):
    neighbors = CountingNeighbors(X, 5, **options)
    neighbors.of_training()
    return neighbors.n_candidates


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
@pytest.mark.parametrize("n_features", [3, 9], ids=["tree", "brute force"])
@pytest.mark.parametrize("is_sparse", [False, True])
def test_far_rows_offsets_and_scales_cost_no_candidates(
    seed, metric, n_features, is_sparse
):
    X = np.random.default_rng(seed).normal(size=(300, n_features))
    with_far_row = X.copy()
    with_far_row[7] = 1e9
    kind = sparse.csr_array if is_sparse else np.asarray
    for rows in (X, with_far_row, X + 1e7, 1e-20 * X, 1e200 * X):
        # Seven for each row, and more for a few that may have missed one.
        assert count_candidates(kind(rows), metric=metric) < 300 * 7 * 1.5


@pytest.mark.parametrize("n_features", [3, 9], ids=["tree", "brute force"])
@pytest.mark.parametrize("far", [1e9, 1e20, 1e160])
def test_neighbors_beside_far_rows_are_the_literal_ones(seed, n_features, far):
    X = np.random.default_rng(seed).normal(size=(40, n_features))
    expected = Neighbors(X, 6).of_training()
    with_far_rows = np.vstack([X, np.full((3, n_features), far)])
    with_far_rows[41:] *= [[1.5], [-2.0]]
    neighbors = Neighbors(with_far_rows, 6)
    found = neighbors.of_training()
    np.testing.assert_array_equal(found.indices[:40], expected.indices)
    np.testing.assert_allclose(
        found.distances[:40] / neighbors.scale, expected.distances, rtol=1e-12
    )
    assert found.indices[40, 0] == 41


def test_a_full_column_of_sparse_rows_is_centered(seed):
    """Inner products of such rows have no digit of the other columns right."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(200, 30)) * (rng.random((200, 30)) < 0.1)
    X[:, 3] = 1e7 + rng.normal(size=200)
    check_training(X, 5, given=sparse.csr_array(X))
    assert count_candidates(sparse.csr_array(X)) < 200 * 7 * 1.5


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("n_features", [3, 9], ids=["tree", "brute force"])
def test_cosine_distances_of_parallel_rows_are_zero(seed, n_features, is_sparse):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(3, n_features))
    X = np.vstack([np.outer([1.0, 3.0, 0.1, 1e200, 1e-200], row) for row in rows])
    neighbors = Neighbors(sparse.csr_array(X) if is_sparse else X, 4, metric="cosine")
    found = neighbors.of_training()
    assert (found.distances == 0).all()
    assert (found.indices // 5 == np.arange(15)[:, None] // 5).all()
    within = neighbors.map_blocks(
        lambda rows, near, distances: neighbors.between(near).max(axis=(1, 2)), found
    )
    assert (within == 0).all()


def test_cosine_distances_of_nearly_parallel_rows_keep_their_digits():
    # The angle of (1, t) to (1, 0) is t, and the distance t**2 / 2.
    X = np.array([[1.0, 0.0], [1.0, 1e-9], [1.0, 3e-9], [1.0, 1e-6]])
    found = Neighbors(X, 3, metric="cosine").of_training()
    assert found.indices[0].tolist() == [1, 2, 3]
    np.testing.assert_allclose(found.distances[0], [5e-19, 4.5e-18, 5e-13], rtol=1e-6)


@pytest.mark.parametrize("n_features", [3, 9], ids=["tree", "brute force"])
def test_rows_of_zeros_are_at_a_right_angle_to_others(seed, n_features):
    X = np.random.default_rng(seed).normal(size=(8, n_features))
    X[[2, 5]] = 0.0
    for given in (X, sparse.csr_array(X)):
        neighbors = Neighbors(given, 3, metric="cosine")
        found = neighbors.of_training()
        place = neighbors.book.inverse[2]
        assert found.indices[place, 0] == 5
        assert found.distances[place, 0] == 0
        np.testing.assert_allclose(found.distances[place, 1:], 1.0)


def test_manhattan_distances_within_are_the_literal_ones(seed):
    near = np.random.default_rng(seed).normal(size=(3, 7, 4))
    computed = Neighbors(near[0], 2, metric="manhattan").between(near)
    for each, distances in zip(near, computed, strict=True):
        np.testing.assert_allclose(distances, cdist(each, each, "cityblock"))


@pytest.mark.parametrize("metric", ["euclidean", "manhattan", "cosine"])
def test_dense_rows_are_found_among_sparse_ones_and_the_other_way(seed, metric):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 4))
    new = np.vstack([X[:3], rng.normal(size=(3, 4))])
    for fitted, asked in ((X, sparse.csr_array(new)), (sparse.csr_array(X), new)):
        detector = LDOF(5, metric=metric).fit(fitted)
        np.testing.assert_allclose(
            detector.score_samples(asked),
            LDOF(5, metric=metric).fit(X).score_samples(new),
        )


def test_find_medians_of_sparse_rows_are_those_of_dense_ones(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(30, 12)) * (rng.random((30, 12)) < np.linspace(0, 1, 12))
    # The median is between 0 and the least of the others.
    X[:, 4] = np.repeat([0.0, 5.0], 15)
    medians = np.median(X, axis=0)
    np.testing.assert_array_equal(find_medians(sparse.csr_array(X)), medians)
    np.testing.assert_array_equal(
        shift(sparse.csr_array(X), medians).toarray(), X - medians
    )


def test_typical_lengths_are_the_median_of_those_above_zero():
    assert find_typical(np.array([0.0, 0.0, 1.0, 3.0, 1e300])) == 3.0
    assert find_typical(np.zeros(3)) == 1.0


@pytest.mark.parametrize("detector", [LOF, COF, LDOF, FastABOD, IForest])
def test_no_jobs_are_refused_in_the_same_words(detector):
    with pytest.raises(ValueError, match="n_jobs=0 should be a number of threads"):
        detector(n_jobs=0).fit(np.random.default_rng(0).normal(size=(30, 2)))
