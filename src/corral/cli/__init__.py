"""The command line: one file per command, collected in ``_group.py``."""

import os
import signal
import sys


def main() -> None:
    """Run the command line, or say what it needs."""
    signal.signal(signal.SIGTERM, _end)
    if sys.stderr is None:
        # Closed by the caller. NumPy 2.0 cannot be loaded without one.
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    try:
        from corral.cli._group import corral
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write(
            'The command line needs click. Install it with: pip install "corral[cli]"\n'
        )
        sys.exit(2)
    except KeyboardInterrupt:
        sys.exit(130)
    corral()


def _end(number: int, frame: object) -> None:
    """End as Python ends, so that temporary files go; 143 is what shells expect."""
    sys.exit(128 + number)
