from argparse import Namespace

import pytest

from benchmarks.flights import __main__ as benchmark
from benchmarks.flights._data import Flights, load_all
from corral.trajectories import make_tracks


def test_benchmark_prints_a_row_for_each_method(capsys):
    flights = Flights("few", make_tracks(60, n_routes=3, random_state=0), 3)
    options = Namespace(seeds=1, rate=0.1, points=10, by="path")
    benchmark._report(flights, options)
    rows = [line.split(" | ") for line in capsys.readouterr().out.splitlines()]
    assert [row[3] for row in rows] == list(benchmark._METHODS)
    assert {row[2] for row in rows} == {"6"}
    # COR finds all six, with as many outliers and with twice as many, and names them.
    assert rows[0][4:] == ["1.00 / 1.00"] * 5 + ["1.00 / 1.00 |"]
    # Others name nothing.
    assert [each.strip(" |") for each in rows[1][7:]] == ["", "", ""]


def test_benchmark_says_what_data_there_is(tmp_path):
    with pytest.raises(SystemExit, match="There is no data for boston_adsb. There is"):
        next(load_all(["boston_adsb"], tmp_path))
