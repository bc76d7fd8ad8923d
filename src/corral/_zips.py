"""Zip archives whose writing can be interrupted at any place."""

import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO


@contextmanager
def write_zip(
    file: IO[bytes], method: int = zipfile.ZIP_STORED
) -> Iterator[zipfile.ZipFile]:
    """Open an archive that is written, and leave it as it is after an error.

    Parameters
    ----------
    file : binary file
        Not closed with the archive.
    method : int, default=zipfile.ZIP_STORED
        How members are packed.
    """
    archive = zipfile.ZipFile(file, "w", method)
    try:
        yield archive
        archive.close()
    except BaseException:
        # Cut off within a member, it refuses to be closed: a ValueError would stand
        # for the signal or the Ctrl-C, and be printed again when it is collected.
        archive.fp = None
        raise
