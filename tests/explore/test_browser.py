"""The page in a real Chromium: sliders, map, curve, table, files, safety, its end."""

import csv
import json
import os
import signal
import threading
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle

import pytest

from tests.cli.example import ODD, make_rows, write_table
from tests.explore.test_process import IMPATIENT, OPTIONS, explore
from tests.hostile import SHOWN, WORDS, check_harmless

# What would run if words were not words.
SCRIPT = "<img src=x onerror=hacked=1><script>hacked=1</script>"

RIGHT, LEFT = "\ue014", "\ue012"

CUT = ".curve-panel .cut"


@pytest.fixture(scope="module")
def hostile(tmp_path_factory):
    """Return the example table with words that no page should run."""
    rows = make_rows()
    for row, words in zip(rows, cycle(WORDS), strict=False):
        row["name"] = f"{row['name']} {words}"
        row[SCRIPT] = row.pop("d")
        row["color"] = f"{SCRIPT}{row['color']}"
    return write_table(tmp_path_factory.mktemp("table") / "data.csv", rows)


@pytest.fixture(scope="module")
def output(tmp_path_factory):
    return tmp_path_factory.mktemp("output")


@pytest.fixture(scope="module")
def server(hostile, output, chromium):
    words = ("--n-clusters", 3, "--n-outliers", 3, "--output", output)
    with explore(hostile, *OPTIONS, *words) as server:
        # As another page, so that the server stays between the tests.
        line, _ = server.ask("pages")
        with closing(line):
            yield server


@pytest.fixture
def page(chromium, server):
    """Return the page as it is first seen, with all logs empty before."""
    for kind in ("browser", "performance"):
        chromium.get_log(kind)
    chromium.get(server.address)
    wait_for(chromium, 3, 3)
    yield chromium
    chromium.execute_cdp_cmd(
        "Emulation.setEmulatedMedia", {"media": "", "features": []}
    )
    chromium.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    chromium.get("about:blank")


def until(browser, condition):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(browser, 15, 0.03).until(condition)


def wait_for(browser, n_clusters, n_outliers):
    """Wait until these numbers are shown and nothing is asked for."""
    until(
        browser,
        lambda it: it.execute_script(
            "return location.hash === arguments[0] && "
            "document.querySelector('.controls').ariaBusy === 'false'",
            f"#{n_clusters},{n_outliers}",
        ),
    )


def find(browser, selector):
    return browser.find_element("css selector", selector)


def find_all(browser, selector):
    return browser.find_elements("css selector", selector)


def texts(browser, selector):
    return browser.execute_script(
        "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)",
        selector,
    )


def count_marks(browser, selector):
    """Return how many rows are drawn by paths."""
    paths = [each.get_attribute("d") for each in find_all(browser, selector)]
    return [path.count("M") for path in paths if path]


def errors(browser):
    return [entry["message"] for entry in browser.get_log("browser")]


def events(browser):
    """Return what happened on the network, as names with their facts."""
    log = browser.get_log("performance")
    messages = [json.loads(entry["message"])["message"] for entry in log]
    return [(each["method"], each["params"]) for each in messages]


def requests(browser):
    return [
        facts["request"]["url"]
        for name, facts in events(browser)
        if name == "Network.requestWillBeSent"
    ]


def answers_of(browser, address):
    """Return the answers of a server, also those that the page may not see."""
    urls, answers = {}, []
    for name, facts in events(browser):
        if name == "Network.requestWillBeSent":
            urls[facts["requestId"]] = facts["request"]["url"]
        if name == "Network.responseReceivedExtraInfo":
            url = urls.get(facts["requestId"], "")
            answers += [facts["statusCode"]] if url.startswith(address) else []
    return answers


def type_number(browser, selector, number):
    box = find(browser, selector)
    box.send_keys("\ue009a\ue000")  # control and a: all of it
    box.send_keys(str(number))


