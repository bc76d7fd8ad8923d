"""NPY and NPZ files, whose headers are checked before memory is taken."""

import io
import math
import re
import zipfile
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from corral._memory import format_bytes
from corral.tables._broken import MEND, Broken, first_line, say_broken
from corral.tables._limits import check_memory

# The most that a byte of the packing that NumPy writes (deflate) can become.
_MOST_UNPACKED = 1032

# A longer list of arrays is no table.
_MOST_MEMBERS = 10_000


# More than NumPy reads of a header.
_LONGEST_HEAD = 10_001

# What a header holds beside texts. NumPy gives it to Python's parser, which long chains
# of signs can crash.
_QUOTED = re.compile(rb"""'[^']*'|"[^"]*\"""")
_PLAIN = re.compile(rb"(?:True|False|None|[\s\dL(),:\[\]{}])*")


class Head(NamedTuple):
    """What a NPY file says of its array."""

    shape: tuple[int, ...]
    dtype: np.dtype


def parse_head(file: Any) -> Head:
    """Read the header of a NPY file, without a look at what follows.

    Parameters
    ----------
    file : binary file
        At its beginning; stands behind the header afterwards.

    Returns
    -------
    head : Head
        The header is text of Python, and its damage raises nearly anything.
    """
    version = npy.read_magic(file)
    # Later versions have names in another encoding, which does not matter here.
    is_first = version == (1, 0)
    read = npy.read_array_header_1_0 if is_first else npy.read_array_header_2_0
    size = file.read(2 if is_first else 4)
    text = file.read(min(int.from_bytes(size, "little"), _LONGEST_HEAD))
    if not _PLAIN.fullmatch(_QUOTED.sub(b"", text)):
        raise ValueError("it holds more than a type and a shape")
    shape, _, dtype = read(io.BytesIO(size + text))
    return Head(shape, dtype)


def read_head(file: Any, n_bytes: int) -> Head:
    """Read the header of a NPY file, and refuse what it cannot hold.

    Parameters
    ----------
    file : binary file
        At its beginning; stands behind the header afterwards.
    n_bytes : int
        How many there are in all.

    Returns
    -------
    head : Head
    """
    try:
        shape, dtype = head = parse_head(file)
    except Exception as error:
        reason = first_line(error)
        raise Broken(f"is broken or cut off: its header, {reason}. {MEND}") from error
    if dtype.hasobject:
        raise Broken("holds Python objects, which are not read. Save numbers or texts.")
    n_cells = math.prod(shape)
    n_left = n_bytes - file.tell()
    is_odd = min(shape, default=0) < 0 or not dtype.itemsize
    if is_odd or n_cells * dtype.itemsize > n_left:
        raise Broken(
            f"is broken or cut off: its header tells of an array of shape {shape} and "
            f"type {str(dtype)[:60]}, but {format_bytes(n_left)} follow. {MEND}"
        )
    return head


class Npz(Mapping[str, np.ndarray]):
    """The arrays of an NPZ file, each checked before it is loaded.

    Parameters
    ----------
    file : path or binary file
        That can be sought.
    """

    def __init__(self, file: Any) -> None:
        try:
            self._archive = zipfile.ZipFile(file)
        except (FileNotFoundError, PermissionError, IsADirectoryError):
            raise
        except Exception as error:
            # Damage to an archive raises nearly anything.
            raise say_broken(error) from error
        members = self._archive.infolist()
        if len(members) > _MOST_MEMBERS:
            raise Broken(
                f"holds {len(members):,} arrays; {_MOST_MEMBERS:,} are the most that "
                "is read. Save the rows as one array X."
            )
        self._members = {
            each.filename.removesuffix(".npy"): each
            for each in members
            if each.filename.endswith(".npy")
        }

    def __enter__(self) -> "Npz":
        return self

    def __exit__(self, *_: object) -> None:
        self._archive.close()

    def __contains__(self, name: object) -> bool:
        # Without loading it.
        return name in self._members

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def head(self, name: str) -> Head:
        """Return shape and type of an array, without loading it."""
        return self._open(name, read_head)

    def __getitem__(self, name: str) -> np.ndarray:
        """Load an array."""
        check_memory(self._members[name].file_size)
        self.head(name)
        return self._open(name, lambda file, _: npy.read_array(file))

    def _open(self, name: str, read: Any) -> Any:
        member = self._members[name]
        _check_member(member)
        try:
            with self._archive.open(member) as file:
                return read(file, member.file_size)
        except Broken as error:
            raise Broken(f"has an array {name[:60]!r} that {error}") from error
        except MemoryError:
            raise
        except Exception as error:
            # Damage to an archive raises nearly anything.
            raise say_broken(error) from error


def _check_member(member: zipfile.ZipInfo) -> None:
    """Refuse a member that NumPy would not have written, or that lies on its size."""
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Broken("is packed otherwise than NumPy does. Save it with numpy.savez.")
    most = member.compress_size
    if member.compress_type == zipfile.ZIP_DEFLATED:
        most = _MOST_UNPACKED * (most + 1)
    if member.file_size > most:
        raise Broken(
            f"is broken: {member.filename[:60]!r} says that it unpacks from "
            f"{format_bytes(member.compress_size)} to "
            f"{format_bytes(member.file_size)}, which cannot be. {MEND}"
        )
