"""K-means-- on rows that are read block by block: the same as in memory, to the bit."""

import subprocess
import sys

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from corral._memory import Budget
from corral.rivals import KMeansMinusMinus, _block_runs, _kmeans_minus_minus
from corral.rivals._tally import Tally
from corral.rivals._totals import ExactTotal
from corral.sources import open_source

TOLD = (
    "labels_",
    "nearest_labels_",
    "outlier_scores_",
    "cluster_centers_",
    "objective_history_",
)
NUMBERS = ("objective_", "n_iter_", "offset_", "n_outliers_")


@pytest.fixture
def cut_into(monkeypatch):
    """Return what has sources cut into blocks of so many rows."""

    def cut(block_rows):
        monkeypatch.setattr(Budget, "count_block_rows", lambda *_: block_rows)

    return cut


@pytest.fixture
def passes(monkeypatch):
    """Return a list that gets the questions of each pass over all rows."""
    asked = []
    ask = _block_runs.BlockRuns._ask

    def note(runs, questions):
        asked.append(list(questions))
        return ask(runs, asked[-1])

    monkeypatch.setattr(_block_runs.BlockRuns, "_ask", note)
    return asked


def draw_rows(seed=0, n_samples=300, n_features=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_samples, n_features))
    return X + 4 * rng.normal(size=(4, n_features))[rng.integers(4, size=n_samples)]


def draw_whole_numbers(seed=0, n_samples=300):
    """Return rows many of which are equal, or equally far from anything."""
    return np.random.default_rng(seed).integers(-2, 3, size=(n_samples, 2)) * 1.0


def in_pieces(X, n_rows=37):
    """Return an iterator factory."""
    return lambda: (X[i : i + n_rows] for i in range(0, X.shape[0], n_rows))


def fit_both(X, n_clusters=4, **parameters):
    parameters = {"random_state": 0, "n_init": 3, "n_outliers": 15, **parameters}
    whole = KMeansMinusMinus(n_clusters, **parameters).fit(X)
    return whole, KMeansMinusMinus(n_clusters, **parameters).fit(in_pieces(X))


def assert_same(one, other):
    for name in TOLD:
        first, second = getattr(one, name), getattr(other, name)
        assert first.dtype == second.dtype
        np.testing.assert_array_equal(first, second, err_msg=name)
    for name in NUMBERS:
        assert getattr(one, name) == getattr(other, name), name


@pytest.mark.parametrize("block_rows", [7, 64, 299, 1000])
@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_blocks_give_what_memory_gives(cut_into, seed, block_rows, metric, dtype):
    cut_into(block_rows)
    assert_same(*fit_both(draw_rows(seed).astype(dtype), metric=metric))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
def test_long_rows_do_not_depend_on_their_neighbours(cut_into, metric):
    cut_into(1)
    X = draw_rows(n_samples=30, n_features=20_000)
    assert_same(*fit_both(X, 3, n_outliers=2, n_init=1, metric=metric))


def test_a_row_in_each_block(cut_into):
    cut_into(1)
    assert_same(*fit_both(draw_rows(n_samples=60), n_outliers=4, n_init=1))


@pytest.mark.parametrize("n_outliers", [0, 1, 100, 295])
def test_any_number_of_outliers(cut_into, seed, n_outliers):
    cut_into(50)
    assert_same(*fit_both(draw_rows(seed), n_outliers=n_outliers))


@pytest.mark.parametrize("tol", [0, 0.1])
@pytest.mark.parametrize("n_clusters", [1, 6])
def test_other_parameters(cut_into, seed, tol, n_clusters):
    cut_into(101)
    assert_same(*fit_both(draw_rows(seed), n_clusters, tol=tol))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_blocks(cut_into, seed, metric, dtype):
    cut_into(41)
    X = draw_rows(seed, n_features=9)
    X[X < 1] = 0
    # One long row: how exact labels are depends on the longest row of any block.
    X[200] = 1.5
    assert_same(*fit_both(sparse.csr_array(X.astype(dtype)), metric=metric))


@pytest.mark.parametrize("metric", ["euclidean", "cosine"])
@pytest.mark.parametrize("gathered_values", [0, 2**21], ids=["few", "many"])
@pytest.mark.parametrize("block_rows", [19, 120])
def test_ties_across_blocks(
    cut_into, seed, metric, gathered_values, block_rows, monkeypatch
):
    cut_into(block_rows)
    monkeypatch.setattr(_block_runs, "_GATHERED_VALUES", gathered_values)
    assert_same(*fit_both(draw_whole_numbers(seed), metric=metric))


def test_of_equally_far_rows_the_first_are_set_aside(cut_into, monkeypatch):
    # Rows 10 to 13 cost 25 each, in two blocks; two of them are set aside.
    X = np.array([[0.0]] * 10 + [[5.0]] * 3 + [[-5.0]])
    start = np.zeros((1, 1))
    for block_rows in (1, 11, 14):
        for gathered_values in (0, 100):
            cut_into(block_rows)
            monkeypatch.setattr(_block_runs, "_GATHERED_VALUES", gathered_values)
            model = KMeansMinusMinus(1, n_outliers=2, init=start, tol=0)
            model.fit(in_pieces(X))
            np.testing.assert_array_equal(np.flatnonzero(model.labels_ == -1), [10, 11])


