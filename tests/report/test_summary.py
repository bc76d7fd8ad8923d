import datetime
import json
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import AgglomerativeClustering
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator

from corral import COR, CORDetector
from corral.detectors import LOF
from corral.report import summarize, to_html
from corral.report._summary import _curve_ranks
from corral.rivals import HDBSCAN, KCC


def test_summary_sizes_add_up(estimator):
    # Clusters and outliers together are all rows.
    summary = summarize(estimator)
    assert [cluster["size"] for cluster in summary["clusters"]] == [2, 3]
    assert summary["run"]["n_outliers"] == 1
    assert summary["run"]["n_samples"] == 6
    shares = sum(cluster["share"] for cluster in summary["clusters"])
    assert shares == pytest.approx(5 / 6)


def test_summary_survives_json(estimator, six_rows):
    # Nothing in the summary is changed or refused by strict JSON.
    summary = summarize(estimator, six_rows)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_summary_without_outliers_survives_json(estimator):
    # offset_ is then minus infinity, which JSON does not have.
    estimator.labels_ = estimator.nearest_labels_
    estimator.n_outliers_ = 0
    estimator.offset_ = -np.inf
    summary = summarize(estimator)
    assert summary["scores"]["cut"] is None
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_summary_settings_that_json_lacks_become_words(estimator):
    # A generator or an array as a parameter is named, not dumped.
    estimator.set_params(random_state=np.random.RandomState(0), n_outliers=np.int64(1))
    settings = summarize(estimator)["settings"]
    assert "RandomState" in settings["random_state"]
    assert settings["n_outliers"] == 1
    json.dumps(settings)


def test_summary_scores_fall_and_end_at_the_last_row(estimator):
    # The curve is the sorted scores.
    scores = summarize(estimator)["scores"]
    assert scores["ranks"] == [1, 2, 3, 4, 5, 6]
    assert scores["values"] == [7.0, 2.0, 2.0, 1.5, 1.5, 1.0]
    assert scores["cut"] == 4.5


@pytest.mark.parametrize("n_outliers", [0, 1, 777, 999_999])
def test_curve_ranks_of_many_rows_are_few(n_outliers):
    # A large curve keeps its ends and both sides of the cut.
    ranks = _curve_ranks(1_000_000, n_outliers)
    assert len(ranks) <= 302
    assert {1, 1_000_000, n_outliers + 1} <= set(ranks.tolist())
    assert (np.diff(ranks) > 0).all()


def test_summary_strangest_rows_by_score_then_row(estimator):
    # Row 5 costs most; rows 0 and 1 cost the same, and the earlier comes first.
    strangest = summarize(estimator, n_strangest=3)["strangest"]
    assert [row["row"] for row in strangest] == [5, 0, 1]
    assert [row["is_outlier"] for row in strangest] == [True, False, False]
    assert strangest[0]["nearest_label"] == 0


def test_summary_tied_outlier_comes_first(estimator):
    # Of two rows with the same score, the one set aside is listed first.
    estimator.outlier_scores_ = np.full(6, 3.0)
    strangest = summarize(estimator, n_strangest=2)["strangest"]
    assert [row["row"] for row in strangest] == [5, 0]


def test_summary_clusters_by_hand(estimator, six_rows):
    # The five rows that were kept have mean 6 in column 0 and mean squared distance
    # (49 + 25 + 9 + 16 + 25) / 5 = 24.8 to it; cluster 1 has mean 10 there. Column 1 is
    # zero in all of them, so it makes no cluster different.
    summary = summarize(estimator, six_rows, feature_names=["x", "y"])
    (feature,) = summary["clusters"][1]["features"]
    assert (feature["name"], feature["kind"]) == ("x", "number")
    assert (feature["value"], feature["usual"]) == (10.0, 6.0)
    assert feature["difference"] == pytest.approx(4 / np.sqrt(24.8))


def test_summary_reasons_by_hand(estimator, six_rows):
    # Row 5 is at (3, 90), its nearest cluster at (0, 0). The spread of x is 1 there,
    # which two rows cannot tell: it counts as sqrt(24.8 / 3), after the spread over all
    # rows. y is constant in all clusters, so any unit does.
    six_rows[5, 0] = 3.0
    (row,) = summarize(estimator, six_rows, feature_names=["x", "y"], n_strangest=1)[
        "strangest"
    ]
    reasons = {reason["name"]: reason for reason in row["reasons"]}
    assert reasons.keys() == {"x", "y"}
    assert reasons["x"]["difference"] == pytest.approx(3 / np.sqrt(24.8 / 3))
    assert reasons["y"]["words"].endswith("above its cluster (90)")


