"""What COR and its parts look like in a file.

Sizes: n rows of the fit, f features, v numeric features, k clusters, p partitions,
l labels of all partitions, s slots of all partitions, r K-means runs, c cells.
"""

from typing import Any

import numpy as np

from corral.persist._kinds import (
    Array,
    Count,
    Flag,
    Form,
    Kind,
    Mapping,
    Maybe,
    Number,
    OrNone,
    Series,
    Text,
    UnfitError,
    flags,
    floats,
    integers,
    name_class,
    part,
    text,
)

INFINITE = Number(is_finite=False)
NAMES = Maybe(Array(("f",), "U"))

_SPACE = "corral._tiles.RowSpace"
_LAYOUT = "corral._assign.Layout"
_RUNS = "corral._kmeans_runs.KMeansRuns"
_RULER = "corral._position.Ruler"
_CLUSTERER = "corral._partitions.FittedClusterer"
_COLUMNS = "corral._partitions.LabelColumns"
_PROFILE = "corral._profiles.Profile"
PARTITIONER = "corral._partitions.Partitioner"
COR = "corral._cor.COR"

CLUSTERERS = (
    "sklearn.cluster._kmeans.KMeans",
    "sklearn.cluster._kmeans.MiniBatchKMeans",
)

# Of a table with categories: about as many as there is memory for in a fit.
_MOST_COLUMNS = 2**26

# A rule, in words for those who break it by setting the parameter after a fit.
OTHER_CLUSTERERS = "partitions=... names other clusterers than it has, so fit it again"

SPACE = part(_SPACE, f="f")
PROFILE = part(_PROFILE, k="k", v="v")


def outcome(first_label: int = 0) -> dict[str, Kind]:
    """Return what all methods with clusters know of the rows of the fit."""
    return {
        "labels_": integers("n", low=-1, high="k"),
        "nearest_labels_": integers("n", low=first_label, high="k"),
        "outlier_scores_": floats("n", is_finite=False),
        "n_outliers_": Count(),
        "offset_": INFINITE,
        "n_features_in_": Count("f", low=1),
        "feature_names_in_": NAMES,
    }


def name_features(model: Any) -> None:
    """Give an estimator the names of its features as scikit-learn has them."""
    if hasattr(model, "feature_names_in_"):
        model.feature_names_in_ = model.feature_names_in_.astype(object)


def _set_dtype(space: Any) -> None:
    vars(space)["dtype"] = np.dtype(space.dtype)


def _leave_out_folder(found: dict) -> dict:
    """Leave out where a fit noted what it did: a file must not say where to write."""
    return {**found, "checkpoint_dir": None}


def _pack_space(found: dict) -> dict:
    return {**found, "dtype": found["dtype"].name}


def _same_clusters(partitioner: Any) -> bool:
    """Return whether the ruler's runs have as many clusters as they have as runs."""
    ruler, runs = partitioner.ruler, partitioner.runs
    if ruler is None or runs is None:
        return ruler is None
    return np.array_equal(runs.n_labels[ruler.runs], ruler.layout.n_clusters)


def _count_numbers(model: Any) -> int:
    """Return how many columns are numbers; if labels were given, none is."""
    from corral._validation import find_categories

    if model._is_precomputed:
        return 0
    if model.categorical_features is None:
        return model.n_features_in_
    if model.n_features_in_ > _MOST_COLUMNS:
        # Which of them are categories would take as much memory.
        raise UnfitError(f"n_features_in_={model.n_features_in_} is out of range")
    is_category = find_categories(
        model.categorical_features, model.n_features_in_, _list_names(model)
    )
    return int((~is_category).sum())


def has_numbers(model: Any) -> bool:
    """Return whether partitions see no columns but those that are there."""
    partitioner = model._partitioner
    n_given = len(partitioner.columns.known) - len(partitioner.clusterers)
    n_numbers = _count_numbers(model)
    if model._is_precomputed:
        is_alone = partitioner.runs is None and not partitioner.clusterers
        return is_alone and n_given == model.n_features_in_
    return (
        n_given >= model.n_features_in_ - n_numbers
        and (partitioner.runs is None or partitioner.runs.centers.shape[1] == n_numbers)
        and all(_sees(each, n_numbers) for each in partitioner.clusterers)
    )


def has_clusterers(model: Any) -> bool:
    """Return whether there are the clusterers that the parameters name."""
    from corral._partition_mixin import _sort_partitions

    _, base, others = _sort_partitions(model.partitions)
    n_fitted = len(model._partitioner.clusterers)
    # One is fitted many times.
    return n_fitted > 0 if base is not None else n_fitted == len(others)


def _has_profile(model: Any) -> bool:
    """Return whether there is what explains numbers, where there are any."""
    names = ("_profile", "cluster_centers_", "cluster_spreads_")
    n_numbers = _count_numbers(model)
    if any(getattr(model, name, None) is None for name in names):
        return n_numbers == 0
    return model._profile.centers.shape[1] == n_numbers


def _sees(clusterer: Any, n_numbers: int) -> bool:
    """Return whether a clusterer sees some columns of so many."""
    if clusterer.features is None:
        return clusterer.estimator.n_features_in_ == n_numbers
    return clusterer.features.max(initial=-1) < n_numbers


def _has_candidates(selection: Any) -> bool:
    """Return whether there is what all tables of candidates have."""
    return selection.columns.keys() >= {"n_clusters", "n_outliers", "is_chosen"}