def test_first_view_has_all_panels_and_asks_nobody_else(page, server):
    assert count_marks(page, ".map .dots") == [50, 50, 47]
    assert count_marks(page, ".map .squares") == [3]
    assert len(texts(page, ".strangest tbody tr.aside")) == len(ODD)
    assert len(texts(page, ".strangest tbody tr.next")) == 5
    assert len(texts(page, ".clusters tbody tr")) == 4
    assert find(page, ".curve").get_attribute("points").count(",") == 150
    assert "fused in" in find(page, ".status").text
    assert page.title == "data.csv – corral explore"
    own = [url for url in requests(page) if not url.startswith(("data:", "about:"))]
    assert {url for url in own if not url.startswith(server.address)} == set()
    assert len(own) >= 5
    assert errors(page) == []


def test_sliders_change_map_curve_and_tables(page):
    find(page, "#clusters-slider").send_keys(RIGHT, RIGHT)
    wait_for(page, 5, 3)
    assert len(texts(page, ".clusters tbody tr")) == 6
    assert sum(count_marks(page, ".map .dots")) == 147
    assert len(texts(page, ".map .cluster-name")) == 5
    cut = find(page, CUT).get_attribute("d")
    # Each step of the slider is one row more, where there are few.
    find(page, "#outliers-slider").send_keys(RIGHT, RIGHT, RIGHT)
    wait_for(page, 5, 6)
    assert count_marks(page, ".map .squares") == [6]
    assert len(texts(page, ".strangest tbody tr.aside")) == 6
    assert find(page, CUT).get_attribute("d") != cut
    assert find(page, "#outliers-box").get_attribute("value") == "6"
    assert (
        find(page, "#outliers-slider").get_attribute("aria-valuetext") == "6 outliers"
    )
    assert "--n-clusters 5 --n-outliers 6" in find(page, ".command").text
    assert errors(page) == []


def test_fast_moves_end_at_the_last(page):
    find(page, "#outliers-slider").send_keys(*[RIGHT] * 12, *[LEFT] * 4)
    wait_for(page, 3, int(find(page, "#outliers-box").get_attribute("value")))
    shown = int(page.execute_script("return location.hash").partition(",")[2])
    assert shown > 3
    assert count_marks(page, ".map .squares") == [shown]
    assert errors(page) == []


def test_boxes_take_any_number_and_none_is_too_large(page):
    type_number(page, "#outliers-box", 131)
    wait_for(page, 3, 131)
    assert "The strangest 100 of 131 outliers." in find(page, ".rows-facts").text
    type_number(page, "#clusters-box", 60)
    until(page, lambda it: find(it, ".controls .error").is_displayed())
    assert (
        "60 clusters and 131 outliers need 192 rows"
        in find(page, ".controls .error").text
    )
    # What was shown stays, and the page goes on.
    assert count_marks(page, ".map .squares") == [131]
    type_number(page, "#outliers-box", 0)
    type_number(page, "#clusters-box", 2)
    wait_for(page, 2, 0)
    assert not find(page, ".controls .error").is_displayed()
    assert "No rows are set aside." in find(page, ".rows-facts").text
    assert find(page, CUT).get_attribute("d") == ""
    # The answer 422 is the only complaint.
    assert all("422" in each for each in errors(page))


def test_buttons_go_to_what_the_rows_suggest(page):
    chosen = find(page, ".chosen-pick")
    assert find(page, ".advice .reason").text
    numbers = chosen.get_attribute("data-numbers").split(",")
    chosen.click()
    wait_for(page, *numbers)
    assert chosen.get_attribute("aria-pressed") == "true"


def test_a_click_on_the_curve_cuts_it_there(page):
    from selenium.webdriver import ActionChains

    plot = find(page, ".curve-panel .plot")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", plot)
    # The middle of a logarithmic axis from 1 to 150 is at 12.2.
    ActionChains(page).move_to_element(plot).click().perform()
    until(page, lambda it: it.execute_script("return location.hash") != "#3,3")
    n_outliers = int(page.execute_script("return location.hash").partition(",")[2])
    assert 11 <= n_outliers <= 13


