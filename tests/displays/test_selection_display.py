"""The curves of a choice of numbers."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.cluster import KMeans
from sklearn.exceptions import NotFittedError

from corral import COR, CORDetector
from corral._criteria import MIN_TOLD
from corral._selection import Selection
from corral.displays import SelectionDisplay


@pytest.fixture
def selection():
    """Return a choice among 3 numbers of clusters and 2 of outliers."""
    nan = np.nan
    return Selection(
        n_clusters_=2,
        n_outliers_=4,
        runner_up=(3, 0),
        reason="Because.",
        columns={
            "n_clusters": np.array([3, 1, 2, 1, 2, 3]),
            "n_outliers": np.array([4, 4, 4, 0, 0, 0]),
            "told": np.array([0.5, 1.0, 0.9, nan, nan, nan]),
            "objective": np.array([3.0, nan, 2.0, nan, 7.0, 6.0]),
            "is_chosen": np.array([0, 0, 1, 0, 0, 0], bool),
        },
        gap_numbers=np.array([1, 2, 4, 8]),
        gap_widths=np.array([1.0, 0.0, 30.0, 2.0]),
        gap_threshold=9.5,
        n_searched=100,
    )


def points(line):
    return np.transpose(line.get_data()).tolist()


def test_curves_and_marks_are_those_of_the_table(selection):
    display = SelectionDisplay.from_selection(selection)
    assert list(display.axes_) == ["clusters", "outliers", "objective"]
    (told,) = display.lines_["clusters"]
    assert points(told) == [[1, 1.0], [2, 0.9], [3, 0.5]]
    (gaps,) = display.lines_["outliers"]
    # A gap of no width has no place on a logarithmic scale.
    assert points(gaps) == [[1, 1.0], [4, 30.0], [8, 2.0]]
    two, three = display.lines_["objective"]
    assert (points(two), points(three)) == ([[0, 7], [4, 2]], [[0, 6], [4, 3]])
    assert {name: points(mark) for name, mark in display.chosen_.items()} == {
        "clusters": [[2, 0.9]],
        "outliers": [[4, 30.0]],
        "objective": [[4, 2.0]],
    }
    assert two.get_linewidth() > three.get_linewidth()


def test_thresholds_are_drawn(selection):
    axes = SelectionDisplay.from_selection(selection).axes_
    for name, level in (("clusters", MIN_TOLD), ("outliers", 9.5)):
        heights = [list(line.get_ydata()) for line in axes[name].lines]
        assert [level, level] in heights
        low, high = axes[name].get_ylim()
        assert low < level < high
    assert axes["outliers"].get_xscale() == axes["outliers"].get_yscale() == "log"


def test_stability_is_drawn_where_it_is_known(selection):
    columns = selection.columns | {
        "stability": np.array([0.4, np.nan, 0.8, np.nan, np.nan, np.nan])
    }
    display = SelectionDisplay.from_selection(replace(selection, columns=columns))
    assert points(display.lines_["clusters"][1]) == [[2, 0.8], [3, 0.4]]


@pytest.mark.parametrize(
    ("settings", "panels"),
    [
        ({}, ["clusters", "outliers"]),
        ({"n_clusters": 3}, ["outliers"]),
        ({"n_outliers": 6}, ["clusters"]),
    ],
    ids=["both", "outliers", "clusters"],
)
def test_panels_of_a_fit_show_what_was_chosen(planted, settings, panels):
    model = COR(n_partitions=12, random_state=0, **settings).fit(planted.X)
    display = SelectionDisplay.from_estimator(model)
    assert set(panels) <= set(display.axes_)
    if "clusters" in panels:
        assert points(display.chosen_["clusters"])[0][0] == model.n_clusters_
    else:
        assert "clusters" not in display.axes_


def test_detector_draws_what_its_estimator_chose(planted):
    detector = CORDetector(COR(n_partitions=12, random_state=0)).fit(planted.X)
    display = SelectionDisplay.from_estimator(detector)
    assert display.selection is detector.estimator_.selection_


def test_given_axes_take_a_panel_each(selection):
    _, axes = plt.subplots(3)
    display = SelectionDisplay.from_selection(selection, ax=axes, color="red")
    assert list(display.axes_.values()) == list(axes)
    lines = [line for each in display.lines_.values() for line in each]
    assert {line.get_color() for line in lines} == {"red"}
    with pytest.raises(
        ValueError, match="ax has 2 axes; it should have 3, for the pan"
    ):
        SelectionDisplay.from_selection(selection, ax=axes[:2])


def test_many_outliers_have_a_logarithmic_scale(selection):
    numbers = np.array([4000, 4000, 4000, 0, 0, 0])
    columns = selection.columns | {"n_outliers": numbers}
    many = replace(selection, columns=columns, n_outliers_=4000)
    display = SelectionDisplay.from_selection(many)
    assert display.axes_["objective"].get_xscale() == "symlog"
    display.figure_.canvas.draw()


def test_close_curves_share_a_name(selection):
    columns = selection.columns | {
        "objective": np.array([2.01, np.nan, 2.0, np.nan, 7.0, 6.0])
    }
    display = SelectionDisplay.from_selection(replace(selection, columns=columns))
    assert [each.get_text() for each in display.axes_["objective"].texts] == ["2"]
    display = SelectionDisplay.from_selection(selection)
    names = [each.get_text() for each in display.axes_["objective"].texts]
    assert names == ["2", "3"]


def test_numbers_that_were_given_are_refused(model, planted):
    message = "COR was fitted with n_clusters=3 and n_outliers=6, so nothing was chosen"
    with pytest.raises(ValueError, match=message):
        SelectionDisplay.from_estimator(model)
    with pytest.raises(NotFittedError):
        SelectionDisplay.from_estimator(COR())
    with pytest.raises(TypeError, match="KMeans has no selection_"):
        SelectionDisplay.from_estimator(KMeans(2, n_init=1).fit(planted.X))


def test_what_is_no_selection_is_refused(selection):
    with pytest.raises(
        TypeError, match="selection is a dict; it should be what corral"
    ):
        SelectionDisplay.from_selection(selection.columns)
    one = {name: values[2:3] for name, values in selection.columns.items()}
    bare = replace(selection, columns=one, gap_widths=np.zeros(4))
    with pytest.raises(ValueError, match="The selection has no curve to draw"):
        SelectionDisplay.from_selection(bare)
