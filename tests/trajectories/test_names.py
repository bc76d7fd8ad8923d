"""Flights that are called by numbers stay apart."""

import pytest

from corral.trajectories import read_tracks
from tests.cli.example import run_corral

NAMES = {
    "twenty digits": [f"987654321098765432{i:02d}" for i in range(12)],
    "long codes": [f"000987654321098765432{i:02d}" for i in range(12)],
    "versions": ["1.1", "1.10", "1.100", "2e3", "2000"],
    "codes": ["7", "07", "1"],
}


def write(path, names, head="flight_id,time,lat,lon"):
    lines = [
        f'"{name}",{60 * step},{47 + 0.1 * step},{8 + 0.01 * number}'
        for number, name in enumerate(names)
        for step in range(6)
    ]
    path.write_text("\n".join([head, *lines]) + "\n")
    return path


@pytest.mark.parametrize("kind", NAMES)
def test_flights_are_called_as_the_file_has_them(tmp_path, kind):
    names = NAMES[kind]
    assert read_tracks(write(tmp_path / "t.csv", names)).ids == names
    # By any name of the column, in quotes too.
    path = write(tmp_path / "q.csv", names, '"seen","time","lat","lon"')
    assert read_tracks(path, id_column="seen").ids == names
    path = write(tmp_path / "n.csv", names, '"Flight ID",time,lat,lon')
    assert read_tracks(path).ids == names


def test_the_command_counts_flights_that_differ_in_their_last_digits(tmp_path):
    names = NAMES["twenty digits"]
    path = write(tmp_path / "t.csv", names)
    for words in ((path,), ("-",)):
        given = {"input": path.read_bytes()} if words == ("-",) else {}
        result = run_corral("flights", *words, "--n-clusters", 2, **given)
        assert result.exit_code == 0, result.output
        assert "12 flights" in result.stderr
        assert all(f"\n{name}," in result.stdout for name in names)
