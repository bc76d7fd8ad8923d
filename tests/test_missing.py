"""Cells that are missing: labels that rest on them are missing, too."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

from corral import COR
from corral.rivals import KCC


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
    # No more than a fifth of the rows are complete.
    X, y = groups
    model = COR(3, n_outliers=6, random_state=seed).fit(punch(X, 0.25, seed))
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