def test_ids_show_rows_on_the_map_with_their_reasons(page):
    find_all(page, ".strangest .find")[1].click()
    tip = find(page, ".tip").text
    first = texts(page, ".strangest tbody tr:nth-child(2) th")[0]
    assert f"row {first}\noutlier, nearest to cluster" in tip
    assert "spreads" in tip


def test_words_of_the_data_are_shown_and_not_run(page):
    type_number(page, "#outliers-box", 60)
    wait_for(page, 3, 60)
    ids, reasons = texts(page, ".strangest tbody th"), texts(page, ".reasons li")
    for words in SHOWN:
        assert any(each.endswith(f" {words}") for each in ids)
    assert any(SCRIPT in words for words in reasons)
    page.execute_script(
        "for (const each of document.querySelectorAll('.find')) { each.click(); }"
    )
    check_harmless(page, n_scripts=1)
    assert errors(page) == []


def test_policy_stops_a_foreign_script(page):
    page.execute_script(
        "const script = document.createElement('script');"
        "script.textContent = 'window.hacked = 1'; document.body.append(script);"
        "const image = document.createElement('img');"
        "image.src = 'http://127.0.0.1:9/'; document.body.append(image);"
    )
    assert page.execute_script("return window.hacked") is None
    assert any("Content Security Policy" in each for each in errors(page))


def test_loading_again_keeps_the_numbers(page):
    type_number(page, "#outliers-box", 9)
    wait_for(page, 3, 9)
    page.refresh()
    wait_for(page, 3, 9)
    assert count_marks(page, ".map .squares") == [9]


def test_save_writes_three_files_and_asks_before_it_replaces(page, output):
    find(page, ".save .main").click()
    until(page, lambda it: find(it, ".saved").is_displayed())
    names = ["data-command.sh", "data-labels.csv", "data-report.html"]
    assert sorted(path.name for path in output.iterdir()) == names
    with (output / "data-labels.csv").open(newline="") as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    assert labels.count("-1") == 3
    assert find(page, ".saved code").text in (output / names[0]).read_text()
    type_number(page, "#outliers-box", 4)
    wait_for(page, 3, 4)
    find(page, ".save .main").click()
    until(page, lambda it: find(it, ".confirm").is_displayed())
    assert "data-labels.csv" in find(page, ".confirm p").text
    find(page, ".cancel").click()
    assert not find(page, ".confirm").is_displayed()
    assert (output / "data-labels.csv").read_text().count(",-1,") == 3
    find(page, ".save .main").click()
    until(page, lambda it: find(it, ".confirm").is_displayed())
    find(page, ".replace").click()
    until(page, lambda it: find(it, ".saved").is_displayed())
    assert (output / "data-labels.csv").read_text().count(",-1,") == 4
    # The question is an answer of 409, which Chromium notes.
    assert all("409" in each for each in errors(page))


def test_a_name_with_a_path_is_refused_in_words(page, output):
    name = find(page, "#save-name")
    name.clear()
    name.send_keys("../evil")
    find(page, ".save .main").click()
    until(page, lambda it: find(it, ".save-error").is_displayed())
    assert "'../evil' cannot begin the names of files" in find(page, ".save-error").text
    assert not (output.parent / "evil-labels.csv").exists()


