"""What the page shows is what a fit finds."""

import json

import numpy as np
import pyarrow as pa
import pytest
from scipy import sparse

from corral import COR
from corral.explore._session import Session
from corral.tables import TableModel, read_table
from tests.cli.example import ODD


def no_command(n_clusters, n_outliers):
    return ""


@pytest.mark.parametrize(("n_clusters", "n_outliers"), [(3, 3), (2, 10), (1, 0)])
def test_view_is_that_of_a_fit(session, data, n_clusters, n_outliers):
    estimator = COR(
        n_clusters,
        n_outliers=n_outliers,
        k_range="auto",
        n_partitions=30,
        random_state=0,
    )
    model = TableModel(estimator, id_column="name").fit(read_table(data))
    view = session.view(n_clusters, n_outliers, no_command)
    drawn = session.open(source="", name="", folder="")["map"]["rows"]
    np.testing.assert_array_equal(view["labels"], model.labels_[drawn])
    np.testing.assert_array_equal(view["nearest_labels"], model.nearest_labels_[drawn])
    np.testing.assert_allclose(view["scores"], model.outlier_scores_[drawn], rtol=1e-4)
    sizes = [cluster["size"] for cluster in view["clusters"]]
    assert sizes == np.bincount(model.labels_[model.labels_ >= 0]).tolist()
    assert view["objective"] == model.estimator_.objective_
    listed = [row["row"] for row in view["rows"] if row["is_outlier"]]
    assert set(listed) == set(np.flatnonzero(model.labels_ == -1))
    scores = [row["score"] for row in view["rows"]]
    assert scores == sorted(scores, reverse=True)
    json.dumps(view, allow_nan=False)


def test_outliers_come_with_reasons_and_the_next_rows(session):
    view = session.view(3, 3, no_command)
    outliers = [row for row in view["rows"] if row["is_outlier"]]
    assert {row["id"] for row in outliers} == set(ODD)
    assert all("spreads" in row["reasons"][0] for row in outliers)
    after = [row for row in view["rows"] if not row["is_outlier"]]
    assert len(after) == 5
    assert outliers[-1]["score"] > view["cut"] >= after[0]["score"]
    more = session.view(3, 4, no_command)
    assert after[0]["row"] in [row["row"] for row in more["rows"] if row["is_outlier"]]


def test_reasons_are_those_of_the_report(session):
    # The same words, also for categories, whose counts are made in another way.
    from corral.report import summarize

    view = session.view(3, 8, no_command)
    estimator = session.fuse(3, 8).estimator
    summary = summarize(
        estimator,
        session.model.encoder_.transform(session.table),
        feature_names=session.model.encoder_.feature_names_out_,
        values=session.table,
        n_strangest=13,
    )
    expected = [
        [reason["words"] for reason in row["reasons"]] for row in summary["strangest"]
    ]
    assert [row["reasons"] for row in view["rows"]] == expected
    assert "color" in json.dumps(expected)


def test_a_view_does_not_encode_the_table_again(session, monkeypatch):
    def fail(*_):
        raise AssertionError("encoded again")

    monkeypatch.setattr(type(session.model.encoder_), "transform", fail)
    assert session.view(4, 6, no_command)["n_clusters"] == 4


def test_the_last_fusion_is_kept(session, monkeypatch):
    session.view(3, 3, no_command)
    monkeypatch.setattr(session, "_refit", None)
    assert session.fuse(3, 3).n_clusters == 3


def test_warnings_are_part_of_the_view(session, monkeypatch):
    import warnings

    fuse = session._refit.fuse

    def warn(*numbers, quick):
        warnings.warn("mind the gap", UserWarning, stacklevel=2)
        return fuse(*numbers, quick=quick)

    monkeypatch.setattr(session._refit, "fuse", warn)
    assert session.view(3, 7, no_command)["warnings"] == ["mind the gap"]
    assert session.view(3, 7, no_command)["warnings"] == ["mind the gap"]


def test_confidence_and_stability_are_shown_where_they_are_known(session, monkeypatch):
    estimator = session.fuse(3, 3).estimator
    confidence = np.linspace(0, 1, 150)
    monkeypatch.setattr(estimator, "outlier_confidence_", confidence, raising=False)
    monkeypatch.setattr(estimator, "label_confidence_", np.ones(150), raising=False)
    stability = np.array([1.0, 0.5, np.nan])
    monkeypatch.setattr(estimator, "cluster_stability_", stability, raising=False)
    view = session.view(3, 3, no_command)
    for row in view["rows"]:
        assert row["confidence"] == round(confidence[row["row"]], 4)
    assert [each["stability"] for each in view["clusters"]] == [1.0, 0.5, None]
    assert "all of the rows are nearest to the same cluster" in view["doubts"]


