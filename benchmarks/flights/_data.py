"""The flights that errors are planted among: generated ones, and real ones if there."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from corral.trajectories import Tracks, make_tracks, read_tracks

REPOSITORY = Path(__file__).resolve().parents[2]

# Name -> clusters to ask for, as in the paper's Figure 3.
_REAL = {"paris_20211007": 3, "switzerland_20180801": 6, "boston_adsb": 6}


class Flights(NamedTuple):
    name: str
    tracks: Tracks
    n_clusters: int


def load_all(only: list[str] | None, data_dir: Path | None) -> Iterator[Flights]:
    """Yield sets of flights; real ones that are not there are left out."""
    folder = data_dir or Path(
        os.environ.get("CORRAL_DATA") or REPOSITORY.parent / "shared" / "data"
    )
    makers = {
        "generated": lambda: Flights(
            "generated", make_tracks(600, n_routes=6, random_state=0), 6
        ),
        "generated-wide": lambda: Flights(
            "generated-wide",
            make_tracks(1000, n_routes=8, spread_km=100, random_state=0),
            8,
        ),
    }
    for name, n_clusters in _REAL.items():
        path = folder / "flights" / f"{name}.npz"
        if path.is_file():
            makers[name] = lambda name=name, path=path, n_clusters=n_clusters: Flights(
                name, read_tracks(path), n_clusters
            )
    unknown = set(only or ()) - set(makers)
    if unknown:
        raise SystemExit(
            f"There is no data for {', '.join(sorted(unknown))}. There is "
            f"{', '.join(makers)}. Set CORRAL_DATA for real flights."
        )
    for name in only or makers:
        yield makers[name]()
