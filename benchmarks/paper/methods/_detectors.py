"""Detectors with the paper's parameters, alone and as a first step before K-means."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.cluster import KMeans
from sklearn.preprocessing import normalize

from benchmarks.paper.methods._base import HasRows, Method, Task
from corral.detectors import COF, LDOF, LOF, OPCA, TONMF, FastABOD, IForest

# Section 5.1 of the paper.
_NEIGHBORS = 50

# As many threads as COR has.
_ALL_CORES = -1

# Time grows with the square of the rows; the paper has no result beyond this, either.
_NEIGHBOR_ROWS = 60_000


class DetectThenCluster(BaseEstimator):
    """A detector, and K-means on the rows that it leaves."""

    def __init__(self, detector, n_clusters, metric, random_state):
        self.detector = detector
        self.n_clusters = n_clusters
        self.metric = metric
        self.random_state = random_state

    def fit(self, X):
        """Set ``labels_`` and ``outlier_scores_``."""
        detector = clone(self.detector).fit(X)
        kept = np.flatnonzero(detector.labels_ != -1)
        rows = normalize(X[kept]) if self.metric == "cosine" else X[kept]
        self.outlier_scores_ = detector.outlier_scores_
        self.labels_ = np.full(X.shape[0], -1)
        kmeans = KMeans(self.n_clusters, random_state=self.random_state)
        self.labels_[kept] = kmeans.fit_predict(rows)
        return self


class ShiftedTONMF(TONMF):
    """TONMF of columns that start at zero: it takes no negative values."""

    def fit(self, X, y=None):
        """Fit on the rows, less the least value of each column where it is negative."""
        lowest = X.min(axis=0)
        least = np.minimum(
            lowest.toarray() if hasattr(lowest, "toarray") else lowest, 0
        )
        return super().fit(X - least if np.any(least) else X, y)


def _neighbors(kind: type, task: Task) -> Any:
    return kind(
        _NEIGHBORS,
        n_outliers=task.n_outliers,
        metric=task.rival_metric,
        n_jobs=_ALL_CORES,
    )


def _fabod(task: Task) -> FastABOD:
    return FastABOD(_NEIGHBORS, n_outliers=task.n_outliers, n_jobs=_ALL_CORES)


def _iforest(task: Task) -> IForest:
    return IForest(
        100,
        max_samples=200,
        n_outliers=task.n_outliers,
        n_jobs=_ALL_CORES,
        random_state=task.seed,
    )


def _opca(task: Task) -> OPCA:
    return OPCA(
        forgetting=0.1,
        method="one_pass",
        n_outliers=task.n_outliers,
        random_state=task.seed,
    )


def _tonmf(task: Task) -> TONMF:
    return ShiftedTONMF(
        10, alpha=10.0, beta=0.1, n_outliers=task.n_outliers, random_state=task.seed
    )


def _then_cluster(build: Callable[[Task], Any], task: Task) -> DetectThenCluster:
    return DetectThenCluster(build(task), task.n_clusters, task.rival_metric, task.seed)


def _skip_many_rows(rows: HasRows) -> str | None:
    if rows.n_samples > _NEIGHBOR_ROWS:
        return f"compares pairs of rows, of which {rows.n_samples:,} have too many"
    return None


def _neighbor_method(name: str, label: str, build: Callable[[Task], Any]) -> Method:
    return Method(
        name,
        label,
        build,
        is_random=False,
        has_clusters=False,
        skip=_skip_many_rows,
    )


_lof = partial(_neighbors, LOF)

METHODS = (
    _neighbor_method("lof", "LOF", _lof),
    _neighbor_method("cof", "COF", partial(_neighbors, COF)),
    _neighbor_method("ldof", "LDOF", partial(_neighbors, LDOF)),
    _neighbor_method("fabod", "FABOD", _fabod),
    Method("iforest", "iForest", _iforest, has_clusters=False),
    Method("opca", "OPCA", _opca, has_clusters=False),
    Method("tonmf", "TONMF", _tonmf, has_clusters=False),
    Method(
        "lof-kmeans",
        "LOF, then K-means",
        partial(_then_cluster, _lof),
        skip=_skip_many_rows,
    ),
    Method("iforest-kmeans", "iForest, then K-means", partial(_then_cluster, _iforest)),
)
