"""What happens to processes and files changes no label, or is said at once."""

import os
import signal
import subprocess
import sys
import threading
import time

import dask
import dask.array as da
import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import corral
from corral.dask import COR, ClusterLostError, _cluster, start_cluster
from corral.sources import UnreadableBlockError, open_source
from tests.dask.conftest import SETTINGS, draw_rows
from tests.dask.processes import (
    befall,
    count_calls,
    is_stopped,
    run_cluster,
    wait_until,
)

# What the tasks of each pass call.
PASSES = {
    "scan": "corral.dask._workplace.glance",
    "label": "corral.dask._workplace.encode_block",
    "cut": "corral._cut.cost_rows",
    "tally": "corral._whole._keep",
    "answer": "corral._answers.compare_labels",
    "profile": "corral.dask._workplace.find_members",
}


PAIRS = [("scan", "label"), ("cut", "tally"), ("answer", "profile")]


@pytest.fixture(scope="module")
def rows():
    return draw_rows()


@pytest.fixture(scope="module")
def expected(rows):
    return corral.COR(3, n_outliers=12, **SETTINGS).fit(rows)


@pytest.fixture
def fit(rows, expected):
    """Return what fits the rows on the cluster, and compares labels and scores."""
    chunks = da.from_array(rows, chunks=(100, -1))

    def fit(**params):
        model = COR(3, n_outliers=12, **SETTINGS, **params).fit(chunks)
        assert_as_expected(model, expected)
        return model

    return fit


def assert_as_expected(model, expected):
    for name in ("labels_", "outlier_scores_", "label_confidence_"):
        np.testing.assert_array_equal(getattr(model, name), getattr(expected, name))
    np.testing.assert_allclose(model.cluster_centers_, expected.cluster_centers_)


def test_workers_that_are_killed(fit, tmp_path):
    # One in each of the passes, two in a fit, and one after the last.
    with start_cluster(2) as client:
        for pair in PAIRS:
            client.wait_for_workers(2, timeout=60)
            for name in pair:
                client.run(befall, PASSES[name], tmp_path / name, signal.SIGKILL)
            model = fit()
            dead = [int((tmp_path / name).read_text()) for name in pair]
            assert not any(map(psutil.pid_exists, dead)), pair
            assert len({*dead}) == 2
        labels = model.labels_.compute()
        client.wait_for_workers(2, timeout=60)
        (holder, *_), *_ = client.who_has(model.labels_).values()
        os.kill(client.run(os.getpid)[holder], signal.SIGKILL)
        np.testing.assert_array_equal(model.labels_.compute(), labels)


def test_a_worker_that_hangs_is_given_up(fit, tmp_path, monkeypatch):
    # Looked after each second; Dask gives a worker five seconds at the least.
    monkeypatch.setattr(_cluster, "_WORKER_TTL", "1s")
    with start_cluster(2) as client:
        client.run(befall, PASSES["tally"], tmp_path / "stopped", signal.SIGSTOP)
        fit()
        stopped = int((tmp_path / "stopped").read_text())
        assert stopped not in client.run(os.getpid).values()
    assert not psutil.pid_exists(stopped)


def test_a_worker_that_hangs_and_comes_back(fit, tmp_path):
    with run_cluster(tmp_path / "cluster", worker_ttl="8s") as (client, _):
        marker = tmp_path / "stopped"
        client.run(befall, PASSES["tally"], marker, signal.SIGSTOP)
        # Before it is given up: nobody has noticed.
        waker = threading.Thread(target=wake, args=[marker, 1])
        waker.start()
        fit()
        waker.join()
        assert len(client.scheduler_info()["workers"]) == 2
        # After others did its work: what it says then does not count.
        client.run(befall, PASSES["label"], tmp_path / "again", signal.SIGSTOP)
        fit()
        assert len(client.scheduler_info()["workers"]) == 1
        wake(tmp_path / "again", 0)
        fit()


def wake(marker, seconds):
    """Have a stopped process go on after some seconds."""
    wait_until(lambda: marker.exists() and is_stopped(int(marker.read_text())))
    time.sleep(seconds)
    os.kill(int(marker.read_text()), signal.SIGCONT)


