"""What the pages of a Parquet file unpack to, told before they are unpacked.

Each page begins with a head that says what it unpacks to and how many values it holds,
for which pyarrow takes memory without a look at what is free. It does not show these
heads. What the footer says of pages need not be true, and single columns of a damaged
footer end the process if pyarrow is asked for them.
"""

import struct
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from itertools import compress, repeat
from typing import Any, NamedTuple

from corral.tables._broken import MEND, Broken, first_line
from corral.tables._parquet_deltas import (
    LENGTHS,
    SHARED,
    check_lengths,
    skip_levels,
    unpack_page,
)
from corral.tables._parquet_leaves import Leaf
from corral.tables._thrift import I32, I64, TRUE, CompactReader

# The last bytes of a file: how long its footer is, and the name of the format.
_END = struct.Struct("<I4s")

# Fields by their numbers in Parquet's format. Of a column in a row group: how it is
# packed, how many values and packed bytes it has, and where its data pages and its
# dictionary begin.
_CHUNK = {4: I32, 5: I64, 7: I64, 9: I64, 11: I64}
_FOOTER = {4: [{1: [{3: _CHUNK}]}]}

# Of a page: what it is, its unpacked and packed bytes, and the head of each sort of
# pages: the number of values, and of data also how they are written. Newer ones say how
# many bytes their levels have, and whether what follows them is packed.
_DATA, _DICTIONARY, _NEW_DATA, _UNKNOWN = 0, 2, 3, -1
_NEW_HEAD = {1: I32, 4: I32, 5: I32, 6: I32, 7: TRUE}
_PAGE = {1: I32, 2: I32, 3: I32, 5: {1: I32, 2: I32}, 7: {1: I32}, 8: _NEW_HEAD}

# Texts that are written as places in a dictionary, in either version.
_OLD_PLACES, _PLACES = 2, 8

# A head has few bytes, but for the least and the greatest text, and as many as this at
# most, as pyarrow has it.
_HEAD_BYTES = 2**8
_MOST_HEAD_BYTES = 2**24

# Some old writers did not count the head of the dictionary; pyarrow reads on so far.
_UNCOUNTED_BYTES = 100

# What a text takes beside its letters while it is in a dictionary, and what points to
# another value.
_ENTRY_BYTES = 16
_POINTER_BYTES = 8

# Lists grow while they are read, and are then copied to their length.
COPIES = 2

# What a value of a list takes beside its copies, to say in which list it is and
# whether it is missing. Measured for numbers, texts, records and lists in lists: from 4
# to 7 in one list, and where it begins in each other.
_LEVEL_BYTES = 3
_LIST_BYTES = 4


class GroupSize(NamedTuple):
    """What a row group takes while it is read, in bytes.

    Attributes
    ----------
    pages : int
        The largest page of each column; these are unpacked at the same time.
    lists : int
        All values of lists, and what is needed beside them, but for letters.
    list_letters : int
        The most that the letters of texts in lists take: those that are written once
        may be there any number of times.
    letters : int
        The same of texts in no list.
    text : int
        The letters of a row that are written once and may stand in all rows.
    rows : int
        All pages but dictionaries, unpacked, or the values in them where these take
        more.
    """

    pages: int = 0
    lists: int = 0
    list_letters: int = 0
    letters: int = 0
    text: int = 0
    rows: int = 0

    @property
    def all_lists(self) -> int:
        """What lists take with their texts."""
        return self.lists + COPIES * self.list_letters


class _Page(NamedTuple):
    """What the head of a page says.

    Attributes
    ----------
    n_packed, n_unpacked : int
        Bytes of the page in the file, and unpacked.
    n_values : int
        Of data; a dictionary has none.
    n_entries : int
        Of a dictionary.
    coding : int
        How data are written.
    n_levels : int or None
        Bytes of the levels before the values; None if the levels tell.
    is_packed : bool
        Whether the values may be packed.
    """

    n_packed: int
    n_unpacked: int
    n_values: int
    n_entries: int
    coding: int
    n_levels: int | None
    is_packed: bool

    @property
    def n_bytes(self) -> int:
        """What it takes: if it is not packed what it has, whatever it says."""
        return max(self.n_packed, self.n_unpacked)


class PageHeads:
    """The heads of the pages of a Parquet file.

    Parameters
    ----------
    file : pyarrow.NativeFile
        That pyarrow has opened as Parquet.
    leaves : list of Leaf
        All its columns.
    names : collection of str, default=None
        The columns of the table that are read; None is all.

    Attributes
    ----------
    leaves : list of Leaf
        Those that are read.
    """

    def __init__(
        self, file: Any, leaves: list[Leaf], names: Collection[str] | None = None
    ) -> None:
        self._file = file
        self._n_left = file.size()
        self._is_read = [names is None or leaf.name in names for leaf in leaves]
        self.leaves = list(compress(leaves, self._is_read))
        with _telling_why():
            self._groups = [group.get(1, []) for group in _read_footer(file).get(4, [])]

    def __len__(self) -> int:
        """Return the number of row groups."""
        return len(self._groups)

    def measure(self, number: int) -> GroupSize:
        """Return what a row group takes while it is read."""
        with _telling_why():
            chunks = self._groups[number]
            if len(chunks) != len(self._is_read):
                raise ValueError("a row group has other columns than the table")
            chunks = [chunk.get(3, {}) for chunk in compress(chunks, self._is_read)]
            pages = map(self._read_pages, chunks, self.leaves)
            return _add_up(map(_measure, pages, self.leaves))

    def _read_pages(self, chunk: dict[int, int], leaf: Leaf) -> list[_Page]:
        """Return the pages of a column of a row group, as pyarrow goes through them."""
        packing, n_values, n_bytes, place, dictionary = map(
            chunk.get, _CHUNK, repeat(0)
        )
        if 0 < dictionary < place:
            place = dictionary
        start, end, pages = place, place + n_bytes, []
        if not 0 <= start <= end <= self._file.size():
            raise ValueError("a column lies outside of the file")
        last = end + _UNCOUNTED_BYTES
        while n_values > 0 and place < last:
            try:
                page, place = _read_page(self._file, place, last)
            except (EOFError, ValueError):
                # What follows a column is another one, or the footer.
                if place >= end:
                    break
                raise
            if page.coding in (LENGTHS, SHARED):
                content = self._file.read_at(page.n_packed, place)
                _check_lengths(content, page, packing, leaf)
            place += page.n_packed
            n_values -= page.n_values
            pages.append(page)
        # A few bytes of the file could be the pages of very many columns.
        self._n_left -= min(place, end) - start
        if self._n_left < 0:
            raise ValueError("its columns lie over each other")
        return pages


