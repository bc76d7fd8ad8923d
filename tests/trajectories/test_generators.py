import numpy as np
import pytest

from corral.trajectories import make_tracks, plant_errors, resample_tracks


def test_same_seed_gives_same_flights():
    one, two = (make_tracks(8, random_state=4) for _ in range(2))
    np.testing.assert_array_equal(one.latitude, two.latitude)
    assert (make_tracks(8, random_state=5).latitude[:5] != one.latitude[:5]).all()


def test_flights_lie_around_the_middle():
    tracks = make_tracks(30, center=(-40.0, 175.0), extent_km=500, random_state=0)
    middle = resample_tracks(tracks, 10)
    assert np.abs(middle.latitude + 40).max() < 6
    assert np.abs(middle.longitude - 175).max() < 8


@pytest.fixture(scope="module")
def pair():
    tracks = make_tracks(60, n_routes=4, random_state=0)
    planted = plant_errors(tracks, 10, random_state=1)
    before, after = (resample_tracks(each, 10) for each in (tracks, planted.tracks))
    return before, after, planted.errors


def test_each_kind_is_planted_in_turn(pair):
    _, _, errors = pair
    counts = {error: int((errors == error).sum()) for error in np.unique(errors)}
    assert counts == {"": 50, "mixed": 4, "shifted": 3, "truncated": 3}


def test_other_flights_stay_as_they_were(pair):
    before, after, errors = pair
    same = errors == ""
    np.testing.assert_allclose(after.latitude[same], before.latitude[same])


def test_truncated_flights_have_a_fifth_to_a_half(pair):
    before, after, errors = pair
    share = (after.length_km / before.length_km)[errors == "truncated"]
    assert (share > 0.15).all()
    assert (share < 0.52).all()


def test_shifted_flights_keep_their_length(pair):
    before, after, errors = pair
    shifted = errors == "shifted"
    np.testing.assert_allclose(
        after.length_km[shifted], before.length_km[shifted], rtol=1e-9
    )
    moved = np.abs(after.latitude - before.latitude) + np.abs(
        after.longitude - before.longitude
    )
    assert (moved[shifted].max(axis=1) > 3).all()


def test_mixed_flights_jump(pair):
    before, after, errors = pair
    assert (before.jump_km < 3).all()
    assert (after.jump_km[errors == "mixed"] > 100).all()


def test_more_errors_than_flights_are_refused():
    with pytest.raises(ValueError, match="n_errors=9 should be at most the number of"):
        plant_errors(make_tracks(8, random_state=0), 9)
