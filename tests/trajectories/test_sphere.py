import numpy as np
import pytest

from corral.trajectories import _sphere as sphere

QUARTER = sphere.EARTH_RADIUS_KM * np.pi / 2


@pytest.mark.parametrize(
    ("one", "two", "km"),
    [
        ((0, 0), (0, 90), QUARTER),
        ((0, 0), (90, 123), QUARTER),
        ((0, 179), (0, -179), QUARTER * 2 / 90),
        ((89, 0), (89, 180), QUARTER * 2 / 90),
        ((10, 20), (10, 20), 0),
    ],
    ids=["equator", "to the pole", "date line", "over the pole", "same place"],
)
def test_distances_are_those_of_great_circles(one, two, km):
    points = sphere.to_points(*np.array([one, two], dtype=float).T)
    assert sphere.distances_km(points[:1], points[1:])[0] == pytest.approx(km, abs=1e-6)


def test_degrees_survive_the_way_to_points_and_back():
    latitude = np.array([-89.5, -30.0, 0.0, 47.1, 90.0])
    longitude = np.array([-179.9, 13.0, 0.0, 179.9, 0.0])
    again = sphere.to_degrees(sphere.to_points(latitude, longitude))
    np.testing.assert_allclose(again, [latitude, longitude], atol=1e-9)


def test_interpolation_divides_the_arc_not_the_chord():
    # A third of a quarter of the equator is at 30 degrees.
    ends = sphere.to_points(np.zeros(2), np.array([0.0, 90.0]))
    point = sphere.interpolate(ends[:1], ends[1:], np.array([1 / 3]))
    np.testing.assert_allclose(sphere.to_degrees(point)[1], [30], atol=1e-9)


def test_local_frame_points_east_north_and_up():
    middle, frame = sphere.local_frame(sphere.to_points([0.0], [90.0]))
    np.testing.assert_allclose(middle, [0, 1, 0], atol=1e-12)
    np.testing.assert_allclose(frame, [[-1, 0, 0], [0, 0, 1], [0, 1, 0]], atol=1e-12)


@pytest.mark.parametrize(
    ("longitudes", "middle"),
    [([170.5, -170.5], 180), ([9.5, 11.5], 11), ([-100.5, -80.5], -90)],
)
def test_middle_longitude_is_opposite_to_the_empty_part(longitudes, middle):
    got = sphere.middle_longitude(np.array(longitudes))
    assert abs(float(sphere.wrap(got - middle))) <= 1


def test_middle_longitude_is_zero_where_no_degree_is_empty():
    assert sphere.middle_longitude(np.arange(-180, 180) + 0.5) == 0


def test_unwrapped_tracks_over_the_date_line_lie_side_by_side():
    # The second starts west of the line, the first east of it.
    longitude = np.array([178.0, 179.0, -179.0, -178.0, 178.5, 179.5])
    got = sphere.unwrap(longitude, np.array([0, 3]), 180.0)
    assert got.tolist() == [178, 179, 181, 182, 178.5, 179.5]
