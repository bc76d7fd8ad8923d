"""Models as they are written: without what follows from the rest."""

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from corral.persist._kinds import FORMS, Form, name_class

# What scikit-learn notes in estimators for pipelines and whoever watches a fit. It
# changes no answer, and holds functions.
_LEFT_OUT = ("_metadata_request", "_skl_callbacks")


def pack_model(model: BaseEstimator) -> Any:
    """Return a model whose parts hold only what is written to a file.

    What is left out, such as search trees and tables of offsets, is made again when
    the model is read (:func:`corral.persist._kinds.check_object`), so that a file
    cannot bring one that does not fit. The model itself stays as it is, and arrays are
    not copied.

    Parameters
    ----------
    model : estimator

    Returns
    -------
    packed : estimator
        For skops only: it cannot answer.
    """
    return _pack(model, {})


def _pack(value: Any, seen: dict[Any, Any]) -> Any:
    # The same array stays the same, which is then written once.
    if id(value) not in seen:
        # Kept with the value: numbers of objects that are gone are used again.
        seen[id(value)] = (value, _pack_new(value, seen))
    return seen[id(value)][1]


def _pack_new(value: Any, seen: dict[Any, Any]) -> Any:
    if isinstance(value, np.generic):
        return _to_known(np.asarray(value)).item()
    if hasattr(type(value), "__array__"):
        # Also memory maps and the names of columns of a data frame.
        array = np.asarray(value)
        # An array of objects may hold anything, a list is looked at one by one.
        is_plain = array.dtype != object
        return _to_known(array) if is_plain else _pack(array.tolist(), seen)
    if type(value) is list:
        return [_pack(each, seen) for each in value]
    if type(value) is tuple:
        return tuple(_pack(each, seen) for each in value)
    if type(value) is dict:
        return {key: _pack(each, seen) for key, each in value.items()}
    form = FORMS.get(name_class(type(value)))
    if form is None:
        return value
    if isinstance(value, tuple):
        return type(value)(*(_pack(each, seen) for each in value))
    return _pack_object(value, form, seen)


def _to_known(array: np.ndarray) -> np.ndarray:
    """Return floats in single or double precision; what they cannot be is refused."""
    if array.dtype.kind == "S":
        raise ValueError(
            f"it holds the bytes {array.ravel()[:1].tolist()}, and files hold texts. "
            "Give columns and parameters as text, and fit again"
        )
    if array.dtype.kind != "f" or array.dtype.itemsize in (4, 8):
        return array
    fitting = array.astype(np.float32 if array.dtype.itemsize == 2 else np.float64)
    is_other = (fitting != array) & ~np.isnan(array)
    if is_other.any():
        raise ValueError(
            f"it holds {array[is_other][0]} as {array.dtype}, and files hold numbers "
            "up to float64. Give columns and parameters as float64, and fit again"
        )
    return fitting


def _pack_object(value: Any, form: Form, seen: dict[Any, Any]) -> Any:
    found = {
        name: each
        for name, each in vars(value).items()
        if not isinstance(getattr(type(value), name, None), cached_property)
        and name not in _LEFT_OUT
    }
    names = found.get("feature_names_in_")
    if names is not None:
        # An array of objects may hold anything, an array of texts may not. Parts with
        # the same names have the same array, also when they were loaded.
        key = tuple(names)
        if key not in seen:
            seen[key] = np.asarray(names, dtype=str)
        found["feature_names_in_"] = seen[key]
    if form.pack is not None:
        found = form.pack(found)
    packed = copy(value)
    vars(packed).clear()
    vars(packed).update({name: _pack(each, seen) for name, each in found.items()})
    return packed
