"""K-means on all rows, by passes of a cluster, is K-means on all rows in memory."""

import numpy as np

import corral
from corral import _ladder, _partition_mixin
from corral.dask import COR
from tests.test_blocks import assert_same
from tests.test_full_data import FEW_MISSING, GIVEN, assert_same_runs


def test_a_cluster_gives_the_same(client, cut_into, monkeypatch, tmp_path):
    monkeypatch.setattr(_partition_mixin, "MAX_HELD_VALUES", 0)
    monkeypatch.setattr(_ladder, "_MIN_ROWS", 40)
    X = FEW_MISSING()
    np.save(tmp_path / "rows.npy", X)
    params = {"n_partitions": 12, "n_resamples": 3, "random_state": 0, **GIVEN}
    expected = corral.COR(**params).fit(X)
    cut_into(700)
    found = COR(**params).fit(tmp_path / "rows.npy").to_local()
    assert_same_runs(expected, found)
    assert_same(expected, found)
