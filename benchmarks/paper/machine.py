"""What a run depends on beside its parameters: versions, commit, processor, threads."""

import subprocess
from functools import cache
from pathlib import Path

from joblib import cpu_count

from benchmarks.speed._measure import Options
from benchmarks.speed._report import describe_machine


def describe() -> dict:
    """Return date, processor, threads, versions of libraries, and the commit."""
    machine = describe_machine(Options(quick=False, threads=cpu_count()), None)
    wanted = ("date", "processor", "cores", "threads", "system", "versions")
    return {**{key: machine[key] for key in wanted}, "commit": _find_commit()}


@cache
def _find_commit() -> str | None:
    """Return the commit of the working copy, with a plus sign if it was changed."""
    folder = Path(__file__).parent
    try:
        commit = _git(folder, "rev-parse", "--short", "HEAD")
        return commit + ("+" if _git(folder, "status", "--porcelain") else "")
    except (OSError, subprocess.CalledProcessError):
        return None


def _git(folder: Path, *arguments: str) -> str:
    command = ["git", "-C", str(folder), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.strip()
