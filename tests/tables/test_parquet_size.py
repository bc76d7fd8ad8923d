"""What Parquet unpacks to is told from the heads of its pages, whatever it says."""

from decimal import Decimal
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from corral.sources import open_source
from corral.tables import TableEncoder, read_table
from corral.tables._broken import Broken
from corral.tables._parquet import _add_up_letters, open_parquet
from corral.tables._parquet_deltas import (
    LENGTHS,
    SHARED,
    check_lengths,
    unpack_page,
)
from corral.tables._parquet_leaves import Leaf, find_leaves
from corral.tables._parquet_size import GroupSize, PageHeads
from corral.tables._thrift import I32, I64, TRUE, CompactReader
from tests.fuzz.mutate_inputs import to_parquet

# What little_memory leaves free.
FREE = 28 * 2**20

# Ways to write the same table.
FORMS = {
    "usual": {},
    "new pages": {"data_page_version": "2.0"},
    "packed": {"compression": "zstd"},
    "not packed": {"compression": "none"},
    "no dictionary": {"use_dictionary": False},
    "small pages": {"data_page_size": 64, "write_batch_size": 10},
    "several groups": {"row_group_size": 300},
    "checksums": {"write_page_checksum": True},
    "long statistics": {"write_statistics": True, "write_page_index": True},
}


@pytest.fixture
def put(put):
    """Return what writes a Parquet file and returns its path."""
    return partial(put, "t.parquet")


def measure(content, names=None):
    """Return what the row groups of a file take."""
    with open_parquet(pa.BufferReader(content)) as file:
        heads = PageHeads(pa.BufferReader(content), find_leaves(file), names)
    return [heads.measure(number) for number in range(len(heads))]


def in_one_row(values):
    return pa.table({"a": pa.ListArray.from_arrays([0, len(values)], values)})


def to_varint(value, n_bytes=1):
    """Return a number as Thrift writes it, in so many bytes at least."""
    content = bytearray()
    while value > 127 or len(content) < n_bytes - 1:
        content.append(value & 127 | 128)
        value >>= 7
    return bytes([*content, value])


def lie(content, told, said):
    """Return a Parquet file whose footer tells of another number."""
    start = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    number = to_varint(2 * told)
    assert number in content[start:]
    other = to_varint(2 * said, len(number))
    return content[:start] + content[start:].replace(number, other)


def hide_a_page():
    """Return a file of one row, to believe its footer, with a page of 32 MiB."""
    n_rows, kind = 2**12, pa.binary(2**13)
    content = to_parquet(
        pa.table({"a": pa.array([bytes(2**13)] * n_rows, kind)}),
        use_dictionary=False,
        data_page_size=2**30,
        write_batch_size=n_rows,
        compression="zstd",
    )
    with pa.parquet.ParquetFile(pa.BufferReader(content)) as file:
        n_bytes = file.metadata.row_group(0).total_byte_size
    return lie(lie(content, n_rows, 1), n_bytes, 2**13)


def text_in_all_rows(**options):
    """Return a file of 100 rows with the same text of 2**20 letters."""
    table = pa.table({"a": ["x" * 2**20] * 100, "b": np.arange(100.0)})
    return to_parquet(table, compression="zstd", **options)


# The heads of pages -------------------------------------------------------------------


@pytest.mark.parametrize("options", FORMS.values(), ids=FORMS)
def test_heads_say_what_the_footer_of_an_honest_file_says(options):
    rng = np.random.default_rng(0)
    texts = rng.integers(0, 50, 1000).astype(str)
    table = pa.table({"a": rng.normal(size=1000), "b": texts, "c": [[1, 2]] * 1000})
    content = to_parquet(table, **options)
    with pa.parquet.ParquetFile(pa.BufferReader(content)) as file:
        meta = file.metadata
    sizes = measure(content)
    assert len(sizes) == meta.num_row_groups
    for number, size in enumerate(sizes):
        group = meta.row_group(number)
        values = sum(
            group.column(j).num_values * width for j, width in enumerate([8, 4, 8])
        )
        unpacked = sum(group.column(j).total_uncompressed_size for j in range(3))
        # The footer counts heads, too.
        assert 0 < size.pages <= unpacked + values
        assert values <= size.rows <= unpacked + values
        assert size.lists == group.column(2).num_values * (2 * 8 + 7)


