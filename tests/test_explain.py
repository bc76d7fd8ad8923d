"""What sets a row apart, and that its costs add up."""

import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from corral import COR


@pytest.fixture
def rows(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(300, 4)) + 9 * np.eye(2, 4)[np.repeat([0, 1], 150)]
    X[7] += [0, 0, 0, 25.0]
    X[200] += [0, 0, -18.0, 0]
    return X


def fit(X, seed, **params):
    return COR(2, n_outliers=4, random_state=seed, **params).fit(X)


def test_costs_add_up_exactly(rows, seed):
    model = fit(rows, seed)
    found = model.explain(rows)
    total = found.label_cost + found.rarity_cost + found.distance_cost
    np.testing.assert_array_equal(found.score, total)
    np.testing.assert_array_equal(found.score, model.outlier_scores_)
    split = model.partition_costs(rows)
    assert split.shape == (300, model.n_partitions_)
    np.testing.assert_array_equal(
        split.sum(axis=1), found.label_cost + found.rarity_cost
    )
    # In any order, too.
    np.testing.assert_array_equal(split[:, ::-1].sum(axis=1), split.sum(axis=1))


def test_the_paper_splits_its_distance_over_partitions(rows, seed):
    # Theorem 2 row by row: the KL sum over partitions is the whole cost.
    model = COR.paper(2, n_outliers=4, random_state=seed).fit(rows)
    found = model.explain(rows)
    assert (found.rarity_cost == 0).all()
    assert (found.distance_cost == 0).all()
    np.testing.assert_array_equal(
        model.partition_costs(rows).sum(axis=1), -model.score_samples(rows)
    )


def test_labels_and_clusters_are_those_of_predict(rows, seed):
    model = fit(rows, seed)
    found = model.explain(rows)
    np.testing.assert_array_equal(found.label, model.predict(rows))
    np.testing.assert_array_equal(found.nearest_label, model.nearest_labels_)


def test_disagreement_is_the_share_of_unusual_labels(rows, seed):
    model = fit(rows, seed)
    labels = model._partitioner.open(rows, []).read(0, 0).T
    found = model.explain(rows)
    for row in (0, 7, 160, 200):
        mates = labels[model.labels_ == model.nearest_labels_[row]]
        usual = [np.bincount(column).argmax() for column in mates.T]
        assert found.disagreement[row] == pytest.approx(
            np.mean(labels[row] != usual), abs=0.02
        )


def test_features_that_were_shifted_are_named_with_their_direction(rows, seed):
    model = fit(rows, seed)
    found = model.explain(rows, feature_names=["a", "b", "c", "d"])
    assert found.feature_1[7] == "d"
    assert found.feature_1[200] == "c"
    spread = rows[model.labels_ == model.nearest_labels_[7], 3]
    expected = (rows[7, 3] - spread.mean()) / spread.std()
    assert found.difference_1[7] == pytest.approx(expected)
    assert found.difference_1[200] < -10


def test_new_rows_are_explained(rows, seed):
    model = fit(rows, seed)
    found = model.explain([[9.0, 0, 0, 0], [9.0, 0, 0, -40]], n_features=2)
    assert found.label.tolist() == [model.nearest_labels_[0], -1]
    assert found.feature_1[1] == "feature 3"
    assert list(found.columns[-4:]) == [
        "feature_1",
        "difference_1",
        "feature_2",
        "difference_2",
    ]


@pytest.mark.parametrize("kind", [pd.DataFrame, pl.DataFrame, pa.table])
def test_frames_come_back_in_the_library_of_the_rows(rows, seed, kind):
    data = {name: rows[:, i] for i, name in enumerate("abcd")}
    frame = kind(data)
    model = fit(frame, seed)
    found = model.explain(frame)
    assert type(found) is type(frame)
    assert found["feature_1"].to_numpy()[7] == "d"


def test_the_index_of_a_pandas_frame_is_kept(rows, seed):
    frame = pd.DataFrame(rows, index=[f"row {i}" for i in range(300)])
    frame.columns = list("abcd")
    found = fit(frame, seed).explain(frame)
    assert found.index.equals(frame.index)


def test_words_are_named_on_sparse_text(seed):
    rng = np.random.default_rng(seed)
    words = [f"word{i}" for i in range(40)]
    topics = np.repeat([0, 1], 60)
    counts = rng.poisson(0.2, (120, 40)) + 3 * (np.arange(40) // 20 == topics[:, None])
    counts[5, 37] += 60
    model = COR(2, n_outliers=2, metric="cosine", random_state=seed)
    X = sparse.csr_array(counts.astype(float))
    found = model.fit(X).explain(X, feature_names=words)
    assert found.feature_1[5] == "word37"
    assert found.difference_1[5] > 5


def test_rare_categories_are_named_with_their_value(rows, seed):
    frame = pd.DataFrame(rows, columns=list("abcd"))
    frame["colour"] = np.where(np.arange(300) < 150, "red", "blue")
    frame.loc[40, "colour"] = "green"
    frame.loc[41, "colour"] = None
    model = fit(frame, seed, categorical_features=["colour"])
    found = model.explain(frame, n_features=1)
    assert found.feature_1[40] == "colour = green"
    assert found.difference_1[40] > 2
    assert "colour" not in found.feature_1[41]
    new = frame.iloc[[42]].assign(colour="never seen")
    assert model.explain(new, n_features=1).feature_1.item() == "colour = never seen"


def test_missing_cells_are_no_reason(rows, seed):
    rows[7, 3] = np.nan
    rows[100:110, 0] = np.nan
    found = fit(rows, seed).explain(rows, n_features=4)
    named = found.loc[7, [f"feature_{j}" for j in range(1, 5)]]
    assert "feature 3" not in set(named)
    assert np.isfinite(found.score).all()


def test_partitions_that_were_given_have_no_features(rows, seed):
    labels = np.random.default_rng(seed).integers(0, 3, (50, 8))
    model = COR(2, n_outliers=3, partitions="precomputed", random_state=seed)
    found = model.fit(labels).explain(labels, n_features=2)
    assert found.feature_1.isna().all()
    np.testing.assert_array_equal(found.score, model.outlier_scores_)


def test_a_constant_feature_has_a_finite_difference(rows, seed):
    X = np.column_stack([rows, np.ones(300)])
    model = fit(X, seed)
    new = X[[0]].copy()
    new[0, 4] = 5.0
    found = model.explain(new)
    assert np.isfinite(found.difference_1).all()


def test_wrong_names_and_numbers_are_refused(rows, seed):
    model = fit(rows, seed)
    with pytest.raises(ValueError, match="feature_names has 2 names but X has 4"):
        model.explain(rows, feature_names=["a", "b"])
    with pytest.raises(ValueError, match="n_features=-1 should be 0 or more"):
        model.explain(rows, n_features=-1)


def test_without_any_data_frame_library_the_error_says_so(rows, seed, monkeypatch):
    model = fit(rows, seed)
    absent = {"pandas", "polars", "pyarrow"}
    for name in absent:
        # Not as None, which scikit-learn 1.7 would take for pandas.
        monkeypatch.delitem(sys.modules, name, raising=False)
    finder = SimpleNamespace(find_spec=partial(refuse, absent))
    monkeypatch.setattr(sys, "meta_path", [finder, *sys.meta_path])
    with pytest.raises(ImportError, match="pip install pandas"):
        model.explain(rows)


def refuse(absent, name, path=None, target=None):
    """Have modules not be found, as where they are not installed."""
    if name in absent:
        raise ModuleNotFoundError(f"No module named {name!r}", name=name)
