"""Models as they are written: without what follows from the rest."""

from copy import copy
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from corral.persist._kinds import FORMS, Form, name_class


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


def _pack(value: Any, seen: dict[int, Any]) -> Any:
    # The same array stays the same, which is then written once.
    if id(value) not in seen:
        # Kept with the value: numbers of objects that are gone are used again.
        seen[id(value)] = (value, _pack_new(value, seen))
    return seen[id(value)][1]


def _pack_new(value: Any, seen: dict[int, Any]) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.memmap):
        return np.asarray(value)
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


def _pack_object(value: Any, form: Form, seen: dict[int, Any]) -> Any:
    found = {
        name: each
        for name, each in vars(value).items()
        if not isinstance(getattr(type(value), name, None), cached_property)
    }
    names = found.get("feature_names_in_")
    if names is not None:
        # An array of objects may hold anything, an array of texts may not.
        found["feature_names_in_"] = np.asarray(names, dtype=str)
    if form.pack is not None:
        found = form.pack(found)
    packed = copy(value)
    vars(packed).clear()
    vars(packed).update({name: _pack(each, seen) for name, each in found.items()})
    return packed
