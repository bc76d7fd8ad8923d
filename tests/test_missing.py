"""Cells that are missing: labels that rest on them are missing, too."""

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans

from corral import COR, _partition_mixin
from corral._memory import Budget
from corral._partitions import clean_labels
from corral._validation import read_features
from corral.rivals import KCC
from corral.sources import ArraySource
from tests.test_blocks import assert_same, cut_into


@pytest.fixture
def groups(seed):
    """Three groups in six dimensions with six far rows, and which group each is of."""
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(3), 150)
    X = rng.normal(size=(450, 6)) + 12 * np.eye(3, 6)[y]
    X[:6] = rng.choice([-30.0, 30.0], size=(6, 6))
    y[:6] = -1
    return X, y


def punch(X, share, seed):
    """Take away a share of the cells, but none of the far rows."""
    gone = np.random.default_rng(seed).random(X.shape) < share
    gone[:6] = False
    return np.where(gone, np.nan, X)


def agreement(labels, y):
    """Share of the rows whose group is the one most common in their cluster."""
    kept = (labels >= 0) & (y >= 0)
    table = np.zeros((3, 3))
    np.add.at(table, (labels[kept], y[kept]), 1)
    return table.max(axis=1).sum() / table.sum()


@pytest.mark.parametrize("share", [0.02, 0.1])
def test_clusters_and_outliers_are_found_in_spite_of_missing_cells(groups, share, seed):
    X, y = groups
    model = COR(3, n_outliers=6, random_state=seed).fit(punch(X, share, seed))
    assert (model.labels_[:6] == -1).all()
    assert agreement(model.labels_, y) > 0.97
    assert np.isfinite(model.outlier_scores_).all()


def test_predict_repeats_the_fit(groups, seed):
    X = punch(groups[0], 0.05, seed)
    model = COR(3, n_outliers=6, random_state=seed).fit(X)
    np.testing.assert_array_equal(model.predict(X), model.labels_)
    np.testing.assert_array_equal(-model.score_samples(X), model.outlier_scores_)


def test_a_row_is_answered_by_itself(groups, seed):
    # What takes the place of a missing cell differs from batch to batch.
    X = punch(groups[0], 0.05, seed)
    model = COR(3, n_outliers=6, random_state=seed).fit(X)
    alone = np.concatenate([model.transform(row[None]) for row in X[:40]])
    np.testing.assert_array_equal(alone, model.transform(X)[:40])


def test_labels_are_missing_in_the_runs_that_see_a_missing_cell(groups, seed):
    X = groups[0].copy()
    X[10, 2] = np.nan
    model = COR(3, n_outliers=6, random_state=seed).fit(X)
    runs = model._partitioner.runs
    assert runs.features[::2].all()
    blocks = model._partitioner.open(np.nan_to_num(X), [], np.isnan(X))
    rows = blocks.read(0, 0)
    no_label = runs.n_labels + 1
    np.testing.assert_array_equal(rows[:, 10] == no_label, runs.features[:, 2])
    assert not (np.delete(rows, 10, axis=1) == no_label[:, None]).any()


def test_a_missing_cell_is_neither_strange_nor_usual(groups, seed):
    # Of rows that are alike but for a missing cell, few are among the strangest.
    X = groups[0].copy()
    X[100:150, 5] = np.nan
    model = COR(3, n_outliers=50, random_state=seed).fit(X)
    n_with = np.count_nonzero(model.labels_[100:150] == -1)
    n_without = np.count_nonzero(model.labels_[6:100] == -1)
    assert n_with / 50 < 2 * (n_without + 5) / 94


def test_centres_and_spreads_are_those_of_the_known_cells(groups, seed):
    X = punch(groups[0], 0.05, seed)
    model = COR(3, n_outliers=6, random_state=seed).fit(X)
    for k in range(3):
        rows = X[model.labels_ == k]
        np.testing.assert_allclose(model.cluster_centers_[k], np.nanmean(rows, axis=0))
        np.testing.assert_allclose(model.cluster_spreads_[k], np.nanstd(rows, axis=0))


@pytest.mark.filterwarnings("ignore:Too little is known:UserWarning")
def test_most_rows_may_lack_a_cell(groups, seed):
    # About a quarter of the rows are complete.
    X, y = groups
    model = COR(3, n_outliers=6, random_state=seed).fit(punch(X, 0.2, seed))
    assert agreement(model.labels_, y) > 0.9


