"""The page that compares the methods says what the classes do."""

import re
from pathlib import Path

import pytest

from corral import all_methods

PAGE = Path(__file__).parents[1] / "docs" / "methods.md"


def read_tables():
    """Return the rows of both tables, by the name of the method."""
    rows = re.findall(r"^\| `([^`]+)` \|(.*)\|$", PAGE.read_text(), re.M)
    able, cost = {}, {}
    for name, cells in rows:
        cells = [cell.strip() for cell in cells.split("|")]
        (able if len(cells) == 5 else cost)[name] = cells
    return able, cost


def test_every_method_is_in_both_tables():
    able, cost = read_tables()
    assert list(able) == list(all_methods())
    assert set(cost) == set(all_methods()) - {"cor-detector"}


@pytest.mark.parametrize("name", all_methods())
def test_page_tells_the_truth(name):
    method = all_methods()[name]
    class_name, _, *answers = read_tables()[0][name]
    assert class_name == f"`{method.estimator.__name__}`"
    truth = [method.counts_outliers, method.takes_sparse, method.predicts]
    assert answers == ["yes" if each else "no" for each in truth]


def test_example_runs():
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    exec(compile(example, str(PAGE), "exec"), {})
