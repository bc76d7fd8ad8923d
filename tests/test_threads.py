"""Threads of our own above, BLAS at one thread below."""

import threading

import pytest
from threadpoolctl import threadpool_info, threadpool_limits

from corral._threads import use_threads


def blas_threads():
    return {
        lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"
    }


def test_blas_is_held_to_one_thread_and_restored():
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        with use_threads(2):
            assert blas_threads() == {1}
        assert blas_threads() == before


def test_blas_is_restored_after_an_error():
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        with pytest.raises(RuntimeError, match="on purpose"), use_threads(2):
            raise RuntimeError("on purpose")
        assert blas_threads() == before


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