def test_columns_that_are_not_read_do_not_count():
    table = pa.table({"a": np.arange(100.0), "a.b": np.arange(100), "c": [[1]] * 100})
    content = to_parquet(table, use_dictionary=False)
    (whole,), (numbers,), (lists,) = (
        measure(content, names) for names in (None, ["a.b"], ["c"])
    )
    assert 800 < numbers.rows < 850
    assert (numbers.lists, lists.lists) == (0, whole.lists)
    assert 1600 < whole.rows - lists.rows < 1700


def test_a_head_may_be_long(put):
    # The least and the greatest text of a page stand in its head.
    table = pa.table({"a": ["x" * 9000, "y" * 9000]})
    content = to_parquet(table, use_dictionary=False, compression="zstd")
    (size,) = measure(content)
    assert size.pages > 18_000
    assert read_table(put(content)).equals(table)


# What is refused ----------------------------------------------------------------------


@pytest.mark.parametrize("read", [read_table, open_source])
def test_a_page_that_the_footer_does_not_tell_of_is_refused(put, little_memory, read):
    content = hide_a_page()
    assert len(content) < 4000
    with pytest.raises(ValueError, match=r"would take about 3\d\.\d MB of memory"):
        read(put(content))


@pytest.mark.parametrize("read", [read_table, open_source])
@pytest.mark.parametrize("dtype", [bool, np.float64])
def test_a_row_of_very_many_equal_values_is_refused(put, little_memory, read, dtype):
    content = to_parquet(in_one_row(np.zeros(2**22, dtype)), compression="zstd")
    assert len(content) < 1000
    with pytest.raises(ValueError, match="of memory, and only"):
        read(put(content))


TEXTS = {
    "dictionary": {"compression": "zstd"},
    "shared beginnings": {
        "use_dictionary": False,
        "column_encoding": {"a.list.element": "DELTA_BYTE_ARRAY"},
    },
}


@pytest.mark.parametrize("read", [read_table, open_source])
@pytest.mark.parametrize("options", TEXTS.values(), ids=TEXTS)
def test_a_row_of_many_long_texts_is_refused(put, little_memory, read, options):
    content = to_parquet(in_one_row(["x" * 2**16] * 2**9), **options)
    assert len(content) < 2**19
    with pytest.raises(ValueError, match="of memory, and only"):
        read(put(content))


def test_texts_in_lists_are_counted_before_they_are_refused(put, little_memory):
    # That of 2**17 letters could be there more than 2**11 times, but is there once.
    texts = ["x" * 2**17, *"abcd" * 2**9]
    lists = pa.ListArray.from_arrays([0, 9, len(texts)], texts)
    rows = [{"name": "a", "tags": {"all": ["x" * 2**17, "a"]}}] * 2
    pairs = pa.array([[("x" * 2**17, "a")]] * 2, pa.map_(pa.string(), pa.string()))
    table = pa.table({"a": lists, "b": rows, "c": pairs, "d": [[None], None]})
    content = to_parquet(table, dictionary_pagesize_limit=2**20)
    (size,) = measure(content)
    assert size.list_letters > FREE
    path = put(content)
    assert read_table(path).equals(table)
    assert open_source(path).read(0, 2).equals(table)


@pytest.fixture
def asked(monkeypatch):
    """Note how many rows are decoded at once."""
    asked, usual = [], pa.parquet.ParquetFile.iter_batches

    def iter_batches(self, batch_size, *args, **more):
        asked.append(batch_size)
        return usual(self, batch_size, *args, **more)

    monkeypatch.setattr(pa.parquet.ParquetFile, "iter_batches", iter_batches)
    return asked


# The ways to write a text once, and the rows that are read at once to count letters: as
# places in a dictionary, or so many that they take a quarter of the free memory.
ONCE = {
    "dictionary": ({}, [2**20]),
    "shared beginnings": (
        {
            "use_dictionary": False,
            "column_encoding": {"a": "DELTA_BYTE_ARRAY", "b": "PLAIN"},
        },
        [2**20, 6],
    ),
}


@pytest.mark.parametrize(("options", "counted"), ONCE.values(), ids=ONCE)
def test_long_texts_are_decoded_a_few_rows_at_a_time(
    put, little_memory, asked, options, counted
):
    path = put(text_in_all_rows(**options))
    with pytest.raises(ValueError, match="of memory, and only"):
        read_table(path)
    assert asked == counted
    source = open_source(path)
    assert source.read(90, 100)["b"].to_pylist() == list(range(90, 100))
    assert asked == [*counted, 6]


