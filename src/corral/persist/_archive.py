"""The file of a model: a zip archive that is unpacked within limits."""

import io
import json
import math
import os
import re
import stat
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from corral._memory import find_free_memory, format_bytes
from corral._zips import write_zip
from corral.tables._broken import first_line
from corral.tables._npz import parse_head

# The page about versions, beside skops' own files in the archive.
PAGE = "corral.json"
SCHEMA = "schema.json"

# The arrays of a model are called by numbers.
_ARRAY_NAME = re.compile(r"[0-9]{1,20}\.(npy|npz)")

# What SciPy writes of sparse rows.
_SPARSE_NAMES = {
    f"{name}.npy"
    for name in ("data", "indices", "indptr", "format", "shape", "_is_array")
}

# An archive may unpack to so many times its size, or to this if that is more. Deflate
# packs at most 1032 to 1, and models about 4 to 1.
_MOST_PER_BYTE = 100
SMALL_TOTAL = 16 * 2**20

# A tree of a forest takes 5 kB of the description, a column of a sparse table 1.7 kB, a
# category of Holoentropy 0.24 kB: room for 12,000, 38,000 and 280,000 of them. Texts of
# 20,000 words have as many columns.
_LARGEST_SCHEMA = 64 * 2**20
_LARGEST_PAGE = 2**16

# Objects of Python that a byte of the description becomes: 24 bytes of them for "{},",
# and up to 26 for what is given to skops.
_BYTES_PER_LETTER = 30

# What an array without values may say that it has of rows or columns.
_MOST_HOLLOW = 2**20

# Unpacked members, the archive that skops reads, its copies and the arrays themselves.
_COPIES = 4

_METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1


class ArchiveError(ValueError):
    """A file is no archive of a model, or a damaged one."""


def read_file(path: Path) -> bytes:
    """Return the content of a regular file, without waiting for a pipe or a device."""
    # A pipe that nobody writes to would make the opening wait.
    flags = os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise FileNotFoundError(f"'{path}' is not there.") from None
    except PermissionError:
        # Windows opens no folder.
        if path.is_dir():
            raise ArchiveError("it is a folder. Name a model file") from None
        raise
    except OSError as error:
        raise ArchiveError(f"it cannot be opened: {error.strerror}") from None
    try:
        about = os.fstat(descriptor)
        _check_regular(about.st_mode)
        _check_room(about.st_size)
        with open(descriptor, "rb", closefd=False) as file:
            return file.read(about.st_size)
    finally:
        os.close(descriptor)


