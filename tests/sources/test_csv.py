"""CSV is read in pieces, with the types and words of read_table."""

import gzip
import json
import multiprocessing
import os
import pickle
import select
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest

from corral.sources import CsvSource, UnreadableBlockError, open_source
from corral.sources import _csv as csv_module
from corral.tables import read_table

SPACES = {
    "numbers": ["1", "2.5", "", "NA", "-3e5"],
    "whole": ["1", "2", "?", " 4"],
    "flags": ["0", "1", "true", "False"],
    "binary": ["0", "1"],
    "dates": ["2020-01-01", "", "1999-12-31"],
    "moments": ["2020-01-01", "2020-01-01 10:00", "2021-05-05T01:02:03"],
    "fine": ["2020-01-01 10:00:00.25", "2020-01-01"],
    "far": ["2900-01-01", "2020-01-01 10:00:00.25"],
    "zones": ["2020-01-01T10:00Z", "2020-01-01T10:00:00.5Z"],
    "mixed zones": ["2020-01-01T10:00Z", "2020-01-01T10:00"],
    "times": ["10:00", "23:59:59"],
    "texts": ["red", "", "NA", "1"],
    "quoted": ['"a ""b"", c"', '"two\nlines"', '""', "x"],
    "nothing": ["", "NA"],
    "numbers and dates": ["1", "2020-01-01"],
    "flags and numbers": ["true", "7"],
    "whole and flags": ["3", "true"],
    "large": ["9223372036854775807", "9223372036854775808"],
}


@pytest.fixture
def put(tmp_path):
    def put(content, name="t.csv"):
        content = content.encode() if isinstance(content, str) else content
        (tmp_path / name).write_bytes(content)
        return tmp_path / name

    return put


@pytest.fixture
def small_blocks(monkeypatch):
    # Types are decided over many blocks.
    monkeypatch.setattr(csv_module, "_BLOCK_BYTES", 300)
    monkeypatch.setattr(csv_module, "_TRY_BYTES", 500)


def same(source, table):
    """Check names, types and cells against the table that read_table gives."""
    read = source.read(0, source.shape[0])
    assert read.schema.names == source.names == table.schema.names
    assert read.schema.types == table.schema.types
    assert read.to_pydict() == table.to_pydict()


@pytest.mark.parametrize("order", ["forward", "backward", "shuffled"])
@pytest.mark.parametrize("kind", SPACES)
@pytest.mark.usefixtures("small_blocks")
def test_types_are_those_of_read_table(put, kind, order):
    # Each kind of cell fills blocks of its own, so that no block tells the type of all.
    cells = [cell for cell in SPACES[kind] for _ in range(100)]
    cells = cells[::-1] if order == "backward" else cells
    if order == "shuffled":
        cells = np.random.default_rng(0).permutation(cells).tolist()
    path = put("id,x,y\n" + "".join(f"{j},{cell},z\n" for j, cell in enumerate(cells)))
    same(open_source(path), read_table(path))


@pytest.mark.parametrize("name", ["t.csv", "t.tsv", "t.csv.gz", "t.csv.zst"])
def test_any_ranges_equal_the_whole(put, mixed_table, name, read_in_ranges):
    sink = pa.BufferOutputStream()
    delimiter = "\t" if "tsv" in name else ","
    options = pa.csv.WriteOptions(delimiter=delimiter)
    pa.csv.write_csv(mixed_table, sink, options)
    content = sink.getvalue().to_pybytes()
    if name.endswith("gz"):
        content = gzip.compress(content)
    if name.endswith("zst"):
        content = pa.Codec("zstd").compress(content, asbytes=True)
    path = put(content, name)
    source = open_source(path)
    assert source.borders == [0, 1000]
    same(source, read_table(path))
    read_in_ranges(source, mixed_table)
    read_in_ranges(pickle.loads(pickle.dumps(source)), mixed_table)


@pytest.mark.usefixtures("small_blocks")
def test_any_ranges_over_many_blocks(put, mixed_table, read_in_ranges):
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(mixed_table, sink)
    read_in_ranges(open_source(put(sink.getvalue().to_pybytes())), mixed_table)


