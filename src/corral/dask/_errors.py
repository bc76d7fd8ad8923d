"""What can go wrong on a cluster, in words."""

import importlib
from typing import Any


class ClusterLostError(RuntimeError):
    """The scheduler of the cluster does not answer any more."""


def need_dask(module: str) -> Any:
    """Import a module of Dask, or say how to install it."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise ImportError(
            f"corral.dask needs {module.partition('.')[0]}. Install it with: "
            'pip install "corral[dask]"'
        ) from error


def find_client() -> Any:
    """Return the client of the cluster that is in use."""
    try:
        return need_dask("distributed").get_client()
    except ValueError as error:
        raise ValueError(
            "No Dask cluster is at hand. Make a client before the fit: "
            "distributed.Client('tcp://scheduler:8786'), or "
            "corral.dask.start_cluster() for one on this machine."
        ) from error
