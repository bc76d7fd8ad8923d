"""Fits inside the pools of others: same answers, and not too many threads."""

import os
import threading
from contextlib import contextmanager

import numpy as np
import pytest
from joblib import Parallel, delayed
from sklearn.model_selection import GridSearchCV, cross_val_predict

from corral import COR
from corral._progress import watch
from corral._threads import use_threads
from tests.sameness.fits import IS_BROAD, draw_mixed

on_request = pytest.mark.skipif(
    not IS_BROAD, reason="starts processes; on request: set CORRAL_SAMENESS=1"
)

X = draw_mixed(np.random.default_rng(0), 400, 3)
N_CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def fit_labels(seed):
    return COR(3, n_outliers=9, n_partitions=20, random_state=seed).fit_predict(X)


def fit_in_worker(seed):
    """Return the labels, and how many threads a fit here may have."""
    with use_threads(None) as threads:
        return fit_labels(seed), threads.n_threads


@contextmanager
def counted_threads():
    """Give the numbers of threads of fits that were alive when these reported."""
    counts = []

    def count(*report):
        names = [each.name for each in threading.enumerate()]
        counts.append(sum(name.startswith("corral") for name in names))

    with watch(count):
        yield counts


@pytest.mark.thread_unsafe(reason="counts the threads of the process")
def test_fits_in_threads_of_joblib_are_the_same_and_share_the_cores():
    def fit(seed):
        with counted_threads() as counts:
            return fit_labels(seed), max(counts)

    found = Parallel(n_jobs=4, backend="threading")(delayed(fit)(i) for i in range(8))
    for seed, (labels, _) in enumerate(found):
        np.testing.assert_array_equal(labels, fit_labels(seed))
    # The k-th of four fits has a k-th of the cores.
    assert max(n_threads for _, n_threads in found) <= 2.1 * N_CORES


@on_request
def test_fits_in_processes_of_joblib_are_the_same_and_share_the_cores():
    found = Parallel(n_jobs=2, backend="loky")(
        delayed(fit_in_worker)(seed) for seed in range(4)
    )
    for seed, (labels, n_threads) in enumerate(found):
        np.testing.assert_array_equal(labels, fit_labels(seed))
        assert n_threads == max(N_CORES // 2, 1)


@on_request
def test_grid_search_in_processes_finds_the_same():
    model = COR(3, n_outliers=9, n_partitions=20, random_state=0)
    grid = {"n_clusters": [2, 3, 4]}
    search = GridSearchCV(model, grid, scoring=_how_normal)
    expected = search.fit(X).cv_results_["mean_test_score"]
    found = search.set_params(n_jobs=2).fit(X).cv_results_["mean_test_score"]
    np.testing.assert_array_equal(found, expected)
    labels = [cross_val_predict(model, X, n_jobs=n_jobs) for n_jobs in (1, 2)]
    np.testing.assert_array_equal(*labels)


def _how_normal(model, X):
    return float(np.mean(model.score_samples(X)))


@on_request
@pytest.mark.parametrize("processes", [False, True], ids=["threads", "processes"])
def test_fits_in_workers_of_dask_are_the_same(processes):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=2,
            processes=processes,
            dashboard_address=None,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        found = client.gather(client.map(fit_labels, range(6), pure=False))
    for seed, labels in enumerate(found):
        np.testing.assert_array_equal(labels, fit_labels(seed))