def _holds_cor(detector: Any) -> bool:
    """Return whether a detector asks a COR that has the same columns."""
    estimator = detector.estimator_
    inner = getattr(estimator, "estimator", estimator)
    return (
        name_class(type(inner)) == COR
        and getattr(inner, "n_features_in_", None) == detector.n_features_in_
        and _list_names(inner) == _list_names(detector)
    )


def _list_names(estimator: Any) -> list[str] | None:
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else names.tolist()


COR_FORMS = {
    _SPACE: Form(
        {
            "metric": text("euclidean", "cosine"),
            "shift": OrNone(floats("f")),
            "scale": Number(low=5e-324),
            "dtype": text("float32", "float64"),
        },
        pack=_pack_space,
        rebuild=_set_dtype,
    ),
    _LAYOUT: Form(
        {"n_clusters": integers("r", low=1, high=2**31, is_sorted=True, total="c")},
        pack=lambda found: {"n_clusters": found["n_clusters"]},
        rebuild=lambda layout: layout.__init__(
            layout.n_clusters.astype(np.intp, copy=False)
        ),
    ),
    _RUNS: Form(
        {
            "centers": floats("c", "f"),
            "half_norms": floats("c", is_finite=False),
            "space": SPACE,
            "layout": part(_LAYOUT, r="r", c="c"),
            "features": OrNone(flags("r", "f")),
        },
        rules={
            "centres and points differ in their type": lambda runs: (
                runs.centers.dtype == runs.space.dtype
            )
        },
    ),
    _RULER: Form(
        {
            "runs": integers("m", low=0, high="r"),
            "centers": floats("c", "f"),
            "layout": part(_LAYOUT, r="m", c="c"),
            "scales": floats("m", low=0),
            "typical": Number(low=0),
        },
        rules={
            "its centres are not in double precision": lambda ruler: (
                ruler.centers.dtype == np.float64
            )
        },
    ),
    _COLUMNS: Form({"known": Series(Array(("any",), "iufU"), has_own_sizes=True)}),
    _CLUSTERER: Form(
        {
            "features": OrNone(integers("g", low=0)),
            "estimator": part(*CLUSTERERS, f="g"),
        }
    ),
    PARTITIONER: Form(
        {
            "runs": OrNone(part(_RUNS, r="r", f="v")),
            "columns": part(_COLUMNS),
            "clusterers": Series(part(_CLUSTERER)),
            "ruler": OrNone(part(_RULER, r="r", f="v")),
        },
        rules={
            "it has no partitions": lambda it: len(it.book.n_labels) > 0,
            "its ruler measures other runs": _same_clusters,
        },
        measures={
            "p": lambda it: len(it.book.n_labels),
            "l": lambda it: int(it.book.n_labels.sum()),
            "s": lambda it: it.book.n_slots,
        },
    ),
    _PROFILE: Form(
        {
            "centers": floats("k", "v"),
            "spreads": floats("k", "v", low=0),
            "sizes": floats("k", low=0),
        }
    ),
    "corral._selection.Selection": Form(
        {
            "n_clusters_": Count(),
            "n_outliers_": Count(),
            # Of clusters and of outliers.
            "runner_up": OrNone(Series(Count(), size=2, form=tuple)),
            "reason": Text(),
            "columns": Mapping(Array(("t",), "iufb", is_finite=False, is_known=False)),
            "gap_numbers": integers("g"),
            "gap_widths": floats("g", is_finite=False),
            "gap_threshold": INFINITE,
            "n_searched": Count(),
        },
        rules={"its table of candidates lacks columns": _has_candidates},
    ),
    "corral._storage.Storage": Form(
        {
            "n_blocks": Count(),
            "states": text("memory", "disk", "workers"),
            "codes": text("merged", "hash ranges"),
            "skipped": Series(Text()),
        }
    ),
    COR: Form(
        {
            "_is_precomputed": Flag(),
            "_partitioner": part(PARTITIONER, p="p", l="l", s="s", v="v"),
            "_label_costs": floats("s", "k"),
            "_rarity": floats("s"),
            "_centers": floats("k", "s"),
            "partition_centers_": floats("k", "l"),
            "n_labels_": integers("p"),
            "n_partitions_": Count("p"),
            "n_clusters_": Count("k"),
            "n_codes_": Count(),
            "n_iter_": Count(),
            "objective_": INFINITE,
            "objective_history_": floats("i", is_finite=False),
            **outcome(),
            "outlier_confidence_": Maybe(floats("n")),
            "label_confidence_": Maybe(floats("n")),
            "cluster_stability_": Maybe(floats("k", is_known=False, is_finite=False)),
            "_profile": Maybe(OrNone(PROFILE)),
            "cluster_centers_": Maybe(floats("k", "v")),
            "cluster_spreads_": Maybe(floats("k", "v")),
            "selection_": OrNone(part("corral._selection.Selection")),
            "storage_": part("corral._storage.Storage"),
        },
        rules={
            "its columns are not those of its partitions": has_numbers,
            OTHER_CLUSTERERS: has_clusterers,
            "it has numbers, and nothing to explain them by": _has_profile,
        },
        pack=_leave_out_folder,
        rebuild=name_features,
    ),
    "corral._detector.CORDetector": Form(
        {
            "estimator_": part(COR, "sklearn.frozen._frozen.FrozenEstimator"),
            "n_features_in_": Count("f"),
            "offset_": INFINITE,
            "feature_names_in_": NAMES,
        },
        rules={"it has other columns than its estimator": _holds_cor},
        rebuild=name_features,
    ),
}
