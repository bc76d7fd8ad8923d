"""The parts of a fit that are measured by themselves.

Two questions are about a part of a fit that has no public name: one pass of labelling,
and the K-means runs. This is the only file of the benchmarks that imports private
names, so a change inside the package is followed here and nowhere else.
"""

from collections.abc import Callable

import numpy as np
from scipy import sparse

from corral._assign import Layout
from corral._blocks import ArrayRows
from corral._kmeans_runs import (
    KMeansRuns,
    KMeansSettings,
    _draw_n_clusters,
    _draw_start_rows,
    _take_points,
    draw_order,
    fit_kmeans_runs,
)
from corral._ladder import make_ladder
from corral._threads import Threads, use_threads

N_PARTITIONS = 100

__all__ = [
    "N_PARTITIONS",
    "KMeansRuns",
    "Threads",
    "draw_starts",
    "fit_runs",
    "get_centers",
    "prepare_labelling",
    "use_threads",
]


def fit_runs(
    X: np.ndarray | sparse.csr_array,
    n_clusters: int,
    *,
    seed: int,
    threads: int,
    max_samples: int | None = None,
) -> KMeansRuns:
    """Run K-means many times, with 2 to ``2 * n_clusters`` clusters."""
    settings = _make_settings(n_clusters, max_samples)
    rng = np.random.default_rng(seed)
    with use_threads(threads) as pool:
        return fit_kmeans_runs(ArrayRows(X), None, settings, rng, pool)


def draw_starts(
    X: np.ndarray | sparse.csr_array, n_clusters: int, *, seed: int
) -> list[np.ndarray]:
    """Return the rows from which the runs of :func:`fit_runs` start."""
    settings = _make_settings(n_clusters, None)
    rng = np.random.default_rng(seed)
    order = draw_order(X.shape[0], None, None, rng)
    layout = Layout(np.sort(_draw_n_clusters(settings, len(order), rng)))
    with use_threads(1) as pool:
        space, rungs = make_ladder(
            ArrayRows(X),
            None,
            order,
            metric="euclidean",
            k_max=layout.n_clusters.max(),
            rng=rng,
            threads=pool,
        )
    rows = _draw_start_rows(rungs[0], space, layout, None, settings, rng)
    points = _take_points(rungs[0], space, rows) / space.scale
    points += 0 if space.shift is None else space.shift
    return [
        points[layout.cell(run, np.arange(k))]
        for run, k in enumerate(layout.n_clusters)
    ]


def _make_settings(n_clusters: int, max_samples: int | None) -> KMeansSettings:
    return KMeansSettings(
        n_runs=N_PARTITIONS,
        k_range=(2, 2 * n_clusters),
        fine_range=None,
        feature_share=None,
        metric="euclidean",
        init="random",
        max_iter=300,
        tol=1e-4,
        max_samples=max_samples,
    )


def get_centers(runs: KMeansRuns) -> list[np.ndarray]:
    """Return the centres of each run in the units of the rows, without unused ones."""
    shift = 0 if runs.space.shift is None else runs.space.shift
    in_use = np.isfinite(runs.half_norms)
    centers = []
    for run, n_clusters in enumerate(runs.n_labels):
        cells = runs.layout.cell(run, np.arange(n_clusters))
        centers.append(runs.centers[cells[in_use[cells]]] / runs.space.scale + shift)
    return centers


def prepare_labelling(
    runs: KMeansRuns, X: np.ndarray, pool: Threads
) -> Callable[[int], None]:
    """Return a function that labels all rows in all runs once."""
    labeller = runs.label_blocks(ArrayRows(X))
    workspaces = [labeller.make_workspace() for _ in range(pool.n_threads)]
    n_blocks = -(-len(X) // labeller.block_rows)

    def label_all(_: int) -> None:
        def work(number: int, share: range) -> None:
            for index in share:
                labeller.label(index, workspaces[number])

        pool.share(n_blocks, work)

    return label_all
