"""MATLAB files: the same matrices as SciPy reads, and a sentence for any damage."""

import io
import random
import struct
import tracemalloc
import zlib
from collections import Counter

import numpy as np
import pytest
from scipy import sparse
from scipy.io import loadmat, savemat

from corral.datasets import _matlab, load_dataset
from corral.datasets._formats import read_decaf
from corral.datasets._matlab import read_matrix
from corral.tables._broken import Broken

# SciPy 1.18 warns that its sparse matrices will be of another class.
pytestmark = pytest.mark.filterwarnings("ignore:The default value for `spmatrix`")

FORMS = {
    "version 4": {"format": "4"},
    "version 5": {},
    "packed": {"do_compression": True},
}
OLD_TYPES = ["f8", "f4", "i4", "i2", "u2", "u1"]
TYPES = [*OLD_TYPES, "i1", "u4", "i8", "u8"]
SHAPES = [(12, 7), (1, 1), (1, 5), (4, 1), (3, 4097), (0, 0), (0, 3), (3, 0)]
# Its last column could be classes.
X = np.column_stack([np.arange(8.0).reshape(4, 2) / 7, [1, 1, 2, 3]])


def save(variables, **form):
    file = io.BytesIO()
    savemat(file, variables, **form)
    return file.getvalue()


def assert_as_scipy(data):
    """Check that a matrix is the one that SciPy reads, and return it."""
    found, known = read_matrix(data, "data"), loadmat(io.BytesIO(data))["data"]
    assert found.dtype == known.dtype
    np.testing.assert_array_equal(found, known, strict=True)
    return found


# Files written byte by byte, in either order of bytes.


def element(kind, content, order="<", says=None):
    """Return a type, a number of bytes and the bytes, filled up to eight."""
    size = len(content) if says is None else says
    return struct.pack(f"{order}2I", kind, size) + content + bytes(-len(content) % 8)


def small(kind, content, order="<", says=None):
    """Return an element of up to four bytes, in the short form."""
    size = len(content) if says is None else says
    return struct.pack(f"{order}I", size << 16 | kind) + content.ljust(4, b"\0")


def variable(
    values=X, order="<", *, name=b"data", flags=6, shape=None, kind=9, cells=None
):
    """Return a variable, of which any part may be another than it should."""
    sizes = values.shape if shape is None else shape
    plain = values.T.astype(values.dtype.newbyteorder(order)).tobytes()
    parts = [
        element(6, struct.pack(f"{order}2I", flags, 0), order),
        element(5, struct.pack(f"{order}{len(sizes)}i", *sizes), order),
        element(1, name, order),
        element(kind, plain, order) if cells is None else cells,
    ]
    return element(14, b"".join(parts), order)


def pack(content, order="<"):
    packed = zlib.compress(content)
    return struct.pack(f"{order}2I", 15, len(packed)) + packed


def new_file(*variables, order="<", version=0x0100):
    head = b"MATLAB 5.0 MAT-file, by hand".ljust(124)
    return head + struct.pack(f"{order}2H", version, 0x4D49) + b"".join(variables)


def old_file(values=X, order="<", *, kind=0, shape=None, n_name=5, is_complex=0):
    kind += 1000 * (order == ">")
    sizes = values.shape if shape is None else shape
    head = struct.pack(f"{order}5i", kind, *sizes, is_complex, n_name)
    return head + b"data\0" + values.T.astype(f"{order}f8").tobytes()


# Sound files.


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("form", FORMS)
def test_same_as_scipy(form, shape, seed):
    # All types; the matrix stands between other variables.
    values = np.random.default_rng(seed).normal(size=shape) * 50
    for dtype in OLD_TYPES if form == "version 4" else TYPES:
        matrix = np.abs(values).astype(dtype)
        others = {"z": np.ones((3, 2)), "data": matrix, "text": "data", "y": 1.5}
        found = assert_as_scipy(save(others, **FORMS[form]))
        np.testing.assert_array_equal(found, matrix)


@pytest.mark.parametrize("form", FORMS)
def test_other_kinds_of_variables_are_passed_over(form):
    others = {"complex": X * 1j, "sparse": sparse.csc_array(X), "text": "words"}
    if form != "version 4":
        others |= {"struct": {"data": X}, "cell": np.array([X, "a"], dtype=object)}
        others |= {"cube": np.zeros((2, 2, 2)), "is": np.array([[True, False]])}
    assert_as_scipy(save({**others, "data": X}, **FORMS[form]))


