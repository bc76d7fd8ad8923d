"""The paper's data sets, and generators of data with planted outliers."""

from corral.datasets._generators import (
    make_blobs_with_outliers,
    make_high_dimensional,
    make_micro_clusters,
    make_moons_with_noise,
    make_sparse_text,
)
from corral.datasets._info import DatasetInfo, RemoteFile
from corral.datasets._load import fetch_dataset, load_dataset
from corral.datasets._registry import describe_dataset, list_datasets

__all__ = [
    "DatasetInfo",
    "RemoteFile",
    "describe_dataset",
    "fetch_dataset",
    "list_datasets",
    "load_dataset",
    "make_blobs_with_outliers",
    "make_high_dimensional",
    "make_micro_clusters",
    "make_moons_with_noise",
    "make_sparse_text",
]
