"""How many pages are open, so that the server ends with the last one."""

import asyncio
from collections.abc import Callable

from starlette.types import Receive, Scope, Send

# A page that is loaded again is back within so many seconds.
PATIENCE = 3.0

_HEAD = [(b"content-type", b"text/event-stream")]


class Pages:
    """Holds a line open to each page, on which the end of the server is told.

    Parameters
    ----------
    on_last : callable
        Called when the last page was closed and none came back.
    """

    def __init__(self, on_last: Callable[[], None]) -> None:
        self._on_last = on_last
        self._n_open = 0
        self._timer: asyncio.TimerHandle | None = None
        self._ended = asyncio.Event()

    def end(self) -> None:
        """Tell all pages that the server ends."""
        self._ended.set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._enter()
        try:
            await send({"type": "http.response.start", "status": 200, "headers": _HEAD})
            await send(
                {"type": "http.response.body", "body": b":\n\n", "more_body": True}
            )
            await self._wait(receive)
            if self._ended.is_set():
                farewell = b"event: end\ndata: end\n\n"
                await send({"type": "http.response.body", "body": farewell})
        finally:
            self._leave()

    async def _wait(self, receive: Receive) -> None:
        """Wait until the page is closed or the server ends."""
        waits = [
            asyncio.create_task(_until_closed(receive)),
            asyncio.create_task(self._ended.wait()),
        ]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    def _enter(self) -> None:
        self._n_open += 1
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _leave(self) -> None:
        self._n_open -= 1
        if self._n_open == 0 and not self._ended.is_set():
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(PATIENCE, self._on_last)


async def _until_closed(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
