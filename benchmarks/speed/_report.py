"""The table on the terminal, and the same rows with the machine as JSON."""

import json
import os
import platform
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from threadpoolctl import threadpool_info

import corral
from benchmarks.speed._measure import Options, Row

_HEADER = ("what", "ours (s)", "other (s)", "ratio", "bar", "holds")
_LIBRARIES = ("numpy", "scipy", "scikit-learn", "joblib", "threadpoolctl", "narwhals")


def describe_machine(options: Options, busy_elsewhere: float | None) -> dict:
    """Return what the figures depend on: date, processor, threads, versions.

    ``busy_elsewhere`` is the share of processor time that other processes took.
    """
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": _name_processor(),
        "cores": os.cpu_count(),
        "threads": options.threads,
        "busy_elsewhere": busy_elsewhere,
        "system": platform.platform(terse=True),
        "quick": options.quick,
        "versions": {
            "corral": corral.__version__,
            "python": platform.python_version(),
            **{name: version(name) for name in _LIBRARIES},
        },
        "thread_pools": [_describe_pool(pool) for pool in threadpool_info()],
    }


def _describe_pool(pool: dict) -> dict:
    """Return what is told of a BLAS or OpenMP; not the folder that it lies in."""
    known = ("user_api", "internal_api", "version", "architecture", "num_threads")
    return {key: pool[key] for key in known if key in pool}


def _name_processor() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if "model name" in line]
    return names[0] if names else platform.processor() or platform.machine()


def format_table(rows: list[Row], machine: dict) -> str:
    """Return the aligned table, with a line on the machine above."""
    lines = [
        *_format_machine(machine),
        "",
        *_align([_HEADER, *map(_format_row, rows)]),
        "",
        'bar "<= a": ratio = ours / other; bar ">= ax": ratio = other / ours.',
    ]
    return "\n".join(lines)


def _format_machine(machine: dict) -> list[str]:
    words = [machine["date"], machine["processor"], f"{machine['threads']} threads"]
    if machine["quick"]:
        words.append("quick")
    if machine["busy_elsewhere"] is not None:
        words.append(f"other processes took {machine['busy_elsewhere']:.0%}")
    versions = [f"{name} {number}" for name, number in machine["versions"].items()]
    return [", ".join(words), ", ".join(versions)]


def _format_row(row: Row) -> tuple[str, ...]:
    if row.note:
        return (row.what, "-", "-", "-", "-", row.note)
    return (
        row.what,
        _format_value(row.ours, row.unit),
        _format_value(row.other, row.unit),
        f"{row.ratio:.3f}" if abs(row.ratio - 1) < 0.1 else f"{row.ratio:.2f}",
        str(row.bar),
        "yes" if row.holds else "no",
    )


def _format_value(value: float, unit: str) -> str:
    """Write a value; seconds, which the header names, go without their unit."""
    if unit == "s":
        return f"{value:.4f}" if value < 1 else f"{value:.2f}"
    text = f"{value:,.0f}" if value >= 50 else f"{value:.4g}"
    return f"{text} {unit}".rstrip()


def _align(table: list[tuple[str, ...]]) -> list[str]:
    """Pad the columns: words to the left, numbers to the right."""
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = []
    for what, *numbers, holds in table:
        cells = [what.ljust(widths[0])]
        cells += [
            text.rjust(width) for text, width in zip(numbers, widths[1:-1], strict=True)
        ]
        lines.append("  ".join([*cells, holds]))
    lines.insert(1, "  ".join("-" * width for width in widths))
    return lines


def write_json(path: Path, rows: list[Row], machine: dict) -> None:
    """Write the rows and the machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"machine": machine, "rows": [_to_dict(row) for row in rows]}
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _to_dict(row: Row) -> dict:
    return {
        "what": row.what,
        "ours": row.ours,
        "other": row.other,
        "unit": row.unit,
        "ratio": row.ratio,
        "bar": None if row.bar is None else str(row.bar),
        "holds": row.holds,
        "note": row.note,
    }
