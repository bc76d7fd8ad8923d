"""The command ``python -m benchmarks.flights``.

Errors of three kinds are planted among flights: two flights mixed, truncated, shifted
(see ``corral.trajectories.plant_errors``). Then the steps of ``corral flights`` are run
with as many outliers as errors, and with twice as many; cells have both. A planted
error is found if its flight is set aside, and named right if its kind is the one of the
error. LOF, isolation forest and K-means-- get the same vectors; COR and LOF are also
shown on the places alone, without the column for jumps.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from benchmarks.flights._data import Flights, load_all
from corral import COR
from corral.detectors import LOF, IForest
from corral.rivals import KMeansMinusMinus
from corral.trajectories import classify_outliers, plant_errors, resample_tracks

# Error -> the kind of outlier that it should be called.
_ERRORS = {"mixed": "mixed", "truncated": "partial", "shifted": "out of range"}


class Method(NamedTuple):
    make: Callable
    with_jumps: bool = True


def _cor(k: int, o: int, seed: int) -> COR:
    return COR(k, n_outliers=o, random_state=seed)


def _lof(k: int, o: int, seed: int) -> LOF:
    return LOF(n_outliers=o)


_METHODS = {
    "COR": Method(_cor),
    "LOF": Method(_lof),
    "IForest": Method(lambda k, o, seed: IForest(n_outliers=o, random_state=seed)),
    "K-means--": Method(
        lambda k, o, seed: KMeansMinusMinus(k, n_outliers=o, random_state=seed)
    ),
    "COR, places alone": Method(_cor, with_jumps=False),
    "LOF, places alone": Method(_lof, with_jumps=False),
}


class Outcome(NamedTuple):
    found: dict[str, float]  # share of the planted errors, by kind
    named: dict[str, float]  # share of the found ones that are named right


def main() -> None:
    options = _parse()
    print(
        "| data | flights | planted | method | found: mixed | truncated | shifted "
        "| named right: mixed | truncated | shifted |"
    )
    print("|" + "---|" * 10)
    for flights in load_all(options.only, options.data_dir):
        _report(flights, options)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.flights")
    parser.add_argument("--only", nargs="+", help="names of data sets")
    parser.add_argument("--data-dir", type=Path, help="default: CORRAL_DATA")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--rate", type=float, default=0.03, help="share of errors")
    parser.add_argument("--points", type=int, default=50)
    parser.add_argument("--by", choices=["path", "time"], default="path")
    return parser.parse_args()


def _report(flights: Flights, options: argparse.Namespace) -> None:
    n_flights = len(flights.tracks)
    n_errors = max(6, round(options.rate * n_flights / 3) * 3)
    outcomes: dict[tuple[int, str], list[Outcome]] = {}
    for seed in range(options.seeds):
        start = time.perf_counter()
        planted = plant_errors(flights.tracks, n_errors, random_state=seed)
        resampled = resample_tracks(planted.tracks, options.points, by=options.by)
        for factor in (1, 2):
            for name, method in _METHODS.items():
                model = method.make(flights.n_clusters, factor * n_errors, seed)
                X = resampled.X if method.with_jumps else resampled.X[:, :-1]
                outcome = _judge(model.fit(X), resampled, planted.errors)
                outcomes.setdefault((factor, name), []).append(outcome)
        seconds = time.perf_counter() - start
        print(f"{flights.name}, seed {seed}: {seconds:.0f} s", file=sys.stderr)
    for name in _METHODS:
        both = [outcomes[factor, name] for factor in (1, 2)]
        cells = [
            " / ".join(filter(None, (_mean(each, field, error) for each in both)))
            for field in Outcome._fields
            for error in _ERRORS
        ]
        row = [flights.name, f"{n_flights:,}", str(n_errors), name, *cells]
        print(f"| {' | '.join(row)} |", flush=True)


def _judge(model, resampled, errors: np.ndarray) -> Outcome:
    is_outlier = model.labels_ == -1
    found = {error: float(is_outlier[errors == error].mean()) for error in _ERRORS}
    if not isinstance(model, COR):
        return Outcome(found, {})
    kinds = classify_outliers(resampled, model.labels_, model.nearest_labels_)
    right: dict[str, list[bool]] = {error: [] for error in _ERRORS}
    for each in kinds:
        error = str(errors[each.row])
        if error:
            right[error].append(each.kind == _ERRORS[error])
    return Outcome(found, {error: float(np.mean(r)) for error, r in right.items() if r})


def _mean(outcomes: list[Outcome], field: str, error: str) -> str:
    """Return the mean over the seeds that have a share, or nothing."""
    known = [
        shares[error]
        for shares in (getattr(each, field) for each in outcomes)
        if error in shares
    ]
    return f"{np.mean(known):.2f}" if known else ""


if __name__ == "__main__":
    main()