def test_views_of_many_rows_leave_out_how_sure_labels_are(session, monkeypatch):
    # And nothing else.
    sure = session.view(3, 5, no_command)
    assert sure["doubts"]
    session.view(3, 4, no_command)
    monkeypatch.setattr("corral.explore._session._MAX_SURE_ROWS", 149)
    quick = session.view(3, 5, no_command)
    assert quick["doubts"] is None
    assert {row["confidence"] for row in quick["rows"]} == {None}
    assert {each["stability"] for each in quick["clusters"]} == {None}
    for name in ("labels", "nearest_labels", "scores", "objective", "cut", "chart"):
        assert quick[name] == sure[name]
    for here, there in zip(quick["rows"], sure["rows"], strict=True):
        assert here == there | {"confidence": None}


def test_a_full_fusion_serves_a_view_but_a_quick_one_no_file(session):
    quick = session.fuse(2, 6, quick=True)
    assert session.fuse(2, 6, quick=True) is quick
    full = session.fuse(2, 6)
    assert full is not quick
    assert hasattr(full.estimator, "label_confidence_")
    assert session.fuse(2, 6, quick=True) is full


def test_what_is_done_ahead_changes_no_view(session):
    def see():
        views = [session.view(*each, no_command) for each in [(2, 31), (4, 60)]]
        return [view | {"seconds": None} for view in views]

    before = see()
    list(session.prepare())
    assert see() == before


def test_start_is_what_was_asked_for(session):
    opening = session.open(source="data.csv", name="data", folder="here")
    assert opening["start"] == opening["chosen"] == list(session.chosen)
    assert opening["max_outliers"] == 75
    assert opening["max_clusters"] >= 12
    assert opening["dropped"]["same"].startswith("every row has the same value")
    estimator = COR(7, n_outliers=90, n_partitions=30, random_state=0)
    model = TableModel(estimator, id_column="name")
    other = Session(session.table, model).open(source="", name="", folder="")
    assert other["start"] == [7, 90]
    assert (other["max_clusters"], other["max_outliers"]) == (14, 90)
    assert other["chosen"] != other["start"]


@pytest.mark.parametrize(
    ("asked", "start"),
    [
        ((149, "auto"), [149, 0]),
        ((147, "auto"), [147, 2]),
        (("auto", 148), [1, 148]),
        (("auto", 0), [4, 0]),
        ((150, 0), [150, 0]),
    ],
)
def test_the_first_view_can_be_shown(session, monkeypatch, asked, start):
    monkeypatch.setattr(Session, "chosen", (4, 5))
    monkeypatch.setattr(session, "_asked", asked)
    assert session.open(source="", name="", folder="")["start"] == start
    assert session.view(*start, no_command)["labels"].count(-1) == start[1]


@pytest.mark.parametrize(
    ("numbers", "words"),
    [
        ((149, 1), "149 clusters and 1 outlier need 151 rows, but there are 150."),
        ((1, 149), "1 cluster and 149 outliers need 151 rows, but there are 150."),
        ((151, 0), "151 clusters and 0 outliers need 151 rows, but there are 150."),
    ],
)
def test_numbers_are_refused_where_a_fit_refuses_them(session, data, numbers, words):
    with pytest.raises(ValueError, match=words):
        session.view(*numbers, no_command)
    n_clusters, n_outliers = numbers
    with pytest.raises(ValueError, match="should be"):
        COR(n_clusters, n_outliers=n_outliers).fit(np.arange(150.0)[:, None])


def test_many_outliers_are_listed_in_part(session):
    view = session.view(2, 120, no_command)
    is_outlier = [row["is_outlier"] for row in view["rows"]]
    assert (sum(is_outlier), len(is_outlier)) == (100, 105)


@pytest.mark.parametrize("kind", ["array", "sparse", "categories", "one column"])
def test_tables_of_all_kinds_can_be_explored(kind, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4)) + 8 * (np.arange(60) % 2)[:, None]
    np.save(tmp_path / "rows.npy", X)
    tables = {
        "array": read_table(tmp_path / "rows.npy"),
        "sparse": sparse.random_array(
            (60, 30), density=0.2, random_state=rng, format="csr"
        ),
        "categories": pa.table({name: rng.choice(list("xyz"), 60) for name in "abc"}),
        "one column": pa.table({"a": X[:, 0]}),
    }
    estimator = COR("auto", n_outliers="auto", n_partitions=10, random_state=0)
    session = Session(tables[kind], TableModel(estimator))
    opening = session.open(source="", name="", folder="")
    view = session.view(2, 4, no_command)
    assert view["labels"].count(-1) == 4
    assert len(opening["map"]["x"]) == len(view["labels"]) == 60
    json.dumps([opening, view], allow_nan=False)
