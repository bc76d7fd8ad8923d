"""Files that are either complete or not there."""

import contextlib
import errno
import os
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from corral._leftovers import TemporaryFolder, hold, make_mark, remove_parts

# Bytes of a file's name that every file system takes.
_LONGEST_NAME = 255

# What file systems say that cannot link, or cannot wait for a disk.
_UNABLE = {
    getattr(errno, name)
    for name in ("EINVAL", "EMLINK", "ENOSYS", "ENOTSUP", "EOPNOTSUPP", "EPERM")
}


class KeptBesideError(FileExistsError):
    """A file came to be there while another was written, which has another name now.

    Parameters
    ----------
    path : Path
        What is there, and was left as it is.
    kept : Path
        Where the file that was written is.
    """

    def __init__(self, path: Path, kept: Path) -> None:
        super().__init__(
            f"'{path}' came to be there meanwhile, and was left as it is. What was to "
            f"be written is in '{kept}'."
        )
        self.kept = kept


@contextmanager
def write_atomically(path: str | Path, *, replace: bool = True) -> Iterator[Path]:
    """Give a temporary name to write to, which takes the place of the file at the end.

    Whatever ends the block early, an interrupt too, removes what was written and leaves
    the file as it was. A process that is killed leaves the temporary file; the next one
    that writes to the folder removes it.

    Parameters
    ----------
    path : str or Path
        What is to be written. A link is followed. Devices and pipes, which cannot be
        replaced, get their content in one go at the end; so do those of /dev/fd.
    replace : bool, default=True
        Whether a file that is there at the end is replaced; the new one gets its
        permissions. Else the new one gets another name, and an error tells it.

    Yields
    ------
    part : Path
        An empty file in the same folder, with the same suffix.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from corral.tables import write_atomically
    >>> target = pathlib.Path(tempfile.mkdtemp(), "answer.txt")
    >>> with write_atomically(target) as part:
    ...     _ = part.write_text("42")
    >>> target.read_text()
    '42'
    """
    given = Path(path)
    if given.is_dir():
        raise ValueError(f"'{path}' is a folder. Name a file in it.")
    if given.exists() and not given.is_file():
        # A root user's /dev/null must not become a file. Links are not followed before:
        # those of /dev/fd and /dev/stdout lead to pipes that have no other name.
        with _write_through(given) as part:
            yield part
        return
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise FileNotFoundError(
            f"'{path}' cannot be written, because the folder '{target.parent}' is not "
            "there. Make it first."
        )
    remove_parts(target.parent)
    with write_part(target, replace=replace) as part:
        yield part


@contextmanager
def _write_through(target: Path) -> Iterator[Path]:
    """Give a temporary file whose content goes to a device or pipe at the end."""
    folder = TemporaryFolder()
    try:
        part = folder.path / f"part{target.suffix}"
        yield part
        with named(target), part.open("rb") as source, target.open("wb") as sink:
            shutil.copyfileobj(source, sink)
    finally:
        folder.remove()


@contextmanager
def write_part(
    target: Path, *, replace: bool = True, lasts: bool = True
) -> Iterator[Path]:
    """Do the work of :func:`write_atomically`, but remove nothing of other runs.

    Parameters
    ----------
    target : Path
        A file, in a folder that is there.
    replace : bool, default=True
    lasts : bool, default=True
        Whether a failure of power must not harm it.

    Yields
    ------
    part : Path
    """
    part, descriptor = _begin(target)
    try:
        with named(target, part):
            yield part
            if lasts:
                _flush(part)
            kept = _put(part, target) if replace else _put_beside(part, target)
            if lasts:
                # Only then the disk knows the new name.
                _flush_names(target.parent)
        if kept != target:
            raise KeptBesideError(target, kept)
    finally:
        # What cannot be removed now is removed by the next run.
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        if descriptor is not None:
            os.close(descriptor)


def _begin(target: Path) -> tuple[Path, int | None]:
    """Make an empty part; return it and what holds its lock."""
    while True:
        part = target.with_name(_name_part(target))
        # Nobody may read it who may not read what it replaces.
        mode = _find_mode(target) | stat.S_IRUSR | stat.S_IWUSR
        with named(target, part):
            descriptor = os.open(part, os.O_CREAT | os.O_EXCL | os.O_RDWR, mode)
        if os.name == "nt":
            # Windows does not rename what is open.
            os.close(descriptor)
            return part, None
        if hold(part, descriptor):
            return part, descriptor
        os.close(descriptor)


def _name_part(target: Path) -> str:
    """Return a name for a part, of a length that file systems take."""
    end = f".{make_mark()}.part{target.suffix}"
    room = _LONGEST_NAME - len(os.fsencode(end)) - 1
    # Half a letter at the end is left out.
    stem = os.fsencode(target.stem)[:room].decode(errors="ignore")
    return f".{stem}{end}"


def _find_mode(target: Path) -> int:
    """Return the permissions of a file that is there, or those of any new one."""
    try:
        return stat.S_IMODE(target.stat().st_mode) & 0o777
    except FileNotFoundError:
        return 0o666


def _put(part: Path, target: Path) -> Path:
    """Replace a file by a part, which gets its owner and permissions."""
    with contextlib.suppress(FileNotFoundError):
        found = target.stat()
        # What cannot be set stays narrower, which is no reason to lose the content.
        with contextlib.suppress(OSError):
            part.chmod(_find_mode(target))
        if hasattr(os, "chown"):
            # Only root may give files away, and others to groups of theirs.
            for owner in (-1, found.st_uid):
                with contextlib.suppress(OSError):
                    os.chown(part, owner, found.st_gid)
    return part.replace(target)


def _put_beside(part: Path, target: Path) -> Path:
    """Give a part the name of the file, or one like it if a file has that."""
    ends = "".join(target.suffixes)
    stem = target.name.removesuffix(ends)
    path, number = target, 1
    while True:
        with contextlib.suppress(FileExistsError):
            _rename_new(part, path)
            return path
        number += 1
        path = target.with_name(f"{stem}-{number}{ends}")


def _rename_new(part: Path, path: Path) -> None:
    """Rename a part, unless a file has the name; nobody can come in between."""
    if os.name == "nt":
        part.rename(path)
        return
    try:
        os.link(part, path)
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
        # An empty file keeps the place.
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
        try:
            part.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                path.unlink()
            raise


def _flush(path: Path) -> None:
    """Wait until the disk has a file."""
    descriptor = os.open(path, os.O_RDWR)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _UNABLE:
            raise
    finally:
        os.close(descriptor)


def _flush_names(folder: Path) -> None:
    """Wait until the disk has the names in a folder, where that can be asked for."""
    # Windows opens no folders, nor does anybody without the right to read them.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def named(path: Path, part: Path | None = None) -> Iterator[None]:
    """Name the file in an error of writing it, such as that of a full disk.

    Parameters
    ----------
    path : Path
    part : Path, default=None
        What may be named in its place, and says little to the user.
    """
    try:
        yield
    except OSError as error:
        if error.errno is None or str(error.filename) not in ("None", str(part)):
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from error


def append_array(path: Path, values: np.ndarray) -> None:
    """Write the numbers of an array behind those that a file has.

    Parameters
    ----------
    path : Path
        Made if it is not there.
    values : ndarray
    """
    # NumPy's own ``tofile`` does not tell why it failed.
    with named(path), path.open("ab") as file:
        file.write(np.ascontiguousarray(values).data)
