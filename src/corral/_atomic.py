"""Files that are either complete or not there."""

import os
import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def write_atomically(path: str | Path) -> Iterator[Path]:
    """Give a temporary name to write to, which takes the place of the file at the end.

    Whatever ends the block early, an interrupt too, removes what was written and leaves
    the file as it was.

    Parameters
    ----------
    path : str or Path
        What is to be written. A link is followed. Devices and pipes, which cannot be
        replaced, get their content in one go at the end.

    Yields
    ------
    part : Path
        In the same folder, with the same suffix.

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
    target = Path(os.path.realpath(path))
    if target.is_dir():
        raise ValueError(f"'{path}' is a folder. Name a file in it.")
    # A root user's /dev/null must not become a file.
    is_special = target.exists() and not target.is_file()
    folder = Path(tempfile.gettempdir()) if is_special else target.parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"'{path}' cannot be written, because the folder '{folder}' is not there. "
            "Make it first."
        )
    # Another name for each, because machines that share a folder know no common one.
    part = folder / f".{target.stem}.{uuid.uuid4().hex}.part{target.suffix}"
    try:
        yield part
        if is_special:
            with part.open("rb") as source, target.open("wb") as sink:
                shutil.copyfileobj(source, sink)
        else:
            part.replace(target)
    finally:
        part.unlink(missing_ok=True)
