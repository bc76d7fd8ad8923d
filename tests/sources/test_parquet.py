"""Parquet files and folders are read in pieces; broken ones are named."""

import json
import multiprocessing
import os
import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from corral.sources import ParquetSource, UnreadableBlockError, open_source
from corral.tables import read_table

write = pa.parquet.write_table


def damage(path, group, column=0):
    """Overwrite some bytes in the middle of a column of a row group."""
    chunk = pa.parquet.read_metadata(path).row_group(group).column(column)
    content = bytearray(path.read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    middle = start + chunk.total_compressed_size // 2
    content[middle : middle + 8] = bytes(255 - each for each in content[middle:][:8])
    path.write_bytes(content)


@pytest.fixture
def broken(tmp_path):
    """Return a file with three row groups, the second of which is broken."""
    path = tmp_path / "broken.parquet"
    table = pa.table({"a": np.random.default_rng(0).normal(size=3000)})
    write(table, path, row_group_size=1000, write_page_checksum=True)
    damage(path, 1)
    return path


def test_any_ranges_of_a_folder_equal_the_whole(folder, mixed_table, read_in_ranges):
    source = open_source(folder)
    assert source.shape == (1000, 3)
    assert source.names == ["size", "count", "color"]
    assert source.borders == [0, 70, 140, 210, 280, 300, 400, 733, 1000]
    assert source.skipped == []
    read_in_ranges(source, mixed_table)
    read_in_ranges(pickle.loads(pickle.dumps(source)), mixed_table)


def test_columns_that_only_folders_have_are_told(tmp_path, mixed_table):
    for part in ("year=2024/color=red", "year=2025/color=blue"):
        (tmp_path / part).mkdir(parents=True)
        write(mixed_table, tmp_path / part / "t.parquet")
    (told,) = open_source(tmp_path).skipped
    assert "tell of columns that its files do not have ('year')" in told
    assert "write them into the files" in told
    assert open_source(tmp_path, columns=["size"]).skipped == []
    assert open_source(tmp_path / "year=2024").skipped == []


def test_row_groups_of_several_batches(tmp_path, mixed_table, read_in_ranges):
    # The batches are smaller than the row group.
    large = pa.concat_tables([mixed_table] * 150)
    write(large, tmp_path / "t.parquet", row_group_size=140_000)
    source = open_source(tmp_path / "t.parquet")
    assert source.borders == [0, 140_000, 150_000]
    for start, stop in [(0, 10), (65_530, 65_540), (139_995, 140_005), (7, 70_000)]:
        assert source.read(start, stop) == large[start:stop]


def test_columns_are_read_in_the_order_asked_for(folder, mixed_table):
    source = open_source(folder, columns=["color", "size"])
    assert source.shape == (1000, 2)
    assert source.read(390, 410) == mixed_table.select(["color", "size"])[390:410]
    assert open_source(folder, columns="size").names == ["size"]


def test_an_empty_range_has_the_columns(folder, mixed_table):
    assert open_source(folder).read(5, 5) == mixed_table[:0]


def test_row_groups_are_decoded_once_when_read_in_order(folder, monkeypatch):
    source = open_source(folder)
    decoded = []
    batches = ParquetSource._batches

    def count(self, file, group):
        decoded.append((os.path.relpath(group.mark.path, folder), group.number))
        return batches(self, file, group)

    monkeypatch.setattr(ParquetSource, "_batches", count)
    for start in range(0, 1000, 37):
        source.read(start, min(start + 37, 1000))
    assert len(decoded) == len(set(decoded)) == len(source.borders) - 1
    decoded.clear()
    # Row groups in between are not decoded.
    source.read(0, 10)
    source.read(900, 910)
    assert decoded == [("a.parquet", 0), ("deep/a.parquet", 1)]


def test_types_survive(tmp_path):
    table = pa.table(
        {
            "when": pa.array([1, 2, 3], pa.timestamp("us", "UTC")),
            "kind": pa.array(["a", "b", "a"]).dictionary_encode(),
            "list": pa.array([[1], [], [2, 3]]),
            "dots.in.name": pa.array([1, None, 2], pa.int8()),
        }
    )
    write(table, tmp_path / "t.parquet", row_group_size=2)
    read = open_source(tmp_path / "t.parquet").read(0, 3)
    assert read.schema.types == table.schema.types
    assert read.to_pydict() == table.to_pydict()


# Forking with threads is what is tested; Python 3.12 and later warn of it.
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
def test_other_processes_read_by_themselves(folder, mixed_table):
    source = open_source(folder)
    assert len(pickle.dumps(source)) < 5000
    source.read(0, 50)
    for method in ("fork", "spawn"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            block = pool.apply(source.read, (50, 500))
        assert block == mixed_table[50:500]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda t: t.drop_columns("size"),
            "z.parquet' has no column 'size', but",
        ),
        (lambda t: t.append_column("x", t["size"]), "z.parquet' has a column 'x', but"),
        (
            lambda t: t.set_column(1, "count", t["count"].cast(pa.float64())),
            "Column 'count' of .*z.parquet' is double, but .*a.parquet' is int64",
        ),
    ],
    ids=["lacking", "more", "type"],
)
def test_files_that_differ_are_named_with_the_column(
    folder, mixed_table, change, words
):
    write(change(mixed_table), folder / "z.parquet")
    with pytest.raises(UnreadableBlockError, match=words):
        open_source(folder)
    source = open_source(folder, on_error="skip")
    assert source.read(0, 1000) == mixed_table
    assert len(source.skipped) == 1
    assert source.skipped[0].endswith("Its 1,000 rows are left out.")
    assert open_source(folder, columns="color").shape == (2000, 1)


