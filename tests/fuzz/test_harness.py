"""The harness sees cases that fail, crash, hang or take too much memory."""

import os
import time

import numpy as np

from tests.fuzz.harness import run_cases


def behave(case):
    if case == "raise":
        raise KeyError("no such thing")
    if case == "crash":
        os.abort()
    if case == "hang":
        time.sleep(60)
    if case == "memory":
        return str(np.ones(2**28).sum())
    return "well"


def test_each_bad_end_is_told_and_the_next_case_goes_on():
    bad = {
        "raise": "KeyError: 'no such thing'",
        "crash": "the process ended with the code",
        "hang": "took longer than 1 seconds",
        "memory": "MemoryError",
    }
    cases = [each for name in bad for each in (name, "good")]
    tally = run_cases(behave, cases, memory=2**30, seconds=1)
    assert [each.case for each in tally.outcomes] == cases
    assert tally.words == {"well": len(bad)}
    for outcome, words in zip(tally.failures, bad.values(), strict=True):
        assert words in outcome.failure
        assert words in tally.describe()
