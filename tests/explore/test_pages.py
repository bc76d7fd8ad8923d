"""The server ends with the last page, and not when a page is loaded again."""

import asyncio

import pytest

from corral.explore._pages import Pages


class Page:
    """A page that holds its line open until it is closed."""

    def __init__(self, pages):
        self.closed = asyncio.Event()
        self.sent = []
        self.task = asyncio.create_task(pages({}, self._receive, self._send))

    async def _receive(self):
        await self.closed.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message):
        self.sent.append(message)

    async def close(self):
        self.closed.set()
        await self.task


@pytest.fixture
def run(monkeypatch):
    """Return a function that plays a scene, and returns who was told of the end."""

    def run(scene, patience):
        monkeypatch.setattr("corral.explore._pages.PATIENCE", patience)
        calls = []

        async def main():
            await scene(Pages(lambda: calls.append("last")), calls)

        asyncio.run(main())
        return calls

    return run


def test_the_last_page_ends_the_server_after_a_while(run):
    async def scene(pages, calls):
        first, second = Page(pages), Page(pages)
        await asyncio.sleep(0)
        await first.close()
        await asyncio.sleep(0.05)
        assert calls == []
        await second.close()
        assert calls == []
        await asyncio.sleep(0.05)

    assert run(scene, patience=0.02) == ["last"]


def test_a_page_that_is_loaded_again_keeps_the_server(run):
    async def scene(pages, calls):
        for _ in range(3):
            page = Page(pages)
            await asyncio.sleep(0.01)
            await page.close()
            await asyncio.sleep(0.01)
        page = Page(pages)
        await asyncio.sleep(0.2)
        pages.end()
        await page.task

    assert run(scene, patience=0.1) == []


def test_pages_are_told_of_the_end(run):
    async def scene(pages, calls):
        page = Page(pages)
        await asyncio.sleep(0.01)
        assert page.sent[0]["headers"] == [(b"content-type", b"text/event-stream")]
        pages.end()
        await asyncio.wait_for(page.task, 1)
        assert page.sent[-1]["body"].startswith(b"event: end\n")

    # The end is known, so that nobody needs to be told that the last page has gone.
    assert run(scene, patience=0.0) == []
