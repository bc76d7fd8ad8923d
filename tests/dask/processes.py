"""Processes of a cluster, and what befalls them."""

import importlib
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path

from distributed import Client


def befall(place, marker, number, pid=None):
    """Have the first call of a function in any worker send a signal, once.

    Parameters
    ----------
    place : str
        The module and the name of a function that the tasks of a pass call.
    marker : Path
        Made by the process that the signal befalls.
    number : int
        The signal.
    pid : int, default=None
        Whom it is sent to; None means the process itself.
    """
    module, _, name = place.rpartition(".")
    home = importlib.import_module(module)
    function = getattr(home, name)

    def call(*args, **kwargs):
        try:
            with open(marker, "x") as file:
                file.write(str(os.getpid()))
        except FileExistsError:
            pass
        else:
            os.kill(pid or os.getpid(), number)
        return function(*args, **kwargs)

    setattr(home, name, call)


def count_calls(place, folder):
    """Have each call of a function in a worker leave a file in a folder."""
    module, _, name = place.rpartition(".")
    home = importlib.import_module(module)
    function = getattr(home, name)

    def call(*args, **kwargs):
        Path(folder, f"{os.getpid()}-{time.monotonic_ns()}").touch()
        return function(*args, **kwargs)

    setattr(home, name, call)


def wait_until(is_so, seconds=30):
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < end, "waited for too long"
        time.sleep(0.05)


def is_stopped(pid):
    """Return whether a process is stopped by a signal."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "T"


@contextmanager
def run_cluster(folder, n_workers=2, worker_ttl="60s"):
    """Start a scheduler and workers without nannies, each a process of its own.

    Yields
    ------
    client : Client
    scheduler : Popen
    """
    folder.mkdir()
    note = folder / "scheduler.json"
    quiet = ["--host", "127.0.0.1", "--no-dashboard"]
    here = {"--scheduler-file": note, "--dashboard-address": "127.0.0.1:0"}
    options = [str(part) for pair in here.items() for part in pair]
    # Loaded before there are heartbeats to miss.
    options += ["--preload", "corral.dask._workplace"]
    worker = ["--no-nanny", "--nthreads", "1", "--local-directory", str(folder)]
    environment = {
        **os.environ,
        "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": worker_ttl,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }

    def start(module, *more):
        return subprocess.Popen(
            [
                sys.executable,
                "-m",
                f"distributed.cli.{module}",
                *quiet,
                *options,
                *more,
            ],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=(folder / f"{module}.log").open("ab"),
        )

    processes = [start("dask_scheduler", "--port", "0")]
    try:
        processes += [start("dask_worker", *worker) for _ in range(n_workers)]
        wait_until(note.exists)
        with Client(scheduler_file=str(note), set_as_default=False) as client:
            client.wait_for_workers(n_workers, timeout=30)
            with client.as_current():
                yield client, processes[0]
    finally:
        for process in processes:
            process.send_signal(signal.SIGCONT)
            process.kill()
        for process in processes:
            process.wait()
