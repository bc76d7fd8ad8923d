"""Cells keep their line ends wherever pyarrow parts a file."""

import io
from itertools import pairwise

import pytest

from corral.sources import open_source
from corral.tables import read_table
from corral.tables._line_ends import LineFile

TEXT = (
    "".join(f'{"x" * n},"é\r\n"\r\n"\U0001f600\r\r\n\n"\r\n' for n in range(20)) + "\r"
)


@pytest.mark.parametrize("encoding", ["utf8", "utf-16", "utf-16-le"])
@pytest.mark.parametrize("size", [8, 9, 10, 11, 13, 100, -1])
def test_no_part_ends_within_a_line_end(encoding, size):
    packed = TEXT.encode(encoding)
    file = LineFile(io.BytesIO(packed), encoding)
    parts = [*iter(lambda: file.read(size), b"")]
    assert b"".join(parts).decode() == TEXT
    assert all(len(part) <= size for part in parts if size > 0)
    borders = [before[-1:] + after[:1] for before, after in pairwise(parts)]
    assert b"\r\n" not in borders


@pytest.mark.parametrize("encoding", ["utf8", "utf-16"])
def test_line_ends_in_cells_are_kept(encoding, tmp_path):
    # Lines of 21 and 23 letters meet the borders of parts, 2**18 and 2**20, in any way.
    lines = ['1,"first\r\nsecond"\r\n', '2.0,"third\r\nfourth"\r\n']
    path = tmp_path / "rows.csv"
    path.write_bytes(("n,note\r\n" + "".join(lines) * 60_000).encode(encoding))
    expected = ["first\r\nsecond", "third\r\nfourth"] * 60_000
    assert read_table(path)["note"].to_pylist() == expected
    source = open_source(path)
    assert source.shape == (120_000, 2)
    found = [source.read(start, start + 40_000) for start in (0, 40_000, 80_000)]
    assert [cell for part in found for cell in part["note"].to_pylist()] == expected


def test_letters_that_are_cut_are_no_utf_16(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes("a,b\n1,2\n".encode("utf-16")[:-1])
    with pytest.raises(ValueError, match="is not UTF-8 text"):
        read_table(path)
