"""The page about large files says what is true."""

import re
from pathlib import Path

import click
import numpy as np

from corral.cli._group import COMMANDS, corral
from tests.cli.example import read_rows

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "large.md"


def test_the_examples_give_what_they_say(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)
    names = {}
    exec("\n".join(code), names)
    model, by_days = names["model"], names["by_days"]
    assert np.flatnonzero(model.labels_ == -1).tolist() == [0, 1, 2, 3, 4]
    assert (by_days.labels_ == model.labels_).all()
    rows = read_rows(Path("labels.csv").read_text())
    assert [row["id"] for row in rows] == [str(i) for i in range(1000)]
    assert {row["id"] for row in rows if row["label"] == "-1"} == set("01234")


def test_every_option_of_the_page_is_there():
    page = PAGE.read_text("utf-8")
    ctx = click.Context(corral)
    known = {
        option
        for name in COMMANDS
        for param in corral.get_command(ctx, name).params
        for option in param.opts
    }
    assert set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", page)) <= known


def test_the_number_of_rows_in_a_report_is_the_real_one():
    from corral.cli._blockwise import _REPORT_ROWS

    assert f"from {_REPORT_ROWS:,} random rows" in PAGE.read_text("utf-8")
