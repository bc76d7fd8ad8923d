"""A fit that was killed goes on where it was, and gives what it would have given."""

import itertools
import multiprocessing
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans

from corral import _journal
from corral._journal import Journal
from corral._partitions import Partitioner
from corral.sources import ArraySource, open_source
from tests.test_blocks import (
    CATEGORIES,
    assert_same,
    cut_into,
    draw_counts,
    draw_labels,
    draw_rows,
    draw_table,
    make,
)

PARAMS = {"n_clusters": 3, "n_outliers": 12, "n_partitions": 20, "n_resamples": 4}
BLOCK_ROWS = 120


class Watched(ArraySource):
    """Counts how often rows are read, and ends the process at one of these times."""

    def __init__(self, X, last=None):
        super().__init__(X)
        self.reads = []
        self._last = last

    def read(self, start, stop):
        self.reads.append((start, stop))
        if len(self.reads) == self._last:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().read(start, stop)


def make_model(folder, **params):
    return make({**PARAMS, "checkpoint_dir": folder, **params})


@pytest.fixture
def _blocks(monkeypatch):
    """Cut rows into six blocks; a fit with a checkpoint keeps them on disk."""
    cut_into(monkeypatch, BLOCK_ROWS)


@pytest.fixture(scope="module")
def expected():
    return make(PARAMS).fit(draw_rows())


def fit_and_die(folder, X, *, last_read=None, last_note=None, is_half=False, **params):
    """Fit in blocks, and end the process at a read, or when something is noted.

    Either before what was written takes its place, or when half of it is written.
    """
    patch = pytest.MonkeyPatch()
    cut_into(patch, BLOCK_ROWS)
    if last_note is not None:
        numbers, replace, save = itertools.count(1), Path.replace, _journal._write_array

        def replace_or_die(*args):
            if next(numbers) == last_note:
                os.kill(os.getpid(), signal.SIGKILL)
            return replace(*args)

        def save_or_die(archive, part, array):
            # The last part of each entry.
            if part == "end.npy" and next(numbers) == last_note:
                archive.fp.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            save(archive, part, array)

        if is_half:
            patch.setattr(_journal, "_write_array", save_or_die)
        else:
            patch.setattr(Path, "replace", replace_or_die)
    make_model(folder, **params).fit(Watched(X, last_read))


def is_killed(*args, **options):
    """Do :func:`fit_and_die` in a process of its own; return whether it was killed."""
    # A server that has loaded all once makes the processes.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.test_checkpoint"])
    child = context.Process(target=fit_and_die, args=args, kwargs=options)
    child.start()
    child.join(60)
    assert child.exitcode in (0, -signal.SIGKILL)
    return child.exitcode != 0


can_kill = pytest.mark.skipif(os.name != "posix", reason="needs SIGKILL and forks")


@can_kill
@pytest.mark.usefixtures("_blocks")
def test_killed_at_any_read_it_goes_on(tmp_path, expected):
    # Each run is killed one read later than the one before it, until one is not.
    X = draw_rows()
    n_killed = next(
        number - 1
        for number in range(1, 99)
        if not is_killed(tmp_path, X, last_read=number, n_jobs=1)
    )
    assert n_killed > 6
    assert_same(expected, make_model(tmp_path, n_jobs=1).fit(ArraySource(X)))


@can_kill
@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("last", [2, 5, 9, 12, 17])
def test_killed_once_it_goes_on(tmp_path, expected, last):
    # Another read for each run, in a folder of its own, and with other threads after.
    X = draw_rows()
    assert is_killed(tmp_path, X, last_read=last)
    assert_same(expected, make_model(tmp_path, n_jobs=3).fit(Watched(X)))


@can_kill
@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("is_half", [False, True], ids=["before", "half-way"])
def test_killed_at_any_note_it_goes_on(tmp_path, expected, is_half):
    # Of the notes that are left, each run takes one more than the one before it.
    X = draw_rows()
    n_killed = next(
        number - 1
        for number in range(1, 99)
        if not is_killed(tmp_path, X, last_note=number, is_half=is_half, n_jobs=1)
    )
    assert n_killed >= 4
    assert_same(expected, make_model(tmp_path).fit(ArraySource(X)))
    assert not list(tmp_path.glob(".*"))


