"""The command ``python -m benchmarks.choice.real``.

On the paper's 12 real sets, and on 14 sets with noise in the plane: the true numbers of
clusters and outliers, what ``COR()`` chooses, and what others choose. Rows are prepared
as for the paper's tables (columns standardised; texts as tf-idf, by cosine) and
shuffled with the seed. The others get texts as 64 components (SVD) of unit length.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import normalize

from benchmarks.choice._rivals import K_ONLY, Found, choose_by_hdbscan
from benchmarks.paper import datasets
from benchmarks.paper.datasets import Dataset, MissingData, Rows
from benchmarks.paper.recipes import OURS, prepare, shuffle
from corral import COR
from corral.metrics import nmi_score, outlier_jaccard_score

_PAPER = (
    "ecoli",
    "glass",
    "yeast",
    "shuttle",
    "kddcup",
    "tr11",
    "tr23",
    "re0",
    "re1",
    "wap",
    "fbis",
    "k1b",
)
_NOISE = tuple(name for name in datasets.names() if name.startswith("noise/"))
_QUICK = (
    "ecoli",
    "glass",
    "tr23",
    "noise/gagolews_fcps_target_labels1",
    "noise/gagolews_sipu_flame_labels1",
)

_N_COMPONENTS = 64
# With its default of 5 rows HDBSCAN finds hundreds of clusters among many rows.
_LEAST_SHARE = 0.01
_HEADER = (
    "set",
    "rows",
    "K, o",
    "COR: K, o",
    "NMI",
    "Jaccard",
    "HDBSCAN: K, o",
    "HDBSCAN 1 %: K, o",
    *K_ONLY,
    "best of three",
)
_NOTES = (
    "NMI and outlier Jaccard of COR in per cent. HDBSCAN: scikit-learn's defaults "
    "(min_cluster_size=5), o is its noise; 1 %: min_cluster_size is 1 % of the rows, "
    "at least 5. More than 20,000 rows: on 20,000 of them, noise scaled up. Silhouette "
    "(K from 2), gap (10 references in the box along principal axes) and X-means "
    "(grown from 1 and from 2): up to 10 clusters, on 2,000 rows at most. Best of "
    "three: the one nearest to the truth, picked with the truth in hand. o near: "
    "within 25 % or 3 rows."
)


class Outcome(NamedTuple):
    """What was chosen for a set, beside the truth.

    Attributes
    ----------
    name : str
    n_samples : int
    truth : Found
    ours : Found
    nmi, jaccard : float
        Of the labels of COR, in per cent.
    hdbscan, hdbscan_large : Found
        With defaults, and with clusters of at least a hundredth of the rows.
    k_only : dict of str to int
        The numbers of clusters of the other rivals.
    seconds : dict of str to float
        By method.
    """

    name: str
    n_samples: int
    truth: Found
    ours: Found
    nmi: float
    jaccard: float
    hdbscan: Found
    hdbscan_large: Found
    k_only: dict[str, int]
    seconds: dict[str, float]

    @property
    def best(self) -> int:
        """The number of clusters of the rivals for K that is nearest to the truth."""
        return min(self.k_only.values(), key=lambda k: abs(k - self.truth.n_clusters))


def judge(dataset: Dataset, seed: int) -> Outcome:
    """Choose both numbers for a data set in every way.

    Parameters
    ----------
    dataset : Dataset
    seed : int

    Returns
    -------
    outcome : Outcome
    """
    order = shuffle(dataset.n_samples, seed)
    X, y = prepare(dataset, OURS)[order], dataset.y[order]
    metric, _ = OURS.metrics(dataset.kind)
    dense = _to_components(X, seed) if dataset.kind == "text" else X
    clock = _Clock()
    model = clock.time(
        "COR", lambda: COR(metric=metric, n_jobs=1, random_state=seed).fit(X)
    )
    return Outcome(
        dataset.name,
        dataset.n_samples,
        Found(dataset.n_clusters, dataset.n_outliers),
        Found(model.n_clusters_, model.n_outliers_),
        100 * nmi_score(y, model.labels_),
        100 * outlier_jaccard_score(y, model.labels_),
        clock.time("HDBSCAN", lambda: choose_by_hdbscan(dense, seed)),
        clock.time("HDBSCAN 1 %", lambda: choose_by_hdbscan(dense, seed, _LEAST_SHARE)),
        {
            name: clock.time(name, lambda choose=choose: choose(dense, seed))
            for name, choose in K_ONLY.items()
        },
        clock.seconds,
    )


def format_table(outcomes: list[Outcome]) -> str:
    """Return the sets as a Markdown table, with how often each way was right."""
    lines = [
        f"| {' | '.join(_HEADER)} |",
        f"|{'---|' * len(_HEADER)}",
        *(_format_row(_describe(each)) for each in outcomes),
        _format_row(_count("K exact", outcomes, off=0)),
        _format_row(_count("K within 1", outcomes, off=1)),
        _format_row(_count_near(outcomes)),
    ]
    return "\n".join(lines)


class _Clock:
    """Notes how long each method takes."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    def time(self, name: str, call: Callable):
        start = time.perf_counter()
        result = call()
        self.seconds[name] = time.perf_counter() - start
        return result


