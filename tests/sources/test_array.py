"""Arrays, memory maps and .npy files are read in pieces and pickled as they should."""

import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from corral.sources import ArraySource, UnreadableBlockError, open_source

X = np.random.default_rng(0).normal(size=(50, 3))
SPARSE = sparse.random_array(
    (50, 3), density=0.4, random_state=np.random.default_rng(1)
)


@pytest.fixture
def npy(tmp_path):
    def npy(values, name="x.npy"):
        np.save(tmp_path / name, values)
        return tmp_path / name

    return npy


@pytest.mark.parametrize(
    "make",
    [
        lambda npy: X,
        lambda npy: np.asfortranarray(X),
        lambda npy: X[:, ::-1],
        lambda npy: npy(X),
        lambda npy: str(npy(np.asfortranarray(X))),
        lambda npy: np.load(npy(X), mmap_mode="r"),
        lambda npy: sparse.csr_array(SPARSE),
        lambda npy: SPARSE.tocsc(),
    ],
    ids=["c", "fortran", "view", "npy", "npy_fortran", "memmap", "csr", "csc"],
)
def test_any_ranges_equal_the_whole(make, npy, read_in_ranges):
    data = make(npy)
    expected = data
    if isinstance(data, str) or hasattr(data, "suffix"):
        expected = np.load(data)
    elif sparse.issparse(data):
        expected = data.tocsr()
    source = open_source(data)
    read_in_ranges(source, expected)
    read_in_ranges(pickle.loads(pickle.dumps(source)), expected)
    assert source.names is None
    assert source.skipped == []


@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_of_a_file_are_plain_copies_in_c_order(npy, order):
    rows = open_source(npy(np.array(X, order=order))).read(3, 9)
    assert type(rows) is np.ndarray
    assert rows.flags.c_contiguous
    # Not mapped, so that they are no part of the file any more.
    assert not isinstance(rows.base, np.memmap)


def test_what_was_read_of_a_file_is_no_memory_of_the_process(npy):
    # Pages of a map that were looked at count, so that a file would as a whole.
    path = npy(np.zeros((2**20, 8)))
    code = (
        "import sys; from pathlib import Path; from corral.sources import open_source\n"
        "statm = Path('/proc/self/statm')\n"
        "def held(): return int(statm.read_text().split()[1]) * 4096\n"
        "source = open_source(sys.argv[1]); before = held()\n"
        "for start in range(0, 2**20, 2**16): source.read(start, start + 2**16)\n"
        "print(held() - before)"
    )
    if not Path("/proc/self/statm").exists():
        pytest.skip("needs Linux, which tells the memory of a process in /proc")
    command = [sys.executable, "-c", code, str(path)]
    found = subprocess.run(command, check=True, capture_output=True, text=True)
    assert int(found.stdout) < 2**24


def test_a_mapped_file_is_pickled_without_its_rows(npy):
    path = npy(np.zeros((10_000, 4)))
    for data in (path, np.load(path, mmap_mode="r")):
        assert len(pickle.dumps(open_source(data))) < 2000


def test_a_part_of_a_map_is_pickled_with_its_rows(npy):
    # NumPy does not tell where in the file a part of a map begins.
    part = np.load(npy(X), mmap_mode="r")[10:20]
    source = pickle.loads(pickle.dumps(open_source(part)))
    np.testing.assert_array_equal(source.read(0, 10), X[10:20])


def test_a_file_that_changed_is_not_read_by_another_process(npy):
    source = open_source(npy(X))
    sent = pickle.dumps(source)
    npy(X[:20])
    with pytest.raises(UnreadableBlockError, match="x.npy' has changed since"):
        pickle.loads(sent).read(0, 1)


def test_borders_part_large_arrays():
    wide = np.broadcast_to(np.zeros(1), (1000, 2**20))
    source = ArraySource(wide)
    assert source.borders == [*range(0, 1000, 8), 1000]
    assert ArraySource(X).borders == [0, 50]


def test_fingerprints_change_with_the_values(npy):
    changed = X.copy()
    changed[3, 1] += 1
    prints = [open_source(each).fingerprint() for each in (X, X.copy(), changed)]
    assert prints[0] == prints[1] != prints[2]
    first = open_source(npy(X)).fingerprint()
    assert json.loads(json.dumps(first)) == first
    assert first["paths"] == [str(npy(X).absolute())]
    assert open_source(npy(X[:30])).fingerprint() != first
    several = [SPARSE, SPARSE * 2]
    assert len({open_source(each).fingerprint()["digest"] for each in several}) == 2


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (np.arange(5.0), r"x.npy' has the shape \(5,\); .* Use X.reshape\(5, 1\)"),
        (np.zeros((2, 2, 2)), r"shape \(2, 2, 2\); it should have rows and columns"),
        (np.array([[1, "a"]], dtype=object), "holds Python objects, which are not"),
        (np.array([["a", "b"]]), "holds <U1 cells; they should be numbers"),
        (np.zeros((2, 2), complex), "holds complex128 cells"),
        (np.zeros((0, 3)), "has no rows"),
        (np.zeros((3, 0)), "has no columns"),
    ],
)
def test_arrays_that_are_no_rows_are_refused(npy, values, words):
    with pytest.raises(ValueError, match=words):
        open_source(npy(values))


def test_arrays_in_memory_that_have_no_rows_are_refused():
    for rows in (X[:0], sparse.csr_array(SPARSE)[:0]):
        with pytest.raises(ValueError, match="The array has no rows"):
            ArraySource(rows)


def test_a_map_that_was_changed_in_memory_is_read_from_there(npy):
    changed = np.load(npy(X), mmap_mode="c")
    changed[3, 1] = 99
    assert ArraySource(changed).read(3, 4)[0, 1] == 99
    assert ArraySource(np.load(npy(X), mmap_mode="r")).read(3, 4)[0, 1] == X[3, 1]


def test_broken_files_are_refused(npy, tmp_path):
    path = npy(X)
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(UnreadableBlockError, match="x.npy' is broken or cut off"):
        open_source(path)
    path.write_bytes(b"")
    with pytest.raises(UnreadableBlockError, match="x.npy' is empty"):
        open_source(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match="x.npy' is not NPY, as its suffix says"):
        open_source(path)


@pytest.mark.parametrize(("start", "stop"), [(-1, 2), (3, 2), (0, 51)])
def test_ranges_that_are_not_there_are_refused(start, stop):
    with pytest.raises(ValueError, match=f"start={start} and stop={stop} should lie"):
        ArraySource(X).read(start, stop)


def test_arrays_are_read_without_pyarrow(npy, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for data in (X, npy(X), lambda: iter([X[:20], X[20:]])):
        np.testing.assert_array_equal(open_source(data).read(5, 30), X[5:30])
    np.testing.assert_array_equal(
        open_source(SPARSE).read(0, 50).toarray(), SPARSE.toarray()
    )