@can_kill
@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("last", [1, 2, 3, 4, 8])
def test_killed_at_one_note_it_goes_on(tmp_path, expected, last):
    # The page, the cut, the seed, the scan, a block.
    X = draw_rows()
    assert is_killed(tmp_path, X, last_note=last)
    assert_same(expected, make_model(tmp_path).fit(ArraySource(X)))


@pytest.mark.usefixtures("_blocks")
def test_what_was_done_is_not_done_again(tmp_path, expected, monkeypatch):
    # The second run reads the first rows and those that it adds up for the profile.
    X = draw_rows()
    first, second = Watched(X), Watched(X)
    assert_same(expected, make_model(tmp_path).fit(first))

    def refuse(*_):
        raise AssertionError("rows were labelled again")

    monkeypatch.setattr(Partitioner, "open", refuse)
    # Stage 1 is done again from the rows that were noted; it labels but those.
    monkeypatch.setattr("corral._workplace.encode_block", refuse)
    monkeypatch.setattr("corral._scan.glance", refuse)
    assert_same(expected, make_model(tmp_path).fit(second))
    whole = [(start, min(start + 120, 700)) for start in range(0, 700, 120)]
    assert first.reads[:13] == [(0, 700), *whole, *whole]
    assert len(second.reads) == len(first.reads) - 12


@can_kill
@pytest.mark.usefixtures("_blocks")
def test_blocks_that_were_done_are_not_read_again(tmp_path):
    # Killed at the fourth of the blocks that are labelled, after one look at all six.
    X, source = draw_rows(), Watched(draw_rows())
    assert is_killed(tmp_path, X, last_read=1 + 6 + 4)
    assert [path.name for path in sorted(tmp_path.glob("block-*"))] == [
        f"block-{index:06d}.npz" for index in range(3)
    ]
    make_model(tmp_path).fit(source)
    assert source.reads[:4] == [(0, 700), (360, 480), (480, 600), (600, 700)]


@can_kill
@pytest.mark.usefixtures("_blocks")
def test_without_a_seed_it_goes_on_with_the_one_that_was_drawn(tmp_path):
    X = draw_rows()
    assert is_killed(tmp_path, X, last_read=9, random_state=None)
    seed = int(Journal(tmp_path).read("seed")["seed"])
    model = make_model(tmp_path, random_state=None)
    one, other = clone(model).fit(Watched(X)), clone(model).fit(Watched(X))
    assert_same(one, other)
    assert int(Journal(tmp_path).read("seed")["seed"]) == seed
    # Another folder is another draw.
    another = clone(model).set_params(checkpoint_dir=tmp_path / "other").fit(X)
    assert not np.array_equal(another.outlier_scores_, one.outlier_scores_)


@pytest.mark.usefixtures("_blocks")
def test_a_random_state_may_be_a_generator(tmp_path):
    X = draw_rows()
    one, other = (
        make_model(tmp_path, random_state=np.random.RandomState(seed)).fit(X)
        for seed in (0, 1)
    )
    assert_same(one, other)


@pytest.mark.parametrize("rows", ["array", "labels", "table"])
def test_rows_in_memory_have_checkpoints_too(tmp_path, monkeypatch, rows):
    X, params = draw_rows(), {}
    if rows == "labels":
        X, params = draw_labels(), {"partitions": "precomputed"}
    if rows == "table":
        X, params = draw_table(), CATEGORIES
    expected = make({**PARAMS, **params}).fit(X)
    cut_into(monkeypatch, BLOCK_ROWS)
    for _ in range(2):
        found = make_model(tmp_path, **params).fit(X)
        assert isinstance(found.labels_, np.memmap)
        assert_same(expected, found)
    assert len(list(tmp_path.glob("block-*"))) == 6


