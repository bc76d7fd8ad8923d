"""Records in the compact form of Thrift, in which Parquet writes what it says of pages.

As its C++ reader does, a field whose type is not the expected one is passed over, of
fields that are there twice the last counts, and of records that are there twice the
fields of both: what pyarrow reads is what is seen here.
"""

from typing import Any

TRUE, _FALSE, _BYTE, _I16, I32, I64, _DOUBLE, _BINARY, _LIST, _SET, _MAP, _STRUCT = (
    range(1, 13)
)
_STOP = 0

# What values take that are as long as their kind.
_WIDTHS = {TRUE: 1, _FALSE: 1, _BYTE: 1, _DOUBLE: 8}

# How deep records may be nested; as Thrift has it.
_MOST_DEPTH = 64

# Whole numbers have seven bits in a byte, and so many at most.
_MOST_BITS = 70

_CUT = "it ends in the middle"


class CompactReader:
    """Reads records from bytes, one after the other.

    All methods raise ``EOFError`` where the bytes end too early, and ``ValueError``
    where they are no record.

    Parameters
    ----------
    data : bytes

    Attributes
    ----------
    place : int
        Where the next value begins.
    """

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._depth = 0
        self.place = 0

    def record(
        self, wanted: dict[int, Any], before: dict[int, Any] | None = None
    ) -> dict[int, Any]:
        """Read a record.

        Parameters
        ----------
        wanted : dict
            The numbers of fields that are wanted. ``I32`` and ``I64`` are numbers,
            ``TRUE`` is yes or no, a dict is a record of its own, and a list with a dict
            is a list of records.
        before : dict, default=None
            Fields of the same record that were read before.

        Returns
        -------
        fields : dict
            Those that are there, by their numbers.
        """
        self._go_deeper()
        fields, number = dict(before or {}), 0
        while True:
            head = self._byte()
            kind = head & 15
            if kind == _STOP:
                break
            step = head >> 4
            # Numbers of fields have 16 bits, and go round.
            number = (number + step if step else self.signed(32)) & 0xFFFF
            shape = wanted.get(number)
            if kind in (TRUE, _FALSE):
                # Those two are said by the kind alone.
                if shape == TRUE:
                    fields[number] = kind == TRUE
            elif shape is not None and kind == _kind_of(shape):
                fields[number] = self._value(shape, fields.get(number))
            else:
                self._skip(kind)
        self._depth -= 1
        return fields

    def number(self) -> int:
        """Read a whole number that is not negative."""
        return self._varint()

    def signed(self, n_bits: int) -> int:
        """Read a whole number of so many bits."""
        value = self._varint() & (2**n_bits - 1)
        return (value >> 1) ^ -(value & 1)

    def take(self, n_bytes: int) -> bytes:
        """Read some bytes as they are."""
        self._move(n_bytes)
        return self._data[self.place - n_bytes : self.place]

    def _value(self, shape: Any, before: Any) -> Any:
        if shape == I32:
            return self.signed(32)
        if shape == I64:
            return self.signed(64)
        if isinstance(shape, dict):
            return self.record(shape, before)
        size, _ = self._list_head()
        return [self.record(shape[0]) for _ in range(size)]

    def _skip(self, kind: int) -> None:
        """Pass over a value."""
        if kind in _WIDTHS:
            self._move(_WIDTHS[kind])
        elif kind in (_I16, I32, I64):
            self._varint()
        elif kind == _BINARY:
            self._move(self._varint())
        elif kind == _STRUCT:
            self.record({})
        elif kind in (_LIST, _SET):
            self._skip_all(*self._list_head())
        elif kind == _MAP:
            size = self._varint()
            if size:
                kinds = self._byte()
                self._skip_all(size, kinds >> 4, kinds & 15)
        else:
            raise ValueError(f"there is no kind {kind} of values")

    def _skip_all(self, size: int, *kinds: int) -> None:
        self._go_deeper()
        # Each takes a byte at least, so that this ends with the bytes.
        for _ in range(size):
            for kind in kinds:
                self._skip(kind)
        self._depth -= 1

    def _list_head(self) -> tuple[int, int]:
        """Return how many values a list has, and their kind."""
        head = self._byte()
        size = head >> 4
        return (self._varint() if size == 15 else size), head & 15

    def _varint(self) -> int:
        byte = value = self._byte()
        n_bits = 7
        while byte > 127:
            byte = self._byte()
            # The highest bit of each byte says that there is one more.
            value += (byte - 1) << n_bits
            n_bits += 7
            if n_bits > _MOST_BITS:
                raise ValueError("a number does not end")
        return value

    def _byte(self) -> int:
        try:
            byte = self._data[self.place]
        except IndexError:
            raise EOFError(_CUT) from None
        self.place += 1
        return byte

    def _move(self, n_bytes: int) -> None:
        self.place += n_bytes
        if self.place > len(self._data):
            raise EOFError(_CUT)

    def _go_deeper(self) -> None:
        self._depth += 1
        if self._depth > _MOST_DEPTH:
            raise ValueError("records are nested too deeply")


def _kind_of(shape: Any) -> int:
    """Return the kind of the values that are wanted."""
    if isinstance(shape, dict):
        return _STRUCT
    return _LIST if isinstance(shape, list) else shape