@pytest.mark.parametrize("n_partitions", [1, 2, 3])
def test_few_partitions_will_do(groups, seed, n_partitions):
    X = groups[0].copy()
    X[10, 2] = np.nan
    model = COR(2, n_outliers=6, n_partitions=n_partitions, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model.fit(X)
    np.testing.assert_array_equal(-model.score_samples(X), model.outlier_scores_)


def test_data_frames_and_arrays_agree(groups, seed):
    X = punch(groups[0], 0.05, seed)
    model = COR(3, n_outliers=6, random_state=seed)
    labels = model.fit(X).labels_
    frame = pd.DataFrame(X, columns=list("abcdef"))
    np.testing.assert_array_equal(model.fit(frame).labels_, labels)


def test_categories_tell_of_rows_without_numbers(groups, seed):
    X, y = groups
    frame = pd.DataFrame(X, columns=list("abcdef"))
    frame["group"] = np.array(["x", "y", "z", "x"])[y]
    frame.loc[400:410, list("abcdef")] = np.nan
    model = COR(3, n_outliers=6, categorical_features=["group"], random_state=seed)
    labels = model.fit(frame).labels_
    assert (labels[400:411] == labels[420]).all()


def test_rows_without_any_label_are_told(groups, seed):
    X = groups[0].copy()
    X[[17, 44]] = np.nan
    model = COR(3, n_outliers=6, random_state=seed)
    with pytest.warns(UserWarning, match=r"known of 2 of 450 rows.* row 17\. "):
        model.fit(X)
    assert (model.labels_[[17, 44]] >= 0).all()


def test_a_model_of_complete_rows_refuses_missing_cells(groups, seed):
    X = groups[0].copy()
    model = COR(3, n_outliers=6, random_state=seed).fit(X)
    X[8, 4] = np.nan
    with pytest.raises(ValueError, match="first in row 8 and numeric column 4"):
        model.predict(X)


def test_nan_is_refused_where_it_cannot_be_missing(groups):
    X = groups[0].copy()
    X[8, 4] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        COR(3).fit(sparse.csr_array(X))
    with pytest.raises(ValueError, match="NaN"):
        KCC(3).fit(X)
    X[8, 4] = np.inf
    with pytest.raises(ValueError, match="infinity"):
        COR(3).fit(X)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_threads_change_nothing(groups, seed, n_jobs):
    X = punch(groups[0], 0.05, seed)
    model = COR(3, n_outliers=6, n_jobs=n_jobs, random_state=seed).fit(X)
    same = COR(3, n_outliers=6, random_state=seed).fit(X)
    np.testing.assert_array_equal(model.outlier_scores_, same.outlier_scores_)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_a_huge_row_changes_no_answer_for_another(groups, seed, metric):
    # What takes the place of a missing cell must not be where the huge row pulls it.
    X = punch(groups[0], 0.05, seed)
    model = COR(3, n_outliers=6, metric=metric, random_state=seed).fit(X)
    alone = model.transform(X)
    X[0] = 1e25
    np.testing.assert_array_equal(model.transform(X)[1:], alone[1:])


def test_a_huge_row_in_the_fit_leaves_rows_with_missing_cells_in_place(groups, seed):
    X, y = groups
    X = punch(X, 0.05, seed)
    X[0] = 1e15
    model = COR(3, n_outliers=6, random_state=seed).fit(X)
    assert (model.labels_[:6] == -1).all()
    assert agreement(model.labels_, y) > 0.97
    lacks = np.isnan(X).any(axis=1)
    assert agreement(model.nearest_labels_[lacks], y[lacks]) > 0.95


@pytest.mark.filterwarnings("ignore:Too little is known")
@pytest.mark.parametrize(
    ("share", "max_samples"), [(0, 10_000), (0.05, None), (0.2, 10_000)]
)
def test_a_column_without_any_cell_tells_nothing(
    groups, seed, monkeypatch, share, max_samples
):
    """With 5 % of the cells missing, runs learn from the rows that are complete.

    With 20 %, of which there are fewer than half, they learn from all.
    """
    X = punch(groups[0], share, seed)
    options = {"n_outliers": 6, "random_state": seed, "max_samples": max_samples}
    plain = COR(3, **options).fit(X)
    wide = np.column_stack([X[:, :2], np.full(len(X), np.nan), X[:, 2:]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", "Too little is known")
        model = COR(3, **options).fit(wide)
    np.testing.assert_array_equal(model.labels_, plain.labels_)
    np.testing.assert_array_equal(model.outlier_scores_, plain.outlier_scores_)
    np.testing.assert_array_equal(model.predict(wide), plain.predict(X))
    # Nor do values that new rows have there.
    new = wide.copy()
    new[:, 2] = 1e6
    np.testing.assert_array_equal(model.score_samples(new), plain.score_samples(X))
    cut_into(monkeypatch, 100)
    monkeypatch.setattr(_partition_mixin, "MAX_HELD_VALUES", 0)
    assert_same(model, clone(model).fit(ArraySource(wide)))


@pytest.mark.filterwarnings("ignore:Too little is known")
@pytest.mark.parametrize("strategy", ["rps", "rfs"])
def test_a_column_without_any_cell_is_seen_by_no_run(groups, seed, strategy):
    X, y = groups
    X = np.column_stack([punch(X, 0.1, seed), np.full(len(X), np.nan)])
    model = COR(3, n_outliers=6, strategy=strategy, random_state=seed).fit(X)
    runs = model._partitioner.runs
    assert runs.seen.tolist() == [True] * 6 + [False]
    assert agreement(model.labels_, y) > 0.9


def test_clusterers_need_only_the_columns_that_they_see(groups, seed):
    X, y = groups
    X[10, 2] = np.nan
    model = COR(
        3,
        n_outliers=6,
        partitions=KMeans(3, n_init=1),
        n_partitions=20,
        strategy="rfs",
        random_state=seed,
    ).fit(X)
    sees = [2 in each.features for each in model._partitioner.clusterers]
    costs = model.partition_costs(X[[10]])
    silent = model.partition_costs(np.where(np.arange(6) == 2, np.nan, X[[11]]))
    np.testing.assert_array_equal(costs[:, sees], silent[:, sees])
    assert 0 < np.count_nonzero(sees) < 20
    assert agreement(model.labels_, y) > 0.9


def test_rows_that_clusterers_cannot_label_are_told(groups):
    X = groups[0].copy()
    X[10, 2] = np.nan
    model = COR(3, partitions=[KMeans(3, n_init=1)])
    with pytest.raises(ValueError, match=r"row 10\. Fill their missing cells"):
        model.fit(X)


def test_runs_learn_from_all_rows_where_the_weight_is_on_incomplete_ones(groups, seed):
    X = groups[0].copy()
    weights = np.zeros(450)
    X[:200, 5] = np.nan
    weights[:200] = 1
    weights[250] = 1
    model = COR(2, n_outliers=6, random_state=seed)
    model.fit(X, sample_weight=weights)
    assert model.n_codes_ > 2


def test_runs_learn_from_complete_rows_only_whatever_others_weigh(groups, seed):
    X = groups[0].copy()
    X[:20, 5] = np.nan
    weights = np.random.default_rng(seed).uniform(1, 2, 450)
    model = COR(3, n_outliers=6, n_partitions=20, n_resamples=0, random_state=seed)
    found = model.fit(X, sample_weight=weights)._partitioner.runs.centers
    weights[:20] = 0
    expected = model.fit(X, sample_weight=weights)._partitioner.runs.centers
    np.testing.assert_allclose(found, expected)


@pytest.mark.parametrize(
    "kind", ["boolean", pd.ArrowDtype(pa.bool_()), pd.ArrowDtype(pa.float64())], ids=str
)
def test_missing_cells_of_any_column_type_of_pandas_are_taken(groups, seed, kind):
    X = groups[0].copy()
    X[:, 5] = X[:, 5] > 0
    frame = pd.DataFrame(X, columns=list("abcdef"))
    X[8, 5] = np.nan
    labels = COR(3, n_outliers=6, random_state=seed).fit(X).labels_
    frame["f"] = (frame["f"] > 0).astype(kind)
    frame.loc[8, "f"] = pd.NA
    model = COR(3, n_outliers=6, random_state=seed).fit(frame)
    np.testing.assert_array_equal(model.labels_, labels)
    with pytest.raises(ValueError, match="NaN"):
        KCC(3).fit(frame)


@pytest.mark.filterwarnings("ignore:invalid value encountered in reduce")
def test_missing_cells_among_the_largest_numbers(groups, seed):
    # Their sum is infinite, their mean is not.
    X = punch(groups[0], 0.05, seed) * 2e306
    features = read_features(COR(3), X, reset=True)
    assert np.isfinite(features.numbers).all()
    assert np.isfinite(COR(3, random_state=seed).fit(X).cluster_centers_).all()


def test_a_text_that_looks_like_a_missing_value_is_a_text():
    labels, gone = clean_labels(np.array(["<NA>", None, pd.NA, np.nan, "x"], object))
    assert gone.tolist() == [False, True, True, True, False]
    assert labels[0] == "<NA>"


def test_numbers_are_chosen_where_hardly_any_row_is_known():
    X = np.array([[np.nan]] * 6 + [[2.7], [1.8]])
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("ignore", UserWarning)
        model = COR(k_max=3, n_partitions=6, n_resamples=0, random_state=0).fit(X)
    assert np.isfinite(model.outlier_scores_).all()


def test_blocks_are_fused_where_kept_rows_have_no_label(monkeypatch):
    # Nothing is named, so that no cluster has a share of it.
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 6)) + 8 * rng.integers(3, size=(80, 1))
    X[rng.random(X.shape) < 0.5] = np.nan
    model = COR(2, n_outliers=4, init="random-codes", n_partitions=2, random_state=0)
    with pytest.warns(UserWarning, match="Too little is known"):
        expected = clone(model).fit(X)
    monkeypatch.setattr(Budget, "count_block_rows", lambda *_: 20)
    with pytest.warns(UserWarning, match="Too little is known"):
        found = model.fit(lambda: iter([X]))
    np.testing.assert_array_equal(found.labels_, expected.labels_)
