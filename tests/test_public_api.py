"""What the package exports, and what importing it does not import."""

import subprocess
import sys

import pytest

import corral


def test_public_names():
    assert set(corral.__all__) == {
        "COR",
        "CORDetector",
        "Selection",
        "__version__",
        "all_methods",
        "load",
        "metrics",
        "select",
    }
    assert all(hasattr(corral, name) for name in corral.__all__)


def test_import_brings_no_extras():
    # Beyond what scikit-learn brings: it looks for pandas itself.
    code = (
        "import sys, sklearn.cluster; before = set(sys.modules);"
        "from corral import *; print(*(set(sys.modules) - before))"
    )
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in result.stdout.split()}
    assert "corral" in loaded
    extras = {"click", "dask", "jinja2", "matplotlib", "pandas", "polars", "pyarrow"}
    assert not loaded & (extras | {"tqdm"})


def test_names_are_loaded_when_they_are_asked_for():
    code = "import sys, corral; print('sklearn' in sys.modules, 'numpy' in sys.modules)"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["False", "False"]
    assert set(corral.__all__) <= set(dir(corral))


def test_unknown_names_are_refused():
    with pytest.raises(AttributeError, match="'corral' has no attribute 'KOR'"):
        _ = corral.KOR
