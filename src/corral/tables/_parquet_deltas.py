"""Pages of Parquet whose texts are written by their lengths, and these as differences.

pyarrow takes memory for as many lengths as are told inside the page, whatever its head
says of the number of values.
"""

from typing import Any

from corral.tables._arrow import need_arrow
from corral.tables._limits import check_memory
from corral.tables._thrift import CompactReader

# Lengths and letters; and before them, lengths of what texts share with the one before.
LENGTHS, SHARED = 6, 7

# How pages are packed, by Parquet's numbers.
_NOT_PACKED = 0
_PACKINGS = {1: "snappy", 2: "gzip", 4: "brotli", 6: "zstd", 7: "lz4_raw"}


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


def check_lengths(content: bytes, n_values: int, coding: int) -> None:
    """Refuse values that tell of more lengths than there are values.

    Parameters
    ----------
    content : bytes
        The values of a page; none if all are missing.
    n_values : int
        As the head of the page says.
    coding : {LENGTHS, SHARED}
    """
    reader = CompactReader(content)
    for _ in range(2 if coding == SHARED and content else bool(content)):
        if _pass_over(reader) > n_values:
            raise ValueError("a page tells of more texts than it has")


def _pass_over(reader: CompactReader) -> int:
    """Pass over numbers that are packed as differences; return how many are told."""
    n_block, n_parts, n_told, _ = (reader.number() for _ in range(4))
    n_left = n_told - 1
    n_part = n_block // max(n_parts, 1)
    while n_left > 0:
        # The least difference, and the bits of all others in each part.
        reader.number()
        for n_bits in reader.take(n_parts):
            if n_left > 0:
                reader.take(n_bits * n_part // 8)
            n_left -= n_part
    return n_told
