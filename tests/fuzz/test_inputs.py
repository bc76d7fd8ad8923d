"""Damaged and lying files are read or refused with a sentence, and nothing else."""

import os
import re
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

import pyarrow as pa

from corral import COR
from corral.datasets._formats import read_npz
from corral.datasets._load import UNREADABLE
from corral.sources import open_source
from corral.tables import TableEncoder, read_table
from corral.trajectories import read_tracks
from tests.cli.example import run_corral
from tests.fuzz.harness import Tally, run_cases
from tests.fuzz.mutate_inputs import FORMATS, make_bases, make_input

# A fit takes longer than reading does, so only some files are fitted.
_FIT_EVERY = 50

# Cases that one process checks.
_CHILD_CASES = 2500

# A column takes some microseconds, also where it holds nothing.
_WIDEST = 10_000


def prepare():
    """Import what is imported late, and read sound files of each format."""
    # Its threads would wait for each other.
    pa.set_cpu_count(1)
    for kind, bases in make_bases().items():
        for content in bases:
            is_fitted = kind == "csv" and content is bases[0]
            word = check_content(f"sound.{kind}", content, is_fitted=is_fitted)
            assert word == "read", kind


def check(case):
    """Return what became of a file: read or refused."""
    name, content = make_input(case)
    return check_content(name, content, is_fitted=case[1] % _FIT_EVERY == 0)


@cache
def _make_folder():
    """Return a folder that is there as long as the process."""
    return tempfile.TemporaryDirectory()


def check_content(name, content, *, is_fitted):
    path = Path(_make_folder().name, name)
    path.write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _take_tracks(path)
        _take_pieces(path, is_fitted=is_fitted)
        if path.suffix == ".npz":
            _take_dataset(path)
        if is_fitted:
            _take_command(path)
        return _take_table(path)


def _take_table(path):
    try:
        table = read_table(path)
    except ValueError as error:
        check_sentence(error, path)
        return "refused"
    if table.shape[1] > _WIDEST:
        return "read"
    try:
        TableEncoder().fit(table).transform(table)
    except ValueError:
        return "read, but of no use"
    return "read"


def _take_pieces(path, *, is_fitted):
    try:
        source = open_source(path)
        for start in range(0, source.shape[0], 5):
            source.read(start, min(start + 5, source.shape[0]))
    except ValueError as error:
        check_sentence(error, path)
        return
    if is_fitted:
        with suppress(ValueError):
            COR(2, n_outliers=1, n_partitions=5, random_state=0).fit(path)


def _take_command(path):
    """Run corral fit, which reads the file or says in a line what is wrong."""
    labels = path.with_name("labels.csv")
    options = ("--n-clusters", 2, "--n-outliers", 1, "--labels", labels)
    called = run_corral("fit", path, *options)
    assert called.exit_code in (0, 2), called.output
    assert labels.exists() == (called.exit_code == 0), called.output
    labels.unlink(missing_ok=True)


def _take_tracks(path):
    with suppress(ValueError):
        read_tracks(path)


def _take_dataset(path):
    with suppress(UNREADABLE):
        read_npz(path)


def check_sentence(error, path):
    """Check that an error says in a few words which file is wrong, and how."""
    text = str(error)
    assert os.path.basename(path) in text, text
    assert len(text) < 1500, text[:1500]
    assert re.search(r"[.?]$", text), text


def test_damaged_files_are_read_or_refused(n_cases, fuzz_seed):
    cases = [
        (FORMATS[i % len(FORMATS)], fuzz_seed * 10**6 + i // len(FORMATS))
        for i in range(n_cases)
    ]
    tally = Tally()
    # Threads that come and go take address space in a process that lives long.
    for start in range(0, n_cases, _CHILD_CASES):
        some = run_cases(check, cases[start : start + _CHILD_CASES], prepare=prepare)
        tally.outcomes += some.outcomes
        tally.seconds += some.seconds
    assert not tally.failures, tally.describe()
    assert tally.words["read"] > 0.05 * n_cases
    assert tally.words["refused"] > 0.3 * n_cases
