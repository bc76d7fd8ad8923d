"""Each form of the files, from a few lines written by hand."""

import io
import re

import numpy as np
import pytest
from scipy import sparse
from scipy.io import savemat

from corral.datasets import describe_dataset
from corral.datasets._content import Content
from corral.datasets._formats import read_cluto, read_decaf, read_npz, read_originals


def read(name, *files):
    return read_originals(describe_dataset(name), files)


def assert_content(content, rows, classes):
    assert isinstance(content, Content)
    assert content.rows.dtype == np.float64
    rows_found = content.rows
    if sparse.issparse(rows_found):
        rows_found = rows_found.toarray()
    np.testing.assert_array_equal(rows_found, rows)
    assert content.classes.tolist() == classes


def test_ecoli():
    # A name, seven values and the class, with white space of any width.
    content = read(
        "ecoli",
        b"AAT_ECOLI   0.49  0.29  0.48  0.50  0.56  0.24  0.35   cp\n"
        b"ACEA_ECOLI  0.07  0.40  0.48  0.50  0.54  0.35  0.44  imU\n",
    )
    first = [0.49, 0.29, 0.48, 0.5, 0.56, 0.24, 0.35]
    second = [0.07, 0.4, 0.48, 0.5, 0.54, 0.35, 0.44]
    assert_content(content, [first, second], ["cp", "imU"])


def test_yeast():
    content = read(
        "yeast",
        b"ADT1_YEAST  0.58  0.61  0.47  0.13  0.50  0.00  0.48  0.22  MIT\n",
    )
    assert_content(content, [[0.58, 0.61, 0.47, 0.13, 0.5, 0, 0.48, 0.22]], ["MIT"])


def test_glass():
    # The number of the row comes first and is no feature.
    content = read("glass", b"1,1.52101,13.64,4.49,1.10,71.78,0.06,8.75,0.00,0.00,1\n")
    row = [1.52101, 13.64, 4.49, 1.1, 71.78, 0.06, 8.75, 0, 0]
    assert_content(content, [row], ["1"])


def test_shuttle_is_train_then_test():
    content = read(
        "shuttle",
        b"50 21 77 0 28 0 27 48 22 2\n55 0 92 0 0 26 36 92 56 4\n",
        b"55 0 81 0 -6 11 25 88 64 4\n",
    )
    rows = [
        [50, 21, 77, 0, 28, 0, 27, 48, 22],
        [55, 0, 92, 0, 0, 26, 36, 92, 56],
        [55, 0, 81, 0, -6, 11, 25, 88, 64],
    ]
    assert_content(content, rows, ["2", "4", "4"])


def test_kddcup_leaves_out_symbols():
    # 41 values, of which the second to fourth are words; the class ends with a stop.
    cells = ["7", "tcp", "http", "SF", *map(str, range(101, 137)), "0.25", "neptune."]
    content = read("kddcup", ",".join(cells).encode() + b"\n")
    assert_content(content, [[7, *range(101, 137), 0.25]], ["neptune"])


MATRIX = b"3 4 4\n4 2 1 1.5\n\n2 3 3 1\n"


def test_cluto():
    # Columns count from 1 and may come in any order; a row may be empty.
    content = read("re0", MATRIX, b"money\ntrade\nmoney\n")
    assert_content(
        content,
        [[1.5, 0, 0, 2], [0, 0, 0, 0], [0, 3, 1, 0]],
        ["money", "trade", "money"],
    )
    assert content.rows.format == "csr"
    assert content.rows.has_canonical_format


@pytest.mark.parametrize(
    ("matrix", "words"),
    [
        (b"3 4\n1 2\n", "first line is b'3 4' and should have the numbers of rows"),
        (b"a b c\n1 2\n", "first line is b'a b c'"),
        (MATRIX + b"1 1\n", "more than the 3 rows of its first line"),
        (MATRIX.replace(b"3 4 4", b"3 4 5"), "3 rows and 4 pairs .* 3 and 5"),
        (MATRIX.replace(b"3 4 4", b"9 4 4"), "it should have 9 and 4"),
        (MATRIX.replace(b"4 2", b"5 2"), "columns are 1 to 5 and should be 1 to 4"),
        (MATRIX.replace(b"4 2", b"0 2"), "columns are 0 to 3 and should be 1 to 4"),
    ],
    ids=["short head", "words", "more rows", "values", "fewer rows", "high", "low"],
)
def test_cluto_matrix_that_belies_its_first_line(matrix, words):
    with pytest.raises(ValueError, match=words):
        read_cluto(matrix, b"a\nb\nc\n")


@pytest.mark.parametrize("name", ["caltech", "sun09"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_decaf(name, dtype):
    # The class of each image is the last column.
    file = io.BytesIO()
    savemat(file, {"data": np.array([[0.5, 2, 5], [0, 1, 1]], dtype=dtype)})
    assert_content(read(name, file.getvalue()), [[0.5, 2], [0, 1]], ["5", "1"])


def test_decaf_without_its_matrix():
    file = io.BytesIO()
    savemat(file, {"features": np.eye(2)})
    with pytest.raises(ValueError, match="it has no matrix of numbers named 'data'"):
        read_decaf(file.getvalue())


def test_dense_npz(tmp_path):
    X = np.array([[1, 2], [3, 4]], dtype=np.float32)
    np.savez(tmp_path / "set.npz", X=X, y_original=[7, 9], y=[0, -1])
    content, target = read_npz(tmp_path / "set.npz")
    assert_content(content, X, ["7", "9"])
    assert target.tolist() == [0, -1]


def test_sparse_npz(tmp_path):
    counts = sparse.csr_array(np.array([[0, 2, 0], [1, 0, 3]], dtype=np.float32))
    np.savez(
        tmp_path / "set.npz",
        data=counts.data,
        indices=counts.indices,
        indptr=counts.indptr,
        shape=counts.shape,
        y_original=["a", "b"],
    )
    content, target = read_npz(tmp_path / "set.npz")
    assert_content(content, counts.toarray(), ["a", "b"])
    assert target is None


def test_npz_without_its_arrays(tmp_path):
    np.savez(tmp_path / "set.npz", data=[1.0], indices=[0])
    words = "it has no array indptr, shape, y_original. It should have X, or data,"
    with pytest.raises(ValueError, match=re.escape(words)):
        read_npz(tmp_path / "set.npz")


def test_npz_with_other_shapes(tmp_path):
    np.savez(tmp_path / "set.npz", X=np.zeros(3), y_original=[1, 2, 3])
    with pytest.raises(ValueError, match=r"X has the shape \(3,\) and should be a mat"):
        read_npz(tmp_path / "set.npz")
    parts = {
        "data": [1.0, 1.0],
        "indices": [0, 7],
        "indptr": [0, 1, 2],
        "shape": [2, 3],
    }
    np.savez(tmp_path / "set.npz", **parts, y_original=[1, 2])
    with pytest.raises(ValueError, match="must be < 3"):
        read_npz(tmp_path / "set.npz")


def test_npz_is_not_unpickled(tmp_path):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("a pickle was loaded",))

    trap = np.array([Trap()], dtype=object)
    np.savez(tmp_path / "set.npz", X=np.eye(1), y_original=trap)
    with pytest.raises(ValueError, match="Python objects, which are not read"):
        read_npz(tmp_path / "set.npz")
