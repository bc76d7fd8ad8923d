"""COR and K-means-- on a Dask cluster: rows of many machines, or of shared files."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corral.dask._cluster import start_cluster as start_cluster
    from corral.dask._cor import COR as COR
    from corral.dask._errors import ClusterLostError as ClusterLostError
    from corral.dask._kmeans_minus_minus import KMeansMinusMinus as KMeansMinusMinus

__all__ = ["COR", "ClusterLostError", "KMeansMinusMinus", "start_cluster"]

# Loaded when they are first asked for: Dask takes a second to import.
_HOMES = {
    "COR": "corral.dask._cor",
    "ClusterLostError": "corral.dask._errors",
    "KMeansMinusMinus": "corral.dask._kmeans_minus_minus",
    "start_cluster": "corral.dask._cluster",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'corral.dask' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
