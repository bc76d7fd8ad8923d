"""What is opened as what, and what is refused in which words."""

import io
import os
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

from corral.sources import (
    ArraySource,
    CsvSource,
    IteratorSource,
    ParquetSource,
    open_source,
)
from corral.tables import read_table

X = np.zeros((4, 2))


def test_each_kind_of_data_has_its_source(tmp_path, folder):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    (tmp_path / "t.data").write_text("a;b\n1;2\n")
    np.save(tmp_path / "t.npy", X)
    source = ArraySource(X)
    assert open_source(source) is source
    assert isinstance(open_source(X), ArraySource)
    assert isinstance(open_source(str(tmp_path / "t.npy")), ArraySource)
    assert isinstance(open_source(tmp_path / "t.csv"), CsvSource)
    assert open_source(tmp_path / "t.data", format="csv").names == ["a", "b"]
    assert isinstance(open_source(folder), ParquetSource)
    assert isinstance(open_source(folder / "a.parquet"), ParquetSource)
    assert isinstance(open_source(lambda: [X]), IteratorSource)


def test_the_package_loads_without_the_extras():
    code = (
        "import sys; "
        "sys.modules.update(dict.fromkeys(['pyarrow', 'pandas', 'polars'])); "
        "from corral.sources import *; print(open_source.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "open_source\n", done.stderr


@pytest.mark.parametrize("name", ["t.parquet", "t.csv"])
def test_files_say_how_to_install_pyarrow(tmp_path, monkeypatch, name):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    (tmp_path / name).write_bytes(b"PAR1" if "parquet" in name else b"a\n1\n")
    with pytest.raises(ImportError, match=r'pip install "corral\[tables\]"'):
        open_source(tmp_path / name)


def test_a_generator_is_refused():
    with pytest.raises(TypeError, match="generator can be read only once. Give a fun"):
        open_source(each for each in [X])
    with pytest.raises(TypeError, match="list_iterator can be read only once"):
        open_source(iter([X]))
    with pytest.raises(TypeError, match="data should be a path, an array.* Got list"):
        open_source([X])


def test_missing_paths_are_named(tmp_path):
    (tmp_path / "rows.csv").write_text("a\n1\n")
    with pytest.raises(FileNotFoundError, match="rows.csw' is not there. Did you mean"):
        open_source(tmp_path / "rows.csw")
    with pytest.raises(FileNotFoundError, match="Nor is its folder"):
        open_source(tmp_path / "nowhere" / "rows.parquet")


@pytest.mark.parametrize(
    ("named", "words"),
    [
        (
            {"on_error": "ignore"},
            "on_error='ignore' is not known. Choose one of",
        ),
        ({"format": "arff"}, "format='arff' cannot be read in pieces. Choose one of"),
        ({"columns": ["c"]}, "columns names 'c', which the table does not have"),
        ({"columns": []}, "columns is empty"),
        ({"format": "parquet"}, "t.csv' is not Parquet, as the format asked for says"),
    ],
)
def test_wrong_parameters_are_named(tmp_path, named, words):
    (tmp_path / "t.csv").write_text("a,b\n1,2\n")
    with pytest.raises(ValueError, match=words):
        open_source(tmp_path / "t.csv", **named)


def test_parameters_for_files_are_refused_for_arrays(tmp_path):
    np.save(tmp_path / "t.npy", X)
    with pytest.raises(ValueError, match="columns='a' is for files.* Got ndarray"):
        open_source(X, columns="a")
    with pytest.raises(ValueError, match="but those of '.*t.npy' have no names"):
        open_source(tmp_path / "t.npy", columns="a")
    with pytest.raises(ValueError, match="format='csv' is for files. Got ndarray"):
        open_source(X, format="csv")


def test_what_cannot_be_read_twice_or_in_pieces_is_refused(tmp_path):
    file = io.BytesIO()
    np.savez(file, X=X)
    (tmp_path / "t.npz").write_bytes(file.getvalue())
    os.mkfifo(tmp_path / "pipe.csv")
    for name, words in [
        ("t.npz", "t.npz' is NPZ, which cannot be read in pieces"),
        ("pipe.csv", "pipe.csv' can be read only once. Save it as a file"),
    ]:
        with pytest.raises(ValueError, match=words):
            open_source(tmp_path / name)
    with pytest.raises(ValueError, match="Standard input can be read only once"):
        open_source("-")
    (tmp_path / "t.parquet.gz").write_bytes(b"\x1f\x8b")
    with pytest.raises(ValueError, match="Parquet that is packed cannot be read in"):
        open_source(tmp_path / "t.parquet.gz")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ValueError, match="empty' is a folder without Parquet files"):
        open_source(tmp_path / "empty")
    with pytest.raises(ValueError, match="folder, which is read as Parquet files only"):
        open_source(tmp_path / "empty", format="csv")


@pytest.mark.parametrize("suffix", [".csv", ".npy"])
def test_names_of_files_are_spelled_out(tmp_path, suffix):
    path = tmp_path / f"red\x1b[31m\u202e{suffix}"
    if suffix == ".npy":
        np.save(path, np.ones((2, 2)))
    else:
        path.write_text("a,b\n1,2\n")
    assert rf"red\x1b[31m\u202e{suffix}" in repr(open_source(path))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have text names")
@pytest.mark.parametrize("suffix", ["csv", "parquet", "npy"])
def test_names_of_files_that_are_not_utf8(tmp_path, suffix):
    path = tmp_path / os.fsdecode(b"rows-\xff." + suffix.encode())
    table = pa.table({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    with path.open("wb") as file:
        if suffix == "csv":
            pa.csv.write_csv(table, file)
        elif suffix == "parquet":
            pa.parquet.write_table(table, file)
        else:
            np.save(file, np.array([[1.0, 3.0], [2.0, 4.0]]))
    assert read_table(path).shape == (2, 2)
    if suffix == "npy":
        assert open_source(path).shape == (2, 2)
        return
    with pytest.raises(ValueError, match=r"rows-.* not UTF-8, .* Rename it"):
        open_source(path)
