"""Load: few and small by default, ``CORRAL_SOAK=1`` runs all and prints figures."""

import os

import pytest

SOAK = pytest.StashKey[list]()


def pytest_configure(config):
    config.stash[SOAK] = []


@pytest.fixture
def soak():
    """Return whether the long runs are asked for."""
    return os.environ.get("CORRAL_SOAK") == "1"


@pytest.fixture
def figures(request):
    """Return a list; lines that are put there are printed at the end."""
    return request.config.stash[SOAK]


def pytest_terminal_summary(terminalreporter, config):
    lines = config.stash[SOAK]
    if lines and os.environ.get("CORRAL_SOAK") == "1":
        terminalreporter.section("figures of load")
        terminalreporter.write_line("\n".join(lines))