def test_categories_of_a_file_are_noted(tmp_path, monkeypatch):
    pq = pytest.importorskip("pyarrow.parquet")
    pq.write_table(draw_table(), tmp_path / "rows.parquet")
    expected = make({**PARAMS, **CATEGORIES}).fit(draw_table())
    cut_into(monkeypatch, BLOCK_ROWS)
    for _ in range(2):
        found = make_model(tmp_path / "notes", **CATEGORIES)
        assert_same(expected, found.fit(tmp_path / "rows.parquet"))


def test_sparse_rows_have_checkpoints_too(tmp_path, monkeypatch):
    X = draw_counts()
    expected = make(PARAMS).fit(X)
    assert_same(expected, make_model(tmp_path / "memory").fit(X))
    with pytest.raises(ValueError, match="is of another fit: rows was .* and is"):
        make_model(tmp_path / "memory").fit(2 * X)
    cut_into(monkeypatch, BLOCK_ROWS)
    for _ in range(2):
        assert_same(expected, make_model(tmp_path / "blocks").fit(ArraySource(X)))


def test_memory_and_threads_may_differ(tmp_path, expected, monkeypatch):
    # The blocks of the first run stay, whatever memory there is for the second.
    X = draw_rows()
    cut_into(monkeypatch, BLOCK_ROWS)
    make_model(tmp_path, n_jobs=1, memory_limit="1GB").fit(ArraySource(X))
    cut_into(monkeypatch, 333)
    found = make_model(tmp_path, n_jobs=3, memory_limit="2GB", verbose=0)
    assert_same(expected, found.fit(ArraySource(X)))
    assert len(list(tmp_path.glob("block-*"))) == 6


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"n_clusters": 4}, "n_clusters was 3 and is 4. Go on with"),
        ({"random_state": 1}, "random_state was 0 and is 1. Go on with"),
        ({"k_range": (2, 9)}, r"k_range was None and is \[2, 9\]. Go on with"),
        ({"n_resamples": 5}, "n_resamples was 4 and is 5. Go on with"),
    ],
    ids=lambda each: next(iter(each)) if isinstance(each, dict) else "",
)
def test_other_parameters_are_refused(tmp_path, params, words):
    X = draw_rows()
    make_model(tmp_path).fit(ArraySource(X))
    message = "is of another fit: " + words
    with pytest.raises(ValueError, match=message):
        make_model(tmp_path, **params).fit(ArraySource(X))


def begin_near(X, n_clusters, random_state):
    return X[:n_clusters]


PARAMETERS = {
    "number": (np.int64(3), 3, 4),
    "array": (np.array([False] * 4), np.zeros(4, bool), np.array([0])),
    "clusterer": ([KMeans(3)], [KMeans(3)], [KMeans(4)]),
    "function": ([KMeans(3, init=begin_near)],) * 2 + ([KMeans(3, init=max)],),
}
NAMES = {"number": "n_clusters", "array": "categorical_features"}


@pytest.mark.parametrize("kind", PARAMETERS)
def test_parameters_of_any_kind_are_told_apart_by_what_they_hold(tmp_path, kind):
    X, name = draw_rows(n_rows=60), NAMES.get(kind, "partitions")
    first, same, other = PARAMETERS[kind]
    small = {"n_partitions": 5, "n_resamples": 0, "n_outliers": 3}
    done = make_model(tmp_path, **small, **{name: first}).fit(X)
    again = make_model(tmp_path, **small, **{name: same}).fit(X)
    np.testing.assert_array_equal(again.labels_, done.labels_)
    with pytest.raises(ValueError, match=f"is of another fit: {name} was .* and is"):
        make_model(tmp_path, **small, **{name: other}).fit(X)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("as_source", [ArraySource, np.asarray, lambda X: lambda: [X]])
