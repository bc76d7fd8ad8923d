import numpy as np
import pytest

from corral.trajectories import group_tracks, make_tracks, resample_tracks


def one_track(time, latitude, longitude=None):
    longitude = [8.0] * len(time) if longitude is None else longitude
    return group_tracks(["a"] * len(time), time, latitude, longitude)


def test_path_against_time_by_hand():
    # Along a meridian from 0 to 4 degrees: 1 degree in the first half of the time, 3 in
    # the second. Along the path, points are a degree apart; in time, two of them are
    # half a degree apart and two one and a half.
    tracks = one_track([0, 10, 20], [0, 1, 4])
    by_path = resample_tracks(tracks, 5, min_points=2)
    by_time = resample_tracks(tracks, 5, by="time", min_points=2)
    np.testing.assert_allclose(by_path.latitude, [[0, 1, 2, 3, 4]], atol=1e-9)
    np.testing.assert_allclose(by_time.latitude, [[0, 0.5, 1, 2.5, 4]], atol=1e-9)
    # A degree of the great circle has 111.195 km.
    assert by_path.length_km[0] == pytest.approx(4 * 111.195, abs=0.01)


def test_vectors_are_kilometres_east_north_and_up():
    # Two flights along the equator and a degree north of it: they are 111 km apart at
    # every point, and the middle lies between them.
    tracks = group_tracks([*"aabb"], [0, 1, 0, 1], [0, 0, 1, 1], [10, 11, 10, 11])
    resampled = resample_tracks(tracks, 3, min_points=2)
    assert resampled.X.shape == (2, 10)
    assert resampled.feature_names[:4] == ["east 1", "north 1", "up 1", "east 2"]
    assert resampled.feature_names[-1] == "jump"
    south, north = resampled.points
    np.testing.assert_allclose((north - south)[:, 1], 111.195, rtol=1e-3)
    np.testing.assert_allclose(south[:, 0], [-55.6, 0, 55.6], atol=0.1)
    apart = np.linalg.norm(north - south, axis=1)
    np.testing.assert_allclose(apart, 111.195, rtol=1e-4)


@pytest.mark.parametrize("by", ["path", "time"])
def test_ends_are_kept_and_points_evenly_spaced(by):
    tracks = make_tracks(20, random_state=1)
    resampled = resample_tracks(tracks, 30, by=by)
    firsts, lasts = tracks.offsets[:-1], tracks.offsets[1:] - 1
    np.testing.assert_allclose(resampled.latitude[:, 0], tracks.latitude[firsts])
    np.testing.assert_allclose(resampled.latitude[:, -1], tracks.latitude[lasts])
    steps = np.linalg.norm(np.diff(resampled.points, axis=1), axis=2)
    # The bends are so slight that chords are as long as the path, by either spacing
    # but for the wobble of the reports.
    np.testing.assert_allclose(steps / steps.mean(axis=1, keepdims=True), 1, atol=0.1)


def test_date_line_changes_nothing_but_longitudes():
    # The same flights 80 degrees further east cross the line.
    here = make_tracks(12, center=(10.0, 100.0), random_state=0)
    moved = group_tracks(
        np.repeat(here.ids, here.counts), here.time, here.latitude, here.longitude + 80
    )
    assert (np.abs(np.diff(moved.longitude)) > 300).any()
    one, two = resample_tracks(here, 15), resample_tracks(moved, 15)
    np.testing.assert_allclose(two.X, one.X, atol=1e-6)
    np.testing.assert_allclose(two.longitude - 80, one.longitude, atol=1e-9)


def test_tracks_on_either_side_of_the_date_line_are_near_each_other():
    tracks = group_tracks(
        [*"aabb"], [0, 1, 0, 1], [0, 1, 0, 1], [179.9, 179.9, -179.9, -179.9]
    )
    resampled = resample_tracks(tracks, 4, min_points=2)
    assert np.ptp(resampled.longitude) == pytest.approx(0.2)
    apart = np.linalg.norm(resampled.points[0] - resampled.points[1], axis=1)
    assert apart.max() < 23


def test_tracks_over_the_pole_are_not_torn():
    resampled = resample_tracks(one_track([0, 1], [89, 89], [0, 180]), 3, min_points=2)
    assert resampled.length_km[0] == pytest.approx(2 * 111.195, abs=0.01)
    assert resampled.latitude[0, 1] == pytest.approx(90)


def test_order_repeats_and_unknown_positions_do_not_matter():
    # The same four positions, shuffled, with a repeat of a time at another place and
    # with cells that are missing.
    clean = one_track([0, 1, 2, 3], [0, 1, 2, 3])
    spoiled = one_track(
        [3, 1, 0, 1, 2, 2.5, np.nan, 1.5],
        [3, 1, 0, 40, 2, np.nan, 9, 1.5],
        [8, 8, 8, 8, 8, 8, 8, np.nan],
    )
    one, two = (resample_tracks(each, 7, min_points=2) for each in (clean, spoiled))
    np.testing.assert_array_equal(two.X, one.X)
    assert one.n_dropped == {"unknown": 0, "same time": 0}
    assert two.n_dropped == {"unknown": 3, "same time": 1}


