"""Which file it was, and whether it still is the same."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from corral.sources._errors import UnreadableBlockError


class FileMark(NamedTuple):
    """A file as it was when it was opened.

    Attributes
    ----------
    path : str
        Absolute.
    size : int
        In bytes.
    mtime_ns : int
        When it was last changed.
    """

    path: str
    size: int
    mtime_ns: int

    def __str__(self) -> str:
        return f"'{self.path}'"

    def check(self) -> None:
        """Refuse to read on if the file is not the same any more."""
        try:
            now = mark_file(self.path)
        except OSError as error:
            raise UnreadableBlockError(
                f"{self} cannot be opened again: {error.strerror}."
            ) from error
        if now != self:
            raise UnreadableBlockError(
                f"{self} has changed since its source was opened. Open it again."
            )


def mark_file(path: str | Path) -> FileMark:
    """Return the mark of a file as it is now."""
    state = os.stat(path)
    return FileMark(os.path.abspath(path), state.st_size, state.st_mtime_ns)


def mark_for_arrow(path: str | Path) -> FileMark:
    """Return the mark of a file that pyarrow can open by its name."""
    try:
        os.path.abspath(path).encode()
    except UnicodeEncodeError as error:
        raise UnreadableBlockError(
            f"'{path}' has a name that is not UTF-8, which a file that is read in "
            "pieces needs. Rename it."
        ) from error
    return mark_file(path)


def describe_files(marks: Sequence[FileMark]) -> dict[str, Any]:
    """Return the part of a fingerprint that changes with the files."""
    return {
        "paths": [mark.path for mark in marks],
        "sizes": [mark.size for mark in marks],
        "mtime_ns": [mark.mtime_ns for mark in marks],
    }
