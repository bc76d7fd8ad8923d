import json
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from corral.trajectories import (
    _map,
    flights_to_html,
    make_tracks,
    resample_tracks,
    summarize_flights,
)
from tests.trajectories.conftest import find

HOSTILE = "</script><script>document.title = 'hit'</script>\"'><b>\u202e\x00"
SHOWN = HOSTILE.replace("\u202e\x00", r"\u202e\x00")


def test_summary_goes_through_json(summary):
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_summary_lists_outliers_by_score(summary, found):
    scores = [each["score"] for each in summary["outliers"]]
    assert scores == sorted(scores, reverse=True)
    assert sum(summary["kinds"].values()) == 12
    assert sum(each["size"] for each in summary["clusters"]) == 148


def test_page_is_well_formed_and_asks_nothing_of_the_network(page):
    class Reader(HTMLParser):
        opened: list[str] = []

        def handle_starttag(self, tag, attrs):
            for name, value in attrs:
                assert name not in ("src", "srcset", "action")
                assert name != "href" or value.startswith("#cluster-")
            if tag not in ("meta", "path", "circle", "use", "input", "rect"):
                self.opened.append(tag)

        def handle_endtag(self, tag):
            assert tag in ("path", "circle", "use") or self.opened.pop() == tag

    reader = Reader()
    reader.feed(page)
    assert reader.opened == []
    assert "http://" not in page
    assert "https://" not in page


def test_page_has_every_outlier_on_the_map_and_in_the_table(page, summary):
    rows = [str(each["row"]) for each in summary["outliers"]]
    assert re.findall(r'<g class="odd-one [\w-]+" data-row="(\d+)"', page) == rows
    assert re.findall(r'<tr data-row="(\d+)"', page) == rows
    for each in summary["outliers"]:
        assert each["reasons"][0] in page


def test_hostile_names_are_escaped(summary):
    outliers = [dict(summary["outliers"][0], id=HOSTILE, reasons=[HOSTILE])]
    skipped = [{"id": HOSTILE, "reason": "1 known position, fewer than 5"}]
    run = dict(summary["run"], command=HOSTILE, n_skipped=1)
    page = flights_to_html(dict(summary, outliers=outliers, skipped=skipped, run=run))
    assert "document.title" in page
    assert "<script>document" not in page
    assert "<b>" not in page
    assert not set("\u202e\x00") & set(page)
    assert page.count("<script>") == page.count("</script>") == 1


def test_page_without_outliers(found):
    model = found.model
    labels = model.labels_
    try:
        model.labels_ = model.nearest_labels_
        page = flights_to_html(summarize_flights(found.resampled, model, []))
    finally:
        model.labels_ = labels
    assert "Map of the clusters" in page
    assert "Map of the outliers" not in page


def test_thousands_of_flights_stay_below_3_megabytes(found):
    # 4,500 flights with 1,200 outliers: what is drawn is bounded, and says so.
    tracks = make_tracks(100, n_routes=4, spread_km=80, random_state=0)
    many = tracks.take(np.tile(np.arange(100), 45))
    many = type(many)(
        [f"flight {i}" for i in range(4500)],
        many.time,
        many.latitude,
        many.longitude,
        many.offsets,
    )
    resampled = resample_tracks(many, 30)
    labels = np.arange(4500) % 4
    outliers = np.arange(0, 3600, 3)
    labels[outliers] = -1
    kind = found.kinds[0]
    kinds = [kind._replace(row=int(row), id=resampled.ids[row]) for row in outliers]

    class Model:
        labels_ = labels
        outlier_scores_ = np.arange(4500.0)
        random_state = 0

    page = flights_to_html(summarize_flights(resampled, Model(), kinds))
    assert len(page.encode()) < 3_000_000
    assert "The 1,000 strangest are shown." in page
    assert "of the flights are drawn, evenly chosen" in page


def test_without_jinja2_the_error_says_what_to_install(summary, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r'needs jinja2\. .*"corral\[report\]"'):
        flights_to_html(summary)


def test_simplified_lines_stay_within_the_tolerance():
    # The bump of 3 stays, the wobble of 0.5 goes; both ends stay.
    points = np.array([[0, 0], [1, 0.5], [2, 0], [3, 3], [4, 0], [5, -0.5], [6, 0.0]])
    got = _map.simplify(points, 1.0)
    assert got.tolist() == [[0, 0], [2, 0], [3, 3], [4, 0], [6, 0]]


def test_a_line_that_ends_where_it_begins_keeps_its_farthest_point():
    points = np.array([[0, 0], [2, 0.1], [5, 0], [2, 0.2], [0, 0.0]])
    assert _map.simplify(points, 1.0).tolist() == [[0, 0], [5, 0], [0, 0]]


def test_lines_are_drawn_in_steps():
    assert _map.draw_line(np.array([[10, 20], [13, 15.9], [13, 16], [9, 16]])) == (
        "M10 20l3-4-4 0"
    )
    assert _map.draw_line(np.array([[1.0, 2.0], [1.0, 2.0]])) == "M1 2l0 0"


