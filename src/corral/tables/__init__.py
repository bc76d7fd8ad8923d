"""Tables: files in, columns told apart, rows fit for any method, files out."""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from corral._atomic import write_atomically as write_atomically
    from corral.tables._encoder import TableEncoder as TableEncoder
    from corral.tables._model import TableModel as TableModel
    from corral.tables._read import read_table as read_table
    from corral.tables._write import write_csv as write_csv
    from corral.tables._write import write_rows as write_rows

__all__ = [
    "TableEncoder",
    "TableModel",
    "read_table",
    "write_atomically",
    "write_csv",
    "write_rows",
]

# Loaded when they are first asked for: who only writes files needs no scikit-learn.
_HOMES = {
    "TableEncoder": "corral.tables._encoder",
    "TableModel": "corral.tables._model",
    "read_table": "corral.tables._read",
    "write_atomically": "corral._atomic",
    "write_csv": "corral.tables._write",
    "write_rows": "corral.tables._write",
}


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'corral.tables' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
