"""Every estimator, small enough to be fitted often, and which laws it obeys."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from hypothesis import assume
from sklearn.exceptions import ConvergenceWarning

from corral import COR, CORDetector
from corral.detectors import COF, LDOF, LOF, OPCA, TONMF, FastABOD, Holoentropy, IForest
from corral.rivals import (
    DBSCAN,
    HDBSCAN,
    KCC,
    KCenterOutliers,
    KMeansMinusMinus,
    KMeansPlusOne,
    KMedianOutliers,
    LagrangianClustering,
    NEOKMeans,
)
from tests.properties.strategies import spread_rows
from tests.slow_twins import same_clustering

_FEW = {"n_partitions": 10, "random_state": 0}
_COR = {**_FEW, "n_resamples": 3}


@dataclass(frozen=True)
class Case:
    """An estimator and what is to be expected of it.

    Attributes
    ----------
    make : callable
        Takes the numbers of clusters and of outliers; those that cannot ask for one
        leave it out.
    counts : bool
        Whether exactly so many rows are set aside.
    by_position : str
        Why the order of rows may change the outcome; empty if it may not.
    degree : int or None
        Scores grow with this power of the unit of X; None if the unit matters.
    shifts : bool
        Whether adding the same to all rows changes nothing.
    least_columns : int
        With fewer columns, distances tie.
    rounding : float
        Scores of the same rows in another form may differ by this share.
    takes_sparse, has_threads, predicts : bool
    """

    make: Callable[[int, int], Any]
    counts: bool = True
    by_position: str = ""
    degree: int | None = 0
    shifts: bool = True
    least_columns: int = 1
    rounding: float = 1e-9
    takes_sparse: bool = True
    has_threads: bool = False
    predicts: bool = True


_STARTS = "the rows that K-means starts from are drawn by their position"
_DRAWS = "what is drawn for a row goes by its position"

CASES = {
    "cor": Case(
        lambda k, o: COR(k, n_outliers=o, **_COR),
        by_position=_STARTS,
        has_threads=True,
    ),
    "cor, numbers chosen": Case(
        lambda k, o: COR(k_max=3, n_partitions=6, n_resamples=0, random_state=0),
        counts=False,
        by_position=_STARTS,
        has_threads=True,
    ),
    "cor, the paper's": Case(
        lambda k, o: COR.paper(k, n_outliers=o, **_COR),
        by_position=_STARTS,
        has_threads=True,
    ),
    "cor, cosine": Case(
        lambda k, o: COR(k, n_outliers=o, metric="cosine", **_COR),
        by_position=_STARTS,
        shifts=False,
        least_columns=2,
        has_threads=True,
    ),
    "cor, some features": Case(
        lambda k, o: COR(k, n_outliers=o, strategy="rfs", **_COR),
        by_position=_STARTS,
        has_threads=True,
    ),
    "cor, k-means++": Case(
        lambda k, o: COR(
            k, n_outliers=o, init="k-means++", kmeans_init="k-means++", **_COR
        ),
        by_position=_STARTS,
        has_threads=True,
    ),
    "kmeans--": Case(
        lambda k, o: KMeansMinusMinus(k, n_outliers=o, n_init=3, random_state=0),
        by_position=_STARTS,
        degree=2,
        has_threads=True,
    ),
    "kmeans--, cosine": Case(
        lambda k, o: KMeansMinusMinus(
            k, n_outliers=o, n_init=3, metric="cosine", random_state=0
        ),
        by_position=_STARTS,
        shifts=False,
        least_columns=2,
        has_threads=True,
    ),
    "kmeans+1": Case(
        lambda k, o: KMeansPlusOne(k, random_state=0),
        counts=False,
        by_position=_STARTS,
        degree=2,
    ),
    "kmeans+1, cosine": Case(
        lambda k, o: KMeansPlusOne(k, metric="cosine", random_state=0),
        counts=False,
        by_position=_STARTS,
        shifts=False,
        least_columns=2,
    ),
    "kcc": Case(
        lambda k, o: KCC(k, n_init=3, **_FEW),
        counts=False,
        by_position=_STARTS,
        has_threads=True,
    ),
    "kcc, entropy": Case(
        lambda k, o: KCC(k, utility="U_H", n_init=3, **_FEW),
        counts=False,
        by_position=_STARTS,
        has_threads=True,
    ),
    "neo-kmeans": Case(
        lambda k, o: NEOKMeans(k, n_outliers=o, alpha=None, n_init=3, random_state=0),
        by_position=_STARTS,
        degree=2,
        has_threads=True,
    ),
    "lagrangian": Case(
        lambda k, o: LagrangianClustering(k, n_outliers=o), degree=1, least_columns=2
    ),
    "k-center": Case(
        lambda k, o: KCenterOutliers(k, n_outliers=o),
        by_position="the first of the rows is taken around which as many others lie",
        degree=1,
        least_columns=2,
    ),
    "k-median": Case(
        lambda k, o: KMedianOutliers(k, n_outliers=o),
        by_position="of two rows either may be the exemplar, and the search goes on",
        degree=1,
        least_columns=2,
    ),
    "dbscan": Case(
        lambda k, o: DBSCAN(eps=1.0, min_samples=2),
        counts=False,
        degree=None,
        has_threads=True,
    ),
    "hdbscan": Case(
        lambda k, o: HDBSCAN(min_cluster_size=2),
        counts=False,
        takes_sparse=False,
        has_threads=True,
        predicts=False,
    ),
    "cor-detector": Case(
        lambda k, o: CORDetector(COR(k, n_outliers=o, **_COR)),
        by_position=_STARTS,
    ),
    # Scikit-learn adds 1e-10 to distances.
    "lof": Case(
        lambda k, o: LOF(n_neighbors=3, n_outliers=o), rounding=1e-4, has_threads=True
    ),
    "iforest": Case(
        lambda k, o: IForest(n_estimators=10, n_outliers=o, random_state=0),
        by_position=_DRAWS,
        has_threads=True,
    ),
    "cof": Case(lambda k, o: COF(n_neighbors=3, n_outliers=o), has_threads=True),
    "ldof": Case(lambda k, o: LDOF(n_neighbors=3, n_outliers=o), has_threads=True),
    "fast-abod": Case(
        lambda k, o: FastABOD(n_neighbors=3, n_outliers=o),
        degree=-4,
        has_threads=True,
    ),
    "opca": Case(lambda k, o: OPCA(n_outliers=o, random_state=0)),
    "tonmf": Case(
        lambda k, o: TONMF(n_components=2, n_outliers=o, random_state=0),
        by_position=_DRAWS,
        degree=None,
        shifts=False,
    ),
    "holoentropy": Case(lambda k, o: Holoentropy(n_outliers=o), takes_sparse=False),
}


class Outcome(NamedTuple):
    """What a fit says of its rows: labels, -1 for outliers, and scores."""

    labels: np.ndarray
    scores: np.ndarray


def fit(estimator, X, **given):
    """Fit, with the warnings that results which surprise have left out."""
    with warnings.catch_warnings():
        # Few rows that are all alike need not come to rest, or fill all clusters.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "n_neighbors", UserWarning)
        return estimator.fit(X, **given)


def tell(estimator) -> Outcome:
    """Return what a fitted estimator says of the rows of the fit."""
    fitted = estimator
    if isinstance(estimator, CORDetector):
        fitted = estimator.estimator_
    return Outcome(np.asarray(fitted.labels_), np.asarray(fitted.outlier_scores_))


def solve(name, X, n_clusters=2, n_outliers=1, **given) -> Outcome:
    """Fit the estimator of this name and return what it says of the rows."""
    return tell(fit(CASES[name].make(n_clusters, n_outliers), X, **given))


def draw_rows(data, name, min_columns=1) -> np.ndarray:
    """Draw rows in general position that the estimator of this name takes."""
    n_columns = max(min_columns, CASES[name].least_columns)
    X = data.draw(spread_rows(min_columns=n_columns))
    return np.abs(X) if name == "tonmf" else X


def try_to_solve(name, X, n_clusters, n_outliers) -> Outcome:
    """Solve; rows with fewer distinct codes than clusters make no case."""
    return try_to_fit(CASES[name].make(n_clusters, n_outliers), X)


def try_to_fit(estimator, X) -> Outcome:
    """Fit and tell; rows with fewer distinct codes than clusters make no case."""
    try:
        return tell(fit(estimator, X))
    except ValueError as error:
        assume("distinct codes" not in str(error))
        raise


def assert_same(found: Outcome, expected: Outcome, rounding: float) -> None:
    """Compare scores up to rounding, and labels but where such scores tie."""
    size = np.abs(expected.scores).max()
    np.testing.assert_allclose(
        found.scores, expected.scores, rtol=rounding, atol=rounding * size
    )
    aside = expected.labels == -1
    if aside.any() and not aside.all():
        step = expected.scores[aside].min() - expected.scores[~aside].max()
        if step <= 2 * rounding * size:
            return
    assert same_clustering(found.labels, expected.labels)
