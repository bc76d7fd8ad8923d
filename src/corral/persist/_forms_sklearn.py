"""What the estimators of scikit-learn that models hold look like in a file.

Their other attributes differ from release to release, and may be anything plain.
"""

import os
from typing import Any

import numpy as np

from corral.persist._forms_cor import CLUSTERERS, name_features
from corral.persist._kinds import (
    Count,
    Form,
    Kind,
    Mapping,
    Number,
    Part,
    Plain,
    Record,
    Rows,
    Series,
    UnfitError,
    floats,
    integers,
    keep_but,
    part,
    text,
)

_TREE = "sklearn.tree._classes.ExtraTreeRegressor"


class _Nodes(Kind):
    """The nodes of a decision tree, as scikit-learn has them."""

    def check(self, value: Any, where: str, sizes: Any) -> None:
        if type(value) is not np.ndarray or value.ndim != 1:
            raise UnfitError(f"{where} is no array of nodes")
        if value.dtype != _make_tree(1).__getstate__()["nodes"].dtype:
            raise UnfitError(f"{where} has nodes of another release of scikit-learn")
        if not len(value):
            raise UnfitError(f"{where} has no nodes")
        sizes.meet("nodes", len(value), where)
        is_inner = value["left_child"] != -1
        for children in (value["left_child"], value["right_child"]):
            # A child comes after its parent, so that no path is a circle.
            is_good = (children > np.arange(len(value))) & (children < len(value))
            is_leaf = children == -1
            if not (np.where(is_inner, is_good, is_leaf)).all():
                raise UnfitError(f"{where} has a node that leads nowhere")
        features = value["feature"][is_inner]
        if ((features < 0) | (features >= sizes["f"])).any():
            raise UnfitError(f"{where} splits by a feature that is not there")


def _make_tree(n_features: int) -> Any:
    from sklearn.tree._tree import Tree

    return Tree(n_features, np.array([1], dtype=np.intp), 1)


def _pack_tree(found: dict) -> dict:
    if "tree_" not in found:
        # What trees are cloned from has parameters only.
        return found
    tree = found["tree_"]
    state = tree.__getstate__()
    plain = {name: state[name] for name in ("max_depth", "nodes", "values")}
    plain["nodes"] = _copy_fields(plain["nodes"])
    return {**found, "tree_": {"n_features": tree.n_features, **plain}}


def _copy_fields(nodes: np.ndarray) -> np.ndarray:
    """Return a copy with zeros between the fields.

    A tree that was loaded has there what was in memory before, which may be anything.
    """
    clean = np.zeros(nodes.shape, nodes.dtype)
    for name in nodes.dtype.names or ():
        clean[name] = nodes[name]
    return clean


def _finish_tree(regressor: Any) -> None:
    plain = regressor.tree_
    regressor.tree_ = _make_tree(plain.pop("n_features"))
    regressor.tree_.__setstate__({**plain, "node_count": len(plain["nodes"])})


def _is_as_deep(regressor: Any) -> bool:
    """Return whether a tree is as deep as it says; scikit-learn takes room by that."""
    nodes = regressor.tree_["nodes"]
    depths = [0] * len(nodes)
    # Parents come first.
    for parent, pair in enumerate(nodes[["left_child", "right_child"]].tolist()):
        for child in pair:
            if child != -1:
                depths[child] = max(depths[child], depths[parent] + 1)
    return max(depths) == regressor.tree_["max_depth"]


def _fits_trees(forest: Any) -> bool:
    """Return whether each tree has its columns, and what is known of its nodes."""
    parts = (
        forest.estimators_,
        forest.estimators_features_,
        forest._decision_path_lengths,
        forest._average_path_length_per_tree,
    )
    if len({len(each) for each in parts}) != 1:
        return False
    return all(
        tree.n_features_in_ == len(features) == forest._max_features
        and len(depths) == len(lengths) == tree.tree_.node_count
        for tree, features, depths, lengths in zip(*parts, strict=True)
    )


def _finish_search(lof: Any) -> None:
    """Build the search tree again, as scikit-learn does when it fits."""
    from sklearn.neighbors import BallTree, KDTree

    kinds = {"kd_tree": KDTree, "ball_tree": BallTree}
    lof._tree = None
    if lof._fit_method in kinds:
        lof._tree = kinds[lof._fit_method](
            lof._fit_X, lof.leaf_size, metric=lof.effective_metric_
        )


def _limit_threads(clusterer: Any) -> None:
    """Use no more threads than there are here, which OpenMP does not check."""
    name_features(clusterer)
    clusterer._n_threads = min(clusterer._n_threads, os.cpu_count() or 1)


_CLUSTERER = Form(
    {
        "cluster_centers_": floats("k", "f", is_plain=True),
        "labels_": integers("n", low=0, high="k"),
        "n_features_in_": Count("f", low=1),
        "_n_threads": Number(1, 2**20, is_whole=True),
    },
    others=Plain(),
    rules={"it has no centres": lambda model: len(model.cluster_centers_) > 0},
    rebuild=_limit_threads,
)

SKLEARN_FORMS = {
    **dict.fromkeys(CLUSTERERS, _CLUSTERER),
    "sklearn.frozen._frozen.FrozenEstimator": Form(),
    "sklearn.ensemble._iforest.IsolationForest": Form(
        {
            "n_features_in_": Count("f", low=1),
            # What the trees are cloned from.
            "estimator_": Part((_TREE,), is_fitted=False),
            "estimators_": Series(part(_TREE), has_own_sizes=True),
            "estimators_features_": Series(integers("g", low=0, high="f")),
            "_decision_path_lengths": Series(
                integers("nodes"), form=tuple, has_own_sizes=True
            ),
            "_average_path_length_per_tree": Series(
                floats("nodes"), form=tuple, has_own_sizes=True
            ),
            "_max_features": Count("g"),
            "_max_samples": Count(low=1),
            "offset_": Number(),
        },
        others=Plain(),
        rules={"its trees are not of one kind": _fits_trees},
    ),
    _TREE: Form(
        {
            "n_features_in_": Count("f", low=1),
            "n_outputs_": Number(1, 1, is_whole=True),
            "tree_": Record(
                {
                    "n_features": Count("f"),
                    "max_depth": Count(),
                    "nodes": _Nodes(),
                    "values": floats("nodes", 1, 1),
                }
            ),
        },
        others=Plain(),
        rules={"its tree is not as deep as it says": _is_as_deep},
        pack=_pack_tree,
        rebuild=_finish_tree,
    ),
    "sklearn.neighbors._lof.LocalOutlierFactor": Form(
        {
            "n_features_in_": Count("f", low=1),
            "n_samples_fit_": Count("n"),
            "n_neighbors_": Count("m", low=1),
            "_fit_X": Rows("n", "f"),
            "_fit_method": text("kd_tree", "ball_tree", "brute"),
            "_lrd": floats("n"),
            "_distances_fit_X_": floats("n", "m"),
            "negative_outlier_factor_": floats("n"),
            "effective_metric_": text("euclidean", "manhattan", "cosine"),
            "effective_metric_params_": Mapping(Number()),
            "offset_": Number(),
        },
        others=Plain(),
        rules={
            "it has more neighbours than rows": lambda lof: (
                lof.n_neighbors_ < lof.n_samples_fit_
            ),
            "its metric has parameters": lambda lof: not lof.effective_metric_params_,
            "it finds outliers among its own rows only": lambda lof: (
                lof.novelty is True
            ),
        },
        pack=keep_but("_tree"),
        rebuild=_finish_search,
    ),
}
