"""The examples run, and so does the code of the page on pictures."""

import re
import runpy
from pathlib import Path

import pytest
from matplotlib import pyplot as plt

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("plot_0[124]_*.py"))


@pytest.fixture
def run(capsys):
    """Return what runs a script and gives back what it prints."""

    def run(path):
        runpy.run_path(str(path), run_name="__main__")
        return capsys.readouterr().out

    return run


def test_examples_are_there():
    assert [path.name for path in EXAMPLES] == [
        "plot_01_first_fit.py",
        "plot_02_explain_outliers.py",
        "plot_04_how_many.py",
    ]


def test_first_fit_finds_four_clusters(run):
    lines = run(EXAMPLES[0]).splitlines()
    assert lines[0] == "outliers  30"
    sizes = [int(line.split()[-1]) for line in lines[1:5]]
    assert sum(sizes) == 600
    assert all(140 <= size <= 160 for size in sizes)
    assert re.fullmatch(r"\[ ?\d +\d +-1\]", lines[5])


def test_explained_outliers_are_those_that_were_planted(run):
    out = run(EXAMPLES[1])
    found, planted = out.splitlines()[:2]
    assert found.replace("found  ", "planted") == planted
    causes = dict(re.findall(r"row (\d+): (\w+) is", out))
    for cause, rows in {
        "temperature": (10, 120, 150),
        "pressure": (5, 90, 130),
        "wind": (30, 60, 220),
    }.items():
        assert {causes[str(row)] for row in rows} == {cause}


def test_numbers_are_found_without_being_told(run):
    lines = run(EXAMPLES[2]).splitlines()
    assert lines[0] == "5 clusters and 25 outliers"
    assert lines[1].startswith("Any two of 5 clusters are told apart")
    assert "5 clusters and 25 outliers" in lines[2:]


def test_code_of_the_page_on_pictures_runs(tmp_path, monkeypatch):
    page = (ROOT / "docs/howto/pictures.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.S)
    assert len(blocks) == 7
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        exec(block, names)
    assert Path("map.png").stat().st_size > 10_000
    assert len(plt.get_fignums()) == 6
    assert (names["model"].labels_[::60] == -1).sum() >= 8


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_examples_have_a_title_and_cells(path):
    # As sphinx-gallery wants them.
    text = path.read_text()
    title, underline = text.splitlines()[1:3]
    assert underline == "=" * len(title)
    assert text.count("\n# %%\n") >= 4