def test_reading_in_order_opens_the_file_once(put, monkeypatch):
    source = open_source(put("a\n" + "".join(f"{j}\n" for j in range(100))))
    opened = []
    reader = CsvSource._reader
    monkeypatch.setattr(
        CsvSource,
        "_reader",
        lambda self, **named: opened.append(1) or reader(self, **named),
    )
    for start in range(0, 100, 7):
        block = source.read(start, min(start + 7, 100))
        assert block["a"].to_pylist() == list(range(start, min(start + 7, 100)))
    assert len(opened) == 1


@pytest.mark.parametrize(
    "content",
    [
        "name;size\nAda;1,5\nBo;2,5\n",
        "1.5,2\n3,4\n",
        "2001,2002\n3,4\n",
        "zip,n\n00123,1\n45678,2\n",
        "a,b\r\n1,2\r\n\r\n3,4\r\n",
        "\n\na\n1\n",
        "a\n1\n2",
        "1,,3.5\n4,5,6\n",
        ",0\n0,5\n",
        "1,7\r3,4\r",
        '"1,5",2\n3,4\n',
        "größe,n\n1,ä\n".encode("utf-16"),
        b"\xef\xbb\xbfa,b\n1,2\n",
    ],
)
def test_forms_are_those_of_read_table(put, content):
    path = put(content)
    same(open_source(path), read_table(path))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"], ids=["lf", "crlf", "cr"])
@pytest.mark.parametrize("cells", [["1", "22", ""], ["1.5", "", "NA"], ["", "ab"]])
@pytest.mark.parametrize("n_bytes", [16, 17, 23, 300])
def test_empty_lines_of_one_column_over_many_blocks(
    put, monkeypatch, read_in_ranges, n_bytes, cells, end
):
    # Lines end, and end between the two bytes of their ends, where blocks do.
    monkeypatch.setattr(csv_module, "_BLOCK_BYTES", n_bytes)
    monkeypatch.setattr(csv_module, "_TRY_BYTES", n_bytes)
    lines = np.random.default_rng(n_bytes).choice(cells, 200).tolist()
    path = put(end.join(["x", *lines, "", ""]))
    table = read_table(path)
    missing = [line in ("", "NA") for line in [*lines, ""]]
    assert table["x"].is_null().to_pylist() == missing
    read_in_ranges(open_source(path), table)


def test_columns_are_read_in_the_order_asked_for(put):
    path = put("a,zip,b\n1,00123,x\n2,00456,y\n")
    source = open_source(path, columns=["b", "zip"])
    assert source.shape == (2, 2)
    assert source.read(0, 2).to_pydict() == {"b": ["x", "y"], "zip": ["00123", "00456"]}


@pytest.mark.usefixtures("small_blocks")
def test_codes_and_late_texts_in_chosen_columns(put):
    rows = [f"{j},00{j % 10}77,{j}\n" for j in range(200)] + ["x,00177,7\n"]
    path = put("a,zip,b\n" + "".join(rows))
    expected = read_table(path).select(["zip", "a"])
    assert open_source(path, columns=["zip", "a"]).read(0, 201) == expected


def test_lines_longer_than_a_block(put, monkeypatch):
    monkeypatch.setattr(csv_module, "_BLOCK_BYTES", 64)
    path = put(f"a,b\n1,{'x' * 5000}\n2,{'y' * 300}\n")
    same(open_source(path), read_table(path))


@pytest.mark.parametrize(
    "content",
    [
        "a,b\n1,2\n3\n4,5\n",
        "# ours\na,b\n1,2\n",
        'a,b\n1,"2\n2"\n\n3,4,5\n',
        "a,b\n" + "1,2\n" * 500 + "3,4,5\n",
        "a,b\n",
        "a,a\n1,2\n",
        b"a,b\n1,\xff\xfe\n",
        b"a,\xff\n1,2\n",
        b"a,b\n" + b"1,2\n" * 500 + b"x,\xff\n",
        "\n\n",
        "",
    ],
)
@pytest.mark.usefixtures("small_blocks")
def test_errors_are_those_of_read_table(put, content):
    path = put(content)
    with pytest.raises(ValueError, match=r".") as expected:
        read_table(path)
    with pytest.raises(ValueError, match=r".") as found:
        open_source(path)
    assert str(found.value) == str(expected.value)


def test_a_broken_line_is_named(put):
    path = put("a,b\n" + "1,2\n" * 100_000 + "3\n4,5\n")
    with pytest.raises(
        UnreadableBlockError, match="t.csv' has 1 cell in line 100002, where 2 are"
    ):
        open_source(path)


