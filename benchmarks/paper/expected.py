"""What the paper prints, from ``expected/*.csv``."""

import csv
from functools import cache
from pathlib import Path

_FOLDER = Path(__file__).parent / "expected"

# Rows of the paper's tables that are no data sets.
SUMMARIES = ("Average", "Score")

# (data set, method, measure) -> mean and standard deviation; None where not given.
Cells = dict[tuple[str, str, str], tuple[float, float | None]]


@cache
def read_quality(table: int) -> Cells:
    """Return the cells of Table 2 or 3, without the paper's N/A."""
    return {
        (row["dataset"], row["method"], row["measure"]): (
            float(row["mean"]),
            float(row["sd"]) if row.get("sd") else None,
        )
        for row in _read(table)
        if row["mean"]
    }


@cache
def read_seconds() -> dict[tuple[str, str], float]:
    """Return the seconds of Table 4 by method and data set, without N/A."""
    return {
        (row["method"], row["dataset"]): float(row["seconds"])
        for row in _read(4)
        if row["seconds"]
    }


def _read(table: int) -> list[dict[str, str]]:
    path = _FOLDER / f"table_{table}.csv"
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
