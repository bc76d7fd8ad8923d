"""Flights: tracks of unequal length as vectors, and what kind of outlier one is."""

from corral.trajectories._generators import PlantedTracks, make_tracks, plant_errors
from corral.trajectories._kinds import OutlierKind, classify_outliers
from corral.trajectories._page import flights_to_html
from corral.trajectories._read import read_tracks
from corral.trajectories._resample import ResampledTracks, Skipped, resample_tracks
from corral.trajectories._summary import summarize_flights
from corral.trajectories._tracks import Tracks, group_tracks

__all__ = [
    "OutlierKind",
    "PlantedTracks",
    "ResampledTracks",
    "Skipped",
    "Tracks",
    "classify_outliers",
    "flights_to_html",
    "group_tracks",
    "make_tracks",
    "plant_errors",
    "read_tracks",
    "resample_tracks",
    "summarize_flights",
]
