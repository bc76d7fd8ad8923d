"""K-means on all rows of a source, by passes, is K-means on all rows in memory."""

import pickle
import tracemalloc
from collections import Counter

import numpy as np
import pytest
from scipy import sparse

from corral import COR, _kmeans_runs, _ladder, _partition_mixin, _random
from corral._assign import Layout
from corral._block_lloyd import BlockLloyd, BlockRung, Learned
from corral._blocks import ArrayRows
from corral._journal import Journal
from corral._ladder import Moments, choose_sizes
from corral._lloyd import LloydRuns, find_largest_values
from corral._progress import LEARNING, watch
from corral._progress import Counter as Progress
from corral._row_blocks import Block, MemoryBlocks
from corral._threads import use_threads
from corral._tiles import RowSpace, Tiles
from corral._validation import Features
from corral._workplace import LocalWorkplace
from corral.sources import ArraySource
from tests.test_blocks import assert_same, cut_into, make, take_out

N_ROWS = 3000
GIVEN = {"n_clusters": 3, "n_outliers": 40, "max_samples": None, "k_range": (2, 6)}


def draw_rows(seed=0, n_rows=N_ROWS, n_features=4):
    """Return three groups that touch, in turn, and a few rows far out."""
    rng = np.random.default_rng(seed)
    y = np.sort(rng.integers(3, size=n_rows))
    X = rng.normal(size=(n_rows, n_features)) + 5 * np.eye(3, n_features)[y]
    far = rng.choice(n_rows, 40, replace=False)
    X[far] = rng.normal(size=(40, n_features)) * 40
    return X


def push_out(X):
    """Return rows of which three are so far out that sums take two levels."""
    X = X.copy()
    X[[5, 1500, 2900]] *= 1e9
    return X


@pytest.fixture
def _passes(monkeypatch):
    """Hold nothing in memory, and begin on few rows."""
    monkeypatch.setattr(_partition_mixin, "MAX_HELD_VALUES", 0)
    monkeypatch.setattr(_ladder, "_MIN_ROWS", 40)


class Watched(ArraySource):
    """Notes which rows are read."""

    def __init__(self, X):
        super().__init__(X)
        self.reads = []

    def read(self, start, stop):
        self.reads.append((start, stop))
        return super().read(start, stop)


class Died(Exception):
    """The end of a fit."""


class Mortal(Watched):
    """Ends the fit at one of its reads."""

    def __init__(self, X, n_reads):
        super().__init__(X)
        self._n_reads = n_reads

    def read(self, start, stop):
        if len(self.reads) == self._n_reads:
            raise Died
        return super().read(start, stop)


def assert_same_runs(one, other):
    """Compare the K-means runs of two fits, to the last bit."""
    one, other = one._partitioner.runs, other._partitioner.runs
    np.testing.assert_array_equal(one.centers, other.centers)
    np.testing.assert_array_equal(one.half_norms, other.half_norms)
    assert one.centers.dtype == other.centers.dtype
    assert one.space.scale == other.space.scale


FEW_MISSING = lambda: take_out(draw_rows(), 0.03)  # noqa: E731
CASES = {
    "given": (draw_rows, {}),
    "default range": (
        lambda: draw_rows(n_rows=17_000),
        {"k_range": None, "n_partitions": 6},
    ),
    "K chosen": (draw_rows, {"n_clusters": "auto", "k_max": 3}),
    "rfs": (draw_rows, {"strategy": "rfs"}),
    "cosine": (draw_rows, {"metric": "cosine"}),
    "k-means++": (draw_rows, {"kmeans_init": "k-means++"}),
    "two iterations": (draw_rows, {"kmeans_max_iter": 2}),
    "no tolerance": (draw_rows, {"kmeans_tol": 0.0}),
    "float32": (lambda: draw_rows().astype(np.float32), {}),
    "float32, cosine": (
        lambda: draw_rows().astype(np.float32),
        {"metric": "cosine"},
    ),
    "whole numbers": (lambda: np.round(draw_rows()).astype(np.int16), {}),
    "far from zero": (lambda: draw_rows() * 1e-3 + 1e6, {}),
    "far rows": (lambda: push_out(draw_rows()), {}),
    "huge": (lambda: draw_rows() * 1e200, {}),
    "few distinct": (lambda: np.repeat(draw_rows()[:9], 300, axis=0), {}),
    "all equal": (lambda: np.ones((N_ROWS, 3)), {"n_clusters": 1}),
    "few missing": (FEW_MISSING, {}),
    "few missing, rfs": (FEW_MISSING, {"strategy": "rfs"}),
    "many missing": (lambda: take_out(draw_rows(), 0.4), {}),
    "missing at the end": (
        lambda: np.concatenate([draw_rows()[:2000], take_out(draw_rows()[2000:], 0.6)]),
        {},
    ),
    "paper": (draw_rows, {"paper": True}),
    "paper, rfs": (draw_rows, {"paper": True, "strategy": "rfs"}),
    "wide": (lambda: draw_rows(n_features=600), {}),
}


