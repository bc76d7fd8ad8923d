"""Every method of the package has a report."""

import json

import numpy as np
import pytest

from corral import COR, all_methods
from corral.report import summarize, to_html


def _fit(method, X):
    wanted = {"n_clusters": 3, "n_outliers": 6, "random_state": 0, "n_partitions": 20}
    wanted |= {"eps": 3.0} if method.name == "dbscan" else {}
    if method.name == "cor-detector":
        wanted = {"estimator": COR(3, n_outliers=6, n_partitions=20, random_state=0)}
    settings = {key: wanted[key] for key in wanted if key in method.parameters}
    return method.make(**settings).fit(X)


@pytest.fixture
def rows(planted):
    # TONMF takes no negative numbers.
    return np.abs(planted.X)


@pytest.mark.parametrize("name", list(all_methods()))
def test_report_of_every_method(name, rows):
    # The summary is strict JSON, agrees with the model, and makes a page.
    method = all_methods()[name]
    model = _fit(method, rows)
    summary = summarize(model, rows)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    inner = model.estimator_ if name == "cor-detector" else model
    assert summary["run"]["n_outliers"] == inner.n_outliers_
    has_clusters = method.kind == "joint" or name == "cor-detector"
    assert bool(summary["clusters"]) == has_clusters
    assert len(summary["map"]["rows"]) == len(rows)
    fuses = name in {"cor", "kcc", "cor-detector"}
    assert (summary["agreement"] is not None) == fuses
    assert any(row["reasons"] for row in summary["strangest"])
    page = to_html(summary)
    assert ("Agreement among partitions" in page) == fuses
    assert ("<h2>Clusters</h2>" in page) == has_clusters


@pytest.mark.parametrize(
    "name", [name for name, method in all_methods().items() if method.predicts]
)
def test_report_of_new_rows(name, rows):
    # Labels and scores are those of predict and score_samples.
    model = _fit(all_methods()[name], rows)
    new = rows[:40] + 0.01
    summary = summarize(model, new, is_training=False)
    n_outliers = int((model.predict(new) == -1).sum())
    assert summary["run"]["n_outliers"] == n_outliers
    scores = np.sort(-model.score_samples(new))[::-1]
    assert summary["scores"]["values"] == scores.tolist()
    assert "Judged by a fitted" in to_html(summary)


def test_report_where_all_rows_are_noise(rows):
    # DBSCAN may find no cluster at all.
    model = all_methods()["dbscan"].make(eps=1e-6).fit(rows)
    summary = summarize(model, rows)
    assert summary["clusters"] == []
    assert summary["run"]["n_outliers"] == len(rows)
    assert json.loads(json.dumps(summary, allow_nan=False)) == summary
    assert "Outliers" in to_html(summary)