# Much of nothing: tables of few bytes that take more than 28 MiB.
WIDE = {
    "truths": pa.nulls(2**23, pa.bool_()),
    "nothing": pa.nulls(2**23),
    "small numbers": pa.nulls(2**22, pa.int8()),
    "wide cells": pa.nulls(40, pa.binary(2**20)),
    "lists of one length": pa.nulls(8, pa.list_(pa.int32(), 2**20)),
    "records": pa.nulls(2**19, pa.struct([(f"{j}", pa.int64()) for j in range(8)])),
    "lists in lists": pa.array([[[[[[[[1] * 2**20]]]]]]]),
}


@pytest.mark.parametrize("column", WIDE.values(), ids=WIDE)
def test_much_of_nothing_is_refused(put, little_memory, column):
    content = to_parquet(pa.table({"a": column}), compression="zstd")
    assert len(content) < 20_000
    with pytest.raises(ValueError, match="of memory, and only"):
        read_table(put(content))


def test_wide_rows_are_read_a_few_at_a_time(put, little_memory, asked):
    path = put(to_parquet(pa.table({"a": WIDE["wide cells"]})))
    assert open_source(path).read(3, 5)["a"].null_count == 2
    assert asked == [16]


def test_a_row_that_does_not_fit_is_refused(put, little_memory):
    path = put(to_parquet(pa.table({"a": pa.nulls(1, pa.binary(2**25))})))
    for read in (read_table, open_source):
        with pytest.raises(ValueError, match="of memory, and only"):
            read(path)


def test_batches_have_what_they_use_of_a_dictionary(put, monkeypatch):
    monkeypatch.setattr("corral.sources._parquet._BATCH_ROWS", 10)
    places = pa.array([None if i % 7 == 3 else i % 50 for i in range(100)], pa.int8())
    texts = pa.array([f"{i:04}" * 250 for i in range(50)])
    table = pa.table({"a": pa.DictionaryArray.from_arrays(places, texts)})
    path = put(to_parquet(table))
    found = open_source(path).read(0, 100)
    assert found.schema == read_table(path).schema
    assert found["a"].to_pylist() == table["a"].to_pylist()
    used = [len(chunk.dictionary) for chunk in found["a"].chunks]
    assert len(used) == 10
    assert max(used) <= 10


def test_a_dictionary_is_decoded_once_for_many_rows(put, asked):
    # However large it is beside the rows.
    texts = pa.array([f"{i:04}" * 2**14 for i in range(500)])
    table = pa.table(
        {"a": pa.DictionaryArray.from_arrays(np.arange(1000) % 500, texts)}
    )
    content = to_parquet(table, dictionary_pagesize_limit=2**26)
    found = open_source(put(content)).read(0, 1000)
    assert found["a"].to_pylist() == table["a"].to_pylist()
    assert asked == [2**16]


def test_rows_that_do_not_fit_are_refused_before_they_are_all_there(put, monkeypatch):
    # Two rows of three have the long one, which nothing tells before they are decoded.
    texts = pa.array(["x" * 2**17, "y"])
    places = pa.array([0, 0, 1] * 300, pa.int8())
    coded = pa.table({"a": pa.DictionaryArray.from_arrays(places, texts)})
    content = to_parquet(coded, store_schema=False, dictionary_pagesize_limit=2**20)
    path, before = put(content), pa.total_allocated_bytes()

    def find_free():
        return FREE + before - pa.total_allocated_bytes()

    monkeypatch.setattr("corral.tables._limits.ALWAYS_FREE", 0)
    for module in ("_limits", "_parquet"):
        monkeypatch.setattr(f"corral.tables.{module}.find_free_memory", find_free)
    source = open_source(path)
    with pytest.raises(MemoryError, match="900 rows of '.*' would take about .* MB"):
        source.read(0, 900)
    assert source.read(7, 9).num_rows == 2


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.string_view()])
def test_texts_that_stand_in_too_many_rows_are_refused(little_memory, kind):
    texts = pa.array(["x" * 2**17, "y"], kind)
    try:
        texts.cast(pa.large_binary())
    except pa.ArrowNotImplementedError:
        pytest.skip("this release of pyarrow turns views into nothing else")
    places = pa.array([0, 0, 1, None] * 200, pa.int8())
    table = pa.table({"a": pa.DictionaryArray.from_arrays(places, texts), "b": places})
    with pytest.raises(MemoryError, match="Column 'a' would take about 52.* Shorten"):
        TableEncoder().fit(table)
    few = TableEncoder().fit(table.slice(0, 100))
    assert few.categorical_names_ == ["a"]


