"""The paper's own sets, by ``corral.datasets``."""

from pathlib import Path

from benchmarks.paper.datasets._base import Dataset, MissingData, find_folder
from corral.datasets import load_dataset

# In the order of the paper. caltech and sun09 could not be had.
NAMES = (
    "ecoli",
    "yeast",
    "fbis",
    "k1b",
    "re0",
    "re1",
    "tr11",
    "tr23",
    "wap",
    "glass",
    "shuttle",
    "kddcup",
)
_TEXT = {"fbis", "k1b", "re0", "re1", "tr11", "tr23", "wap"}


def load(name: str, data_dir: Path | None) -> Dataset:
    """Return a set of the paper, with its K and o counted from its grouping."""
    try:
        bunch = load_dataset(name, data_dir=find_folder(data_dir))
    except FileNotFoundError as error:
        raise MissingData(str(error)) from error
    y = bunch.target
    kind = "text" if name in _TEXT else "numeric"
    return Dataset(name, bunch.data, y, int(y.max()) + 1, int((y == -1).sum()), kind)
