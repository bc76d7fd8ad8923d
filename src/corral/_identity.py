"""What parameters hold, as JSON that another process writes alike."""

import hashlib
import json
from types import CodeType, FunctionType
from typing import Any

import numpy as np
from scipy import sparse

from corral._row_blocks import digest_arrays


def describe(value: Any) -> Any:
    """Return what a parameter holds, in a form that JSON keeps.

    Parameters
    ----------
    value : object

    Returns
    -------
    described : None, bool, int, float, str, list or dict
        Equal for parameters that give the same fit, in this process and in later ones.
        Objects of unknown kinds are what they say of themselves: where that is their
        place in memory, they are equal only to themselves.
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.random.RandomState):
        # Its seed is drawn once and noted.
        return "RandomState"
    if isinstance(value, (list, tuple)):
        return [describe(each) for each in value]
    if isinstance(value, dict):
        return {str(key): describe(each) for key, each in value.items()}
    if isinstance(value, np.ndarray) or sparse.issparse(value):
        return _describe_array(value)
    if isinstance(value, FunctionType):
        return _describe_function(value)
    if hasattr(value, "get_params"):
        return [type(value).__qualname__, describe(value.get_params(deep=False))]
    return repr(value)


def _describe_array(array: Any) -> list:
    # Not as text, in which NumPy leaves out the middle of long arrays, and SciPy all.
    kept = sparse.csr_array(array) if sparse.issparse(array) else array
    return [str(array.dtype), array.shape, digest_arrays([kept])]


def _describe_function(function: FunctionType) -> Any:
    if function.__closure__:
        # It may do anything with what it has from around it.
        return repr(function)
    defaults = [describe(function.__defaults__), describe(function.__kwdefaults__)]
    text = json.dumps([_describe_code(function.__code__), defaults])
    digest = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
    return [f"{function.__module__}.{function.__qualname__}", digest]


def _describe_code(code: CodeType) -> list:
    """Return what code does, without the place where it stands."""
    constants = [_describe_constant(each) for each in code.co_consts]
    return [code.co_code.hex(), code.co_names, constants]


def _describe_constant(value: Any) -> Any:
    if isinstance(value, CodeType):
        return _describe_code(value)
    if isinstance(value, frozenset):
        # Texts in sets stand in another order in each process.
        return sorted(repr(each) for each in value)
    return repr(value)
