"""Damaged model files are refused in words, or hold a model that answers."""

import functools
import json
import logging
import os
import random
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import corral
from tests.fuzz.harness import run_cases
from tests.fuzz.mutate_models import KINDS, mutate
from tests.models.make import HERE, answer

log = logging.getLogger("corral.fuzz")

# What passes the checks of the archive is tried more often than what does not.
SHARES = {"schema": 3, "value": 5, "array": 5, "sparse": 2, "graft": 5}

FOLDER = HERE / corral.__version__


@functools.cache
def read_contents():
    return {each.stem: each.read_bytes() for each in sorted(FOLDER.glob("*.skops"))}


@functools.cache
def make_path():
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name, "model.skops")
    # The folder lives as long as the path does.
    return path, folder


@functools.cache
def read_rows():
    return json.loads((FOLDER / "answers.json").read_text())["rows"]


def prepare():
    """Load and ask each model once, which imports all that they need."""
    warnings.simplefilter("ignore")
    for name in read_contents():
        answer(name, corral.load(FOLDER / f"{name}.skops"), read_rows())


def check(case):
    path, _ = make_path()
    path.write_bytes(mutate(case, read_contents()))
    try:
        model = corral.load(path)
    except ValueError as error:
        return judge(str(error), str(path), "refused")
    try:
        found = answer(case[1], model, read_rows())
    except ValueError as error:
        return judge(str(error), "", "told")
    assert all(len(values) == len(read_rows()) for values in found.values())
    return "answered"


def judge(words, name, outcome):
    """Return the outcome if the words are a sentence with a name."""
    assert words
    assert name in words
    assert not name or ("\n" not in words and len(words) < 1000)
    return outcome


def draw_cases(n_cases, seed):
    """Return kinds of damage, models and seeds."""
    rng = random.Random(seed)
    names = sorted(read_contents())
    weights = [SHARES.get(kind, 1) for kind in KINDS]
    return [
        (kind, rng.choice(names), rng.randrange(2**32))
        for kind in rng.choices(list(KINDS), weights, k=n_cases)
    ]


def test_mutated_models(n_cases, fuzz_seed):
    cases = draw_cases(n_cases, fuzz_seed)
    n_children = min(2, os.cpu_count() or 1) if n_cases > 1000 else 1
    tally = run_cases(check, cases, prepare=prepare, n_children=n_children)
    # Shown with: -o log_cli=true -o log_cli_level=INFO
    log.info(tally.describe(0))
    log.info(Counter((each.case[0], each.word) for each in tally.outcomes))
    assert not tally.failures, tally.describe()
    assert {"refused", "answered"} <= set(tally.words)