@pytest.mark.parametrize("packing", [bytes, pack], ids=["plain", "packed"])
@pytest.mark.parametrize("order", ["<", ">"])
def test_either_order_of_bytes(order, packing):
    options = {"order": order} if packing is pack else {}
    contents = [variable(np.eye(2), order, name=b"other"), variable(X, order)]
    data = new_file(*[packing(each, **options) for each in contents], order=order)
    np.testing.assert_array_equal(assert_as_scipy(data), X)


@pytest.mark.parametrize("order", ["<", ">"])
def test_either_order_of_bytes_in_version_4(order):
    np.testing.assert_array_equal(assert_as_scipy(old_file(order=order)), X)


@pytest.mark.parametrize("order", ["<", ">"])
def test_short_form_of_few_bytes(order):
    # As MATLAB writes doubles that are whole numbers.
    values = np.array([[7, 8, 9]], dtype=np.uint8)
    data = new_file(
        variable(values, order, cells=small(2, b"\7\10\11", order)), order=order
    )
    assert assert_as_scipy(data).tolist() == [[7, 8, 9]]


def test_the_first_of_two_with_one_name():
    data = new_file(variable(), pack(variable(X + 1)))
    np.testing.assert_array_equal(read_matrix(data, "data"), X)


# Damage.


def cut_pack(n_bytes):
    packed = zlib.compress(variable())[:-n_bytes]
    return struct.pack("<2I", 15, len(packed)) + packed


def wrong_sum():
    packed = bytearray(pack(variable()))
    packed[-1] ^= 1
    return bytes(packed)


def long_pack():
    """Return a packed variable with bytes behind its end."""
    return pack(variable() + bytes(8))


DAMAGE = {
    "empty": (b"", "does not begin as a MATLAB file"),
    "other": (b"MATLAB?" * 40, "does not begin as a MATLAB file"),
    "head alone": (new_file(), "no matrix of numbers named 'data'"),
    "cut head": (new_file()[:100], "does not begin as a MATLAB file"),
    "version 7.3": (new_file(version=0x0200), "7.3 are not read: save it with '-v7'"),
    "no such name": (new_file(variable(name=b"X")), "no matrix of numbers named"),
    "complex": (new_file(variable(flags=0x806)), "no matrix of numbers named"),
    "text": (new_file(variable(flags=4)), "no matrix of numbers named"),
    "three sizes": (new_file(variable(shape=(2, 2, 3))), "no matrix of numbers named"),
    "cut tag": (new_file(b"\x0e\0\0\0"), "8 bytes should follow where 4 are left"),
    "cut": (new_file(variable())[:-40], "152 bytes should follow where 112 are left"),
    "element": (new_file(element(9, bytes(8))), "type 9 stands where a variable"),
    "packed element": (new_file(pack(element(9, bytes(8)))), "type 9 stands where a"),
    "pack in a pack": (new_file(pack(pack(variable()))), "type 15 stands where a var"),
    "short class": (new_file(element(14, small(6, b"\6"))), "a variable has no class"),
    "long name": (new_file(variable(name=bytes(5000))), "the name .* has 5,000 bytes"),
    "long shape": (new_file(variable(shape=[1] * 2000)), "shape .* has 8,000 bytes"),
    "negative": (new_file(variable(shape=(-4, -3))), r"has the shape \(-4, -3\)"),
    "huge shape": (
        new_file(variable(shape=(2**31 - 1, 2**31 - 1))),
        r"96 bytes stand where a matrix of shape \(2147483647, 2147483647\) and type",
    ),
    "smaller shape": (new_file(variable(shape=(2, 3))), r"96 bytes .* takes 48"),
    "type of cells": (new_file(variable(kind=16)), "its matrix has cells of type 16"),
    "another type": (new_file(variable(kind=7)), "and type float32 takes 48"),
    "cells beyond the end": (
        new_file(variable(cells=element(9, bytes(8), says=96))),
        "96 bytes should follow where 8 are left",
    ),
    "five small bytes": (
        new_file(variable(cells=small(2, b"\0", says=5))),
        "5 bytes stand in the place of 4",
    ),
    "cut pack": (new_file(cut_pack(20)), "a packed variable that is cut off"),
    "pack without its sum": (new_file(cut_pack(2)), "does not end as it says"),
    "wrong sum": (new_file(wrong_sum()), "is damaged: .* incorrect data check"),
    "no pack": (new_file(element(15, bytes(80))), "packed variable that is damaged"),
    "empty pack": (new_file(element(15, b"")), "a packed variable that is cut off"),
    "more in the pack": (new_file(long_pack()), "does not end as it says"),
    "old: cut head": (old_file()[:10], "20 bytes should follow where 10 are left"),
    "old: cut": (old_file()[:-8], "96 bytes should follow where 88 are left"),
    "old: text": (old_file(kind=1), "no matrix of numbers named 'data'"),
    "old: sparse": (old_file(kind=2), "no matrix of numbers named 'data'"),
    "old: form": (old_file(kind=3), "a variable is of the type 3"),
    "old: type": (old_file(kind=60), "a variable is of the type 60"),
    "old: hundreds": (old_file(kind=100), "a variable is of the type 100"),
    "old: machine": (old_file(kind=2000), "a variable is of the type 2000"),
    "old: negative": (old_file(shape=(-4, 3)), r"has the shape \(-4, 3\)"),
    "old: both negative": (old_file(shape=(-4, -3)), r"has the shape \(-4, -3\)"),
    "old: huge": (old_file(shape=(2**31 - 1,) * 2), "bytes should follow where 96 are"),
    "old: name": (old_file(n_name=-1), "the name of a variable has -1 bytes"),
    "old: long name": (old_file(n_name=2**31 - 1), "name of a variable has 2,147,483"),
    "old: complex": (
        old_file(is_complex=1) + bytes(96),
        "no matrix of numbers named 'data'",
    ),
}


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_told(kind):
    data, words = DAMAGE[kind]
    with pytest.raises(ValueError, match=words) as caught:
        read_matrix(data, "data")
    assert str(caught.value).startswith("it ")


