"""How busy the machine was with other things, which spoils a measurement.

OpenMP threads wait for each other actively: where another process takes one of two
cores, scikit-learn's K-means has been seen to take ten times as long, and a ratio that
looks good says nothing.
"""

import os
from pathlib import Path

_STAT = Path("/proc/stat")


class Neighbours:
    """Processor time that other processes took since this was made."""

    def __init__(self) -> None:
        self._start = _read_clocks()

    def share(self) -> float | None:
        """Return their share of all processor time; None where it is not known."""
        now = _read_clocks()
        if self._start is None or now is None:
            return None
        total, busy, own = (b - a for a, b in zip(self._start, now, strict=True))
        return max(busy - own, 0.0) / max(total, 1e-9)


def _read_clocks() -> tuple[float, float, float] | None:
    """Return seconds since the start of the machine: all, not idle, and our own."""
    if not _STAT.exists():
        return None
    # user, nice, system, idle, waiting for disks, interrupts (two kinds), stolen
    ticks = [int(text) for text in _STAT.read_text().split()[1:9]]
    total = sum(ticks)
    busy = total - ticks[3] - ticks[4]
    per_second = os.sysconf("SC_CLK_TCK")
    return total / per_second, busy / per_second, sum(os.times()[:4])
