"""What is not refused works, in all that a model can be asked."""

import random
import re
import traceback
import warnings

import numpy as np
import pytest
from sklearn.base import clone

import corral
from tests.fuzz.change_models import KINDS, change
from tests.fuzz.test_models import make_path, read_contents, read_rows
from tests.models.make import as_given

# What a model says of its own numbers: they are of the right kind, and may be wrong.
TOLD = re.compile(r"gives \d[\d,]* rows? a score that is not a number")

METHODS = ("predict", "score_samples", "decision_function", "transform", "explain")


def ask(name, model, path):
    """Ask a model all that it answers, show it, and save it again."""
    rows = as_given(name, read_rows())
    if name == "cor-precomputed":
        rows = (rows > 5).astype(int)
    for method in METHODS:
        if hasattr(model, method):
            answer = getattr(model, method)(rows)
            assert len(answer) == len(read_rows())
            if method == "score_samples":
                assert not np.isnan(answer).any()
    assert repr(model)
    assert clone(model) is not model
    getattr(model, "_repr_html_", str)()
    model.save(path)
    corral.load(path)


def judge(case, path):
    """Return whether the changed file of a case is refused, works, or tells why not."""
    path.write_bytes(change(case, read_contents()))
    try:
        model = corral.load(path)
    except ValueError as error:
        return "refused" if str(path) in str(error) else f"refused: {error}"
    try:
        ask(case[1], model, path)
    except ValueError as error:
        if TOLD.search(str(error)):
            return "told"
        raise
    return "works"


@pytest.mark.filterwarnings("ignore")
def test_what_is_not_refused_works(n_cases, fuzz_seed):
    rng = random.Random(fuzz_seed)
    path, _ = make_path()
    words, failures = set(), []
    # Each is asked for all that a model answers, which takes ten times as long.
    for _ in range(max(n_cases // 10, 30)):
        case = (
            rng.choice(list(KINDS)),
            rng.choice(sorted(read_contents())),
            rng.randrange(2**32),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                words.add(judge(case, path))
            except Exception as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                failures.append(f"{case}: {error!r} in {last.name}")
    assert not failures, "\n".join(failures)
    assert {"refused", "works"} <= words <= {"refused", "works", "told"}
