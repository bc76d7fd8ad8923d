"""The map of the rows."""

import io
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import polars as pl
import pytest
from matplotlib import rc_context
from matplotlib.colors import to_hex
from scipy import sparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.preprocessing import normalize

from corral import COR, CORDetector, all_methods
from corral.detectors import LOF
from corral.displays import ClusterMapDisplay
from corral.displays._drawing import COLORS, MARKS, cluster_style

METHODS = all_methods()


def points_of(display):
    """Return the points that are drawn, by their label."""
    drawn = {label: each.get_offsets() for label, each in display.clusters_.items()}
    if display.outliers_ is not None:
        drawn[-1] = display.outliers_.get_offsets()
    return drawn


def test_two_features_are_drawn_as_they_are(planted):
    X = planted.X[:, :2]
    model = COR(3, n_outliers=6, n_partitions=8, random_state=0).fit(X)
    display = ClusterMapDisplay.from_estimator(model, X)
    drawn = points_of(display)
    assert set(drawn) == set(model.labels_)
    for label, points in drawn.items():
        np.testing.assert_array_equal(points, X[model.labels_ == label])
    assert display.ax_.get_xlabel() == "feature 0"
    assert display.ax_.get_ylabel() == "feature 1"


def test_names_of_columns_are_words_and_no_formulas(planted):
    # A formula that is wrong would be an error of matplotlib, as the picture is drawn.
    names = [r"cost $\wrong{$", "<script>\u202e"]
    X = pd.DataFrame(planted.X[:, :2], columns=names)
    model = COR(3, n_outliers=6, n_partitions=8, random_state=0).fit(X)
    figure = ClusterMapDisplay.from_estimator(model, X).figure_
    file = io.StringIO()
    with rc_context({"svg.fonttype": "none"}):
        figure.savefig(file, format="svg")
    drawn = ElementTree.fromstring(file.getvalue())
    texts = [each.text for each in drawn.iter("{http://www.w3.org/2000/svg}text")]
    assert names[0] in texts
    assert r"<script>\u202e" in texts


def test_more_features_are_drawn_in_principal_directions_of_the_clusters(
    model, planted
):
    display = ClusterMapDisplay.from_estimator(model, planted.X)
    expected = PCA(2).fit(planted.X[model.labels_ >= 0]).transform(planted.X)
    np.testing.assert_allclose(np.abs(display.points), np.abs(expected))
    np.testing.assert_array_equal(display.labels, model.labels_)
    assert display.ax_.get_xlabel() == "first principal direction"


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_sparse_rows_are_drawn_in_singular_directions(metric, planted):
    X = sparse.csr_array(np.abs(planted.X))
    model = COR(3, n_outliers=6, n_partitions=8, metric=metric, random_state=0).fit(X)
    display = ClusterMapDisplay.from_estimator(model, X)
    rows = normalize(X) if metric == "cosine" else X
    expected = TruncatedSVD(2, algorithm="arpack").fit(rows[model.labels_ >= 0])
    np.testing.assert_allclose(
        np.abs(display.points), np.abs(expected.transform(rows)), rtol=1e-3, atol=1e-3
    )
    assert "singular" in display.ax_.get_xlabel()


def test_clusters_and_outliers_look_different(model, planted):
    display = ClusterMapDisplay.from_estimator(model, planted.X)
    colors = [to_hex(each.get_facecolor()[0]) for each in display.clusters_.values()]
    assert colors == [color.lower() for color in COLORS[:3]]
    assert to_hex(display.outliers_.get_edgecolor()[0]) == "#000000"
    shapes = {
        len(each.get_paths()[0].vertices)
        for each in [*display.clusters_.values(), display.outliers_]
    }
    assert len(shapes) == 2
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names == ["cluster 0", "cluster 1", "cluster 2", "outliers"]


def test_42_clusters_look_different():
    styles = {tuple(cluster_style(k).values()) for k in range(42)}
    assert len(styles) == len(COLORS) * len(MARKS) == 42


def test_many_clusters_have_no_names():
    labels = np.repeat([*range(13), -1], 3)
    display = ClusterMapDisplay.from_predictions(np.eye(len(labels)), labels)
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names == ["outliers"]


