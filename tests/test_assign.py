"""Nearest centres, in many runs at once."""

import numpy as np
import pytest
from scipy import sparse

from corral import _assign
from corral._assign import (
    AssignWorkspace,
    Layout,
    PackedCenters,
    assign_sweep,
    half_squared_norms,
)
from corral._tiles import RowSpace, Tile


def pack(layout, centers, n_terms, *, is_sparse=False, spherical=False, in_use=None):
    in_use = np.ones(len(centers), bool) if in_use is None else in_use
    return PackedCenters.pack(
        layout,
        centers,
        np.arange(len(centers)),
        half_squared_norms(centers, in_use, spherical=spherical),
        n_terms=n_terms,
        is_sparse=is_sparse,
    )


def assign(points, layout, centers, metric="euclidean", **options):
    """Label points that are in the row space already."""
    space = RowSpace(metric, None, 1.0, points.dtype)
    tile = Tile.of(0, points, space)
    is_sparse = sparse.issparse(points)
    n_terms = np.diff(points.indptr).max() if is_sparse else points.shape[1]
    packed = pack(layout, centers, int(n_terms), is_sparse=is_sparse, **options)
    return assign_sweep(tile, packed, AssignWorkspace(layout, points.shape[0])).copy()


def plain_labels(points, layout, centers):
    """Return the nearest centre in each run, the first of equally near ones."""
    labels = np.empty((layout.n_runs, len(points)), dtype=int)
    for run, k in enumerate(layout.n_clusters):
        mine = centers[layout.cell(run, np.arange(k))].astype(float)
        scores = points.astype(float) @ mine.T - 0.5 * (mine**2).sum(axis=1)
        labels[run] = scores.argmax(axis=1)
    return labels


def random_case(seed, n_rows=300, n_features=5, dtype=np.float64, k_max=9):
    rng = np.random.default_rng(seed)
    layout = Layout(np.sort(rng.integers(1, k_max + 1, size=12)))
    points = rng.normal(size=(n_rows, n_features)).astype(dtype)
    centers = rng.normal(size=(layout.n_cells, n_features)).astype(dtype)
    return points, layout, centers


def test_layout_gives_each_label_of_each_run_one_cell():
    layout = Layout(np.array([2, 2, 3, 5]))
    cells = [
        layout.cell(j, k) for j, size in enumerate([2, 2, 3, 5]) for k in range(size)
    ]
    assert sorted(cells) == list(range(12))
    for cell in range(12):
        run, label = layout.run_of_cell[cell], layout.label_of_cell[cell]
        assert layout.cell(run, label) == cell


def test_selected_runs_keep_their_cells():
    layout = Layout(np.array([2, 2, 3, 5, 5]))
    runs, part, cells = layout.select(np.array([1, 2, 4]))
    np.testing.assert_array_equal(part.n_clusters, [2, 3, 5])
    np.testing.assert_array_equal(layout.run_of_cell[cells], runs[part.run_of_cell])
    np.testing.assert_array_equal(layout.label_of_cell[cells], part.label_of_cell)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("k_max", [1, 9, 40, 300])
def test_sweep_is_its_plain_twin(dtype, k_max, seed):
    # Up to 300 clusters: labels of one byte and of two.
    points, layout, centers = random_case(seed, dtype=dtype, k_max=k_max)
    np.testing.assert_array_equal(
        assign(points, layout, centers), plain_labels(points, layout, centers)
    )


def test_sparse_is_dense(seed):
    points, layout, centers = random_case(seed, n_features=30)
    points[np.random.default_rng(seed).random(points.shape) < 0.8] = 0
    np.testing.assert_array_equal(
        assign(sparse.csr_array(points), layout, centers),
        assign(points, layout, centers),
    )


