"""Why a number of clusters and of outliers was chosen, as curves of the candidates."""

from typing import Any

import numpy as np

from corral._criteria import MIN_TOLD
from corral._curves import (
    Curve,
    cluster_curve,
    gap_curve,
    outlier_curves,
)
from corral._selection import Selection
from corral.displays._drawing import COLORS, clear_spines, open_axes
from corral.displays._outcome import find_holder

# Width and height of a panel in inches.
_PANEL_SIZE = (4.2, 3.6)

# Names of curves are this far apart, as a share of the height of their axes.
_NAME_DISTANCE = 0.05

# Narrower gaps are below the picture.
_MIN_WIDTH = 0.3

# With more numbers of clusters, not each has a tick.
_MAX_TICKS = 16

# With more outliers, their scale is logarithmic.
_MAX_LINEAR = 100

_CHOSEN_COLOR = COLORS[5]

# Curves of the objective: that of the chosen number of clusters, and all others.
_CHOSEN_STYLE = {"color": COLORS[0], "linewidth": 2, "zorder": 2.5}
_OTHER_STYLE = {"color": "0.7", "linewidth": 1, "markersize": 3}


class SelectionDisplay:
    """Curves that say why a number of clusters and of outliers was chosen.

    *clusters*: how well the two clusters that are hardest to tell apart are told apart,
    by the number of clusters. The line is the least that clusters need as a rule, and
    the chosen number is the last before the steepest fall.

    *outliers*: how wide the gap below the strangest rows is, by the number of rows
    above it. A gap above the line is a sign of outliers.

    *objective*: the mean cost of a row that is kept, by the number of outliers, with a
    curve for each number of clusters. Where curves run together, one cluster more
    brings nothing.

    A panel is left out if its number was given, or its curve has a single point.

    It is recommended to use :meth:`from_estimator` or :meth:`from_selection`. All
    parameters are stored as attributes.

    Parameters
    ----------
    selection : Selection
        What was chosen, and among what.

    Attributes
    ----------
    axes_ : dict of str to matplotlib Axes
        The panels by their names.
    lines_ : dict of str to list of matplotlib Line2D
        The curves of each panel.
    chosen_ : dict of str to matplotlib Line2D
        The mark of what was chosen, in the panels that have one.
    figure_ : matplotlib Figure
        Figure that holds the panels.

    See Also
    --------
    OutlierCostDisplay : The scores of all rows, with the cut.

    Examples
    --------
    >>> from corral import select
    >>> from corral.datasets import make_blobs_with_outliers
    >>> from corral.displays import SelectionDisplay
    >>> X, y = make_blobs_with_outliers(
    ...     300, n_clusters=4, n_outliers=12, random_state=0
    ... )
    >>> display = SelectionDisplay.from_selection(select(X, random_state=0))
    >>> list(display.axes_)[:2]
    ['clusters', 'outliers']
    """

    def __init__(self, *, selection):
        self.selection = selection

    @classmethod
    def from_estimator(cls, estimator, *, ax=None, **kwargs):
        """Draw how a fitted estimator chose its numbers.

        Parameters
        ----------
        estimator : COR, or what holds one
            Fitted with "auto" for one number or both.
        ax : matplotlib Axes or sequence of them, default=None
            As in :meth:`plot`.
        **kwargs : dict
            Passed to :meth:`plot`.

        Returns
        -------
        display : SelectionDisplay
            What was drawn.
        """
        holder = find_holder(estimator, "selection_")
        if holder.selection_ is None:
            raise ValueError(
                f"{type(holder).__name__} was fitted with "
                f"n_clusters={holder.n_clusters_} and n_outliers={holder.n_outliers_}, "
                'so nothing was chosen. Fit it with "auto", or use from_selection with '
                "what corral.select returns."
            )
        return cls.from_selection(holder.selection_, ax=ax, **kwargs)

    @classmethod
    def from_selection(cls, selection, *, ax=None, **kwargs):
        """Draw what :func:`corral.select` returned.

        Parameters
        ----------
        selection : Selection
            What was chosen, and among what.
        ax : matplotlib Axes or sequence of them, default=None
            As in :meth:`plot`.
        **kwargs : dict
            Passed to :meth:`plot`.

        Returns
        -------
        display : SelectionDisplay
            What was drawn.
        """
        if not isinstance(selection, Selection):
            raise TypeError(
                f"selection is a {type(selection).__name__}; it should be what "
                "corral.select returns, or selection_ of a fitted COR."
            )
        return cls(selection=selection).plot(ax, **kwargs)

    def plot(self, ax=None, **kwargs):
        """Draw the panels.

        Parameters
        ----------
        ax : matplotlib Axes or sequence of them, default=None
            One for each panel; a single one is divided among them. None makes a new
            figure.
        **kwargs : dict
            Passed to ``plot`` of matplotlib, for the curves.

        Returns
        -------
        display : SelectionDisplay
            This object.
        """
        curves = self._list_curves()
        panels = _open_panels(ax, list(curves))
        self.axes_ = dict(zip(curves, panels, strict=True))
        self.lines_, self.chosen_ = {}, {}
        draw: dict[str, Any] = {
            "clusters": self._draw_clusters,
            "outliers": self._draw_outliers,
            "objective": self._draw_objective,
        }
        for name, axes in self.axes_.items():
            self.lines_[name] = draw[name](axes, curves[name], kwargs)
            clear_spines(axes)
        self.figure_ = next(iter(self.axes_.values())).figure
        return self

    def _list_curves(self) -> dict[str, Any]:
        """Return what there is to draw, by panel."""
        curves = {
            "clusters": cluster_curve(self.selection, "told"),
            "outliers": gap_curve(self.selection),
            "objective": outlier_curves(self.selection, "objective"),
        }
        found = {name: each for name, each in curves.items() if each}
        if not found:
            raise ValueError(
                "The selection has no curve to draw: each number had one candidate."
            )
        return found

    def _draw_clusters(self, ax, told: Curve, kwargs: dict) -> list:
        lines = [_plot(ax, told, kwargs, label="told apart")]
        stability = cluster_curve(self.selection, "stability")
        if stability is not None:
            style = {"linestyle": ":", "color": COLORS[2], **kwargs}
            lines.append(_plot(ax, stability, style, label="stability"))
        n_clusters = self.selection.n_clusters_
        self._mark("clusters", ax, told, n_clusters, f"{n_clusters} chosen")
        _draw_level(ax, MIN_TOLD, f"the least that is needed, {MIN_TOLD:.2f}")
        ax.set_ylim(min(0.0, *ax.get_ylim()), 1.05)
        if len(told.numbers) <= _MAX_TICKS:
            ax.set_xticks(told.numbers)
        ax.set(
            xlabel="clusters",
            ylabel="told apart, worst pair",
            title="How many clusters?",
        )
        ax.legend(loc="lower left", frameon=False)
        return lines

    def _draw_outliers(self, ax, gaps: Curve, kwargs: dict) -> list:
        lines = [_plot(ax, gaps, {"marker": "", **kwargs})]
        n_outliers = self.selection.n_outliers_
        self._mark("outliers", ax, gaps, n_outliers, f"{n_outliers:,} chosen")
        threshold = self.selection.gap_threshold
        _draw_level(ax, threshold, f"a sign above {threshold:.0f}")
        ax.set(xscale="log", yscale="log")
        # Narrow gaps say nothing, and the names need room above the widest.
        low, high = ax.get_ylim()
        ax.set_ylim(max(low, _MIN_WIDTH), 4 * max(high, threshold))
        ax.xaxis.set_major_formatter("{x:,.0f}")
        ax.yaxis.set_major_formatter("{x:,g}")
        ax.set(
            xlabel="rows above the gap",
            ylabel="width of the gap, 1 is expected",
            title="How many outliers?",
        )
        ax.legend(loc="upper left", frameon=False)
        return lines

    def _draw_objective(self, ax, curves: dict[int, Curve], kwargs: dict) -> list:
        n_clusters = self.selection.n_clusters_
        lines = [
            _plot(ax, curve, {**_OTHER_STYLE, **kwargs}, label=str(k))
            for k, curve in curves.items()
        ]
        if n_clusters in curves:
            chosen = curves[n_clusters]
            line = lines[list(curves).index(n_clusters)]
            line.set(**{**_CHOSEN_STYLE, **kwargs})
            self._mark("objective", ax, chosen, self.selection.n_outliers_, None)
        if max(curve.numbers[-1] for curve in curves.values()) > _MAX_LINEAR:
            ax.set_xscale("symlog", linthresh=_MAX_LINEAR / 10)
            ax.xaxis.set_major_formatter("{x:,.0f}")
        _name_ends(ax, curves, n_clusters)
        ax.set(
            xlabel="outliers",
            ylabel="mean cost of a kept row, by clusters",
            title="What does it cost?",
        )
        return lines

    def _mark(
        self, panel: str, ax, curve: Curve, number: int, label: str | None
    ) -> None:
        value = curve.value_at(number)
        if value is None:
            return
        (self.chosen_[panel],) = ax.plot(
            [number],
            [value],
            linestyle="none",
            marker="D",
            markersize=8,
            color=_CHOSEN_COLOR,
            markeredgecolor="white",
            zorder=3,
            label=label,
        )


