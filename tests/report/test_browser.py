"""The page in a real Chromium: it draws, sorts, searches, zooms, and is safe."""

import json

import numpy as np
import pandas as pd
import pytest

from corral import COR
from corral.report import summarize, to_html
from tests.hostile import SHOWN, WORDS, check_harmless


@pytest.fixture(scope="module")
def summary():
    """Return the summary of two groups with three rows far away, one very far."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (60, 3)), rng.normal(9, 1, (60, 3))])
    X[[5, 70]] = [[20.0, -11.0, 4.0], [-12.0, 15.0, 4.0]]
    X[100] = [4.0, 4.0, 900.0]
    model = COR(n_partitions=30, random_state=0).fit(X)
    assert (model.n_clusters_, model.n_outliers_) == (2, 3)
    return summarize(
        model,
        X,
        feature_names=["width", "height", "depth"],
        ids=[f"part {row}" for row in range(len(X))],
        command="corral fit parts.csv",
    )


@pytest.fixture
def page(open_page, summary):
    return open_page(to_html(summary))


def _find(browser, selector):
    return browser.find_element("css selector", selector)


def _find_all(browser, selector):
    return browser.find_elements("css selector", selector)


def _errors(browser):
    return [entry["message"] for entry in browser.get_log("browser")]


def _requests(browser):
    """Return what the page asked for, without what the browser loads as it starts."""
    log = browser.get_log("performance")
    messages = [json.loads(entry["message"])["message"] for entry in log]
    return [
        each["params"]["request"]["url"]
        for each in messages
        if each["method"] == "Network.requestWillBeSent"
        and each["params"]["documentURL"] == browser.current_url
    ]


def _ids(browser):
    """Return the ids of the rows of the table that can be seen, from the top."""
    return browser.execute_script(
        "return [...document.querySelectorAll('.strangest tbody tr:not([hidden]) th')]"
        ".map((cell) => cell.textContent.trim())"
    )


def _point_at(browser, summary, row):
    """Move the mouse to where a row is drawn in the first view."""
    from selenium.webdriver import ActionChains

    place = summary["map"]["rows"].index(row)
    plot = _find(browser, ".map .plot")
    browser.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    size = plot.size
    # Rows further out are at the edge.
    x, y = np.clip([summary["map"][axis][place] for axis in "xy"], 0.015, 0.985)
    right, down = round((x - 0.5) * size["width"]), round((0.5 - y) * size["height"])
    ActionChains(browser).move_to_element_with_offset(plot, right, down).perform()


def _wheel(browser, element, amount):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.actions.wheel_input import ScrollOrigin

    origin = ScrollOrigin.from_element(element)
    ActionChains(browser).scroll_from_origin(origin, 0, amount).perform()


def _dots(browser):
    """Return all that is drawn of the clusters."""
    return [each.get_attribute("d") for each in _find_all(browser, ".map .dots")]


def test_page_draws_all_panels_without_errors_or_requests(page):
    # The only request is for the file itself.
    headings = [each.text for each in _find_all(page, "h2")]
    assert headings == [
        "Clusters",
        "Why these numbers",
        "Map of the rows",
        "Outlier scores",
        "Strangest rows",
        "Agreement among partitions",
        "Objective by iteration",
        "How to get the same again",
    ]
    assert _errors(page) == []
    assert _requests(page) == [page.current_url]
    for selector in (".map svg", ".heat svg", ".plot svg", ".charts svg"):
        assert _find(page, selector).size["height"] > 100


def test_headings_sort_the_table(page, summary):
    # The first click on a score sorts from high to low, the next from low to high.
    ranked = [row["id"] for row in summary["strangest"]]
    assert _ids(page) == ranked
    by_row, by_score = _find_all(page, ".strangest thead button")[:2]
    by_score.click()
    by_score.click()
    assert _ids(page)[0] == ranked[-1]
    heading = by_score.find_element("xpath", "..")
    assert heading.get_attribute("aria-sort") == "ascending"
    # Numbers in ids count as numbers.
    by_row.click()
    assert _ids(page)[:3] == ["part 0", "part 1", "part 2"]
    assert _ids(page)[-1] == "part 119"
    assert heading.get_attribute("aria-sort") is None


def test_search_leaves_rows_with_all_words(page):
    box = _find(page, ".strangest input")
    box.send_keys("DEPTH 900")
    assert _ids(page) == ["part 100"]
    assert _find(page, ".found").text == "1 of 120 rows"
    box.clear()
    box.send_keys("no such word")
    assert _ids(page) == []
    box.clear()
    box.send_keys(" ")
    assert len(_ids(page)) == 120


def test_pointing_at_a_row_tells_its_id_and_reasons(page, summary):
    assert not _find(page, ".tip").is_displayed()
    _point_at(page, summary, 5)
    text = _find(page, ".tip").text
    assert "row part 5\noutlier, nearest to cluster" in text
    assert "spreads above its cluster" in text
    # Away from all rows there is nothing to tell.
    from selenium.webdriver import ActionChains

    plot = _find(page, ".map .plot")
    corner = [2 - plot.size["width"] // 2, 2 - plot.size["height"] // 2]
    ActionChains(page).move_to_element_with_offset(plot, *corner).perform()
    assert not _find(page, ".tip").is_displayed()


def test_buttons_zoom_and_go_home(page):
    first = _dots(page)
    _find(page, ".zoom-in").click()
    assert _dots(page) != first
    _find(page, ".zoom-home").click()
    assert _dots(page) == first
    _find(page, ".zoom-all").click()
    assert _dots(page) != first


def test_script_draws_what_the_page_drew(page):
    # Python draws the first view, the script all later ones.
    drawn = _find(page, ".map .squares").get_attribute("d")
    dots = _dots(page)
    _find(page, ".zoom-home").click()
    assert _find(page, ".map .squares").get_attribute("d") == drawn
    assert _dots(page) == dots


def test_wheel_zooms_only_after_a_click(page):
    # Whoever scrolls past the map does not get stuck in it.
    first = _dots(page)
    plot = _find(page, ".map .plot")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    before = page.execute_script("return window.scrollY")
    _wheel(page, plot, -120)
    assert _dots(page) == first
    assert page.execute_script("return window.scrollY") < before
    plot.click()
    after = page.execute_script("return window.scrollY")
    _wheel(page, plot, -120)
    assert _dots(page) != first
    assert page.execute_script("return window.scrollY") == after


def test_dragging_moves_the_map(page):
    from selenium.webdriver import ActionChains

    plot = _find(page, ".map .plot")
    first = _dots(page)
    ActionChains(page).drag_and_drop_by_offset(plot, 60, 30).perform()
    assert _dots(page) != first


def test_keys_zoom_move_and_step_through_outliers(page, summary):
    plot = _find(page, ".map .plot")
    page.execute_script("arguments[0].focus()", plot)
    first = _dots(page)
    for key in ("\ue014", "\ue013", "+"):  # arrows right and up
        before = _dots(page)
        plot.send_keys(key)
        assert _dots(page) != before
    plot.send_keys("0")
    assert _dots(page) == first
    outliers = [row["id"] for row in summary["strangest"] if row["is_outlier"]]
    for expected in (*outliers, outliers[0]):
        plot.send_keys("n")
        assert f"row {expected}\n" in _find(page, ".tip").text
    plot.send_keys("p")
    assert f"row {outliers[-1]}\n" in _find(page, ".tip").text
    plot.send_keys("\ue00c")  # escape
    assert not _find(page, ".tip").is_displayed()


def test_id_in_the_table_shows_the_row_on_the_map(page, summary):
    second = summary["strangest"][1]
    _find_all(page, ".strangest .find")[1].click()
    assert f"row {second['id']}\n" in _find(page, ".tip").text


class Seed(np.random.RandomState):
    """A parameter that shows itself in all hostile words."""

    def __repr__(self):
        return " ".join(WORDS)

    __str__ = __repr__


@pytest.fixture(scope="module")
def hostile():
    """Return a table with hostile names and cells, and a model with hostile ones."""
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(80, len(WORDS))), columns=list(WORDS))
    X["kind"] = np.resize(WORDS, 80)
    # Each of these names is among the reasons.
    for row, name in enumerate(WORDS):
        X.loc[row, name] = 60.0
    Method = type(WORDS[0], (COR,), {})
    model = Method(
        2,
        n_outliers=2,
        n_partitions=10,
        categorical_features=["kind"],
        random_state=Seed(0),
    )
    return X, model.fit(X)


def test_hostile_words_are_shown_and_not_run(open_page, hostile):
    X, model = hostile
    ids = [f"{words} {row}" for row, words in enumerate(np.resize(WORDS, 80))]
    command = f"corral {' '.join(WORDS)}"
    summary = summarize(model, X, ids=ids, values=X, command=command)
    browser = open_page(to_html(summary))
    # One script of our own, and one block of data.
    check_harmless(browser, n_scripts=2)
    text = _find(browser, "body").get_attribute("textContent")
    for row, words in enumerate(SHOWN):
        # In the command, the python line, a name, a cell and an id.
        assert text.count(words) >= 5
        assert f"{words} is" in text
        assert f"{words} {row}" in text
    # Each row can be shown on the map, with its id and its reasons.
    tips = browser.execute_script(
        "const tip = document.querySelector('.tip');"
        "return [...document.querySelectorAll('.strangest .find')].map((button) => {"
        "button.click(); return [tip.firstChild.textContent, tip.textContent]; })"
    )
    for row, words in enumerate(SHOWN):
        assert f"{words} is" in dict(tips)[f"row {words} {row}"]
    check_harmless(browser, n_scripts=2)
    _find(browser, ".strangest input").send_keys("</script>")
    assert len(_ids(browser)) > 0
    _find(browser, ".strangest thead button").click()
    check_harmless(browser, n_scripts=2)
    assert _errors(browser) == []
    assert _requests(browser) == [browser.current_url]


def test_notebook_shows_hostile_words_and_runs_none(open_page, hostile):
    # Our summary and scikit-learn's diagram, which has one script of its own.
    _, model = hostile
    html = model._repr_html_()
    browser = open_page(f"<!DOCTYPE html><meta charset=utf-8><body>{html}</body>")
    check_harmless(browser, n_scripts=1)
    text = _find(browser, "body").get_attribute("textContent")
    assert f"{SHOWN[0]}: 2 clusters and 2 outliers in 80 rows" in text
    for words in SHOWN:
        assert words in text
    # All that can be opened is open.
    browser.execute_script(
        "for (const each of document.querySelectorAll("
        "'.sk-toggleable__label, summary')) { each.click(); }"
    )
    check_harmless(browser, n_scripts=1)
    # An icon is within the page.
    asked = [url for url in _requests(browser) if not url.startswith("data:image/")]
    assert asked == [browser.current_url]


def test_policy_stops_a_foreign_script(open_page, summary):
    # Should words ever get through, the page still does not run them.
    page = to_html(summary).replace("</main>", "<script>hacked = 1</script></main>")
    browser = open_page(page)
    assert browser.execute_script("return window.hacked") is None
    assert any("Content Security Policy" in error for error in _errors(browser))


def _luminance(colour):
    channels = [int(each) / 255 for each in colour[4:-1].split(",")[:3]]
    linear = [
        each / 12.92 if each <= 0.04045 else ((each + 0.055) / 1.055) ** 2.4
        for each in channels
    ]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_are_legible_in_light_and_dark(page, scheme):
    # Contrast of at least 4.5, as WCAG asks for.
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def colour(selector, kind):
        return _luminance(
            page.execute_script(
                "return getComputedStyle(document.querySelector(arguments[0]))"
                "[arguments[1]]",
                selector,
                kind,
            )
        )

    behind = colour("html", "backgroundColor")
    assert (behind < 0.1) == (scheme == "dark")
    for selector in (
        ".glance",
        "section > p",
        ".aside th",
        ".usual",
        ".hint",
        ".taken td",
        ".level-text",
    ):
        low, high = sorted((behind, colour(selector, "color")))
        assert (high + 0.05) / (low + 0.05) >= 4.5, selector


def test_page_without_scripts_has_map_and_table(open_page, summary, chromium):
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    browser = open_page(to_html(summary))
    assert len(_find_all(browser, ".strangest tbody tr")) == 120
    assert _find(browser, ".map .squares").get_attribute("d").count("M") == 3
    # Tools that would do nothing are not shown.
    assert not any(each.is_displayed() for each in _find_all(browser, ".tools"))


def test_printed_page_has_no_tools_and_not_all_rows(page):
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert not any(each.is_displayed() for each in _find_all(page, ".tools"))
    rows = _find_all(page, ".strangest tbody tr")
    assert [row.is_displayed() for row in rows[39:41]] == [True, False]
    assert _find(page, ".printed").is_displayed()
    printed = page.execute_cdp_cmd("Page.printToPDF", {})
    assert len(printed["data"]) > 10_000


@pytest.mark.parametrize("n_samples", [120, 100_000])
def test_phone_needs_no_scrolling_to_the_side(
    open_page, summary, make_fitted, n_samples
):
    if n_samples > 120:
        summary = summarize(*make_fitted(n_samples))
    page = open_page(to_html(summary))
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True},
    )
    widths = page.execute_script(
        "return ['html', '.strangest .scroll'].map((selector) => {"
        "const element = document.querySelector(selector);"
        "return element.scrollWidth - element.clientWidth; })"
    )
    assert widths == [0, 0]


def test_two_reports_share_a_page(open_page, summary):
    # Each sorts its own table.
    page = to_html(summary)
    start, end = page.index("<main"), page.index("</main>") + len("</main>")
    browser = open_page(page[:end] + page[start:end] + page[end:])
    second = _find_all(browser, ".corral-report")[1]
    before = _ids(browser)
    second.find_element("css selector", ".strangest thead button").click()
    after = _ids(browser)
    assert after[:120] == before[:120]
    assert after[120:] != before[120:]
    assert _errors(browser) == []


def test_report_of_100_000_rows_is_small_and_quick(open_page, make_fitted):
    model, X = make_fitted(100_000)
    ids = [f"machine {row}" for row in range(len(X))]
    page = to_html(summarize(model, X, ids=ids))
    assert len(page.encode()) < 3_000_000
    browser = open_page(page)
    assert _errors(browser) == []
    seconds = browser.execute_script(
        "const start = performance.now();"
        "document.querySelector('.zoom-in').click();"
        "return (performance.now() - start) / 1000;"
    )
    assert seconds < 0.5
