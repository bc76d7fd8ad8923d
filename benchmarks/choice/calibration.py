"""The command ``python -m benchmarks.choice.calibration``.

Are confidences right: of the rows with a confidence of about 0.8, are about 80 % right?
The data are generated: normal clusters that overlap more or less, with outliers strewn
over the box of the rows, in small groups, or both. K and o are given to the fit.

A label is right if the row's true class is the one that its nearest cluster is matched
with; rows that are truly outliers do not count. Being an outlier means being planted as
one. Planted rows that fell within two standard deviations of a cluster's centre cannot
be told by any method: their share is reported, and the table leaves them out.
"""

import argparse
import sys
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.optimize import linear_sum_assignment
from scipy.spatial.distance import cdist
from sklearn.metrics.cluster import contingency_matrix

from corral import COR

# Nothing was ever chosen by looking at the test seeds.
DEVELOPMENT_SEEDS = range(36)
TEST_SEEDS = range(20_000, 20_072)

LABEL_EDGES = (0, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 1)
OUTLIER_EDGES = (0, 0.03, 0.1, 0.3, 0.5, 0.7, 0.9, 1)

_SIZES = (300, 600, 1200, 3000)
_FEATURES = (2, 3, 5, 10, 20)
_SHARES = (0.0, 0.01, 0.02, 0.05, 0.1)
_PLACES = ("box", "groups", "both")
# Mahalanobis distance to a centre below which an outlier counts as hidden.
_HIDDEN = 2.0


class Case(NamedTuple):
    """Rows and their truth.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        The class from 0 up; -1 for outliers.
    is_hidden : boolean ndarray of shape (n_samples,)
        Whether an outlier lies inside a cluster.
    """

    X: np.ndarray
    y: np.ndarray
    is_hidden: np.ndarray


class Judged(NamedTuple):
    """Confidences, and whether what they speak of is true.

    Attributes
    ----------
    confidence : ndarray of shape (n,)
    is_right : boolean ndarray of shape (n,)
    """

    confidence: np.ndarray
    is_right: np.ndarray


class Outcome(NamedTuple):
    """What the confidences of a case are worth.

    Attributes
    ----------
    label : Judged
        Rows that are truly not outliers.
    outlier : Judged
        All rows but hidden outliers.
    outlier_all : Judged
        All rows.
    n_outliers, n_hidden : int
        Planted ones, and those of them that are hidden.
    """

    label: Judged
    outlier: Judged
    outlier_all: Judged
    n_outliers: int
    n_hidden: int


class Bin(NamedTuple):
    """The rows whose confidence is between two edges."""

    low: float
    high: float
    n_rows: int
    confidence: float
    right: float


def confidences(model: COR) -> tuple[np.ndarray, np.ndarray]:
    """Return the confidences of a fit: to be an outlier, and in the nearest cluster."""
    return model.outlier_confidence_, model.label_confidence_


def make_case(seed: int) -> Case:
    """Draw normal clusters whose nearest centres are 2 to 6 deviations apart.

    Parameters
    ----------
    seed : int

    Returns
    -------
    case : Case
    """
    rng = np.random.default_rng([seed, 9])
    n_samples, n_features = int(rng.choice(_SIZES)), int(rng.choice(_FEATURES))
    n_outliers = round(float(rng.choice(_SHARES)) * n_samples)
    n_clusters = int(rng.integers(2, 7))
    centers = _draw_centers(n_clusters, n_features, rng.uniform(2, 6), rng)
    shapes = [_draw_shape(n_features, rng) for _ in range(n_clusters)]
    shares = rng.uniform(1, rng.uniform(1, 5), n_clusters)
    y = rng.choice(n_clusters, n_samples - n_outliers, p=shares / shares.sum())
    moves = rng.normal(size=(len(y), n_features))
    rows = centers[y] + np.einsum("ij,ijk->ik", moves, np.array(shapes)[y])
    outliers = _draw_outliers(rows, n_outliers, rng)
    is_hidden = _measure_depth(outliers, centers, shapes) < _HIDDEN
    order = rng.permutation(n_samples)
    return Case(
        np.concatenate([rows, outliers])[order],
        np.concatenate([y, np.full(n_outliers, -1)])[order],
        np.concatenate([np.zeros(len(y), dtype=bool), is_hidden])[order],
    )


