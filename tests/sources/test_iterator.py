"""Blocks of a function are read in any ranges, and have to come again as they were."""

import functools
import json
import pickle
from itertools import count

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from scipy import sparse

from corral.sources import UnreadableBlockError, open_source

X = np.random.default_rng(0).normal(size=(100, 3))
CUTS = [0, 1, 40, 40, 90, 100]


def cut(rows):
    return [rows[a:b] for a, b in zip(CUTS[:-1], CUTS[1:], strict=True)]


def array_blocks():
    yield from cut(X)


def reused_blocks():
    # Readers of files often use the same memory for all blocks.
    memory = np.empty((50, 3))
    for block in cut(X):
        memory[: len(block)] = block
        yield memory[: len(block)]


def changing(*passes):
    """Return a function that gives other blocks at each call."""
    numbers = count()
    return lambda: iter(passes[min(next(numbers), len(passes) - 1)])


@pytest.mark.parametrize("factory", [array_blocks, reused_blocks, lambda: cut(X)])
def test_any_ranges_of_arrays_equal_the_whole(factory, read_in_ranges):
    source = open_source(factory)
    assert source.shape == (100, 3)
    assert source.names is None
    assert source.borders == [0, 1, 40, 90, 100]
    read_in_ranges(source, X)


def test_any_ranges_of_sparse_rows_equal_the_whole(read_in_ranges):
    rows = sparse.csr_array(np.where(X > 0.5, X, 0))
    source = open_source(lambda: (sparse.csc_array(each) for each in cut(rows)))
    read_in_ranges(source, rows)
    assert isinstance(source.read(3, 60), sparse.csr_array)
    assert isinstance(source.read(3, 3), sparse.csr_array)


@pytest.mark.parametrize(
    "convert",
    [
        lambda table: table,
        lambda table: table.combine_chunks().to_batches()[0],
        lambda table: table.to_pandas().set_axis(range(7, 7 + len(table)), axis=0),
        lambda table: pl.from_arrow(table),
    ],
    ids=["table", "batch", "pandas", "polars"],
)
def test_any_ranges_of_frames_equal_the_whole(convert, mixed_table, read_in_ranges):
    # pandas has no whole numbers that are missing, and NaN for missing floats.
    table = mixed_table.set_column(0, "size", mixed_table["size"].fill_null(0))
    cuts = [0, 10, 500, 1000]
    pieces = [table[a:b] for a, b in zip(cuts[:-1], cuts[1:], strict=True)]
    source = open_source(lambda: map(convert, pieces))
    assert source.names == ["size", "count", "color"]
    read_in_ranges(source, table)


def test_columns_are_read_in_the_order_asked_for(mixed_table):
    source = open_source(lambda: [mixed_table], columns=["color", "size"])
    assert source.read(3, 9) == mixed_table.select(["color", "size"])[3:9]
    with pytest.raises(ValueError, match="columns names 'colour', which the table"):
        open_source(lambda: [mixed_table], columns="colour")
    with pytest.raises(ValueError, match="but the blocks are arrays, whose columns"):
        open_source(array_blocks, columns="size")


def test_types_hold_all_blocks():
    source = open_source(lambda: [X.astype(np.float32), np.ones((2, 3), int), X])
    assert source.dtype == source.read(0, 1).dtype == np.float64
    frames = [
        pd.DataFrame({"a": [1, 2], "b": [None, None]}),
        pd.DataFrame({"b": ["x", None], "a": [0.5, None]}),
    ]
    read = open_source(lambda: frames).read(0, 4)
    assert read.to_pydict() == {"a": [1, 2, 0.5, None], "b": [None, None, "x", None]}


def test_a_source_is_pickled_with_its_function(read_in_ranges):
    source = open_source(functools.partial(np.array_split, X, 7))
    source.read(0, 50)
    read_in_ranges(pickle.loads(pickle.dumps(source)), X)


@pytest.mark.parametrize("blocks", [[], [X[:0]], [X[:0], X[:0]]])
def test_nothing_is_refused(blocks):
    with pytest.raises(ValueError, match="What <lambda> gives has no rows"):
        open_source(lambda: blocks)


@pytest.mark.parametrize(
    ("blocks", "words"),
    [
        (
            [X, X[:, :2]],
            "Block 1 of <lambda> has 2 columns, but those before .* 3",
        ),
        ([X, sparse.csr_array(X)], "Block 1 .* is a csr_array, but .* are ndarray"),
        (
            [pa.table({"a": [1]}), pa.table({"b": [1]})],
            "Block 1 of <lambda> lacks the column 'a', unlike those before it",
        ),
        (
            [pa.table({"a": [1]}), pa.table({"a": ["x"]})],
            "Block 1 .*cannot be joined .*: .*Field a has incompatible types",
        ),
        ([X, X[0]], r"Block 1 of <lambda> cannot be read: .*shape \(3,\)"),
        ([X, X.astype(object)], "Block 1 .* holds object cells; they should be numb"),
        ([X, "text"], "Block 1 of <lambda> cannot be read: TypeError: A table should"),
    ],
)
def test_blocks_that_do_not_belong_together_are_named(blocks, words):
    with pytest.raises(UnreadableBlockError, match=words):
        open_source(lambda: blocks)


