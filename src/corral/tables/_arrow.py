"""Where pyarrow comes from, and what tells a missing extra."""

from importlib import import_module
from typing import Any


def need_arrow(module: str = "pyarrow") -> Any:
    """Import pyarrow or a part of it, or say how to install it.

    Parameters
    ----------
    module : str, default="pyarrow"

    Returns
    -------
    module : module
    """
    try:
        return import_module(module)
    except ImportError as error:
        raise ImportError(
            "Reading and writing tables needs pyarrow. Install it with: "
            'pip install "corral[tables]"'
        ) from error
