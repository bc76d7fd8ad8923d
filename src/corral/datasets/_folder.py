"""Where data lies: the folder, and the files in it."""

import gzip
import os
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from corral.datasets._info import DatasetInfo
from corral.datasets._lzw import expand

_HOME = "~/corral_data"

# No original has a tenth of it; a packed file that holds more is no data of ours.
_MAX_BYTES = 2**30

_ARCHIVES = (".zip", ".tar.gz")


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
        """Return its bytes, unpacked."""
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
        for member in archive.namelist():
            if _base(member) in _packed(name):
                with archive.open(member) as stream:
                    return _unpack(member, stream)
    raise ValueError(f"it has no file {name}")


def _read_tar(path: Path, name: str) -> bytes:
    with tarfile.open(path) as archive:
        for member in archive:
            # Of a link or a folder there is no stream; links are not followed.
            if member.isfile() and _base(member.name) in _packed(name):
                stream = archive.extractfile(member)
                assert stream is not None
                with stream:
                    return _unpack(member.name, stream)
    raise ValueError(f"it has no file {name}")


def _base(member: str) -> str:
    return member.rpartition("/")[2]


def _unpack(name: str, stream: IO[bytes]) -> bytes:
    return _UNPACK[_suffix(name)](stream)


def _suffix(name: str) -> str:
    suffix = os.path.splitext(name)[1]
    return suffix if suffix in _UNPACK else ""


def _read_plain(stream: Any) -> bytes:
    data = stream.read(_MAX_BYTES + 1)
    if len(data) > _MAX_BYTES:
        raise ValueError(
            f"it holds more than {_MAX_BYTES:,} bytes, which no original does"
        )
    return data


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