def test_a_task_that_kills_every_worker(fit, tmp_path):
    with (
        # No more than one, to be quick.
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        start_cluster(1) as client,
    ):
        client.run(befall, PASSES["label"], tmp_path / "killed", signal.SIGKILL)
        with pytest.raises(
            ClusterLostError, match=r"^1 workers .* died at the same task, .* chunks"
        ):
            fit()


def test_a_lost_scheduler_is_told_and_another_goes_on(client, fit, tmp_path, rows):
    noted = tmp_path / "noted"
    chunks = da.from_array(rows, chunks=(100, -1))
    model = COR(3, n_outliers=12, checkpoint_dir=noted, **SETTINGS)
    with run_cluster(tmp_path / "cluster") as (doomed, scheduler):
        end = (tmp_path / "ended", signal.SIGKILL, scheduler.pid)
        doomed.run(befall, PASSES["label"], *end)
        started = time.monotonic()
        with pytest.raises(
            ClusterLostError, match="lost: .*another one; with the same checkpoint_dir"
        ):
            model.fit(chunks)
        # At once again, not after the half minute for which a client tries.
        with pytest.raises(ClusterLostError, match="lost: its client is"):
            model.fit(chunks)
        assert time.monotonic() - started < 15
    done = {path: path.stat().st_mtime_ns for path in noted.glob("block-*.npz")}
    (tmp_path / "calls").mkdir()
    client.run(count_calls, PASSES["label"], tmp_path / "calls")
    fit(checkpoint_dir=noted)
    assert len(list((tmp_path / "calls").iterdir())) == 6 - len(done)
    assert {path: path.stat().st_mtime_ns for path in done} == done
    assert len(list(noted.glob("block-*.npz"))) == 6


def test_a_block_that_cannot_be_read(client, rows, expected, cut_into, tmp_path):
    cut_into(100)
    folder = tmp_path / "rows"
    folder.mkdir()
    table = pa.table(dict(zip("abc", rows.T, strict=True)))
    for number in range(3):
        path = folder / f"{number}.parquet"
        part = table.slice(200 * number, 200)
        pq.write_table(part, path, row_group_size=50, write_page_checksum=True)
    content = bytearray((folder / "1.parquet").read_bytes())
    content[len(content) // 2] ^= 255
    (folder / "1.parquet").write_bytes(content)
    started = time.monotonic()
    with pytest.raises(UnreadableBlockError, match=r"Row group \d of .*1\.parquet"):
        COR(3, n_outliers=9, **SETTINGS).fit(folder)
    assert time.monotonic() - started < 10
    source = open_source(folder, on_error="skip")
    model = COR(3, n_outliers=9, **SETTINGS).fit(source)
    (said,) = model.storage_.skipped
    assert "1.parquet" in said
    assert "50 rows are left out" in said
    assert_as_expected(model, corral.COR(3, n_outliers=9, **SETTINGS).fit(source))


def test_rows_that_cannot_be_used_are_named(client, rows, cut_into, tmp_path):
    cut_into(100)
    # More than are looked at to see what the columns are.
    rows = np.tile(rows, (3, 1))
    rows[1420, 1] = np.inf
    np.save(tmp_path / "rows.npy", rows)
    for X in (tmp_path / "rows.npy", da.from_array(rows, chunks=(100, -1))):
        with pytest.raises(ValueError, match=r"(?s)Rows 1400 to 1499 of .* infinity"):
            COR(3, n_outliers=9, **SETTINGS).fit(X)


def test_no_cluster_at_hand():
    # In a process of its own: here may be one.
    code = (
        "import dask.array as da; from corral.dask import COR\n"
        "for rows in (da.ones((9, 2)), 'folder'):\n"
        "    try: COR(2, n_outliers=1).fit(rows)\n"
        "    except ValueError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    said = done.stdout.splitlines()
    assert len(said) == 2, done.stderr
    assert all("No Dask cluster is at hand. Make a client" in each for each in said)