def test_summary_usual_numbers_are_no_reason(estimator, six_rows):
    # Row 3 is the very middle of its cluster.
    strangest = summarize(estimator, six_rows)["strangest"]
    assert [row["reasons"] for row in strangest if row["row"] == 3] == [[]]


@pytest.mark.parametrize(
    "convert",
    [
        sparse.csr_array,
        sparse.csc_matrix,
        lambda X: X.tolist(),
        lambda X: pd.DataFrame(X, columns=["x", "y"]),
        lambda X: pl.DataFrame(X, schema=["x", "y"]),
        lambda X: pa.table({"x": X[:, 0], "y": X[:, 1]}),
    ],
    ids=["csr", "csc", "list", "pandas", "polars", "pyarrow"],
)
def test_summary_is_the_same_for_all_kinds_of_rows(estimator, six_rows, convert):
    # The kind of table does not change what is said about it.
    expected = summarize(estimator, six_rows, feature_names=["x", "y"])
    summary = summarize(estimator, convert(six_rows), feature_names=["x", "y"])
    assert _rounded(summary) == _rounded(expected)


def _rounded(part):
    """Return a summary with numbers to nine digits; sums of sparse rows differ."""
    if isinstance(part, dict):
        return {key: _rounded(value) for key, value in part.items()}
    if isinstance(part, list):
        return [_rounded(value) for value in part]
    return round(part, 9) if isinstance(part, float) else part


def test_summary_takes_names_from_the_fit(estimator, six_rows):
    # Names seen in the fit are used unless others are given.
    estimator.feature_names_in_ = np.array(["width", "height"], dtype=object)
    summary = summarize(estimator, six_rows)
    assert summary["strangest"][0]["reasons"][0]["name"] == "height"


def test_summary_takes_names_from_a_data_frame(estimator, six_rows):
    # Columns of text that the fit did not use are left out.
    frame = pl.DataFrame({"kind": list("aabbbc"), "w": six_rows[:, 0], "h": [0] * 6})
    summary = summarize(estimator, frame)
    assert [each["name"] for each in summary["clusters"][1]["features"]] == ["w"]


def test_summary_categories_of_clusters_by_hand(estimator, six_rows):
    # Both rows of cluster 0 are red, and one of the three in cluster 1.
    estimator.categorical_features = ["colour"]
    frame = pl.DataFrame(
        {"x": [0.0] * 6, "colour": ["red", "red", "red", "blue", "blue", None]}
    )
    clusters = summarize(estimator, frame)["clusters"]
    (red,) = clusters[0]["features"]
    assert (red["name"], red["kind"]) == ("colour = red", "share")
    assert (red["value"], red["usual"]) == (1.0, 0.6)
    (blue,) = clusters[1]["features"]
    assert blue["name"] == "colour = blue"
    assert blue["value"] == pytest.approx(2 / 3)


def test_summary_words_are_told_by_the_rows_that_have_them(estimator):
    # Of ten words, cluster 1 has "engine" in two of three rows, the others have none.
    counts = np.zeros((6, 10))
    counts[[2, 3], 4] = 3
    names = [f"word{column}" for column in range(10)]
    names[4] = "engine"
    estimator.n_features_in_ = 10
    summary = summarize(estimator, sparse.csr_array(counts), feature_names=names)
    (feature,) = summary["clusters"][1]["features"]
    assert (feature["name"], feature["kind"]) == ("engine", "share")
    assert feature["value"] == pytest.approx(2 / 3)
    assert feature["usual"] == pytest.approx(2 / 5)
    assert summary["clusters"][0]["features"] == []


def test_summary_speaks_in_the_user_s_values(estimator, six_rows):
    # The fit saw scaled numbers; means and cells are told as the user has them.
    values = pd.DataFrame(
        {"x": 100 + six_rows[:, 0], "y": [f"<{i}>" for i in range(6)]}
    )
    summary = summarize(estimator, six_rows, feature_names=["x", "y"], values=values)
    assert summary["clusters"][1]["features"][0]["value"] == 110.0
    row = summary["strangest"][0]
    assert row["values"] == {"x": "100", "y": "<5>"}
    # A column that is encoded in another way is told as the cell it came from.
    assert row["reasons"][0]["words"].endswith("above its cluster (<5>)")