def test_too_many_variables():
    data = new_file(*[variable(name=b"a")] * 10_000, variable())
    with pytest.raises(ValueError, match="'data' among its first 10,000 variables"):
        read_matrix(data, "data")


def test_more_cells_than_any_original_has(monkeypatch):
    monkeypatch.setattr(_matlab, "_MOST_CELLS", 11)
    for data in (new_file(variable()), new_file(pack(variable())), old_file()):
        with pytest.raises(
            ValueError, match="one of up to 11 cells is read, more than"
        ):
            read_matrix(data, "data")


def test_matrix_that_does_not_fit_into_memory_is_refused(monkeypatch, tmp_path):
    # The sentence goes on as that of a table's reader.
    def refuse(n_bytes, advice):
        raise Broken(f"would take about {n_bytes} bytes. {advice}")

    monkeypatch.setattr(_matlab, "check_memory", refuse)
    (tmp_path / "SUN09.mat").write_bytes(new_file(variable()))
    words = (
        r"SUN09.mat' cannot be read as 'sun09': it would take about 288 bytes. Close "
        r"other programs and try again. Get the original from https://"
    )
    with pytest.raises(ValueError, match=words):
        load_dataset("sun09", data_dir=tmp_path)


# Files that are small, and large when unpacked.


def peak_of(data, words):
    """Return the most memory that is taken until a file is refused."""
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match=words):
            read_matrix(data, "data")
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def squeeze(head, n_zeros):
    """Return a packed element: some bytes, and zeros that are never there at once."""
    packer, step = zlib.compressobj(1), bytes(2**20)
    pieces = [packer.compress(head)]
    pieces += [packer.compress(step) for _ in range(n_zeros // len(step))]
    packed = b"".join([*pieces, packer.flush()])
    return struct.pack("<2I", 15, len(packed)) + packed


def head_of(n_bytes, shape, name=b"data"):
    """Return a variable up to its cells, of which it says that they are so many."""
    cells = element(9, b"", says=n_bytes)
    head = variable(np.empty((0, 0)), name=name, shape=shape, cells=cells)
    return struct.pack("<2I", 14, min(len(head) - 8 + n_bytes, 2**32 - 1)) + head[8:]


BOMBS = {
    "honest": (head_of(2**31, (2**14, 2**14)), "one of up to 33,554,432 cells is read"),
    "most that can be said": (
        head_of(2**32 - 8, (2**15, 2**14)),
        "4,294,967,288 bytes stand where",
    ),
    "fewer than said": (
        head_of(2**27, (2**12, 2**12)),
        "a packed variable that is cut off",
    ),
    "more than said": (head_of(8, (1, 1)), "does not end as it says"),
    "of another name": (
        head_of(2**31, (2**14, 2**14), b"other"),
        "no matrix of numbers named 'data'",
    ),
}


@pytest.mark.parametrize("kind", BOMBS)
def test_bomb_takes_no_memory(kind):
    head, words = BOMBS[kind]
    # As many zeros as are fast to make; they unpack to a thousand times the file.
    n_zeros = 2**20 if kind == "fewer than said" else 2**26
    data = new_file(squeeze(head, n_zeros))
    assert len(data) < 400_000
    assert peak_of(data, words) < (4e6 if kind == "fewer than said" else 1e6)


# Files damaged at random.

WORDS = [b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\0\0\0\x80", b"\0\0\0\x40"]


def mutate(data, rng):
    """Return a file with a few bytes or sizes changed, taken out, or cut off."""
    data = bytearray(data)
    for _ in range(rng.choice([1, 1, 2, 4])):
        # The text at the beginning means nothing.
        place = rng.randrange(min(116, len(data) // 2), len(data))
        way = rng.random()
        if way < 0.4:
            data[place] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
        elif way < 0.7:
            place -= place % 4
            data[place : place + 4] = rng.choice([*WORDS, rng.randbytes(1) + bytes(3)])
        elif way < 0.85:
            del data[place : place + rng.randrange(1, 9)]
        else:
            del data[place:]
    return bytes(data)


def repack(data, rng):
    """Return a file whose packed variable is damaged within, and packed well."""
    return new_file(pack(mutate(bytes(116) + data, rng)[116:]))


def sound_files():
    many = {"s": {"a": [1, 2, "x"]}, "data": X, "c": np.array([1, "a"], dtype=object)}
    files = [save(many, **form) for form in (FORMS["version 5"], FORMS["packed"])]
    files += [save({"t": "text", "data": X}, **form) for form in FORMS.values()]
    return [*files, new_file(variable(X, ">"), order=">"), old_file(order=">")]


def become(data):
    """Return what becomes of a file; any error but a sentence is raised."""
    try:
        content = read_decaf(data)
    except ValueError as error:
        return "refused" if " " in str(error) else "refused without a word"
    assert content.rows.dtype == np.float64
    assert len(content.rows) == len(content.classes)
    return "read"


def test_damaged_files_are_read_or_refused(seed):
    # SciPy ended the process at one of a hundred and twenty such files.
    rng, files, became = random.Random(seed), sound_files(), Counter()
    assert {become(data) for data in files} == {"read"}
    tracemalloc.start()
    try:
        for n in range(800):
            inner = variable() if n % 8 == 3 else variable(name=b"other") + variable()
            is_within = n % 4 == 3
            data = repack(inner, rng) if is_within else mutate(files[n % 7], rng)
            became[become(data)] += 1
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5e6
    # Both happen: neither are all of them broken at once, nor is damage overlooked.
    assert set(became) == {"read", "refused"}
    assert min(became.values()) > 50


def crash_in_sparse():
    """Return a file whose values are of a type that there is not."""
    data = save({"data": sparse.csc_array(np.eye(6))})
    assert data.count(struct.pack("<2I", 9, 48)) == 1
    return data.replace(struct.pack("<2I", 9, 48), struct.pack("<2I", 0x8009, 48))


def crash_in_struct():
    """Return a file in which a part without a name has one of twelve letters."""
    data = bytearray(save({"data": {"a": np.eye(3), "b": "x"}}))
    assert data[236] == 0
    data[236] = 12
    return bytes(data)


@pytest.mark.parametrize("make", [crash_in_sparse, crash_in_struct])
def test_file_at_which_scipy_ended_the_process(make, tmp_path):
    (tmp_path / "Caltech101.mat").write_bytes(make())
    words = (
        r"Caltech101.mat' cannot be read as 'caltech': it has no matrix of numbers "
        r"named 'data'\. Get the original from https://"
    )
    with pytest.raises(ValueError, match=words):
        load_dataset("caltech", data_dir=tmp_path)


# What the matrix of a data set holds.


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300, 1.5])
def test_classes_that_are_no_whole_numbers(value):
    with pytest.raises(ValueError, match="classes in its last column are not whole nu"):
        read_decaf(save({"data": np.array([[0.5, 1.0], [0.5, value]])}))


def test_matrix_without_columns():
    with pytest.raises(ValueError, match="'data' has no column with the classes"):
        read_decaf(save({"data": np.empty((3, 0))}))