def test_many_rows_are_sampled_and_outliers_first(model, planted):
    display = ClusterMapDisplay.from_estimator(model, planted.X, n_rows=20)
    assert len(display.points) == 20
    np.testing.assert_array_equal(display.labels, model.labels_[display.rows])
    assert (display.labels == -1).sum() == 6
    display = ClusterMapDisplay.from_estimator(model, planted.X, n_rows=8)
    assert (display.labels == -1).sum() == 4


@pytest.mark.parametrize("name", METHODS)
def test_any_method_can_be_drawn(name, planted):
    X = np.abs(planted.X)
    parameters = METHODS[name].parameters
    wanted = {"n_clusters": 3, "n_outliers": 6, "n_partitions": 5, "random_state": 0}
    wanted = {key: value for key, value in wanted.items() if key in parameters}
    fitted = METHODS[name].make(**wanted).fit(X)
    display = ClusterMapDisplay.from_estimator(fitted, X)
    source = fitted.estimator_ if name == "cor-detector" else fitted
    np.testing.assert_array_equal(display.labels == -1, source.labels_ == -1)


def test_detector_has_inliers(planted):
    display = ClusterMapDisplay.from_estimator(
        LOF(n_outliers=6).fit(planted.X), planted.X
    )
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names == ["inliers", "outliers"]
    detector = CORDetector(COR(3, n_outliers=6, n_partitions=5)).fit(planted.X)
    assert len(ClusterMapDisplay.from_estimator(detector, planted.X).clusters_) == 3


def test_columns_of_categories_of_an_array_are_left_out(planted):
    X = np.column_stack([planted.X[:, 0], [1, 2] * 93, planted.X[:, 1]])
    model = COR(
        3, n_outliers=6, n_partitions=5, categorical_features=[1], random_state=0
    ).fit(X)
    display = ClusterMapDisplay.from_estimator(model, X)
    np.testing.assert_array_equal(display.points, planted.X[:, :2])
    assert display.axis_names == ("feature 0", "feature 2")


@pytest.mark.parametrize("library", [pd, pl], ids=["pandas", "polars"])
def test_columns_of_categories_are_left_out(library, planted):
    frame = library.DataFrame(
        {
            "weight": planted.X[:, 0],
            "kind": ["a", "b"] * 93,
            "size": planted.X[:, 1],
            "code": [1, 2] * 93,
        }
    )
    model = COR(
        3,
        n_outliers=6,
        n_partitions=5,
        categorical_features=["kind", "code"],
        random_state=0,
    ).fit(frame)
    display = ClusterMapDisplay.from_estimator(model, frame)
    np.testing.assert_array_equal(display.points, planted.X[:, :2])
    assert display.axis_names == ("weight", "size")


def test_missing_cells_lie_in_the_middle_of_their_column():
    X = np.array([[1.0, np.nan], [3.0, 4.0], [np.nan, 8.0]])
    display = ClusterMapDisplay.from_predictions(X, [0, 0, 0])
    np.testing.assert_array_equal(display.points, [[1, 6], [3, 4], [2, 8]])


@pytest.mark.parametrize(
    ("X", "expected"),
    [
        (np.arange(4.0)[:, None], np.column_stack([np.arange(4.0), np.zeros(4)])),
        (np.ones((4, 5)), np.zeros((4, 2))),
        (np.ones((1, 3)), np.zeros((1, 2))),
        (sparse.csr_array(np.eye(4, 2)), np.eye(4, 2)),
    ],
    ids=["one feature", "duplicates", "one row", "two sparse features"],
)
def test_rows_without_two_directions_are_drawn_all_the_same(X, expected):
    display = ClusterMapDisplay.from_predictions(X, np.zeros(X.shape[0], dtype=int))
    np.testing.assert_allclose(display.points, expected, atol=1e-12)
    assert display.outliers_ is None


def test_marks_can_be_changed(model, planted):
    display = ClusterMapDisplay.from_estimator(
        model, planted.X, s=3, outlier_kwargs={"s": 99}
    )
    assert display.clusters_[0].get_sizes() == [3]
    assert display.outliers_.get_sizes() == [99]


def test_wrong_input_is_refused(planted):
    with pytest.raises(ValueError, match="labels has 2 entries but X has 186 rows"):
        ClusterMapDisplay.from_predictions(planted.X, [0, 1])
    words = pd.DataFrame({"word": ["a", "b"]})
    with pytest.raises(ValueError, match="X has no numeric columns"):
        ClusterMapDisplay.from_predictions(words, [0, 1])