@contextmanager
def _telling_why() -> Iterator[None]:
    try:
        yield
    except Broken:
        raise
    except (EOFError, OSError, ValueError) as error:
        raise Broken(f"is broken: {first_line(error)}. {MEND}") from error


def _add_up(sizes: Iterable[GroupSize]) -> GroupSize:
    return GroupSize(*map(sum, zip(GroupSize(), *sizes, strict=True)))


def _measure(pages: list[_Page], leaf: Leaf) -> GroupSize:
    """Return what a column of a row group takes."""
    n_bytes = sum(page.n_bytes for page in pages)
    n_coded = sum(page.n_bytes for page in pages if page.n_entries)
    n_values = sum(page.n_values for page in pages)
    largest = max((page.n_bytes for page in pages), default=0)
    entry = _ENTRY_BYTES if leaf.is_text else leaf.width + _POINTER_BYTES
    size = GroupSize(
        pages=largest + entry * sum(page.n_entries for page in pages),
        rows=max(n_bytes - n_coded, n_values * leaf.width),
    )
    longest = _find_longest(pages)
    letters = n_bytes
    if not leaf.is_coded:
        letters += sum(
            page.n_values * text for page, text in zip(pages, longest, strict=True)
        )
    if leaf.n_lists or leaf.is_coded:
        beside = _LEVEL_BYTES + _LIST_BYTES * leaf.n_lists
        size = size._replace(lists=n_values * (COPIES * leaf.width + beside))
        return size._replace(list_letters=letters) if leaf.is_text else size
    if leaf.is_text:
        return size._replace(letters=letters, text=max(longest, default=0))
    return size


def _find_longest(pages: list[_Page]) -> list[int]:
    """Return how long the texts of each page may be that are not all written there."""
    dictionary = sum(page.n_bytes for page in pages if page.n_entries)
    longest = {_OLD_PLACES: dictionary, _PLACES: dictionary}
    return [
        page.n_bytes if page.coding == SHARED else longest.get(page.coding, 0)
        for page in pages
    ]


def _check_lengths(content: bytes, page: _Page, packing: int, leaf: Leaf) -> None:
    """Refuse a page of lengths that tells of more than it has, or of others."""
    if page.n_levels is None:
        values = unpack_page(content, page.n_unpacked, packing)
        values = skip_levels(values, bool(leaf.n_lists) + leaf.has_gaps)
    else:
        values = content[page.n_levels :]
        if page.is_packed:
            n_bytes = max(page.n_unpacked - page.n_levels, 0)
            values = unpack_page(values, n_bytes, packing)
    width = None if leaf.is_text else leaf.width
    check_lengths(values, page.n_values, page.coding, width)


def _read_footer(file: Any) -> dict[int, Any]:
    end = file.size() - _END.size
    n_bytes, _ = _END.unpack(file.read_at(_END.size, end))
    return CompactReader(file.read_at(n_bytes, end - n_bytes)).record(_FOOTER)


def _read_page(file: Any, place: int, end: int) -> tuple[_Page, int]:
    """Return what the head of a page says, and where the head ends."""
    n_bytes = _HEAD_BYTES
    while True:
        reader = CompactReader(file.read_at(min(n_bytes, end - place), place))
        try:
            page = _make_page(reader.record(_PAGE))
        except EOFError:
            if n_bytes >= min(end - place, _MOST_HEAD_BYTES):
                raise
            n_bytes *= 16
        else:
            return page, place + reader.place


def _make_page(head: dict[int, Any]) -> _Page:
    sort = head.get(1, _UNKNOWN)
    data = head.get({_DATA: 5, _NEW_DATA: 8}.get(sort, _UNKNOWN), {})
    entries = head.get(7, {}) if sort == _DICTIONARY else {}
    n_packed, n_unpacked = head.get(3, 0), head.get(2, 0)
    n_values, n_entries = data.get(1, 0), entries.get(1, 0)
    coding, n_levels, is_packed = data.get(2, _UNKNOWN), None, True
    if sort == _NEW_DATA:
        coding, is_packed = data.get(4, _UNKNOWN), data.get(7, True)
        n_levels = data.get(5, 0) + data.get(6, 0)
    sizes = n_packed, n_unpacked, n_values, n_entries
    if min(*sizes, n_levels or 0) < 0:
        raise ValueError("a page has less than nothing")
    return _Page(*sizes, coding, n_levels, is_packed)
