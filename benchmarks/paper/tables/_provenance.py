"""A line below a table: with what its numbers were made."""

from pathlib import Path

from benchmarks.paper.grids import Grid
from benchmarks.paper.run import plan
from benchmarks.paper.store import Store


def describe_runs(grid: Grid, output: Path) -> str:
    """Return versions, commits, processors and dates of the runs of a grid."""
    store = Store(output)
    keys = [key for keys in plan(grid).values() for key in keys]
    records = [record for key in keys if (record := store.read_record(key))]
    machines = [record["machine"] for record in records if "machine" in record]
    if not machines:
        return "No runs yet."
    versions = [each["versions"] for each in machines]
    parts = [
        f"{len(machines)} runs of up to {grid.seeds} seeds",
        "corral " + _join(each["corral"] for each in versions),
        "commit " + _join(each["commit"] or "unknown" for each in machines),
        "scikit-learn " + _join(each["scikit-learn"] for each in versions),
        _join(each["processor"] for each in machines),
        _join(f"{each['threads']} threads" for each in machines),
        _join(sorted(each["date"][:10] for each in machines)),
    ]
    return "Made with: " + "; ".join(parts) + "."


def _join(words) -> str:
    return ", ".join(dict.fromkeys(words))
