"""Threads of our own above, BLAS at one thread below."""

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextvars import ContextVar

import numpy as np
import pytest
from sklearn.cluster import DBSCAN, HDBSCAN, KMeans
from sklearn.neighbors import LocalOutlierFactor
from threadpoolctl import threadpool_info, threadpool_limits

from corral import COR, _threads, rivals
from corral._progress import watch
from corral._threads import use_threads
from corral.detectors import LOF
from corral.rivals import KMeansPlusOne

# The number of BLAS threads belongs to the process.
alone = pytest.mark.thread_unsafe(reason="looks at the number of threads of BLAS")


def blas_threads():
    return {
        lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"
    }


@alone
def test_blas_is_held_to_one_thread_and_restored():
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        with use_threads(2):
            assert blas_threads() == {1}
        assert blas_threads() == before


@alone
def test_blas_is_restored_after_an_error():
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        with pytest.raises(RuntimeError, match="on purpose"), use_threads(2):
            raise RuntimeError("on purpose")
        assert blas_threads() == before


@alone
def test_overlapping_fits_restore_blas():
    # The first to come in is the first to leave, while the second is still at work.
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        first, second = use_threads(1), use_threads(1)
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before


def in_a_thread(function, *args, **options):
    """Call a function in a thread of its own, which then ends."""
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(function, *args, **options).result()


@alone
def test_a_thread_that_lives_on_keeps_no_other_from_restoring_blas(request):
    # threadpoolctl lets the first thread that sets a number set it, and no other one
    # while that lives.
    (usual,) = blas_threads()
    request.addfinalizer(lambda: in_a_thread(threadpool_limits, usual, "blas"))
    in_a_thread(threadpool_limits, 3, "blas")
    inside, leave = threading.Event(), threading.Event()

    def fit():
        with use_threads(1):
            inside.set()
            assert leave.wait(30)

    # The first to come in is the first to leave, and does not end.
    other = threading.Thread(target=fit)
    with use_threads(1):
        other.start()
        assert inside.wait(30)
        assert blas_threads() == {1}
    assert blas_threads() == {1}
    leave.set()
    other.join()
    assert blas_threads() == {3}

    def look():
        with threadpool_limits(2, "blas"):
            return blas_threads()

    assert in_a_thread(look) == {2}
    assert blas_threads() == {3}


@alone
def test_default_is_what_blas_may_use():
    with threadpool_limits(1, user_api="blas"), use_threads(None) as threads:
        assert threads.n_threads == 1
    with use_threads(7) as threads:
        assert threads.n_threads == 7


@pytest.mark.parametrize("n_threads", [1, 2, 3])
@pytest.mark.parametrize("n_items", [0, 1, 2, 10])
def test_each_item_is_done_once(n_threads, n_items):
    done, lock = [], threading.Lock()

    def work(number, share):
        assert number < n_threads
        with lock:
            done.extend(share)

    with use_threads(n_threads) as threads:
        threads.share(n_items, work)
        assert list(threads.map(lambda x: x * x, range(4))) == [0, 1, 4, 9]
    assert sorted(done) == list(range(n_items))


def test_error_in_a_thread_reaches_the_caller():
    def work(number, share):
        raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"), use_threads(2) as threads:
        threads.share(5, work)


def run_in_threads(n_threads, work):
    """Call a function with a number in each of some threads; return the results."""
    with ThreadPoolExecutor(n_threads) as pool:
        return list(pool.map(work, range(n_threads)))


@alone
def test_overlapping_fits_of_many_threads_restore_blas(seed):
    # scikit-learn lowers the number for itself in the last two, and restores it.
    X = np.random.default_rng(seed).normal(size=(300, 20))

    def fit(number):
        for _ in range(2):
            COR(2, n_outliers=3, n_partitions=4, random_state=0).fit(X)
            LOF(n_outliers=3).fit(X).predict(X[:99] + 1)
            KMeansPlusOne(2, random_state=0, n_init=1).fit(X)

    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        run_in_threads(4, fit)
        assert blas_threads() == before


@alone
@pytest.mark.parametrize(
    ("method", "worker"),
    [
        (LOF(), LocalOutlierFactor),
        (KMeansPlusOne(2), KMeans),
        (rivals.DBSCAN(), DBSCAN),
        (rivals.HDBSCAN(), HDBSCAN),
    ],
    ids=["lof", "kmeans+1", "dbscan", "hdbscan"],
)
def test_blas_is_held_around_scikit_learn(method, worker, monkeypatch):
    # Where two of its fits overlap, the second to end would leave BLAS lowered.
    seen, fit = [], worker.fit

    def look_and_fit(*args, **options):
        seen.append(blas_threads())
        return fit(*args, **options)

    monkeypatch.setattr(worker, "fit", look_and_fit)
    with threadpool_limits(3, user_api="blas"):
        method.fit(np.random.default_rng(0).normal(size=(50, 2)))
    assert seen == [{1}]


