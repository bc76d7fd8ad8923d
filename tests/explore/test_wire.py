"""What arrives at the socket is answered, refused or dropped, byte by byte."""

import http.client
import json
import socket
import threading
import time
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from itertools import repeat
from urllib.parse import urlsplit

import pytest

import corral.explore._pages
import corral.explore._server
from corral.explore._guard import MAX_BODY, MAX_HEAD

PATIENCE = 0.5


@pytest.fixture(scope="module")
def served(session, data, tmp_path_factory):
    """Return port and path of a server that has little patience."""
    from corral.explore._save import Writer

    folder = tmp_path_factory.mktemp("saved")
    words = [str(data), "--n-partitions", "30", "--seed", "0", "--id-column", "name"]
    writer = Writer(session, str(data), words, folder)
    opening = session.open(source="data.csv", name="data", folder=str(folder))
    ready, faults, addresses = threading.Event(), [], []

    def tell(address):
        addresses.append(address)
        ready.set()

    def run():
        taken = corral.explore._server.open_socket(0)
        corral.explore._server.serve(
            session, writer, opening, taken, on_ready=tell, on_fault=faults.append
        )

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(corral.explore._server, "PATIENCE", PATIENCE)
        patch.setattr(corral.explore._pages, "PATIENCE", 0.0)
        thread = threading.Thread(target=run)
        thread.start()
        assert ready.wait(20)
        address = urlsplit(addresses[0])
        line = http.client.HTTPConnection("127.0.0.1", address.port, timeout=20)
        line.request("GET", f"{address.path}pages")
        line.getresponse()
        yield address.port, address.path
        # The last page is closed.
        line.sock.shutdown(socket.SHUT_RDWR)
        line.close()
        thread.join(20)
    assert not thread.is_alive()
    assert faults == []


def send(port, *parts, pause=0.0):
    """Send bytes; return all that comes until the server closes, or falls silent."""
    with closing(socket.create_connection(("127.0.0.1", port), timeout=3)) as client:
        got = b""
        try:
            for part in parts:
                client.sendall(part)
                time.sleep(pause)
            client.settimeout(3)
            while more := client.recv(65536):
                got += more
        except (TimeoutError, ConnectionError):
            pass
        return got


def head(port, method, target, *headers):
    lines = [f"{method} {target} HTTP/1.1", f"Host: 127.0.0.1:{port}", *headers]
    return "\r\n".join([*lines, "Connection: close", "", ""]).encode()


def status(answer):
    return int(answer.split()[1]) if answer else None


@pytest.mark.parametrize(
    "target",
    [
        "/{token}%2fopening",
        "/{token}/%6fpening",
        "/{token}/./opening",
        "/{token}/../{token}/opening",
        "/{token}/%2e%2e/opening",
        "/{token}/..%2fopening",
        "/{token}/..%5copening",
        "/{token}\\opening",
        "/{token}/\\opening",
        "/{token}//opening",
        "//{token}/opening",
        "/./{token}/opening",
        "/{token};/opening",
        "/{token}/opening;x",
        "/{token}/opening/",
        "/{token}/opening%00",
        "/{token}/opening%00.css",
        "/{token}/opening%20",
        "/{token}//etc/passwd",
        "/{token}/%2fetc%2fpasswd",
        "/{token}/..%c0%af..%c0%afetc/passwd",
        "/{token}/%252e%252e/opening",
        "/{token}/C:/windows",
        "/{token}/file:///etc/passwd",
        "http://127.0.0.1/{token}/opening",
        "http://evil.example/{token}/opening",
        "{token}/opening",
        "x/{token}/opening",
        "*",
    ],
)
def test_only_the_plain_path_is_served(served, target):
    port, path = served
    target = target.format(token=path.strip("/"))
    assert status(send(port, head(port, "GET", target))) in (400, 403, 404)
    assert status(send(port, head(port, "GET", f"{path}opening"))) == 200


