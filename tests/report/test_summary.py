import json

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from corral import COR
from corral.report import summarize
from corral.report._summary import _curve_ranks


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


def test_summary_features_by_hand(estimator, six_rows):
    # Column 0 has mean 5 and variance (36 + 16 + 16 + 25 + 36 + 25) / 6 = 154 / 6, and
    # cluster 1 has mean 10 there. Column 1 has mean 15 and 90 in one row only.
    summary = summarize(estimator, six_rows, feature_names=["x", "y"])
    first, second = summary["clusters"][1]["features"]
    assert (first["name"], first["value"]) == ("x", 10.0)
    assert first["difference"] == pytest.approx(5 / np.sqrt(154 / 6))
    assert second["difference"] == pytest.approx(-15 / np.std(six_rows[:, 1]))

    # Row 5 is at (0, 90), its nearest cluster 0 at (0, 0): only y sets it apart.
    (apart,) = summary["strangest"][0]["features"]
    assert (apart["name"], apart["value"]) == ("y", 90.0)


def test_summary_constant_feature_is_never_named(estimator, six_rows):
    # A feature with no spread makes nothing different, and divides by nothing.
    X = np.column_stack([six_rows, np.full(6, 0.1)])
    summary = summarize(estimator, X, feature_names=["x", "y", "constant"])
    names = {
        feature["name"]
        for part in (*summary["clusters"], *summary["strangest"])
        for feature in part["features"]
    }
    assert names == {"x", "y"}


@pytest.mark.parametrize(
    "convert",
    [
        sparse.csr_array,
        sparse.csc_matrix,
        lambda X: X.tolist(),
        lambda X: pd.DataFrame(X, columns=["x", "y"]),
        lambda X: pl.DataFrame(X, schema=["x", "y"]),
    ],
    ids=["csr", "csc", "list", "pandas", "polars"],
)
def test_summary_is_the_same_for_all_kinds_of_rows(estimator, six_rows, convert):
    # The kind of table does not change what is said about it.
    expected = summarize(estimator, six_rows, feature_names=["x", "y"])
    summary = summarize(estimator, convert(six_rows), feature_names=["x", "y"])
    assert summary == expected


def test_summary_takes_names_from_the_fit(estimator, six_rows):
    # Names seen in the fit are used unless others are given.
    estimator.feature_names_in_ = np.array(["width", "height"], dtype=object)
    summary = summarize(estimator, six_rows)
    assert summary["strangest"][0]["features"][0]["name"] == "height"


def test_summary_takes_names_from_a_data_frame(estimator, six_rows):
    # Columns of text have no mean and are left out.
    frame = pl.DataFrame({"kind": list("aabbbc"), "w": six_rows[:, 0], "h": [0] * 6})
    summary = summarize(estimator, frame)
    assert [each["name"] for each in summary["clusters"][1]["features"]] == ["w"]


def test_summary_leaves_out_numbers_that_are_categories(estimator, six_rows):
    # What was fitted as categories has no mean either, in whatever table it comes.
    estimator.categorical_features = [1]
    summary = summarize(estimator, six_rows)
    assert [each["name"] for each in summary["clusters"][1]["features"]] == [
        "feature 0"
    ]
    estimator.categorical_features = [0, 1]
    assert summarize(estimator, six_rows)["clusters"][1]["features"] == []


def test_summary_of_partitions_has_no_features():
    # Columns of labels are not called features.
    labels = np.repeat([[0, 0], [1, 1], [0, 1]], [9, 9, 1], axis=0)
    model = COR(2, n_outliers=1, random_state=0).fit_partitions(labels)
    run = summarize(model)["run"]
    assert run["n_features"] is None
    assert (run["n_partitions"], run["n_codes"]) == (2, 3)


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


def test_summary_empty_cluster_has_no_features(estimator, six_rows):
    # A cluster that lost its rows is listed with size 0.
    estimator.n_clusters = 3
    cluster = summarize(estimator, six_rows)["clusters"][2]
    assert (cluster["size"], cluster["features"]) == (0, [])


def test_summary_refuses_other_rows(estimator, six_rows):
    with pytest.raises(
        ValueError, match=r"^X has 5 rows but the estimator was fitted on 6\.$"
    ):
        summarize(estimator, six_rows[:5])


def test_summary_refuses_wrong_number_of_names(estimator, six_rows):
    with pytest.raises(
        ValueError, match=r"^feature_names has 1 names but X has 2 columns\.$"
    ):
        summarize(estimator, six_rows, feature_names=["x"])


def test_summary_refuses_negative_count(estimator):
    with pytest.raises(ValueError, match=r"^n_strangest=-1 should be 0 or more\.$"):
        summarize(estimator, n_strangest=-1)


def test_summary_needs_a_fit(estimator):
    with pytest.raises(NotFittedError):
        summarize(clone(estimator))
