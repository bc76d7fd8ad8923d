"""The memory of this process, as Linux and Python count it."""

import ctypes
import gc
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

_STATUS = Path("/proc/self/status")
# Writing 5 there sets the peak back to what is held now.
_CLEAR = Path("/proc/self/clear_refs")


def read_status(key: str) -> int:
    """Return VmRSS (bytes held now) or VmHWM (the most since the last reset)."""
    if not _STATUS.exists():
        pytest.skip("only Linux tells how much memory a process holds")
    lines = _STATUS.read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))


class Peak:
    """How far the memory of this process rose above what it held at first."""

    def __init__(self) -> None:
        gc.collect()
        # What was freed but not given back would hide a rise.
        with suppress(AttributeError, OSError):
            ctypes.CDLL(None).malloc_trim(0)
        self._before = read_status("VmRSS")
        _CLEAR.write_text("5")

    def read(self) -> int:
        return read_status("VmHWM") - self._before


@contextmanager
def traced() -> Iterator[None]:
    """Count what Python and NumPy hold."""
    # What is there already is not looked through at each count.
    gc.collect()
    gc.freeze()
    tracemalloc.start()
    try:
        yield
    finally:
        tracemalloc.stop()
        gc.unfreeze()


def count_held() -> int:
    """Return the bytes that are held within :func:`traced`."""
    gc.collect()
    return tracemalloc.get_traced_memory()[0]
