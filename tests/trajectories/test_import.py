import subprocess
import sys

import corral.trajectories


def test_import_brings_no_extras():
    # Beyond what scikit-learn brings: it looks for pandas itself.
    code = (
        "import sys, sklearn.cluster; before = set(sys.modules);"
        "import corral.trajectories; print(*(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"click", "jinja2", "matplotlib", "pandas", "polars", "pyarrow"}


def test_public_names_are_there_and_described():
    for name in corral.trajectories.__all__:
        assert getattr(corral.trajectories, name).__doc__, name
