"""The page about tables says what is true."""

import re
from pathlib import Path

import pytest

from corral.tables._arrays import WIDEST_TABLE
from corral.tables._column_look import MOST_CATEGORIES
from corral.tables._read import SUFFIXES

PAGE = Path(__file__).parents[2] / "docs" / "howto" / "tables.md"


def test_the_example_gives_what_it_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    code = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S)[1]
    names = {}
    exec(code, names)
    encoder, strange, table = names["encoder"], names["strange"], names["table"]
    assert encoder.dropped_ == {"country": "every row has the same value 'CH'"}
    assert encoder.n_missing_ == {"size": 1}
    assert list(encoder.kinds_.values()) == [
        *("number", "date", "boolean", "category", "category", "id")
    ]
    assert encoder.ids(table)[strange] == "A100"
    assert names["model"].explain(table)["feature_1"][strange].as_py() == "size"
    assert encoder.format_value("size", table, strange) == "80"


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_every_suffix_is_listed(suffix):
    assert f"`{suffix}`" in PAGE.read_text("utf-8")


def test_limits_are_the_real_ones():
    text = PAGE.read_text("utf-8")
    assert f"more than {WIDEST_TABLE:,} columns" in text
    assert f"at most {MOST_CATEGORIES}, or the square root" in text
