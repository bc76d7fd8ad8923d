"""CSV files as pyarrow reads them without a loss."""

import codecs
import io
from typing import Any

# A unit of two bytes of UTF-16 takes three bytes of UTF-8 at most.
_UTF16_BYTES = 2
_MOST_UTF8_BYTES = 3


class LineFile(io.RawIOBase):
    r"""A CSV file as UTF-8, of which no part ends within a line end.

    pyarrow reads in parts, and forgets the ``\n`` of a ``\r\n`` in quotes where one of
    them ends in between.

    Parameters
    ----------
    file : binary file
        Not closed with this one.
    encoding : {"utf8", "utf-16"}
        Of the file.
    """

    def __init__(self, file: Any, encoding: str) -> None:
        self._file = file
        self._held = b""
        is_utf8 = encoding == "utf8"
        self._decoder = None if is_utf8 else codecs.getincrementaldecoder(encoding)()

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes, at most so many, which should be eight or more."""
        part, self._held = self._held, b""
        while more := self._read(size - len(part) if size > 0 else size):
            part += more
            if not part.endswith(b"\r"):
                return part
            if len(part) > 1:
                self._held = b"\r"
                return part[:-1]
        return part

    def _read(self, size: int) -> bytes:
        if self._decoder is None:
            return self._file.read(size)
        # One less, because half of a letter of four bytes may have been read before.
        most = (size - 1) // _MOST_UTF8_BYTES * _UTF16_BYTES if size > 0 else size
        while raw := self._file.read(most):
            # The mark at the beginning has no letter.
            if text := self._decoder.decode(raw):
                return text.encode()
        return self._decoder.decode(b"", final=True).encode()
