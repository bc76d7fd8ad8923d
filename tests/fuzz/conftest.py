"""How many harmful inputs are tried, and with which seed."""

import os

import pytest


@pytest.fixture
def n_cases():
    """Return 40, or what CORRAL_FUZZ_CASES says."""
    return int(os.environ.get("CORRAL_FUZZ_CASES", "40"))


@pytest.fixture
def fuzz_seed():
    """Return 0, or what CORRAL_FUZZ_SEED says."""
    return int(os.environ.get("CORRAL_FUZZ_SEED", "0"))
