"""A fit leaves the process as it found it."""

import logging
import os
import random
import signal
import threading
import time
import warnings

import numpy as np
import pytest
import sklearn
from threadpoolctl import threadpool_info

from tests.sameness.fits import IS_BROAD, fit_and_answer, list_fits

NAMES = ["cor", "cor paper", "cor cosine", "kmeans--", "kmeans+1", "lof", "iforest"]
if IS_BROAD:
    NAMES = list(list_fits(0))


def look_around():
    """Return what belongs to the process and not to a fit."""
    loggers = [logging.getLogger(), logging.getLogger("corral")]
    kind, keys, *place = np.random.get_state()
    return {
        "NumPy's random state": (kind, keys.tobytes(), *place),
        "Python's random state": random.getstate(),
        "filters of warnings": list(warnings.filters),
        "who shows warnings": warnings.showwarning,
        "errors of NumPy": np.geterr(),
        "loggers": [(each.level, list(each.handlers)) for each in loggers],
        "scikit-learn's settings": sklearn.get_config(),
        "environment": dict(os.environ),
        "folder": os.getcwd(),
        "who is interrupted": signal.getsignal(signal.SIGINT),
        "threads of libraries": {
            each["filepath"]: each["num_threads"] for each in threadpool_info()
        },
    }


def wait_for_end(threads):
    """Return the threads that are left when those of joblib, which end late, have."""
    deadline = time.monotonic() + 10
    while set(threading.enumerate()) - threads and time.monotonic() < deadline:
        time.sleep(0.01)
    return set(threading.enumerate())


@pytest.mark.thread_unsafe(reason="fits of other threads are at work meanwhile")
@pytest.mark.parametrize("n_jobs", [1, 3] if IS_BROAD else [3])
@pytest.mark.parametrize("name", NAMES)
def test_fit_and_answers_leave_the_process_as_it_was(name, n_jobs, seed):
    fit, lasting = list_fits(seed)[name], set(threading.enumerate())
    # What is made at the first fit only is no business of this test.
    fit_and_answer(fit, n_jobs=n_jobs)
    threads = wait_for_end(lasting)
    before = look_around()
    fit_and_answer(fit, n_jobs=n_jobs)
    assert look_around() == before
    assert wait_for_end(threads) == threads


@pytest.mark.thread_unsafe(reason="sets the random state of the process")
def test_the_random_state_of_the_process_has_no_say(seed):
    fit = list_fits(seed)["cor"]
    expected = fit_and_answer(fit)["outlier_scores_"]
    state = np.random.get_state()
    try:
        np.random.seed(seed + 1)
        found = fit_and_answer(fit)["outlier_scores_"]
    finally:
        np.random.set_state(state)
    np.testing.assert_array_equal(found, expected)
