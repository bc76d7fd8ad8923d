"""Files of the Unix program compress (.Z), for which Python has no reader."""

_MAGIC = b"\x1f\x9d"
_CLEAR = 256  # the code that empties the table, in files that use it
_FIRST_WIDTH, _LAST_WIDTH = 9, 16


def expand(data: bytes, most: int = 2**30) -> bytes:
    """Return what was compressed.

    Codes have 9 bits at first and one more each time the table is full; the lowest bit
    comes first. Codes of one width fill whole groups of eight, so what is left of a
    group is skipped when the width changes.

    Parameters
    ----------
    data : bytes
        The whole file.
    most : int, default=2**30
        Bytes that it may expand to.

    Returns
    -------
    expanded : bytes
    """
    if data[:2] != _MAGIC or len(data) < 3:
        raise ValueError("it does not start as a .Z file does (bytes 1f 9d)")
    max_width, clears = data[2] & 0x1F, bool(data[2] & 0x80)
    if not _FIRST_WIDTH <= max_width <= _LAST_WIDTH:
        raise ValueError(f"its codes have up to {max_width} bits instead of 9 to 16")
    table = _new_table(clears)
    width, position, group_start = _FIRST_WIDTH, 24, 24
    before, pieces, n_bytes = b"", [], 0
    while position + width <= 8 * len(data):
        if len(table) >= 1 << width and width < max_width:
            position = group_start = _group_end(position, group_start, width)
            width += 1
            continue
        code = _bits(data, position, width)
        position += width
        if clears and code == _CLEAR:
            position = group_start = _group_end(position, group_start, width)
            table, width, before = _new_table(clears), _FIRST_WIDTH, b""
            continue
        piece = _look_up(table, code, before)
        if before and len(table) < 1 << max_width:
            table.append(before + piece[:1])
        pieces.append(piece)
        n_bytes += len(piece)
        if n_bytes > most:
            raise ValueError(f"it expands to more than {most:,} bytes")
        before = piece
    return b"".join(pieces)


def _new_table(clears: bool) -> list[bytes]:
    return [bytes([value]) for value in range(256)] + [b""] * clears


def _bits(data: bytes, position: int, width: int) -> int:
    start, shift = divmod(position, 8)
    return int.from_bytes(data[start : start + 4], "little") >> shift & (1 << width) - 1


def _group_end(position: int, group_start: int, width: int) -> int:
    group = 8 * width
    return group_start - (group_start - position) // group * group


def _look_up(table: list[bytes], code: int, before: bytes) -> bytes:
    if code < len(table):
        return table[code]
    # The one code that may come before its entry: that of the entry made now.
    if code == len(table) and before:
        return before + before[:1]
    raise ValueError(f"the code {code} of the .Z file was not defined before")
