"""The server: bound to this machine, ended by Ctrl-C or with the last page."""

import asyncio
import signal
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from corral.explore._app import make_app
from corral.explore._guard import MAX_HEAD, Guard, list_hosts, make_token
from corral.explore._pages import Pages
from corral.explore._save import Writer
from corral.explore._schema import Opening
from corral.explore._session import Session
from corral.explore._worker import Worker

_HOST = "127.0.0.1"

# Far more than a few pages need.
MAX_CONNECTIONS = 100

# Seconds within which a request has to be there as a whole.
PATIENCE = 10.0

# What comes after the last step of a preparation.
_END = object()

# Seconds that an answer which is under way may take at the end.
_FAREWELL = 2


def open_socket(port: int) -> socket.socket:
    """Take a port of this machine.

    Parameters
    ----------
    port : int
        0 is a free one.

    Returns
    -------
    taken : socket
        Bound and listening.
    """
    taken = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    if hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
        # On Windows another program could take the port, too.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_EXCLUSIVEADDRUSE, 1)
    else:
        # A port that was in use a moment ago is free.
        taken.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        taken.bind((_HOST, port))
        # Only a port that listens is ours alone.
        taken.listen()
    except OSError as error:
        taken.close()
        raise ValueError(
            f"--port {port} cannot be used: {error.strerror}. Choose another, or leave "
            "it out for a free one."
        ) from error
    return taken


def serve(
    session: Session,
    writer: Writer,
    opening: Opening,
    taken: socket.socket,
    *,
    on_ready: Callable[[str], None],
    on_fault: Callable[[Exception], None],
) -> str:
    """Serve the page until it is closed or Ctrl-C is pressed.

    Parameters
    ----------
    session : Session
    writer : Writer
    opening : Opening
    taken : socket
        From :func:`open_socket`; closed at the end.
    on_ready : callable
        Gets the address, once it can be opened.
    on_fault : callable
        Gets errors that are corral's own fault.

    Returns
    -------
    cause : str
        Why it ended: "closed" or "interrupted".
    """
    return asyncio.run(_serve(session, writer, opening, taken, on_ready, on_fault))


async def _serve(
    session: Session,
    writer: Writer,
    opening: Opening,
    taken: socket.socket,
    on_ready: Callable[[str], None],
    on_fault: Callable[[Exception], None],
) -> str:
    loop = asyncio.get_running_loop()
    token, port = make_token(), taken.getsockname()[1]
    cause = []

    def end(why: str) -> None:
        cause.append(why)
        pages.end()
        server.should_exit = True

    pages = Pages(lambda: end("closed"))
    worker = Worker()
    app = make_app(session, writer, opening, worker, pages, on_fault=on_fault)
    server = _Server(Guard(app, token=token, hosts=list_hosts(port)))
    preparing = None
    with _catch(lambda: loop.call_soon_threadsafe(end, "interrupted")):
        try:
            running = asyncio.create_task(server.serve([taken]))
            while not server.started and not running.done():
                await asyncio.sleep(0.01)
            if not running.done():
                on_ready(f"http://{_HOST}:{port}/{token}/")
                preparing = asyncio.create_task(_prepare(session, worker))
            # Says why, if it could not start.
            await running
        finally:
            if preparing is not None:
                preparing.cancel()
            worker.end()
            taken.close()
    return cause[0]


async def _prepare(session: Session, worker: Worker) -> None:
    """Prepare the session, step by step; whatever is asked meanwhile comes between."""
    steps = session.prepare()
    while await worker.run(lambda: next(steps, _END)) is not _END:
        pass


class _Connection(H11Protocol):
    """A connection that ends if the other side is too slow, or if there are many.

    Otherwise, whoever sends a letter now and then, or does not read the answers, would
    hold it for ever.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._timers: dict[str, asyncio.TimerHandle] = {}

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for a request."""
        super().connection_made(transport)
        self._start("request", transport.close)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.close()

    def data_received(self, data: bytes) -> None:
        """Take a part of a request, and wait for the rest."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Go on with what came behind the request, which may be a part of another."""
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        """Begin to wait until the answer is read."""
        super().pause_writing()
        self._start("answer", self.transport.abort)

    def resume_writing(self) -> None:
        """Write on."""
        super().resume_writing()
        self._stop("answer")

    def connection_lost(self, exc: Exception | None) -> None:
        """End with the connection."""
        for each in list(self._timers):
            self._stop(each)
        super().connection_lost(exc)

    def _watch(self) -> None:
        # A request that has just begun, or whose body is under way; further letters do
        # not buy it further time.
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._stop("request")
        elif "request" not in self._timers:
            self._start("request", self.transport.close)

    def _start(self, awaited: str, end: Callable[[], None]) -> None:
        self._timers[awaited] = self.loop.call_later(PATIENCE, end)

    def _stop(self, awaited: str) -> None:
        if awaited in self._timers:
            self._timers.pop(awaited).cancel()


class _Server(uvicorn.Server):
    """A server that leaves signals to others and writes no log."""

    def __init__(self, app: ASGIApp) -> None:
        super().__init__(
            uvicorn.Config(
                app,
                http=_Connection,
                # Of a head that does not end; the guard counts those that do.
                h11_max_incomplete_event_size=MAX_HEAD,
                ws="none",
                lifespan="off",
                log_config=None,
                log_level="critical",
                access_log=False,
                proxy_headers=False,
                server_header=False,
                date_header=False,
                limit_concurrency=MAX_CONNECTIONS,
                timeout_graceful_shutdown=_FAREWELL,
            )
        )

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Capture none."""
        yield


@contextmanager
def _catch(end: Callable[[], object]) -> Iterator[None]:
    """Let the first Ctrl-C or wish to end call something; a second one interrupts."""
    if threading.current_thread() is not threading.main_thread():
        # Signals go to the main thread alone.
        yield
        return
    before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
    caught = []

    def handle(number: int, frame: object) -> None:
        # The handlers stay: another signal may have come at the same time.
        caught.append(number)
        if len(caught) > 1:
            raise KeyboardInterrupt
        end()

    for each in before:
        signal.signal(each, handle)
    try:
        yield
        if len(caught) > 1:
            # The server drops what is raised while it answers.
            raise KeyboardInterrupt
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
