"""Generated flights with planted errors, and the page that is made of them."""

import os
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from corral import COR
from corral.trajectories import (
    ResampledTracks,
    classify_outliers,
    flights_to_html,
    make_tracks,
    plant_errors,
    resample_tracks,
    summarize_flights,
)

# The browser is set up where the other page is tested.
from tests.report.conftest import chromium, open_page  # noqa: F401


class Found(NamedTuple):
    resampled: ResampledTracks
    errors: np.ndarray
    model: COR
    kinds: list


def find(tracks, errors, n_clusters=4, n_outliers=12):
    resampled = resample_tracks(tracks, 20)
    model = COR(n_clusters, n_outliers=n_outliers, n_partitions=40, random_state=0)
    model.fit(resampled.X)
    kinds = classify_outliers(resampled, model.labels_, model.nearest_labels_)
    return Found(resampled, errors, model, kinds)


@pytest.fixture(scope="session")
def found():
    planted = plant_errors(
        make_tracks(160, n_routes=4, random_state=2), 12, random_state=3
    )
    return find(planted.tracks, planted.errors)


@pytest.fixture(scope="session")
def summary(found):
    return summarize_flights(
        found.resampled, found.model, found.kinds, command="corral flights a.csv"
    )


@pytest.fixture(scope="session")
def page(summary):
    return flights_to_html(summary)


@pytest.fixture(scope="session")
def real_flights():
    """Return the folder with the real flights, or skip."""
    root = Path(__file__).resolve().parents[2]
    named = os.environ.get("CORRAL_DATA") or root.parent / "shared" / "data"
    folder = Path(named) / "flights"
    if not folder.is_dir():
        pytest.skip("no real flights: set CORRAL_DATA to the folder with flights/*.npz")
    return folder