@pytest.mark.parametrize(
    ("second", "words"),
    [
        ([], "gave 0 blocks with rows, but 2 in the first pass. The function should"),
        ([X[:60]], "gave 1 blocks with rows, but 2"),
        ([X[:60], X[60:99]], "Block 1 of .* has rows: 39, but in the first pass .* 40"),
        ([X[:60], X[60:], X[:1]], "gives more than the 2 blocks of the first pass"),
        ([X[:60, :2], X[60:, :2]], "Block 0 of .* has columns: 2, but .* was 3"),
        ([X[:60].astype("f4"), X[60:]], "has cells of type: <f4, but .* was <f8"),
        ([X[:60][::-1], X[60:]], "The first or last row of block 0 of"),
    ],
)
def test_other_blocks_the_second_time_are_refused(second, words):
    source = open_source(changing([X[:60], X[60:]], second))
    for _ in range(2):
        with pytest.raises(UnreadableBlockError, match=words):
            source.read(0, 100)


def test_an_iterator_that_is_given_twice_is_refused():
    once = iter(cut(X))
    source = open_source(lambda: once)
    with pytest.raises(UnreadableBlockError, match="return a new iterator over the sa"):
        source.read(0, 10)


@pytest.mark.parametrize(
    ("factory", "words"),
    [
        (lambda path: [X], "function without arguments .* Calling it failed: .*'path'"),
        (lambda: X, "<lambda> returned a ndarray. It should return an iterator"),
        (lambda: None, "<lambda> returned a NoneType. It should return an iterator"),
    ],
)
def test_functions_that_return_no_iterator_are_refused(factory, words):
    with pytest.raises(TypeError, match=words):
        open_source(factory)


def failing():
    yield X[:30]
    yield X[30:50]
    raise OSError("the disk is gone")


def test_a_block_that_cannot_be_made_is_named(read_in_ranges):
    words = "Block 2 of failing cannot be read: OSError: the disk is gone."
    with pytest.raises(UnreadableBlockError, match=words):
        open_source(failing)
    source = open_source(failing, on_error="skip")
    read_in_ranges(source, X[:50])
    assert source.skipped == [f"{words} It and what follows it are left out."]


def test_nothing_that_can_be_made_is_an_error():
    def broken():
        raise OSError("no disk")
        yield

    with pytest.raises(UnreadableBlockError, match="Nothing of .*broken gives can be"):
        open_source(broken, on_error="skip")


def test_fingerprints_tell_blocks_apart():
    first = open_source(array_blocks).fingerprint()
    assert json.loads(json.dumps(first)) == first
    assert open_source(reused_blocks).fingerprint() == first
    assert open_source(lambda: cut(X + 1)).fingerprint() != first
    assert repr(open_source(array_blocks)) == (
        "IteratorSource(array_blocks, shape=(100, 3))"
    )


def change_one(rows):
    """Return rows with another cell in the midst of a block."""
    changed = rows.copy()
    changed[20, 1] += 1e-9
    return changed


@pytest.mark.parametrize(
    "convert",
    [
        lambda rows: rows,
        np.asfortranarray,
        sparse.csr_array,
        lambda rows: pa.table({name: rows[:, j] for j, name in enumerate("abc")}),
        lambda rows: pa.table({"text": list(map(str, rows[:, 1]))}),
        lambda rows: pd.DataFrame(rows, columns=list("abc")),
    ],
    ids=["array", "columns", "sparse", "table", "text", "pandas"],
)
def test_fingerprints_cover_all_cells(convert):
    def digest(rows):
        return open_source(lambda: map(convert, cut(rows))).fingerprint()["digest"]

    assert digest(X) == digest(X.copy())
    assert digest(X) != digest(change_one(X))


def test_fingerprints_of_tables_do_not_depend_on_chunks():
    table = pa.table({"a": list(range(10)), "b": ["x", None] * 5})
    pieces = pa.concat_tables([table.slice(0, 3), table.slice(3)])
    noted = pieces.replace_schema_metadata({"made": "today"})
    digests = {
        open_source(lambda each=each: [each]).fingerprint()["digest"]
        for each in (table, pieces, noted, pa.concat_tables([table, table]).slice(10))
    }
    assert len(digests) == 1


def test_fingerprints_do_not_depend_on_what_is_beneath_missing_cells():
    def blocks(beneath):
        values = np.array([1.0, beneath, 3.0])
        is_known = pa.py_buffer(bytes([0b101 if beneath else 0b11111101]))
        column = pa.Array.from_buffers(
            pa.float64(), 3, [is_known, pa.py_buffer(values)], null_count=1
        )
        return [pa.table({"a": column})]

    first, second = (
        open_source(functools.partial(blocks, each)).fingerprint() for each in (0, 7)
    )
    assert first == second
