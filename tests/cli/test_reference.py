from pathlib import Path

import click

from corral.cli._errors import EXIT_CODES
from corral.cli._group import COMMANDS, corral
from corral.cli._reference import make_reference

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "cli.md"


def test_page_is_up_to_date():
    # Otherwise: python -m corral.cli._reference docs/reference/cli.md
    assert PAGE.read_text(encoding="utf-8") == make_reference()


def test_page_has_every_command_option_and_exit_code():
    page = make_reference()
    for name in (*COMMANDS, "datasets list", "datasets fetch"):
        assert f"\n## corral {name}\n" in page
    for option in ("--n-clusters K", "--config FILE", "--id-column NAME", "--json"):
        assert f"`{option}`" in page
    for code in EXIT_CODES:
        assert f"\n| {code} | " in page


def test_page_does_not_depend_on_the_terminal(monkeypatch):
    page = make_reference()
    monkeypatch.setenv("COLUMNS", "40")
    assert make_reference() == page


def test_page_does_not_depend_on_what_was_called_before():
    # Click keeps the names of help that a command met first.
    predict = corral.get_command(click.Context(corral), "predict")
    predict.make_context("corral predict", ["model.skops", "data.csv"])
    assert PAGE.read_text(encoding="utf-8") == make_reference()
