"""Sources: rows that are read in pieces, more than once, and never held as a whole."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corral.sources._array import ArraySource as ArraySource
    from corral.sources._csv import CsvSource as CsvSource
    from corral.sources._errors import UnreadableBlockError as UnreadableBlockError
    from corral.sources._iterator import IteratorSource as IteratorSource
    from corral.sources._open import open_source as open_source
    from corral.sources._parquet import ParquetSource as ParquetSource

__all__ = [
    "ArraySource",
    "CsvSource",
    "IteratorSource",
    "ParquetSource",
    "UnreadableBlockError",
    "open_source",
]

# Loaded when they are first asked for: arrays need nothing that reads files.
_HOMES = {
    "ArraySource": "corral.sources._array",
    "CsvSource": "corral.sources._csv",
    "IteratorSource": "corral.sources._iterator",
    "ParquetSource": "corral.sources._parquet",
    "UnreadableBlockError": "corral.sources._errors",
    "open_source": "corral.sources._open",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'corral.sources' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