def judge(case: Case, seed: int) -> Outcome:
    """Fit with the true numbers, and look what came of the confidences.

    Parameters
    ----------
    case : Case
    seed : int

    Returns
    -------
    outcome : Outcome
    """
    is_outlier = case.y == -1
    n_clusters = len(np.unique(case.y[~is_outlier]))
    model = COR(
        n_clusters, n_outliers=int(is_outlier.sum()), n_jobs=1, random_state=seed
    ).fit(case.X)
    outlier, label = confidences(model)
    is_right = match_classes(case.y[~is_outlier], model.nearest_labels_[~is_outlier])
    return Outcome(
        Judged(label[~is_outlier], is_right),
        Judged(outlier[~case.is_hidden], is_outlier[~case.is_hidden]),
        Judged(outlier, is_outlier),
        int(is_outlier.sum()),
        int(case.is_hidden.sum()),
    )


def match_classes(classes: np.ndarray, clusters: np.ndarray) -> np.ndarray:
    """Return which rows are in the cluster that is matched with their class.

    Classes and clusters are matched one to one so that most rows agree (Hungarian
    assignment).

    Parameters
    ----------
    classes, clusters : integer ndarrays of shape (n,)

    Returns
    -------
    is_right : boolean ndarray of shape (n,)
    """
    class_names, class_index = np.unique(classes, return_inverse=True)
    _, cluster_index = np.unique(clusters, return_inverse=True)
    counts = contingency_matrix(class_index, cluster_index)
    matched = np.full(counts.shape[1], -1)
    class_of, cluster_of = linear_sum_assignment(counts, maximize=True)
    matched[cluster_of] = class_of
    return matched[cluster_index] == class_index


def count_bins(judged: Judged, edges: tuple[float, ...]) -> list[Bin]:
    """Return the bins that have rows; a bin has its lower edge, the last both.

    Parameters
    ----------
    judged : Judged
    edges : tuple of float
        From 0 to 1.

    Returns
    -------
    bins : list of Bin
    """
    place = np.digitize(judged.confidence, edges[1:-1])
    bins = []
    for number, (low, high) in enumerate(zip(edges[:-1], edges[1:], strict=True)):
        here = place == number
        if here.any():
            mean = float(judged.confidence[here].mean())
            right = float(judged.is_right[here].mean())
            bins.append(Bin(low, high, int(here.sum()), mean, right))
    return bins


def calibration_error(bins: list[Bin]) -> float:
    """Return the expected calibration error.

    It is the mean distance between confidence and share right, over all rows of bins.
    """
    n_rows = sum(each.n_rows for each in bins)
    return (
        sum(each.n_rows * abs(each.confidence - each.right) for each in bins) / n_rows
    )


def format_table(bins: list[Bin], truth: str) -> str:
    """Return the bins as a Markdown table."""
    lines = [
        f"| confidence | rows | mean confidence | {truth} |",
        "|---|---|---|---|",
        *(
            f"| {each.low:g} to {each.high:g} | {each.n_rows:,} "
            f"| {each.confidence:.3f} | {each.right:.3f} |"
            for each in bins
        ),
    ]
    return "\n".join(lines)


