"""Pictures without a screen, and a fitted model to draw."""

import matplotlib
import pytest
from matplotlib import pyplot as plt

from corral import COR


@pytest.fixture(autouse=True)
def no_screen():
    matplotlib.use("agg")
    yield
    plt.close("all")


@pytest.fixture
def model(planted):
    return COR(3, n_outliers=6, n_partitions=12, random_state=0).fit(planted.X)
