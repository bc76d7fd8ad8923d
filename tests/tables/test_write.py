"""Files are complete or not there, and read back as they were."""

import gzip
import io
import os
import stat

import numpy as np
import pytest

from corral.tables import read_table, write_atomically, write_csv, write_rows

COLUMNS = {
    "id": ["a", 'b "c", d', None],
    "label": np.array([0, 1, -1], dtype=np.int32),
    "score": np.array([0.1, np.nan, 1e-17]),
}
BACK = {
    "id": ["a", 'b "c", d', None],
    "label": [0, 1, -1],
    "score": [0.1, None, 1e-17],
}


@pytest.mark.parametrize(
    "name", ["r.csv", "r.CSV", "r.tsv", "r.csv.gz", "r.tsv.gz", "r.parquet", "r.pq"]
)
def test_rows_come_back(tmp_path, name):
    write_rows(tmp_path / name, COLUMNS)
    assert read_table(tmp_path / name).to_pydict() == BACK
    assert os.listdir(tmp_path) == [name]


def test_csv_is_plain():
    file = io.StringIO()
    write_csv(file, COLUMNS)
    assert file.getvalue() == ('id,label,score\na,0,0.1\n"b ""c"", d",1,\n,-1,1e-17\n')


def test_gzip_of_the_same_rows_is_the_same(tmp_path):
    write_rows(tmp_path / "a.csv.gz", COLUMNS)
    write_rows(tmp_path / "b.csv.gz", COLUMNS)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()
    assert gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).startswith(b"id,label")


def test_an_unknown_suffix_lists_the_known(tmp_path):
    with pytest.raises(ValueError, match=r"suffix '\.xlsx' is not known.*\.parquet"):
        write_rows(tmp_path / "r.xlsx", COLUMNS)


def test_columns_of_unequal_length_write_nothing(tmp_path):
    with pytest.raises(ValueError, match="same number of rows. Got 'a' 2, 'b' 1"):
        write_rows(tmp_path / "r.csv", {"a": [1, 2], "b": [1]})
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit])
def test_what_ends_early_leaves_the_old_file(tmp_path, error):
    path = tmp_path / "r.txt"
    path.write_text("old")

    def stop():
        with write_atomically(path) as part:
            part.write_text("half")
            assert part.parent == tmp_path
            assert part.suffix == ".txt"
            raise error

    with pytest.raises(error):
        stop()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["r.txt"]


def test_an_interrupt_within_a_column_leaves_no_file(tmp_path):
    class Stopping(list):
        def __iter__(self):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_rows(tmp_path / "r.csv", {"a": Stopping([1])})
    assert os.listdir(tmp_path) == []


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "real.csv").write_text("old")
    (tmp_path / "link.csv").symlink_to("real.csv")
    write_rows(tmp_path / "link.csv", {"a": [1]})
    assert (tmp_path / "link.csv").is_symlink()
    assert (tmp_path / "real.csv").read_text() == "a\n1\n"


def test_a_device_is_written_to_and_not_replaced():
    with write_atomically("/dev/null") as part:
        part.write_text("gone")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"gone' is not there. Make it first"):
        write_rows(tmp_path / "gone" / "r.csv", {"a": [1]})


def test_a_folder_is_no_file(tmp_path):
    (tmp_path / "r.csv").mkdir()
    with pytest.raises(ValueError, match=r"is a folder. Name a file in it"):
        write_rows(tmp_path / "r.csv", {"a": [1]})
