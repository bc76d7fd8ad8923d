"""A fit does not depend on how its rows are cut, where they are, or where states go."""

import itertools
import pickle
from pathlib import Path

import numpy as np
import pytest
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.cluster import KMeans

from corral import COR, _census, _choice, _cor, _memory, _random, persist
from corral._encoded import EncodedRows
from corral.sources import ArraySource

pa = pytest.importorskip("pyarrow", reason='pip install "corral[files]"')
import pyarrow.parquet as pq  # noqa: E402

SAME = (
    "labels_",
    "nearest_labels_",
    "outlier_scores_",
    "offset_",
    "outlier_confidence_",
    "label_confidence_",
    "n_codes_",
    "n_clusters_",
    "n_outliers_",
    "n_labels_",
)
NEAR = ("cluster_centers_", "cluster_spreads_", "cluster_stability_", "objective_")


def cut_into(monkeypatch, block_rows, *, spilled=False):
    """Cut all rows into blocks of so many, and keep states in memory or not."""
    for_states = -1 if spilled else 2**40
    budget, merge = _memory.Budget, EncodedRows.merge_codes
    monkeypatch.setattr(budget, "count_block_rows", lambda *_: block_rows)
    monkeypatch.setattr(budget, "holds", lambda *_: False)
    monkeypatch.setattr(budget, "for_states", property(lambda _: for_states))
    # There is memory for starts all the same.
    monkeypatch.setattr(EncodedRows, "merge_codes", lambda self, _: merge(self, 2**40))


def assert_same(one, other):
    """Compare what two fits found: to the last bit, but for means of rows."""
    for name in SAME:
        assert hasattr(one, name) == hasattr(other, name), name
        if hasattr(one, name):
            expected, found = getattr(one, name), getattr(other, name)
            np.testing.assert_array_equal(found, expected, err_msg=name)
    for name in NEAR:
        assert hasattr(one, name) == hasattr(other, name), name
        if hasattr(one, name):
            expected, found = getattr(one, name), getattr(other, name)
            np.testing.assert_allclose(
                found, expected, rtol=1e-9, atol=1e-9, err_msg=name
            )


