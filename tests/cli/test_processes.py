"""What only a real process shows: signals, pipes and terminals."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest

from tests.cli.example import FIT

pytestmark = pytest.mark.skipif(
    os.name == "nt", reason="Windows has other signals and terminals"
)

CORRAL = [sys.executable, "-c", "from corral.cli import main; main()"]

# A shell that runs the tests in the background has them ignore it.
INTERRUPTIBLE = (
    "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
)


def test_ctrl_c_ends_with_130_one_line_and_no_file(tmp_path):
    # Noise has as many codes as rows, so that the fit would go on for long.
    rng = np.random.default_rng(0)
    np.save(tmp_path / "data.npy", rng.normal(size=(20000, 16)))
    names = {"labels": "labels.csv", "model": "model.skops", "report": "report.html"}
    outputs = [w for key, name in names.items() for w in (f"--{key}", tmp_path / name)]
    words = ["fit", tmp_path / "data.npy", *outputs, "--progress"]
    program, option, code = CORRAL
    process = subprocess.Popen(
        [program, option, f"{INTERRUPTIBLE}; {code}", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    guard = threading.Timer(60, process.kill)
    guard.start()
    seen = b""
    while not re.search(rb"fitting|learning|labelling|fusing", seen):
        chunk = os.read(process.stderr.fileno(), 4096)
        assert chunk, seen
        seen += chunk
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate()
    guard.cancel()
    assert process.returncode == 130
    assert stdout == b""
    assert stderr.endswith(b"Stopped. No file is half-written.\n")
    assert b"Traceback" not in stderr
    assert [path.name for path in tmp_path.iterdir()] == ["data.npy"]


def test_a_pipe_feeds_and_a_pipe_takes(data):
    with data.open("rb") as file:
        done = subprocess.run(
            [*CORRAL, "fit", "-", *map(str, FIT), "--json"],
            stdin=file,
            capture_output=True,
        )
    assert done.returncode == 0
    assert done.stderr == b""
    assert done.stdout.startswith(b"{")


def test_a_reader_that_leaves_is_no_error(data):
    process = subprocess.Popen(
        [*CORRAL, "fit", str(data), *map(str, FIT)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    process.stdout.close()
    stderr = process.stderr.read().decode()
    process.wait()
    assert "Traceback" not in stderr
    assert "Error" not in stderr
    assert "BrokenPipe" not in stderr
    assert "set aside 3 rows" in stderr


@pytest.mark.parametrize(
    ("close", "code", "message"),
    [(1, 2, "Error: Standard output is closed"), (2, 0, "")],
)
def test_closed_streams_are_no_fault_of_corral(data, close, code, message):
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {close}>&-', "sh"]
        + [*CORRAL, "fit", str(data), *map(str, FIT)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == code
    assert message in done.stderr
    assert ("id,label" in done.stdout) == (close == 2)


def test_a_terminal_gets_a_bar_that_vanishes():
    # Nobody asked for it; standard error is a terminal, and work takes over a second.
    code = """
import time
from corral.cli._bar import progress
with progress(None) as bar:
    bar.stage("reading data.csv")
    for done in range(30):
        bar.tick("learning partitions", done, 40)
        time.sleep(0.06)
    bar.stage("writing")
    time.sleep(0.3)
"""
    import pty

    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", code], stderr=theirs)
    os.close(theirs)
    seen = b""
    # The end of the process ends the terminal, which Linux reports as an error.
    with contextlib.suppress(OSError):
        while chunk := os.read(ours, 4096):
            seen += chunk
    os.close(ours)
    assert process.wait() == 0
    text = re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", seen.decode())
    assert re.search(r"learning partitions .* of 40, \d+/s, \d+ s left", text)
    # What has no length has no count; and the last line is wiped.
    assert re.search(r"writing [^\d]* 0:00:00", text)
    assert seen.endswith(b"\x1b[1A\x1b[2K")


def test_without_rich_a_terminal_shows_no_bar(monkeypatch):
    # Nobody has asked for it.
    from corral.cli._bar import progress

    monkeypatch.setitem(sys.modules, "corral.cli._rich_bar", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    with progress(None) as bar:
        bar.stage("reading")
        bar.tick("fusing", 1, 10)
    with (
        pytest.raises(ImportError, match="The progress bar needs rich"),
        progress(True),
    ):
        pass


def test_a_bar_that_has_just_begun_tells_no_speed():
    from corral.cli._rich_bar import RichBar

    with RichBar() as bar:
        bar.tick("fusing", 0, 10)
        shown = bar._progress
        with shown.console.capture() as seen:
            shown.console.print(shown)
    assert "0 of 10" in seen.get()
    assert "/s" not in seen.get()
    assert "left" not in seen.get()


def test_what_is_quick_shows_no_bar():
    # Over before the second is.
    from corral.cli._bar import progress
    from corral.cli._rich_bar import RichBar

    with progress(True) as bar:
        assert isinstance(bar, RichBar)
        bar.stage("reading")
        bar.tick("fusing", 1, 10)
        assert not bar._progress.live.is_started


def test_an_output_may_be_a_pipe_that_has_no_name(data, tmp_path):
    # As shells give it for >(gzip > page.gz).
    if not os.path.exists("/dev/fd"):
        pytest.skip("pipes have no places here")
    end, other = os.pipe()
    words = ["fit", data, *FIT, "--report", f"/dev/fd/{other}"]
    process = subprocess.Popen(
        [*CORRAL, *map(str, words), "--labels", tmp_path / "labels.csv"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        pass_fds=[other],
    )
    os.close(other)
    with open(end, "rb") as file:
        got = file.read()
    _, stderr = process.communicate()
    assert process.returncode == 0, stderr
    assert got.startswith(b"<!DOCTYPE html>")
    assert b"</html>" in got
    assert os.listdir(tmp_path) == ["labels.csv"]