@pytest.mark.usefixtures("_passes")
@pytest.mark.filterwarnings("ignore:Too little is known")
@pytest.mark.parametrize("case", CASES)
def test_passes_give_the_runs_of_memory(monkeypatch, case):
    draw, params = CASES[case]
    X, model = draw(), make({**GIVEN, **params})
    expected = pickle.loads(pickle.dumps(model)).fit(X)
    # Many blocks, but not hundreds.
    cut_into(monkeypatch, max(64, X.shape[0] // 40))
    n_sweeps, sweep = [], BlockLloyd._sweep
    monkeypatch.setattr(
        BlockLloyd, "_sweep", lambda *args: (n_sweeps.append(1), sweep(*args))
    )
    found = model.fit(ArraySource(X))
    assert n_sweeps
    assert_same_runs(expected, found)
    assert_same(expected, found)


@pytest.mark.usefixtures("_passes")
def test_very_many_rows_are_not_shuffled(monkeypatch):
    # Only some rows are drawn for the origin, in memory as well.
    monkeypatch.setattr(_random, "_SHUFFLED_ROWS", 100)
    for module in (_kmeans_runs, _ladder):
        monkeypatch.setattr(module, "MAX_FIRST_ROWS", 200)
    monkeypatch.setattr("corral._block_ladder.MAX_FIRST_ROWS", 200)
    for X in (draw_rows(), FEW_MISSING()):
        expected = make(GIVEN).fit(X)
        with monkeypatch.context() as patch:
            cut_into(patch, 700)
            found = make(GIVEN).fit(ArraySource(X))
        assert_same_runs(expected, found)
        assert_same(expected, found)


@pytest.mark.usefixtures("_passes")
def test_few_rows_are_held_whatever_their_width(monkeypatch):
    # A ladder of one part has no place for passes.
    monkeypatch.setattr(_ladder, "_MIN_ROWS", N_ROWS)
    cut_into(monkeypatch, 500)
    for X in (draw_rows(), FEW_MISSING()):
        expected = make({**GIVEN, "kmeans_init": "k-means++"}).fit(X)
        found = make({**GIVEN, "kmeans_init": "k-means++"}).fit(ArraySource(X))
        assert_same_runs(expected, found)
        assert_same(expected, found)


def test_large_parts_are_left_out():
    # Each eight times the one before, but for those that are not held in memory.
    assert choose_sizes(10**5, 10, 5) == [12_500, 10**5]
    assert choose_sizes(15_000, 10, 5) == [15_000]
    assert choose_sizes(10**6, 10, 5) == [15_625, 125_000, 10**6]
    assert choose_sizes(10**6, 200, 5) == [15_625, 10**6]
    assert choose_sizes(10**7, 2, 5) == [2_441, 19_531, 156_250, 10**7]
    # The first one is held in any case.
    assert choose_sizes(10**5, 10**5, 5) == [12_500, 10**5]


def test_skipped_draws_are_those_of_one_generator():
    # Also with half a number left over from whole ones.
    one = np.random.default_rng(0)
    one.integers(5, size=3)
    other = pickle.loads(pickle.dumps(one))
    expected = one.random(100)
    part = pickle.loads(pickle.dumps(other))
    _random.skip_draws(part, 60)
    np.testing.assert_array_equal(part.random(40), expected[60:])
    _random.skip_draws(other, 100)
    np.testing.assert_array_equal(other.integers(9, size=9), one.integers(9, size=9))


class Case:
    """Rows, centres to start from, and both ways to run Lloyd's algorithm."""

    def __init__(self, X, n_clusters, starts, *, features=None, spherical=False):
        self.X, self.starts = X, starts
        self.layout = Layout(np.array(n_clusters))
        metric = "cosine" if spherical else "euclidean"
        self.space = RowSpace.fit(metric, X)
        self.tiles = Tiles(ArrayRows(X), self.space, self.layout.n_cells, 128)
        self.options = {"features": features, "spherical": spherical}

    def take_starts(self):
        return self.space.place(self.X[self.starts])

    def run_in_memory(self, max_iter):
        lloyd = LloydRuns(
            self.tiles, None, self.layout, self.take_starts(), **self.options
        )
        with use_threads(1) as threads:
            lloyd.run(max_iter, np.zeros(self.layout.n_runs), threads)
        lloyd.sort_centers()
        return lloyd

    def run_passes(self, max_iter, sizes, journal=None):
        whole = Block(Features(self.X, [], len(self.X)), [])
        starts = (np.cumsum(sizes) - sizes).tolist()
        with use_threads(2) as threads:
            rows = MemoryBlocks(whole, np.array(sizes))
            rung = BlockRung(
                LocalWorkplace(rows, threads, journal=journal),
                Learned(None, None, complete_only=False),
                starts,
                len(self.X),
                find_largest_values(self.tiles, None),
                Moments.add_up(self.tiles, None),
            )
            args = rung, self.space, self.layout, self.take_starts()
            lloyd = BlockLloyd(*args, **self.options)
            counter = Progress(LEARNING, self.layout.n_runs)
            lloyd.run(max_iter, np.zeros(self.layout.n_runs), counter)
        lloyd.sort_centers()
        return lloyd


def make_refilled(kind):
    """Return runs that start on equal rows, so that most of their cells are empty."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 3))
    # Many rows are equally far, in several blocks.
    X[rng.choice(500, 60, replace=False)] = [30.0, 0, 1]
    X = np.round(X, 1)
    n_clusters = [2, 3, 3, 7, 9]
    starts = rng.integers(3, size=sum(n_clusters))
    features = None
    if kind == "features":
        features = np.ones((5, 3), dtype=bool)
        features[[1, 3], [0, 2]] = False
    return Case(X, n_clusters, starts, features=features, spherical=kind == "cosine")


CUTS = {"one": [500], "two": [333, 167], "many": [7, 64, 29] * 5, "first": [1, 499]}


@pytest.mark.parametrize("kind", ["plain", "features", "cosine"])
@pytest.mark.parametrize("max_iter", [1, 2, 3, 50])
@pytest.mark.parametrize("cut", CUTS)
def test_empty_cells_are_refilled_as_in_memory(kind, max_iter, cut):
    case = make_refilled(kind)
    expected = case.run_in_memory(max_iter)
    found = case.run_passes(max_iter, CUTS[cut])
    np.testing.assert_array_equal(found.centers, expected.centers)
    np.testing.assert_array_equal(found.half_norms, expected.half_norms)
    if max_iter == 1:
        # There were cells to refill.
        assert case.layout.n_cells > len(np.unique(case.starts)) * 5


def test_more_cells_than_distinct_rows_stay_empty():
    X = np.repeat([[0.0], [1.0], [5.0]], [50, 3, 50], axis=0)
    case = Case(X, [5, 5], np.array([0, 0, 1, 1, 60, 60, 0, 1, 60, 0]))
    expected = case.run_in_memory(20)
    found = case.run_passes(20, [10, 43, 50])
    assert np.isinf(expected.half_norms).sum() == 4
    np.testing.assert_array_equal(found.centers, expected.centers)
    np.testing.assert_array_equal(found.half_norms, expected.half_norms)


def test_an_iteration_that_was_noted_is_not_done_again(tmp_path):
    case, journal = make_refilled("plain"), Journal(tmp_path)
    expected = case.run_passes(50, CUTS["two"])
    case.run_passes(3, CUTS["two"], journal)
    done = journal.read("lloyd")
    assert done["n_done"] == 3
    found = case.run_passes(50, CUTS["many"], journal)
    np.testing.assert_array_equal(found.centers, expected.centers)
    assert journal.read("lloyd")["n_done"] > 3
    # From what is noted at the end, without any rows.
    rested = case.run_passes(50, CUTS["two"], journal)
    np.testing.assert_array_equal(rested.centers, expected.centers)


@pytest.mark.usefixtures("_passes")
@pytest.mark.parametrize("n_partitions", [2, 24])
def test_one_read_of_a_block_serves_all_runs(monkeypatch, n_partitions):
    cut_into(monkeypatch, 600)
    source, n_passes = Watched(draw_rows()), Counter()
    fit_runs, add_up = _partition_mixin.fit_kmeans_runs, LocalWorkplace.add_up
    learning = []

    def fit_and_note(*args):
        before = len(source.reads)
        found = fit_runs(*args)
        learning.extend(source.reads[before:])
        return found

    def add_up_and_count(self, function, *args, **options):
        n_passes[function.__name__] += 1
        return add_up(self, function, *args, **options)

    monkeypatch.setattr(_partition_mixin, "fit_kmeans_runs", fit_and_note)
    monkeypatch.setattr(LocalWorkplace, "add_up", add_up_and_count)
    make({**GIVEN, "n_partitions": n_partitions, "kmeans_tol": 0.0}).fit(source)
    before = ("survey_block", "measure_block", "draw_block")
    assert [n_passes[name] for name in before] == [1, 1, 1]
    assert n_passes["sweep_block"] > 1
    # Each pass reads all blocks in their order, and nothing else is read.
    blocks = [(start, start + 600) for start in range(0, N_ROWS, 600)]
    assert set(n_passes) == {*before, "sweep_block"}
    assert learning == blocks * n_passes.total()


@pytest.mark.usefixtures("_passes")
@pytest.mark.parametrize("case", ["given", "few missing"])
def test_killed_at_any_read_it_goes_on(monkeypatch, tmp_path, case):
    draw, params = CASES[case]
    X, params = draw(), {**GIVEN, **params, "n_jobs": 1, "kmeans_tol": 0.0}
    expected = make(params).fit(X)
    cut_into(monkeypatch, 600)
    undisturbed = Watched(X)
    make(params).fit(undisturbed)
    model = make({**params, "checkpoint_dir": tmp_path})
    # A fit begins with one read and a pass takes five, so each time one more is done.
    n_died = 0
    while True:
        try:
            model.fit(Mortal(X, 6 + n_died))
            break
        except Died:
            n_died += 1
    assert n_died > 5
    # The last fit had less to do.
    assert 6 + n_died < len(undisturbed.reads) / 2
    assert (tmp_path / "lloyd.npz").exists()
    assert_same_runs(expected, model)
    assert_same(expected, model)


@pytest.mark.usefixtures("_passes")
def test_progress_is_told_for_each_pass(monkeypatch):
    cut_into(monkeypatch, 600)
    told = []
    with watch(lambda *report: told.append(report)):
        make({**GIVEN, "kmeans_tol": 0.0}).fit(ArraySource(draw_rows()))
    done = [report[1:] for report in told if report[0] == LEARNING]
    assert done == sorted(done)
    assert done[0] == (0, 48)
    assert done[-1] == (48, 48)
    # More often than once for each of the two parts.
    assert len(done) > 5


@pytest.mark.usefixtures("_passes")
def test_memory_does_not_grow_with_the_rows(monkeypatch, tmp_path):
    # 20 MB of rows in blocks of half a megabyte.
    cut_into(monkeypatch, 2**13, spilled=True)
    monkeypatch.setattr(_ladder, "_MIN_ROWS", 2048)
    rng = np.random.default_rng(0)
    path = tmp_path / "rows.npy"
    X = rng.normal(size=(320_000, 8)) + 5 * rng.integers(3, size=(320_000, 1))
    np.save(path, X)
    size = X.nbytes
    del X
    model = COR.paper(3, n_outliers=100, n_partitions=5, n_init=2, random_state=0)
    model.set_params(kmeans_max_iter=3, n_resamples=0, n_jobs=1)
    peaks = []
    fit_runs = _partition_mixin.fit_kmeans_runs

    def measure(*args):
        tracemalloc.start()
        found = fit_runs(*args)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        return found

    monkeypatch.setattr(_partition_mixin, "fit_kmeans_runs", measure)
    model.fit(path)
    # The larger part has an eighth of the rows, which is held twice for a moment.
    assert len(peaks) == 1
    assert peaks[0] < 0.7 * size


@pytest.mark.usefixtures("_passes")
def test_many_sparse_rows_are_refused(monkeypatch):
    X = sparse.random(2000, 50, 0.1, format="csr", random_state=0)
    with pytest.raises(
        ValueError, match=r"max_samples=None learns from all rows, and X has 2000"
    ):
        make(GIVEN).fit(ArraySource(X))
    # Those of few values are held.
    monkeypatch.setattr(_partition_mixin, "MAX_HELD_VALUES", 20_000)
    found = make(GIVEN).fit(ArraySource(X))
    assert_same(make(GIVEN).fit(X), found)


@pytest.mark.usefixtures("_passes")
def test_labels_need_no_pass(monkeypatch):
    labels = np.random.default_rng(0).integers(3, size=(600, 8))
    params = {**GIVEN, "partitions": "precomputed"}
    cut_into(monkeypatch, 100)
    assert_same(make(params).fit(labels), make(params).fit(ArraySource(labels)))
