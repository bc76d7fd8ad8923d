"""What the displays share: axes, colours and marks. matplotlib is loaded on demand."""

from typing import Any

# Okabe and Ito's colours, which people with any kind of colour vision can tell apart.
# Black is left for the outliers.
COLORS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442")

# Clusters beyond the seventh get the same colours with the next mark.
MARKS = ("o", "s", "^", "D", "v", "P")

OUTLIER_COLOR = "black"
OUTLIER_MARK = "x"


def cluster_style(cluster: int) -> dict[str, str]:
    """Return the colour and the mark of a cluster."""
    return {
        "color": COLORS[cluster % len(COLORS)],
        "marker": MARKS[cluster // len(COLORS) % len(MARKS)],
    }


def open_axes(ax=None) -> Any:
    """Return the axes to draw on; new ones in a new figure if None."""
    try:
        from matplotlib import pyplot
    except ImportError:
        raise ImportError(
            'Pictures need matplotlib. Install it with: pip install "corral[plot]"'
        ) from None
    if ax is None:
        _, ax = pyplot.subplots(layout="constrained")
    return ax


def clear_spines(ax) -> None:
    """Leave out the frame where it bounds nothing."""
    ax.spines[["top", "right"]].set_visible(False)
