"""Every data set by its name. Nothing here knows methods or measures."""

from pathlib import Path

from benchmarks.paper.datasets import _flights, _generated, _published, _suites
from benchmarks.paper.datasets._base import Dataset, MissingData, Rows
from benchmarks.paper.datasets._flights import Tracks, load_tracks

__all__ = [
    "Dataset",
    "MissingData",
    "Rows",
    "Tracks",
    "expand",
    "load",
    "load_tracks",
    "names",
]

# Where a name begins with the first part and a slash, the module loads it; the paper's
# own sets have plain names.
_FAMILIES = {
    "noise": _suites,
    "adbench": _suites,
    "flights": _flights,
    "generated": _generated,
}


def names() -> list[str]:
    """Return the names of all data sets, whether their files are here or not."""
    families = dict.fromkeys((_published, *_FAMILIES.values()))
    return [name for family in families for name in family.NAMES]


def expand(patterns: list[str]) -> list[str]:
    """Return the names that are listed; ``noise/*`` stands for all of a family."""
    found: list[str] = []
    for pattern in patterns:
        family, _, rest = pattern.partition("/")
        wanted = [
            name
            for name in names()
            if name == pattern or (rest == "*" and name.startswith(f"{family}/"))
        ]
        if not wanted:
            raise ValueError(
                f"The data set {pattern!r} is not known. Choose from "
                f"{', '.join(names())}."
            )
        found += wanted
    return found


def load(name: str, data_dir: Path | None = None) -> Dataset:
    """Return a data set as it is in its file.

    Parameters
    ----------
    name : str
        One of :func:`names`.
    data_dir : Path, default=None
        Folder with the files; else that of the environment variable ``CORRAL_DATA``,
        else ``../shared/data``.

    Returns
    -------
    dataset : Dataset

    Raises
    ------
    MissingData
        If its file is not here.
    """
    family = _FAMILIES.get(name.partition("/")[0], _published)
    return family.load(name, data_dir)
