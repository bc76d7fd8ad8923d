import re
from pathlib import Path

from corral.trajectories import make_tracks
from tests.cli.example import run_corral
from tests.cli.test_flights import write_tracks

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "flights.md"


def test_code_of_the_page_runs_one_block_after_the_other(tmp_path, monkeypatch):
    write_tracks(tmp_path / "tracks.csv", make_tracks(250, random_state=0))
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(blocks) == 2
    for block in blocks:
        exec(block, names)
    assert names["flights"].X.shape == (250, 151)
    assert len(names["kinds"]) == 200


def test_options_of_the_page_are_those_of_the_command():
    said = set(re.findall(r"--[a-z-]+[a-z]", PAGE.read_text()))
    listed = run_corral("flights", "--help").stdout
    assert said - {"--help"}
    assert all(option in listed for option in said)
