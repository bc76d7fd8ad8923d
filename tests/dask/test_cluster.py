"""A cluster on this machine is seen by nobody else, and leaves nothing behind."""

import urllib.error
import urllib.request

import dask
import dask.array as da
import psutil
import pytest

from corral.dask import COR, start_cluster
from tests.dask.conftest import SETTINGS


def list_family():
    """Return the processes that this one has started."""
    return set(psutil.Process().children(recursive=True))


def list_addresses(processes):
    """Return where processes listen."""
    return {
        connection.laddr.ip
        for process in processes
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }


def get_status(address):
    with urllib.request.urlopen(f"http://{address}/status", timeout=5) as answer:
        return answer.status


def test_only_this_machine_sees_it_and_nothing_is_left(X, tmp_path):
    before = list_family()
    report = tmp_path / "report.html"
    with (
        # As users have it.
        dask.config.set({"distributed.worker.multiprocessing-method": "spawn"}),
        start_cluster(1, dashboard_address=":0", report=report) as client,
    ):
        family = list_family()
        assert family > before
        assert list_addresses({psutil.Process(), *family}) == {"127.0.0.1"}
        address = client.dashboard_link.split("/")[2]
        assert address.startswith("127.0.0.1:")
        assert get_status(address) == 200
        COR(3, n_outliers=12, **SETTINGS).fit(da.from_array(X, chunks=(300, -1)))
    page = report.read_text()
    assert page.lstrip().startswith("<!DOCTYPE html>")
    assert "corral-label-block" in page
    assert not [each for each in list_family() - before if each.is_running()]


def test_there_is_no_dashboard_unless_it_is_asked_for(client):
    address = client.dashboard_link.split("/")[2]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get_status(address)


@pytest.mark.parametrize("address", ["0.0.0.0:8787", "example.org:80", "127.0.0.1"])
def test_dashboards_that_others_would_see_are_refused(address):
    with (
        pytest.raises(ValueError, match="dashboard_address='.*Use '127.0.0.1:8787'"),
        start_cluster(1, dashboard_address=address),
    ):
        pass
