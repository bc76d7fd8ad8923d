import datetime

import numpy as np
import pytest

from corral.report._words import clip, say_category, say_number, say_share, show_value


@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (4.23, "height is 4.2 spreads above its cluster (212)"),
        (-1.0, "height is 1.0 spreads below its cluster (212)"),
        (1234.5, "height is 1,234 spreads above its cluster (212)"),
        (-1e300, "height is over a million spreads below its cluster (212)"),
    ],
)
def test_number_in_words(difference, words):
    assert say_number("height", difference, "its cluster", "212") == words


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (None, "colour = red is rare in its cluster"),
        (0.0, "colour = red does not occur elsewhere in its cluster"),
        (0.04, "colour = red is rare in its cluster (4.0% of its rows)"),
    ],
)
def test_category_in_words(share, words):
    assert say_category("colour = red", share, "its cluster") == words


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (float("nan"), "–"),
        (True, "true"),
        (np.datetime64("NaT", "s").astype(object), "–"),
        (0.0, "0"),
        (212.0, "212"),
        (-0.123456, "-0.1235"),
        (1234567.89, "1234568"),
        (1e-9, "1e-09"),
        (1e300, "1e+300"),
        (float("inf"), "inf"),
        (7, "7"),
        (datetime.datetime(2024, 5, 1), "2024-05-01"),
        (datetime.datetime(2024, 5, 1, 12, 30), "2024-05-01 12:30:00"),
        ("x" * 100, "x" * 79 + "…"),
    ],
)
def test_cells_as_short_texts(value, text):
    assert show_value(value) == text


def test_share_is_never_rounded_to_nothing():
    assert [say_share(share) for share in (0, 1e-6, 0.0123, 0.5)] == [
        "0.0%",
        "under 0.1%",
        "1.2%",
        "50%",
    ]


def test_clip_spells_out_what_no_page_may_hold():
    assert clip("a\x00b\ud800c\u202ed\n") == r"a\x00b\ud800c\u202ed" + "\n"