@pytest.mark.parametrize(
    "method",
    [
        "HEAD",
        "OPTIONS",
        "TRACE",
        "PUT",
        "DELETE",
        "PATCH",
        "PROPFIND",
        "get",
        "CONNECT",
    ],
)
@pytest.mark.parametrize("name", ["", "opening", "pages", "save"])
def test_no_other_method_is_answered(served, method, name):
    port, path = served
    own = f"Origin: http://127.0.0.1:{port}"
    kind = "Content-Type: application/json"
    answer = send(port, head(port, method, path + name, own, kind))
    assert status(answer) == 405
    # TRACE would send back what it got.
    assert path.strip("/").encode() not in answer


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        (("Content-Length: 5", "Content-Length: 6"), 400),
        (("Content-Length: 5, 6",), 400),
        (("Content-Length: -5",), 400),
        (("Content-Length: +5",), 400),
        (("Content-Length: 0x5",), 400),
        (("Content-Length: " + "9" * 19,), 413),
        (("Content-Length: " + "9" * 400,), 400),
        ((f"Content-Length: {MAX_BODY + 1}",), 413),
        (("Transfer-Encoding: gzip",), 501),
        (("Transfer-Encoding: chunked, chunked",), 501),
    ],
    ids=str,
)
def test_lengths_that_make_no_sense_are_refused_at_once(served, headers, code):
    # Without a wait for the body, which never comes.
    port, path = served
    own = (f"Origin: http://127.0.0.1:{port}", "Content-Type: application/json")
    answer = send(port, head(port, "POST", f"{path}view", *own, *headers))
    assert status(answer) in (code, 400)


def test_chunks_without_end_are_cut_off(served):
    port, path = served
    own = (f"Origin: http://127.0.0.1:{port}", "Content-Type: application/json")
    chunked = head(port, "POST", f"{path}view", *own, "Transfer-Encoding: chunked")
    chunk = b"400\r\n" + b" " * 1024 + b"\r\n"
    assert status(send(port, chunked, chunk * 5)) == 413
    body = json.dumps({"n_clusters": 3, "n_outliers": 3}).encode()
    whole = b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
    assert status(send(port, chunked, whole)) == 200
    assert status(send(port, chunked, b"nonsense\r\n")) in (None, 400)


def test_hosts_are_checked_as_they_arrive(served):
    # One host, this one: a name that somebody else made lead here is refused.
    port, path = served
    get = f"GET {path}opening HTTP/1."
    for lines in (
        f"{get}1\r\n",
        f"{get}0\r\n",
        f"{get}1\r\nHost: evil.example:{port}\r\n",
        f"{get}1\r\nHost: 127.0.0.1:{port}\r\nHost: evil.example\r\n",
        f"{get}1\r\nHost: 127.0.0.1:{port}.evil.example\r\n",
        f"{get}1\r\nHost: 127.0.0.1:{port}@evil.example\r\n",
        f"{get}1\r\nHost: [::1]:{port}\r\n",
        f"{get}1\r\nHost: 0.0.0.0:{port}\r\n",
        f"{get}1\r\nX-Forwarded-Host: 127.0.0.1:{port}\r\nHost: evil.example\r\n",
    ):
        answer = send(port, f"{lines}Connection: close\r\n\r\n".encode())
        assert status(answer) in (400, 403), lines


def test_a_websocket_is_not_opened(served):
    port, path = served
    upgrade = (
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    )
    for name in ("", "pages", "socket"):
        lines = head(port, "GET", path + name, *upgrade)
        lines = lines.replace(b"Connection: ", b"Connection: Upgrade, ")
        evil = lines.replace(b"\r\n\r\n", b"\r\nOrigin: http://evil.example\r\n\r\n")
        assert status(send(port, evil)) == 403
    assert status(send(port, lines)) == 404


