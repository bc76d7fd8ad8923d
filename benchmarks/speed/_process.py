"""The memory of this process, as Linux counts it."""

from pathlib import Path

from benchmarks.speed._measure import CannotMeasure

_STATUS = Path("/proc/self/status")


def check_memory_is_counted() -> None:
    """Give up where the system does not tell."""
    if not _STATUS.exists() or "VmHWM" not in _STATUS.read_text():
        raise CannotMeasure("needs Linux")


def read_status(key: str) -> int:
    """Return a size of this process in bytes.

    VmRSS is what it holds now and VmHWM the most it ever held. The peak that getrusage
    gives would do as well, but a process may inherit it from the one that started it.
    """
    lines = _STATUS.read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
