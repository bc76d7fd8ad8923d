"""A cluster of worker processes on this machine."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from corral.dask._errors import need_dask

_LOOPBACK = "127.0.0.1"

# A worker that has not been heard of for so long is given up, and others do its work.
_WORKER_TTL = "60s"

# A worker that died is started again at once. Dask looks once more some time after
# each death, and gives up a worker that happens to be dead again just then: never here.
_LOST_WORKER_TIMEOUT = "1000d"


@contextmanager
def start_cluster(
    n_workers: int = 2,
    *,
    memory_limit: int | str = "auto",
    dashboard_address: str | None = None,
    report: str | Path | None = None,
) -> Iterator[Any]:
    """Start worker processes on this machine, for the time of a ``with`` block.

    All of it listens on 127.0.0.1 only.

    Parameters
    ----------
    n_workers : int, default=2
        Number of processes, each of which does one task at a time.
    memory_limit : int or str, default="auto"
        Of each worker.
    dashboard_address : str, default=None
        Where Dask's dashboard is served, such as "127.0.0.1:8787"; only this machine
        may see it. None leaves it off.
    report : str or Path, default=None
        A file for Dask's performance report, a page of HTML.

    Yields
    ------
    client : distributed.Client

    Examples
    --------
    >>> from corral.dask import COR, start_cluster
    >>> with start_cluster(2) as client:  # doctest: +SKIP
    ...     model = COR(5, n_outliers=1000).fit("folder")
    ...     labels = model.labels_.compute()
    """
    dask, distributed = need_dask("dask"), need_dask("distributed")
    with ExitStack() as stack:
        stack.enter_context(
            dask.config.set(
                {
                    "distributed.scheduler.worker-ttl": _WORKER_TTL,
                    "distributed.deploy.lost-worker-timeout": _LOST_WORKER_TIMEOUT,
                    # What is kept of a block costs more to send than a task to wait.
                    "distributed.scheduler.work-stealing": False,
                }
            )
        )
        cluster = stack.enter_context(
            distributed.LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                processes=True,
                host=_LOOPBACK,
                memory_limit=memory_limit,
                dashboard_address=_check_address(dashboard_address),
                scheduler_kwargs={"dashboard": dashboard_address is not None},
            )
        )
        client = stack.enter_context(distributed.Client(cluster))
        if report is not None:
            stack.enter_context(distributed.performance_report(filename=str(report)))
        yield client


def _check_address(address: str | None) -> str:
    """Return where the scheduler serves pages; refuse what other machines may see."""
    if address is None:
        # Dask tells its state to monitors even without a dashboard: at any port.
        return f"{_LOOPBACK}:0"
    host, _, port = address.rpartition(":")
    if host not in ("", "localhost", _LOOPBACK) or not port.isdecimal():
        raise ValueError(
            f"dashboard_address={address!r} should be an address of this machine that "
            f"others do not see. Use '{_LOOPBACK}:8787'."
        )
    return f"{_LOOPBACK}:{port}"
