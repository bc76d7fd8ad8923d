"""A small data set, and a server for its files."""

import dataclasses
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from corral.datasets import DatasetInfo, RemoteFile, _registry
from corral.datasets._info import Table
from tests.datasets.originals import table_bytes, zip_bytes


class Server(ThreadingHTTPServer):
    """Serves ``files``, and can be told to misbehave."""

    daemon_threads = True

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files: dict[str, bytes] = {}
        self.ranges = True
        self.wrong_range = False
        self.cut_after: int | None = None
        self.asked: list[str | None] = []  # the Range of each request

    def url(self, name):
        return f"http://127.0.0.1:{self.server_port}/{name}"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        asked = self.headers["Range"]
        self.server.asked.append(asked)
        data = self.server.files.get(self.path[1:])
        if data is None:
            self.send_error(404)
            return
        start = 0
        if asked and self.server.ranges:
            start = int(asked.removeprefix("bytes=").removesuffix("-"))
            if start >= len(data):
                self.send_error(416)
                return
            if self.server.wrong_range:
                start = 0
        self.send_response(206 if asked and self.server.ranges else 200)
        if asked and self.server.ranges:
            self.send_header("Content-Range", f"bytes {start}-{len(data) - 1}/*")
        self.send_header("Content-Length", str(len(data) - start))
        self.end_headers()
        self.wfile.write(data[start:][: self.server.cut_after])

    def log_message(self, *arguments):
        pass


@pytest.fixture
def server():
    server = Server()
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    yield server
    server.shutdown()
    server.server_close()
    thread.join()


@dataclasses.dataclass
class Toy:
    """A data set of nine rows, in the registry as ``toy``."""

    info: DatasetInfo
    rows: np.ndarray
    classes: np.ndarray

    @property
    def table(self):
        return table_bytes(self.info.table, self.rows, self.classes)

    @property
    def archive(self):
        return zip_bytes({"toy.data": self.table, "toy.names": b"words"})


@pytest.fixture
def toy(monkeypatch, server):
    rows = np.random.default_rng(0).normal(size=(9, 2))
    classes = np.array(["a", "b", "b", "b", "c", "a", "b", "d", "a"])
    info = DatasetInfo(
        name="toy",
        title="Toy",
        kind="dense",
        n_samples=9,
        n_features=2,
        n_clusters=2,
        n_outliers=2,
        cluster_classes=("b", "a"),
        page="https://example.org/toy",
        licence="CC0",
        layout="table",
        originals=("toy.data",),
        downloads=(RemoteFile("toy.zip", server.url("toy.zip")),),
        table=Table((1, 2), 3, ","),
    )
    monkeypatch.setitem(_registry._BY_NAME, "toy", info)
    toy = Toy(info, rows, classes)
    server.files["toy.zip"] = toy.archive
    return toy


@pytest.fixture
def register(monkeypatch, toy):
    """Return a function that changes what the registry says of ``toy``."""

    def register(**changes):
        toy.info = dataclasses.replace(toy.info, **changes)
        monkeypatch.setitem(_registry._BY_NAME, "toy", toy.info)
        return toy.info

    return register
