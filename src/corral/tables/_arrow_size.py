"""What the batches of an Arrow file unpack to, told before they are unpacked.

A packed buffer begins with the number of bytes that it unpacks to, for which pyarrow
takes memory without a look at what is free, and never more than that. Where the buffers
lie is written as a flatbuffer, which pyarrow verifies but does not show.
"""

import struct
from typing import Any

from corral.tables._arrow import need_arrow

# How Arrow 0.17 said that a batch is packed; later releases read it, too.
_OLD_PACKING = b"ARROW:experimental_compression"

# Places of fields in Arrow's tables, by its format.
_FOOTER_DICTIONARIES, _FOOTER_BATCHES = 2, 3
_MESSAGE_HEADER = 2
_DICTIONARY_BATCH = 1
_BATCH_BUFFERS, _BATCH_PACKING = 2, 3

# Where a message lies in a file, and a buffer in a message.
_BLOCK = struct.Struct("<qi4xq")
_BUFFER = struct.Struct("<qq")

# The last bytes of a file: how long its footer is, and the name of the format.
_END = struct.Struct("<i6s")

_PREFIX = struct.Struct("<q")


class _Table:
    """A table of a flatbuffer that was verified.

    Parameters
    ----------
    data : memoryview
        The flatbuffer.
    place : int, default=None
        Where the table is; None is the outermost.
    """

    def __init__(self, data: memoryview, place: int | None = None) -> None:
        self._data = data
        self._place = self._follow(0) if place is None else place

    def __contains__(self, number: int) -> bool:
        return self._find(number) is not None

    def table(self, number: int) -> "_Table":
        """Return the table that a field holds."""
        return _Table(self._data, self._follow(self._find(number)))

    def records(self, number: int, form: struct.Struct) -> list[tuple[int, ...]]:
        """Return the records that a field lists; none if it is not there."""
        if number not in self:
            return []
        place = self._follow(self._find(number))
        n_bytes = form.size * self._read("<I", place)
        return list(form.iter_unpack(self._data[place + 4 : place + 4 + n_bytes]))

    def _find(self, number: int) -> Any:
        """Return where a field is, None if it is not there."""
        index = self._place - self._read("<i", self._place)
        entry = 4 + 2 * number
        offset = 0
        if entry < self._read("<H", index):
            offset = self._read("<H", index + entry)
        return self._place + offset if offset else None

    def _follow(self, place: int) -> int:
        return place + self._read("<I", place)

    def _read(self, form: str, place: int) -> int:
        return struct.unpack_from(form, self._data, place)[0]


def count_file(content: Any) -> int:
    """Return the bytes that the batches of an Arrow file unpack to.

    Parameters
    ----------
    content : pyarrow.Buffer
        That pyarrow has opened as a file.

    Returns
    -------
    n_bytes : int
        Batches that are not packed are used where they lie, and take none.
    """
    read = need_arrow("pyarrow.ipc").read_message
    end = content.size - _END.size
    n_footer, _ = _END.unpack(content[end:])
    footer = _Table(memoryview(content[end - n_footer : end]))
    # A footer may name a message many times, and each time it is unpacked.
    blocks = footer.records(_FOOTER_DICTIONARIES, _BLOCK)
    blocks += footer.records(_FOOTER_BATCHES, _BLOCK)
    return sum(
        _count_message(read(content[start : start + n_head + n_body]))
        for start, n_head, n_body in blocks
    )


def count_stream(content: Any) -> int:
    """Return the bytes that the batches of an Arrow stream unpack to.

    Parameters
    ----------
    content : pyarrow.Buffer

    Returns
    -------
    n_bytes : int
        As in :func:`count_file`.
    """
    pa, ipc = need_arrow(), need_arrow("pyarrow.ipc")
    messages = ipc.MessageReader.open_stream(pa.BufferReader(content))
    return sum(map(_count_message, messages))


def _count_message(message: Any) -> int:
    if message.type not in ("record batch", "dictionary"):
        return 0
    head = _Table(memoryview(message.metadata))
    batch = head.table(_MESSAGE_HEADER)
    if message.type == "dictionary":
        batch = batch.table(_DICTIONARY_BATCH)
    if _BATCH_PACKING not in batch and _OLD_PACKING not in bytes(message.metadata):
        return 0
    buffers = batch.records(_BATCH_BUFFERS, _BUFFER)
    sizes = [
        _PREFIX.unpack_from(message.body, start)[0]
        for start, n_bytes in buffers
        if n_bytes
    ]
    # What packing would not make smaller is not packed, and says -1.
    return sum(max(size, 0) for size in sizes)