def test_dictionaries_in_records_stay_what_they_are(put, little_memory, asked):
    texts = pa.array(["x" * 2**17, "y"] * 1000).dictionary_encode()
    table = pa.table({"a": pa.StructArray.from_arrays([texts], ["b"])})
    content = to_parquet(table, dictionary_pagesize_limit=2**20)
    (size,) = measure(content)
    assert size.text == size.letters == 0
    assert open_source(put(content)).read(0, 2000).equals(table)
    assert asked == [2**16]


def test_columns_whose_names_have_dots_are_told_apart(put, little_memory):
    # Both are "a.b" to Parquet; the texts of one stay in their dictionary.
    records = pa.StructArray.from_arrays([pa.array(["x" * 2**17] * 300)], ["b"])
    coded = pa.array(["y"] * 300).dictionary_encode()
    content = to_parquet(pa.table({"a": records, "a.b": coded}))
    (size,) = measure(content)
    assert size.letters > FREE
    with pytest.raises(ValueError, match="of memory, and only"):
        read_table(put(content))


def test_values_of_other_types_are_counted_by_their_bytes():
    decimals = pa.array([[Decimal(1), Decimal(2)], None])
    assert _add_up_letters(decimals) == 2 * 16


def test_the_other_columns_of_a_file_that_is_refused_can_be_read(put, little_memory):
    table = in_one_row(np.zeros(2**22)).append_column("b", pa.array([1.0]))
    path = put(to_parquet(table, compression="zstd"))
    with pytest.raises(
        ValueError, match="Read other columns, or write it with smaller"
    ):
        open_source(path)
    assert open_source(path, columns="b").read(0, 1).to_pydict() == {"b": [1.0]}


def test_row_groups_that_do_not_fit_are_left_out_if_asked(put, little_memory):
    lists = pa.ListArray.from_arrays([0, 1, 2**22], np.zeros(2**22))
    path = put(to_parquet(pa.table({"a": lists}), row_group_size=1))
    source = open_source(path, on_error="skip")
    assert source.shape == (1, 1)
    (sentence,) = source.skipped
    assert "Row group 1 of" in sentence
    assert sentence.endswith("Its row is left out.")


def test_lists_of_texts_that_cannot_be_counted_are_read_where_they_fit(put):
    table = in_one_row(["ab", "abc", "abcd"] * 100)
    content = to_parquet(table, **TEXTS["shared beginnings"])
    assert read_table(put(content)).equals(table)


@pytest.mark.parametrize("read", [read_table, open_source])
def test_damaged_heads_are_refused(put, read):
    content = to_parquet(pa.table({"a": np.arange(100.0)}), use_dictionary=False)
    # The first page begins behind the name of the format.
    for damage in (b"\x1f", b"\x00\x00", b"\xff" * 12, b"\x15\x00\x15\x00\x15\x01\x00"):
        with pytest.raises(ValueError, match="is broken"):
            read(put(content[:4] + damage + content[4 + len(damage) :]))


def to_heads(n_values, n_bytes, place, n_columns=1, pages=bytes(64), n_chunks=1):
    """Return the heads of a file of few columns; its footer says this of each."""
    numbers = [0x56, n_values], [0x26, n_bytes], [0x26, place]
    chunk = b"".join(
        bytes([head]) + to_varint((value << 1) ^ (value >> 63))
        for head, value in numbers
    )
    # A list of one row group, and in it a list of columns.
    columns = (bytes([0x3C]) + chunk + bytes(2)) * n_chunks
    footer = bytes([0x49, 0x1C, 0x19, n_chunks << 4 | 12]) + columns + bytes(2)
    content = pages + footer + len(footer).to_bytes(4, "little") + b"PAR1"
    leaf = Leaf(
        "a", "a", 8, 2, n_lists=0, has_gaps=False, is_text=False, is_coded=False
    )
    return PageHeads(pa.BufferReader(content), [leaf] * n_columns)


@pytest.mark.parametrize(
    ("n_bytes", "place"), [(9, -1), (9, 2**62), (2**62, 4), (-9, 4), (2**63 - 1, 4)]
)
def test_columns_outside_of_the_file_are_refused(n_bytes, place):
    heads = to_heads(5, n_bytes, place)
    with pytest.raises(Broken, match="lies outside of the file"):
        heads.measure(0)


