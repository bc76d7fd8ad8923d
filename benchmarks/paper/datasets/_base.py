"""What a data set is, and where its file lies."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
from scipy import sparse

Rows = np.ndarray | sparse.csr_array

_REPOSITORY = Path(__file__).resolve().parents[3]


class MissingData(Exception):
    """The file of a data set is not here; the text says what to do."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Rows, what is known about them, and what a method is told.

    Attributes
    ----------
    name : str
    X : array or sparse array of shape (n_samples, n_features)
        As in the file, in its order.
    y : ndarray of shape (n_samples,) or None
        0..K-1 for clusters, -1 for outliers; None where nobody knows.
    n_clusters, n_outliers : int
        K and o, which methods are given.
    kind : {"numeric", "text"}
        What the recipes go by.
    """

    name: str
    X: Rows
    y: np.ndarray | None
    n_clusters: int
    n_outliers: int
    kind: Literal["numeric", "text"] = "numeric"

    @property
    def n_samples(self) -> int:
        return self.X.shape[0]

    @property
    def is_sparse(self) -> bool:
        return sparse.issparse(self.X)


def find_folder(data_dir: Path | None) -> Path:
    """Return the folder with the files: as asked for, or else where they may be."""
    named = data_dir or os.environ.get("CORRAL_DATA")
    return Path(named) if named else _REPOSITORY.parent / "shared" / "data"


def read_npz(name: str, data_dir: Path | None) -> dict[str, np.ndarray]:
    """Return the arrays of a file in the data folder."""
    path = find_folder(data_dir) / f"{name}.npz"
    if not path.exists():
        raise MissingData(
            f"{name}.npz is not in the data folder. Name the folder with --data-dir "
            "or in the environment variable CORRAL_DATA."
        )
    with np.load(path) as file:
        return {part: file[part] for part in file.files}
