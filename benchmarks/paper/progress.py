"""A bar that shows what is left."""

import sys
from typing import Any


class SilentBar:
    """Shows nothing but the notes."""

    def update(self, n: int = 1) -> None:
        """Count runs as done."""

    def set_description(self, text: str) -> None:
        """Say what is under way."""

    def write(self, text: str) -> None:
        """Write a note."""
        print(text, file=sys.stderr)

    def close(self) -> None:
        """Take the bar away."""


def open_bar(total: int, shown: bool = True) -> Any:
    """Return a bar for so many runs, on stderr."""
    if not shown:
        return SilentBar()
    try:
        from tqdm import tqdm
    except ImportError:
        raise ImportError(
            "The progress bar needs tqdm. Install it with: "
            'pip install "corral[paper]", or ask for --quiet.'
        ) from None
    return _NotingBar(tqdm(total=total, unit="run", file=sys.stderr, smoothing=0.05))


class _NotingBar:
    """tqdm, with notes above the bar."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def update(self, n: int = 1) -> None:
        self._bar.update(n)

    def set_description(self, text: str) -> None:
        self._bar.set_description(text)

    def write(self, text: str) -> None:
        self._bar.write(text, file=sys.stderr)

    def close(self) -> None:
        self._bar.close()