def test_a_row_group_with_other_columns_than_the_table_is_refused():
    heads = to_heads(5, 9, 4, n_columns=2)
    with pytest.raises(Broken, match="has other columns than the table"):
        heads.measure(0)


def test_pages_of_less_than_nothing_are_refused():
    # Of data, with 3 bytes that unpack to 3, and -1 values.
    heads = to_heads(
        5, 20, 0, pages=bytes([0x15, 0, 0x15, 6, 0x15, 6, 0x2C, 0x15, 1, 0, 0])
    )
    with pytest.raises(Broken, match="less than nothing"):
        heads.measure(0)


def test_pages_of_unknown_sorts_are_passed_over():
    unknown = bytes([0x15, 18, 0x15, 6, 0x15, 6, 0, *b"abc"])
    heads = to_heads(5, 30, 0, pages=unknown + DATA + bytes(9))
    assert heads.measure(0) == GroupSize(pages=40, rows=43)


DATA = bytes([0x15, 0, 0x15, 80, 0x15, 6, 0x2C, 0x15, 10, 0, 0, *b"abc"])


def test_columns_that_lie_over_each_other_are_refused():
    """Else a few bytes could be the pages of very many columns."""
    heads = to_heads(999, 5 * len(DATA), 0, n_columns=9, n_chunks=9, pages=5 * DATA)
    with pytest.raises(Broken, match="lie over each other"):
        heads.measure(0)


def test_pages_behind_the_end_count_as_far_as_pyarrow_reads():
    # Of old files, it reads a hundred bytes more.
    heads = to_heads(10, len(DATA), 0, pages=2 * DATA + bytes(100))
    assert heads.measure(0) == GroupSize(pages=40, rows=80)


def test_what_is_no_page_behind_the_end_does_not_count():
    heads = to_heads(10, len(DATA), 0, pages=DATA + b"\x1f" * 100)
    assert heads.measure(0) == GroupSize(pages=40, rows=40)


def test_a_column_may_end_before_its_values_do():
    assert to_heads(5, 0, 64, pages=b"\x1f" * 64).measure(0) == GroupSize()


# Lengths as differences ---------------------------------------------------------------

DELTAS = ["DELTA_LENGTH_BYTE_ARRAY", "DELTA_BYTE_ARRAY"]
DELTA_COLUMNS = {
    "texts": pa.array([f"{j:03}" for j in range(100)]),
    "gaps": pa.array([None, "abc"] * 100),
    "lists": pa.array([["abc", "abd"], None, ["x"]] * 50),
    "nothing": pa.nulls(100, pa.string()),
}

# Cells of one length, which share their beginnings.
SAME_LENGTH = {
    "few": pa.array([b"abcd", b"abce", b"xyzt", None] * 5, pa.binary(4)),
    "many": pa.array([b"%06d" % (j * j % 10**6) for j in range(5000)], pa.binary(6)),
    "long": pa.array(
        [bytes(j) + bytes(range(j, 200)) for j in range(50)], pa.binary(200)
    ),
    "lists": pa.array([[b"abc", b"abd"], None, [b"xyz"]] * 50, pa.list_(pa.binary(3))),
    "nothing": pa.nulls(100, pa.binary(3)),
}


def write_deltas(column, coding, **options):
    """Return a file whose texts are written by their lengths."""
    path = "a.list.element" if pa.types.is_list(column.type) else "a"
    codings = {"use_dictionary": False, "column_encoding": {path: coding}}
    return to_parquet(pa.table({"a": column}), **codings, **options)