class Evil(BaseHTTPRequestHandler):
    """Another page of this machine, at another port."""

    seen: list = []

    def do_GET(self):
        self.seen.append(str(self.headers) + self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!DOCTYPE html><link rel=icon href='data:,'><body></body>")

    def log_message(self, *_):
        pass


@pytest.fixture
def evil():
    """Return the address of another page."""
    with ThreadingHTTPServer(("127.0.0.1", 0), Evil) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{other.server_port}/"
        other.shutdown()


# All that a page can do to another server, by name; "refused" is what it should get.
ATTEMPTS = """
    const [address, done] = arguments;
    const results = {};
    const attempt = async (name, path, options) => {
      try {
        const answer = await fetch(address + path, options);
        results[name] = answer.type === "opaque" ? "refused" : await answer.text();
      } catch { results[name] = "refused"; }
    };
    const load = (name, tag, settings) => new Promise((go) => {
      const made = document.createElement(tag);
      const end = (word) => { results[name] = word; go(); };
      made.onload = () => end("loaded");
      made.onerror = () => end("refused");
      Object.assign(made, settings);
      document.body.append(made);
    });
    const listen = (name, line) => new Promise((go) => {
      const end = (word) => { results[name] = word; line.close(); go(); };
      line.onopen = line.onmessage = () => end("open");
      line.onerror = () => end("refused");
    });
    const body = '{"n_clusters":3,"n_outliers":3,"name":"evil","replace":true}';
    const json = { "Content-Type": "application/json" };
    const frame = (name, tag, settings) => new Promise((go) => {
      const made = document.createElement(tag);
      made.name = name;
      made.onload = made.onerror = go;
      Object.assign(made, settings);
      document.body.append(made);
    });
    const send = (enctype) => new Promise((go) => {
      const into = document.querySelector("[name=target]");
      into.onload = go;
      const form = document.createElement("form");
      const action = address + "save";
      Object.assign(form, { method: "POST", action, target: "target", enctype });
      const field = document.createElement("input");
      field.name = body.slice(0, -1) + ',"x":"';
      field.value = '"}';
      form.append(field);
      document.body.append(form);
      form.submit();
    });
    (async () => {
      await attempt("read", "opening", {});
      await attempt("blind read", "opening", { mode: "no-cors" });
      await attempt("ask", "save", { method: "POST", body, headers: json });
      await attempt("blind ask", "save", { method: "POST", body, mode: "no-cors" });
      const whole = { method: "POST", body, headers: json, credentials: "include" };
      await attempt("ask with cookies", "save", whole);
      await attempt("delete", "save", { method: "DELETE" });
      navigator.sendBeacon(address + "save", new Blob([body], { type: "text/plain" }));
      await load("script", "script", { src: address + "script.js" });
      await load("image", "img", { src: address });
      await load("style", "link", { rel: "stylesheet", href: address + "style.css" });
      await listen("events", new EventSource(address + "pages"));
      await listen("socket", new WebSocket(address.replace("http", "ws") + "pages"));
      await frame("target", "iframe", { src: "about:blank" });
      await send("text/plain");
      await send("application/x-www-form-urlencoded");
      await frame("framed", "iframe", { src: address });
      await frame("embedded", "object", { data: address });
      done(results);
    })();
"""


def test_another_page_can_neither_read_nor_ask_nor_frame(
    chromium, server, output, evil
):
    # Even if it knew the token.
    before = sorted(path.name for path in output.iterdir())
    chromium.get(evil)
    events(chromium)
    results = chromium.execute_async_script(ATTEMPTS, server.address)
    assert len(results) == 11
    assert {*results.values()} == {"refused"}
    assert sorted(path.name for path in output.iterdir()) == before
    # All that was answered to it was no.
    answers = answers_of(chromium, server.address)
    assert {*answers} == {403}
    assert len(answers) >= len(results)
    chromium.get("about:blank")


def test_the_page_does_not_tell_others_its_address(page, server, evil):
    # Neither by a link that somebody follows nor to a page that it opens.
    Evil.seen.clear()
    page.execute_script("location.href = arguments[0]", evil)
    until(page, lambda it: it.current_url == evil)
    assert len(Evil.seen) == 1
    assert "Referer" not in Evil.seen[0]
    assert server.path.strip("/") not in Evil.seen[0]
    assert page.execute_script("return document.referrer") == ""


def test_without_the_token_or_by_another_name_there_is_nothing(chromium, server):
    wrong = server.address.replace(server.path, "/wrong/")
    # Chromium takes any such name for this machine, as a foreign one could be.
    foreign = server.address.replace("127.0.0.1", "evil.localhost")
    for address, words in (
        (wrong, "The token is missing."),
        (f"{wrong}opening", "The token is missing."),
        (foreign, "This address is not served here."),
        (f"{foreign}opening", "This address is not served here."),
    ):
        chromium.get(address)
        assert words in find(chromium, "body").text
        status = chromium.execute_script(
            "return performance.getEntriesByType('navigation')[0].responseStatus"
        )
        assert status == 403
    chromium.get("about:blank")


def luminance(colour):
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

    def contrast(selector, behind):
        colours = page.execute_script(
            "const style = (e) => getComputedStyle(document.querySelector(e));"
            "return [style(arguments[0]).color, style(arguments[1]).backgroundColor]",
            selector,
            behind,
        )
        low, high = sorted(map(luminance, colours))
        return (high + 0.05) / (low + 0.05)

    for selector in ("h1", ".status", ".reason", ".next th", ".aside th", ".cut-text"):
        assert contrast(selector, "html") >= 4.5, selector
    for selector in (".save .main", ".pick", "#outliers-box", "pre"):
        assert contrast(selector, selector) >= 4.5, selector


def test_phone_needs_no_scrolling_to_the_side(page):
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 390, "height": 800, "deviceScaleFactor": 1, "mobile": True},
    )
    width = page.execute_script(
        "const page = document.documentElement;"
        "return page.scrollWidth - page.clientWidth"
    )
    assert width == 0