def test_label_does_not_depend_on_the_other_rows(seed):
    # Rows near the border of two cells, where float32 products alone would waver.
    rng = np.random.default_rng(seed)
    layout = Layout(np.array([2, 3]))
    centers = rng.normal(size=(5, 40)).astype(np.float32)
    middle = (centers[layout.cell(0, 0)] + centers[layout.cell(0, 1)]) / 2
    points = middle + rng.normal(0, 1e-6, size=(500, 40)).astype(np.float32)
    labels = assign(points, layout, centers)
    assert len(set(labels[0])) == 2
    order = rng.permutation(len(points))
    np.testing.assert_array_equal(
        assign(points[order], layout, centers), labels[:, order]
    )
    one_by_one = [assign(points[i : i + 1], layout, centers)[:, 0] for i in range(50)]
    np.testing.assert_array_equal(np.array(one_by_one).T, labels[:, :50])
    np.testing.assert_array_equal(labels, plain_labels(points, layout, centers))


def test_equally_near_centres_give_the_lower_label():
    layout = Layout(np.array([3]))
    centers = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 5.0]])
    assert assign(np.zeros((1, 2)), layout, centers)[0, 0] == 0
    assert assign(np.zeros((1, 2)), layout, centers[[2, 1, 0]])[0, 0] == 1


@pytest.mark.parametrize("share", [0.0, 1.0])
def test_doing_a_tile_again_in_float64_changes_no_label(monkeypatch, share):
    # With 0 every doubtful tile is done again, with 1 none.
    points, layout, centers = random_case(1, dtype=np.float64)
    points += 1e4
    expected = plain_labels(points, layout, centers + 1e4)
    monkeypatch.setattr(_assign, "_MANY_DOUBTS", share)
    np.testing.assert_array_equal(assign(points, layout, centers + 1e4), expected)


@pytest.mark.parametrize(
    ("dtype", "size"), [(np.float32, 1e20), (np.float64, 1e20), (np.float64, 1e200)]
)
def test_rows_beyond_float32_are_settled_in_float64(dtype, size):
    # Their squares, or they themselves, are infinite in float32.
    layout = Layout(np.array([2]))
    points = np.array([[size], [-size], [0.9], [-0.9]], dtype=dtype)
    labels = assign(points, layout, np.array([[-1.0], [1.0]], dtype=dtype))
    np.testing.assert_array_equal(labels[0], [1, 0, 1, 0])


def test_far_centre_of_one_run_leaves_the_others_alone():
    layout = Layout(np.array([1, 2]))
    centers = np.empty((3, 1))
    centers[layout.cell(0, 0)] = 1e8
    centers[layout.cell(1, np.arange(2))] = [[-1.0], [1.0]]
    labels = assign(np.array([[0.9], [-0.9]]), layout, centers)
    np.testing.assert_array_equal(labels[1], [1, 0])


@pytest.mark.parametrize("scale", [1e300, 1e-300, 1e-310])
def test_huge_and_tiny_rows_are_scaled(scale):
    points = np.random.default_rng(0).normal(size=(40, 3)) * scale
    space = RowSpace.fit("euclidean", points)
    placed = space.place(points)
    assert np.isfinite(placed).all()
    assert 1e-12 < np.abs(placed).max() < 10


def test_cell_not_in_use_wins_no_row():
    points, layout, centers = random_case(0)
    in_use = np.ones(layout.n_cells, bool)
    in_use[layout.cell(np.flatnonzero(layout.n_clusters > 1), 0)] = False
    labels = assign(points, layout, centers, in_use=in_use)
    assert (labels[layout.n_clusters > 1] != 0).all()


def test_sparse_row_of_zeros_has_a_label():
    layout = Layout(np.array([2]))
    centers = np.eye(2, 3)
    zeros = sparse.csr_array((2, 3))
    labels = assign(zeros, layout, centers, metric="cosine", spherical=True)
    np.testing.assert_array_equal(labels[0], [0, 0])


def test_cosine_looks_at_the_angle_only():
    rng = np.random.default_rng(0)
    layout = Layout(np.array([4]))
    centers = rng.normal(size=(4, 6))
    centers /= np.linalg.norm(centers, axis=1, keepdims=True)
    points = rng.normal(size=(100, 6))
    lengths = rng.uniform(0.1, 1000, size=(100, 1))
    labels = assign(points * lengths, layout, centers, metric="cosine", spherical=True)
    np.testing.assert_array_equal(labels[0], (points @ centers.T).argmax(axis=1))
