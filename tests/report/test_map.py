import numpy as np
import pytest
from scipy import sparse
from sklearn.decomposition import PCA

from corral.report._map import (
    MAX_OUTLIERS,
    MAX_ROWS,
    choose_rows,
    part_ties,
    place,
    project,
)
from corral.report._outcome import Outcome
from corral.report._rows import read_rows


def _outcome(labels, scores):
    labels = np.asarray(labels)
    nearest = np.maximum(labels, 0)
    return Outcome(labels, nearest, np.asarray(scores, dtype=float), 1.0, 1)


def _project(X, is_kept=None, **options):
    rows = read_rows(X, names=None, categorical_features=None, are_labels=False)
    is_kept = np.ones(rows.n_samples, dtype=bool) if is_kept is None else is_kept
    scores = np.arange(rows.n_samples, dtype=float)
    return project(rows, is_kept, scores, **{"use_directions": False, **options})


def test_few_rows_are_all_drawn_strangest_first():
    outcome = _outcome([0, -1, 0], [1.0, 9.0, 2.0])
    assert choose_rows(outcome, 200).tolist() == [1, 2, 0]


@pytest.mark.parametrize("n_outliers", [0, 300, 4000])
def test_many_rows_are_drawn_with_outliers_first(n_outliers):
    # All outliers up to a limit, the strangest rows, and others up to a limit.
    rng = np.random.default_rng(1)
    scores = rng.random(20_000)
    order = np.argsort(-scores)
    labels = np.zeros(20_000, dtype=int)
    labels[order[:n_outliers]] = -1
    drawn = choose_rows(_outcome(labels, scores), 50)
    assert len(drawn) == MAX_ROWS == len(set(drawn.tolist()))
    assert (labels[drawn] == -1).sum() == min(n_outliers, MAX_OUTLIERS)
    assert drawn[:50].tolist() == order[:50].tolist()
    assert (np.diff(scores[drawn]) <= 0).all()
    # The same rows each time.
    assert drawn.tolist() == choose_rows(_outcome(labels, scores), 50).tolist()


def test_one_column_is_drawn_against_the_score():
    projection = _project([[5.0], [7.0], [6.0]])
    assert projection.points.tolist() == [[5, 0], [7, 1], [6, 2]]
    assert projection.axes == ["feature 0", "outlier score"]


def test_two_columns_are_drawn_as_they_are():
    X = [[5.0, 1.0], [7.0, 2.0], [6.0, 3.0]]
    projection = _project(X)
    assert projection.points.tolist() == X
    assert projection.axes == ["feature 0", "feature 1"]
    assert projection.variance is None


@pytest.mark.parametrize("convert", [np.asarray, sparse.csr_array])
def test_more_columns_are_drawn_by_principal_components(convert):
    # Learned from the rows that were kept, so that an outlier does not turn the map.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 5)) * [5, 3, 1, 0.5, 0.1]
    X[0] = 1000.0
    is_kept = np.arange(50) > 0
    projection = _project(convert(X), is_kept)
    pca = PCA(2).fit(X[1:])
    np.testing.assert_allclose(
        np.abs(projection.points), np.abs(pca.transform(X)), rtol=1e-5
    )
    assert projection.variance == pytest.approx(pca.explained_variance_ratio_.sum())
    assert "of the variance" in projection.axes[0]


def test_missing_cells_lie_at_the_mean():
    # A row that is all missing lies in the middle.
    rng = np.random.default_rng(0)
    X = rng.normal(3, 1, size=(40, 4))
    X[7] = np.nan
    projection = _project(X)
    assert np.isfinite(projection.points).all()
    np.testing.assert_allclose(projection.points[7], 0, atol=1e-9)


def test_length_does_not_count_in_cosine_distance():
    rng = np.random.default_rng(0)
    X = rng.random((30, 4))
    longer = X * rng.uniform(1, 100, size=(30, 1))
    np.testing.assert_allclose(
        _project(X, use_directions=True).points,
        _project(longer, use_directions=True).points,
    )


def test_categories_alone_have_a_map():
    # Rows with the same categories lie on the same place, others elsewhere.
    X = np.array([["a", "u"], ["b", "v"], ["c", "v"], ["c", "w"]] * 5, dtype=object)
    rows = read_rows(X, names=None, categorical_features=[0, 1], are_labels=False)
    kept = np.ones(20, dtype=bool)
    points = project(rows, kept, np.zeros(20), use_directions=False).points.round(9)
    assert len(np.unique(points, axis=0)) == 4


def test_rare_category_does_not_shape_the_map():
    # One row of 200 with a colour of its own lies among the others.
    rng = np.random.default_rng(0)
    X = np.empty((200, 3), dtype=object)
    X[:, :2] = rng.normal(size=(200, 2))
    X[:, 2] = "red"
    X[9, 2] = "mauve"
    rows = read_rows(X, names=None, categorical_features=[2], are_labels=False)
    kept = np.ones(200, dtype=bool)
    points = project(rows, kept, np.zeros(200), use_directions=False).points
    assert np.abs(points[9]).max() < 4


@pytest.mark.parametrize(
    "X",
    [
        np.zeros((5, 4)),
        np.full((1, 3), 7.0),
        np.eye(2, 6),
        np.full((4, 3), np.nan),
        sparse.csr_array((6, 9)),
    ],
    ids=["all equal", "one row", "two rows", "all missing", "empty"],
)
def test_nasty_rows_have_a_place(X):
    # Positions are numbers, and the first view holds them.
    points = place(_project(X).points, np.ones(X.shape[0], dtype=bool))
    assert np.isfinite(points).all()
    assert (points >= 0).all()
    assert (points <= 1).all()


def test_first_view_holds_near_outliers():
    points = np.array([[0.0, 0], [1, 1], [0.5, 0.5], [1.5, -0.5]])
    placed = place(points, np.array([True, True, True, False]))
    assert (placed > 0).all()
    assert (placed < 1).all()


def test_first_view_leaves_out_what_is_too_far():
    # The kept rows keep a third of the view at least.
    rng = np.random.default_rng(0)
    points = np.vstack([rng.random((100, 2)), [[1e9, 0.5]]])
    placed = place(points, np.arange(101) < 100)
    assert placed[100, 0] > 100
    assert np.ptp(placed[:100, 0]) > 0.3
    assert (placed[:100] >= 0).all()
    assert (placed[:100] <= 1).all()


def test_rows_on_the_same_place_are_drawn_side_by_side():
    # A hundred rows on two places: all are seen, and near where they belong.
    points = np.repeat([[0.2, 0.2], [0.8, 0.8]], 50, axis=0)
    parted, is_shifted = part_ties(points)
    assert is_shifted
    assert len(np.unique(parted, axis=0)) == 100
    np.testing.assert_allclose(parted, points, atol=0.05)


def test_rows_on_places_of_their_own_stay_there():
    points = np.random.default_rng(0).random((50, 2))
    parted, is_shifted = part_ties(points)
    assert not is_shifted
    assert (parted == points).all()
