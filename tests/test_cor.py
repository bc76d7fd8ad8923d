"""COR as a user sees it."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from corral import COR, CORDetector, _codes, _kmeans_runs, _partitions
from tests.conftest import plant
from tests.slow_twins import same_clustering


def make(**parameters):
    """Return a quick COR for the planted data."""
    defaults = {"n_clusters": 3, "n_outliers": 6, "n_partitions": 30, "random_state": 0}
    return COR(**(defaults | parameters))


@pytest.fixture
def fitted(planted):
    return make().fit(planted.X)


@pytest.mark.parametrize("strategy", ["rps", "rfs"])
@pytest.mark.parametrize("init", ["random-partition", "random-codes", "k-means++"])
def test_planted_clusters_and_outliers_are_found(strategy, init, seed):
    planted = plant(seed)
    model = make(
        strategy=strategy, init=init, n_partitions=100, k_range=(3, 9), eps=1e-2
    )
    labels = model.fit_predict(planted.X)
    found = np.flatnonzero(labels == -1)
    assert len(np.intersect1d(found, planted.outliers)) >= 5
    kept = (labels >= 0) & (planted.y >= 0)
    assert same_clustering(labels[kept], planted.y[kept])


def test_attributes_fit_together(planted, fitted):
    n = len(planted.X)
    assert fitted.labels_.shape == fitted.nearest_labels_.shape == (n,)
    assert np.count_nonzero(fitted.labels_ == -1) == fitted.n_outliers_ == 6
    assert set(fitted.nearest_labels_) == {0, 1, 2}
    kept = fitted.labels_ >= 0
    np.testing.assert_array_equal(fitted.labels_[kept], fitted.nearest_labels_[kept])
    scores = fitted.outlier_scores_
    assert scores[~kept].min() >= scores[kept].max() == -fitted.offset_
    assert fitted.objective_ == pytest.approx(scores[kept].mean())
    assert fitted.objective_ == fitted.objective_history_[-1]
    assert fitted.n_iter_ == len(fitted.objective_history_)
    assert (np.diff(fitted.objective_history_) <= 0).all()
    assert fitted.n_partitions_ == len(fitted.n_labels_) == 30
    assert fitted.partition_centers_.shape == (3, fitted.n_labels_.sum())
    borders = np.cumsum(fitted.n_labels_) - fitted.n_labels_
    shares = np.add.reduceat(fitted.partition_centers_, borders, axis=1)
    np.testing.assert_allclose(shares, 1)
    for k, center in enumerate(fitted.cluster_centers_):
        np.testing.assert_allclose(center, planted.X[fitted.labels_ == k].mean(axis=0))


def test_answers_for_the_training_rows_are_those_of_fit(planted, fitted):
    costs = fitted.transform(planted.X)
    assert costs.shape == (len(planted.X), 3)
    np.testing.assert_array_equal(costs.argmin(axis=1), fitted.nearest_labels_)
    np.testing.assert_array_equal(costs.min(axis=1), fitted.outlier_scores_)
    np.testing.assert_array_equal(
        fitted.score_samples(planted.X), -fitted.outlier_scores_
    )
    np.testing.assert_array_equal(
        fitted.decision_function(planted.X), -fitted.outlier_scores_ - fitted.offset_
    )
    predicted = fitted.predict(planted.X)
    tied = fitted.outlier_scores_ == -fitted.offset_
    np.testing.assert_array_equal(predicted[~tied], fitted.labels_[~tied])
    assert (predicted[tied] >= 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_answer_for_a_row_does_not_depend_on_the_others(planted, dtype):
    X = planted.X.astype(dtype)
    model = make().fit(X)
    together = model.transform(X)
    order = np.random.default_rng(0).permutation(len(X))
    np.testing.assert_array_equal(model.transform(X[order]), together[order])
    alone = [model.transform(X[i : i + 1])[0] for i in range(40)]
    np.testing.assert_array_equal(alone, together[:40])


def test_new_far_rows_are_outliers_and_near_rows_are_not(planted, fitted):
    near = planted.X[planted.y >= 0][:10] + 0.01
    assert (fitted.predict(near) >= 0).all()
    # Far away in the direction of the planted outliers, or beyond.
    far = planted.X[fitted.labels_ == -1] * 1.01
    assert (fitted.predict(far) == -1).all()


def test_whole_numbers_with_many_ties_do_not_depend_on_tiles(monkeypatch):
    # Starts coincide, cells empty, and rows equally far compete for them.
    rng = np.random.default_rng(0)
    X = rng.choice([-10.0, -1.0, 0.0, 1.0, 10.0], size=(900, 2))
    expected = make(n_clusters=4).fit(X)
    for rows in (64, 97, 500):
        monkeypatch.setattr(_kmeans_runs, "MAX_LLOYD_TILE_ROWS", rows)
        model = make(n_clusters=4).fit(X)
        np.testing.assert_array_equal(model.outlier_scores_, expected.outlier_scores_)
        np.testing.assert_array_equal(model.labels_, expected.labels_)


def test_far_rows_on_both_sides_leave_the_clusters_apart():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1, (50, 2)), rng.normal(9, 1, (50, 2))])
    X = np.concatenate([X, [[1e10, 1e10], [-1e10, -1e10]]])
    labels = COR(2, n_outliers=2, random_state=0, eps=1e-2).fit_predict(X)
    kept = np.flatnonzero(labels[:100] >= 0)
    assert same_clustering(labels[kept], np.repeat([0, 1], 50)[kept])


def test_no_outliers_is_plain_consensus_clustering(planted):
    model = make(n_outliers=0).fit(planted.X)
    assert (model.labels_ >= 0).all()
    np.testing.assert_array_equal(model.labels_, model.nearest_labels_)
    assert model.offset_ == -np.inf
    assert (model.predict(planted.X * 1000) >= 0).all()


def test_contamination_is_a_share_of_the_rows(planted):
    n = len(planted.X)
    share = make(n_outliers="auto", contamination=0.1).fit(planted.X)
    assert share.n_outliers_ == np.count_nonzero(share.labels_ == -1) == round(0.1 * n)


def test_same_seed_same_result_and_other_seed_other_result():
    X = np.random.default_rng(0).normal(size=(300, 3))
    a, b, c = (make(random_state=s).fit(X) for s in (1, 1, 2))
    np.testing.assert_array_equal(a.outlier_scores_, b.outlier_scores_)
    np.testing.assert_array_equal(a.labels_, b.labels_)
    assert not np.array_equal(a.outlier_scores_, c.outlier_scores_)


@pytest.mark.parametrize("n_jobs", [2, 5])
@pytest.mark.parametrize("max_samples", [200, None])
def test_number_of_threads_changes_nothing(n_jobs, max_samples):
    X = np.random.default_rng(0).normal(size=(3000, 3)).astype(np.float32)
    one = make(n_jobs=1, max_samples=max_samples).fit(X)
    many = make(n_jobs=n_jobs, max_samples=max_samples).fit(X)
    np.testing.assert_array_equal(one.labels_, many.labels_)
    np.testing.assert_array_equal(one.outlier_scores_, many.outlier_scores_)
    np.testing.assert_array_equal(one.transform(X), many.transform(X))


@pytest.mark.parametrize("rows", [97, 10_000])
def test_size_of_blocks_changes_nothing(monkeypatch, rows):
    X = np.random.default_rng(0).normal(size=(1500, 4)).astype(np.float32)
    expected = make().fit(X)
    monkeypatch.setattr(_kmeans_runs, "MAX_TILE_ROWS", rows)
    monkeypatch.setattr(_kmeans_runs, "MAX_LLOYD_TILE_ROWS", rows)
    monkeypatch.setattr(_partitions, "_BLOCK_ROWS", rows)
    monkeypatch.setattr(_codes, "_BLOCK_SLOTS", rows)
    monkeypatch.setattr(_codes, "_KEPT_SLOTS", rows)
    model = make().fit(X)
    np.testing.assert_array_equal(model.labels_, expected.labels_)
    np.testing.assert_array_equal(model.outlier_scores_, expected.outlier_scores_)
    np.testing.assert_array_equal(model.transform(X), expected.transform(X))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("to_sparse", [sparse.csr_matrix, sparse.csc_array])
def test_sparse_is_dense(metric, to_sparse, seed):
    X = np.random.default_rng(seed).poisson(0.4, size=(250, 30)).astype(float)
    X[:, 0] += 1
    dense = make(metric=metric).fit(X)
    other = make(metric=metric).fit(to_sparse(X))
    np.testing.assert_array_equal(dense.labels_, other.labels_)
    np.testing.assert_array_equal(dense.outlier_scores_, other.outlier_scores_)
    np.testing.assert_array_equal(dense.predict(X), other.predict(to_sparse(X)))
    np.testing.assert_allclose(dense.cluster_centers_, other.cluster_centers_)


@pytest.mark.parametrize("strategy", ["rps", "rfs"])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("weighted", [False, True])
def test_sparse_is_dense_where_rows_tie(strategy, metric, weighted):
    # Eight distinct rows: starts coincide, cells empty, distances are equal.
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2, size=(60, 4)).astype(float)
    X[:, 0] = 1
    weights = rng.uniform(size=60) if weighted else None
    model = make(strategy=strategy, metric=metric, n_outliers=3, k_range=(3, 7))
    dense = clone(model).fit(X, sample_weight=weights)
    other = clone(model).fit(sparse.csr_array(X), sample_weight=weights)
    np.testing.assert_array_equal(dense.labels_, other.labels_)
    np.testing.assert_array_equal(dense.outlier_scores_, other.outlier_scores_)


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_storage_at_predict_need_not_be_that_of_fit(planted, metric):
    rows = {"dense": planted.X, "sparse": sparse.csr_array(planted.X)}
    answers = {
        (a, b): make(metric=metric).fit(rows[a]).transform(rows[b])
        for a in rows
        for b in rows
    }
    for answer in answers.values():
        np.testing.assert_array_equal(answer, answers["dense", "dense"])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("offset", [0, 1e3, 1.7e9])
def test_sparse_is_dense_where_a_column_is_far_from_zero(planted, offset, dtype):
    # Without a shift, the squares of such a column eat up the digits of the others.
    X = np.where(np.abs(planted.X) < 0.3, 0, planted.X)
    X[:, 2] += offset
    X = X.astype(dtype)
    models = [make().fit(rows) for rows in (X, sparse.csr_array(X))]
    for rows in (X, sparse.csr_array(X), X[:9], sparse.csr_array(X[:9])):
        scores = [model.score_samples(rows) for model in models]
        np.testing.assert_array_equal(*scores)
    np.testing.assert_array_equal(*(each.labels_ for each in models))
    np.testing.assert_array_equal(*(each.outlier_scores_ for each in models))


def test_sparse_is_dense_by_cosine_in_float32(seed):
    # Where rows have few values, many are at the same distance from two centres.
    rng = np.random.default_rng(seed)
    X = np.abs(rng.normal(size=(300, 6))) * (rng.random((300, 6)) < 0.4)
    X = X.astype(np.float32)
    models = [make(metric="cosine").fit(rows) for rows in (X, sparse.csr_array(X))]
    np.testing.assert_array_equal(*(each.labels_ for each in models))
    np.testing.assert_array_equal(*(each.outlier_scores_ for each in models))


@pytest.mark.parametrize("apart", [0, 300, 1e4])
def test_sparse_is_dense_where_groups_are_far_apart(apart, seed):
    # The centres of sparse rows had fewer digits, and so did distances to them.
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(3000, 3))
    X[1500:] += 10 + apart
    model = COR(2, n_outliers=20, n_partitions=20, n_resamples=0, random_state=seed)
    dense, rows = (clone(model).fit(kind(X)) for kind in (np.asarray, sparse.csr_array))
    np.testing.assert_array_equal(dense.outlier_scores_, rows.outlier_scores_)
    np.testing.assert_array_equal(dense.labels_, rows.labels_)


def test_few_sparse_columns_are_shifted():
    # The others keep their zeros.
    rng = np.random.default_rng(0)
    X = rng.random((400, 500)) * (rng.random((400, 500)) < 0.01)
    rows = sparse.csr_array(np.column_stack([X, np.full(400, 1e6)]))
    model = make(n_clusters=2, n_outliers=5).fit(rows)
    assert model._partitioner.runs.space.n_shifted == 1
    dense = make(n_clusters=2, n_outliers=5).fit(rows.toarray())
    np.testing.assert_array_equal(model.labels_, dense.labels_)
    np.testing.assert_array_equal(model.predict(rows[:50]), dense.predict(rows[:50]))


def test_sparse_entries_that_stand_twice_are_added():
    X = np.random.default_rng(0).poisson(0.5, size=(200, 10)).astype(float)
    X[:, 0] += 2
    halves = sparse.csr_array(X / 2)
    twice = sparse.csr_array(
        (
            np.repeat(halves.data, 2),
            np.repeat(halves.indices, 2),
            2 * halves.indptr,
        ),
        shape=X.shape,
    )
    assert not twice.has_canonical_format
    for metric in ("euclidean", "cosine"):
        np.testing.assert_array_equal(
            make(metric=metric).fit(twice).outlier_scores_,
            make(metric=metric).fit(sparse.csr_array(X)).outlier_scores_,
        )


def test_float32_is_float64_up_to_rounding(planted):
    X = planted.X.astype(np.float32)
    single, double = make().fit(X), make().fit(X.astype(np.float64))
    np.testing.assert_array_equal(single.labels_, double.labels_)
    np.testing.assert_allclose(single.outlier_scores_, double.outlier_scores_)


def test_permuted_rows_give_the_same_clusters(planted):
    # Other rows are drawn as starts, so this holds for clear structure only.
    order = np.random.default_rng(0).permutation(len(planted.X))
    model = make(n_partitions=100, eps=1e-2)
    straight = model.fit_predict(planted.X)
    permuted = model.fit_predict(planted.X[order])
    assert same_clustering(straight[order], permuted)


@pytest.mark.parametrize("layout", ["C", "F", "strided", "read-only memory map"])
def test_layout_in_memory_changes_nothing(planted, fitted, tmp_path, layout):
    X = planted.X
    if layout == "F":
        X = np.asfortranarray(X)
    elif layout == "strided":
        X = np.repeat(X, 2, axis=0)[::2]
    elif layout != "C":
        np.save(tmp_path / "X.npy", X)
        X = np.load(tmp_path / "X.npy", mmap_mode="r")
    before = np.array(X)
    model = make().fit(X)
    np.testing.assert_array_equal(model.labels_, fitted.labels_)
    np.testing.assert_array_equal(model.predict(X), fitted.predict(planted.X))
    np.testing.assert_array_equal(X, before)


@pytest.mark.parametrize(
    "to_frame",
    [
        pytest.param(lambda X, names: pd.DataFrame(X, columns=names), id="pandas"),
        pytest.param(lambda X, names: pl.DataFrame(X, schema=names), id="polars"),
        pytest.param(lambda X, names: pa.table(list(X.T), names=names), id="pyarrow"),
    ],
)
def test_data_frames_are_arrays_with_names(planted, fitted, to_frame):
    names = ["a", "b", "c", "d"]
    frame = to_frame(planted.X, names)
    model = make().fit(frame)
    np.testing.assert_array_equal(model.labels_, fitted.labels_)
    np.testing.assert_array_equal(model.predict(frame), fitted.predict(planted.X))
    assert model.feature_names_in_.tolist() == names
    wrong = to_frame(planted.X, ["a", "b", "c", "x"])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(wrong)


def test_given_partitions_are_fused(partitions):
    model = make().fit_partitions(partitions)
    assert model.n_partitions_ == partitions.shape[1]
    assert np.count_nonzero(model.labels_ == -1) == 6
    assert not hasattr(model, "cluster_centers_")
    np.testing.assert_array_equal(
        model.score_samples(partitions), -model.outlier_scores_
    )
    other = make(partitions="precomputed").fit(partitions)
    np.testing.assert_array_equal(model.labels_, other.labels_)
    assert make().partitions == "kmeans"
    for frame in (pd.DataFrame(partitions), pl.DataFrame(partitions)):
        np.testing.assert_array_equal(
            make().fit_partitions(frame).labels_, model.labels_
        )


def test_names_of_given_labels_do_not_matter(partitions):
    model = make().fit_partitions(partitions)
    other = make().fit_partitions(partitions * 1000 + 7)
    np.testing.assert_array_equal(model.labels_, other.labels_)


def test_partitions_made_on_parts_of_the_rows(planted):
    # Each partition knows two thirds of the rows; the others are missing in it.
    rng = np.random.default_rng(0)
    columns = []
    for _ in range(40):
        part = np.flatnonzero(rng.random(len(planted.X)) < 2 / 3)
        labels = np.full(len(planted.X), -1)
        labels[part] = KMeans(3, n_init=1, random_state=0).fit_predict(planted.X[part])
        columns.append(labels)
    model = make(n_outliers=6).fit_partitions(np.column_stack(columns))
    inliers = planted.y >= 0
    assert same_clustering(model.nearest_labels_[inliers], planted.y[inliers])


def test_unseen_label_is_stranger_than_any_known_one(partitions):
    model = make().fit_partitions(partitions)
    rows = np.repeat(partitions[:1], 3, axis=0)
    rows[1, 0] = 99
    rows[2, 0] = -1
    known, unseen, missing = model.transform(rows)
    assert (unseen >= known).all()
    assert unseen.sum() > known.sum()
    assert (missing < known).all()


def test_extra_partitions_join_the_others(planted):
    extra = np.column_stack([planted.y == 0, planted.y == 1]).astype(int)
    model = make().fit(planted.X, extra_partitions=extra)
    assert model.n_partitions_ == 32
    np.testing.assert_array_equal(
        model.score_samples(planted.X, extra_partitions=extra), -model.outlier_scores_
    )
    with pytest.raises(ValueError, match="fitted with 2 columns of given labels but"):
        model.predict(planted.X)
    with pytest.raises(ValueError, match="fitted with 0 columns of given labels but"):
        make().fit(planted.X).predict(planted.X, extra_partitions=extra)
    costs = make().fit_transform(planted.X, extra_partitions=extra)
    np.testing.assert_array_equal(costs.min(axis=1), model.outlier_scores_)
    # A row may lack them all: it has the K-means labels.
    extra[3] = -1
    assert make().fit(planted.X, extra_partitions=extra).labels_.shape == (186,)
    with pytest.raises(ValueError, match="extra_partitions has 3 rows but X has 186"):
        model.fit(planted.X, extra_partitions=extra[:3])


def test_data_frames_out_leave_predictions_alone(planted, fitted):
    model = make().set_output(transform="pandas").fit(planted.X)
    assert list(model.transform(planted.X).columns) == ["cor0", "cor1", "cor2"]
    np.testing.assert_array_equal(model.predict(planted.X), fitted.predict(planted.X))
    assert isinstance(model.score_samples(planted.X), np.ndarray)


def test_refit_on_labels_forgets_the_features(planted, partitions):
    frame = pd.DataFrame(planted.X, columns=list("abcd"))
    model = make().fit(frame).fit_partitions(partitions)
    assert not hasattr(model, "cluster_centers_")
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("values", [[True, False], ["x", "y"], [1, 2]], ids=str)
@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_category_is_the_same_with_and_without_missing_cells(planted, values, library):
    column = np.where(planted.y == 0, values[0], values[1]).tolist()

    def build(cells):
        table = pa.table([*planted.X.T, pa.array(cells)], names=list("abcde"))
        if library == "pyarrow":
            return table
        return table.to_pandas() if library == "pandas" else pl.from_arrow(table)

    model = make(categorical_features=["e"]).fit(build(column))
    costs = model.transform(build(column))
    with_gap = model.transform(build([None, *column[1:]]))
    np.testing.assert_array_equal(with_gap[1:], costs[1:])
    assert with_gap[0].min() <= costs[0].min()


@pytest.mark.parametrize("values", [[1, 2], [1.5, 2.0], [True, False]], ids=str)
def test_category_is_the_same_where_a_gap_made_its_numbers_texts(planted, values):
    frame = pd.DataFrame(planted.X, columns=list("abcd"))
    frame["e"] = np.where(planted.y == 0, *values)
    gap = frame.astype({"e": object})
    gap.loc[0, "e"] = None
    written = frame.astype({"e": str})
    for one, others in [(frame, [gap, written]), (written, [gap, frame])]:
        model = make(categorical_features=["e"]).fit(one)
        for other in others:
            costs = model.transform(other)
            np.testing.assert_array_equal(costs[1:], model.transform(one)[1:])
    unseen = written.assign(e="other").head(1)
    assert model.transform(unseen).min() > model.transform(written.head(1)).min()


@pytest.mark.parametrize(
    ("known", "asked"),
    [
        (np.array([1.0, 2.0], object), np.array([1, 2], object)),
        (np.array([10**16, 2]), np.array([1e16, 2.0], object)),
        (np.array([1e16, 2.0]), np.array([10**16, 2], object)),
        (np.array([0.1, 2], np.float32), np.array([*np.float32([0.1, 2])], object)),
        (np.array([0.0, 2.0]), np.array([-0.0, 2.0], object)),
    ],
    ids=["objects", "long ids", "long ids as floats", "float32", "minus zero"],
)
def test_category_is_the_same_number_in_any_type(planted, known, asked):
    frame = pd.DataFrame(planted.X, columns=list("abcd"))
    which = np.where(planted.y == 0, 0, 1)
    model = make(categorical_features=["e"]).fit(frame.assign(e=known[which]))
    expected = model.transform(frame.assign(e=known[which]))
    answers = model.transform(frame.assign(e=asked[which]))
    np.testing.assert_array_equal(answers, expected)
    # Beside a text, or a missing cell, all are texts.
    answers = model.transform(frame.assign(e=[None, *asked[which][1:]]))
    np.testing.assert_array_equal(answers[1:], expected[1:])


def test_texts_that_write_a_number_in_two_ways_stay_apart(planted):
    frame = pd.DataFrame(planted.X, columns=list("abcd"))
    texts = np.where(planted.y == 0, "1", "1.0")
    model = make(categorical_features=["e"]).fit(frame.assign(e=texts))
    costs = model.transform(frame.assign(e=1))
    np.testing.assert_array_equal(costs, model.transform(frame.assign(e="1")))
    assert (costs != model.transform(frame.assign(e="1.0"))).any()


def test_dates_can_be_categories(planted):
    frame = pd.DataFrame(planted.X, columns=list("abcd"))
    days = pd.to_datetime(np.where(planted.y == 0, "2020-01-01", "2020-01-02"))
    frame["day"] = days.where(np.arange(len(frame)) > 0)
    model = make(categorical_features=frame.columns[4:]).fit(frame)
    assert model.n_labels_[-1] == 2


def test_nested_seeds_are_set(planted):
    clusterers = [
        make_pipeline(StandardScaler(), KMeans(5, n_init=1, init="random"))
    ] * 9
    models = [
        make(partitions=clusterers, n_outliers=0).fit(planted.X) for _ in range(2)
    ]
    np.testing.assert_array_equal(models[0].outlier_scores_, models[1].outlier_scores_)


def test_categorical_column_is_a_partition_of_its_own(planted):
    frame = pd.DataFrame(planted.X, columns=list("abcd"))
    frame["city"] = np.where(planted.y == 0, "Delft", "Essen")
    frame["grade"] = pd.Categorical(np.where(planted.y == 1, "x", "y"))
    model = make(categorical_features=["city", "grade"]).fit(frame)
    assert model.n_partitions_ == 32
    np.testing.assert_array_equal(model.n_labels_[-2:], [2, 2])
    assert model.cluster_centers_.shape == (3, 4)
    np.testing.assert_array_equal(model.score_samples(frame), -model.outlier_scores_)
    # A category that fit has not seen is strange; a missing one is not.
    costs = model.transform(frame.head(1).assign(city="Ghent")).min()
    assert costs > model.transform(frame.head(1)).min()
    assert model.transform(frame.head(1).assign(city=None)).min() < costs


def test_categorical_columns_alone_are_clustered():
    colours = np.array(["red"] * 20 + ["blue"] * 20 + ["green"])
    sizes = np.array(["s"] * 20 + ["l"] * 20 + ["xxl"])
    X = np.column_stack([colours, sizes])
    model = make(n_clusters=2, n_outliers=1, categorical_features=[0, 1]).fit(X)
    np.testing.assert_array_equal(np.flatnonzero(model.labels_ == -1), [40])
    assert same_clustering(model.labels_[:40], np.repeat([0, 1], 20))


def test_long_categories_take_what_short_ones_take(planted):
    # In NumPy's texts, all rows would take what the longest takes.
    kinds = np.array(["Delft", "x" * 9999 + "y", "x" * 9999 + "z"], dtype=object)
    frame = pd.DataFrame({"a": planted.X[:, 0], "kind": kinds[planted.y % 3]})
    model = make(categorical_features=["kind"]).fit(frame)
    assert model.n_labels_[-1] == 3
    np.testing.assert_array_equal(model.score_samples(frame), -model.outlier_scores_)
    # One with another end is another one.
    costs = -model.score_samples(frame.assign(kind="x" * 9999 + "!"))
    kept = model.labels_ != -1
    assert (costs[kept] > model.outlier_scores_[kept]).all()
    # They are the same in texts of NumPy.
    texts = frame["kind"].to_numpy(dtype=str)
    labels, _ = _partitions.clean_labels(texts)
    assert labels.nbytes < texts.nbytes / 50
    same, _ = _partitions.clean_labels(frame["kind"].to_numpy())
    np.testing.assert_array_equal(labels, same)


@pytest.mark.parametrize("dtypes", [("f4", "f8"), ("f8", "f4")])
@pytest.mark.parametrize("to_rows", [np.asarray, sparse.csr_array])
def test_clusterers_label_rows_of_either_precision(planted, dtypes, to_rows):
    X, other = (to_rows(planted.X.astype(dtype)) for dtype in dtypes)
    model = make(partitions=[KMeans(4, n_init=1), "kmeans"]).fit(X)
    labels = model.predict(other)
    assert np.mean(labels == model.labels_) > 0.95


def test_clusterers_see_each_sparse_value_once_with_narrow_indices(planted):
    rows = sparse.csr_array(planted.X)
    clusterers = [KMeans(k, random_state=k) for k in range(2, 9)]
    expected = make(partitions=clusterers).fit(rows).outlier_scores_
    wide = rows.copy()
    wide.indices, wide.indptr = rows.indices.astype("i8"), rows.indptr.astype("i8")
    halves = (np.repeat(rows.data / 2, 2), np.repeat(rows.indices, 2), rows.indptr * 2)
    for same in (wide, sparse.csr_array(halves, shape=rows.shape)):
        scores = make(partitions=clusterers).fit(same).outlier_scores_
        np.testing.assert_array_equal(scores, expected)


def test_list_of_clusterers_makes_one_partition_each(planted):
    clusterers = [
        KMeans(3, n_init=1),
        KMeans(5, n_init=1),
        AgglomerativeClustering(4),
        DBSCAN(eps=2.0),
    ]
    model = make(partitions=clusterers, n_outliers=0).fit(planted.X)
    np.testing.assert_array_equal(model.n_labels_, [3, 5, 4, 3])
    with pytest.raises(ValueError, match="AgglomerativeClustering has no predict"):
        model.predict(planted.X)
    mixed = make(partitions=["kmeans", *clusterers[:2]]).fit(planted.X)
    assert mixed.n_partitions_ == 32
    assert mixed.predict(planted.X).shape == (len(planted.X),)


def test_base_clusterer_is_run_many_times(planted):
    base = KMeans(n_init=1)
    model = make(partitions=base, n_partitions=15).fit(planted.X)
    assert model.n_partitions_ == 15
    assert set(model.n_labels_) <= {2, 3, 4, 5, 6}
    assert len(set(model.n_labels_)) > 2
    np.testing.assert_array_equal(
        model.score_samples(planted.X), -model.outlier_scores_
    )
    model = make(partitions=base, n_partitions=5, strategy="rfs").fit(planted.X)
    assert model.predict(planted.X).shape == (len(planted.X),)
    with pytest.raises(ValueError, match="all 30 runs would be the same"):
        make(partitions=DBSCAN()).fit(planted.X)


def test_weights_pull_centres_but_not_the_count(planted):
    weights = np.random.default_rng(0).uniform(0, 2, len(planted.X))
    model = make().fit(planted.X, sample_weight=weights)
    assert np.count_nonzero(model.labels_ == -1) == 6
    for k in range(3):
        mine = model.labels_ == k
        np.testing.assert_allclose(
            model.cluster_centers_[k],
            np.average(planted.X[mine], axis=0, weights=weights[mine]),
        )
    ones = make().fit(planted.X, sample_weight=np.ones(len(planted.X)))
    np.testing.assert_array_equal(ones.labels_, make().fit(planted.X).labels_)
    # The scale of the weights does not matter.
    tenfold = make().fit(planted.X, sample_weight=10 * weights)
    np.testing.assert_array_equal(tenfold.labels_, model.labels_)


def test_weights_reach_the_clusterers_that_take_them(planted):
    seen = []

    class Watched(KMeans):
        def fit(self, X, y=None, sample_weight=None):
            seen.append(sample_weight)
            return super().fit(X, y, sample_weight)

    weights = np.random.default_rng(0).uniform(0, 2, len(planted.X))
    partitions = [Watched(3, n_init=1), AgglomerativeClustering(3)]
    model = make(partitions=partitions, n_resamples=0)
    model.fit(planted.X, sample_weight=weights)
    assert len(seen) == 1
    # Their scale does not matter.
    np.testing.assert_allclose(seen[0] / seen[0].sum(), weights / weights.sum())


def test_rows_without_weight_teach_nothing(planted):
    weights = (planted.y >= 0).astype(float)
    model = make(n_outliers=0).fit(planted.X, sample_weight=weights)
    for k in range(3):
        mine = (model.labels_ == k) & (planted.y >= 0)
        np.testing.assert_allclose(
            model.cluster_centers_[k], planted.X[mine].mean(axis=0)
        )


def test_model_keeps_no_training_row(planted):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 30))
    model = make(n_partitions=10).fit(X)
    results = 5 * len(X) * 8
    assert len(pickle.dumps(model)) < results + 200_000 < X.nbytes


def test_detector_gives_signs(planted, fitted):
    detector = CORDetector(make())
    signs = detector.fit_predict(planted.X)
    np.testing.assert_array_equal(
        signs, np.where(fitted.predict(planted.X) == -1, -1, 1)
    )
    assert set(signs) == {-1, 1}
    np.testing.assert_array_equal(
        detector.decision_function(planted.X), fitted.decision_function(planted.X)
    )
    assert detector.offset_ == fitted.offset_
    # The same fit, without fitting again.
    frozen = CORDetector(FrozenEstimator(fitted))
    np.testing.assert_array_equal(
        frozen.fit_predict(planted.X[:5]), detector.predict(planted.X[:5])
    )
    frozen.fit(planted.X)
    np.testing.assert_array_equal(
        frozen.predict(planted.X), detector.predict(planted.X)
    )


def test_works_in_a_pipeline(planted):
    pipeline = make_pipeline(StandardScaler(), make())
    labels = pipeline.fit_predict(planted.X)
    assert np.count_nonzero(labels == -1) == 6
    assert pipeline.predict(planted.X[:5]).shape == (5,)
    assert list(pipeline.get_feature_names_out()) == ["cor0", "cor1", "cor2"]


def test_unfitted_model_says_so(planted):
    for method in ("predict", "transform", "score_samples", "decision_function"):
        with pytest.raises(NotFittedError):
            getattr(make(), method)(planted.X)


def test_early_stop_is_announced():
    X = np.random.default_rng(0).normal(size=(300, 3))
    with pytest.warns(
        ConvergenceWarning, match=r"stopped at max_iter=2 .* Raise max_iter"
    ):
        make(max_iter=2, n_init=1, init="random-partition").fit(X)


def test_far_outlier_does_not_blur_the_rest(planted):
    X = planted.X.copy()
    X[planted.outliers[0]] = 1e12
    for dtype in (np.float32, np.float64):
        model = make(n_partitions=100, eps=1e-2, k_range=(4, 9)).fit(X.astype(dtype))
        inliers = (planted.y >= 0) & (model.labels_ >= 0)
        assert same_clustering(model.labels_[inliers], planted.y[inliers])
        assert model.labels_[planted.outliers[0]] == -1


@pytest.mark.parametrize("n_clusters", [1, 2])
def test_smallest_inputs(n_clusters):
    X = np.arange(2.0 * n_clusters).reshape(n_clusters, 2)
    model = make(n_clusters=n_clusters, n_outliers=0).fit(X)
    assert sorted(model.labels_) == list(range(n_clusters))


def test_cloned_model_is_the_same(planted, fitted):
    copy = clone(fitted).fit(planted.X)
    np.testing.assert_array_equal(copy.labels_, fitted.labels_)


def test_codes_are_counted(planted, fitted):
    blocks = fitted._partitioner.open(planted.X, [])
    rows = np.concatenate([blocks.read(0, i) for i in range(len(blocks))], axis=1)
    assert fitted.n_codes_ == len(np.unique(rows, axis=1).T)


def test_warnings_point_to_the_line_that_fits(planted):
    with pytest.warns(ConvergenceWarning, match="Raise max_iter") as caught:
        make(max_iter=1).fit(planted.X)
    assert {each.filename for each in caught} == {__file__}