def format_report(outcomes: list[Outcome]) -> str:
    """Return both tables, each with its calibration error."""
    label = count_bins(_join([each.label for each in outcomes]), LABEL_EDGES)
    outlier = count_bins(_join([each.outlier for each in outcomes]), OUTLIER_EDGES)
    everything = _join([each.outlier_all for each in outcomes])
    n_outliers = sum(each.n_outliers for each in outcomes)
    n_hidden = sum(each.n_hidden for each in outcomes)
    with_hidden = calibration_error(count_bins(everything, OUTLIER_EDGES))
    return "\n".join(
        [
            "Labels, rows that are truly not outliers:",
            "",
            format_table(label, "share right"),
            "",
            f"Expected calibration error {calibration_error(label):.4f}.",
            "",
            "Outliers, all rows but the planted ones that lie inside a cluster:",
            "",
            format_table(outlier, "share outliers"),
            "",
            f"Expected calibration error {calibration_error(outlier):.4f}, with all "
            f"planted rows {with_hidden:.4f}. Left out, as nearer than {_HIDDEN:g} "
            f"standard deviations to a centre: {n_hidden} of {n_outliers} planted rows "
            f"({n_hidden / max(n_outliers, 1):.1%}).",
        ]
    )


def _draw_centers(
    n_clusters: int, n_features: int, gap: float, rng: np.random.Generator
) -> np.ndarray:
    """Add centres one by one, about a gap from one of them and no nearer to any."""
    centers = np.zeros((1, n_features))
    while len(centers) < n_clusters:
        step = rng.normal(size=n_features)
        step *= gap * rng.uniform(1, 1.3) / np.linalg.norm(step)
        place = centers[[rng.integers(len(centers))]] + step
        if cdist(place, centers).min() >= gap:
            centers = np.concatenate([centers, place])
    return centers


def _draw_shape(n_features: int, rng: np.random.Generator) -> np.ndarray:
    """Return what makes round rows long; standard deviations of 0.8 to 1.25."""
    turn = np.linalg.qr(rng.normal(size=(n_features, n_features)))[0]
    return np.diag(1.25 ** rng.uniform(-1, 1, n_features)) @ turn


def _draw_outliers(
    rows: np.ndarray, n_outliers: int, rng: np.random.Generator
) -> np.ndarray:
    """Strew rows over the box, in and between clusters, or in groups in a wider one."""
    kind = rng.choice(_PLACES)
    low, high = rows.min(axis=0), rows.max(axis=0)
    n_strewn = {"box": n_outliers, "groups": 0, "both": n_outliers // 2}[kind]
    strewn = rng.uniform(low, high, (n_strewn, rows.shape[1]))
    n_grouped = n_outliers - n_strewn
    size = int(rng.integers(3, 9))
    margin = (high - low) / 4
    places = rng.uniform(
        low - margin, high + margin, (-(-n_grouped // size), rows.shape[1])
    )
    groups = np.repeat(places, size, axis=0)[:n_grouped]
    spread = rng.normal(scale=0.2, size=groups.shape)
    return np.concatenate([strewn, groups + spread])


def _measure_depth(
    places: np.ndarray, centers: np.ndarray, shapes: list[np.ndarray]
) -> np.ndarray:
    """Return the Mahalanobis distance of each place to its nearest centre."""
    distances = [
        np.linalg.norm((places - center) @ np.linalg.inv(shape), axis=1)
        for center, shape in zip(centers, shapes, strict=True)
    ]
    return np.min(distances, axis=0)


def _join(parts: list[Judged]) -> Judged:
    return Judged(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _run(seed: int) -> Outcome:
    return judge(make_case(seed), seed)


def main() -> None:
    """Judge all seeds of one kind, and print the tables."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.choice.calibration", description=__doc__
    )
    parser.add_argument("--seeds", choices=["development", "test"], default="test")
    parser.add_argument("--quick", action="store_true", help="every sixth seed")
    parser.add_argument("--processes", type=int, default=2)
    arguments = parser.parse_args()
    seeds = DEVELOPMENT_SEEDS if arguments.seeds == "development" else TEST_SEEDS
    chosen = seeds[::6] if arguments.quick else seeds
    outcomes = []
    for number, outcome in enumerate(
        Parallel(n_jobs=arguments.processes, return_as="generator")(
            map(delayed(_run), chosen)
        ),
        start=1,
    ):
        outcomes.append(outcome)
        print(f"{number} of {len(chosen)} seeds", file=sys.stderr)
    print(format_report(outcomes))


if __name__ == "__main__":
    main()
