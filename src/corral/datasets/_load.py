"""Data sets by their names, from a folder or from where they are published."""

import gzip
import os
import struct
import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from corral.datasets._content import Content, verify_content
from corral.datasets._download import download_file, file_sha256
from corral.datasets._folder import (
    Original,
    choose_folder,
    find_npz,
    find_originals,
)
from corral.datasets._formats import read_npz, read_originals
from corral.datasets._info import DatasetInfo, RemoteFile
from corral.datasets._registry import describe_dataset
from corral.tables._broken import Broken, first_line

# What readers raise when a file is not what its name says.
UNREADABLE = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    NotImplementedError,
    TypeError,
    ValueError,
    gzip.BadGzipFile,
    struct.error,
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
)


def load_dataset(
    name: str,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    download: bool = False,
    return_X_y: bool = False,
) -> Any:
    """Load a data set of the paper, with its clusters and outliers.

    The folder may have the data set as ``<name>.npz`` or as the files that its source
    publishes, packed or not. What is read is verified: counts, and checksums of the
    values and labels where they are known.

    Parameters
    ----------
    name : str
        One of those of ``list_datasets``.
    data_dir : path-like, default=None
        The folder. None is that of the environment variable ``CORRAL_DATA`` or else
        ``~/corral_data``.
    download : bool, default=False
        Whether to download what is not in the folder.
    return_X_y : bool, default=False
        Whether to return ``(data, target)`` alone.

    Returns
    -------
    dataset : Bunch
        data : ndarray or csr_array of shape (n_samples, n_features)
            float64, in the order of the source: some are sorted by their labels.
        target : ndarray of shape (n_samples,)
            0 to n_clusters - 1; -1 for outliers.
        target_original : ndarray of shape (n_samples,)
            The source's classes, as text.
        info : DatasetInfo

    See Also
    --------
    describe_dataset : What is known about a data set before it is loaded.
    fetch_dataset : Download the files alone.
    """
    info = describe_dataset(name)
    folder = choose_folder(data_dir)
    if download and not _is_there(info, folder):
        _fetch(info, folder, progress=True)
    content, target = _read(info, folder)
    if return_X_y:
        return content.rows, target
    return Bunch(
        data=content.rows,
        target=target,
        target_original=content.classes,
        info=info,
    )


def fetch_dataset(
    name: str,
    *,
    data_dir: str | os.PathLike[str] | None = None,
    progress: bool = True,
) -> list[Path]:
    """Download the files of a data set where its source publishes them.

    Files that are there already stay. A download that was cut short goes on where it
    ended. New files are read once to verify what is in them.

    Parameters
    ----------
    name : str
        One of those of ``list_datasets``.
    data_dir : path-like, default=None
        The folder, made if it is not there. None is that of the environment variable
        ``CORRAL_DATA`` or else ``~/corral_data``.
    progress : bool, default=True
        Whether to show a progress bar, if tqdm is installed.

    Returns
    -------
    paths : list of Path
    """
    info = describe_dataset(name)
    folder = choose_folder(data_dir)
    paths, any_new = _fetch(info, folder, progress)
    if any_new:
        _read_originals(info, find_originals(info, folder) or [])
    return paths


def _fetch(info: DatasetInfo, folder: Path, progress: bool) -> tuple[list[Path], bool]:
    """Return the paths of the downloads, and whether any is new."""
    if not info.downloads:
        raise ValueError(
            f"{info.name!r} cannot be downloaded by a program. Get "
            f"{', '.join(info.originals)} from {info.page} and put it into '{folder}'."
        )
    is_new = [not _has(folder, remote) for remote in info.downloads]
    paths = [
        download_file(remote, folder, progress=progress)
        if new
        else folder / remote.name
        for remote, new in zip(info.downloads, is_new, strict=True)
    ]
    return paths, any(is_new)


def _has(folder: Path, remote: RemoteFile) -> bool:
    path = folder / remote.name
    if not path.exists():
        return False
    if remote.sha256 and (found := file_sha256(path)) != remote.sha256:
        raise ValueError(
            f"'{path}' has the sha256 {found} and should have {remote.sha256}. Remove "
            "it and call again."
        )
    return True


def _is_there(info: DatasetInfo, folder: Path) -> bool:
    return (
        find_npz(info, folder) is not None or find_originals(info, folder) is not None
    )


def _read(info: DatasetInfo, folder: Path) -> tuple[Content, np.ndarray]:
    npz = find_npz(info, folder)
    if npz is not None:
        return _read_npz(info, npz)
    originals = find_originals(info, folder)
    if originals is None:
        raise FileNotFoundError(_not_found(info, folder))
    return _read_originals(info, originals)


def _read_npz(info: DatasetInfo, path: Path) -> tuple[Content, np.ndarray]:
    try:
        content, grouping = read_npz(path)
    except Broken as error:
        raise ValueError(f"'{path}' cannot be read: it {error}") from error
    except UNREADABLE as error:
        raise ValueError(f"'{path}' cannot be read: {error}.") from error
    target = verify_content(info, content, f"'{path}'")
    if grouping is not None and not np.array_equal(grouping, target):
        raise ValueError(
            f"'{path}' groups the classes in y otherwise than the paper does. Leave y "
            "out, or get the original file."
        )
    return content, target


def _read_originals(
    info: DatasetInfo, originals: list[Original]
) -> tuple[Content, np.ndarray]:
    place = " and ".join(dict.fromkeys(f"'{each.path}'" for each in originals))
    try:
        content = read_originals(info, [each.read() for each in originals])
    except UNREADABLE as error:
        is_told = isinstance(error, Broken)
        reason = f"it {error}" if is_told else f"{first_line(error)}."
        raise ValueError(
            f"{place} cannot be read as {info.name!r}: {reason} Get the original from "
            f"{info.page}."
        ) from error
    return content, verify_content(info, content, place)


def _not_found(info: DatasetInfo, folder: Path) -> str:
    last = (
        f"call with download=True to have it from {info.page}"
        if info.downloads
        else f"get the original from {info.page}, for a program cannot download it"
    )
    return (
        f"The data set {info.name!r} is not in '{folder}', neither as {info.name}.npz "
        f"nor as {' and '.join(info.originals)}. Name its folder with data_dir, or "
        f"with the environment variable CORRAL_DATA, or {last}."
    )
