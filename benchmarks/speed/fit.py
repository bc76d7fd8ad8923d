"""A whole default fit, against fits of scikit-learn that answer a part of it."""

from collections.abc import Iterator

from sklearn.cluster import HDBSCAN, KMeans
from sklearn.ensemble import IsolationForest

from benchmarks.speed._data import load_standardised
from benchmarks.speed._measure import (
    Options,
    Row,
    alternate,
    at_most,
    middle,
    rows_or_note,
    times_faster,
)
from corral import COR


def measure(options: Options) -> list[Row]:
    """Answer: what does a fit cost beside one K-means fit and beside detectors?"""
    return [
        *rows_or_note("fit: kddcup", lambda: _measure_kddcup(options)),
        *rows_or_note("fit: shuttle", lambda: _measure_shuttle(options)),
    ]


def _measure_kddcup(options: Options) -> Iterator[Row]:
    X = load_standardised("kddcup")

    def fit_ours(seed: int) -> None:
        COR(n_clusters=3, n_outliers=8752, random_state=seed).fit(X)

    def fit_kmeans(seed: int) -> None:
        KMeans(n_clusters=3, n_init=1, random_state=seed).fit(X)

    def fit_forest(seed: int, n_jobs: int | None = None) -> None:
        forest = IsolationForest(
            n_estimators=100, max_samples=200, n_jobs=n_jobs, random_state=seed
        )
        forest.fit(X).score_samples(X)

    def fit_forest_on_threads(seed: int) -> None:
        fit_forest(seed, options.threads)

    ours, kmeans, forest, forest_on_threads = middle(
        alternate(
            options.rounds(3, 7),
            fit_ours,
            fit_kmeans,
            fit_forest,
            fit_forest_on_threads,
        )
    )
    yield Row("fit: kddcup, COR / one KMeans fit", ours, kmeans, at_most(3))
    yield Row(
        "fit: kddcup, COR / IsolationForest, its default n_jobs",
        ours,
        forest,
        times_faster(1.5),
    )
    yield Row(
        "fit: kddcup, COR / IsolationForest, as many threads",
        ours,
        forest_on_threads,
        times_faster(1.5),
    )


def _measure_shuttle(options: Options) -> Iterator[Row]:
    what = "fit: shuttle, COR / HDBSCAN"
    X = load_standardised("shuttle")
    # Half a minute a round.
    if options.quick:
        yield Row(what, note="left out by --quick")
        return

    def fit_ours(seed: int) -> None:
        COR(n_clusters=3, n_outliers=244, random_state=seed).fit(X)

    def fit_hdbscan(_: int) -> None:
        HDBSCAN(n_jobs=options.threads, copy=True).fit(X)

    seconds = alternate(2, fit_ours, fit_hdbscan)
    yield Row(what, *middle(seconds), times_faster(20))