def test_broken_lines_are_left_out_if_asked(put, read_in_ranges):
    lines = ["a,b", *(f"{j},{j}" for j in range(500))]
    lines[7] = "x"
    lines[300] = "1,2,3"
    source = open_source(put("\n".join(lines) + "\n"), on_error="skip")
    kept = [j for j in range(500) if j not in (6, 299)]
    read_in_ranges(source, pa.table({"a": kept, "b": kept}))
    (sentence,) = source.skipped
    assert "has 2 lines with too few or too many cells (8, 301)." in sentence
    assert open_source(put("a,b\n1,2\n"), on_error="skip").skipped == []
    with pytest.raises(UnreadableBlockError, match="has no rows"):
        open_source(put("a,b\n1\n2\n"), on_error="skip")


@pytest.mark.parametrize("packing", ["gz", "zst"])
def test_packed_files_that_are_broken_are_named(put, packing):
    text = "a,b\n" + "".join(f"{j},{j * j}\n" for j in range(200_000))
    packed = (
        gzip.compress(text.encode())
        if packing == "gz"
        else pa.Codec("zstd").compress(text.encode(), asbytes=True)
    )
    name = f"t.csv.{packing}"
    with pytest.raises(UnreadableBlockError, match=f"{name}' cannot be unpacked: the"):
        open_source(put(packed[: len(packed) // 2], name))
    with pytest.raises(ValueError, match=f"{name}' is not (gzip|zstd), as its suffix"):
        open_source(put(text, name))


@pytest.mark.parametrize("name", ["t.csv", "t.csv.gz"])
def test_a_file_of_nothing_is_empty(put, name):
    path = put(gzip.compress(b"") if name.endswith(".gz") else b"", name)
    with pytest.raises(UnreadableBlockError, match=f"{name}' is empty"):
        CsvSource(path)


def test_rows_that_are_gone_while_they_are_read_are_noticed(put):
    # The file has its size and its time of change, but not its rows.
    path = put("a\n1\n2\n3\n")
    source, found = open_source(path), path.stat()
    put("a\n1\n234\n")
    os.utime(path, ns=(found.st_atime_ns, found.st_mtime_ns))
    with pytest.raises(UnreadableBlockError, match="rows end after 2, but more were"):
        source.read(0, 3)


def test_a_file_that_changes_is_noticed(put):
    source = open_source(put("a,b\n1,2\n"))
    first = source.fingerprint()
    assert json.loads(json.dumps(first)) == first
    path = put("a,b\n1,2\n3,4\n")
    with pytest.raises(UnreadableBlockError, match="t.csv' has changed since"):
        source.read(0, 1)
    assert open_source(path).fingerprint() != first
    assert "t.csv', shape=(2, 2))" in repr(open_source(path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_file_is_not_closed_while_pyarrow_reads_ahead(put, tmp_path, monkeypatch):
    # The bytes of what is opened next would go to the thread that still reads.
    source = open_source(put("a\n1\n"))
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = os.open(pipe, os.O_RDWR)
    os.write(writer, b"1\n")
    monkeypatch.setattr(source, "_mark", source._mark._replace(path=str(pipe)))
    with ThreadPoolExecutor(2) as pool:
        file = source._open()
        read = pool.submit(file.read, 4)
        while select.select([writer], [], [], 0)[0]:
            time.sleep(0.01)
        closed = pool.submit(file.close)
        with pytest.raises(TimeoutError):
            closed.result(0.2)
        os.write(writer, b"2\n")
        assert read.result(30) == b"1\n2\n"
        closed.result(30)
    os.close(writer)


# Forking with threads is what is tested; Python 3.12 and later warn of it.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_forked_processes_do_not_share_the_place(put):
    source = open_source(put("a\n" + "".join(f"{j}\n" for j in range(500_000))))
    source.read(0, 10)
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe()

    def read_far():
        # The source came with the fork, its open file and all.
        theirs.send(source.read(400_000, 400_010)["a"].to_pylist())

    process = context.Process(target=read_far)
    process.start()
    assert ours.poll(60)
    assert ours.recv() == list(range(400_000, 400_010))
    process.join(60)
    assert process.exitcode == 0
    assert source.read(10, 20)["a"].to_pylist() == list(range(10, 20))
    block = source.read(300_000, 300_005)
    assert block["a"].to_pylist() == list(range(300_000, 300_005))
