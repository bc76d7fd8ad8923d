"""The paper's figures as small SVGs. matplotlib is loaded when one is drawn."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper import methods
from benchmarks.paper.datasets import MissingData, Tracks, load_tracks
from benchmarks.paper.grids import Grid
from benchmarks.paper.measures import MEASURES
from benchmarks.paper.run import Settings
from benchmarks.paper.score import Score, summarise
from benchmarks.paper.store import RunKey, Store

_STYLE = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    # Text stays text, and the same numbers give the same file.
    "svg.fonttype": "none",
    "svg.hashsalt": "corral",
}

# Thousands of tracks are drawn as a picture inside the SVG; as lines they take 10 MB.
_TRACK_DPI = 80


def draw_partitions(grid: Grid, scores: list[Score], settings: Settings) -> list[Path]:
    """Draw Figure 1: boxes over the seeds for each number of basic partitions."""
    plt = _load_pyplot()
    shape = (len(grid.measures), len(grid.datasets))
    figure, axes = plt.subplots(*shape, figsize=(3 * shape[1], 2 * shape[0]))
    for row, measure in zip(np.reshape(axes, shape), grid.measures, strict=True):
        for ax, dataset in zip(row, grid.datasets, strict=True):
            labels = [methods.find(method).label for _, method in grid.runs]
            boxes = [_collect(scores, dataset, run, measure) for run in grid.runs]
            ax.boxplot(boxes, tick_labels=labels, widths=0.5)
            ax.set(title=dataset, ylabel=f"{MEASURES[measure].label} (%)")
            ax.set(xlabel="basic partitions")
    return [_save(figure, settings.output, grid.name)]


def _collect(
    scores: list[Score], dataset: str, run: tuple[str, str], measure: str
) -> list[float]:
    return [
        score.values[measure]
        for score in scores
        if score.key.dataset == dataset
        and (score.key.recipe, score.key.method) == run
        and measure in score.values
    ]


def draw_strategies(grid: Grid, scores: list[Score], settings: Settings) -> list[Path]:
    """Draw Figure 2: bars for the strategies, with deviations over the seeds."""
    plt = _load_pyplot()
    summary = summarise(scores)
    n_sets = len(grid.datasets)
    figure, axes = plt.subplots(1, n_sets, figsize=(3.6 * n_sets, 2.6), squeeze=False)
    width = 0.8 / len(grid.runs)
    for ax, dataset in zip(axes[0], grid.datasets, strict=True):
        for place, (recipe, method) in enumerate(grid.runs):
            cells = [
                summary.get((dataset, recipe, method, name)) for name in grid.measures
            ]
            ax.bar(
                np.arange(len(cells)) + (place + 0.5) * width - 0.4,
                [0 if cell is None else cell.mean for cell in cells],
                width,
                yerr=[0 if cell is None else cell.sd or 0 for cell in cells],
                error_kw={"elinewidth": 0.7},
                label=methods.find(method).label,
            )
        ax.set_xticks(
            range(len(grid.measures)), [MEASURES[name].label for name in grid.measures]
        )
        ax.set(title=dataset, ylabel="%")
    axes[0][0].legend(frameon=False)
    return [_save(figure, settings.output, grid.name)]


def draw_flights(grid: Grid, scores: list[Score], settings: Settings) -> list[Path]:
    """Draw Figure 3: all tracks and the outlier tracks, one file for each set."""
    plt = _load_pyplot()
    store = Store(settings.output)
    paths = []
    for name in grid.datasets:
        try:
            tracks = load_tracks(name, settings.data_dir)
        except MissingData:
            continue
        figure, axes = plt.subplots(
            1, len(grid.runs), figsize=(3.2 * len(grid.runs), 3), squeeze=False
        )
        for ax, (recipe, method) in zip(axes[0], grid.runs, strict=True):
            result = store.read(RunKey(name, recipe, method, 0))
            if result is None:
                continue
            outliers = np.flatnonzero(result.labels == -1)
            _draw_tracks(ax, tracks, np.arange(len(result.labels)), "0.7", 0.3)
            _draw_tracks(ax, tracks, outliers, "tab:red", 0.6)
            title = f"{methods.find(method).label}: {len(outliers)} outliers"
            ax.set(title=title, xlabel="longitude", ylabel="latitude")
        suffix = name.partition("/")[2]
        paths.append(_save(figure, settings.output, f"{grid.name}_{suffix}"))
    return paths


def _draw_tracks(
    ax: Any, tracks: Tracks, flights: np.ndarray, color: str, width: float
) -> None:
    from matplotlib.collections import LineCollection

    points = np.column_stack([tracks.longitude, tracks.latitude])
    lines = [
        points[tracks.offsets[flight] : tracks.offsets[flight + 1]]
        for flight in flights
    ]
    ax.add_collection(
        LineCollection(lines, colors=color, linewidths=width, rasterized=True)
    )
    ax.autoscale()


def _load_pyplot() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise ImportError(
            'Figures need matplotlib. Install it with: pip install "corral[paper]"'
        ) from None
    matplotlib.use("agg")
    matplotlib.rcParams.update(_STYLE)
    from matplotlib import pyplot

    return pyplot


def _save(figure: Any, output: Path, name: str) -> Path:
    from matplotlib import pyplot

    path = output / "figures" / f"{name}.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None}, dpi=_TRACK_DPI)
    pyplot.close(figure)
    return path


FIGURES: dict[str, Callable[[Grid, list[Score], Settings], list[Path]]] = {
    "figure1": draw_partitions,
    "figure2": draw_strategies,
    "figure3": draw_flights,
}
