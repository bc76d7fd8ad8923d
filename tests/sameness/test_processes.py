"""Same seed, same answers in other processes, as on other machines.

Environment variables make an interpreter take other kernels of BLAS and NumPy, as
older processors do, other numbers of threads and other hashes.
"""

import os
import subprocess
import sys
from functools import lru_cache

import numpy as np
import pytest

from tests.sameness.fits import IS_BROAD, answer_all, list_differences, list_fits

# What older processors do not have.
FEATURES = np.show_config(mode="dicts")["SIMD Extensions"].get("found", [])

OLD_PROCESSOR = {
    "OPENBLAS_CORETYPE": "Nehalem",
    "NPY_DISABLE_CPU_FEATURES": " ".join(FEATURES),
}
OTHER_THREADS = {
    "PYTHONHASHSEED": "7",
    "OMP_NUM_THREADS": "3",
    "OPENBLAS_NUM_THREADS": "1",
}

NAMES = ["cor", "cor few rows", "cor missing", "cor cosine", "kmeans--", "kmeans+1"]
if IS_BROAD:
    NAMES = list(list_fits(0))

# The scores of these are sums that BLAS or NumPy make, so they agree to rounding.
ROUNDED = ("cof", "ldof", "fast-abod", "opca", "tonmf", "iforest")
# scikit-learn chooses among distances that tie by sorts of NumPy, which differ.
FREE = ("hdbscan", "lof sparse")


@lru_cache
def answers_here(seed):
    return answer_all(seed, NAMES)


def answer_elsewhere(path, seed, variables):
    command = [sys.executable, "-m", "tests.sameness.fits", str(path)]
    command += ["--seed", str(seed)]
    command += [word for name in NAMES for word in ("--name", name)]
    done = subprocess.run(
        command, env=os.environ | variables, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return dict(np.load(path))


@pytest.mark.skipif(not IS_BROAD, reason="on request: set CORRAL_SAMENESS=1")
@pytest.mark.parametrize(
    "variables",
    [
        {},
        OTHER_THREADS,
        {"OPENBLAS_NUM_THREADS": "5"},
        {"OMP_NUM_THREADS": "1"},
    ],
    ids=str,
)
def test_another_process_says_the_same_to_the_last_bit(variables, seed, tmp_path):
    found = answer_elsewhere(tmp_path / "answers.npz", seed, variables)
    assert list_differences(answers_here(seed), found) == []


def check_processor(variables, seed, path):
    """Check answers against those with other kernels of BLAS and NumPy."""
    expected = answers_here(seed)
    found = answer_elsewhere(path, seed, variables)
    for name in list_differences(expected, found):
        fit = name.partition("/")[0]
        if fit in FREE:
            continue
        assert fit.removesuffix(" sparse") in ROUNDED, name
        assert np.issubdtype(expected[name].dtype, np.floating), name
        most = 1e-9 * np.abs(expected[name]).max()
        np.testing.assert_allclose(found[name], expected[name], 0, most, err_msg=name)


def test_an_older_processor_says_the_same(seed, tmp_path):
    check_processor(OLD_PROCESSOR | OTHER_THREADS, seed, tmp_path / "answers.npz")


@pytest.mark.skipif(not IS_BROAD, reason="on request: set CORRAL_SAMENESS=1")
@pytest.mark.parametrize(
    "variables",
    [
        {"OPENBLAS_CORETYPE": "Prescott"},
        {"OPENBLAS_CORETYPE": "Nehalem"},
        {"OPENBLAS_CORETYPE": "Sandybridge"},
        {"OPENBLAS_CORETYPE": "Haswell"},
        {"NPY_DISABLE_CPU_FEATURES": " ".join(FEATURES)},
        {"NPY_DISABLE_CPU_FEATURES": " ".join(FEATURES[1:])},
    ],
    ids=str,
)
def test_other_processors_say_the_same(variables, seed, tmp_path):
    check_processor(variables, seed, tmp_path / "answers.npz")
