"""Two suites that the paper did not choose: noise in the plane, and ADBench."""

from pathlib import Path

import numpy as np

from benchmarks.paper.datasets._base import Dataset, read_npz

_NOISE = [
    "deric_cluto-t4-8k",
    "deric_cluto-t7-10k",
    "deric_dpb",
    "deric_zelnik4",
    "gagolews_fcps_target_labels1",
    "gagolews_graves_ring_noisy_labels0",
    "gagolews_graves_zigzag_outliers_labels0",
    "gagolews_graves_zigzag_outliers_labels1",
    "gagolews_other_chameleon_t4_8k_labels0",
    "gagolews_other_chameleon_t7_10k_labels0",
    "gagolews_other_hdbscan_labels0",
    "gagolews_sipu_compound_labels2",
    "gagolews_sipu_compound_labels3",
    "gagolews_sipu_flame_labels1",
]

# Sets up to 60,000 rows. Left out as larger: donors, http, smtp, celeba.
_ADBENCH = [
    "1_ALOI",
    "4_breastw",
    "6_cardio",
    "14_glass",
    "18_Ionosphere",
    "20_letter",
    "22_magic.gamma",
    "24_mnist",
    "26_optdigits",
    "28_pendigits",
    "30_satellite",
    "32_shuttle",
    "37_Stamps",
    "39_vertebral",
    "41_Waveform",
    "43_WDBC",
    "45_wine",
    "47_yeast",
]

NAMES = tuple(f"noise/{name}" for name in _NOISE) + tuple(
    f"adbench/{name}" for name in _ADBENCH
)

# ADBench does not say how many clusters its normal rows have.
_ADBENCH_CLUSTERS = 8


def load(name: str, data_dir: Path | None) -> Dataset:
    """Return a set of one of the suites."""
    parts = read_npz(name, data_dir)
    X, y = parts["X"].astype(np.float64), parts["y"].astype(np.int64)
    if name.startswith("adbench/"):
        return Dataset(
            name, X, np.where(y == 1, -1, 0), _ADBENCH_CLUSTERS, int(y.sum())
        )
    return Dataset(name, X, y, int(y.max()) + 1, int((y == -1).sum()))