@alone
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_interrupted_fit_leaves_nothing_behind(n_jobs, seed):
    X = np.random.default_rng(seed).normal(size=(900, 4))
    before, names = threadpool_info(), {each.name for each in threading.enumerate()}

    def interrupt(*report):
        signal.raise_signal(signal.SIGINT)

    settings = {"n_clusters": 3, "n_outliers": 9, "n_partitions": 10, "random_state": 0}
    model = COR(**settings, n_jobs=n_jobs)
    # Whoever starts the tests in the background may have it ignored.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), watch(interrupt):
            model.fit(X)
    finally:
        signal.signal(signal.SIGINT, handler)
    assert threadpool_info() == before
    assert {each.name for each in threading.enumerate()} == names
    expected = COR(**settings).fit(X).labels_
    np.testing.assert_array_equal(model.fit(X).labels_, expected)


def test_nothing_is_begun_after_an_error():
    begun = []

    def work(item):
        begun.append(item)
        time.sleep(0.001)
        return item

    def fail():
        with use_threads(2) as threads:
            # The error holds on to the results, and to what is still to be done.
            results = threads.map(work, range(3000))
            raise RuntimeError(f"after {next(results)}")

    with pytest.raises(RuntimeError, match="after 0"):
        fail()
    assert len(begun) < 1500


def test_threads_have_the_context_of_the_caller():
    variable = ContextVar("variable", default="of nobody")

    def work(_):
        seen = variable.get()
        variable.set("of another item")
        return seen

    with use_threads(2) as threads:
        variable.set("of the caller")
        assert set(threads.map(work, range(20))) == {"of the caller"}
        assert variable.get() == "of the caller"


@alone
def test_fits_at_the_same_time_share_the_threads(monkeypatch):
    monkeypatch.setattr(_threads, "_count_cores", lambda: 8)
    all_inside = threading.Barrier(4)

    def enter(number):
        with use_threads(None) as threads:
            # A fit that asks its own model is no other fit.
            with use_threads(None) as again:
                assert again.n_threads <= threads.n_threads
            all_inside.wait(20)
            return threads.n_threads

    with threadpool_limits(4, user_api="blas"):
        assert sorted(run_in_threads(4, enter)) == [1, 1, 2, 4]
        with use_threads(None) as threads:
            assert threads.n_threads == 4
            with use_threads(None) as again:
                assert again.n_threads == 4


@alone
def test_blas_that_an_interrupt_left_lowered_is_restored(monkeypatch):
    guard = _threads._BlasGuard()
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        guard.enter()
        with monkeypatch.context() as broken:
            broken.setattr(guard, "_restore", lambda: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                guard.leave()
        assert guard.enter() == 3
        guard.leave()
        assert blas_threads() == before


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
def test_forked_process_can_fit_and_has_all_threads():
    # The fork happens while another thread holds BLAS and the lock of the guard.
    code = """
import os, threading
import numpy
from threadpoolctl import threadpool_limits
from corral._threads import _blas_guard, hold_blas
threadpool_limits(3, user_api="blas")
inside, may_leave = threading.Event(), threading.Event()
def hold():
    with hold_blas(), _blas_guard._lock:
        inside.set()
        may_leave.wait(60)
other = threading.Thread(target=hold)
other.start()
inside.wait(60)
child = os.fork()
if child == 0:
    with hold_blas() as n_threads:
        os._exit(n_threads)
may_leave.set()
other.join()
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "3\n", done.stderr


def test_watchers_see_the_fits_of_their_own_thread_only(seed):
    # Fits of two sizes: the number of rows tells whose report it is.
    def fit(number):
        X = np.random.default_rng(seed).normal(size=(500 + number, 3))
        told = set()
        model = COR(2, n_outliers=3, n_partitions=8, n_jobs=2, random_state=seed)
        with watch(lambda stage, done, total: told.add((stage, total))):
            for _ in range(3):
                model.fit(X)
        return {total for stage, total in told if stage == "labelling rows"}

    assert run_in_threads(4, fit) == [{500}, {501}, {502}, {503}]


def test_an_error_of_a_callback_ends_its_own_fit_only(seed):
    X = np.random.default_rng(seed).normal(size=(500, 3))

    def fit(number):
        def fail(*report):
            if number == 0:
                raise RuntimeError("on purpose")

        try:
            with watch(fail):
                COR(2, n_outliers=3, n_jobs=2, random_state=seed).fit(X)
        except RuntimeError as error:
            return str(error)
        return "fitted"

    assert run_in_threads(4, fit) == ["on purpose", "fitted", "fitted", "fitted"]


@alone
def test_no_thread_is_left_after_a_fit(seed):
    X = np.random.default_rng(seed).normal(size=(500, 3))
    model = COR(2, n_outliers=3, n_jobs=3, random_state=seed).fit(X)
    model.predict(X)
    assert not [each for each in threading.enumerate() if each.name[:6] == "corral"]
