"""Sets with planted outliers that are always there, made by ``corral.datasets``."""

from pathlib import Path

from benchmarks.paper.datasets._base import Dataset
from corral import datasets

_MAKERS = {
    "generated/blobs": "make_blobs_with_outliers",
    "generated/moons": "make_moons_with_noise",
    "generated/micro_clusters": "make_micro_clusters",
    "generated/high_dimensional": "make_high_dimensional",
    "generated/text": "make_sparse_text",
}
NAMES = tuple(_MAKERS)


def load(name: str, data_dir: Path | None) -> Dataset:
    """Return a generated set, always the same."""
    X, y = getattr(datasets, _MAKERS[name])(random_state=0)
    kind = "text" if name == "generated/text" else "numeric"
    return Dataset(name, X, y, int(y.max()) + 1, int((y == -1).sum()), kind)
