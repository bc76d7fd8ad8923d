"""What the registry says, against the paper's table and the files."""

import re
from urllib.parse import urlsplit

import numpy as np
import pytest

from corral.datasets import describe_dataset, list_datasets
from corral.datasets._content import group_classes, sum_labels, sum_rows
from corral.datasets._formats import read_npz

# Table 1 of the paper: instances, features, clusters and outliers.
TABLE_1 = {
    "ecoli": (336, 7, 5, 9),
    "yeast": (1484, 8, 4, 185),
    "caltech": (1415, 4096, 4, 67),
    "sun09": (3282, 4096, 3, 50),
    "fbis": (2463, 2000, 10, 332),
    "k1b": (2340, 21839, 5, 60),
    "re0": (1504, 2886, 5, 218),
    "re1": (1657, 3758, 6, 527),
    "tr11": (414, 6129, 4, 87),
    "tr23": (204, 5832, 3, 32),
    "wap": (1560, 8460, 10, 251),
    "glass": (214, 9, 3, 39),
    "shuttle": (58000, 9, 3, 244),
    "kddcup": (494021, 38, 3, 54499),
}
DIFFERENT = {"tr11": (414, 6429, 4, 87), "kddcup": (494021, 38, 3, 8752)}
AT_HAND = [name for name in TABLE_1 if name not in ("caltech", "sun09")]


def test_names_are_those_of_the_paper():
    assert list_datasets() == list(TABLE_1)


@pytest.mark.parametrize("name", TABLE_1)
def test_counts_are_those_of_the_paper_but_two(name):
    info = describe_dataset(name)
    counts = (info.n_samples, info.n_features, info.n_clusters, info.n_outliers)
    assert counts == DIFFERENT.get(name, TABLE_1[name])
    if name in DIFFERENT:
        # The notes give the paper's number.
        paper = set(TABLE_1[name]) - set(counts)
        assert all(str(number) in info.notes for number in paper)


@pytest.mark.parametrize("name", TABLE_1)
def test_sources(name):
    info = describe_dataset(name)
    assert urlsplit(info.page).scheme in ("http", "https")
    assert info.licence in ("CC BY 4.0", "not stated")
    for remote in info.downloads:
        assert urlsplit(remote.url).scheme in ("http", "https")
        assert remote.sha256 is None or re.fullmatch("[0-9a-f]{64}", remote.sha256)
    if name in AT_HAND:
        assert info.downloads
        assert len(info.cluster_classes) == info.n_clusters
        sums = info.sha256_rows + info.sha256_labels
        assert re.fullmatch("[0-9a-f]{128}", sums)
    else:
        assert not info.downloads
        assert info.sha256_rows is None
        assert "no checksum is known" in info.notes


def test_unknown_name():
    words = "name='eccoli' is not a known data set. Choose one of ecoli, yeast, caltech"
    with pytest.raises(ValueError, match=re.escape(words)):
        describe_dataset("eccoli")


@pytest.mark.parametrize("name", AT_HAND)
def test_grouping_and_checksums_of_the_files(name, data_folder):
    info = describe_dataset(name)
    content, target = read_npz(data_folder / f"{name}.npz")
    np.testing.assert_array_equal(group_classes(info, content.classes), target)
    assert sum_rows(content.rows) == info.sha256_rows
    assert sum_labels(content.classes, target) == info.sha256_labels


@pytest.mark.parametrize("name", AT_HAND)
def test_clusters_are_the_largest_classes(name, data_folder):
    # The paper's rule, which is all we have for caltech and sun09.
    info = describe_dataset(name)
    content, _ = read_npz(data_folder / f"{name}.npz")
    names, counts = np.unique(content.classes, return_counts=True)
    sizes = dict(zip(names.tolist(), counts.tolist(), strict=True))
    clusters = [sizes.pop(each) for each in info.cluster_classes]
    assert clusters == sorted(clusters, reverse=True)
    assert clusters[-1] > max(sizes.values())
