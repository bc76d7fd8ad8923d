"""Writing results, so that a file is either complete or not there."""

import os
from pathlib import Path


def make_folder(folder: Path) -> None:
    """Make a folder for results, unless it is there.

    Parameters
    ----------
    folder : Path
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise NotADirectoryError(
            f"'{folder}' cannot be a folder, because a file is in its place. "
            "Name another folder."
        ) from error


def write_text(path: Path, text: str) -> None:
    """Write a file under a temporary name in its folder, then rename it.

    Parameters
    ----------
    path : Path
    text : str
        Written as UTF-8, with its line ends as they are.
    """
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8", newline="")
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)
