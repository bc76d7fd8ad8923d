import json
import re
import sys
from html.parser import HTMLParser

import numpy as np
import pytest

from corral.report import summarize, to_html

_VOID_TAGS = {"meta", "rect", "path", "polyline"}


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
        self.words += data.split()


def _words(page):
    return " ".join(_Reader(page).words)


def test_page_says_what_was_found(estimator, six_rows):
    # The first sentences give the counts of the summary.
    words = _words(to_html(summarize(estimator, six_rows)))
    assert "Of 6 rows with 2 features, 5 form 2 clusters and 1 row (16.7%)" in words
    assert "100 partitions, in which the rows have 4 distinct codes" in words
    assert "1 row set aside" in words


def test_page_is_the_same_after_json(estimator, six_rows):
    # The page needs nothing but the summary.
    summary = summarize(estimator, six_rows)
    assert to_html(json.loads(json.dumps(summary))) == to_html(summary)


def test_page_escapes_feature_names_and_settings(estimator, six_rows):
    # Words from the data never become tags or attributes.
    hostile = "<script>alert(1)</script>"
    estimator.set_params(random_state='"><img src=x onerror=alert(1)>')
    page = to_html(summarize(estimator, six_rows, feature_names=[hostile, "{{ 7*7 }}"]))
    reader = _Reader(page)
    assert not {"script", "img"} & set(reader.tags)
    assert hostile in " ".join(reader.words)
    assert "{{ 7*7 }}" in " ".join(reader.words)


def test_page_refers_to_nothing_outside(estimator, six_rows):
    # One file: no scripts, links, images or fonts from elsewhere.
    page = to_html(summarize(estimator, six_rows))
    reader = _Reader(page)
    assert not {"script", "link", "img", "iframe"} & set(reader.tags)
    assert not {"src", "href", "id"} & {name for name, _ in reader.attributes}
    assert not re.search(r"https?://|url\(|@import", page)


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
    assert "The fusion took one iteration." in _words(to_html(summarize(estimator)))


def test_page_without_jinja2_says_what_to_install(estimator, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    sentence = (
        r"^The HTML report needs jinja2\. "
        r'Install it with: pip install "corral\[report\]"$'
    )
    with pytest.raises(ImportError, match=sentence):
        to_html(summarize(estimator))