def _check_regular(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise ArchiveError("it is a folder. Name a model file")
    if not stat.S_ISREG(mode):
        raise ArchiveError("it is a pipe or a device. Name a model file")


def read_page(content: bytes) -> Any:
    """Return what an archive says of itself, whatever else is in it.

    Parameters
    ----------
    content : bytes
        Of the file.
    """
    with _open_zip(content) as archive:
        found = [each for each in archive.infolist() if each.filename == PAGE]
        if not found:
            raise ArchiveError(f"it has no {PAGE}")
        _check_member(found[0], None)
        return read_json(PAGE, _read_member(archive, found[0]))


def unpack(content: bytes) -> dict[str, bytes]:
    """Return the members of an archive, each checked as far as it can be alone.

    Parameters
    ----------
    content : bytes
        Of the file.

    Returns
    -------
    members : dict of str to bytes
        The description, the page and arrays, whose headers tell their true sizes.
    """
    budget = _Budget(len(content))
    members = _unpack_zip(content, budget)
    for name in (SCHEMA, PAGE):
        if name not in members:
            raise ArchiveError(f"it has no {name}")
    _check_room(_BYTES_PER_LETTER * len(members[SCHEMA]))
    for name, member in members.items():
        if name.endswith(".npy"):
            _check_npy(name, member)
        elif name.endswith(".npz"):
            _check_npz(name, member, budget)
    return members


def measure_arrays(members: dict[str, bytes]) -> dict[str, int]:
    """Return how many bytes each array of an archive has when it is unpacked."""
    sizes = {name: len(each) for name, each in members.items() if is_array(name)}
    for name in sizes:
        if name.endswith(".npz"):
            with zipfile.ZipFile(io.BytesIO(members[name])) as archive:
                sizes[name] = sum(each.file_size for each in archive.infolist())
    return sizes


def is_array(name: str) -> bool:
    """Return whether a member of an archive is an array, dense or sparse."""
    return _ARRAY_NAME.fullmatch(name) is not None


def pack(members: dict[str, bytes]) -> bytes:
    """Return an archive of members that is small, and can be read again.

    Parameters
    ----------
    members : dict of str to bytes
        As :func:`unpack` gives them.

    Returns
    -------
    content : bytes
    """
    members = {
        name: _store_npz(member) if name.endswith(".npz") else member
        for name, member in members.items()
    }
    content = _zip(members, zipfile.ZIP_DEFLATED)
    # Sparse rows are an archive in the archive, and counted as both.
    total = sum(
        len(member) * (2 if name.endswith(".npz") else 1)
        for name, member in members.items()
    )
    if total > max(SMALL_TOTAL, _MOST_PER_BYTE * len(content)):
        # Too good to be read again: many equal values.
        return store(members)
    return content


def store(members: dict[str, bytes]) -> bytes:
    """Return an archive of members that are not packed."""
    return _zip(members, zipfile.ZIP_STORED)


def _store_npz(member: bytes) -> bytes:
    """Return sparse rows, which SciPy packs, so that they are packed once only."""
    with zipfile.ZipFile(io.BytesIO(member)) as archive:
        return store({name: archive.read(name) for name in archive.namelist()})


def _zip(members: dict[str, bytes], method: int) -> bytes:
    buffer = io.BytesIO()
    with write_zip(buffer, method) as archive:
        for name, member in members.items():
            # Without the time, so that the same model gives the same file.
            info = zipfile.ZipInfo(name)
            info.compress_type = method
            archive.writestr(info, member)
    return buffer.getvalue()


def read_json(name: str, member: bytes) -> Any:
    """Return a member that is written as JSON."""
    try:
        return json.loads(member.decode("utf-8"))
    except RecursionError:
        raise ArchiveError(f"{name} is nested too deeply") from None
    except ValueError as error:
        raise ArchiveError(f"{name} is no JSON: {error}") from None


class _Budget:
    """How much may be unpacked, in all."""

    def __init__(self, n_packed: int) -> None:
        self._most = max(SMALL_TOTAL, _MOST_PER_BYTE * n_packed)
        self._total = 0

    def take(self, n_bytes: int) -> None:
        self._total += n_bytes
        if self._total > self._most:
            raise ArchiveError(
                f"it would unpack to {format_bytes(self._total)} or more, far more "
                "than a model of its size"
            )
        _check_room(_COPIES * self._total)


def _check_room(n_bytes: int) -> None:
    if n_bytes > SMALL_TOTAL and n_bytes > find_free_memory():
        raise ArchiveError(
            f"reading it takes {format_bytes(n_bytes)}, and there is not as much free "
            "memory"
        )


def _unpack_zip(
    content: bytes, budget: _Budget, allowed: set[str] | None = None
) -> dict[str, bytes]:
    """Return the members of an archive; ``allowed`` names those of sparse rows."""
    members: dict[str, bytes] = {}
    with _open_zip(content) as archive:
        for info in archive.infolist():
            _check_member(info, allowed)
            if info.filename in members:
                raise ArchiveError(f"{info.filename!r} is there twice")
            budget.take(info.file_size)
            members[info.filename] = _read_member(archive, info)
    return members


@contextmanager
def _open_zip(content: bytes) -> Iterator[zipfile.ZipFile]:
    """Open an archive, and say that it is damaged where it cannot be read."""
    # An archive may also begin later, after what other programs take it for.
    if not content.startswith(b"PK\x03\x04"):
        raise ArchiveError("it is no zip archive")
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            yield archive
    except ArchiveError:
        raise
    except Exception as error:
        raise ArchiveError(f"it is damaged: {error}") from error


def _check_member(info: zipfile.ZipInfo, allowed: set[str] | None) -> None:
    name = info.filename
    is_known = name in (allowed or (SCHEMA, PAGE))
    if not is_known and (allowed is not None or not is_array(name)):
        raise ArchiveError(f"it has the unknown member {name[:60]!r}")
    if info.flag_bits & _ENCRYPTED:
        raise ArchiveError(f"{name!r} is encrypted")
    if info.compress_type not in _METHODS:
        raise ArchiveError(f"{name!r} is packed in an unknown way")
    most = {SCHEMA: _LARGEST_SCHEMA, PAGE: _LARGEST_PAGE}.get(name, math.inf)
    if info.file_size > most:
        raise ArchiveError(f"{name!r} is larger than {format_bytes(most)}")


def _read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> bytes:
    """Return a member, no more of it than was announced."""
    with archive.open(info) as file:
        # To the end, where its check sum is compared.
        member = file.read(info.file_size + 1)
    if len(member) != info.file_size:
        raise ArchiveError(f"{info.filename!r} is not as large as announced")
    return member


def _check_npz(name: str, member: bytes, budget: _Budget) -> None:
    for inner, part in _unpack_zip(member, budget, _SPARSE_NAMES).items():
        letters = "S" if inner == "format.npy" else "biuf"
        _check_npy(f"{name}/{inner}", part, letters)


def _check_npy(name: str, member: bytes, letters: str = "biufUV") -> None:
    """Check that an array is as large as its header says, and holds no objects."""
    file = io.BytesIO(member)
    try:
        shape, dtype = parse_head(file)
    except Exception as error:
        raise ArchiveError(f"{name} is no array: {first_line(error)}") from error
    if dtype.kind not in letters or dtype.hasobject or not dtype.itemsize:
        raise ArchiveError(f"{name} is an array of {dtype.name[:40]}")
    if any(type(size) is not int or not 0 <= size < 2**48 for size in shape):
        raise ArchiveError(f"{name} has a shape that cannot be")
    if math.prod(shape) * dtype.itemsize != len(member) - file.tell():
        raise ArchiveError(f"{name} is not as large as its header says")
    # Without columns, rows without number take no room here, but elsewhere they do.
    if math.prod(size or 1 for size in shape) > max(_MOST_HOLLOW, len(member)):
        raise ArchiveError(f"{name} has a shape that cannot be")
