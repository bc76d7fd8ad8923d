"""A table with columns of every kind, and a way to run corral."""

import csv

import numpy as np
from click.testing import CliRunner

from corral.cli._group import corral as command

# Rows of the table that lie far from all others, and their names.
ODD = ("p7", "p67", "p127")

# Options that find them.
FIT = ("--n-clusters", 3, "--n-outliers", 3, "--id-column", "name")


def run_corral(*arguments, **settings):
    return CliRunner().invoke(command, list(map(str, arguments)), **settings)


def make_rows():
    rng = np.random.default_rng(0)
    centers = np.array([[8, 0, 0, 0], [0, 8, 0, 0], [0, 0, 8, 0]])
    rows = []
    for i in range(150):
        group = i % 3
        values = centers[group] + rng.normal(size=4)
        if f"p{i}" in ODD:
            values = rng.choice([-1, 1], 4) * rng.uniform(30, 40, 4)
        rows.append(
            {
                "name": f"p{i}",
                **{name: f"{x:.3f}" for name, x in zip("abcd", values, strict=True)},
                "color": ["red", "green", "blue"][group],
                "day": f"2024-01-{1 + i % 28:02d}",
                "same": "yes",
                "note": f"row {i} as it was found",
            }
        )
    # Three cells are missing.
    for i in (3, 50, 77):
        rows[i]["b"] = ""
    return rows


def write_table(path, rows):
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


def read_rows(text):
    return list(csv.DictReader(text.splitlines()))


def only_line(text):
    """Return the one line of a text."""
    lines = text.splitlines()
    assert len(lines) == 1, text
    return lines[0]
