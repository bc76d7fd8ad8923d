"""What models of tables look like in a file.

Sizes: n rows of the fit, f features that the method gets, u columns of numbers or
words.
"""

import re
from typing import Any

import numpy as np
from scipy import sparse

from corral.persist._forms_cor import PROFILE
from corral.persist._kinds import (
    FORMS,
    Count,
    Flag,
    Form,
    Kind,
    Mapping,
    Maybe,
    OrNone,
    Series,
    Sizes,
    Text,
    UnfitError,
    check_object,
    floats,
    integers,
    name_class,
    part,
    text,
)

_PLAN = "corral.tables._columns.ColumnPlan"
_SCALES = "corral.tables._scales.Scales"
_ENCODER = "corral.tables._encoder.TableEncoder"

_NAMES = Series(Text())
_KIND = text("number", "date", "boolean", "category", "text", "id")

# What a column of a matrix is called.
_MATRIX_COLUMN = re.compile(r"feature ([0-9]{1,12})")


class _Method(Kind):
    """Any fitted estimator of corral that takes rows."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        name = name_class(type(value))
        if not name.startswith("corral.") or name not in FORMS:
            raise UnfitError(f"{where} is a {type(value).__name__}")
        check_object(value, where, sizes_of := Sizes())
        sizes.meet("f", getattr(value, "n_features_in_", -1), where)
        if "n" in sizes_of:
            sizes.meet("n", sizes_of["n"], where)


def _pack_words(found: dict) -> dict:
    """Write words as one text, and how rare they are; all else is always the same."""
    words = found.get("_words")
    if words is None:
        return found
    names = getattr(words, "vocabulary_", None)
    text = None if names is None else " ".join(sorted(names, key=names.__getitem__))
    return {**found, "_words": {"names": text, "idf": words.idf_}}


class _Words(Kind):
    """How rare words are, as written."""

    def check(self, value: Any, where: str, sizes: Sizes) -> None:
        if type(value) is not dict or value.keys() != {"names", "idf"}:
            raise UnfitError(f"{where} is no list of words")
        OrNone(Text()).check(value["names"], where, sizes)
        floats("u", low=0).check(value["idf"], where, sizes)


def _finish_words(encoder: Any) -> None:
    """Make what weighs words: as if fitted to all of them, then told how rare."""
    plain = getattr(encoder, "_words", None)
    if plain is None:
        return
    from sklearn.feature_extraction.text import TfidfTransformer, TfidfVectorizer

    n_words = len(plain["idf"])
    if plain["names"] is None:
        words = TfidfTransformer().fit(sparse.csr_array(np.ones((1, n_words))))
    else:
        words = TfidfVectorizer().fit([plain["names"]])
        names = plain["names"].split(" ")
        if words.get_feature_names_out().tolist() != names or len(names) != n_words:
            raise UnfitError("its words are not as the fit has them")
    words.idf_ = plain["idf"]
    encoder._words = words


def _names_plans(encoder: Any) -> bool:
    """Return whether the names of columns are those of the plans."""
    kinds = {
        "numeric_names_": ("number", "date", "boolean"),
        "categorical_names_": ("category",),
        "text_names_": ("text",),
    }
    if not encoder._plans or any(plan.reason for plan in encoder._plans):
        return False
    found = encoder.kinds_
    if any(found.get(plan.name) not in (plan.kind, "id") for plan in encoder._plans):
        return False
    return all(
        getattr(encoder, name)
        == [plan.name for plan in encoder._plans if plan.kind in allowed]
        for name, allowed in kinds.items()
    )


def _names_columns(encoder: Any) -> bool:
    """Return whether the columns of a matrix are there."""
    if not encoder._n_columns:
        return not encoder._is_sparse
    found = [_MATRIX_COLUMN.fullmatch(plan.name) for plan in encoder._plans]
    return all(each and int(each[1]) < encoder._n_columns for each in found)


def _has_weights(encoder: Any) -> bool:
    """Return whether all columns of the output have a name, and words a weight."""
    words = getattr(encoder, "_words", None)
    scales = getattr(encoder, "_scales", None)
    n_names = len(encoder.feature_names_out_)
    if encoder.tfidf:
        n_units = n_names
        if words is None or len(words["idf"]) != n_names:
            return False
        if (words["names"] is None) != (not encoder.text_names_):
            return False
        if words["names"] is None and n_names != len(encoder.numeric_names_):
            return False
    else:
        n_units = len(encoder.numeric_names_)
        if encoder.feature_names_out_ != [plan.name for plan in encoder._plans]:
            return False
        if encoder.text_names_ or words is not None:
            return False
    is_sparse = encoder._is_sparse or encoder.tfidf
    if (scales is None) != (encoder.scale_ == "none"):
        return n_units == 0
    return scales is None or (
        len(scales.unit) == n_units and (scales.center is None) == is_sparse
    )


def _has_names(model: Any) -> bool:
    """Return whether the method knows its columns by the names that they come with."""
    names = getattr(model.estimator_, "feature_names_in_", None)
    return names is None or names.tolist() == model.encoder_.feature_names_out_


def _has_profile(model: Any) -> bool:
    """Return whether each cluster has a profile, which COR has itself."""
    from corral.tables._model import _find_cor

    if model._profile is None:
        return _find_cor(model.estimator_) is not None
    n_clusters = 1
    if hasattr(model, "nearest_labels_"):
        n_clusters = max(1, int(model.labels_.max(initial=0)) + 1)
    return len(model._profile.centers) == n_clusters


TABLE_FORMS = {
    _PLAN: Form(
        {
            "name": Text(),
            "kind": _KIND,
            "family": text(
                "number", "duration", "boolean", "date", "time", "text", "other"
            ),
            "reason": Text(),
            "is_silent": Flag(),
        }
    ),
    _SCALES: Form({"unit": floats("u", low=5e-324), "center": OrNone(floats("u"))}),
    _ENCODER: Form(
        {
            "_is_sparse": Flag(),
            "_n_columns": Count(),
            "_plans": Series(part(_PLAN)),
            "_scales": OrNone(part(_SCALES, u="u")),
            "_words": Maybe(OrNone(_Words())),
            "feature_names_out_": Series(Text(), "f"),
            "numeric_names_": _NAMES,
            "categorical_names_": _NAMES,
            "text_names_": _NAMES,
            "kinds_": Mapping(_KIND),
            "dropped_": Mapping(Text()),
            "n_missing_": Mapping(Count()),
            "scale_": text("standard", "robust", "none"),
        },
        rules={
            "its columns are not those of its plans": _names_plans,
            "it reads columns that are not there": _names_columns,
            "its weights are not those of its columns": _has_weights,
        },
        pack=_pack_words,
        rebuild=_finish_words,
    ),
    "corral.tables._model.TableModel": Form(
        {
            "encoder_": part(_ENCODER, f="f"),
            "estimator_": _Method(),
            "_medians": OrNone(floats("f")),
            "_profile": OrNone(part(*PROFILE.names, v="f")),
            "labels_": integers("n", low=-1),
            "outlier_scores_": floats("n", is_finite=False),
            "nearest_labels_": Maybe(integers("n", low=-1)),
            "outlier_confidence_": Maybe(floats("n")),
            "label_confidence_": Maybe(floats("n")),
        },
        rules={
            "its clusters are not those of its method": _has_profile,
            "its method has its columns in another order": _has_names,
        },
    ),
}
