import gzip

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from corral.trajectories import Tracks, make_tracks, read_tracks

ROWS = [("a", 0, 50.0, 8.0), ("b", 5, 60.0, 9.0), ("a", 10, 51.0, 8.5)]


def write(path, head, rows=ROWS, delimiter=","):
    lines = [delimiter.join(map(str, row)) for row in [head, *rows]]
    path.write_text("\n".join(lines) + "\n")
    return path


def assert_is_example(tracks, start=0.0):
    assert tracks.ids == ["a", "b"]
    assert tracks.offsets.tolist() == [0, 2, 3]
    np.testing.assert_allclose(tracks.time - start, [0, 10, 5])
    assert tracks.latitude.tolist() == [50, 51, 60]
    assert tracks.longitude.tolist() == [8, 8.5, 9]


@pytest.mark.parametrize(
    "head",
    [
        ("flight_id", "time", "latitude", "longitude"),
        ("callsign", "timestamp", "lat", "lon"),
        ("ICAO24", "Time", "Lat", "Lng"),
        ("Flight ID", "unix_time", "LATITUDE", "Long"),
        ("mmsi", "BaseDateTime", "LAT", "LON"),
    ],
    ids=lambda head: head[0],
)
def test_usual_names_of_columns_are_known(tmp_path, head):
    assert_is_example(read_tracks(write(tmp_path / "t.csv", head)))


def test_columns_can_be_named(tmp_path):
    path = write(tmp_path / "t.csv", ("leg", "seen", "p", "q"))
    columns = {"id": "leg", "time": "seen", "latitude": "p", "longitude": "q"}
    named = {f"{role}_column": name for role, name in columns.items()}
    assert_is_example(read_tracks(path, **named))


def test_flight_id_wins_over_the_address_of_the_aircraft(tmp_path):
    # One aircraft flies many flights.
    rows = [("x", *row) for row in ROWS]
    path = write(
        tmp_path / "t.csv", ("icao24", "flight_id", "time", "lat", "lon"), rows
    )
    assert_is_example(read_tracks(path))


@pytest.mark.parametrize("suffix", [".csv.gz", ".tsv", ".parquet"])
def test_other_forms_of_tables(tmp_path, suffix):
    path, head = tmp_path / f"t{suffix}", ("id", "time", "lat", "lon")
    if suffix == ".parquet":
        columns = dict(zip(head, zip(*ROWS, strict=True), strict=True))
        pq.write_table(pa.table(columns), path)
    else:
        write(path, head, delimiter="\t" if suffix == ".tsv" else ",")
    if suffix == ".csv.gz":
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert_is_example(read_tracks(path))


@pytest.mark.parametrize(
    "times",
    [
        ["2024-01-01T00:00:00", "2024-01-01T00:00:05", "2024-01-01T00:00:10"],
        ["2024-01-01 00:00:00Z", "2024-01-01 00:00:05Z", "2024-01-01 00:00:10Z"],
        ["2024-01-01T01:00:00+01:00", "2024-01-01T00:00:05Z", "2024-01-01T00:00:10"],
        [f"2024-01-01T00:00:{second:02d}.000000001" for second in (0, 5, 10)],
        [1704067200, 1704067205, 1704067210],
        [1704067200000, 1704067205000, 1704067210000],
        [1704067200000000000, 1704067205000000000, 1704067210000000000],
    ],
    ids=["iso", "zone", "mixed", "fractions", "seconds", "milliseconds", "nanoseconds"],
)
def test_times_as_numbers_or_iso(tmp_path, times):
    rows = [(row[0], time, *row[2:]) for row, time in zip(ROWS, times, strict=True)]
    path = write(tmp_path / "t.csv", ("id", "time", "lat", "lon"), rows)
    assert_is_example(read_tracks(path), start=1704067200)


@pytest.mark.parametrize("is_coded", [False, True], ids=["text", "coded"])
@pytest.mark.parametrize(
    "times",
    [
        ["2024-01-01T00:00:00", "2024-01-01T00:00:05", "1704067210"],
        ["1704067200000", "1704067205000", "1704067210000"],
    ],
    ids=["mixed", "milliseconds"],
)
def test_times_may_be_texts_of_any_type(tmp_path, times, is_coded):
    columns = dict(
        zip(("id", "time", "lat", "lon"), zip(*ROWS, strict=True), strict=True)
    )
    column = pa.array(times)
    columns["time"] = column.dictionary_encode() if is_coded else column
    pq.write_table(pa.table(columns), tmp_path / "t.parquet")
    assert_is_example(read_tracks(tmp_path / "t.parquet"), start=1704067200)


def test_times_of_the_day_count_in_seconds(tmp_path):
    times = ["00:00:00", "00:00:05", "00:00:10"]
    rows = [(row[0], time, *row[2:]) for row, time in zip(ROWS, times, strict=True)]
    path = write(tmp_path / "t.csv", ("id", "time", "lat", "lon"), rows)
    assert_is_example(read_tracks(path))