def draw_rows(seed=0, n_rows=700, n_features=4):
    """Return three groups that touch, and a few rows far out."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n_rows)
    X = rng.normal(size=(n_rows, n_features)) + 5 * np.eye(3, n_features)[y]
    far = rng.choice(n_rows, 12, replace=False)
    X[far] = rng.normal(size=(12, n_features)) * 40
    return X


def take_out(X, share, seed=1):
    """Return rows of which a share of the cells is missing."""
    gone = np.random.default_rng(seed).random(X.shape) < share
    return np.where(gone, np.nan, X)


def center(X):
    """Return columns whose mean is zero but for rounding."""
    return (X - np.nanmean(X, axis=0)) / np.nanstd(X, axis=0)


def draw_labels(n_rows=700):
    """Return label rows around three prototypes, some of them missing."""
    rng = np.random.default_rng(2)
    prototypes = rng.integers(4, size=(3, 9))
    labels = prototypes[rng.integers(3, size=n_rows)]
    is_noise = rng.random(labels.shape) < 0.15
    labels = np.where(is_noise, rng.integers(4, size=labels.shape), labels)
    labels[:, 1:][rng.random((n_rows, 8)) < 0.02] = -1
    return labels


def draw_counts():
    """Return counts of words, most of them none."""
    rng = np.random.default_rng(3)
    topics = rng.dirichlet(np.full(40, 0.1), size=3)
    rows = np.array([rng.multinomial(25, topics[i % 3]) for i in range(500)])
    rows[::50] = rng.integers(3, size=(10, 40))
    return sparse.csr_array(rows.astype(np.float64))


def draw_table():
    """Return numbers and categories; words get longer, and some come late."""
    X = draw_rows(4)
    rng = np.random.default_rng(4)
    words = np.array(["a", "bb", "ccc"])[rng.integers(3, size=700)].astype(object)
    words[600:] = [f"word {i % 7}" for i in range(100)]
    words[rng.random(700) < 0.05] = None
    numbers = [None if i % 13 == 5 and i > 400 else i % 4 for i in range(700)]
    truths = [None if i > 650 and i % 5 == 0 else bool(i % 3) for i in range(700)]
    columns = {f"x{j}": X[:, j] for j in range(4)}
    columns |= {"word": pa.array(words.tolist()), "number": pa.array(numbers)}
    return pa.table(columns | {"truth": pa.array(truths)})


DATA = {
    "rows": draw_rows,
    "few missing": lambda: take_out(draw_rows(), 0.03),
    "many missing": lambda: take_out(draw_rows(), 0.4),
    "centred, many missing": lambda: center(take_out(draw_rows(), 0.4)),
    "missing at the end": lambda: np.concatenate(
        [draw_rows()[:690], take_out(draw_rows()[690:], 0.5)]
    ),
    "no spread": lambda: np.repeat(draw_rows()[:9], 70, axis=0),
    "float32": lambda: draw_rows().astype(np.float32),
    "whole numbers": lambda: np.round(draw_rows()).astype(np.int16),
    "far from zero": lambda: draw_rows() * 1e-3 + 1e6,
    "labels": draw_labels,
    "counts": draw_counts,
    "table": draw_table,
}

CATEGORIES = {"categorical_features": ["word", "number", "truth"]}
MERGE_CODES = EncodedRows.merge_codes
START = {"n_clusters": 3, "n_outliers": 12, "n_init": 3}

SETTINGS = {
    "given": ("rows", {"n_clusters": 3, "n_outliers": 12}),
    "chosen": ("rows", {}),
    "K chosen": ("rows", {"n_outliers": 12}),
    "o chosen": ("rows", {"n_clusters": 3}),
    "contamination": ("rows", {"n_clusters": 3, "contamination": 0.03}),
    "auto range": ("rows", {"n_clusters": 3, "n_outliers": 9, "k_range": "auto"}),
    "no outliers": ("rows", {"n_clusters": 3, "n_outliers": 0}),
    "one cluster": ("rows", {"n_clusters": 1, "n_outliers": 12}),
    "cosine": ("rows", {"n_clusters": 3, "n_outliers": 12, "metric": "cosine"}),
    "rfs": ("rows", {"n_clusters": 3, "n_outliers": 12, "strategy": "rfs"}),
    "no position": ("rows", {"n_clusters": 3, "n_outliers": 5, "position_weight": 0.0}),
    "no resamples": ("rows", {"n_clusters": 3, "n_outliers": 12, "n_resamples": 0}),
    "few samples": ("rows", {"n_clusters": 3, "n_outliers": 12, "max_samples": 100}),
    "all samples": ("rows", {"n_clusters": 3, "n_outliers": 12, "max_samples": None}),
    "random-partition": ("rows", {**START, "init": "random-partition"}),
    "k-means++": ("rows", {**START, "init": "k-means++"}),
    "random-codes": ("rows", {**START, "init": "random-codes"}),
    "few missing": ("few missing", {"n_clusters": 3, "n_outliers": 12}),
    "few missing, few samples": ("few missing", {"n_clusters": 3, "max_samples": 90}),
    "many missing": ("many missing", {"n_clusters": 3, "n_outliers": 12}),
    "centred, many missing": ("centred, many missing", {"n_clusters": 3}),
    "missing at the end": ("missing at the end", {"n_clusters": 3, "n_outliers": 9}),
    "no spread": ("no spread", {"n_clusters": 3, "n_outliers": 100}),
    "float32": ("float32", {"n_clusters": 3, "n_outliers": 12}),
    "whole numbers": ("whole numbers", {"n_clusters": 3, "n_outliers": 12}),
    "far from zero": ("far from zero", {"n_clusters": 3, "n_outliers": 12}),
    "labels": ("labels", {"n_outliers": 9, "partitions": "precomputed"}),
    "labels, given": (
        "labels",
        {"n_clusters": 3, "n_outliers": 9, "partitions": "precomputed"},
    ),
    "sparse": ("counts", {"n_clusters": 3, "n_outliers": 10}),
    "sparse cosine": ("counts", {"metric": "cosine"}),
    "categories": ("table", {"n_clusters": 3, "n_outliers": 12, **CATEGORIES}),
    "paper": ("rows", {"n_clusters": 3, "max_samples": 8192, "paper": True}),
}


def make(params):
    params = {"n_partitions": 24, "n_resamples": 9, "random_state": 0, **params}
    if params.pop("paper", False):
        return COR.paper(**params)
    return COR(**params)


def blocks_of(X, sizes):
    """Return a function that gives the rows in blocks of these sizes, in turn."""

    def give():
        start = 0
        n_rows = X.num_rows if hasattr(X, "num_rows") else X.shape[0]
        for size in itertools.cycle(sizes):
            if start >= n_rows:
                return
            yield X.slice(start, size) if hasattr(X, "slice") else X[start:][:size]
            start += size

    return give


def save(X, folder):
    """Write rows to a file that can be read in pieces; return it, or a source."""
    if sparse.issparse(X):
        return ArraySource(X)
    if isinstance(X, np.ndarray):
        np.save(folder / "rows.npy", X)
        return str(folder / "rows.npy")
    pq.write_table(X, folder / "rows.parquet", row_group_size=150)
    return folder / "rows.parquet"


@pytest.mark.filterwarnings("ignore:Too little is known of")
@pytest.mark.parametrize("name", SETTINGS)
def test_any_cut_gives_the_fit_of_all_rows_at_once(name, monkeypatch, tmp_path):
    # In memory, from a file, or from a function; states in memory and on disk.
    data, params = SETTINGS[name]
    X, model = DATA[data](), make(params)
    expected = clone(model).fit(X)
    given = {
        "as it is": (X, 333, False, 3),
        "file": (save(X, tmp_path), 64, False, 1),
        "function": (blocks_of(X, [1, 50, 7, 203]), 97, True, 3),
    }
    if "n_clusters" not in params:
        # Choosing takes long.
        given = {"function": given["function"]}
    for rows, block_rows, spilled, n_jobs in given.values():
        with monkeypatch.context() as patch:
            cut_into(patch, block_rows, spilled=spilled)
            found = clone(model).set_params(n_jobs=n_jobs).fit(rows)
        assert isinstance(found.labels_, np.memmap) == spilled
        assert_same(expected, found)


@pytest.mark.parametrize("n_rows", [1, 2, 3, 7])
@pytest.mark.parametrize("block_rows", [1, 2, 1000])
def test_a_few_rows_in_blocks_of_a_few(n_rows, block_rows, monkeypatch):
    X = draw_rows()[:n_rows]
    model = make({"n_clusters": 1, "n_outliers": n_rows // 3})
    expected = clone(model).fit(X)
    cut_into(monkeypatch, block_rows, spilled=block_rows == 2)
    assert_same(expected, model.fit(blocks_of(X, [1])))


@pytest.mark.parametrize("data", ["rows", "few missing"])
@pytest.mark.parametrize("params", [{}, {"n_clusters": 3, "n_outliers": 9}])
def test_very_many_rows_are_drawn_from_in_the_same_way(data, params, monkeypatch):
    # As if 700 rows were more than a million.
    monkeypatch.setattr(_random, "_SHUFFLED_ROWS", 100)
    monkeypatch.setattr(_choice, "_GAP_ROWS", 200)
    monkeypatch.setattr(_cor, "_LINKAGE_ROWS", 150)
    monkeypatch.setattr(_cor, "_FUSER_ROWS", 150)
    X, model = DATA[data](), make({**params, "max_samples": 60})
    expected = clone(model).fit(X)
    cut_into(monkeypatch, 97, spilled=True)
    assert_same(expected, model.fit(ArraySource(X)))


def test_blocks_of_several_types_are_those_of_the_widest(monkeypatch):
    # Also of whole numbers, with cells missing in a late block only.
    X = draw_rows().astype(np.float32)
    blocks = [X[:300], X[300:500].astype(np.float64), X[500:]]
    model = make({"n_clusters": 3, "n_outliers": 12})
    expected = clone(model).fit(X.astype(np.float64))
    cut_into(monkeypatch, 97)
    assert_same(expected, clone(model).fit(lambda: iter(blocks)))
    numbers = pa.array([None if i % 50 == 3 and i > 500 else i % 9 for i in range(700)])
    table = pa.table({"x": X[:, 0], "y": X[:, 1], "n": numbers.cast(pa.int16())})
    monkeypatch.undo()
    expected = clone(model).fit(table)
    cut_into(monkeypatch, 64)
    assert_same(expected, clone(model).fit(blocks_of(table, [100])))


def test_rows_in_memory_are_one_block_unless_their_states_are_large(monkeypatch):
    X, seen = draw_rows(), []
    cut = COR._cut_rows

    def watch(*args):
        rows = cut(*args)
        seen.append(len(rows.sizes))
        return rows

    monkeypatch.setattr(COR, "_cut_rows", watch)
    model = make({"n_clusters": 3, "n_outliers": 12})
    model.fit(X)
    cut_into(monkeypatch, 100)
    model.fit(X)
    # Weights need all rows at once.
    model.fit(X, sample_weight=np.arange(1.0, 701))
    assert seen == [1, 7, 1]


def test_what_is_told_of_rows_is_only_read(monkeypatch):
    cut_into(monkeypatch, 100, spilled=True)
    model = make({"n_clusters": 3, "n_outliers": 12}).fit(ArraySource(draw_rows()))
    for name in ("labels_", "outlier_scores_", "label_confidence_"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(model, name)[0] = 0


def test_very_many_codes_are_counted_by_ranges(monkeypatch):
    params, X = {"n_clusters": 3, "n_outliers": 12, "n_resamples": 0}, draw_rows()
    expected = make(params).fit(X)
    # Four codes may be in one place, so that their keys are merged in files.
    monkeypatch.setattr(_census, "_MERGED_CODES", 4)
    cut_into(monkeypatch, 100)
    found = make(params).fit(ArraySource(X))
    assert found.storage_.codes == "hash ranges"
    assert found.n_codes_ == expected.n_codes_
    assert_same(expected, found)


@pytest.mark.parametrize("spilled", [False, True])
def test_a_model_of_a_source_can_be_kept_and_predicts(spilled, monkeypatch, tmp_path):
    X = draw_rows()
    expected = make({"n_clusters": 3, "n_outliers": 12}).fit(X)
    cut_into(monkeypatch, 100, spilled=spilled)
    model = make({"n_clusters": 3, "n_outliers": 12}).fit(ArraySource(X))
    pytest.importorskip("skops", reason='pip install "corral[files]"')
    persist.save(model, tmp_path / "model.skops")
    copies = [
        model,
        pickle.loads(pickle.dumps(model)),
        persist.load(tmp_path / "model.skops"),
    ]
    for each in copies:
        assert_same(expected, each)
        np.testing.assert_array_equal(each.predict(X), expected.labels_)
        np.testing.assert_array_equal(each.transform(X), expected.transform(X))


def test_other_processes_map_what_is_told_of_rows(monkeypatch):
    # And its files are removed with the model.
    cut_into(monkeypatch, 100, spilled=True)
    model = make({"n_clusters": 3, "n_outliers": 12}).fit(ArraySource(draw_rows()))
    folder = Path(model.labels_.filename).parent
    assert {path.suffix for path in folder.iterdir()} == {".bin"}
    values = [model.labels_, model.outlier_scores_[3:], model.outlier_confidence_]
    found = Parallel(n_jobs=2)(delayed(np.sum)(each) for each in values)
    assert found == [each.sum() for each in values]
    part = model.labels_[2:5]
    del model, values
    assert folder.exists()
    del part
    assert not folder.exists()


def test_explanations_do_not_depend_on_the_cut(monkeypatch):
    X = draw_rows()
    model = make({"n_clusters": 3, "n_outliers": 12})
    expected = clone(model).fit(X).explain(X[:20])
    cut_into(monkeypatch, 64, spilled=True)
    found = model.fit(ArraySource(X)).explain(X[:20])
    for name in expected.columns:
        one, other = expected[name].to_numpy(), found[name].to_numpy()
        if one.dtype.kind == "f":
            np.testing.assert_allclose(other, one, rtol=1e-9)
        else:
            np.testing.assert_array_equal(other, one)


def test_names_of_columns_are_remembered(tmp_path):
    table = draw_table()
    pq.write_table(table, tmp_path / "rows.parquet")
    model = make({"n_clusters": 3, "n_outliers": 9, **CATEGORIES})
    model.fit(tmp_path / "rows.parquet")
    assert model.feature_names_in_.tolist() == table.column_names
    assert model.n_features_in_ == 7
    np.testing.assert_array_equal(model.predict(table), model.labels_)
    # Not those of an earlier fit.
    model.set_params(categorical_features=None).fit(ArraySource(draw_rows()))
    assert not hasattr(model, "feature_names_in_")
    assert model.n_features_in_ == 4


def test_what_another_fit_left_is_forgotten():
    model = make({"n_clusters": 3, "n_outliers": 9}).fit(ArraySource(draw_rows()))
    assert hasattr(model, "cluster_centers_")
    assert hasattr(model, "label_confidence_")
    model.set_params(partitions="precomputed", n_resamples=0)
    model.fit(ArraySource(draw_labels()))
    for name in ("cluster_centers_", "cluster_spreads_", "_profile"):
        assert not hasattr(model, name)
    for name in ("label_confidence_", "outlier_confidence_", "cluster_stability_"):
        assert not hasattr(model, name)
    assert len(model.labels_) == 700


def test_a_fit_that_fails_leaves_no_labels_of_another():
    model = make({"n_clusters": 3, "n_outliers": 9}).fit(ArraySource(draw_rows()))
    with pytest.raises(ValueError, match="should be smaller than"):
        model.set_params(n_outliers=699).fit(ArraySource(draw_rows()))
    assert not hasattr(model, "labels_")


def test_a_number_that_is_none_is_told_with_its_rows(monkeypatch):
    X = draw_rows(n_rows=1400)
    X[1300, 2] = np.inf
    cut_into(monkeypatch, 100)
    message = r"Rows 1300 to 1399 of ArraySource\(shape=\(1400, 4\)\) cannot be used\. "
    with pytest.raises(ValueError, match=message + "Input X contains infinity"):
        make({"n_clusters": 3, "n_outliers": 9}).fit(ArraySource(X))


@pytest.mark.parametrize("is_source", [False, True])
def test_rows_without_any_given_label_are_refused(is_source, monkeypatch):
    labels = draw_labels()
    labels[[333, 444]] = -1
    cut_into(monkeypatch, 100)
    model = make({"n_clusters": 3, "n_outliers": 9, "partitions": "precomputed"})
    with pytest.raises(ValueError, match="2 rows have no label .* first is row 333"):
        model.fit(ArraySource(labels) if is_source else labels)


def test_rows_of_unknown_cells_are_told_alike(monkeypatch):
    X = draw_rows()
    X[444] = np.nan
    model = make({"n_clusters": 3, "n_outliers": 9})
    message = "Too little is known of 1 of 700 rows: .*; the first is row 444"
    with pytest.warns(UserWarning, match=message):
        expected = clone(model).fit(X)
    cut_into(monkeypatch, 100)
    with pytest.warns(UserWarning, match=message):
        found = clone(model).fit(ArraySource(X))
    assert_same(expected, found)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (
            {"sample_weight": np.ones(700)},
            "sample_weight cannot be used with rows that",
        ),
        ({"extra_partitions": draw_labels()}, "extra_partitions cannot be used with"),
        (
            {"sample_weight": np.ones(700), "extra_partitions": draw_labels()},
            "sample_weight and extra_partitions cannot be used with rows that are read "
            "block by block. Give the rows as an array.",
        ),
    ],
    ids=["weights", "labels", "both"],
)
def test_what_has_no_blocks_is_refused(given, words):
    with pytest.raises(ValueError, match=words):
        make({"n_clusters": 3}).fit(ArraySource(draw_rows()), **given)


@pytest.mark.parametrize("partitions", [[KMeans(3), "kmeans"], KMeans(3)])
def test_clusterers_need_all_rows(partitions):
    message = "has clusterers, which need all rows in memory. Use partitions='kmeans'"
    with pytest.raises(ValueError, match=message):
        make({"n_clusters": 3, "partitions": partitions}).fit(ArraySource(draw_rows()))


def test_only_a_fit_reads_rows_block_by_block():
    source = ArraySource(draw_rows(n_rows=60))
    model = make({"n_clusters": 3, "n_resamples": 0}).fit(source)
    with pytest.raises(TypeError, match="only fit reads rows block by block. Give row"):
        model.predict(source)


@pytest.mark.parametrize("n_outliers", [697, 5000])
def test_more_outliers_than_rows_are_refused_before_any_work(n_outliers):
    X, n_read = ArraySource(draw_rows()), []
    read = X.read
    X.read = lambda *rows: n_read.append(rows) or read(*rows)
    with pytest.raises(ValueError, match=f"n_outliers={n_outliers} should be smaller"):
        make({"n_clusters": 3, "n_outliers": n_outliers}).fit(X)
    assert n_read == [(0, 700)]


def test_codes_that_take_too_much_memory_are_refused(monkeypatch):
    cut_into(monkeypatch, 100)
    monkeypatch.setattr(_memory.Budget, "for_states", property(lambda _: 1000))
    monkeypatch.setattr(EncodedRows, "merge_codes", MERGE_CODES)
    model = make({"n_clusters": 3, "n_outliers": 9, "init": "random-codes"})
    message = r"codes of the blocks of rows need .* kB, and 1 kB are left for them\."
    with pytest.raises(ValueError, match=message):
        model.fit(ArraySource(draw_rows()))


def test_candidates_that_take_too_much_memory_leave_their_confidence_out(monkeypatch):
    # The labels are what they are with more memory.
    X = draw_rows()
    expected = make({"n_clusters": 3, "n_outliers": 9}).fit(X)
    cut_into(monkeypatch, 100)
    monkeypatch.setattr(_memory.Budget, "for_rows", property(lambda _: 1000))
    with pytest.warns(UserWarning, match="outlier_confidence_ is left out") as told:
        found = make({"n_clusters": 3, "n_outliers": 9}).fit(ArraySource(X))
    assert told[0].filename == __file__
    assert not hasattr(found, "outlier_confidence_")
    np.testing.assert_array_equal(found.labels_, expected.labels_)