def _to_components(X: Rows, seed: int) -> np.ndarray:
    """Return texts as few components; of unit length, so distances go with cosines."""
    n_components = min(_N_COMPONENTS, min(X.shape) - 1)
    return normalize(TruncatedSVD(n_components, random_state=seed).fit_transform(X))


def _describe(outcome: Outcome) -> tuple[str, ...]:
    return (
        outcome.name.removeprefix("noise/"),
        f"{outcome.n_samples:,}",
        _write(outcome.truth),
        _write(outcome.ours),
        f"{outcome.nmi:.1f}",
        f"{outcome.jaccard:.1f}",
        _write(outcome.hdbscan),
        _write(outcome.hdbscan_large),
        *map(str, outcome.k_only.values()),
        str(outcome.best),
    )


def _write(found: Found) -> str:
    return f"{found.n_clusters}, {found.n_outliers:,}"


def _format_row(cells: tuple[str, ...]) -> str:
    return f"| {' | '.join(cells)} |"


def _count(what: str, outcomes: list[Outcome], off: int) -> tuple[str, ...]:
    """Count the sets on which each way has K within so many of the truth."""

    def count(choose: Callable[[Outcome], int]) -> str:
        return str(
            sum(abs(choose(each) - each.truth.n_clusters) <= off for each in outcomes)
        )

    return (
        what,
        "",
        str(len(outcomes)),
        count(lambda each: each.ours.n_clusters),
        "",
        "",
        count(lambda each: each.hdbscan.n_clusters),
        count(lambda each: each.hdbscan_large.n_clusters),
        *(count(lambda each, name=name: each.k_only[name]) for name in K_ONLY),
        count(lambda each: each.best),
    )


def _count_near(outcomes: list[Outcome]) -> tuple[str, ...]:
    """Count the sets on which each way has about the true number of outliers."""

    def count(choose: Callable[[Outcome], Found]) -> str:
        return str(
            sum(
                abs(choose(each).n_outliers - each.truth.n_outliers)
                <= max(3, 0.25 * each.truth.n_outliers)
                for each in outcomes
            )
        )

    return (
        "o near",
        "",
        str(len(outcomes)),
        count(lambda each: each.ours),
        "",
        "",
        count(lambda each: each.hdbscan),
        count(lambda each: each.hdbscan_large),
        *[""] * (len(K_ONLY) + 1),
    )


def _run(name: str, seed: int) -> Outcome | str:
    """Return what was chosen for a set, or why nothing was."""
    try:
        return judge(datasets.load(name), seed)
    except MissingData as reason:
        return f"{name}: skipped: {reason}"


def _log(found: Outcome | str) -> None:
    if not isinstance(found, str):
        seconds = [f"{name} {value:.1f} s" for name, value in found.seconds.items()]
        found = f"{found.name}: {', '.join(seconds)}"
    print(found, file=sys.stderr, flush=True)


def main() -> None:
    """Choose for all sets, and print a table for each of the two suites."""
    known = [*_PAPER, *_NOISE]
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.choice.real", description=__doc__
    )
    parser.add_argument(
        "--sets",
        nargs="+",
        choices=known,
        metavar="NAME",
        help=f"only these sets: {', '.join(known)}",
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="five small sets")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    chosen = arguments.sets or (_QUICK if arguments.quick else known)
    outcomes = []
    for found in Parallel(n_jobs=arguments.processes, return_as="generator")(
        delayed(_run)(name, arguments.seed) for name in chosen
    ):
        _log(found)
        if isinstance(found, Outcome):
            outcomes.append(found)
    for title, names in {"The paper's sets": _PAPER, "Noise": _NOISE}.items():
        here = [each for each in outcomes if each.name in names]
        if here:
            print(f"{title}, seed {arguments.seed}:\n\n{format_table(here)}\n")
    print(_NOTES)


if __name__ == "__main__":
    main()
