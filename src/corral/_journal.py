"""What a run has done, noted in a folder: arrays by name, which outlive the run."""

import hashlib
import json
import logging
import zipfile
from pathlib import Path
from typing import IO, Any

import numpy as np
import scipy
import sklearn

import corral
from corral._atomic import write_atomically, write_part
from corral._leftovers import TemporaryFolder, take_lock
from corral._zips import write_zip

logger = logging.getLogger(__name__)

# The page that tells whose folder it is.
_PAGE = "checkpoint.json"

# What the last part of an entry is called.
_LAST = "end"

# What files are called until they are complete.
_PARTS = ".*.part.*"

# Raised when what entries hold changes.
_FORMAT = 1


class Journal:
    """Arrays by name, each entry in a file that is complete or not there.

    Parameters
    ----------
    folder : Path
        Made if it is not there.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        # Held by a fit, so that no other one writes here.
        self._lock: IO[bytes] | None = None
        # Removes the folder with this object.
        self._home: TemporaryFolder | None = None

    @classmethod
    def open(cls, folder: str | Path, identity: dict[str, Any]) -> "Journal":
        """Open the checkpoint of a fit, or begin one.

        Parameters
        ----------
        folder : str or Path
        identity : dict
            What tells this fit from others, JSON-ready: parameters and rows.

        Returns
        -------
        journal : Journal
        """
        folder = Path(folder)
        check_folder(folder, f"checkpoint_dir='{folder}'")
        journal = cls(folder)
        page = folder / _PAGE
        if page.exists():
            _check_identity(folder, _read_page(page), _complete(identity))
        else:
            with write_atomically(page) as part:
                part.write_text(_seal(_complete(identity)), encoding="utf-8")
        journal._lock = _take_lock(page)
        # What was being written when a run was ended.
        for part in folder.glob(_PARTS):
            part.unlink(missing_ok=True)
        return journal

    @classmethod
    def temporary(cls) -> "Journal":
        """Begin a journal that is removed with the object."""
        home = TemporaryFolder()
        journal = cls(home.path)
        journal._home = home
        return journal

    def close(self) -> None:
        """Let others write here."""
        if self._lock is not None:
            self._lock.close()
        self._lock = None

    def __getstate__(self) -> dict[str, Any]:
        # Workers write for the fit that holds the lock.
        return {"folder": self.folder, "_lock": None, "_home": None}

    def has(self, name: str) -> bool:
        """Return whether there is such an entry."""
        return self._path(name).exists()

    def write(self, name: str, arrays: dict[str, np.ndarray]) -> None:
        """Write an entry, in the place of an older one."""
        lasts = self._home is None
        with (
            write_part(self._path(name), lasts=lasts) as part,
            open(part, "wb") as file,
            # Not savez, which leaves it open with NumPy 2.0 when it is interrupted.
            write_zip(file) as archive,
        ):
            # The last part, without which others may be missing as well.
            for key, array in (*arrays.items(), (_LAST, np.array(0))):
                _write_array(archive, f"{key}.npy", array)

    def read(self, name: str) -> dict[str, np.ndarray]:
        """Return the arrays of an entry, after a check of their sums."""
        path = self._path(name)
        try:
            with zipfile.ZipFile(path) as archive:
                arrays = {
                    part.removesuffix(".npy"): _read_array(archive, part)
                    for part in archive.namelist()
                }
            if arrays.pop(_LAST, None) is None:
                raise ValueError("its last part is missing")
            return arrays
        except MemoryError:
            raise
        except Exception as error:
            # Of any kind: a wrong byte may ask for a password or an unknown version.
            reason = str(error).strip().splitlines() or [type(error).__name__]
            raise ValueError(
                f"The checkpoint '{path}' is damaged: {reason[0].rstrip('.')}. Remove "
                f"the folder '{self.folder}' and start again."
            ) from error

    def _path(self, name: str) -> Path:
        return self.folder / f"{name}.npz"


def check_folder(folder: Path, title: str) -> None:
    """Refuse a folder that cannot hold a checkpoint; nothing is made or removed.

    Parameters
    ----------
    folder : Path
        It need not be there.
    title : str
        What the folder is called in an error.
    """
    if not folder.exists():
        return
    if not folder.is_dir():
        raise ValueError(f"{title} is a file. Name a folder, which may be new.")
    # A run that was killed may have left parts of files, also of its page.
    is_used = any(not each.match(_PARTS) for each in folder.iterdir())
    if is_used and not (folder / _PAGE).exists():
        raise ValueError(
            f"{title} holds files but no checkpoint. Name an empty or a new folder."
        )


def _take_lock(page: Path) -> IO[bytes]:
    """Hold a file until it is closed or the process ends, however that comes about."""
    file = page.open("rb")
    is_held = take_lock(file.fileno())
    if is_held is False:
        file.close()
        raise ValueError(
            f"checkpoint_dir='{page.parent}' is in use by another fit. Wait for its "
            "end, or name another folder."
        )
    if is_held is None:
        logger.info("'%s' cannot be locked", page)
    return file


def _write_array(archive: zipfile.ZipFile, part: str, array: np.ndarray) -> None:
    # Its size is not known before; files of more than 4 GB are marked as such.
    with archive.open(part, "w", force_zip64=True) as file:
        np.lib.format.write_array(file, array, allow_pickle=False)


def _read_array(archive: zipfile.ZipFile, part: str) -> np.ndarray:
    with archive.open(part) as file:
        array = np.lib.format.read_array(file, allow_pickle=False)
        # The sum is compared at the end only, which a wrong shape may not reach.
        if file.read(1):
            raise ValueError(f"'{part}' goes on after its array")
    return array


def _complete(identity: dict[str, Any]) -> dict[str, Any]:
    """Return the identity with the versions on which results may depend."""
    versions = {
        "format": _FORMAT,
        "corral": corral.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
    }
    # As it comes back from a file.
    return json.loads(json.dumps(versions | identity))


def _seal(identity: dict[str, Any]) -> str:
    """Return the page: the identity, and a sum that tells whether it is whole."""
    text = json.dumps(identity, sort_keys=True)
    digest = hashlib.sha256(text.encode()).hexdigest()
    return json.dumps({"sha256": digest, "identity": identity}, indent=2)


def _read_page(page: Path) -> dict[str, Any]:
    try:
        text = page.read_text(encoding="utf-8")
        identity = json.loads(text)["identity"]
        is_whole = _seal(identity) == text
    except (ValueError, KeyError, TypeError):
        is_whole = False
    if not is_whole:
        raise ValueError(
            f"The checkpoint '{page}' is damaged. Remove the folder '{page.parent}' "
            "and start again."
        )
    return identity


def _check_identity(
    folder: Path, found: dict[str, Any], wanted: dict[str, Any]
) -> None:
    differences = [
        f"{name} was {found.get(name)!r} and is {wanted.get(name)!r}"
        for name in sorted({*found, *wanted})
        if found.get(name) != wanted.get(name)
    ]
    if differences:
        raise ValueError(
            f"checkpoint_dir='{folder}' is of another fit: {'; '.join(differences)}. "
            "Go on with the same rows and parameters, or name a new folder."
        )
