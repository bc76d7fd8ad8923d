"""Where data lies: the folder, and the files in it."""

import errno
import gzip
import io
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from corral.datasets._info import DatasetInfo
from corral.datasets._lzw import expand
from corral.tables._broken import first_line

_HOME = "~/corral_data"

# No original has a tenth of it; a packed file that holds more is no data of ours.
_MAX_BYTES = 2**30

# Errors of the system that are damage to a file and not, say, a lack of rights: none,
# and a place before its beginning.
_DAMAGE = (None, errno.EINVAL)

_ARCHIVES = (".zip", ".tar.gz")

# Headers of a tar file are 512 bytes a member. tarfile reads longer ones, of a long
# path or of notes, as a whole and with patterns that take the square of their length.
_LONGEST_HEADER = 2**13
_MOST_HEADERS = 2**20

# What sources write into zip files. Of bzip2 and LZMA, Python unpacks all that there is
# at once: 4 kB of bzip2 can become 5 GB.
_ZIP_PACKINGS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_ENCRYPTED = 0x1


def choose_folder(data_dir: str | os.PathLike[str] | None) -> Path:
    """Return the folder with the data.

    Parameters
    ----------
    data_dir : path-like or None
        The folder, or None for that of the environment variable ``CORRAL_DATA`` or else
        ``~/corral_data``.

    Returns
    -------
    folder : Path
        Need not be there.
    """
    named = data_dir if data_dir is not None else os.environ.get("CORRAL_DATA")
    return Path(named or _HOME).expanduser()


class Original(NamedTuple):
    """An original file that was found.

    Attributes
    ----------
    path : Path
        The file, or the archive it is in.
    member : str or None
        Its name in the archive.
    """

    path: Path
    member: str | None = None

    def read(self) -> bytes:
        """Return its bytes, unpacked; damage raises ``ValueError``."""
        try:
            return self._read()
        except (MemoryError, ValueError):
            raise
        except Exception as error:
            if isinstance(error, OSError) and error.errno not in _DAMAGE:
                raise
            # Damage raises nearly anything, such as RuntimeError and struct.error.
            raise ValueError(f"it cannot be unpacked: {first_line(error)}") from error

    def _read(self) -> bytes:
        if self.member is None:
            with self.path.open("rb") as stream:
                return _unpack(self.path.name, stream)
        read = _read_zip if self.path.suffix == ".zip" else _read_tar
        return read(self.path, self.member)


def find_npz(info: DatasetInfo, folder: Path) -> Path | None:
    """Return the ``.npz`` file of a data set, or None.

    Parameters
    ----------
    info : DatasetInfo
    folder : Path

    Returns
    -------
    path : Path or None
    """
    path = folder / f"{info.name}.npz"
    return path if path.is_file() else None


def find_originals(info: DatasetInfo, folder: Path) -> list[Original] | None:
    """Return the originals of a data set in their order, or None if one is missing.

    Each may lie in the folder or in one below it with the data set's name, as it is, as
    ``.gz`` or ``.Z``, or in an archive that the source publishes.

    Parameters
    ----------
    info : DatasetInfo
    folder : Path

    Returns
    -------
    originals : list of Original or None
    """
    found = [next(_places(info, folder, name), None) for name in info.originals]
    return [each for each in found if each] if all(found) else None


def _places(info: DatasetInfo, folder: Path, name: str) -> Iterator[Original]:
    archives = [each.name for each in info.downloads if each.name.endswith(_ARCHIVES)]
    for place in (folder / info.name, folder):
        files = [Original(place / packed) for packed in _packed(name)]
        files += [Original(place / archive, name) for archive in archives]
        yield from (each for each in files if each.path.is_file())


def _packed(name: str) -> list[str]:
    return [f"{name}{suffix}" for suffix in _UNPACK]


# Members of archives are found by their base names, read into memory and never written,
# so their paths cannot lead out of a folder.


def _read_zip(path: Path, name: str) -> bytes:
    with zipfile.ZipFile(path) as archive:
        for member in archive.infolist():
            if _base(member.filename) in _packed(name):
                _check_member(member)
                with archive.open(member) as stream:
                    return _unpack(member.filename, stream)
    raise ValueError(f"it has no file {name}")