def test_who_is_slow_is_dropped(served):
    # Letter by letter, each well before the patience ends; all at the same time.
    port, path = served
    own = (f"Origin: http://127.0.0.1:{port}", "Content-Type: application/json")
    body = head(port, "POST", f"{path}view", *own, "Content-Length: 100")
    every = {
        "silence": [b""],
        "first line": [b"G", b"E", b"T", b" ", b"/", b"x", b" ", b"H"],
        "headers": [b"GET /x HTTP/1.1\r\n", *[b"X-Letter: a\r\n"] * 7],
        "body": [body, *[b" "] * 7],
    }

    def try_slowly(parts):
        begin = time.perf_counter()
        answer = send(port, *parts, pause=PATIENCE / 5)
        return status(answer), time.perf_counter() - begin

    with ThreadPoolExecutor(len(every)) as pool:
        results = dict(zip(every, pool.map(try_slowly, every.values()), strict=True))
    for name, (code, seconds) in results.items():
        assert code is None, name
        assert PATIENCE * 0.9 < seconds < 3, name


def test_a_second_request_has_no_more_time_than_the_first(served):
    port, path = served
    with closing(socket.create_connection(("127.0.0.1", port), timeout=3)) as client:
        client.sendall(head(port, "GET", f"{path}x").replace(b"close", b"keep-alive"))
        assert status(client.recv(65536)) == 404
        with pytest.raises(ConnectionError):
            trickle(client)


def test_a_request_behind_another_has_no_more_time(served):
    port, path = served
    first = head(port, "GET", f"{path}x").replace(b"close", b"keep-alive")
    lines = [f"Origin: http://127.0.0.1:{port}", "Content-Type: application/json"]
    second = head(port, "POST", f"{path}view", *lines, "Content-Length: 10")
    with closing(socket.create_connection(("127.0.0.1", port), timeout=3)) as client:
        # Nothing of the body comes, so that only the first is answered.
        client.sendall(first + second)
        answer = client.makefile("rb").read()
    assert status(answer) == 404
    assert answer.count(b"HTTP/1.1") == 1


def test_who_does_not_read_is_dropped(served):
    port, _ = served
    requests = head(port, "GET", "/").replace(b"close", b"keep-alive") * 100
    with closing(socket.socket()) as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
        client.connect(("127.0.0.1", port))
        client.settimeout(PATIENCE * 4)
        with pytest.raises(ConnectionError):
            deque(map(client.sendall, repeat(requests, 5000)), maxlen=0)


def trickle(client):
    """Send a letter now and then, up to much longer than the patience."""
    for _ in range(30):
        client.sendall(b"G")
        time.sleep(PATIENCE / 5)


def test_heads_have_an_end(served):
    # A head that goes on and on is not waited for.
    port, path = served
    for lines in (["X: " + "a" * 20_000], ["X: a"] * 3000):
        endless = head(port, "GET", f"{path}opening", *lines).rstrip()
        assert status(send(port, endless)) == 400
    assert status(send(port, f"GET {path}{'a' * 20_000}".encode())) == 400


@pytest.mark.parametrize("n_bytes", [17_000, 20_000, 60_000])
@pytest.mark.parametrize("sort", ["one header", "many headers", "path", "query"])
def test_long_heads_are_refused_also_if_they_come_at_once(served, n_bytes, sort):
    port, path = served
    target, headers = f"{path}opening", []
    if sort == "one header":
        headers = ["X: " + "a" * n_bytes]
    elif sort == "many headers":
        headers = ["X: " + "a" * 95] * (n_bytes // 100)
    else:
        target += ("?" if sort == "query" else "") + "a" * n_bytes
    # What arrives in two parts is refused for its first one.
    assert status(send(port, head(port, "GET", target, *headers))) in (400, 431)


def test_heads_may_be_as_long_as_is_promised(served):
    port, path = served
    cookies = "Cookie: " + "a" * (MAX_HEAD - 500)
    assert status(send(port, head(port, "GET", f"{path}opening", cookies))) == 200


def test_many_that_are_silent_do_not_keep_the_page_out(served):
    port, path = served
    most = corral.explore._server.MAX_CONNECTIONS
    with ExitStack() as stack:
        for _ in range(most + 20):
            client = socket.create_connection(("127.0.0.1", port), timeout=3)
            stack.enter_context(closing(client))
        # Those beyond the most are closed at once, the others after their time.
        client.settimeout(PATIENCE / 2)
        assert client.recv(1) == b""
        time.sleep(PATIENCE * 1.5)
        assert status(send(port, head(port, "GET", f"{path}opening"))) == 200