def _plot(ax, curve: Curve, style: dict, *, label=None):
    style = {"color": COLORS[0], "linewidth": 1.5, "marker": "o", **style}
    style = {"markersize": 4, "label": label, **style}
    (line,) = ax.plot(curve.numbers, curve.values, **style)
    return line


def _draw_level(ax, level: float, label: str) -> None:
    ax.axhline(level, color="0.35", linestyle="--", linewidth=1, label=label)


def _open_panels(ax, names: list[str]) -> list:
    """Return axes for the panels: new ones, those given, or parts of a single one."""
    if ax is None:
        return _make_panels(len(names))
    if not hasattr(ax, "get_subplotspec"):
        given = list(np.ravel(ax))
        if len(given) != len(names):
            raise ValueError(
                f"ax has {len(given)} axes; it should have {len(names)}, for the "
                f"panels {', '.join(names)}."
            )
        return given
    return _divide(ax, len(names))


def _make_panels(n_panels: int) -> list:
    ax = open_axes()
    ax.figure.set_size_inches(n_panels * _PANEL_SIZE[0], _PANEL_SIZE[1])
    # The layout of our own figure makes room for the words.
    return _divide(ax, n_panels, wspace=0.04)


def _divide(ax, n_panels: int, *, wspace: float = 0.4) -> list:
    """Put panels side by side where axes stand, and leave the axes without a mark."""
    ax.set_axis_off()
    grid = ax.get_subplotspec().subgridspec(1, n_panels, wspace=wspace)
    return [ax.figure.add_subplot(each) for each in grid]


def _name_ends(ax, curves: dict[int, Curve], chosen: int) -> None:
    """Write the number of clusters at the end of curves that are not too close."""
    low, high = ax.get_ylim()
    taken: list[float] = []
    # The chosen one first, then its neighbours.
    for k in sorted(curves, key=lambda k: abs(k - chosen)):
        x, y = curves[k].numbers[-1], float(curves[k].values[-1])
        if any(abs(y - other) < _NAME_DISTANCE * (high - low) for other in taken):
            continue
        taken.append(y)
        is_chosen = k == chosen
        ax.annotate(
            str(k),
            (x, y),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=COLORS[0] if is_chosen else "0.35",
            weight="bold" if is_chosen else "normal",
        )
