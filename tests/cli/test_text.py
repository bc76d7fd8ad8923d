import json
import shlex

import click
import pytest

from corral.cli._call import command_line
from corral.cli._errors import sentence
from corral.cli._files import print_json
from corral.cli._group import corral as command
from corral.cli._names import Names, join_names
from corral.cli._text import count, fact, listing, number, table


def test_table_puts_numbers_to_the_right_and_words_to_the_left():
    text = table(("name", "rows", "sizes"), [("a", "1,200", "3, 4"), ("long", "7", "")])
    assert text.splitlines() == [
        "name   rows  sizes",
        "a     1,200  3, 4",
        "long      7",
    ]


def test_long_facts_are_wrapped_below_themselves():
    first, second = fact("data", "word " * 20).splitlines()
    assert first.startswith("data      word word")
    assert second.startswith("          word")
    assert len(first) <= 88


@pytest.mark.parametrize(
    ("names", "text"),
    [
        (["a"], "a"),
        (["a", "b", "c"], "a, b, c"),
        (["a", "b", "c", "d"], "a, b and 2 more"),
    ],
)
def test_long_lists_are_cut(names, text):
    # A list that is longer by one is shown whole: to say so takes as much room.
    assert listing(names, limit=2) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.12345, "0.1235"), (12.3456, "12.35"), (123456.7, "123,457"), (0.0, "0")],
)
def test_numbers_are_short(value, text):
    assert number(value) == text


def test_one_row_two_rows():
    assert (count(1, "row"), count(2000, "row")) == ("1 row", "2,000 rows")


def test_json_has_null_for_what_is_not_finite(capsys):
    print_json({"a": [1.5, float("nan")], "b": {"c": float("inf")}})
    text = capsys.readouterr().out
    assert json.loads(text) == {"a": [1.5, None], "b": {"c": None}}


def test_the_call_is_written_so_that_it_can_be_repeated():
    words = ["my data.csv", "--exclude", '"a,b",c', "--tfidf", "--seed", "0", "--json"]
    fit = command.get_command(click.Context(command), "fit")
    ctx = fit.make_context("corral fit", list(words))
    line = command_line(ctx)
    assert line.startswith("corral fit 'my data.csv' ")
    assert """--exclude '"a,b",c'""" in line
    assert "--seed 0" in line
    assert "--n-clusters" not in line


@pytest.mark.parametrize("name", ["-dash.csv", "--labels"])
def test_a_file_whose_name_begins_with_a_dash_is_no_option(name):
    fit = command.get_command(click.Context(command), "fit")
    ctx = fit.make_context("corral fit", ["--seed", "1", "--", name])
    line = command_line(ctx)
    assert line == f"corral fit ./{name} --seed 1"
    again = fit.make_context("corral fit", shlex.split(line)[2:])
    assert again.params["data"] == f"./{name}"


def test_standard_input_stays_a_dash():
    fit = command.get_command(click.Context(command), "fit")
    assert command_line(fit.make_context("corral fit", ["-"])) == "corral fit -"


def test_sentences_have_one_full_stop():
    assert "KeyError: 'a'. Run" in sentence(KeyError("a"))
    assert "TypeError: It ends. Run" in sentence(TypeError("It ends."))
    assert "not expect, TypeError. Run" in sentence(TypeError())
    assert sentence(OSError(5, "Gone.", "x")) == "'x' cannot be used: Gone."
    assert sentence(OSError(5, "Gone")) == "Reading or writing failed: Gone."


def test_a_name_may_hold_a_line_end_in_quotes():
    names = ["a\nb", "c"]
    assert Names().convert(join_names(names), None, None) == names
    with pytest.raises(click.BadParameter, match="stands in double quotes"):
        Names().convert("a\nb,c", None, None)
