"""Commands that hold a whole table say so before they read one that is too large."""

import numpy as np
import pytest

from corral import _memory
from tests.cli.example import FIT, only_line, run_corral

CALLS = {
    "compare": ("compare",),
    "report": ("report", "gone.skops"),
    "explore": ("explore", "--no-browser"),
}


@pytest.fixture
def short_of_memory(monkeypatch):
    """Let hardly any memory be free, and refuse small tables, too."""
    monkeypatch.setattr(_memory, "_NEVER_REFUSED", 0)
    monkeypatch.setattr(_memory, "_find_available", lambda root, with_swap: 1000)


@pytest.mark.parametrize("name", CALLS)
def test_a_table_that_cannot_be_held_is_refused(name, data, short_of_memory, tmp_path):
    words = ("--output", tmp_path / "r.html") if name == "report" else ()
    result = run_corral(*CALLS[name], data, *words)
    assert result.exit_code == 2
    line = only_line(result.stderr)
    assert line.startswith(
        f"Error: The memory is too small. '{data}', all of which corral {name} holds, "
        "needs about "
    )
    assert line.endswith(
        " kB, and at most 1 kB are free. Take a sample of the rows, or use corral fit, "
        "which can read them block by block and makes a report, too."
    )


@pytest.fixture
def tracks(tmp_path):
    """Write 20 flights of 6 positions, 3 kB of numbers, to an NPZ file."""
    path, numbers = tmp_path / "tracks.npz", np.arange(120.0)
    arrays = {"track_t": numbers, "track_lat": numbers / 2, "track_lon": numbers}
    np.savez(path, **arrays, offsets=np.arange(0, 121, 6))
    return path


def test_tracks_that_cannot_be_held_are_refused(tracks, short_of_memory, monkeypatch):
    # A position becomes 13 times as large, whatever its file is.
    monkeypatch.setattr(_memory, "_find_available", lambda root, with_swap: 30_000)
    result = run_corral("flights", tracks)
    assert result.exit_code == 2
    line = only_line(result.stderr)
    assert "all of which corral flights holds, needs about " in line
    assert line.endswith(" are free. Take fewer flights or positions.")


def test_flights_that_become_too_long_are_refused(tracks, short_of_memory, monkeypatch):
    # 20 flights of 50 points, 3 coordinates, 8 bytes and 7 copies are 168 kB.
    monkeypatch.setattr(_memory, "_find_available", lambda root, with_swap: 160_000)
    result = run_corral("flights", tracks, "--points", 50)
    assert result.exit_code == 2
    assert only_line(result.stderr).endswith(
        f"'{tracks}', whose 20 flights become 50 points each, needs about 168 kB, and "
        "at most 160 kB are free. Take fewer flights, or lower --points (now 50)."
    )


def test_a_method_that_cannot_be_held_is_one_of_those_that_failed(
    data, short_of_memory, monkeypatch
):
    monkeypatch.setattr("corral.cli._plan._BYTES_PER_BYTE", 0)
    monkeypatch.setattr("corral.cli._plan._BYTES_PER_ROW", 0)
    result = run_corral("compare", data, *FIT, "--methods", "cor,lof")
    assert result.exit_code == 2
    assert "1 of 2 methods failed. lof: The memory is too small. LOF of 150 rows" in (
        only_line(result.stderr)
    )
    assert "set aside" in result.stdout


def test_a_fit_by_cor_goes_on(data, short_of_memory):
    assert run_corral("fit", data, *FIT).exit_code == 0
