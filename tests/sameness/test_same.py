"""Same seed, same answers: threads, blocks, files and fits at the same time."""

from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache

import pytest

from corral import _codes, _kmeans_runs, _partitions
from corral.persist import load, save
from tests.sameness.fits import (
    IS_BROAD,
    answer,
    fit_and_answer,
    list_differences,
    list_fits,
)

NAMES = list(list_fits(0))
COR_NAMES = [name for name in NAMES if name == "cor" or name.startswith("cor ")]
N_JOBS = [2, 3, 8] if IS_BROAD else [8]


@lru_cache
def fitted(name, seed):
    """Return the fit, and the model that one thread fitted."""
    fit = list_fits(seed)[name]
    return fit, fit.make(n_jobs=1).fit(fit.X)


@lru_cache
def said(name, seed):
    """Return what that model says."""
    fit, model = fitted(name, seed)
    return answer(model, fit.asked)


@pytest.mark.parametrize("n_jobs", N_JOBS)
@pytest.mark.parametrize("name", NAMES)
def test_number_of_threads_changes_nothing(name, n_jobs, seed):
    fit, _ = fitted(name, seed)
    again = fit_and_answer(fit, n_jobs=n_jobs)
    assert list_differences(said(name, seed), again) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_file_changes_nothing(name, seed, tmp_path):
    fit, model = fitted(name, seed)
    save(model, tmp_path / "model.skops")
    loaded = load(tmp_path / "model.skops")
    assert list_differences(said(name, seed), answer(loaded, fit.asked)) == []


@pytest.mark.parametrize("name", COR_NAMES if IS_BROAD else ["cor missing"])
@pytest.mark.parametrize("rows", [64, 331] if IS_BROAD else [64])
def test_size_of_blocks_changes_nothing(name, rows, seed, monkeypatch):
    expected = said(name, seed)
    for module, constant in (
        (_kmeans_runs, "MAX_TILE_ROWS"),
        (_kmeans_runs, "MAX_LLOYD_TILE_ROWS"),
        (_partitions, "_BLOCK_ROWS"),
        (_codes, "_BLOCK_SLOTS"),
        (_codes, "_KEPT_SLOTS"),
    ):
        monkeypatch.setattr(module, constant, rows)
    assert list_differences(expected, fit_and_answer(fitted(name, seed)[0])) == []


def test_fits_at_the_same_time_change_nothing(seed):
    # Four threads, each with other fits, which have threads of their own.
    names = NAMES if IS_BROAD else ["cor", "cor cosine", "kmeans--", "lof", "kmeans+1"]
    expected = {name: said(name, seed) for name in names}

    def differ(name):
        return list_differences(expected[name], fit_and_answer(fitted(name, seed)[0]))

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(differ, names)) == [[]] * len(names)


def test_one_model_answers_many_threads_at_the_same_time(seed):
    for name in NAMES:
        fit, model = fitted(name, seed)
        expected = said(name, seed)
        with ThreadPoolExecutor(4) as pool:
            found = list(pool.map(answer, [model] * 6, [fit.asked] * 6))
        assert [list_differences(expected, each) for each in found] == [[]] * 6


def test_explanations_are_the_same_in_many_threads(seed):
    fit, model = fitted("cor", seed)
    expected = model.explain(fit.asked)
    with ThreadPoolExecutor(4) as pool:
        for found in pool.map(model.explain, [fit.asked] * 6):
            assert found.equals(expected)
