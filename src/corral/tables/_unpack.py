"""Unpacking gzip and zstd, up to what memory and a sound file can hold."""

import gzip
import io
import zlib
from typing import IO, Any

from corral._memory import find_free_memory, format_bytes
from corral.tables._arrow import need_arrow
from corral.tables._broken import MEND, Broken, first_line

# Bytes that are unpacked at once.
_STEP = 2**20

# No table of different rows is packed so well; what grows more was made to fill a disk.
# Up to a gigabyte, any file may.
_MOST_GROWTH = 10_000
_FREE_BYTES = 2**30


class UnpackedFile(io.RawIOBase):
    """The bytes that a file packs, counted while they are read.

    Parameters
    ----------
    packed : path or binary file
    packing : {"gzip", "zstd"}
    n_packed : int
        Bytes of the packed file.
    most : int, default=None
        Bytes that it may unpack to; None is what a table may.
    """

    def __init__(
        self, packed: Any, packing: str, n_packed: int, most: int | None = None
    ) -> None:
        self._packing = packing
        self._n_packed = n_packed
        self._most = max(_FREE_BYTES, _MOST_GROWTH * n_packed)
        if most is not None:
            self._most = min(self._most, most)
        self._n_read = 0
        self._stream = _open(packed, packing)

    def readable(self) -> bool:
        """Return that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Unpack the next bytes."""
        try:
            data = self._stream.read(len(buffer))
        except (OSError, EOFError, zlib.error) as error:
            raise Broken(
                f"cannot be unpacked: the {self._packing} data is broken or cut off "
                f"({first_line(error)}). {MEND}"
            ) from error
        self._n_read += len(data)
        if self._n_read > self._most:
            raise Broken(
                f"unpacks from {format_bytes(self._n_packed)} to more than "
                f"{format_bytes(self._most)}, which is more than memory or a sound "
                "table takes. Unpack it yourself if you trust it, and read that block "
                "by block with corral.sources.open_source."
            )
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        """Close the packed file."""
        if not self.closed:
            self._stream.close()
        super().close()


def _open(packed: Any, packing: str) -> Any:
    if packing == "gzip":
        # pyarrow takes zeros at the end, with which tapes are filled, for damage.
        return gzip.open(packed)
    return need_arrow().input_stream(packed, compression=packing)


def open_unpacked(packed: Any, packing: str, n_packed: int) -> IO[bytes]:
    """Return a file that unpacks while it is read."""
    return io.BufferedReader(UnpackedFile(packed, packing, n_packed), _STEP)


def unpack(content: Any, packing: str) -> Any:
    """Return the bytes that a buffer packs, as a buffer.

    Parameters
    ----------
    content : pyarrow.Buffer
    packing : {"gzip", "zstd"}

    Returns
    -------
    unpacked : pyarrow.Buffer
        At most half of the memory that is free: what is read from it needs the rest.
    """
    pa = need_arrow()
    most = find_free_memory() // 2
    source = pa.BufferReader(content)
    sink = pa.BufferOutputStream()
    step = bytearray(_STEP)
    with UnpackedFile(source, packing, content.size, most) as file:
        while n_read := file.readinto(step):
            sink.write(memoryview(step)[:n_read])
    return sink.getvalue()
