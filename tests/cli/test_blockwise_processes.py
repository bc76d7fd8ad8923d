"""Large tables in processes of their own: ended, gone on with, and measured."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytestmark = pytest.mark.skipif(
    os.name == "nt", reason="Windows has other signals and no measure of memory"
)

CORRAL = [sys.executable, "-c", "from corral.cli import main; main()"]


def make_table(n_rows, n_columns):
    rng = np.random.default_rng(0)
    centers = rng.normal(0, 6, (4, n_columns))
    X = centers[rng.integers(0, 4, n_rows)] + rng.normal(size=(n_rows, n_columns))
    X[:20] = rng.uniform(-50, 50, (20, n_columns))
    columns = {f"x{j}": X[:, j] for j in range(n_columns)}
    return pa.table(columns | {"name": [f"row {i}" for i in range(n_rows)]})


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """Return the path of a table of several blocks, the smallest that there are."""
    path = tmp_path_factory.mktemp("table") / "data.parquet"
    pq.write_table(make_table(110_000, 4), path, row_group_size=50_000)
    return path


def words(table, folder, name):
    options = ("--n-clusters", 4, "--n-outliers", 20, "--id-column", "name")
    outputs = ("--checkpoint-dir", folder / "notes", "--labels", folder / name)
    limit = ("--memory-limit", "400MB", "--n-partitions", 20)
    return [*CORRAL, *map(str, ("fit", table, *options, *limit, *outputs))]


def run(command):
    return subprocess.run(command, capture_output=True, text=True)


def list_blocks(folder):
    return sorted((folder / "notes").glob("block-*"))


@pytest.fixture(scope="module")
def killed(table, tmp_path_factory):
    """Return a folder with the checkpoint of a fit that was killed among its blocks."""
    folder = tmp_path_factory.mktemp("killed")
    process = subprocess.Popen(
        words(table, folder, "labels.csv"),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    end = time.monotonic() + 120
    while len(list_blocks(folder)) < 2 and time.monotonic() < end:
        assert process.poll() is None
        time.sleep(0.002)
    process.send_signal(signal.SIGKILL)
    process.wait()
    return folder


def test_a_fit_that_was_killed_goes_on(table, killed, tmp_path):
    assert not (killed / "labels.csv").exists()
    before = {path: path.stat().st_mtime_ns for path in list_blocks(killed)}
    assert 2 <= len(before) < 4
    done = run(words(table, killed, "labels.csv"))
    assert done.returncode == 0, done.stderr
    # What was noted is not done again.
    assert all(path.stat().st_mtime_ns == then for path, then in before.items())
    assert len(list_blocks(killed)) == 4
    plain = run([*words(table, tmp_path, "labels.csv")])
    assert plain.returncode == 0, plain.stderr
    labels = (killed / "labels.csv").read_bytes()
    assert labels == (tmp_path / "labels.csv").read_bytes()
    assert labels.count(b"\n") == 110_001


def test_a_fit_that_is_asked_to_end_leaves_nothing_behind(table, tmp_path):
    room = tmp_path / "room"
    room.mkdir()
    limit = ("--memory-limit", "381MB", "--n-clusters", "4", "--n-partitions", "100")
    process = subprocess.Popen(
        [*CORRAL, "fit", str(table), *limit, "--labels", str(tmp_path / "labels.csv")],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"TMPDIR": str(room)},
    )
    end = time.monotonic() + 120
    while not [*room.glob("corral-*/*")] and time.monotonic() < end:
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.002)
    process.terminate()
    _, message = process.communicate()
    assert process.returncode == 143, message
    assert "Traceback" not in message
    assert [*tmp_path.iterdir()] == [room]
    assert not [*room.iterdir()]


def test_another_fit_cannot_go_on(table, killed):
    done = run([*words(table, killed, "other.csv"), "--seed", "1"])
    assert done.returncode == 2
    assert "is of another fit" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_damaged_checkpoint_is_named(table, killed):
    # Last of all, for it cannot be mended.
    path = list_blocks(killed)[0]
    path.write_bytes(path.read_bytes()[:-100])
    done = run(words(table, killed, "more.csv"))
    assert done.returncode == 2
    assert f"The checkpoint '{path}' is damaged" in done.stderr
    assert "start again" in done.stderr


# Tells the most memory it had; that of getrusage may be inherited.
MEASURED = """
import atexit, sys
from pathlib import Path

def tell(path=sys.argv.pop(1)):
    lines = Path("/proc/self/status").read_text().splitlines()
    peak = next(line.split()[1] for line in lines if line.startswith("VmHWM"))
    Path(path).write_text(peak)

atexit.register(tell)
from corral.cli import main
main()
"""


def measure(words, path):
    """Run a command; return the most memory it had, in bytes."""
    command = [sys.executable, "-c", MEASURED, str(path), *words]
    done = run(command)
    assert done.returncode == 0, done.stderr
    return int(path.read_text()) * 1024


@pytest.mark.skipif(sys.platform != "linux", reason="needs Linux, which tells memory")
def test_memory_stays_far_below_that_of_a_fit_in_memory(tmp_path):
    path = tmp_path / "data.parquet"
    table = make_table(250_000, 7)
    kinds = pa.array(np.resize(["one", "two", "three"], table.num_rows))
    pq.write_table(table.append_column("kind", kinds), path, row_group_size=50_000)
    assert path.stat().st_size > 13e6
    options = ("--n-clusters", 4, "--n-outliers", 20, "--n-resamples", 0)
    options = (*options, "--n-partitions", 20, "--id-column", "name")
    fit = [*map(str, ("fit", path, *options))]
    whole = measure([*fit, "--labels", str(tmp_path / "whole.csv")], tmp_path / "peak")
    limit = ("--memory-limit", "450MB", "--labels", str(tmp_path / "blocks.csv"))
    blocks = measure([*fit, *limit], tmp_path / "peak")
    assert blocks < whole - 200 * table.num_rows
    assert (tmp_path / "whole.csv").read_bytes() == (
        tmp_path / "blocks.csv"
    ).read_bytes()