def test_spaces_around_a_callsign_make_no_other_flight(tmp_path):
    # Callsigns are filled up to eight letters in many sources.
    rows = [("a  ", *ROWS[0][1:]), ROWS[1], ROWS[2]]
    path = write(tmp_path / "t.csv", ("callsign", "time", "lat", "lon"), rows)
    assert_is_example(read_tracks(path))


def test_flights_with_numbers_for_names(tmp_path):
    rows = [(7, 0, 50, 8), (3, 0, 60, 9), (7, 1, 51, 8)]
    path = write(tmp_path / "t.csv", ("mmsi", "time", "lat", "lon"), rows)
    assert read_tracks(path).ids == ["7", "3"]


def test_empty_cells_are_unknown(tmp_path):
    rows = [("a", 0, "", 8.0), ("a", "", 5, 8.0), ("a", 2, 5, "nan")]
    tracks = read_tracks(write(tmp_path / "t.csv", ("id", "time", "lat", "lon"), rows))
    assert np.isnan(tracks.latitude).tolist() == [True, False, False]
    assert np.isnan(tracks.time).tolist() == [False, True, False]
    assert np.isnan(tracks.longitude).tolist() == [False, False, True]


def test_columns_without_a_cell_are_unknown(tmp_path):
    rows = [("a", 0, "", 8.0), ("a", 1, "", 9.0)]
    tracks = read_tracks(write(tmp_path / "t.csv", ("id", "time", "lat", "lon"), rows))
    assert np.isnan(tracks.latitude).all()
    assert tracks.longitude.tolist() == [8.0, 9.0]


def test_empty_cells_between_texts_are_unknown(tmp_path):
    rows = [("a", "2021-10-07 10:00", 1, 8.0), ("a", "", 2, 9.0), ("a", "7", 3, 9.0)]
    tracks = read_tracks(write(tmp_path / "t.csv", ("id", "time", "lat", "lon"), rows))
    assert sorted(tracks.latitude[np.isnan(tracks.time)]) == [2.0]


def write_npz(path, **changes):
    tracks = make_tracks(3, random_state=0)
    arrays = {
        "track_t": tracks.time,
        "track_lat": tracks.latitude.astype(np.float32),
        "track_lon": tracks.longitude.astype(np.float32),
        "offsets": tracks.offsets,
        "callsign": np.array(["AB1", "AB1", ""]),
        "icao24": np.array(["00b0ed", "00b0ed", "4b1812"]),
        **changes,
    }
    np.savez(path, **{name: each for name, each in arrays.items() if each is not None})
    return path


def test_npz_gives_callsigns_that_occur_once(tmp_path):
    tracks = read_tracks(write_npz(tmp_path / "t.npz"))
    assert tracks.ids == ["AB1", "AB1 #2", "4b1812"]
    assert len(tracks.time) == tracks.offsets[-1]


def test_npz_may_hold_names_as_bytes_or_numbers(tmp_path):
    names = {
        "callsign": np.array([b"SWR0", b"Z\xc3\x9cR", b"\xff"], "S8"),
        "icao24": np.array([1, 2, 3]),
    }
    tracks = read_tracks(write_npz(tmp_path / "t.npz", **names))
    assert tracks.ids == ["SWR0", "Z\u00dcR", "\ufffd"]
    names["callsign"] = np.array([b"SWR0", b"", b"  "])
    assert read_tracks(write_npz(tmp_path / "t.npz", **names)).ids == ["SWR0", "2", "3"]


def test_the_suffix_of_npz_may_be_in_capitals(tmp_path):
    path = write_npz(tmp_path / "t.npz").rename(tmp_path / "t.NPZ")
    assert read_tracks(path).ids == ["AB1", "AB1 #2", "4b1812"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"track_t": None},
            r"has no array 'track_t'\. A file of tracks has 'track_t',",
        ),
        (
            {"offsets": np.array([0, 5, 6])},
            r"'offsets' of .* should be whole numbers that rise from 0 to \d+,",
        ),
        (
            {"callsign": np.array(["AB1"])},
            r"an array 'callsign' of shape \(1,\)\. It should have a name for each of "
            r"the 3 tracks\.",
        ),
        (
            {"callsign": np.array([1.5, 2.5, 3.5])},
            r"an array 'callsign' of float64\. It should hold texts, or whole numb",
        ),
        (
            {"icao24": np.array(["2024", "2025", "2026"], "M8[Y]")},
            r"an array 'icao24' of datetime64\[Y\]\. It should hold texts, or whole",
        ),
        (
            {"track_lat": np.array(["north"])},
            r"an array 'track_lat' of <U5 and shape \(1,\)\. It should be a list of",
        ),
        (
            {"track_lon": np.zeros(7)},
            r"has 7 cells in 'track_lon', but [\d,]+ in 'track_t'\. They should have",
        ),
    ],
    ids=["missing", "offsets", "names", "floats", "dates", "texts", "cells"],
)
def test_npz_that_holds_no_tracks_is_refused(tmp_path, changes, message):
    path = write_npz(tmp_path / "t.npz", **changes)
    with pytest.raises(ValueError, match=message):
        read_tracks(path)


def test_npz_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone\.npz' is not there\.$"):
        read_tracks(tmp_path / "gone.npz")


