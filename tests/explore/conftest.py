"""A session of a small table, with and without a server around it."""

import pytest
from starlette.testclient import TestClient

from corral import COR
from corral.explore._app import make_app
from corral.explore._guard import Guard, list_hosts
from corral.explore._pages import Pages
from corral.explore._save import Writer
from corral.explore._session import Session
from corral.explore._worker import Worker
from corral.tables import TableModel, read_table
from tests.cli.example import make_rows, write_table
from tests.report.conftest import chromium

__all__ = ["chromium"]

PORT = 8123
HOST = f"127.0.0.1:{PORT}"
TOKEN = "a-token-for-tests"


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    return write_table(tmp_path_factory.mktemp("table") / "data.csv", make_rows())


@pytest.fixture(scope="session")
def session(data):
    estimator = COR("auto", n_outliers="auto", n_partitions=30, random_state=0)
    return Session(read_table(data), TableModel(estimator, id_column="name"))


@pytest.fixture
def writer(session, data, tmp_path):
    words = [str(data), "--n-partitions", "30", "--seed", "0", "--id-column", "name"]
    return Writer(session, str(data), words, tmp_path)


@pytest.fixture
def faults():
    """Return the list of errors that are corral's own."""
    return []


@pytest.fixture
def client(session, writer, faults, tmp_path):
    """Return a client that asks as the page does, below the token."""
    opening = session.open(source="data.csv", name="data", folder=str(tmp_path))
    worker = Worker()
    pages = Pages(lambda: None)
    app = make_app(session, writer, opening, worker, pages, on_fault=faults.append)
    guard = Guard(app, token=TOKEN, hosts=list_hosts(PORT))
    headers = {"Origin": f"http://{HOST}", "Sec-Fetch-Site": "same-origin"}
    yield TestClient(guard, f"http://{HOST}", headers=headers)
    worker.end()