def test_summary_takes_a_sparse_table_for_values(estimator, six_rows):
    # A reader of files gives sparse rows as they are; they have no cells to show.
    X = sparse.csr_array(six_rows)
    assert summarize(estimator, X, values=X) == summarize(estimator, X)


def test_summary_tells_truth_values_as_shares(estimator, six_rows):
    # The fit saw 0 and 10 or so; the user has False and True.
    values = pl.DataFrame({"x": six_rows[:, 0] > 5, "y": six_rows[:, 1]})
    clusters = summarize(estimator, six_rows, feature_names=["x", "y"], values=values)[
        "clusters"
    ]
    (feature,) = clusters[1]["features"]
    assert (feature["kind"], feature["value"], feature["usual"]) == ("share", 1.0, 0.6)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_summary_tells_dates_as_dates(estimator, six_rows, library):
    # Cluster 1 has the 10th, the 11th and one that is missing; a half day is dropped.
    days = [1, 1, 10, 11, None, 30]
    dates = [day and datetime.date(2024, 5, day) for day in days]
    values = {
        "pandas": lambda: pd.DataFrame({"x": pd.to_datetime(pd.Series(dates))}),
        "polars": lambda: pl.DataFrame({"x": dates}),
        "pyarrow": lambda: pa.table({"x": dates}),
    }[library]()
    summary = summarize(estimator, six_rows, feature_names=["x", "y"], values=values)
    (feature,) = summary["clusters"][1]["features"]
    assert (feature["kind"], feature["value"]) == ("date", "2024-05-10")
    # (1 + 1 + 10 + 11) / 4
    assert feature["usual"] == "2024-05-05"
    assert "2024-05-10</b>" in to_html(summary)


def test_summary_does_not_tell_means_of_encoded_columns(estimator, six_rows):
    # The user knows "x" as words, so the mean of what they became says nothing.
    values = pd.DataFrame({"x": list("aabbbc")})
    summary = summarize(estimator, six_rows, feature_names=["x", "y"], values=values)
    (feature,) = summary["clusters"][1]["features"]
    assert feature["kind"] == "scaled"
    assert "0.8 spreads</b>" in to_html(summary)


def test_summary_has_the_user_s_ids(estimator, six_rows):
    summary = summarize(estimator, six_rows, ids=list("abcdef"), n_strangest=2)
    assert [row["id"] for row in summary["strangest"]] == ["f", "a"]
    ids = dict(zip(summary["map"]["rows"], summary["map"]["ids"], strict=True))
    assert ids == dict(enumerate("abcdef"))


@pytest.mark.parametrize("library", [pd, pl])
def test_missing_cells_that_were_filled_are_told_by_the_values(planted, library):
    own = planted.X[:, :2].copy()
    own[:3, 1] = np.nan
    values = library.DataFrame({"a": own[:, 0], "b": own[:, 1]})
    filled = np.nan_to_num(own)
    model = LOF(n_outliers=6).fit(filled)
    summary = summarize(model, filled, feature_names=["a", "b"], values=values)
    assert summary["run"]["n_missing"] == {"b": 3}


def test_summary_tells_of_rows_that_tie_at_the_cut():
    X = np.array([[i % 4, i % 3] for i in range(60)] + [[50, 50]] * 6, dtype=float)
    model = COR(2, n_outliers=3, n_partitions=10, random_state=0).fit(X)
    summary = summarize(model, X)
    assert summary["scores"]["n_at_cut"] == 3
    assert "Rows above or at a score of" in to_html(summary)


def test_a_cut_of_zero_has_no_sign(planted):
    model = KCC(3, random_state=0).fit(planted.X)
    assert model.offset_ == 0
    assert math.copysign(1, summarize(model, planted.X)["scores"]["cut"]) == 1


