import json

import pytest

from corral.datasets import list_datasets
from tests.cli.example import only_line, run_corral


def test_list_has_a_line_per_data_set():
    head, *lines = run_corral("datasets", "list").stdout.splitlines()
    assert head.split()[:3] == ["name", "rows", "features"]
    assert [line.split()[0] for line in lines] == list_datasets()


def test_list_as_json_says_what_can_be_fetched():
    sets = json.loads(run_corral("datasets", "list", "--json").stdout)
    found = {each["name"]: each for each in sets}
    assert found["glass"]["can_fetch"]
    assert not found["caltech"]["can_fetch"]
    assert found["glass"]["n_samples"] == 214


def test_fetch_prints_the_files(monkeypatch, tmp_path):
    # The download itself is tested with the data sets.
    calls = []

    def fetch(name, *, data_dir, progress):
        calls.append((name, data_dir, progress))
        return [data_dir / f"{name}.data"]

    monkeypatch.setattr("corral.datasets.fetch_dataset", fetch)
    result = run_corral("datasets", "fetch", "glass", "yeast", "--folder", tmp_path)
    assert result.stdout.split() == [
        str(tmp_path / "glass.data"),
        str(tmp_path / "yeast.data"),
    ]
    assert calls == [("glass", tmp_path, False), ("yeast", tmp_path, False)]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("glas", "name='glas' is not a known data set."),
        ("caltech", "'caltech' cannot be downloaded by a program."),
    ],
)
def test_fetch_that_cannot_be_is_one_sentence(tmp_path, name, message):
    result = run_corral("datasets", "fetch", name, "--folder", tmp_path)
    assert result.exit_code == 2
    assert message in only_line(result.stderr)
    assert list(tmp_path.iterdir()) == []
