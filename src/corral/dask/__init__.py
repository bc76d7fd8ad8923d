"""COR on a Dask cluster: rows on many machines, or in files that all of them see."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corral.dask._cluster import start_cluster as start_cluster
    from corral.dask._cor import COR as COR
    from corral.dask._errors import ClusterLostError as ClusterLostError

__all__ = ["COR", "ClusterLostError", "start_cluster"]

# Loaded when they are first asked for: Dask takes a second to import.
_HOMES = {
    "COR": "corral.dask._cor",
    "ClusterLostError": "corral.dask._errors",
    "start_cluster": "corral.dask._cluster",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'corral.dask' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
