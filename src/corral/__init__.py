"""Clusters and outliers in one go: Clustering with Outlier Removal."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corral import metrics as metrics
    from corral._cor import COR as COR
    from corral._detector import CORDetector as CORDetector
    from corral._registry import all_methods as all_methods
    from corral._select import select as select
    from corral._selection import Selection as Selection
    from corral.persist import load as load

__version__ = "0.1.0"

__all__ = [
    "COR",
    "CORDetector",
    "Selection",
    "__version__",
    "all_methods",
    "load",
    "metrics",
    "select",
]

# Loaded when they are first asked for: ``corral --help`` would wait for scikit-learn.
_HOMES = {
    "COR": "corral._cor",
    "CORDetector": "corral._detector",
    "Selection": "corral._selection",
    "all_methods": "corral._registry",
    "load": "corral.persist",
    "select": "corral._select",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name == "metrics":
        return importlib.import_module("corral.metrics")
    raise AttributeError(f"module 'corral' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
