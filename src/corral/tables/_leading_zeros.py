"""Codes such as 00123, found among cells that pyarrow takes for whole numbers."""

import io
import re
from collections.abc import Iterable
from typing import Any

from corral.tables._arrow import need_arrow

# Two digits are a month or a minute sooner than a code.
_CODE = r"^\s*0\d\d+\s*$"

# Bytes of a file that are looked at again with the next part: what a cell begins with
# may be cut.
_OVERLAP = 3

# Bytes that are looked at at once.
_PART_BYTES = 2**24


class ZeroWatch:
    """Tells from bytes alone whether a CSV file may have codes such as 00123.

    Types cost far more to tell than this, and most files have no such cell. What looks
    like one may be a part of a text, so the columns decide: see :func:`find_padded`.

    Parameters
    ----------
    delimiter : str
        What parts the cells.
    encoding : {"utf8", "utf-16"}
        Of UTF-16, which is rare, nothing is told: there may always be one.

    Attributes
    ----------
    may_be : bool
        Whether there may be a code in what was looked at.
    """

    def __init__(self, delimiter: str, encoding: str) -> None:
        # A cell follows a delimiter, a line end, a quote, a blank or the mark of UTF-8.
        # This is looked at last: Python finds one byte faster than one of several.
        before = rb'[\r\n" \t\xbf' + re.escape(delimiter.encode()) + rb"]"
        self._find = re.compile(rb"0[0-9][0-9](?<=" + before + rb"...)").search
        self._tail = b"\n"
        self.may_be = encoding != "utf8"

    def add(self, part: bytes) -> None:
        """Look at the next bytes of the file."""
        if self.may_be:
            return
        joined = self._tail + part
        self.may_be = self._find(joined) is not None
        self._tail = joined[-_OVERLAP:]

    def add_all(self, content: Any) -> None:
        """Look at all bytes of a file, a pyarrow.Buffer."""
        for start in range(0, content.size, _PART_BYTES):
            self.add(bytes(content[start : start + _PART_BYTES]))
            if self.may_be:
                return


class WatchedFile(io.RawIOBase):
    """A file whose bytes are looked at while they are read.

    Parameters
    ----------
    file : binary file
        Not closed with this one.
    watch : ZeroWatch
    """

    def __init__(self, file: Any, watch: ZeroWatch) -> None:
        self._file = file
        self._watch = watch

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes."""
        part = self._file.read(size)
        self._watch.add(part)
        return part


def find_padded(batches: Iterable[Any]) -> list[str]:
    """Return the columns in which some cell is a code.

    Parameters
    ----------
    batches : iterable of pyarrow.RecordBatch
        Whole numbers, as texts.

    Returns
    -------
    names : list of str
    """
    pc = need_arrow("pyarrow.compute")
    found: list[str] = []
    for batch in batches:
        left = [name for name in batch.schema.names if name not in found]
        if not left:
            break
        are_codes = (pc.match_substring_regex(batch[name], _CODE) for name in left)
        has_code = [pc.any(each).as_py() for each in are_codes]
        found += [name for name, has in zip(left, has_code, strict=True) if has]
    return found
