"""Downloads, against a server on this machine."""

import hashlib
import logging
import re
import socket
import sys
import types
from pathlib import Path

import numpy as np
import pytest

from corral.datasets import RemoteFile
from corral.datasets._download import download_file

# Longer than what is read at once.
DATA = np.random.default_rng(0).bytes(700_000)
SUM = hashlib.sha256(DATA).hexdigest()


@pytest.fixture
def remote(server):
    server.files["data.bin"] = DATA
    return RemoteFile("data.bin", server.url("data.bin"), SUM)


@pytest.fixture
def part(tmp_path):
    return tmp_path / "data.bin.part"


def get(remote, folder, **options):
    return download_file(remote, folder, **{"progress": False} | options)


def test_whole_file(remote, tmp_path, server):
    path = get(remote, tmp_path / "new" / "folder")
    assert path.read_bytes() == DATA
    assert [each.name for each in path.parent.iterdir()] == ["data.bin"]
    assert server.asked == [None]


def test_file_link(remote, tmp_path):
    (tmp_path / "here.bin").write_bytes(DATA)
    url = (tmp_path / "here.bin").as_uri()
    path = get(RemoteFile("data.bin", url, SUM), tmp_path)
    assert path.read_bytes() == DATA


def test_interrupted_then_taken_up_again(remote, tmp_path, server, part):
    server.cut_after = 300_000
    words = "was lost after 300,000 of 700,000 bytes. Call again to go on from there."
    with pytest.raises(ConnectionError, match=re.escape(words)):
        get(remote, tmp_path)
    assert part.read_bytes() == DATA[:300_000]
    # Cut again: the second call adds its bytes to those of the first.
    with pytest.raises(ConnectionError, match="lost after 600,000 of 700,000 bytes"):
        get(remote, tmp_path)
    server.cut_after = None
    assert get(remote, tmp_path).read_bytes() == DATA
    assert server.asked == [None, "bytes=300000-", "bytes=600000-"]
    assert not part.exists()


def test_server_without_ranges_starts_anew(remote, tmp_path, server, part):
    server.ranges = False
    part.write_bytes(DATA[:1000])
    assert get(remote, tmp_path).read_bytes() == DATA
    assert server.asked == ["bytes=1000-"]


def test_answer_from_another_byte_starts_anew(remote, tmp_path, server, part):
    server.wrong_range = True
    part.write_bytes(DATA[:1000])
    assert get(remote, tmp_path).read_bytes() == DATA


@pytest.mark.parametrize("extra", [0, 5], ids=["as long", "longer"])
def test_part_no_shorter_than_the_file_starts_anew(
    remote, tmp_path, server, part, extra
):
    part.write_bytes(b"?" * (len(DATA) + extra))
    assert get(remote, tmp_path).read_bytes() == DATA
    assert server.asked == [f"bytes={len(DATA) + extra}-", None]


def test_wrong_checksum_removes_the_part(remote, tmp_path, server):
    server.files["data.bin"] = DATA[:-1] + b"?"
    found = hashlib.sha256(server.files["data.bin"]).hexdigest()
    words = f"has the sha256 {found} and should have {SUM}. What was downloaded has"
    with pytest.raises(ValueError, match=re.escape(words)):
        get(remote, tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_wrong_part_is_noticed(remote, tmp_path, part):
    part.write_bytes(b"not the beginning")
    with pytest.raises(ValueError, match=f"should have {SUM}"):
        get(remote, tmp_path)
    assert get(remote, tmp_path).read_bytes() == DATA


def test_missing_file_keeps_the_part(tmp_path, server, part):
    part.write_bytes(DATA[:1000])
    remote = RemoteFile("data.bin", server.url("gone.bin"), SUM)
    words = "gone.bin answered 404 Not Found. If the file has moved, get it by hand"
    with pytest.raises(ConnectionError, match=words):
        get(remote, tmp_path)
    assert part.read_bytes() == DATA[:1000]
    assert not (tmp_path / "data.bin").exists()


def test_no_network(remote, tmp_path, server):
    server.shutdown()
    server.server_close()
    with pytest.raises(
        ConnectionError, match="cannot be reached: .* Check the network"
    ):
        get(remote, tmp_path)


def test_silent_server(tmp_path):
    # It accepts the connection and never answers.
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/data.bin"
        with pytest.raises(ConnectionError, match="cannot be reached: timed out"):
            get(RemoteFile("data.bin", url), tmp_path, timeout=0.1)


@pytest.mark.parametrize("scheme", ["ftp", "data", "gopher"])
def test_other_schemes_are_refused(scheme, tmp_path):
    words = f"has the scheme '{scheme}'. It should be one of http, https, file."
    with pytest.raises(ValueError, match=re.escape(words)):
        get(RemoteFile("data.bin", f"{scheme}://example.org/data.bin"), tmp_path)


def test_folder_that_is_a_file(remote, tmp_path):
    (tmp_path / "taken").write_text("")
    with pytest.raises(
        OSError, match="cannot be written: .* another folder with data_"
    ):
        get(remote, tmp_path / "taken")


def test_full_disk(remote, tmp_path, part):
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    part.symlink_to("/dev/full")
    with pytest.raises(OSError, match="No space left on device. Make room, or name"):
        get(remote, tmp_path)


def test_progress_is_logged_without_tqdm(remote, tmp_path, monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with caplog.at_level(logging.INFO, "corral.datasets"):
        get(remote, tmp_path, progress=True)
    assert caplog.messages == [
        "Downloading data.bin, 700,000 bytes",
        "Received 700,000 bytes of data.bin",
    ]


def test_no_progress_is_not_logged(remote, tmp_path, caplog):
    with caplog.at_level(logging.INFO, "corral.datasets"):
        get(remote, tmp_path, progress=False)
    assert caplog.messages == []


def test_progress_bar_starts_where_the_part_ends(remote, tmp_path, monkeypatch, part):
    # A stand-in, so that the test runs without tqdm too.
    bars = []

    class Bar:
        def __init__(self, **options):
            self.options, self.done = options, options["initial"]
            bars.append(self)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.closed = True

        def update(self, n):
            self.done += n

    module = types.ModuleType("tqdm.auto")
    module.tqdm = Bar
    monkeypatch.setitem(sys.modules, "tqdm", types.ModuleType("tqdm"))
    monkeypatch.setitem(sys.modules, "tqdm.auto", module)
    part.write_bytes(DATA[:1000])
    get(remote, tmp_path, progress=True)
    (bar,) = bars
    assert (bar.options["initial"], bar.options["total"]) == (1000, len(DATA))
    assert bar.done == len(DATA)
    assert bar.closed
