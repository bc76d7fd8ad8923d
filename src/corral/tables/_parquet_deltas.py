"""Pages of Parquet whose texts are written by their lengths, and these as differences.

pyarrow takes memory for as many lengths as are told inside the page, whatever its head
says of the number of values.
"""

from itertools import starmap
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from corral.tables._arrow import need_arrow
from corral.tables._limits import check_memory
from corral.tables._thrift import CompactReader

# Lengths and letters; and before them, lengths of what texts share with the one before.
LENGTHS, SHARED = 6, 7

# How pages are packed, by Parquet's numbers.
_NOT_PACKED = 0
_PACKINGS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}

# A difference has so many bits at most, and a part so many differences or a multiple.
_MOST_BITS = 32
_PART_STEP = 32

# What a number takes while differences are read and added up, and what a bit takes
# while a part is unpacked.
_NUMBER_BYTES = 28
_BIT_BYTES = 9


def unpack_page(content: bytes, n_bytes: int, packing: int) -> Any:
    """Return what a page unpacks to.

    Parameters
    ----------
    content : bytes
    n_bytes : int
        That it unpacks to.
    packing : int
        How it is packed, as the footer says.

    Returns
    -------
    content : bytes-like
    """
    if packing == _NOT_PACKED:
        return content
    if packing not in _PACKINGS:
        raise ValueError(f"texts are packed in the way {packing}, which is not known")
    check_memory(n_bytes)
    return need_arrow().decompress(content, n_bytes, _PACKINGS[packing], asbytes=True)


def skip_levels(content: bytes, n_kinds: int) -> bytes:
    """Return what follows the levels of a page: how many bytes they have is told."""
    for _ in range(n_kinds):
        content = content[4 + int.from_bytes(content[:4], "little") :]
    return content


def check_lengths(
    content: bytes, n_values: int, coding: int, width: int | None = None
) -> None:
    """Refuse values that tell of more lengths than there are values, or of others.

    Parameters
    ----------
    content : bytes
        The values of a page; none if all are missing.
    n_values : int
        As the head of the page says.
    coding : {LENGTHS, SHARED}
    width : int, default=None
        The length that all must have; None is any.
    """
    reader = CompactReader(content)
    n_kinds = 2 if coding == SHARED and content else bool(content)
    lengths = [_read_deltas(reader, n_values) for _ in range(n_kinds)]
    if width is not None and len(lengths) == 2:
        _check_width(width, *lengths)


class _Deltas(NamedTuple):
    """Numbers that are packed as differences.

    Attributes
    ----------
    first : list of int
        The first number, if there is any.
    parts : list of (int, int, int, bytes)
        How many differences follow, the least one, how many bits each has above it, and
        these bits.
    """

    first: list[int]
    parts: list[tuple[int, int, int, bytes]]

    @property
    def n_bytes(self) -> int:
        """What it takes to add them up."""
        n_numbers = sum(n_part for n_part, *_ in self.parts)
        n_bits = max(
            (n_part * n_bits for n_part, _, n_bits, _ in self.parts), default=0
        )
        return _NUMBER_BYTES * n_numbers + _BIT_BYTES * n_bits

    def add_up(self) -> NDArray[np.int32]:
        """Return the numbers; those of more than 32 bits go round, as in pyarrow."""
        steps = [np.array(self.first, np.int64), *starmap(_unpack_part, self.parts)]
        return np.cumsum(np.concatenate(steps)).astype(np.int32)


def _unpack_part(
    n_part: int, least: int, n_bits: int, packed: bytes
) -> NDArray[np.int64]:
    if n_bits > _MOST_BITS:
        raise ValueError(f"a difference of lengths has {n_bits} bits")
    bits = np.unpackbits(
        np.frombuffer(packed, np.uint8), count=n_part * n_bits, bitorder="little"
    )
    return least + bits.reshape(n_part, n_bits) @ (1 << np.arange(n_bits))


def _read_deltas(reader: CompactReader, n_values: int) -> _Deltas:
    """Read numbers that are packed as differences, and not more than there may be."""
    n_block, n_parts, n_told = (reader.number() for _ in range(3))
    if n_told > n_values:
        raise ValueError("a page tells of more texts than it has")
    n_part = n_block // max(n_parts, 1)
    # Very many parts of nothing would take hours.
    if n_part == 0 or n_part % _PART_STEP:
        raise ValueError(f"lengths are packed in parts of {n_part}")
    check_memory(_NUMBER_BYTES * n_told)
    first, n_left, parts = reader.signed(32), n_told - 1, []
    while n_left > 0:
        least = reader.signed(32)
        for n_bits in reader.take(n_parts):
            if n_left > 0:
                packed = reader.take(n_bits * n_part // 8)
                parts.append((min(n_part, n_left), least, n_bits, packed))
            n_left -= n_part
    return _Deltas([first][:n_told], parts)


def _check_width(width: int, shared: _Deltas, own: _Deltas) -> None:
    """Refuse cells of another length: pyarrow puts them together before it looks."""
    check_memory(shared.n_bytes + own.n_bytes)
    if not np.array_equal(shared.add_up(), width - own.add_up().astype(np.int64)):
        raise ValueError(f"a page has cells that are not {width} bytes long")