@pytest.mark.parametrize(
    "offsets",
    [
        [0, 1.5, 3],
        [0, np.nan, 3],
        [0, np.inf, 3],
        [0, 3, 1],
        [0, 4, 3],
        [1, 2, 3],
        [0, 1, 2],
        [0, 1, 4],
        [-1, 1, 3],
        [[0, 1, 3]],
        [],
        ["0", "1", "3"],
        ["a", "b", "c"],
    ],
    ids=repr,
)
def test_offsets_that_do_not_cut_the_positions_are_refused(offsets):
    with pytest.raises(ValueError, match="^offsets .* rise from 0 to 3, the number"):
        Tracks(["a", "b"], *np.zeros((3, 3)), offsets)


def test_offsets_may_be_whole_numbers_of_any_type(tmp_path):
    tracks = read_tracks(write_npz(tmp_path / "t.npz"))
    as_floats = {"offsets": tracks.offsets.astype(np.float32)}
    same = read_tracks(write_npz(tmp_path / "f.npz", **as_floats))
    assert same.offsets.tolist() == tracks.offsets.tolist()
    assert same.take([2]).ids == ["4b1812"]


def test_offsets_for_another_number_of_flights_are_refused():
    with pytest.raises(ValueError, match="offsets has 2 numbers for 2 flights"):
        Tracks(["a", "b"], *np.zeros((3, 3)), np.array([0, 3]))


@pytest.mark.parametrize(
    ("head", "rows", "message"),
    [
        (
            ("id", "time", "alt", "lon"),
            ROWS,
            r"No column was recognised for: latitude\. The columns are 'id', 'time', "
            r"'alt', 'lon'\. Name them with --latitude-column\.",
        ),
        (
            ("a", "b", "c", "d"),
            ROWS,
            r"recognised for: flight, time, latitude, longitude\..*--id-column, ",
        ),
        (
            ("id", "time", "lat", "lon"),
            [*ROWS, ("b", 7, "north", 3)],
            r"Column 'lat' has 'north' in row 4, which should be a number\.",
        ),
        (
            ("id", "time", "lat", "lon"),
            [*ROWS, ("b", "noon", 1, 3)],
            r"Column 'time' has 'noon' in row 4, which should be a number or an ISO "
            r"time\.",
        ),
        (
            ("id", "time", "lat", "lon"),
            [*ROWS, ("b", 7, 95.5, 3), ("b", 8, -99, 3)],
            r"Flight 'b' has latitude 95\.5, which should be from -90 to 90 degrees\. "
            r"1 other position is wrong, too\. Mend",
        ),
        (
            ("id", "time", "lat", "lon"),
            [*ROWS, ("b", 7, 5, 700)],
            r"Flight 'b' has longitude 700, which should be from -180 to 360 degrees",
        ),
        (
            ("id", "time", "lat", "lon"),
            [*ROWS, ("", 7, 5, 7)],
            r"Column 'id' has no flight in row 4\. Every position needs one\.",
        ),
    ],
    ids=["one name", "all names", "words", "times", "latitude", "longitude", "no id"],
)
def test_what_cannot_be_read_is_said_in_a_sentence(tmp_path, head, rows, message):
    path = write(tmp_path / "t.csv", head, rows)
    with pytest.raises(ValueError, match=message):
        read_tracks(path)


def write_parquet(path, flights):
    n_rows = len(flights)
    places = {"time": range(n_rows), "lat": [5.0] * n_rows, "lon": [8.0] * n_rows}
    pq.write_table(pa.table({"flight": flights, **places}), path)
    return path


def test_flights_named_by_bytes_are_read_as_text(tmp_path):
    flights = pa.array([b"SWR0 ", b"Z\xc3\x9cR", b"SWR0"])
    tracks = read_tracks(write_parquet(tmp_path / "t.parquet", flights))
    assert tracks.ids == ["SWR0", "Z\u00dcR"]


@pytest.mark.parametrize(
    ("flights", "kind"),
    [
        (pa.array([["a"], ["b"]]), r"list<\w+: string>"),
        (pa.array([{"a": 1}, {"a": 2}]), r"struct<a: int64>"),
        (pa.array([1, 2], pa.timestamp("s", "Mars/Base")), r"\w+\[m?s, tz=Mars/Base\]"),
    ],
    ids=["lists", "structs", "zone"],
)
def test_columns_that_cannot_name_flights_are_refused(tmp_path, flights, kind):
    path = write_parquet(tmp_path / "t.parquet", flights)
    words = rf"Column 'flight' is of the type {kind}, which cannot name flights\. It sh"
    with pytest.raises(ValueError, match=words):
        read_tracks(path)


def test_a_column_that_is_not_there_is_named(tmp_path):
    path = write(tmp_path / "t.csv", ("id", "time", "lat", "lon"))
    with pytest.raises(ValueError, match="There is no column 'leg'. The columns are"):
        read_tracks(path, id_column="leg")


def test_real_files_are_read_whole(real_flights):
    tracks = read_tracks(real_flights / "paris_20211007.npz")
    assert len(tracks) == 239
    assert len(set(tracks.ids)) == 239
    assert tracks.offsets[-1] == 284_493
