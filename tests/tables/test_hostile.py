"""Files made to crash, hang or fill the memory are refused with a sentence."""

import gzip
import io
import struct
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from scipy import sparse

from corral.sources import open_source
from corral.tables import TableEncoder, read_table
from corral.tables._arrow_size import count_file
from corral.tables._limits import MOST_COLUMNS
from tests.cli.example import run_corral
from tests.fuzz.mutate_inputs import split_sparse, to_bytes, to_parquet, zstd

MANY = 2**40


def to_npy(shape, descr="<f8", content=bytes(80)):
    head = repr({"descr": descr, "fortran_order": False, "shape": shape}).encode()
    size = struct.pack("<H", len(head))
    return b"\x93NUMPY\x01\x00" + size + head + content


def to_npz(packing=zipfile.ZIP_DEFLATED, **members):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", packing) as archive:
        for name, content in members.items():
            archive.writestr(f"{name}.npy", content)
    return file.getvalue()


def to_arrow(table, open_writer=pa.ipc.new_file, compression=None):
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(allow_64bit=True, compression=compression)
    with open_writer(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def sparse_parts(kind, **changes):
    parts = split_sparse(sparse.csr_array(np.eye(3)), kind)
    return to_bytes(np.savez, **{**parts, **changes})


def break_offsets():
    """Return an Arrow file whose texts lie a gigabyte behind their bytes."""
    starts = np.arange(0, 8, 2, dtype=np.int32)
    content = to_arrow(pa.table({"text": ["ab", "cd", "ef"]}))
    wrong = starts.copy()
    wrong[1:] += 2**30
    return content.replace(starts.tobytes(), wrong.tobytes())


def lie_on_size():
    """Return an archive whose member says that it unpacks to two gigabytes."""
    content = to_npz(X=to_npy((10, 1)))
    size = struct.pack("<I", len(to_npy((10, 1))))
    return content.replace(size, struct.pack("<I", 2**31))


def head_of(*kinds):
    lines = [f"@attribute a{j} {kind}\n" for j, kind in enumerate(kinds)]
    return f"@relation r\n{''.join(lines)}@data\n".encode()


MTX = b"%%MatrixMarket matrix coordinate real general\n"
DENSE_MTX = b"%%MatrixMarket matrix array real general\n"
PATTERN_MTX = b"%%MatrixMarket matrix coordinate pattern general\n"
PLAIN_NPY = to_bytes(np.save, np.eye(3))
MANY_NAMES = ",".join(f"c{j}" for j in range(MOST_COLUMNS + 1)).encode()

LIES = {
    "npy with a huge shape": ("t.npy", to_npy((MANY, MANY)), "tells of an array"),
    "npy whose size overflows": ("t.npy", to_npy((2**32, 2**32)), "tells of an array"),
    "npy with a negative shape": ("t.npy", to_npy((-1, 2)), "its header"),
    "npy with empty cells": ("t.npy", to_npy((MANY, 2), "|S0"), "tells of an array"),
    "npy with a deep header": (
        "t.npy",
        b"\x93NUMPY\x01\x00" + struct.pack("<H", 9000) + b"-" * 8999 + b"1",
        "holds more than a type and a shape",
    ),
    "npz with a huge shape": (
        "t.npz",
        to_npz(X=to_npy((MANY, 2))),
        "array 'X' that",
    ),
    "npz that lies on its size": ("t.npz", lie_on_size(), "which cannot be"),
    "npz packed by lzma": (
        "t.npz",
        to_npz(zipfile.ZIP_LZMA, X=PLAIN_NPY),
        "packed otherwise than NumPy",
    ),
    "csr beyond its columns": (
        "t.npz",
        sparse_parts("csr", indices=np.array([0, 1, 10**6])),
        "is broken",
    ),
    "csc beyond its rows": (
        "t.npz",
        sparse_parts("csc", indices=np.array([0, 1, 10**9])),
        "is broken",
    ),
    "csr with falling starts": (
        "t.npz",
        sparse_parts("csr", indptr=np.array([0, 9, 1, 3])),
        "is broken",
    ),
    # SciPy's own check crashes on these.
    **{
        f"{form} whose last row ends at the start": (
            "t.npz",
            sparse_parts(
                form,
                data=np.zeros(0),
                indices=np.zeros(0, np.int32),
                indptr=np.array([0, 10**9, 10**9, 0]),
            ),
            "end before they begin",
        )
        for form in ("csr", "csc")
    },
    "bsr beyond its columns": (
        "t.npz",
        sparse_parts("bsr", indices=np.array([0, 1, 10**9])),
        "is broken",
    ),
    "coo below its rows": (
        "t.npz",
        sparse_parts("coo", row=np.array([0, -(10**9), 2])),
        "is broken",
    ),
    "coo with a huge shape": (
        "t.npz",
        sparse_parts("coo", shape=np.array([MANY, 3])),
        "far more than its",
    ),
    "mtx with many rows": ("t.mtx", MTX + b"%d 3 1\n1 1 1\n" % MANY, "far more than"),
    "mtx with many entries": ("t.mtx", MTX + b"3 3 %d\n1 1 1\n" % MANY, "1 entries"),
    "mtx beyond its rows": ("t.mtx", MTX + b"3 3 1\n9 1 1\n", "exceeds matrix"),
    "mtx with a huge array": ("t.mtx", DENSE_MTX + b"%d 9\n1\n" % MANY, "bytes hold"),
    "mtx with half a number": (
        "t.mtx",
        DENSE_MTX + b"2 1\n1E\xff\x00\n2\n",
        "complete",
    ),
    "arrow of nothing": (
        "t.arrow",
        to_arrow(pa.table({"a": pa.Array.from_buffers(pa.null(), MANY, [None])})),
        r"would take about .* of memory",
    ),
    "arrow with texts elsewhere": ("t.arrow", break_offsets(), "is broken or cut off"),
    "arff with a longer number": (
        "t.arff",
        head_of("numeric") + b"{" + b"1" * 10**5 + b"}",
        "sparse ARFF row",
    ),
    "arff with a pattern as name": (
        "t.arff",
        b"@relation r\n@attribute (a+)+$ relational\n" + b"a" * 99 + b"!\n@data\n",
        "that are not read",
    ),
    "arff with open quotes": (
        "t.arff",
        head_of("{a," + ",'" * 10**5 + "}") + b"b\n",
        "is not one of the",
    ),
    "sparse arff with few cells": (
        "t.arff",
        head_of(*["{a,b}"] * 2000) + b"{}\n" * 50_001,
        "100,000,000 cells",
    ),
    "csv with many columns": (
        "t.csv",
        MANY_NAMES + b"\n" + b"1," * MOST_COLUMNS + b"1\n",
        r"has 100,001 columns; a table may have 100,000\. Save the numbers as",
    ),
    "csv with one name": (
        "t.csv",
        b"a" + b",a" * 9999 + b"\n" + b"1" + b",1" * 9999 + b"\n",
        r"more than one column named 'a'\. Give each",
    ),
    "csv with doubled names": (
        "t.csv",
        b",".join(b"c%d,c%d" % (j, j) for j in range(999)) + b"\n1" + b",1" * 1997,
        r"'c9' and 989 more\. Give each",
    ),
    "csv with a quote in its head": (
        "t.csv",
        b'a,"b\n' + b"1,2\n" * 10_000,
        "has no rows. Close the quote that is open in its",
    ),
}


@pytest.mark.parametrize(("name", "content", "words"), LIES.values(), ids=LIES)
def test_files_that_lie_are_refused(put, name, content, words):
    path = put(name, content)
    with pytest.raises(ValueError, match=words) as caught:
        read_table(path)
    assert str(caught.value).startswith(f"'{path}' ")
    assert len(str(caught.value)) < 1000


def half_matrix():
    head = DENSE_MTX.replace(b"general", b"symmetric")
    return head + b"2100 2100\n" + b"1\n" * (2100 * 2101 // 2)


def zeros():
    # Two batches, of few rows, so that only what they unpack to is large.
    return pa.concat_tables([pa.table(dict.fromkeys("ab", np.zeros(2**20)))] * 2)


def to_sparse_npz(form, values, indices, borders):
    """Return a sparse matrix in few bytes."""
    shape = (1, 1) if values.ndim == 1 else values.shape[1:]
    parts = {"indices": np.array(indices, "u4"), "indptr": borders, "shape": shape}
    return to_bytes(np.savez_compressed, format=form.encode(), data=values, **parts)


def long_categories():
    long = pa.array(["x" * 2**25])
    return pa.table({"a": pa.DictionaryArray.from_arrays(pa.array([0]), long)})


# Made when they are needed.
LARGE = {
    "gzip bomb": ("t.csv.gz", lambda: gzip.compress(bytes(2**25), 1), "unpacks from"),
    "zstd bomb": ("t.csv.zst", lambda: zstd(bytes(2**25)), "unpacks from"),
    "zip bomb": (
        "t.npz",
        lambda: to_bytes(np.savez_compressed, X=np.zeros((2**23, 1), "f4")),
        "of memory, and only",
    ),
    "csv of commas": (
        "t.csv",
        lambda: (b"," * 999 + b"\n") * 3000,
        "of memory, and only",
    ),
    "parquet of one number": (
        "t.parquet",
        lambda: to_parquet(pa.table({"a": np.zeros(2**22)})),
        "of memory, and only 29.4 MB are free",
    ),
    "parquet of one text": (
        "t.parquet",
        lambda: to_parquet(pa.table({"a": ["x" * 2**16] * 2**9})),
        "of memory, and only",
    ),
    **{
        f"arrow {form}, packed by {packing}": (
            "t.arrow",
            lambda writer=writer, packing=packing: to_arrow(zeros(), writer, packing),
            "would take about 33.6 MB of memory",
        )
        for form, writer in (("file", pa.ipc.new_file), ("stream", pa.ipc.new_stream))
        for packing in ("lz4", "zstd")
    },
    "arrow with a packed dictionary": (
        "t.arrow",
        lambda: to_arrow(long_categories(), pa.ipc.new_file, "zstd"),
        "would take about 33.6 MB of memory",
    ),
    "arff of short lines": (
        "t.arff",
        lambda: head_of("numeric") + b"1\n" * 2**17,
        "of memory",
    ),
    "arff of long values that it does not write": (
        "t.arff",
        lambda: head_of("{" + "x" * 10**5 + ",b}") + b"{}\n" * 400,
        "of memory",
    ),
    "mtx of a large half": ("t.mtx", half_matrix, "of memory, and only"),
    "mtx of short lines": (
        "t.mtx",
        lambda: PATTERN_MTX + b"1 1 524288\n" + b"1 1\n" * 2**19,
        "of memory, and only",
    ),
    "npz of one cell, again and again": (
        "t.npz",
        lambda: to_sparse_npz("csr", np.ones(2**21, "u1"), [0] * 2**21, [0, 2**21]),
        "would take about 52.4 MB",
    ),
    "npz of one large block": (
        "t.npz",
        lambda: to_sparse_npz("bsr", np.ones((1, 2**11, 2**10), "u1"), [0], [0, 1]),
        "would take about 52.4 MB",
    ),
}


@pytest.mark.parametrize(("name", "make", "words"), LARGE.values(), ids=LARGE)
def test_what_does_not_fit_into_memory_is_refused(
    put, little_memory, name, make, words
):
    with pytest.raises(ValueError, match=words) as caught:
        read_table(put(name, make()))
    assert "block by block" in str(caught.value)


def test_pages_of_parquet_are_not_unpacked_to_see_that_they_are_too_large(
    put, little_memory, monkeypatch
):
    def unpack(*args, **options):
        raise AssertionError("Pages are unpacked.")

    monkeypatch.setattr(pa.parquet.ParquetFile, "iter_batches", unpack)
    lists = pa.ListArray.from_arrays([0, 2**22], np.zeros(2**22))
    content = to_parquet(pa.table({"a": lists}), use_dictionary=False)
    with pytest.raises(ValueError, match="of memory, and only"):
        read_table(put("t.parquet", content))


def test_packed_arrow_that_fits_into_memory_is_read(put):
    table = pa.table({"a": [0.0] * 1000, "b": [None, "x"] * 500, "c": [[1, 2]] * 1000})
    for writer in (pa.ipc.new_file, pa.ipc.new_stream):
        for packing in ("lz4", "zstd"):
            path = put("t.arrow", to_arrow(table, writer, packing))
            assert read_table(path).equals(table)


def test_an_arrow_footer_may_leave_out_lists_of_nothing():
    # By hand: where the table is, that it has no fields, and the way from one to other.
    footer = struct.pack("<IHHi", 8, 4, 4, 4)
    end = struct.pack("<i6s", len(footer), b"ARROW1")
    assert count_file(pa.py_buffer(b"ARROW1\0\0" + footer + end)) == 0


def test_a_packed_file_that_grows_beyond_reason_is_not_read_in_pieces(put, monkeypatch):
    monkeypatch.setattr("corral.tables._unpack._FREE_BYTES", 2**20)
    monkeypatch.setattr("corral.tables._unpack._MOST_GROWTH", 100)
    path = put("t.csv.zst", zstd(b"a\n" + b"1\n" * 2**22))
    with pytest.raises(ValueError, match=r"t\.csv\.zst' unpacks from"):
        open_source(path)


@pytest.mark.parametrize("first", [b"1", b"x"], ids=["numbers", "texts"])
def test_an_open_quote_does_not_swallow_rows(put, first):
    # Of the first block, the second column is numbers.
    rows = b"a,b\n" + (first + b",2\n") * 100_000 + b'1,"x\n' + b"3,4\n" * 9
    for read in (read_table, open_source):
        with pytest.raises(ValueError, match="not closed: the 10 lines that follow"):
            read(put("t.csv", rows))
    sound = read_table(put("t.csv", b'a,b\n1,"x\ny"\n2,"3\n4"\n'))
    assert sound.to_pydict() == {"a": [1, 2], "b": ["x\ny", "3\n4"]}


def test_a_first_line_without_an_end_is_not_read_to_its_end(put, monkeypatch):
    monkeypatch.setattr("corral.tables._formats._LONGEST_HEAD", 2**20)
    path = put("t.csv", b"a," * 2**20)
    for read in (read_table, open_source):
        with pytest.raises(ValueError, match="has a first line of more than 1.05 MB"):
            read(path)


GOOD = {
    "many blank lines": ("t.arff", head_of("numeric") + b"\n" * 10**5 + b"1\n2\n", 2),
    "many blank lines above": ("t.arff", b"\n" * 10**5 + head_of("real") + b"1\n", 1),
    "a long nominal value": (
        "t.arff",
        head_of("{a," + "b" * 10**5 + "}") + b"a\n" * 50_000,
        50_000,
    ),
    "many nominal values": (
        "t.arff",
        head_of("{" + ",".join(f"v{j}" for j in range(20_000)) + "}")
        + b"v19999\n" * 20_000,
        20_000,
    ),
    "NUL bytes": ("t.csv", b"a,b\n\x00,1\n\x00\x00,2\n", 2),
    "a long cell": ("t.csv", b"a,b\n1," + b"x" * 2**22 + b"\n2,y\n", 2),
    "a long number": ("t.csv", b"a\n" + b"1" * 10**6 + b"\n2\n", 2),
}


@pytest.mark.parametrize(("name", "content", "n_rows"), GOOD.values(), ids=GOOD)
def test_strange_files_that_do_not_lie_are_read(put, name, content, n_rows):
    assert read_table(put(name, content)).shape[0] == n_rows


def test_bounds_of_dates_and_durations_are_numbers_or_refused():
    ends = [-(2**63), 2**63 - 1]
    columns = {
        "moment": pa.array(ends, pa.timestamp("s")),
        "span": pa.array(ends, pa.duration("s")),
        "day": pa.array(ends, pa.date64()),
        "size": pa.array([10**70, 1], pa.decimal256(76, 0)),
    }
    for name, column in columns.items():
        encoder = TableEncoder().fit(pa.table({name: column}))
        assert list(encoder.kinds_) == [name]


@pytest.mark.parametrize("name", ["mtx with half a number", "npy with a huge shape"])
def test_the_command_line_says_it_and_writes_nothing(put, tmp_path, name):
    file, content, words = LIES[name]
    path = put(file, content)
    labels = tmp_path / "labels.csv"
    called = run_corral("fit", path, "--labels", labels)
    assert called.exit_code == 2
    assert words in called.stderr
    assert "Traceback" not in called.output
    assert [each.name for each in tmp_path.iterdir()] == [file]
