"""What the rivals and the detectors look like in a file.

Sizes: n rows of the fit, f features, k clusters, d distinct rows of the fit.
"""

import math
from typing import Any

import numpy as np
from scipy import sparse

from corral._row_book import _KEY_BYTES
from corral.persist._forms_cor import (
    INFINITE,
    NAMES,
    OTHER_CLUSTERERS,
    PARTITIONER,
    SPACE,
    has_clusterers,
    has_numbers,
    name_features,
    outcome,
)
from corral.persist._kinds import (
    Count,
    Flag,
    Form,
    Kind,
    Maybe,
    Number,
    OrNone,
    Plain,
    Rows,
    Series,
    Sizes,
    Text,
    Threads,
    UnfitError,
    floats,
    integers,
    keep_but,
    part,
    text,
)

_BOOK = "corral._row_book.RowBook"
_RULER = "corral.rivals._exemplars.Ruler"
_NEIGHBORS = "corral.detectors._neighbors.Neighbors"
_VIEW = "corral.detectors._principal.View"
_SETTINGS = "corral.detectors._opca._Settings"
_ONLINE = "corral.detectors._opca._Online"
_POWER = "corral.detectors._opca._Power"
_MATRIX = "corral.detectors._principal.Matrix"
_PRODUCTS = "corral.detectors._principal.Products"
_BINS = "corral.detectors._holoentropy.Bins"

_METRICS = text("euclidean", "manhattan", "cosine")

# No exponent of a float is beyond.
_EXPONENT = Number(-2200, 2200, is_whole=True)

# What an answer for one row may take of neighbours and of the distances between them.
# A fit takes as much for each of its rows, of which there are more than neighbours:
# with 8,000 of them, hours.
_MOST_PER_ROW = 2 * 2**30

# The median of each column of sparse rows is looked for when they are read, so that a
# number of columns is memory. More than the 2**20 of scikit-learn's hashes.
_MOST_COLUMNS = 2**26

# Above this, the iterations for a row may take hours.
_MOST_ITERATIONS = 10**6

_HISTORY: dict[str, Kind] = {
    "objective_": INFINITE,
    "objective_history_": floats("i", is_finite=False),
    "n_iter_": Count(),
}


def _centered(**fields: Kind) -> Form:
    """Return the form of a method with centres in a row space."""
    return Form(
        {
            "_centers": floats("k", "f"),
            "_space": SPACE,
            "cluster_centers_": floats("k", "f"),
            **outcome(),
            **fields,
        },
        rules={"its centres are not in double precision": _is_double},
        rebuild=name_features,
    )


def _is_double(model: Any) -> bool:
    return model._centers.dtype == np.float64


def _exemplars(**fields: Kind) -> Form:
    """Return the form of a method with exemplars."""
    return Form(
        {
            "cluster_centers_": Rows("k", "f"),
            **outcome(),
            "exemplars_": integers("k", low=0, high="n"),
            "objective_": INFINITE,
            "lower_bound_": INFINITE,
            "n_iter_": Count(),
            "_threshold": INFINITE,
            "_ruler": part(_RULER),
            **fields,
        },
        rules={
            "it measures by another metric": lambda model: (
                model._ruler._metric == model.metric
            ),
            "it has no exemplars": lambda model: len(model.exemplars_) > 0,
        },
        rebuild=name_features,
    )


def _detector(fields: dict[str, Kind], **settings: Any) -> Form:
    """Return the form of a detector."""
    return Form(
        {
            "n_features_in_": Count("f", low=1),
            "labels_": integers("n", low=-1, high=2),
            "outlier_scores_": floats("n"),
            "n_outliers_": Count(),
            "offset_": INFINITE,
            "feature_names_in_": NAMES,
            **fields,
        },
        **{"rebuild": name_features, **settings},
    )


def _neighbor_detector(**fields: Kind) -> Form:
    return _detector(
        {
            "_neighbors": part(_NEIGHBORS, n="n", d="d"),
            "n_neighbors_": Count(low=1),
            "_scores": floats("d"),
            **fields,
        },
        rules={
            "its neighbours have other columns": lambda model: (
                model._neighbors._distinct.shape[1]
                == model.n_features_in_ + (model._neighbors._metric == "cosine")
            ),
            "it has another number of neighbours": lambda model: (
                model.n_neighbors_ == model._neighbors.n_neighbors
            ),
        },
    )


