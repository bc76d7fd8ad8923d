import base64
import hashlib
import json
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pandas as pd
import pytest

from corral import COR
from corral.detectors import LOF
from corral.report import summarize, to_html

_VOID_TAGS = {"meta", "rect", "path", "polyline", "input"}


class _Reader(HTMLParser):
    """Collects tags, attributes and visible words; checks that tags close in order."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.words, self._open = [], [], [], []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in _VOID_TAGS:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if tag not in _VOID_TAGS:
            assert self._open.pop() == tag

    def handle_data(self, data):
        if self._open and self._open[-1] not in {"script", "style"}:
            self.words += data.split()


def _words(page):
    return " ".join(_Reader(page).words)


def test_page_says_what_was_found(estimator, six_rows):
    # The first sentences give the counts of the summary.
    words = _words(to_html(summarize(estimator, six_rows)))
    assert "Of 6 rows with 2 columns, 5 form 2 clusters and 1 row (17%)" in words
    assert "The strangest row is 5 , nearest to cluster 0: feature 1 is" in words
    assert "100 partitions, in which the rows of the fit have 4 distinct codes" in words
    assert "1 row set aside" in words


def test_page_is_the_same_after_json(estimator, six_rows):
    # The page needs nothing but the summary.
    summary = summarize(estimator, six_rows)
    assert to_html(json.loads(json.dumps(summary))) == to_html(summary)


def test_page_escapes_all_words_of_the_user(estimator, six_rows):
    # Words from the data never become tags or attributes.
    hostile = "<script>alert(1)</script>"
    image = '"><img src=x onerror=alert(1)>'
    estimator.set_params(random_state=image)
    values = pd.DataFrame({hostile: ["</script>"] * 6, "{{ 7*7 }}": [image] * 6})
    page = to_html(
        summarize(
            estimator,
            six_rows,
            feature_names=[hostile, "{{ 7*7 }}"],
            ids=[f"{row}'\"<!--{hostile}" for row in range(6)],
            values=values,
            command=f"corral {hostile}",
            python=f"model = {image}",
        )
    )
    reader = _Reader(page)
    # The data of the map and our own script.
    assert reader.tags.count("script") == 2
    assert not {"img", "onerror"} & {*reader.tags, *dict(reader.attributes)}
    assert page.count("</script>") == 2
    words = " ".join(reader.words)
    assert hostile in words
    assert "{{ 7*7 }}" in words
    assert image in words


def test_data_of_the_map_cannot_end_its_script(estimator, six_rows):
    # No character that means something in HTML or ends a line of a script is left.
    ids = ["</script>", "<!--<script>", "&amp;", "\u2028\u2029", "'\"", "é"]
    page = to_html(summarize(estimator, six_rows, ids=ids))
    (data,) = re.findall(r'class="map-data">(.*?)</script>', page)
    assert not set("<>&'\u2028\u2029") & set(data)
    decoded = json.loads(data)
    assert dict(zip(decoded["rows"], decoded["ids"], strict=True)) == dict(
        enumerate(ids)
    )


def test_page_holds_no_character_that_utf_8_lacks(estimator, six_rows):
    # Half a character, as in a file name that is not UTF-8, or a control character.
    summary = summarize(
        estimator, six_rows, ids=["\ud800\x00"] * 6, command="corral \udcff"
    )
    page = to_html(summary)
    page.encode("utf-8")
    assert "\x00" not in page


def test_page_cuts_long_words(estimator, six_rows):
    # A cell with a whole book does not make the page as long.
    values = pd.DataFrame({"book": ["word " * 100_000] * 6})
    names = ["x" * 10_000, "y"]
    summary = summarize(estimator, six_rows, feature_names=names, values=values)
    assert len(to_html(summary)) < 100_000


def test_page_refers_to_nothing_outside(estimator, six_rows):
    # One file: no links, images or fonts from elsewhere.
    page = to_html(summarize(estimator, six_rows))
    reader = _Reader(page)
    assert not {"link", "img", "iframe"} & set(reader.tags)
    assert not {"src", "href", "id"} & {name for name, _ in reader.attributes}
    assert not re.search(r"https?://|url\(|@import|fetch\(|import\(", page)


def test_policy_names_the_script_of_the_page(estimator, six_rows):
    # Another script, whatever its way in, has another sum.
    page = to_html(summarize(estimator, six_rows))
    (script,) = re.findall(r"<script>(.*)</script>", page, flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = (
        content
        for name, content in _Reader(page).attributes
        if name == "content" and "default-src" in content
    )
    assert "default-src 'none'" in policy
    assert f"script-src 'sha256-{digest}'" in policy


def test_page_without_rows_leaves_out_features(estimator):
    # Without X there is nothing to say about features, and no empty column either.
    words = _words(to_html(summarize(estimator)))
    assert "what makes it different" not in words
    assert "what sets it apart" not in words


def test_page_without_outliers_draws_no_cut(estimator):
    estimator.labels_ = estimator.nearest_labels_
    estimator.n_outliers_ = 0
    estimator.offset_ = -np.inf
    page = to_html(summarize(estimator))
    assert "No rows were set aside." in _words(page)
    assert 'class="cut"' not in page


def test_page_lists_only_the_largest_of_many_clusters(estimator):
    # With 60 clusters the page lists 50 and says so.
    estimator.n_clusters = 60
    words = _words(to_html(summarize(estimator)))
    assert "The 50 largest of 60 clusters." in words


def test_page_of_one_iteration_has_a_sentence_for_the_curve(estimator):
    estimator.objective_history_ = np.array([8.0])
    words = _words(to_html(summarize(estimator)))
    assert "The fit took one iteration and ended with an objective of 8." in words


def test_page_of_a_detector_has_no_clusters(planted):
    model = LOF(n_outliers=6).fit(planted.X)
    words = _words(to_html(summarize(model, planted.X)))
    assert "Of 186 rows with 4 columns, 6 rows (3.2%) were set aside" in words
    assert "spreads above the other rows" in words
    assert "cluster" not in words.partition("How to get the same again")[0]


def test_page_says_what_is_missing(planted):
    X = planted.X.copy()
    X[3, 1] = np.nan
    model = COR(3, n_outliers=6, n_partitions=20, random_state=0).fit(X)
    words = _words(to_html(summarize(model, X)))
    assert "1 cell is missing, in feature 1 (1)." in words


def test_page_says_that_rows_are_drawn_at_random(make_fitted):
    model, X = make_fitted(8000, n_features=3, n_outliers=1200)
    words = _words(to_html(summarize(model, X, n_strangest=5)))
    sentence = "5,000 of 8,000 rows are drawn: the strangest 1,000 outliers"
    assert sentence in words
    assert "The 5 rows with the highest scores; rows are numbered from 0." in words


def test_page_without_a_seed_says_so(estimator):
    estimator.set_params(random_state=None)
    assert "No seed was set" in _words(to_html(summarize(estimator)))


def test_page_without_jinja2_says_what_to_install(estimator, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    sentence = (
        r"^The HTML report needs jinja2\. "
        r'Install it with: pip install "corral\[report\]"$'
    )
    with pytest.raises(ImportError, match=sentence):
        to_html(summarize(estimator))
