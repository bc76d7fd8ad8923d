"""What all displays have in common: scikit-learn's conventions."""

import inspect
import re
import subprocess
import sys

import numpy as np
import pytest
from matplotlib import pyplot as plt
from sklearn.exceptions import NotFittedError

import corral.displays
from corral import COR
from corral.displays import (
    ClusterMapDisplay,
    ConsensusDisplay,
    OutlierCostDisplay,
    PartitionCountDisplay,
    SelectionDisplay,
)

DISPLAYS = [getattr(corral.displays, name) for name in corral.displays.__all__]
IDS = corral.displays.__all__


def draw(display, model, X, **kwargs):
    """Call from_estimator of any display."""
    if display is OutlierCostDisplay:
        return display.from_estimator(model, **kwargs)
    if display is SelectionDisplay:
        chooser = COR(n_partitions=12, random_state=0).fit(X)
        return display.from_estimator(chooser, **kwargs)
    if display is PartitionCountDisplay:
        kwargs |= {"counts": (4, 6), "n_repeats": 2}
    return display.from_estimator(model, X, **kwargs)


def first_axes(drawn):
    """Return the axes of a display, the first of several."""
    return drawn.ax_ if hasattr(drawn, "ax_") else next(iter(drawn.axes_.values()))


@pytest.mark.parametrize("display", DISPLAYS, ids=IDS)
def test_draws_on_new_axes_or_on_given_ones(display, model, planted):
    drawn = draw(display, model, planted.X)
    assert isinstance(drawn, display)
    assert first_axes(drawn).figure is drawn.figure_
    assert first_axes(drawn).has_data()
    figure, ax = plt.subplots()
    n_figures = len(plt.get_fignums())
    again = draw(display, model, planted.X, ax=ax)
    assert again.figure_ is figure
    # Several panels share the place of the axes.
    assert first_axes(again) is ax or display is SelectionDisplay
    assert len(plt.get_fignums()) == n_figures


@pytest.mark.parametrize("display", DISPLAYS, ids=IDS)
def test_can_be_drawn_again(display, model, planted):
    drawn = draw(display, model, planted.X)
    first = first_axes(drawn)
    assert drawn.plot() is drawn
    assert first_axes(drawn) is not first
    drawn.figure_.canvas.draw()


@pytest.mark.parametrize("display", DISPLAYS, ids=IDS)
def test_parameters_are_attributes(display, model, planted):
    drawn = draw(display, model, planted.X)
    names = list(inspect.signature(display).parameters)
    assert names
    assert all(hasattr(drawn, name) for name in names)
    artists = {name for name in vars(drawn) if name.endswith("_")}
    assert "figure_" in artists
    assert {"ax_", "axes_"} & artists
    assert all(f"{name} : " in display.__doc__ for name in [*names, *artists])


@pytest.mark.parametrize("display", DISPLAYS, ids=IDS)
@pytest.mark.parametrize("name", ["__init__", "from_estimator", "plot"])
def test_docstrings_have_the_parameters_and_their_defaults(display, name):
    documented = display if name == "__init__" else getattr(display, name)
    text = re.sub(r"\\\n\s+", "", inspect.getdoc(documented))
    for parameter in inspect.signature(documented).parameters.values():
        if parameter.name == "self":
            continue
        (line,) = re.findall(rf"^(?:\*\*)?{parameter.name} : .*", text, re.M)
        if parameter.default is not inspect.Parameter.empty:
            default = str(parameter.default).replace("'", '"')
            assert line.replace('"cividis"', "cividis").endswith(f"default={default}")


@pytest.mark.parametrize(
    "display",
    [ClusterMapDisplay, ConsensusDisplay, OutlierCostDisplay],
    ids=lambda display: display.__name__,
)
def test_model_that_is_not_fitted_is_refused(display, planted):
    with pytest.raises(NotFittedError, match="COR"):
        draw(display, COR(3), planted.X)


@pytest.mark.parametrize(
    "display",
    [ClusterMapDisplay, ConsensusDisplay],
    ids=lambda display: display.__name__,
)
def test_rows_of_another_length_are_refused(display, model, planted):
    message = "X has 9 rows but COR was fitted on 186. Give the rows of the fit, or use"
    with pytest.raises(ValueError, match=message):
        draw(display, model, planted.X[:9])
    with pytest.raises(ValueError, match="n_rows=0 should be at least 1"):
        draw(display, model, planted.X, n_rows=0)


@pytest.mark.parametrize("display", DISPLAYS, ids=IDS)
def test_missing_matplotlib_says_what_to_install(display, model, planted, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "corral\[plot\]"'):
        draw(display, model, planted.X)


def test_import_brings_no_matplotlib():
    code = "import sys, corral.displays; print('matplotlib' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_random_state_chooses_the_rows(model, planted):
    for display in (ClusterMapDisplay, ConsensusDisplay):
        one, same, other = (
            display.from_estimator(model, planted.X, n_rows=40, random_state=seed).rows
            for seed in (1, 1, 2)
        )
        np.testing.assert_array_equal(one, same)
        assert set(one) != set(other)
        assert len(set(one)) == 40
