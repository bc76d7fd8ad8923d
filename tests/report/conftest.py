"""Six rows worked out by hand, as a fitted estimator without a fit; and a browser."""

import os
import shutil

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClusterMixin

from corral._selection import Selection

_FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1200,900",
)


class FittedByHand(ClusterMixin, BaseEstimator):
    """The attributes of a fitted method, set to what a test needs."""

    def __init__(
        self, n_clusters=2, n_outliers=1, categorical_features=None, random_state=0
    ):
        self.n_clusters = n_clusters
        self.n_outliers = n_outliers
        self.categorical_features = categorical_features
        self.random_state = random_state

    def fit(self, X, y=None):
        return self


@pytest.fixture
def six_rows():
    """Two rows near (0, 0), three near (10, 0), and one far up at (0, 90)."""
    return np.array([[-1, 0], [1, 0], [9, 0], [10, 0], [11, 0], [0, 90.0]])


@pytest.fixture
def estimator():
    estimator = FittedByHand()
    estimator.labels_ = np.array([0, 0, 1, 1, 1, -1])
    estimator.nearest_labels_ = np.array([0, 0, 1, 1, 1, 0])
    estimator.outlier_scores_ = np.array([2.0, 2.0, 1.5, 1.0, 1.5, 7.0])
    estimator.offset_ = -4.5
    estimator.n_outliers_ = 1
    estimator.n_partitions_ = 100
    estimator.n_codes_ = 4
    estimator.n_features_in_ = 2
    estimator.cluster_centers_ = np.array([[0.0, 0.0], [10.0, 0.0]])
    estimator.n_iter_ = 3
    estimator.objective_ = 8.0
    estimator.objective_history_ = np.array([20.0, 9.0, 8.0])
    return estimator


@pytest.fixture
def selection():
    """Return the choice of two clusters and one outlier among nine candidates."""
    nan = np.nan
    return Selection(
        n_clusters_=2,
        n_outliers_=1,
        runner_up=(3, 1),
        reason="Two stand <apart>.",
        columns={
            "n_clusters": np.array([1, 2, 3, 9, 1, 2, 3, 2, 2]),
            "n_outliers": np.array([1, 1, 1, 1, 0, 0, 3, 2, 3]),
            "told": np.array([1, 0.95, 0.5, 0.25, nan, nan, nan, nan, nan]),
            "gap": np.array([30, 30, 30, 30, 0, 0, 0.5, 2.0, 0.5]),
            "objective": np.array([nan, 8, 7, nan, nan, 10, 9, 6, 5]),
            "is_chosen": np.arange(9) == 1,
        },
        gap_numbers=np.array([1, 2, 3]),
        gap_widths=np.array([30.0, 2.0, 0.5]),
        gap_threshold=9.5,
        n_searched=6,
    )


@pytest.fixture
def make_fitted():
    """Return a function that makes a fitted method with random groups of many rows."""

    def make(n_samples, n_features=10, n_clusters=9, n_outliers=500):
        rng = np.random.default_rng(0)
        nearest = rng.integers(n_clusters, size=n_samples)
        X = rng.normal(size=(n_clusters, n_features))[nearest] * 8
        X += rng.normal(size=X.shape)
        outliers = rng.choice(n_samples, n_outliers, replace=False)
        X[outliers] = rng.uniform(-60, 60, size=(n_outliers, n_features))
        made = FittedByHand(n_clusters, n_outliers)
        made.nearest_labels_ = nearest
        made.labels_ = nearest.copy()
        made.labels_[outliers] = -1
        made.outlier_scores_ = np.where(made.labels_ == -1, 5.0, 1.0)
        made.outlier_scores_ += rng.random(n_samples)
        made.offset_ = -4.0
        made.n_features_in_ = n_features
        return made, X

    return make


@pytest.fixture(scope="session")
def chromium(tmp_path_factory):
    """Return a driver of a real Chromium, or skip."""
    driver = shutil.which("chromedriver")
    binary = shutil.which("chromium")
    try:
        from selenium import webdriver
    except ImportError:
        webdriver = None
    if driver is None or binary is None or webdriver is None:
        reason = (
            "Chromium, its driver or selenium is not here: run scripts/chromium and "
            'pip install "corral[test]"'
        )
        if os.environ.get("CORRAL_REQUIRE_CHROMIUM") == "1":
            pytest.fail(reason)
        pytest.skip(reason)
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in _FLAGS:
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('chromium')}")
    options.set_capability(
        "goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"}
    )
    service = webdriver.ChromeService(driver)
    browser = webdriver.Chrome(options=options, service=service)
    yield browser
    browser.quit()


@pytest.fixture
def open_page(chromium, tmp_path):
    """Return a function that opens a page as a file, with all logs empty before."""
    for kind in ("browser", "performance"):
        chromium.get_log(kind)

    def open_page(page):
        path = tmp_path / "report.html"
        path.write_text(page, encoding="utf-8")
        chromium.get(path.as_uri())
        return chromium

    yield open_page
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    chromium.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"media": "", "features": []}
    )
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