def _check_member(member: zipfile.ZipInfo) -> None:
    if member.flag_bits & _ENCRYPTED:
        raise ValueError(f"its file {_base(member.filename)} is encrypted")
    if member.compress_type not in _ZIP_PACKINGS:
        raise ValueError(
            f"its file {_base(member.filename)} is packed in a way that no source uses "
            f"(number {member.compress_type}), and only deflate is read"
        )


def _read_tar(path: Path, name: str) -> bytes:
    # Of other packings of a tar file tarfile would know, too, but none is named so.
    with gzip.open(path) as unpacked:
        # Of a file it has all that tarfile asks for.
        file: Any = _TarBytes(unpacked)
        with tarfile.open(fileobj=file, mode="r:") as archive:
            while (member := archive.next()) is not None:
                # Those of links and folders are no bytes; links are not followed.
                is_plain = member.isreg() and not member.issparse()
                if is_plain and _base(member.name) in _packed(name):
                    content = file.read_member(member)
                    return _unpack(member.name, io.BytesIO(content))
                # tarfile would keep all, and each keeps what is said of all.
                archive.members.clear()  # type: ignore[attr-defined]
    raise ValueError(f"it has no file {name}")


class _TarBytes:
    """The bytes of a tar file: few for its headers, and from the first to the last.

    Parameters
    ----------
    unpacked : binary file
    """

    def __init__(self, unpacked: Any) -> None:
        self._unpacked = unpacked
        self._n_headers = 0

    def read(self, n_bytes: int) -> bytes:
        """Return bytes of a header, which are all that tarfile is asked for."""
        self._n_headers += n_bytes
        # Of a negative number, gzip would read all.
        is_one = 0 <= n_bytes <= _LONGEST_HEADER
        if not is_one or self._n_headers > _MOST_HEADERS:
            raise ValueError(
                f"it has a header of {n_bytes:,} bytes, and {self._n_headers:,} bytes "
                f"of headers so far; {_LONGEST_HEADER:,} and {_MOST_HEADERS:,} are the "
                "most that is read"
            )
        return self._unpacked.read(n_bytes)

    def tell(self) -> int:
        """Return how many bytes were read or left out."""
        return self._unpacked.tell()

    def seek(self, place: int) -> None:
        """Go on to a place, never back, as tarfile would at a wrong size."""
        if place < self.tell():
            raise ValueError("it has a file that ends before it begins")
        _check_size(place)
        self._unpacked.seek(place)

    def read_member(self, member: tarfile.TarInfo) -> bytes:
        """Return the bytes of a plain file."""
        self.seek(member.offset_data)
        _check_size(member.size)
        content = self._unpacked.read(max(member.size, 0))
        if len(content) != member.size:
            raise ValueError(f"it is cut off in the file {_base(member.name)}")
        return content


def _base(member: str) -> str:
    return member.rpartition("/")[2]


def _unpack(name: str, stream: IO[bytes]) -> bytes:
    return _UNPACK[_suffix(name)](stream)


def _suffix(name: str) -> str:
    suffix = os.path.splitext(name)[1]
    return suffix if suffix in _UNPACK else ""


def _read_plain(stream: Any) -> bytes:
    data = stream.read(_MAX_BYTES + 1)
    _check_size(len(data))
    return data


def _check_size(n_bytes: int) -> None:
    if n_bytes > _MAX_BYTES:
        raise ValueError(
            f"it holds more than {_MAX_BYTES:,} bytes, which no original does"
        )


def _read_gzip(stream: IO[bytes]) -> bytes:
    with gzip.open(stream) as file:
        return _read_plain(file)


def _read_lzw(stream: IO[bytes]) -> bytes:
    return expand(_read_plain(stream), _MAX_BYTES)


_UNPACK: dict[str, Callable[[IO[bytes]], bytes]] = {
    "": _read_plain,
    ".gz": _read_gzip,
    ".Z": _read_lzw,
}