def test_too_many_rows_near_the_cut_take_more_passes(
    cut_into, seed, monkeypatch, passes
):
    cut_into(80)
    monkeypatch.setattr(_block_runs, "_GATHERED_VALUES", 12)
    assert_same(*fit_both(draw_rows(seed), n_outliers=90, n_init=1))


def test_far_rows(cut_into, seed):
    cut_into(70)
    X = draw_rows(seed)
    X[::60] *= 1e12
    for n_outliers in (0, 3, 15):
        assert_same(*fit_both(X, n_outliers=n_outliers))
    whole, blocks = fit_both(X.astype(np.float32), n_outliers=5)
    assert_same(whole, blocks)


def test_far_rows_do_not_wipe_out_the_objective(seed):
    # Squares of 1e24 come and go; what is kept costs a few hundreds.
    X = draw_rows(seed)
    X[::60] = 1e12
    model = KMeansMinusMinus(4, n_outliers=5, init=X[1:5], tol=0).fit(X)
    kept = model.labels_ >= 0
    assert model.objective_ == pytest.approx(model.outlier_scores_[kept].sum())
    assert (model.objective_history_ > 0).all()


@pytest.mark.parametrize("factor", [2.0**110, 2.0**-60])
def test_huge_and_tiny_values(cut_into, factor):
    cut_into(90)
    assert_same(*fit_both((draw_rows() * factor).astype(np.float32)))


def test_emptied_clusters_are_refilled_from_any_block(cut_into, seed):
    X = np.random.default_rng(seed).normal(size=(60, 2))
    starts = np.concatenate([[[0.0, 0.0]], np.full((4, 2), 1e6)])
    for block_rows in (1, 7, 60):
        cut_into(block_rows)
        whole, blocks = fit_both(X, 5, init=starts, n_outliers=3, tol=0)
        assert_same(whole, blocks)
        assert sorted(set(blocks.labels_.tolist())) == [-1, 0, 1, 2, 3, 4]


def test_clusters_that_stay_empty_are_told(cut_into):
    cut_into(3)
    X = np.full((10, 3), 0.1)
    model = KMeansMinusMinus(2, n_outliers=3, random_state=0)
    with pytest.warns(ConvergenceWarning, match=r"Only 1 of n_clusters=2 clusters"):
        model.fit(in_pieces(X))
    np.testing.assert_array_equal(model.labels_, [-1] * 3 + [0] * 7)


def test_max_iter_is_told(cut_into):
    cut_into(100)
    X = draw_rows()
    model = KMeansMinusMinus(4, n_outliers=5, init=X[:4], max_iter=1, tol=0)
    with pytest.warns(
        ConvergenceWarning, match=r"stopped at max_iter=1 before"
    ) as told:
        model.fit(in_pieces(X))
    assert model.n_iter_ == 1
    # The warning points at the call of fit.
    assert told[0].filename == __file__


def test_an_iteration_takes_one_pass_and_the_first_two(cut_into, passes):
    cut_into(1000)
    X = draw_rows(n_samples=4000)
    model = KMeansMinusMinus(4, n_outliers=200, init=X[:4], tol=0).fit(
        in_pieces(X, 500)
    )
    assert model.n_iter_ > 5
    assert len(passes) <= 1.5 * model.n_iter_ + 2


def test_all_restarts_share_passes(cut_into, passes):
    cut_into(200)
    KMeansMinusMinus(4, n_outliers=9, n_init=7, random_state=0).fit(
        in_pieces(draw_rows())
    )
    assert len(passes[0]) == 7
    # The last one compares all of them.
    assert len(passes[-1]) == 7


def test_very_many_rows_are_not_shuffled(cut_into, monkeypatch):
    monkeypatch.setattr(_kmeans_minus_minus, "_SHUFFLED_ROWS", 100)
    cut_into(64)
    assert_same(*fit_both(draw_rows()))
    rng = np.random.RandomState(0)
    drawn = _kmeans_minus_minus.draw_few(rng, 101, 99)
    assert len(np.unique(drawn)) == 99
    assert drawn.min() >= 0
    assert drawn.max() < 101


def test_answers_go_to_files_where_they_are_many(cut_into, monkeypatch):
    cut_into(64)
    monkeypatch.setattr(Budget, "for_states", 1000)
    whole, blocks = fit_both(draw_rows())
    assert isinstance(blocks.labels_, np.memmap)
    assert_same(whole, blocks)


