"""Downloads that can be taken up again, and are complete and right or not there."""

import hashlib
import http.client
import logging
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

from corral.datasets._info import RemoteFile

logger = logging.getLogger("corral.datasets")

_SCHEMES = ("http", "https", "file")
_TIMEOUT = 30.0  # seconds without a byte
_CHUNK = 2**18
_RESUMED, _RANGE_REFUSED = 206, 416

# What urllib opens by default, less ftp and data: links.
_HANDLERS: tuple[type[urllib.request.BaseHandler], ...] = (
    urllib.request.ProxyHandler,
    urllib.request.UnknownHandler,
    urllib.request.HTTPHandler,
    urllib.request.HTTPSHandler,
    urllib.request.HTTPDefaultErrorHandler,
    urllib.request.HTTPRedirectHandler,
    urllib.request.HTTPErrorProcessor,
    urllib.request.FileHandler,
)


def download_file(
    remote: RemoteFile,
    folder: Path,
    *,
    progress: bool = True,
    timeout: float = _TIMEOUT,
) -> Path:
    """Download a file into a folder.

    Bytes go to ``<name>.part`` until all are there and their checksum is right. If the
    connection is lost, the next call goes on from the last byte.

    Parameters
    ----------
    remote : RemoteFile
    folder : Path
        Made if it is not there.
    progress : bool, default=True
        Whether to show a progress bar, if tqdm is installed. Without it, the start and
        the end are logged.
    timeout : float, default=30.0
        Seconds to wait for a byte.

    Returns
    -------
    path : Path
    """
    scheme = urlsplit(remote.url).scheme
    if scheme not in _SCHEMES:
        raise ValueError(
            f"url={remote.url!r} has the scheme {scheme!r}. It should be one of "
            f"{', '.join(_SCHEMES)}."
        )
    path = folder / remote.name
    part = folder / f"{remote.name}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _open(remote.url, _size(part), timeout) as response:
            _save(response, part, remote, progress)
        _check_sum(part, remote)
        part.replace(path)
    except ConnectionError:
        raise
    except OSError as error:
        raise OSError(
            f"'{part}' cannot be written: {error.strerror or error}. Make room, or "
            "name another folder with data_dir."
        ) from error
    return path


def _open(url: str, start: int, timeout: float) -> Any:
    """Return the response, from byte ``start`` on if the server can."""
    headers = {"User-Agent": "corral"} | ({"Range": f"bytes={start}-"} if start else {})
    opener = urllib.request.OpenerDirector()
    for handler in _HANDLERS:
        opener.add_handler(handler())
    try:
        return opener.open(
            urllib.request.Request(url, headers=headers), timeout=timeout
        )
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == _RANGE_REFUSED and start:
            # What is here is as long as the file, or longer.
            return _open(url, 0, timeout)
        raise ConnectionError(
            f"{url} answered {error.code} {error.reason}. If the file has moved, get "
            "it by hand and put it into the folder with the data."
        ) from error
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(
            f"{url} cannot be reached: {getattr(error, 'reason', error)}. Check the "
            "network, or get the file by hand and put it into the folder with the data."
        ) from error


def _save(response: Any, part: Path, remote: RemoteFile, progress: bool) -> None:
    """Write what the server sends behind what is here, or over it."""
    start = _size(part) if _goes_on(response, _size(part)) else 0
    length = response.headers.get("Content-Length")
    total = start + int(length) if length else None
    done = start
    with (
        part.open("ab" if start else "wb") as file,
        _progress_bar(remote.name, start, total, progress) as bar,
    ):
        for chunk in _chunks(response, remote.url):
            file.write(chunk)
            bar.update(len(chunk))
            done += len(chunk)
    if total is not None and done < total:
        raise ConnectionError(
            f"The connection to {remote.url} was lost after {done:,} of {total:,} "
            "bytes. Call again to go on from there."
        )


def _goes_on(response: Any, start: int) -> bool:
    """Return whether the server sends the rest, and from the byte asked for."""
    sent = response.headers.get("Content-Range", "")
    return response.status == _RESUMED and sent.startswith(f"bytes {start}-")


def _chunks(response: Any, url: str) -> Iterator[bytes]:
    try:
        while chunk := response.read(_CHUNK):
            yield chunk
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(
            f"The connection to {url} was lost: {error}. Call again to go on from "
            "there."
        ) from error


def _check_sum(part: Path, remote: RemoteFile) -> None:
    """Remove the file and raise, if its checksum is known and another."""
    found = file_sha256(part) if remote.sha256 else None
    if found != remote.sha256:
        part.unlink()
        raise ValueError(
            f"{remote.url} has the sha256 {found} and should have {remote.sha256}. "
            "What was downloaded has been removed. Call again; if the sum stays, the "
            "file has changed where it is published."
        )


def file_sha256(path: Path) -> str:
    """Return the sha256 of a file.

    Parameters
    ----------
    path : Path

    Returns
    -------
    checksum : str
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


class _Bar(Protocol):
    def update(self, n: int) -> Any:
        """Move on by so many bytes."""


def _progress_bar(
    name: str, start: int, total: int | None, shown: bool
) -> AbstractContextManager[_Bar]:
    if not shown:
        return _NoBar(name, total, logging.DEBUG)
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return _NoBar(name, total, logging.INFO)
    return tqdm(
        desc=name, initial=start, total=total, unit="B", unit_scale=True, leave=False
    )


class _NoBar:
    """Log the start and the end instead."""

    def __init__(self, name: str, total: int | None, level: int):
        self.name, self.total, self.level = name, total, level
        self.done = 0

    def __enter__(self) -> "_NoBar":
        size = "of unknown size" if self.total is None else f"{self.total:,} bytes"
        logger.log(self.level, "Downloading %s, %s", self.name, size)
        return self

    def update(self, n: int) -> None:
        """Move on by so many bytes."""
        self.done += n

    def __exit__(self, *error: object) -> None:
        logger.log(self.level, "Received %s bytes of %s", f"{self.done:,}", self.name)
