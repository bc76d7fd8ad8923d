"""The command as a process: it starts, answers and ends."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from contextlib import closing, contextmanager

import pytest

from corral.explore._server import open_socket, serve
from tests.cli.example import run_corral

CODE = "from corral.cli import main; main()"

# Waits less than usual for a page to come back, so that tests wait less.
IMPATIENT = f"import corral.explore._pages as pages; pages.PATIENCE = 1.5; {CODE}"

OPTIONS = ("--id-column", "name", "--n-partitions", "20", "--no-browser")


class Running:
    """A server in a process of its own."""

    def __init__(self, process):
        self.process = process
        self.address = process.stdout.readline().decode().strip()
        found = re.fullmatch(r"http://127\.0\.0\.1:(\d+)(/[\w-]{43}/)", self.address)
        self.port, self.path = int(found[1]), found[2]

    def ask(self, path="", method="GET", **settings):
        """Return the answer, whose connection is open until it is closed."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request(method, self.path + path, **settings)
        return connection, connection.getresponse()

    def wait(self):
        """Return the exit code and what was said."""
        rest, said = self.process.communicate(timeout=20)
        assert rest == b""
        return self.process.returncode, said.decode().splitlines()


@contextmanager
def explore(*words, code=CODE):
    process = subprocess.Popen(
        [sys.executable, "-c", code, "explore", *map(str, words)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    # Longer than all tests that share a server take on a busy machine.
    guard = threading.Timer(240, process.kill)
    guard.start()
    try:
        yield Running(process)
    finally:
        guard.cancel()
        process.kill()
        process.communicate()


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_is_a_clean_end_that_pages_are_told(data, tmp_path, number):
    with explore(data, *OPTIONS, "--output", tmp_path) as server:
        # A page, and a client that does nothing, both hold a connection open.
        line, answer = server.ask("pages")
        idle, page = server.ask()
        with closing(line), closing(idle):
            assert page.status == 200
            assert answer.headers["content-type"] == "text/event-stream"
            assert answer.headers["cache-control"] == "no-store"
            assert answer.headers["content-security-policy"]
            check_strangers(server)
            server.process.send_signal(number)
            assert answer.read().endswith(b"event: end\ndata: end\n\n")
        code, said = server.wait()
    assert code == 0
    assert said == [
        "Close the page or press Ctrl-C to end.",
        "Ended. No file is half-written.",
    ]
    assert list(tmp_path.iterdir()) == []


def check_strangers(server):
    # Only 127.0.0.1 is bound, not even another address of this machine.
    with (
        pytest.raises(ConnectionRefusedError),
        socket.create_connection(("127.0.0.2", server.port), timeout=2),
    ):
        pass
    for origin, code in (
        ("http://evil.example", 403),
        (f"http://127.0.0.1:{server.port}", 413),
    ):
        headers = {"Origin": origin, "Content-Type": "application/json"}
        asked, answer = server.ask("view", "POST", body=b" " * 100_000, headers=headers)
        with closing(asked):
            assert answer.status == code


@pytest.mark.skipif(os.name == "nt", reason="Windows has other signals")
def test_a_second_signal_interrupts_in_one_line(data):
    with explore(data, *OPTIONS) as server:
        line, _ = server.ask("pages")
        with closing(line):
            # Both are there before either is looked at.
            server.process.send_signal(signal.SIGSTOP)
            server.process.send_signal(signal.SIGINT)
            server.process.send_signal(signal.SIGTERM)
            server.process.send_signal(signal.SIGCONT)
            code, said = server.wait()
    assert code == 130
    assert said == [
        "Close the page or press Ctrl-C to end.",
        "Stopped. No file is half-written.",
    ]


def test_the_last_page_is_the_end(data):
    with explore(data, *OPTIONS, code=IMPATIENT) as server:
        first, _ = server.ask("pages")
        first.close()
        # It comes back, and goes again.
        second, _ = server.ask("pages")
        second.close()
        code, said = server.wait()
    assert code == 0
    assert said[-1] == "Ended, because the page was closed."


ADDRESS = "http://127.0.0.1:1/token/"


@pytest.fixture(scope="module", params=[True, False], ids=["asked", "plain"])
def ended(request, data):
    """Return a run whose page failed once and was closed, without a server.

    If asked, all is said that can be said, and there is no browser.
    """
    made, opened = [], []

    def open_page(address):
        opened.append(address)
        return not request.param

    def pretend(session, writer, opening, taken, on_ready, on_fault):
        made.append(writer)
        taken.close()
        # The browser is opened before anything else happens.
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(threading.Thread, "start", threading.Thread.run)
            on_ready(ADDRESS)
        on_fault(RuntimeError("It broke."))
        return "closed"

    asked = ("--debug", "--seed", "0") if request.param else ()
    quick = ("--id-column", "name", "--n-partitions", "8", "--n-clusters", "3")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("webbrowser.open", open_page)
        patch.setattr("corral.explore._server.serve", pretend)
        result = run_corral("explore", data, *quick, *asked)
    assert result.exit_code == 0, result.output
    assert opened == [ADDRESS]
    return result, made[0], request.param


def test_the_address_is_told_and_that_there_is_no_browser(ended):
    result, _, is_asked = ended
    assert result.stdout == f"{ADDRESS}\n"
    told = "No browser was found. Open the address yourself.\n" in result.stderr
    assert told is is_asked
    assert result.stderr.endswith("Ended, because the page was closed.\n")


def test_a_fault_behind_the_page_is_a_line_and_traced_if_asked(ended):
    result, _, is_asked = ended
    before, line, _ = result.stderr.partition("Error: corral met an error it does not")
    assert line
    assert ("RuntimeError: It broke." in before) is is_asked


def test_the_command_that_makes_it_again_has_one_seed(ended):
    _, writer, _ = ended
    assert writer.command(3, 3).split().count("--seed") == 1
    assert "--seed 0 " in f"{writer.command(3, 3)} "


def test_a_port_that_is_taken_is_a_sentence(data):
    with closing(socket.create_server(("127.0.0.1", 0))) as other:
        port = other.getsockname()[1]
        result = run_corral("explore", data, *OPTIONS, "--port", port)
    assert result.exit_code == 2
    assert f"--port {port} cannot be used: Address already in use" in result.stderr


def test_a_port_belongs_to_one_from_the_start():
    # Also while the rows are fitted and nobody answers yet.
    with closing(open_socket(0)) as first:
        port = first.getsockname()[1]
        with pytest.raises(ValueError, match=f"--port {port} cannot be used: Address"):
            open_socket(port)


def test_a_server_that_cannot_start_says_why_and_announces_nothing(
    session, writer, monkeypatch
):
    async def fail(self, sockets=None):
        raise OSError(24, "Too many open files")

    told = []
    monkeypatch.setattr("uvicorn.Server.startup", fail)
    opening = session.open(source="", name="", folder="")
    with pytest.raises(OSError, match="Too many open files"):
        serve(
            session,
            writer,
            opening,
            open_socket(0),
            on_ready=told.append,
            on_fault=told.append,
        )
    assert told == []


def test_a_folder_that_cannot_be_written_to_is_refused_at_once(
    data, tmp_path, monkeypatch
):
    # As root, every folder can be.
    monkeypatch.setattr(
        "corral.cli._explore.os.access", lambda _, mode: mode != os.W_OK
    )
    result = run_corral("explore", data, "--no-browser", "--output", tmp_path)
    assert result.exit_code == 2
    assert f"--output '{tmp_path}' is a folder that cannot be written to" in (
        result.stderr
    )


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--n-clusters", 500), "n_samples=150 should be >= n_clusters=500"),
        (
            ("--n-clusters", 3, "--n-outliers", 147),
            "n_outliers=147 should be smaller than n_samples - n_clusters",
        ),
        (("--n-outliers", 149), "n_outliers=149 should be smaller than"),
    ],
)
def test_numbers_that_the_rows_do_not_take_are_refused_before_the_fit(
    data, monkeypatch, words, message
):
    def fail(*_):
        raise AssertionError("fitted")

    monkeypatch.setattr("corral.explore._session.Refit", fail)
    result = run_corral("explore", data, *OPTIONS, *words)
    assert result.exit_code == 2
    assert message in result.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.csv"], "'none.csv'"),
        (["{data}", "--output", "no/such"], "--output 'no/such' is a folder that is"),
        (["{data}", "--columns", "note"], "columns names what cannot be used"),
        (["{data}", "--port", "70000"], "70000 is not in the range"),
        (["{data}", "--contamination", "0.1"], "No such option '--contamination'"),
    ],
)
def test_what_cannot_be_explored_is_one_sentence(data, words, message):
    words = [word.format(data=data) for word in words]
    result = run_corral("explore", *words, "--no-browser")
    assert result.exit_code == 2
    (line,) = result.stderr.splitlines()
    assert message in line


def test_without_its_packages_the_command_says_what_to_install(data, monkeypatch):
    import corral.cli._explore

    found = corral.cli._explore.find_spec
    monkeypatch.setattr(
        "corral.cli._explore.find_spec",
        lambda name: None if name == "uvicorn" else found(name),
    )
    result = run_corral("explore", data, "--no-browser")
    assert result.exit_code == 2
    assert 'The page needs uvicorn. Install with: pip install "corral[explore]"' in (
        result.stderr
    )


def test_help_imports_no_server():
    code = (
        "import sys\nfrom corral.cli import main\n"
        "try:\n    main()\nfinally:\n    sys.stderr.write(' '.join(sys.modules))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "explore", "--help"],
        capture_output=True,
        text=True,
    )
    loaded = {name.partition(".")[0] for name in done.stderr.split()}
    assert "click" in loaded
    assert not loaded & {"numpy", "sklearn", "starlette", "uvicorn", "asyncio"}
