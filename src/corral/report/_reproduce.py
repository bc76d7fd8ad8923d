"""What it takes to get the same result again."""

import platform
import re
import reprlib
from typing import Any

import numpy as np
import scipy
import sklearn

from corral import __version__
from corral.report._words import clip

# Longer settings are cut.
_MAX_LETTERS = 400


def list_versions() -> dict[str, str]:
    """Return the versions of what computed the result."""
    return {
        "corral": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "scikit-learn": sklearn.__version__,
        "scipy": scipy.__version__,
    }


def list_settings(estimator) -> dict[str, Any]:
    """Return the parameters, as words where JSON has no such value."""
    parameters = sorted(estimator.get_params(deep=False).items())
    return {name: _plain(value) for name, value in parameters}


def _plain(value) -> Any:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return repr(value)
    if value is None or isinstance(value, bool | int | float):
        return value
    return clip(value if isinstance(value, str) else reprlib.repr(value), _MAX_LETTERS)


def has_seed(estimator) -> bool:
    """Return whether another fit gives the same: all random choices have a seed."""
    return all(
        value is not None
        for name, value in estimator.get_params(deep=True).items()
        if name.rpartition("__")[2] == "random_state"
    )


def write_python(estimator) -> str:
    """Return the line of Python that makes the model."""
    parts = type(estimator).__module__.split(".")
    public = ".".join(part for part in parts if not part.startswith("_"))
    call = re.sub(r"\n\s*", " ", estimator.__repr__(N_CHAR_MAX=10**6))
    fit = "fit(X)"
    is_asked = getattr(estimator, "partitions", None)
    if getattr(estimator, "_is_precomputed", False) and is_asked != "precomputed":
        fit = "fit_partitions(partitions)"
    return f"from {public} import {type(estimator).__name__}; model = {call}.{fit}"
