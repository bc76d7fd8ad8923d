"""What can go wrong on a cluster, in words."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class ClusterLostError(RuntimeError):
    """The scheduler of the cluster does not answer any more, or workers keep dying."""


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


@contextmanager
def tell_loss(client: Any) -> Iterator[None]:
    """Say in words that the cluster was lost."""
    distributed = need_dask("distributed")
    # What is sent now would wait for an answer until the client gives up.
    if client.status != "running":
        raise _lost(f"its client is {client.status}")
    cancelled = (
        distributed.comm.CommClosedError,
        distributed.client.FutureCancelledError,
        distributed.client.FuturesCancelledError,
    )
    try:
        yield
    except distributed.KilledWorker as error:
        raise ClusterLostError(
            f"{error.allowed_failures + 1} workers of the Dask cluster died at the "
            f"same task, '{error.task}'. If they ran out of memory, give them more, or "
            "lower memory_limit or the size of X's chunks."
        ) from error
    except Exception as error:
        if isinstance(error, cancelled) or client.status != "running":
            raise _lost("its scheduler does not answer") from error
        raise


def _lost(reason: str) -> ClusterLostError:
    return ClusterLostError(
        f"The Dask cluster was lost: {reason}. Start the fit again on another one; "
        "with the same checkpoint_dir it goes on from where it was."
    )
