import numpy as np
import pytest

from corral.trajectories import classify_outliers, group_tracks, resample_tracks

N_REPORTS = 41


def fly(*corners, aside=0.0):
    """Return positions along straight lines between (latitude, longitude) corners."""
    corners = np.array(corners, dtype=float) + aside
    steps = np.linspace(0, len(corners) - 1, N_REPORTS)
    places = np.arange(len(corners))
    return np.column_stack([np.interp(steps, places, each) for each in corners.T])


def name_kinds(**flights):
    """Return the kind of each flight beside two crossing routes.

    Route 0 goes east along the equator, route 1 north along the meridian of 0, both of
    10 degrees; 30 flights each, within 0.2 degrees of the line. Reports come each
    minute, at 15 km a minute.
    """
    aside = np.linspace(-0.2, 0.2, 30)
    usual = [fly((0, -5), (0, 5), aside=each) for each in aside]
    usual += [fly((-5, 0), (5, 0), aside=each) for each in aside]
    routes = [*usual, *(np.asarray(each) for each in flights.values())]
    names = [f"usual {i}" for i in range(60)] + list(flights)
    counts = [len(each) for each in routes]
    places = np.concatenate(routes)
    time = np.concatenate([60.0 * np.arange(count) for count in counts])
    if "gap" in flights:
        late = np.arange(counts[-1]) >= 10
        time[-counts[-1] :] += 1800 * late
    tracks = group_tracks(np.repeat(names, counts), time, *places.T)
    resampled = resample_tracks(tracks, 25)
    labels = np.repeat([0, 1, -1], [30, 30, len(flights)])
    return classify_outliers(resampled, labels)


def test_half_a_route_is_partial():
    (kind,) = name_kinds(half=fly((0, -5), (0, -1)))
    assert (kind.kind, kind.cluster, kind.id) == ("partial", 0, "half")
    assert kind.reasons == [
        "445 km long, where 95% of the flights of cluster 0 have more than 1,112 km"
    ]


def test_a_long_gap_makes_a_flight_partial():
    # Positions for the first and the last fifth of the way only.
    way = fly((0, -5), (0, 5))
    (kind,) = name_kinds(gap=np.concatenate([way[:10], way[-10:]]))
    assert kind.kind == "partial"
    assert kind.reasons[0] == "no positions for 55% of its way"


def test_a_flight_beside_its_route_is_out_of_range():
    (kind,) = name_kinds(beside=fly((2, -5), (2, 5)))
    assert (kind.kind, kind.cluster) == ("out of range", 0)
    assert kind.reasons[0].startswith(
        "100% of its way lies outside the corridor of cluster 0, up to "
    )


def test_a_jump_makes_a_flight_mixed():
    # 20 minutes along one route, the next minute 5 degrees away on the other.
    first, second = fly((0, -5), (0, 5))[:21], fly((-5, 0), (5, 0))[21:] + [2, 0]
    (kind,) = name_kinds(jump=np.concatenate([first, second]))
    assert kind.kind == "mixed"
    assert kind.reasons[0].startswith("jumps ")


def test_one_route_and_then_the_other_is_mixed():
    (kind,) = name_kinds(turn=fly((0, -5), (0, 0), (5, 0)))
    assert kind.kind == "mixed"
    # It turns between the 12th and the 13th of 25 points.
    assert kind.reasons == ["the first 48% follow cluster 0, the rest cluster 1"]


def test_a_route_flown_backwards_is_of_unusual_shape():
    (kind,) = name_kinds(back=fly((0, 5), (0, -5)))
    assert (kind.kind, kind.cluster) == ("unusual shape", 0)
    assert kind.reasons == ["flies the way of cluster 0 backwards"]


def test_a_loop_within_the_corridor_is_of_unusual_shape():
    (kind,) = name_kinds(loop=fly((0, -5), (0, 3), (0, -3), (0, 5)))
    assert kind.kind == "unusual shape"
    assert any("have less than 1,1" in reason for reason in kind.reasons)


def test_order_is_that_of_the_rows():
    kinds = name_kinds(
        half=fly((0, -5), (0, -1)),
        beside=fly((2, -5), (2, 5)),
        back=fly((0, 5), (0, -5)),
    )
    assert [each.row for each in kinds] == [60, 61, 62]
    assert [each.kind for each in kinds] == ["partial", "out of range", "unusual shape"]


def test_planted_errors_are_found_and_named(found):
    # All twelve, four of each kind, on tight routes.
    wanted = {"mixed": "mixed", "truncated": "partial", "shifted": "out of range"}
    assert len(found.kinds) == 12
    assert {each.row: each.kind for each in found.kinds} == {
        row: wanted[error] for row, error in enumerate(found.errors) if error
    }
    assert all(each.reasons and all(each.reasons) for each in found.kinds)


def test_without_outliers_there_is_nothing_to_name(found):
    assert classify_outliers(found.resampled, np.zeros(160, dtype=int)) == []


def test_without_clusters_there_is_nothing_to_compare_with(found):
    with pytest.raises(ValueError, match="^labels has no cluster, so outliers cannot"):
        classify_outliers(found.resampled, np.full(160, -1))


def test_labels_of_other_flights_are_refused(found):
    message = r"^labels has shape \(7,\), which should be \(160,\): one for each flight"
    with pytest.raises(ValueError, match=message):
        classify_outliers(found.resampled, np.zeros(7))


def test_a_cluster_of_one_flight_has_a_corridor(found):
    labels = np.full(160, 0)
    labels[5], labels[9] = 1, -1
    (kind,) = classify_outliers(found.resampled, labels)
    assert kind.row == 9
