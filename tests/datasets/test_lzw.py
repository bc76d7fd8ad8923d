"""Files of the Unix program compress."""

import shutil
import subprocess

import numpy as np
import pytest

from corral.datasets._lzw import expand
from tests.datasets.originals import compress_lzw


def digits(n_bytes):
    """Return bytes as in a table of numbers: repetitive, but not very."""
    alphabet = np.frombuffer(b"0123456789 -\n", dtype=np.uint8)
    return np.random.default_rng(n_bytes).choice(alphabet, n_bytes).tobytes()


# Lengths for which the codes grow from 9 to 16 bits, and past the last table entry.
SIZES = [0, 1, 700, 5_000, 60_000, 300_000]
FILES = [(n_bytes, 16, False) for n_bytes in SIZES] + [
    (5_000, 10, False),
    (60_000, 12, True),
    (60_000, 12, False),
]


@pytest.mark.parametrize(("n_bytes", "max_width", "clears"), FILES)
def test_expands_what_was_compressed(n_bytes, max_width, clears):
    data = digits(n_bytes)
    assert expand(compress_lzw(data, max_width, clears)) == data


@pytest.mark.parametrize(("n_bytes", "max_width", "clears"), FILES)
def test_gzip_reads_the_files_of_these_tests(n_bytes, max_width, clears):
    # Otherwise our two halves could agree on a format of their own.
    if shutil.which("gzip") is None:
        pytest.skip("the program gzip, which reads .Z files, is not installed")
    packed = compress_lzw(digits(n_bytes), max_width, clears)
    result = subprocess.run(
        ["gzip", "-dc"], input=packed, capture_output=True, check=True
    )
    assert result.stdout == digits(n_bytes)


def test_code_of_the_entry_made_now():
    # Of a run of one byte, each code is the next entry of the table.
    assert expand(compress_lzw(b"a" * 5_000)) == b"a" * 5_000


def test_other_files_are_refused():
    with pytest.raises(ValueError, match="does not start as a .Z file does"):
        expand(b"PK\x03\x04 more")
    with pytest.raises(ValueError, match="up to 31 bits instead of 9 to 16"):
        expand(b"\x1f\x9d\x9f\x00\x00")
    with pytest.raises(ValueError, match="the code 511 of the .Z file was not defined"):
        expand(b"\x1f\x9d\x90\xff\xff")


def test_a_file_that_expands_too_far_is_refused():
    with pytest.raises(ValueError, match="expands to more than 4,999 bytes"):
        expand(compress_lzw(b"a" * 5_000), 4_999)