def test_graticule_names_go_on_over_the_date_line():
    latitude, longitude = np.array([-5.0, 5.0]), np.array([170.0, 190.0])
    plane = _map.make_plane((latitude, longitude), (latitude, longitude))
    texts = [each["text"] for each in _map.draw_graticule(plane)["x"]]
    at = texts.index("180°")
    assert texts[at - 1].endswith("E")
    assert texts[at + 1].endswith("W")


def test_scale_is_right_in_the_middle_of_the_map():
    # 10 degrees of latitude are 1,112 km, whatever the view is like.
    latitude, longitude = np.array([40.0, 50.0]), np.array([0.0, 30.0])
    plane = _map.make_plane((latitude, longitude), (latitude, longitude))
    ends = plane.place(latitude, np.array([10.0, 10.0]))
    assert abs(ends[0, 1] - ends[1, 1]) / plane.km == pytest.approx(1112, abs=1)
    assert _map.choose_scale(plane) * plane.km <= _map.WIDTH / 5


def test_far_outliers_do_not_shrink_the_first_view():
    inner = np.array([0.0, 1.0])
    near = _map.make_plane((inner, inner), (inner, inner))
    far = _map.make_plane((inner, inner), (inner, np.array([0.0, 100.0])))
    assert far.km > near.km / 4


def test_mean_track_of_flights_over_the_date_line_is_no_line_round_the_world():
    tracks = make_tracks(60, n_routes=2, center=(0.0, 180.0), random_state=0)
    found = find(tracks, None, n_clusters=2, n_outliers=2)
    summary = summarize_flights(found.resampled, found.model, found.kinds)
    width = summary["map"]["width"]
    for cluster in summary["clusters"]:
        steps = re.findall(r"-?\d+", cluster["mean"].partition("l")[2])
        assert max(abs(int(step)) for step in steps) < width


def test_browser_zooms_tells_and_links(open_page, page, summary):
    browser = open_page(page)
    by = "css selector"
    maps = browser.find_elements(by, "figure.sky")
    assert len(maps) == 2
    # Zoom: the view is halved, the scale follows, and All takes it back.
    svg, scale = (maps[1].find_element(by, each) for each in ("svg", ".scale"))
    view, text = svg.get_dom_attribute("viewBox"), scale.text
    maps[1].find_element(by, "[data-zoom='2']").click()
    assert float(svg.get_dom_attribute("viewBox").split()[2]) == _map.WIDTH / 2
    assert scale.text != text
    maps[1].find_element(by, "[data-zoom='0']").click()
    assert svg.get_dom_attribute("viewBox") == view
    # Pointing at a track tells its name, kind and score.
    browser.execute_script(
        "const track = document.querySelector('.odd-one');"
        "track.dispatchEvent(new PointerEvent('pointermove', {clientX: 9, clientY: 9}))"
    )
    first = summary["outliers"][0]
    tip = maps[1].find_element(by, ".tip").text
    assert first["id"] in tip
    assert f"{first['kind']}, score" in tip
    assert first["reasons"][0] in tip
    # A click on a track finds its row, and on a name its track.
    browser.execute_script(
        "document.querySelectorAll('.odd-one')[1]"
        ".dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    chosen = browser.find_elements(by, "tr.is-chosen")
    assert [each.get_attribute("data-row") for each in chosen] == [
        str(summary["outliers"][1]["row"])
    ]
    # By script, because the head of the table covers the first row after the scroll.
    button = browser.find_element(by, ".strangest tbody button")
    browser.execute_script("arguments[0].click()", button)
    chosen = browser.find_elements(by, ".odd-one.is-chosen")
    assert [each.get_attribute("data-row") for each in chosen] == [str(first["row"])]
    # A kind can be left out, and words searched for.
    browser.find_element(by, "input[data-kind='partial']").click()
    shown = browser.find_elements(by, ".odd-one.partial:not([hidden])")
    assert shown == []
    browser.find_element(by, "input[type=search]").send_keys("partial")
    assert browser.find_element(by, ".found").text == "4 of 12 rows"
    assert browser.get_log("browser") == []


def test_rows_of_a_phone_are_a_few_lines_high(open_page, page):
    browser = open_page(page)
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 380, "height": 800, "deviceScaleFactor": 1, "mobile": True},
    )
    heights, wide = browser.execute_script(
        "const rows = [...document.querySelectorAll('.strangest tbody tr')];"
        "const page = document.documentElement;"
        "return [rows.map((row) => row.offsetHeight),"
        " page.scrollWidth - page.clientWidth]"
    )
    assert max(heights) < 160
    # The table is moved to the side in its own frame, not the page.
    assert wide == 0


def test_browser_takes_hostile_names_as_words(open_page, summary):
    outliers = [dict(summary["outliers"][0], id=HOSTILE, reasons=[HOSTILE])]
    browser = open_page(flights_to_html(dict(summary, outliers=outliers)))
    assert browser.title == "Flights and outliers"
    button = browser.find_element("css selector", ".strangest tbody button")
    assert button.text == SHOWN
    browser.execute_script(
        "const track = document.querySelector('.odd-one');"
        "track.dispatchEvent(new PointerEvent('pointermove'));"
    )
    assert SHOWN in browser.find_element("css selector", ".tip").text
    assert browser.get_log("browser") == []
