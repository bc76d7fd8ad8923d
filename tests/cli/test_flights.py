import csv
import json
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corral.trajectories import make_tracks, plant_errors
from tests.cli.example import read_rows, run_corral

HOSTILE = "</script><script>alert(1)</script>"
ASKED = ("--n-clusters", 3, "--n-outliers", 6, "--points", 15)


def write_tracks(path, tracks, head=("flight_id", "time", "latitude", "longitude")):
    names = np.repeat(tracks.ids, tracks.counts)
    values = (names, tracks.time, tracks.latitude, tracks.longitude)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(head)
        writer.writerows(zip(*(each.tolist() for each in values), strict=True))
    return path


@pytest.fixture(scope="module")
def planted():
    tracks = make_tracks(60, n_routes=3, random_state=0)
    return plant_errors(tracks, 6, random_state=0)


@pytest.fixture(scope="module")
def tracks(planted, tmp_path_factory):
    path = tmp_path_factory.mktemp("flights") / "tracks.csv"
    write_tracks(path, planted.tracks)
    with path.open("a") as file:
        file.write(f'"{HOSTILE}",0,50,8\n')
    return path


@pytest.fixture(scope="module")
def result(tracks):
    folder = tracks.parent
    outputs = ("--labels", folder / "labels.csv", "--report", folder / "map.html")
    result = run_corral("flights", tracks, *ASKED, *outputs)
    assert result.exit_code == 0, result.output
    return result


def test_positions_that_are_left_out_are_counted(tmp_path):
    path = write_tracks(tmp_path / "t.csv", make_tracks(12, n_routes=2, random_state=0))
    lines = path.read_text().splitlines()
    name = lines[1].partition(",")[0]
    # A place without a latitude, and a time that was there before.
    path.write_text("\n".join([*lines, f"{name},1e6,,8", lines[1]]) + "\n")
    asked = ("--n-clusters", 2, "--n-outliers", 1, "--points", 9)
    result = run_corral("flights", path, *asked, "--labels", tmp_path / "l.csv")
    assert "left out  1 position without place or time, 1 with a time" in result.stdout


def test_planted_errors_are_found_and_named(result, tracks, planted):
    rows = read_rows((tracks.parent / "labels.csv").read_text())
    wanted = {"mixed": "mixed", "truncated": "partial", "shifted": "out of range"}
    kinds = {row["id"]: row["kind"] for row in rows if row["label"] == "-1"}
    assert kinds == {
        name: wanted[error]
        for name, error in zip(planted.tracks.ids, planted.errors, strict=True)
        if error
    }
    assert all(row["reasons"] for row in rows if row["label"] == "-1")


def test_flights_that_were_set_apart_are_listed_without_label(result, tracks):
    rows = read_rows((tracks.parent / "labels.csv").read_text())
    assert len(rows) == 61
    assert rows[-1]["id"] == HOSTILE
    assert rows[-1]["label"] == ""
    assert rows[-1]["kind"] == "set apart"
    assert rows[-1]["reasons"] == "1 known position, fewer than 5"


def test_summary_tells_what_was_found(result, tracks):
    assert "60 flights with " in result.stdout
    assert "15 points each along the path" in result.stdout
    assert f"set apart 1 flight: {HOSTILE}" in result.stdout
    assert "outliers  6 flights: " in result.stdout
    assert str(tracks.parent / "map.html") in result.stdout


def test_report_is_one_escaped_page_with_its_command(result, tracks):
    page = (tracks.parent / "map.html").read_text()
    assert page.startswith("<!DOCTYPE html>")
    assert "<script>alert" not in page
    assert "corral flights " in page
    assert "--n-outliers 6" in page


def test_same_seed_gives_the_same_files(result, tracks, tmp_path):
    again = tmp_path / "labels.csv"
    assert run_corral("flights", tracks, *ASKED, "--labels", again).exit_code == 0
    assert again.read_bytes() == (tracks.parent / "labels.csv").read_bytes()


def test_without_labels_file_labels_go_to_standard_output(tracks):
    result = run_corral("flights", tracks, *ASKED, "--by", "time")
    assert result.exit_code == 0, result.output
    rows = read_rows(result.stdout)
    assert sum(row["label"] == "-1" for row in rows) == 6
    assert "15 points each in time" in result.stderr