def test_other_rows_are_refused(tmp_path, as_source):
    X, other = draw_rows(), draw_rows()
    other[-1, -1] += 1e-9
    make_model(tmp_path).fit(as_source(X))
    with pytest.raises(ValueError, match="is of another fit: rows was .* and is .*"):
        make_model(tmp_path).fit(as_source(other))


def test_rows_with_other_cells_missing_are_refused(tmp_path):
    # Of categories too: no word is not the word "".
    X = np.array([["a", "b"], ["", "b"], ["a", "c"], ["b", "c"]] * 20, dtype=object)
    model = make_model(tmp_path, n_clusters=2, n_outliers=1)
    model.set_params(categorical_features=[0, 1]).fit(X)
    X[1, 0] = None
    with pytest.raises(ValueError, match="is of another fit: rows was"):
        model.fit(X)


@pytest.mark.usefixtures("_blocks")
def test_a_file_that_changed_is_refused(tmp_path):
    path, notes = tmp_path / "rows.npy", tmp_path / "notes"
    np.save(path, draw_rows())
    make_model(notes).fit(path)
    make_model(notes).fit(open_source(path))
    np.save(path, draw_rows(seed=1))
    with pytest.raises(ValueError, match=r"is of another fit: rows was .*rows\.npy"):
        make_model(notes).fit(path)


@pytest.mark.usefixtures("_blocks")
@pytest.mark.parametrize("name", ["block-000003", "scan-700", "seed", "blocks"])
def test_a_damaged_entry_is_refused(tmp_path, name):
    X = draw_rows()
    make_model(tmp_path).fit(ArraySource(X))
    path = tmp_path / f"{name}.npz"
    content = bytearray(path.read_bytes())
    content[len(content) // 3] ^= 4
    path.write_bytes(content)
    message = rf"The checkpoint '.*{name}\.npz' is damaged: .*\. Remove the folder"
    with pytest.raises(ValueError, match=message):
        make_model(tmp_path).fit(ArraySource(X))


@pytest.mark.usefixtures("_blocks")
def test_a_result_stays_as_it_is_while_a_fit_goes_on(tmp_path):
    # The files of its memory maps are written anew, not over.
    X = draw_rows()
    model = make_model(tmp_path).fit(ArraySource(X))
    labels = np.array(model.labels_)
    with pytest.raises(ZeroDivisionError):
        make_model(tmp_path).fit(Failing(X))
    np.testing.assert_array_equal(model.labels_, labels)
    assert_same(model, make_model(tmp_path).fit(ArraySource(X)))


class Failing(ArraySource):
    """Fails when rows are read after the first time."""

    n_reads = 0

    def read(self, start, stop):
        self.n_reads += 1
        if self.n_reads > 1:
            raise ZeroDivisionError
        return super().read(start, stop)


@pytest.mark.parametrize("as_source", [np.asarray, ArraySource])
def test_weights_have_no_checkpoint(tmp_path, as_source):
    weights = np.arange(1.0, 701)
    with pytest.raises(ValueError, match="sample_weight cannot be used with"):
        make_model(tmp_path).fit(as_source(draw_rows()), sample_weight=weights)
    assert not list(tmp_path.iterdir())


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ValueError, match="is a file. Name a folder"):
        make_model(tmp_path / "file").fit(draw_rows())


SCRIPT = """
import sys
from corral import COR
model = COR(3, n_outliers=12, n_partitions=20, n_resamples=4, random_state=0)
model.set_params(checkpoint_dir=sys.argv[1])
print(int(model.fit(sys.argv[2]).labels_.sum()), model.offset_.hex())
"""


def test_another_process_goes_on_with_a_file(tmp_path, expected, monkeypatch):
    # As a script does that is started again.
    path, notes = tmp_path / "rows.npy", tmp_path / "notes"
    np.save(path, draw_rows())
    cut_into(monkeypatch, BLOCK_ROWS)
    make_model(notes).fit(path)
    command = [sys.executable, "-c", SCRIPT, notes, path]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    total, offset = done.stdout.split()
    assert int(total) == expected.labels_.sum()
    assert float.fromhex(offset) == expected.offset_
