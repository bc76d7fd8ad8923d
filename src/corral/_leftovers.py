"""What a run leaves if it is killed: known by its name, and removed by the next run.

A name tells the machine, and a lock, which ends with its process however that comes
about, tells whether the run still lives.
"""

import contextlib
import hashlib
import os
import platform
import re
import shutil
import stat
import tempfile
import time
import uuid
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:
    # Not on Windows.
    fcntl = None  # type: ignore[assignment]

# Machines that share a folder may not see each other's locks.
_HOST = hashlib.sha256(platform.node().encode()).hexdigest()[:8]

# What cannot be asked whether it lives is taken for left after so many seconds.
_OLD = 7 * 24 * 3600

_MARK = r"([0-9a-f]{8})-[0-9a-f]{16}"
_PART = re.compile(rf"\..*\.{_MARK}\.part(\..*)?", re.DOTALL)
_FOLDER = re.compile(rf"corral-{_MARK}")


def make_mark() -> str:
    """Return a part of a name that no other run has, on any machine."""
    return f"{_HOST}-{uuid.uuid4().hex[:16]}"


def take_lock(descriptor: int) -> bool | None:
    """Lock an open file or folder until it is closed or the process ends.

    Parameters
    ----------
    descriptor : int

    Returns
    -------
    is_held : bool or None
        False if another one holds it, None where there are no locks.
    """
    if fcntl is None:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        # Some file systems of clusters have none.
        return None
    return True


def hold(path: Path, descriptor: int) -> bool:
    """Lock what was just made; False if another run has taken it for left.

    Parameters
    ----------
    path : Path
    descriptor : int
        Of the file or folder.
    """
    if take_lock(descriptor) is False:
        return False
    # It may have been removed before the lock was there.
    with contextlib.suppress(FileNotFoundError):
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    return False


class TemporaryFolder:
    """A folder that is removed with the object, or by the next run if it is killed.

    Those of runs that were killed are removed first.

    Attributes
    ----------
    path : Path
        In the system's folder for temporary files.
    """

    def __init__(self) -> None:
        home = Path(tempfile.gettempdir())
        remove_folders(home)
        self.path, descriptor = _make_folder(home)
        # At the end of the process, too.
        self._end = weakref.finalize(
            self, _remove_own, self.path, descriptor, os.getpid()
        )

    def remove(self) -> None:
        """Remove the folder now."""
        self._end()


def _make_folder(home: Path) -> tuple[Path, int | None]:
    """Return a new folder, and what holds its lock."""
    while True:
        folder = home / f"corral-{make_mark()}"
        folder.mkdir(mode=0o700)
        if fcntl is None:
            # Windows does not open folders.
            return folder, None
        try:
            descriptor = os.open(folder, os.O_RDONLY)
        except FileNotFoundError:
            # Another run took it for one that was left behind.
            continue
        if hold(folder, descriptor):
            return folder, descriptor
        os.close(descriptor)


def _remove_own(folder: Path, descriptor: int | None, process: int) -> None:
    # A process that was forked has the object as well, but not the folder.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)
    if descriptor is not None:
        os.close(descriptor)


def remove_parts(folder: Path) -> None:
    """Remove parts of files that runs were writing in a folder when they were killed.

    Parameters
    ----------
    folder : Path
    """
    for path, host in _list_marked(folder, _PART):
        _remove_if_left(path, host, os.O_RDWR, stat.S_ISREG, os.unlink)


def remove_folders(home: Path) -> None:
    """Remove folders of temporary files of runs that were killed.

    Parameters
    ----------
    home : Path
    """
    for path, host in _list_marked(home, _FOLDER):
        _remove_if_left(path, host, os.O_RDONLY, stat.S_ISDIR, shutil.rmtree)


def _list_marked(folder: Path, pattern: re.Pattern) -> list[tuple[Path, str]]:
    """Return what has a mark in its name, and the machine that the mark tells."""
    try:
        found = ((path, pattern.fullmatch(path.name)) for path in folder.iterdir())
        return [(path, match[1]) for path, match in found if match]
    except OSError:
        # Files can be written to a folder that cannot be read.
        return []


def _remove_if_left(
    path: Path,
    host: str,
    flags: int,
    is_kind: Callable[[int], bool],
    remove: Callable[[Path], object],
) -> None:
    """Remove a file or folder, unless its run may still live."""
    # Another run may remove it at the same time, and others' files may not be ours.
    with contextlib.suppress(OSError), _opened(path, flags) as descriptor:
        found = path.lstat()
        is_held = None if descriptor is None else take_lock(descriptor)
        is_over = is_held and host == _HOST
        is_old = is_held is not False and time.time() - found.st_mtime > _OLD
        if is_kind(found.st_mode) and _is_ours(found) and (is_over or is_old):
            remove(path)


@contextlib.contextmanager
def _opened(path: Path, flags: int) -> Iterator[int | None]:
    """Open for a lock; None where there are none."""
    if fcntl is None:
        yield None
        return
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags)
    except PermissionError:
        # A part may already have the permissions of a file that can only be read. Where
        # a lock needs more than that, over a network, age tells.
        descriptor = os.open(path, flags & ~os.O_RDWR)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _is_ours(found: os.stat_result) -> bool:
    # Windows knows no owners by number.
    return fcntl is None or found.st_uid == os.getuid()