def test_a_row_group_with_a_wrong_checksum_is_named(broken):
    source = open_source(broken)
    words = "Row group 1 of '.*broken.parquet' is broken: .*CRC"
    assert source.read(0, 1000).num_rows == 1000
    for _ in range(2):
        with pytest.raises(UnreadableBlockError, match=words):
            source.read(500, 1500)
    assert source.read(2000, 3000).num_rows == 1000


@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_a_row_group_that_cannot_be_decoded_is_named(tmp_path, compression):
    table = pa.table({"a": [f"{j} {j // 7}" for j in range(2000)]})
    path = tmp_path / "t.parquet"
    named = {"compression": compression, "use_dictionary": False}
    write(table, path, row_group_size=1000, **named)
    damage(path, 1)
    with pytest.raises(UnreadableBlockError, match="Row group 1 of '.*t.parquet' is"):
        open_source(path).read(0, 2000)


def test_broken_row_groups_are_left_out_if_asked(broken):
    whole = open_source(broken).read(0, 1000), open_source(broken).read(2000, 3000)
    source = open_source(broken, on_error="skip")
    assert source.borders == [0, 1000, 2000]
    assert source.read(0, 2000) == pa.concat_tables(whole)
    (sentence,) = source.skipped
    assert sentence.startswith("Row group 1 of '")
    assert sentence.endswith(" Its 1,000 rows are left out.")


def test_columns_that_are_not_read_may_be_broken(tmp_path, mixed_table):
    path = tmp_path / "t.parquet"
    write(mixed_table, path, write_page_checksum=True, use_dictionary=False)
    damage(path, 0, column=2)
    assert open_source(path, columns=["size", "count"]).read(0, 1000).num_rows == 1000
    with pytest.raises(UnreadableBlockError, match="Row group 0"):
        open_source(path).read(0, 10)


@pytest.mark.parametrize("n_left", [0, 3, 7, 5000])
def test_files_that_are_cut_off_are_named(folder, mixed_table, n_left):
    path = folder / "cut.parquet"
    write(mixed_table, path)
    path.write_bytes(path.read_bytes()[:n_left])
    words = "cut.parquet' is (empty|broken or cut off|not Parquet)"
    for place in (path, folder):
        with pytest.raises(ValueError, match=words):
            open_source(place)
    source = open_source(folder, on_error="skip")
    assert source.read(0, 1000) == mixed_table
    assert len(source.skipped) == 1
    with pytest.raises(UnreadableBlockError, match="Nothing of .* can be read"):
        ParquetSource(path, on_error="skip")


def count_otherwise(content, n_rows, *places):
    """Return a file whose footer tells of two more rows at some places.

    The place -3 has the rows of the file, and -1 those of its only row group.
    """
    content = bytearray(content)
    # As Thrift writes a number of 64 bits: its kind, then twice the number.
    number = bytes([0x16, 2 * n_rows])
    found = [j for j in range(len(content)) if content[j : j + 2] == number]
    for place in places:
        content[found[place] + 1] += 4
    return bytes(content)


def test_footers_that_count_wrongly_are_refused(tmp_path):
    path = tmp_path / "t.parquet"
    write(pa.table({"a": range(50)}), path, use_dictionary=False)
    content = path.read_bytes()
    for place in (-3, -1):
        path.write_bytes(count_otherwise(content, 50, place))
        for read in (open_source, read_table):
            with pytest.raises(
                ValueError, match="footer tells of 5. rows, its row groups of 5"
            ):
                read(path)
    path.write_bytes(count_otherwise(content, 50, -3, -1))
    with pytest.raises(ValueError, match="holds 50 rows, but its footer tells of 52"):
        read_table(path)
    with pytest.raises(UnreadableBlockError, match="holds 50 rows, but should have 52"):
        open_source(path).read(0, 52)
    with pytest.raises(UnreadableBlockError, match="Nothing of .* can be read"):
        open_source(path, on_error="skip")


def test_a_table_of_no_columns_is_refused(tmp_path):
    # Its rows are not written, but a footer may tell of some.
    path = tmp_path / "t.parquet"
    write(pa.table({"a": [1, 2]}).select([]), path)
    path.write_bytes(count_otherwise(path.read_bytes(), 0, 0, 2))
    for read in (open_source, read_table):
        with pytest.raises(ValueError, match=r"t\.parquet' has no columns"):
            read(path)


def test_data_without_rows_is_refused(tmp_path, mixed_table):
    write(mixed_table[:0], tmp_path / "t.parquet")
    for place in (tmp_path, tmp_path / "t.parquet"):
        with pytest.raises(ValueError, match="' has no rows."):
            open_source(place)


def test_format_takes_files_without_suffix(folder, mixed_table):
    (folder / "notes.txt").unlink()
    write(mixed_table, folder / "part-0000")
    assert open_source(folder).shape[0] == 1000
    assert open_source(folder, format="parquet").shape[0] == 2000


def test_a_file_that_changes_is_noticed(folder, mixed_table):
    source = open_source(folder)
    first = source.fingerprint()
    assert json.loads(json.dumps(first)) == first
    assert open_source(folder).fingerprint() == first
    write(mixed_table[:100], folder / "c.pq", compression="none")
    assert open_source(folder).fingerprint() != first
    with pytest.raises(UnreadableBlockError, match="c.pq' has changed since"):
        source.read(350, 360)
    (folder / "c.pq").unlink()
    with pytest.raises(UnreadableBlockError, match="c.pq' cannot be opened again: No"):
        source.read(350, 360)
    assert "shape=(1000, 3)" in repr(source)