def test_files_and_sources(tmp_path, cut_into):
    pa = pytest.importorskip("pyarrow", reason='pip install "corral[files]"')
    import pyarrow.parquet as pq

    cut_into(45)
    X = draw_rows()
    np.save(tmp_path / "rows.npy", X)
    table = pa.table({name: X[:, j] for j, name in enumerate("abc")})
    pq.write_table(table, tmp_path / "rows.parquet", row_group_size=77)
    whole = KMeansMinusMinus(4, n_outliers=15, random_state=0).fit(X)
    for source in (
        tmp_path / "rows.npy",
        str(tmp_path / "rows.parquet"),
        open_source(X),
    ):
        model = KMeansMinusMinus(4, n_outliers=15, random_state=0).fit(source)
        assert_same(whole, model)
        assert model.n_features_in_ == 3
    model.fit(tmp_path / "rows.parquet")
    np.testing.assert_array_equal(model.feature_names_in_, ["a", "b", "c"])
    np.testing.assert_array_equal(model.predict(table), whole.predict(X))


def test_what_cannot_be_used_is_refused(cut_into):
    cut_into(50)
    X = draw_rows()
    with pytest.raises(
        ValueError, match=r"sample_weight cannot be used with rows that"
    ):
        KMeansMinusMinus(4).fit(in_pieces(X), sample_weight=np.ones(len(X)))
    with pytest.raises(
        ValueError, match=r"init='k-means\+\+' cannot be used with rows"
    ):
        KMeansMinusMinus(4, init="k-means++").fit(in_pieces(X))
    with pytest.raises(ValueError, match=r"n_outliers=296 should be smaller than"):
        KMeansMinusMinus(4, n_outliers=296).fit(in_pieces(X))
    with pytest.raises(ValueError, match=r"memory_limit=1000 should be more than"):
        KMeansMinusMinus(4, memory_limit=1000).fit(in_pieces(X))
    X = draw_rows(n_samples=1200)
    X[1120, 1] = np.nan
    with pytest.raises(ValueError, match=r"Rows 1100 to 1149 of .*contains NaN"):
        KMeansMinusMinus(4).fit(in_pieces(X))


_FIT_LARGE = """
from itertools import islice
from pathlib import Path
import numpy as np
from corral.rivals import KMeansMinusMinus

rng = np.random.default_rng(0)
rows = rng.normal(size=(2**15, 32)) + 9 * rng.integers(3, size=(2**15, 1))

def blocks():
    # Made anew at each pass, from rows that cost nothing to draw again.
    for number in range(8):
        yield np.roll(rows, number, axis=1)

def peak():
    # Not that of getrusage, which a process may inherit.
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(each.split()[1]) for each in lines if each.startswith("VmHWM"))

small = lambda: (block[:300] for block in islice(blocks(), 2))
KMeansMinusMinus(3, max_iter=2, tol=1, random_state=0).fit(small)
before = peak()
model = KMeansMinusMinus(
    3, max_iter=2, tol=1, memory_limit="400MB", random_state=0
).fit(blocks)
after = peak()
print(after - before, after)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="memory is told in kB on Linux")
def test_memory_is_bounded():
    # 67 MB of rows, in a process that may take 60 MB more than with a few.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _FIT_LARGE],
        capture_output=True,
        text=True,
        check=True,
    )
    more, most = map(int, done.stdout.split())
    assert more < 60_000
    assert most < 400_000


def test_totals_are_exact():
    rng = np.random.default_rng(0)
    values = rng.normal(size=500) * 10.0 ** rng.integers(-200, 200, size=500)
    values[:3] = [0.0, 5e-324, -5e-324]
    from math import fsum

    assert float(ExactTotal.of(values)) == fsum(values)
    parts = ExactTotal.of(values[:77]) + ExactTotal.of(values[77:])
    assert parts.units == ExactTotal.of(values[::-1]).units
    assert float(parts - ExactTotal.of(values[100:])) == fsum(values[:100])
    assert float(ExactTotal.of_whole(7)) == 7
    assert float(ExactTotal.of(np.zeros(0))) == 0


@pytest.mark.parametrize("shift", [0, 44])
@pytest.mark.parametrize("most_keys", [8, 4096])
def test_tallies_bound_the_nth_largest(seed, shift, most_keys, monkeypatch):
    from corral.rivals import _tally

    monkeypatch.setattr(_tally, "_MOST_KEYS", most_keys)
    rng = np.random.default_rng(seed)
    costs = np.abs(rng.normal(size=400)) * 10.0 ** rng.integers(-9, 9, size=400)
    costs[:50] = 0.0
    costs[50:60] = -0.0
    whole = Tally.of(costs, shift)
    parts = Tally.of(costs[:3], shift) + Tally.of(costs[3:3], shift)
    parts += Tally.of(costs[3:], shift)
    for tally in (whole, parts):
        assert tally.n_costs == 400
        assert len(tally.keys) <= most_keys
        for n in (1, 2, 57, 340, 400):
            low, high = tally.find(n)
            assert low <= np.sort(costs)[-n] <= high


def test_tallies_of_few_costs_are_exact():
    tally = Tally.of(np.array([3.0, 1.0])) + Tally.of(np.array([1.0, 0.5, 1.0]))
    assert tally.is_exact
    assert tally.find(1) == (3.0, 3.0)
    assert tally.find(4) == (1.0, 1.0)
    assert tally.count(1.0) == 3
    assert tally.count_above(1.0) == 1
