"""What is loaded only when it is used, and what is said when it is not there."""

import subprocess
import sys

import numpy as np
import pytest

from corral import COR, persist
from corral.tables import read_table, write_rows


def test_the_packages_load_without_the_extras():
    # A look at what came along would not do: scikit-learn loads pandas if it is there.
    code = (
        "import sys; "
        "sys.modules.update(dict.fromkeys(['pyarrow', 'skops', 'pandas', 'polars'])); "
        "import corral.tables, corral.persist; "
        "from corral.tables import TableEncoder, TableModel, read_table, write_rows; "
        "print('loaded')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "loaded\n", done.stderr


def test_who_only_writes_files_does_not_load_scikit_learn():
    code = "import sys, corral.tables._write; print('sklearn' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout == "False\n", done.stderr


def test_csv_is_written_without_pyarrow(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    write_rows(tmp_path / "r.csv", {"a": [1, None]})
    assert (tmp_path / "r.csv").read_text() == 'a\n1\n""\n'


def test_missing_extras_say_how_to_install_them(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    monkeypatch.setitem(sys.modules, "skops.io", None)
    (tmp_path / "t.csv").write_text("a\n1\n")
    with pytest.raises(ImportError, match=r'pip install "corral\[tables\]"'):
        read_table(tmp_path / "t.csv")
    model = COR(2, n_partitions=5).fit(np.random.default_rng(0).normal(size=(30, 2)))
    with pytest.raises(ImportError, match=r'pip install "corral\[persist\]"'):
        persist.save(model, tmp_path / "m.skops")
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]
