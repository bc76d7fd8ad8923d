"""What a notebook shows of a fitted COR."""

from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import NotFittedError

from corral import COR
from corral._notebook import short_number, summary_html
from corral.detectors import LOF
from corral.rivals import KMeansMinusMinus


@pytest.fixture
def model(planted):
    return COR(3, n_outliers=6, n_partitions=12, random_state=0).fit(planted.X)


class Reader(HTMLParser):
    """Reads text and table cells, and checks that tags are closed in order."""

    def __init__(self, html):
        super().__init__()
        self.open, self.rows, self.text = [], [], []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)
        if tag == "tr":
            self.rows.append([])

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "style" in self.open:
            return
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1].append(data)
        self.text.append(data)


def test_table_has_the_sizes_of_the_clusters_and_the_outliers(model):
    rows = Reader(summary_html(model)).rows[1:]
    sizes = {name: int(size) for name, size, _ in rows}
    expected = {f"cluster {k}": int((model.labels_ == k).sum()) for k in range(3)}
    assert sizes == {**expected, "outliers": 6}
    assert [row[2] for row in rows][-1] == "3.2%"


def test_choice_and_doubts_have_a_line_each(model, planted):
    text = " ".join(Reader(summary_html(model)).text)
    assert "runner-up" not in text
    chooser = COR(n_partitions=12, random_state=0).fit(planted.X)
    chooser.selection_ = replace(chooser.selection_, runner_up=(1, 7))
    chooser.outlier_confidence_ = np.where(chooser.labels_ == -1, 0.5, 0.0)
    chooser.label_confidence_ = np.ones(186)
    text = " ".join(Reader(summary_html(chooser)).text)
    assert "The numbers were chosen; the runner-up is 1 cluster and 7 outliers." in text
    assert (
        "If partitions are drawn again, all of the rows are nearest to the same" in text
    )
    n_outliers = chooser.n_outliers_
    assert f"Near the cut, {n_outliers} rows that are set aside are judged" in text
    chooser.selection_ = replace(chooser.selection_, runner_up=None)
    assert "there is no runner-up." in summary_html(chooser)


def test_lines_have_the_numbers_of_the_fit(model):
    text = " ".join(Reader(summary_html(model)).text)
    assert "COR: 3 clusters and 6 outliers in 186 rows" in text
    assert f"Objective {model.objective_:.4g} after {model.n_iter_} iter" in text
    assert f"12 partitions; {model.n_codes_} distinct codes" in text
    strangest = int(model.outlier_scores_.argmax())
    assert f"scores: {strangest} ({model.outlier_scores_.max():,.0f})" in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(22567.4, "22,567"), (-1234.0, "-1,234"), (3.14159, "3.142"), (2e15, "2e+15")],
)
def test_numbers_are_short(value, text):
    assert short_number(value) == text


def test_many_clusters_are_summed_up(partitions):
    model = COR(12, n_outliers=0, random_state=0).fit_partitions(partitions)
    rows = Reader(summary_html(model)).rows[1:]
    sizes = np.sort(np.bincount(model.labels_))[::-1]
    assert len(rows) == 12
    assert [int(row[1]) for row in rows[:10]] == sizes[:10].tolist()
    assert rows[10][:2] == ["2 more clusters", str(sizes[10:].sum())]
    assert rows[11][:2] == ["outliers", "0"]


def test_names_are_escaped(planted):
    Nasty = type("<script>alert(1)</script>", (COR,), {})
    html = summary_html(Nasty(3, n_outliers=6, n_partitions=5).fit(planted.X))
    assert "<script" not in html
    assert "&lt;script&gt;alert(1)" in html


@pytest.mark.parametrize(
    "method",
    [KMeansMinusMinus(3, n_outliers=6), LOF(n_outliers=6)],
    ids=["joint", "lof"],
)
def test_other_methods_have_a_summary_too(method, planted):
    text = " ".join(Reader(summary_html(method.fit(planted.X))).text)
    assert "6 outliers in 186 rows" in text
    assert ("Objective" in text) == hasattr(method, "objective_")


def test_not_fitted_has_no_summary():
    with pytest.raises(NotFittedError):
        summary_html(COR(3))
    assert "corral-summary" not in COR(3)._repr_html_()
    assert "sk-top-container" in COR(3)._repr_html_()


def test_notebook_shows_summary_and_diagram(model):
    bundle = model._repr_mimebundle_()
    assert bundle["text/plain"] == repr(model)
    for html in (bundle["text/html"], model._repr_html_()):
        assert html.startswith(summary_html(model))
        assert "sk-top-container" in html


def test_text_display_has_no_html(model):
    with sklearn.config_context(display="text"):
        assert not hasattr(model, "_repr_html_")
        assert "text/html" not in model._repr_mimebundle_()