@pytest.mark.parametrize("coding", DELTAS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
@pytest.mark.parametrize("column", DELTA_COLUMNS.values(), ids=DELTA_COLUMNS)
def test_texts_that_are_written_by_their_lengths_are_read(put, coding, version, column):
    for packing in ("none", "snappy", "gzip", "zstd", "brotli", "lz4"):
        options = {"data_page_version": version, "compression": packing}
        path = put(write_deltas(column, coding, **options))
        for table in (read_table(path), open_source(path).read(0, len(column))):
            assert table["a"].combine_chunks().equals(column), packing


@pytest.mark.parametrize("column", SAME_LENGTH.values(), ids=SAME_LENGTH)
def test_cells_of_one_length_are_read(put, column):
    path = put(write_deltas(column, "DELTA_BYTE_ARRAY"))
    assert read_table(path)["a"].combine_chunks().equals(column)


@pytest.mark.parametrize("read", [read_table, open_source])
def test_cells_that_are_not_as_long_as_the_column_says_are_refused(put, read):
    column = pa.array([b"abcd"] * 100, pa.binary(4))
    content = write_deltas(column, "DELTA_BYTE_ARRAY", compression="none")
    # A hundred numbers, the first of which is 0 and the least step between them, too.
    start = content.index(bytes([0x80, 1, 4, 100, 0, 0]))
    # Each cell shares four bytes more than the one before, so that the sum of their
    # lengths grows with the square of their number.
    lying = content[: start + 5] + bytes([8]) + content[start + 6 :]
    with pytest.raises(ValueError, match="cells that are not 4 bytes long"):
        read(put(lying))


@pytest.mark.parametrize("read", [read_table, open_source])
@pytest.mark.parametrize("coding", DELTAS)
@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_page_that_tells_of_more_texts_than_it_has_is_refused(
    put, read, coding, version
):
    options = {"data_page_version": version, "compression": "none"}
    content = write_deltas(DELTA_COLUMNS["texts"], coding, **options)
    # Blocks of 128 numbers, in four parts, and 100 of them; the last head counts where
    # texts share their beginnings.
    head = bytes([0x80, 1, 4, 100])
    start = content.rindex(head, 0, -200)
    lying = content[:start] + bytes([0x80, 1, 4, 127]) + content[start + 4 :]
    with pytest.raises(ValueError, match="tells of more texts than it has"):
        read(put(lying))


def test_differences_are_passed_over():
    # A block of 64 steps in 2 parts: of 40 numbers, the first 32 steps have 6 bits
    # each, and the others none. What follows are the letters.
    numbers = [64, 2, 40, 0, 1, 6, 0, *bytes(24)]
    check_lengths(bytes([*numbers, *b"letters"]), 40, LENGTHS)
    check_lengths(bytes(numbers * 2), 40, SHARED)
    check_lengths(b"", 40, SHARED)
    for wrong, coding in ((numbers, LENGTHS), (numbers * 2, SHARED)):
        with pytest.raises(ValueError, match="more texts than it has"):
            check_lengths(bytes(wrong), 39, coding)
    with pytest.raises(EOFError):
        check_lengths(bytes(numbers), 40, SHARED)


def test_differences_are_added_up():
    # Five cells share 0, 1, 0, 2 and 1 bytes, and have 3, 2, 3, 1 and 2 of their own.
    # Steps in one part of 32, with two bits each above -1, or above -2.
    shared = [32, 1, 5, 0, 1, 2, 0b00_11_00_10, *bytes(7)]
    own = [32, 1, 5, 6, 3, 2, 0b11_00_11_01, *bytes(7)]
    check_lengths(bytes(shared + own), 5, SHARED, 3)
    check_lengths(b"", 5, SHARED, 3)
    for other, width in ((own, 4), ([32, 1, 5, 6, 0, 0], 3), ([32, 1, 1, 6], 3)):
        with pytest.raises(ValueError, match=f"that are not {width} bytes long"):
            check_lengths(bytes(shared + other), 5, SHARED, width)
    with pytest.raises(ValueError, match="a difference of lengths has 40 bits"):
        check_lengths(bytes([32, 1, 2, 0, 0, 40, *bytes(160), *own]), 5, SHARED, 3)


@pytest.mark.parametrize("n_part", [0, 1, 31])
def test_differences_in_small_parts_are_refused(n_part):
    with pytest.raises(ValueError, match=f"packed in parts of {n_part}"):
        check_lengths(bytes([n_part, 1, 2, 0, 0, 0]), 2, LENGTHS)


def test_differences_that_do_not_fit_are_refused(little_memory):
    numbers = [32, 1, *to_varint(2**30), 0, 0, 0]
    with pytest.raises(Broken, match="would take about"):
        check_lengths(bytes(numbers), 2**30, LENGTHS)
    # A part of two million steps in a byte each, which its bits are unpacked to.
    part = bytes([*to_varint(2**21), 1, *to_varint(2**21), 0, 0, 8]) + bytes(2**21)
    with pytest.raises(Broken, match="would take about"):
        check_lengths(part * 2, 2**21, SHARED, 0)


def test_damaged_and_unknown_packing_is_refused():
    with pytest.raises(ValueError, match="in the way 3, which is not known"):
        unpack_page(b"abc", 3, 3)
    content = write_deltas(DELTA_COLUMNS["texts"], DELTAS[0], compression="zstd")
    place = content.index(b"\x28\xb5\x2f\xfd")
    content = content[:place] + b"xxxx" + content[place + 4 :]
    with pytest.raises(Broken, match="is broken: ZSTD decompression failed"):
        measure(content)


# Thrift -------------------------------------------------------------------------------

# The field 1 of a number, and the end of the record.
ONE = bytes([0x15, 2, 0])

OTHERS = {
    "yes": [0x11],
    "no": [0x12],
    "byte": [0x13, 7],
    "short": [0x14, 0xFF, 1],
    "double": [0x17, *range(8)],
    "text": [0x18, 3, *b"abc"],
    "list of numbers": [0x19, 0x35, 1, 2, 0xFF, 1],
    "long list": [0x19, 0xF3, 16, *range(16)],
    "list of yes": [0x19, 0x21, 1, 2],
    "set": [0x1A, 0x18, 1, 7],
    "map": [0x1B, 2, 0x38, 1, 1, 7, 2, 0],
    "map of nothing": [0x1B, 0],
    "record": [0x1C, 0x15, 9, 0],
    "list of records": [0x19, 0x2C, 0x15, 9, 0, 0],
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS)
def test_fields_that_are_not_wanted_are_passed_over(other):
    # The field 1 is not wanted as what it is; the field 2 is.
    reader = CompactReader(bytes([*other, 0x15, 0x81, 1, 0, 99]))
    assert reader.record({1: I64, 2: I32}) == {2: -65}
    assert reader.place == len(other) + 4


def test_records_and_lists_of_records():
    content = bytes([0x1C, 0x16, 6, 0, 0x19, 0x2C, 0x16, 2, 0, 0x16, 4, 0, 0])
    found = CompactReader(content).record({1: {1: I64}, 2: [{1: I64}]})
    assert found == {1: {1: 3}, 2: [{1: 1}, {1: 2}]}


def test_yes_and_no():
    content = bytes([0x11, 0x12, 0x15, 2, 0])
    found = CompactReader(content).record({1: TRUE, 2: TRUE, 3: TRUE})
    assert found == {1: True, 2: False}


@pytest.mark.parametrize("value", [0, 1, -1, 63, -64, 64, 2**31 - 1, -(2**31)])
def test_numbers(value):
    content = to_varint((value << 1) ^ (value >> 63))
    for kind in (I32, I64):
        head = bytes([0x10 | kind])
        assert CompactReader(head + content + b"\0").record({1: kind}) == {1: value}


def test_of_fields_that_are_there_twice_the_last_counts():
    # Numbers of fields go up; a step of 0 is followed by the number itself.
    assert CompactReader(bytes([0x15, 2, 0x05, 2, 4, 0])).record({1: I32}) == {1: 2}


def test_of_records_that_are_there_twice_all_fields_count():
    content = bytes([0x1C, 0x15, 2, 0x15, 4, 0, 0x0C, 2, 0x15, 6, 0, 0])
    found = CompactReader(content).record({1: {1: I32, 2: I32}})
    assert found == {1: {1: 3, 2: 2}}


def test_numbers_of_fields_go_round():
    steps = bytes([0xF3, 0] * (2**16 // 15))
    content = steps + bytes([0x25, 2, 0])
    assert CompactReader(content).record({1: I32}) == {1: 1}


WRONG = {
    "cut": (b"\x15", EOFError, "ends in the middle"),
    "cut text": (b"\x18\x7fabc", EOFError, "ends in the middle"),
    "list of more than there is": (b"\x19\xf7\xff\xff\xff\x7f", EOFError, "ends"),
    "map of more than there is": (b"\x1b\xff\xff\xff\x7f\x77", EOFError, "ends"),
    "number without end": (b"\x15" + b"\xff" * 20, ValueError, "does not end"),
    "kind": (b"\x1d" + bytes(20), ValueError, "no kind 13"),
    "deep records": (b"\x1c" * 100, ValueError, "nested too deeply"),
    "deep lists": (b"\x19" * 200, ValueError, "nested too deeply"),
}


@pytest.mark.parametrize(("content", "error", "words"), WRONG.values(), ids=WRONG)
def test_what_is_no_record(content, error, words):
    with pytest.raises(error, match=words):
        CompactReader(content).record({2: I32})
