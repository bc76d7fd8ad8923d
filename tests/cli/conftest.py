"""The example table in a file, and a model fitted to it."""

import pytest

from tests.cli.example import FIT, make_rows, run_corral, write_table


@pytest.fixture
def run():
    return run_corral


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """Return the path of the table, whose folder the tests share."""
    return write_table(tmp_path_factory.mktemp("table") / "data.csv", make_rows())


@pytest.fixture(scope="session")
def fitted(data, tmp_path_factory):
    """Return a folder with the labels, the report and the model of one fit."""
    folder = tmp_path_factory.mktemp("fitted")
    outputs = {"labels": "labels.csv", "report": "report.html", "model": "model.skops"}
    words = [w for key, name in outputs.items() for w in (f"--{key}", folder / name)]
    result = run_corral("fit", data, *FIT, *words)
    assert result.exit_code == 0, result.output
    (folder / "summary.txt").write_text(result.stdout)
    return folder


@pytest.fixture(scope="session")
def model(fitted):
    return fitted / "model.skops"