class _Keys(Kind):
    """The keys of distinct rows, in their order."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if any(len(key) != _KEY_BYTES for key in value):
            raise UnfitError(f"{where} has keys of another length")
        if list(value.values()) != list(range(len(value))):
            raise UnfitError(f"{where} has a key twice")
        sizes.meet("d", len(value), where)


def _is_small(neighbors: Any) -> bool:
    """Return whether an answer for one row takes no more than a fit would bear.

    It takes four arrays over pairs of neighbours and three of their coordinates. Equal
    rows are there once, so that a small file may have many neighbours.
    """
    rows, n_neighbors = neighbors._distinct, neighbors.n_neighbors
    n_columns, n_values = rows.shape[1], rows.size
    if neighbors._is_sparse:
        if n_columns > _MOST_COLUMNS:
            return False
        # Dense are those that are in use in a row or in its neighbours.
        longest = int(np.diff(rows.indptr).max(initial=0))
        n_columns = min(n_columns, (n_neighbors + 1) * longest)
    n_bytes = 8 * n_neighbors * (4 * n_neighbors + 3 * n_columns)
    return n_bytes <= max(_MOST_PER_ROW, 64 * n_values)


def _finish_neighbors(neighbors: Any) -> None:
    neighbors._set_search()


def _finish_dbscan(model: Any) -> None:
    name_features(model)
    model._set_search()


def _pack_counts(found: dict) -> dict:
    """Write the counts of categories as lists: keys of a dict would become texts."""
    if "category_counts_" not in found:
        return found
    pairs = [
        [list(counts), list(counts.values())] for counts in found["category_counts_"]
    ]
    return {**found, "category_counts_": pairs}


def _finish_counts(model: Any) -> None:
    name_features(model)
    model.category_counts_ = [
        dict(zip(keys, counts, strict=True)) for keys, counts in model.category_counts_
    ]


def _pack_cloud(found: dict) -> dict:
    return {**found, "_cloud": found["_cloud"].X}


def _finish_cloud(products: Any) -> None:
    from corral.detectors._principal import FitCloud

    products._cloud = FitCloud(products._cloud)


_RIVALS = {
    "corral.rivals._kmeans_minus_minus.KMeansMinusMinus": _centered(**_HISTORY),
    "corral.rivals._kmeans_plus_one.KMeansPlusOne": Form(
        {
            "_centers": floats("k+1", "f"),
            "_space": SPACE,
            "cluster_centers_": floats("k", "f"),
            **outcome(),
            "outlier_center_": floats("f"),
            "inertia_": INFINITE,
            "n_iter_": Count(),
        },
        rules={
            "its centres are not in double precision": _is_double,
            "it has no centre of outliers": lambda model: (
                len(model._centers) == len(model.cluster_centers_) + 1
            ),
        },
        rebuild=name_features,
    ),
    "corral.rivals._neo_kmeans.NEOKMeans": _centered(
        memberships_=Rows("n", "k", letters="b"), **_HISTORY
    ),
    "corral.rivals._kcc.KCC": Form(
        {
            "_is_precomputed": Flag(),
            "_has_outlier_cluster": Flag(),
            "_partitioner": part(PARTITIONER, p="p", l="l", s="s"),
            "_cost_table": floats("s", "all", is_finite=False),
            "partition_centers_": floats("k", "l"),
            "outlier_center_": Maybe(floats("l")),
            "n_labels_": integers("p"),
            "n_partitions_": Count("p"),
            "n_codes_": Count(),
            "utility_": INFINITE,
            **_HISTORY,
            **outcome(),
        },
        rules={
            "its columns are not those of its partitions": has_numbers,
            OTHER_CLUSTERERS: has_clusterers,
            "its costs are those of other clusters": lambda model: (
                model._cost_table.shape[1]
                == len(model.partition_centers_) + model._has_outlier_cluster
            ),
        },
        rebuild=name_features,
    ),
    _RULER: Form(
        {"_metric": Text(), "_exponent": _EXPONENT, "_row_exponent": _EXPONENT}
    ),
    "corral.rivals._lagrangian.LagrangianClustering": _exemplars(
        creation_cost_=INFINITE, gap_=INFINITE
    ),
    "corral.rivals._charikar.KCenterOutliers": _exemplars(),
    "corral.rivals._charikar.KMedianOutliers": _exemplars(
        n_opened_=Count(), opening_cost_=INFINITE
    ),
    "corral.rivals._density.DBSCAN": Form(
        {
            "n_clusters_": Count("k"),
            **outcome(first_label=-1),
            "components_": Rows("c", "f"),
            "core_sample_indices_": integers("c", low=0, high="n"),
            "_core_labels": integers("c", low=0, high="k"),
            "_rows": part(_BOOK, n="n"),
        },
        pack=keep_but("_neighbors", "_offsets"),
        rebuild=_finish_dbscan,
    ),
    "corral.rivals._density.HDBSCAN": Form(
        {
            "n_clusters_": Count("k"),
            **outcome(first_label=-1),
            "probabilities_": floats("n"),
        },
        rebuild=name_features,
    ),
}

_DETECTORS = {
    "corral.detectors._lof.LOF": _detector(
        {
            "_book": part(_BOOK, n="n", d="d"),
            "_scores": floats("d"),
            "_is_sparse": Flag(),
            "_offsets": floats("f"),
            "_scale": Number(low=5e-324),
            "n_neighbors_": Count(low=1),
            "estimator_": part(
                "sklearn.neighbors._lof.LocalOutlierFactor", n="n", f="f"
            ),
        },
        rules={
            "it has another number of neighbours": lambda model: (
                model.n_neighbors_ == model.estimator_.n_neighbors_
            ),
            "its rows are not of the kind it says": lambda model: (
                sparse.issparse(model.estimator_._fit_X) == model._is_sparse
            ),
        },
    ),
    "corral.detectors._iforest.IForest": _detector(
        {
            "_is_sparse": Flag(),
            "_offsets": floats("f"),
            "_scales": floats("f"),
            "estimator_": part("sklearn.ensemble._iforest.IsolationForest", f="f"),
        }
    ),
    "corral.detectors._cof.COF": _neighbor_detector(
        _chaining=floats("d"), _typical=Number()
    ),
    "corral.detectors._ldof.LDOF": _neighbor_detector(_typical=Number()),
    "corral.detectors._fast_abod.FastABOD": _neighbor_detector(
        _largest=Number(), _unit=Number()
    ),
    "corral.detectors._opca.OPCA": _detector(
        {
            "_form": part(_ONLINE, _POWER, f="f"),
            "_view": part(_VIEW, f="f"),
            "direction_": floats("f"),
            "mean_": floats("f"),
            "explained_variance_": INFINITE,
            "ratio_": Number(),
            "n_iter_": Count(),
        }
    ),
    "corral.detectors._tonmf.TONMF": _detector(
        {
            "components_": floats("t", "f", low=0, dtype="float64"),
            "outlier_norms_": floats("n"),
            "_alpha": Number(low=0),
            "_beta": Number(low=0),
            **_HISTORY,
        },
        # An answer takes the products of all pairs of topics.
        rules={
            "it has no topics, or more than columns": lambda model: (
                1 <= len(model.components_) <= model.n_features_in_
            )
        },
    ),
    "corral.detectors._holoentropy.Holoentropy": _detector(
        {
            "bins_": Series(OrNone(part(_BINS)), "f"),
            "category_counts_": Series(Series(Plain()), "f"),
            "entropies_": floats("f"),
            "weights_": floats("f"),
        },
        rules={
            "its counts are not those of its categories": lambda model: all(
                len(pair) == 2 and _are_counts(*pair) for pair in model.category_counts_
            )
        },
        pack=_pack_counts,
        rebuild=_finish_counts,
    ),
}


def _are_counts(keys: Any, counts: Any) -> bool:
    """Return whether there is a count for each of the different keys."""
    is_pair = type(keys) is list and type(counts) is list and len(keys) == len(counts)
    return (
        is_pair
        and all(type(each) in (str, int, float, bool, type(None)) for each in keys)
        and all(type(each) is int and 0 <= each < 2**53 for each in counts)
    )


_PARTS = {
    _BOOK: Form(
        {
            "_is_sparse": Flag(),
            "_places": _Keys(),
            "inverse": integers("n", low=0, high="d"),
            "firsts": integers("d", low=0, high="n"),
        },
        rules={
            "it has no rows": lambda book: len(book.firsts) > 0,
            "it has a distinct row that no row equals": lambda book: (
                len(np.unique(book.inverse)) == len(book.firsts)
            ),
        },
    ),
    _NEIGHBORS: Form(
        {
            "book": part(_BOOK, n="n", d="d"),
            "n_neighbors": Count(low=1),
            "scale": Number(low=5e-324),
            "_metric": _METRICS,
            "_n_jobs": Threads(),
            "_is_sparse": Flag(),
            "_distinct": Rows("d", "g", dtype="float64"),
        },
        rules={
            "a row has more neighbours than there are rows": lambda it: (
                it.n_neighbors < len(it.book.inverse)
            ),
            "its rows are not of the kind it says": lambda it: (
                sparse.issparse(it._distinct) == it._is_sparse
            ),
            "an answer for one row would take gigabytes": _is_small,
        },
        pack=keep_but("_members", "_search", "_center", "_by_products"),
        rebuild=_finish_neighbors,
    ),
    _VIEW: Form(
        {
            "mean": floats("f"),
            "scale": Number(low=5e-324),
            "zoom": Number(low=5e-324),
        }
    ),
    _SETTINGS: Form(
        {
            "direction": floats("f"),
            "variance": Number(low=0),
            "ratio": Number(low=5e-324),
        }
    ),
    _ONLINE: Form({"fit": part(_SETTINGS, f="f")}),
    _POWER: Form(
        {
            "fit": part(_SETTINGS, f="f"),
            "spread": part(_MATRIX, _PRODUCTS, f="f"),
            "max_iter": Number(1, _MOST_ITERATIONS, is_whole=True),
            "tol": Number(low=0),
        }
    ),
    _MATRIX: Form({"n_values": Count("f"), "_matrix": floats("f", "f")}),
    _PRODUCTS: Form(
        {"n_values": Count("n", low=1), "_cloud": Rows("n", "f")},
        pack=_pack_cloud,
        rebuild=_finish_cloud,
    ),
    _BINS: Form(
        {"low": Number(), "high": Number(), "width": Number(low=5e-324)},
        rules={
            "the bins are not between their ends": lambda bins: (
                bins.low < bins.high
                and math.isfinite((bins.high - bins.low) / bins.width)
            )
        },
    ),
}

METHOD_FORMS = {**_RIVALS, **_DETECTORS, **_PARTS}