def test_summary_counts_missing_cells(planted):
    # NaN in numbers and None in categories, in whatever table.
    frame = pl.DataFrame(planted.X, schema=list("abcd"))
    kinds = pl.Series("kind", ["u", "v"] * (len(frame) // 2))
    kinds[0] = None
    frame = frame.with_columns(kinds)
    frame[3, "b"] = None
    frame[4, "b"] = float("nan")
    model = COR(3, n_outliers=6, categorical_features=["kind"], random_state=0)
    summary = summarize(model.fit(frame), frame)
    assert summary["run"]["n_missing"] == {"b": 2, "kind": 1}
    assert np.isfinite(summary["map"]["x"]).all()
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_summary_rare_category_is_a_reason(planted):
    # The row's colour does not occur in its cluster, and its numbers are usual.
    colours = np.array(["red", "green", "blue", "grey"])[planted.y]
    odd = int(np.flatnonzero(planted.y == 0)[0])
    colours[odd] = "blue"
    frame = pd.DataFrame(planted.X).add_prefix("x").assign(colour=colours)
    model = COR(3, n_outliers=7, categorical_features=["colour"], random_state=0)
    summary = summarize(model.fit(frame), frame)
    (row,) = [each for each in summary["strangest"] if each["row"] == odd]
    kinds = {reason["kind"]: reason["words"] for reason in row["reasons"]}
    assert kinds["category"] == "colour = blue does not occur elsewhere in its cluster"


def test_summary_planted_outliers_disagree_with_their_clusters(planted):
    # Shares of partitions, as explain gives them.
    model = COR(3, n_outliers=6, random_state=0).fit(planted.X)
    summary = summarize(model, planted.X)
    explained = model.explain(planted.X)
    for row in summary["strangest"]:
        assert row["disagreement"] == explained["disagreement"].iloc[row["row"]]
    assert {row["row"] for row in summary["strangest"][:6]} == set(planted.outliers)


def test_summary_judges_new_rows(planted):
    # A far row is an outlier and a copy of a usual one is not, though neither was seen.
    model = COR(3, n_outliers=6, random_state=0).fit(planted.X)
    usual = planted.X[planted.y == 1][:5]
    X = np.vstack([usual, [[500.0, 500, 500, 500]]])
    summary = summarize(model, X, is_training=False)
    assert summary["run"]["n_samples"] == 6
    assert summary["run"]["n_outliers"] == 1
    assert not summary["run"]["is_training"]
    assert summary["strangest"][0]["row"] == 5
    scores = -model.score_samples(X)
    assert summary["scores"]["values"] == sorted(scores, reverse=True)


@pytest.mark.parametrize("is_asked", [True, False], ids=["fit", "fit_partitions"])
def test_summary_of_partitions_has_no_features(is_asked):
    # Columns of labels are not called features, but have a map and an agreement.
    labels = np.repeat([[0, 0, 1], [1, 1, 0], [0, 1, -1]], [9, 9, 1], axis=0)
    model = COR(2, n_outliers=1, random_state=0)
    if is_asked:
        model.set_params(partitions="precomputed").fit(labels)
    else:
        model.fit_partitions(labels)
    summary = summarize(model, labels)
    run = summary["run"]
    assert run["n_features"] is None
    assert run["n_missing"] == {}
    assert (run["n_partitions"], run["n_codes"]) == (3, 3)
    assert all(cluster["features"] == [] for cluster in summary["clusters"])
    assert all(row["reasons"] == [] for row in summary["strangest"])
    assert len(summary["map"]["x"]) == 19
    groups = {
        group["label"]: group["within"] for group in summary["agreement"]["groups"]
    }
    assert groups == {0: 1.0, 1: 1.0, -1: None}
    expected = "fit(X)" if is_asked else "fit_partitions(partitions)"
    assert summary["python"].endswith(expected)


def test_summary_without_extra_partitions_leaves_out_what_needs_them(planted):
    # They are not kept by the model; reasons then come from the rows alone.
    extra = np.maximum(planted.y, 0)[:, None]
    model = COR(3, n_outliers=6, n_partitions=20, random_state=0)
    model.fit(planted.X, extra_partitions=extra)
    without = summarize(model, planted.X)
    assert without["agreement"] is None
    assert without["strangest"][0]["disagreement"] is None
    assert without["strangest"][0]["reasons"]
    full = summarize(model, planted.X, extra_partitions=extra)
    assert full["agreement"] is not None
    assert full["strangest"][0]["disagreement"] is not None


def test_summary_of_a_clusterer_without_predict_leaves_out_agreement(planted):
    # It cannot label rows again, so nobody can tell what it agrees with.
    others = [AgglomerativeClustering(n) for n in (3, 4, 5)]
    model = COR(3, n_outliers=6, partitions=others, random_state=0).fit(planted.X)
    summary = summarize(model, planted.X)
    assert summary["agreement"] is None
    assert summary["strangest"][0]["reasons"]


def test_summary_without_data_frame_libraries(planted, monkeypatch):
    # Arrays need no data frame; only the share of partitions is then left out.
    model = COR(3, n_outliers=6, random_state=0).fit(planted.X)

    def refuse(*_, **__):
        raise ImportError("The answer is a data frame")

    monkeypatch.setattr(COR, "explain", refuse)
    summary = summarize(model, planted.X)
    assert summary["strangest"][0]["reasons"]
    assert summary["strangest"][0]["disagreement"] is None


def test_summary_says_how_to_get_the_same_again(planted):
    # The line of Python runs, and gives the same labels.
    model = COR(3, n_outliers=6, random_state=0).fit(planted.X)
    summary = summarize(model, planted.X, command="corral fit rows.csv")
    names = {"X": planted.X}
    exec(summary["python"], names)
    assert (names["model"].labels_ == model.labels_).all()
    assert summary["command"] == "corral fit rows.csv"
    assert summary["is_seeded"]
    model.set_params(random_state=None)
    assert not summarize(model)["is_seeded"]


def test_summary_shows_the_line_it_is_given(estimator):
    summary = summarize(estimator, python="model = corral.load('m.skops')")
    assert summary["python"] == "model = corral.load('m.skops')"


def test_summary_of_a_real_fit_matches_its_attributes(six_rows):
    # The attributes that the stand-in has are those of a fitted COR.
    X = np.concatenate([six_rows + shift for shift in np.linspace(0, 0.3, 9)])
    model = COR(2, n_outliers=9, random_state=0).fit(X)
    summary = summarize(model, X)
    assert summary["run"]["n_samples"] == len(X)
    assert summary["run"]["n_features"] == 2
    assert sum(each["size"] for each in summary["clusters"]) == len(X) - 9
    assert summary["objective_history"][-1] == summary["run"]["objective"]
    assert summary["settings"].keys() == model.get_params().keys()
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary


def test_summary_of_a_detector_is_that_of_the_cor_inside(planted):
    # Fitted by the detector, or frozen and fitted before.
    model = COR(3, n_outliers=6, n_partitions=20, random_state=0).fit(planted.X)
    expected = summarize(model, planted.X)
    for inside in (model, FrozenEstimator(model)):
        detector = CORDetector(inside).fit(planted.X)
        summary = summarize(detector, planted.X)
        assert summary["clusters"] == expected["clusters"]
        assert summary["strangest"] == expected["strangest"]
        assert summary["python"].startswith("from corral import CORDetector; model =")


def test_summary_empty_cluster_has_no_features(estimator, six_rows):
    # A cluster that lost its rows is listed with size 0.
    estimator.n_clusters = 3
    cluster = summarize(estimator, six_rows)["clusters"][2]
    assert (cluster["size"], cluster["features"]) == (0, [])


def test_summary_refuses_other_rows(estimator, six_rows):
    with pytest.raises(
        ValueError, match=r"^X has 5 rows but the estimator was fitted on 6\. Give"
    ):
        summarize(estimator, six_rows[:5])


def test_summary_refuses_wrong_number_of_names(estimator, six_rows):
    with pytest.raises(
        ValueError, match=r"^feature_names has 1 names but X has 2 columns\.$"
    ):
        summarize(estimator, six_rows, feature_names=["x"])


@pytest.mark.parametrize("name", ["ids", "values"])
def test_summary_refuses_wrong_number_of_entries(estimator, six_rows, name):
    given = {"ids": ["a"], "values": pd.DataFrame({"x": [1]})}[name]
    sentence = rf"^{name} has 1 entries but there are 6 rows\.$"
    with pytest.raises(ValueError, match=sentence):
        summarize(estimator, six_rows, **{name: given})


def test_summary_refuses_new_rows_without_any(estimator):
    with pytest.raises(ValueError, match=r"^X=None has no rows to judge\. Give X"):
        summarize(estimator, is_training=False)


def test_summary_refuses_new_rows_where_a_method_cannot_judge(planted):
    model = HDBSCAN().fit(planted.X)
    with pytest.raises(ValueError, match=r"^HDBSCAN has no predict, so it cannot"):
        summarize(model, planted.X, is_training=False)


def test_summary_refuses_negative_count(estimator):
    with pytest.raises(ValueError, match=r"^n_strangest=-1 should be 0 or more\.$"):
        summarize(estimator, n_strangest=-1)


def test_summary_needs_a_fit(estimator):
    with pytest.raises(NotFittedError):
        summarize(clone(estimator))