def test_json_holds_all_that_was_found(tracks):
    result = run_corral("flights", tracks, *ASKED, "--json")
    facts = json.loads(result.stdout)
    assert facts["n_flights"] == 60
    assert sum(facts["kinds"].values()) == facts["n_outliers"] == 6
    assert sum(each["n_flights"] for each in facts["clusters"]) == 54
    assert facts["set_apart"] == {HOSTILE: "1 known position, fewer than 5"}
    assert len(facts["labels"]["id"]) == 61


def test_share_instead_of_number(tracks):
    result = run_corral(
        "flights", tracks, "--n-clusters", 3, "--contamination", 0.1, "--json"
    )
    assert json.loads(result.stdout)["n_outliers"] == 6


def test_columns_by_option(planted, tmp_path):
    head = ("leg", "seen", "p", "q")
    path = write_tracks(tmp_path / "t.csv", planted.tracks, head)
    options = ("--id-column", "leg", "--time-column", "seen")
    options += ("--latitude-column", "p", "--longitude-column", "q", "--json")
    result = run_corral("flights", path, *ASKED, *options)
    assert json.loads(result.stdout)["n_flights"] == 60


def test_npz_is_read(planted, tmp_path):
    tracks, path = planted.tracks, tmp_path / "t.npz"
    np.savez(
        path,
        track_t=tracks.time,
        track_lat=tracks.latitude,
        track_lon=tracks.longitude,
        offsets=tracks.offsets,
    )
    result = run_corral("flights", path, *ASKED, "--json")
    assert json.loads(result.stdout)["n_flights"] == 60


@pytest.mark.parametrize(
    ("content", "options", "message"),
    [
        (
            "a,b,c,d\n1,2,3,4\n",
            (),
            "No column was recognised for: flight, time, latitude, longitude. ",
        ),
        (
            "id,time,lat,lon\na,1,2,3\na,2,2,3\nb,1,2,3\n",
            (),
            "All 2 flights have fewer than 5 known positions, the longest 2. Lower ",
        ),
        (
            "id,time,lat,lon\n" + "".join(f"a,{i},{i},3\n" for i in range(9)),
            ("--n-clusters", 6),
            "--n-clusters 6 should be at most the number of flights, 1. Ask for fewer",
        ),
        (
            "id,time,lat,lon\na,1,north,3\n",
            (),
            "Column 'lat' has 'north' in row 1, which should be a number.",
        ),
        (
            "id,time,lat,lon\nBAW1,1,95,3\n",
            (),
            "Flight 'BAW1' has latitude 95, which should be from -90 to 90 degrees.",
        ),
        (
            "id,time,lat,lon\na,1,5,3\n",
            ("--id-column", "leg"),
            "There is no column 'leg'. The columns are 'id', 'time', 'lat', 'lon'.",
        ),
        (
            "id,time,lat,lon\na,1,5,3\n",
            ("--n-outliers", 1, "--contamination", 0.1),
            "Set either --n-outliers or --contamination, not both.",
        ),
    ],
    ids=["columns", "short", "clusters", "words", "latitude", "option", "both"],
)
def test_errors_are_one_sentence(tmp_path, content, options, message):
    path = tmp_path / "t.csv"
    path.write_text(content)
    report = tmp_path / "out.html"
    result = run_corral("flights", path, *options, "--report", report)
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith(f"Error: {message}")
    assert not report.exists()


def test_a_flight_column_of_lists_is_one_sentence(tmp_path):
    columns = {"flight": [["a"]], "time": [1], "lat": [5.0], "lon": [3.0]}
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    result = run_corral("flights", tmp_path / "t.parquet")
    assert result.exit_code == 2
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith("Error: Column 'flight' is of the type list<")


def test_a_file_that_is_not_there(tmp_path):
    result = run_corral("flights", tmp_path / "no.npz")
    assert result.exit_code == 2
    assert "is not there." in result.stderr


def test_without_jinja2_nothing_is_written(tracks, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    outputs = ("--labels", tmp_path / "l.csv", "--report", tmp_path / "m.html")
    result = run_corral("flights", tracks, *ASKED, *outputs)
    assert result.exit_code == 2
    assert 'pip install "corral[report]"' in result.stderr
    assert list(tmp_path.iterdir()) == []
