"""A small cluster of worker processes, and rows that blocks are cut from."""

import numpy as np
import pytest

pytest.importorskip("distributed", reason='pip install "corral[dask]"')

import dask  # noqa: E402
from distributed.utils import get_mp_context  # noqa: E402

from corral.dask import start_cluster  # noqa: E402

# Small, so that a fit takes a moment.
SETTINGS = {"n_partitions": 20, "n_resamples": 5, "random_state": 0}


def draw_rows(n_rows=600, n_features=3, seed=0):
    """Return three groups that touch, and a few rows far out."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n_rows)
    X = rng.normal(size=(n_rows, n_features)) + 5 * np.eye(3, n_features)[y]
    far = rng.choice(n_rows, n_rows // 50, replace=False)
    X[far] = rng.normal(size=(len(far), n_features)) * 30
    return X


@pytest.fixture(scope="session", autouse=True)
def _loaded_workers():
    """Have workers start from a process that has loaded all that they need.

    They come and go often here, and would load it each time.
    """
    with dask.config.set({"distributed.worker.multiprocessing-method": "forkserver"}):
        get_mp_context().set_forkserver_preload(["corral.dask._workplace"])
        yield


@pytest.fixture(scope="session")
def _client(_loaded_workers):
    with start_cluster(2) as client:
        yield client


@pytest.fixture
def client(_client):
    """Return the client of a cluster of two worker processes."""
    with _client.as_current():
        yield _client


@pytest.fixture
def X():
    return draw_rows()


@pytest.fixture
def cut_into(monkeypatch):
    """Return what has the rows of sources cut into blocks of so many."""
    from corral._memory import Budget

    def cut(block_rows):
        monkeypatch.setattr(Budget, "count_block_rows", lambda *_: block_rows)

    return cut
