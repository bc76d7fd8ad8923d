"""From a fitted estimator to a plain dict: what a report says, without how it looks.

The classes below are the schema. A summary holds only dicts, lists, strings, numbers,
True, False and None, so that JSON gives back what it was given.
"""

import platform
import reprlib
from typing import Any, TypedDict

import numpy as np
import scipy
import sklearn
from sklearn.utils.validation import check_is_fitted

from corral import __version__
from corral.report._features import Difference, Features, read_features

# The score curve is drawn through at most about this many ranks.
_MAX_CURVE_POINTS = 300


class Run(TypedDict):
    """The run in single numbers."""

    n_samples: int
    n_features: int | None  # None where the fit had no numeric features
    n_clusters: int
    n_outliers: int
    n_partitions: int
    n_codes: int
    n_iter: int
    objective: float


class Cluster(TypedDict):
    """One cluster, without the rows that were set aside."""

    label: int
    size: int
    share: float  # of all rows
    features: list[Difference]  # against the mean of all rows; empty without X


class Scores(TypedDict):
    """The outlier scores from high to low; only some ranks where rows are many."""

    ranks: list[int]  # from 1
    values: list[float]
    cut: float | None  # rows with a higher score are outliers; None where none are


class StrangeRow(TypedDict):
    """One of the rows with the highest scores."""

    row: int  # from 0
    score: float
    is_outlier: bool
    nearest_label: int
    features: list[Difference]  # against the nearest cluster; empty without X


class Summary(TypedDict):
    """All that a report says."""

    run: Run
    clusters: list[Cluster]  # by label
    scores: Scores
    strangest: list[StrangeRow]  # strangest first
    objective_history: list[float]  # one value per iteration
    settings: dict[str, Any]  # the parameters; strings where JSON has no such value
    versions: dict[str, str]


def summarize(
    estimator, X=None, *, feature_names=None, n_strangest: int = 20
) -> Summary:
    """Collect what a report says about a fitted estimator.

    Parameters
    ----------
    estimator : COR
        Fitted. Of a CORDetector, give the ``estimator_``.
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features), \
            default=None
        The rows of the fit. With them the summary tells which features make a cluster
        different, and which set a strange row apart. Columns of categories are left
        out.
    feature_names : sequence of str, default=None
        Names for the columns of X. None takes the names seen in the fit, or those of
        a data frame, or else numbers the columns.
    n_strangest : int, default=20
        How many of the rows with the highest scores to describe.

    Returns
    -------
    summary : dict
        Ready for JSON. Its keys are described at the top of this function's module.
    """
    check_is_fitted(estimator, "labels_")
    if n_strangest < 0:
        raise ValueError(f"n_strangest={n_strangest} should be 0 or more.")
    features = None
    if X is not None:
        if feature_names is None:
            feature_names = getattr(estimator, "feature_names_in_", None)
        features = read_features(
            X,
            estimator.labels_,
            estimator.n_clusters,
            names=feature_names,
            categorical_features=estimator.categorical_features,
        )
    return {
        "run": _run(estimator),
        "clusters": _clusters(estimator, features),
        "scores": _scores(estimator),
        "strangest": _strangest(estimator, features, n_strangest),
        "objective_history": np.asarray(estimator.objective_history_).tolist(),
        "settings": {
            name: _plain(value)
            for name, value in sorted(estimator.get_params(deep=False).items())
        },
        "versions": {
            "corral": __version__,
            "numpy": np.__version__,
            "python": platform.python_version(),
            "scikit-learn": sklearn.__version__,
            "scipy": scipy.__version__,
        },
    }


def _run(estimator) -> Run:
    # A fit on partitions has no centres, and its columns are no features.
    has_features = hasattr(estimator, "cluster_centers_")
    return {
        "n_samples": len(estimator.labels_),
        "n_features": int(estimator.n_features_in_) if has_features else None,
        "n_clusters": int(estimator.n_clusters),
        "n_outliers": int(estimator.n_outliers_),
        "n_partitions": int(estimator.n_partitions_),
        "n_codes": int(estimator.n_codes_),
        "n_iter": int(estimator.n_iter_),
        "objective": float(estimator.objective_),
    }


def _clusters(estimator, features: Features | None) -> list[Cluster]:
    labels = estimator.labels_
    sizes = np.bincount(labels[labels >= 0], minlength=estimator.n_clusters)
    return [
        {
            "label": label,
            "size": size,
            "share": size / len(labels),
            "features": [] if features is None else features.of_cluster(label),
        }
        for label, size in enumerate(sizes.tolist())
    ]


def _scores(estimator) -> Scores:
    scores = np.sort(estimator.outlier_scores_)[::-1]
    n_outliers = int(estimator.n_outliers_)
    ranks = _curve_ranks(len(scores), n_outliers)
    return {
        "ranks": ranks.tolist(),
        "values": scores[ranks - 1].tolist(),
        "cut": -float(estimator.offset_) if n_outliers else None,
    }


def _curve_ranks(n_samples: int, n_outliers: int) -> np.ndarray:
    """Choose ranks evenly on a logarithmic scale, and both sides of the cut."""
    if n_samples <= _MAX_CURVE_POINTS:
        return np.arange(1, n_samples + 1)
    ranks = np.geomspace(1, n_samples, _MAX_CURVE_POINTS).round().astype(int)
    at_cut = np.clip([n_outliers, n_outliers + 1], 1, n_samples)
    return np.union1d(ranks, at_cut)


def _strangest(
    estimator, features: Features | None, n_strangest: int
) -> list[StrangeRow]:
    is_outlier = estimator.labels_ == -1
    # Among equal scores the outliers come first, then the earlier rows.
    order = np.lexsort((~is_outlier, -estimator.outlier_scores_))
    return [
        {
            "row": row,
            "score": float(estimator.outlier_scores_[row]),
            "is_outlier": bool(is_outlier[row]),
            "nearest_label": (nearest := int(estimator.nearest_labels_[row])),
            "features": [] if features is None else features.of_row(row, nearest),
        }
        for row in order[:n_strangest].tolist()
    ]


def _plain(value) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return reprlib.repr(value)