def test_every_control_has_a_name(page):
    controls = find_all(page, "input, button")
    assert len(controls) > 10
    assert all(each.accessible_name for each in controls if each.is_displayed())


# Answers to a page come later than the end of the server.
LATE = """
const ask = window.fetch;
window.fetch = async (...words) => {
  const answer = await ask(...words);
  await new Promise((done) => { window.release = done; });
  return answer;
};
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
@pytest.mark.parametrize("control", [".runner-up-pick", ".save .main"])
def test_nothing_takes_back_that_the_server_has_ended(
    chromium, data, tmp_path, control
):
    with explore(data, *OPTIONS, "--output", tmp_path) as server:
        chromium.get(server.address)
        until(chromium, lambda it: find(it, ".status").text)
        shown = chromium.execute_script("return location.hash")
        chromium.execute_script(LATE)
        find(chromium, control).click()
        until(chromium, lambda it: it.execute_script("return !!window.release"))
        server.process.send_signal(signal.SIGINT)
        until(chromium, lambda it: find(it, ".controls .error").is_displayed())
        chromium.execute_script("window.release()")
        if control == ".save .main":
            until(chromium, lambda it: find(it, ".saved").is_displayed())
        else:
            until(
                chromium, lambda it: it.execute_script("return location.hash") != shown
            )
        chromium.execute_script(
            "document.querySelector('.curve-panel .plot')"
            ".dispatchEvent(new MouseEvent('click', {clientX: 300}))"
        )
        assert find(chromium, ".controls").get_attribute("aria-busy") == "false"
        assert "corral has ended." in find(chromium, ".controls .error").text
        assert not find(chromium, ".save .main").is_enabled()
        assert not find(chromium, "#clusters-slider").is_enabled()
        assert server.wait()[0] == 0
    chromium.get("about:blank")


def test_what_was_fused_before_is_there_at_once(page):
    # The last fusion is kept.
    page.refresh()
    wait_for(page, 3, 3)
    assert find(page, ".status").text == "fused at once"
    type_number(page, "#outliers-box", 7)
    wait_for(page, 3, 7)
    assert find(page, ".status").text.startswith("fused in ")


def test_closing_the_page_ends_the_server_but_loading_it_again_does_not(chromium, data):
    with explore(data, *OPTIONS, code=IMPATIENT) as server:
        for _ in range(2):
            chromium.get(server.address)
            until(chromium, lambda it: find(it, ".status").text)
        assert server.process.poll() is None
        chromium.get("about:blank")
        code, said = server.wait()
    assert code == 0
    assert said[-1] == "Ended, because the page was closed."
