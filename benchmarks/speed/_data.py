"""The rows that are measured on: real ones from a folder, and generated ones."""

import os
from functools import cache
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.preprocessing import StandardScaler

from benchmarks.speed._measure import CannotMeasure

REPOSITORY = Path(__file__).resolve().parents[2]


def _folder() -> Path:
    named = os.environ.get("CORRAL_DATA")
    return Path(named) if named else REPOSITORY.parent / "shared" / "data"


def _read(name: str) -> dict[str, np.ndarray]:
    path = _folder() / f"{name}.npz"
    if not path.exists():
        raise CannotMeasure("set CORRAL_DATA")
    wanted = {"X", "data", "indices", "indptr", "shape"}
    with np.load(path) as parts:
        return {part: parts[part] for part in parts.files if part in wanted}


@cache
def load_raw(name: str) -> np.ndarray | sparse.csr_array:
    """Return the rows of a data set as they are, in float64."""
    parts = _read(name)
    if "X" in parts:
        return parts["X"].astype(np.float64)
    values = parts["data"].astype(np.float64)
    return sparse.csr_array(
        (values, parts["indices"], parts["indptr"]), shape=tuple(parts["shape"])
    )


@cache
def load_standardised(name: str) -> np.ndarray:
    """Return the rows of a data set with mean 0 and variance 1, in float32."""
    X = _read(name)["X"].astype(np.float64)
    return StandardScaler(copy=False).fit_transform(X).astype(np.float32)


@cache
def make_noisy_blobs(
    n_samples: int, n_features: int = 16, n_clusters: int = 5, noise: float = 0.01
) -> np.ndarray:
    """Return round clusters and a share of uniform noise, in float32.

    Rows are drawn independently of each other, so the first rows are a smaller set of
    the same kind.
    """
    rng = np.random.default_rng(0)
    centers = rng.uniform(-10, 10, (n_clusters, n_features)).astype(np.float32)
    X = rng.standard_normal((n_samples, n_features), dtype=np.float32)
    X += centers[rng.integers(n_clusters, size=n_samples)]
    is_noise = rng.random(n_samples) < noise
    X[is_noise] = rng.uniform(-13, 13, (np.count_nonzero(is_noise), n_features))
    return X