def test_a_gap_is_bridged_and_its_share_told():
    # Reports each second, but none from 3 to 63; speed is the same throughout, so the
    # gap is 60 of 66 seconds and of the path.
    time = np.array([0, 1, 2, 3, 63, 64, 65, 66.0])
    gap = resample_tracks(one_track(time, time / 10), 12, min_points=2)
    assert gap.gap_share[0] == pytest.approx(60 / 66)
    np.testing.assert_allclose(gap.latitude[0], np.linspace(0, 6.6, 12), atol=1e-9)
    whole = resample_tracks(one_track(np.arange(67.0), np.arange(67) / 10), 12)
    assert whole.gap_share[0] == 0
    np.testing.assert_allclose(gap.X, whole.X, atol=1e-6)


def test_a_pause_is_a_gap_in_time_but_not_on_the_path():
    time, latitude = [0, 1, 2, 102, 103, 104], [0, 1, 2, 2, 3, 4]
    tracks = one_track(time, latitude)
    assert resample_tracks(tracks, 5).gap_share[0] == 0
    by_time = resample_tracks(tracks, 5, by="time")
    assert by_time.gap_share[0] == pytest.approx(100 / 104)


def test_max_gap_says_what_a_gap_is():
    tracks = one_track([0, 1, 2, 5, 6], [0, 1, 2, 5, 6])
    assert resample_tracks(tracks, 5).gap_share[0] == 0
    assert resample_tracks(tracks, 5, max_gap=2).gap_share[0] == pytest.approx(0.5)


def test_short_tracks_are_set_apart_by_name():
    names = [*"aaaaabbc"]
    tracks = group_tracks(names, range(8), np.arange(8.0), np.full(8, 8.0))
    resampled = resample_tracks(tracks, 4)
    assert resampled.ids == ["a"]
    assert resampled.skipped == [
        ("b", "2 known positions, fewer than 5"),
        ("c", "1 known position, fewer than 5"),
    ]
    assert len(resampled.tracks) == 1


def test_only_known_positions_count():
    tracks = one_track(range(6), [0, 1, 2, 3, np.nan, np.nan])
    with pytest.raises(ValueError, match="All 1 flights have fewer than 5 known posi"):
        resample_tracks(tracks)


def test_a_flight_that_stays_is_one_place():
    resampled = resample_tracks(one_track(range(6), [5.0] * 6), 4)
    np.testing.assert_allclose(resampled.latitude, 5)
    assert resampled.length_km[0] == 0
    assert np.isfinite(resampled.X).all()


def test_a_jump_counts_as_being_so_far_away():
    # Ten flights of 1 degree in 10 steps of 60 s; one of them is 5 degrees off from
    # its sixth report on. Three times the median speed would be 0.3 degrees.
    latitude = np.tile(np.arange(11) / 10, 10)
    latitude[6:11] += 5
    names = np.repeat([*"abcdefghij"], 11)
    tracks = group_tracks(
        names, np.tile(60.0 * np.arange(11), 10), latitude, 0 * latitude
    )
    resampled = resample_tracks(tracks, 16)
    assert resampled.jump_km[0] == pytest.approx((5.1 - 0.3) * 111.195, rel=1e-3)
    assert (resampled.jump_km[1:] == 0).all()
    np.testing.assert_allclose(resampled.X[:, -1], 4 * resampled.jump_km)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_points": 1}, "n_points=1 should be 2 or more."),
        ({"by": "space"}, "by='space' is not known. Choose one of 'path', 'time'."),
        ({"min_points": 1}, "min_points=1 should be 2 or more."),
        ({"max_gap": 0}, "max_gap=0 should be above 0."),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_settings_out_of_range(settings, message):
    with pytest.raises(ValueError, match=f"^{message}$"):
        resample_tracks(one_track(range(6), range(6)), **settings)


def test_taking_tracks_keeps_their_positions():
    tracks = make_tracks(5, random_state=0)
    part = tracks.take([3, 1])
    assert part.ids == [tracks.ids[3], tracks.ids[1]]
    wanted = tracks.latitude[tracks.offsets[1] : tracks.offsets[2]]
    np.testing.assert_array_equal(part.latitude[part.offsets[1] :], wanted)


def test_vectors_of_the_data_folder_are_met(real_flights):
    # The folder has ten instants of each flight, interpolated in degrees.
    from corral.trajectories import read_tracks

    path = real_flights / "paris_20211007.npz"
    with np.load(path) as parts:
        theirs = parts["X"].reshape(-1, 10, 2)
    ours = resample_tracks(read_tracks(path), 10, by="time")
    np.testing.assert_allclose(ours.latitude, theirs[..., 0], atol=2e-3)
    np.testing.assert_allclose(ours.longitude, theirs[..., 1], atol=2e-3)
