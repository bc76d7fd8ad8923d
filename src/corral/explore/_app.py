"""What the page may ask for."""

import json
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from corral.cli._errors import sentence
from corral.explore._pages import Pages
from corral.explore._save import FilesExistError, Writer
from corral.explore._schema import Opening
from corral.explore._session import Session
from corral.explore._worker import OutdatedError, Worker

# Larger numbers are refused before they are looked at.
_MAX_NUMBER = 10**9

# Each file of the page is one text, made of parts; the report lends some.
_FILES = {
    "/": ("text/html", [("corral.explore", "page.html")]),
    "/style.css": (
        "text/css",
        [("corral.report", "style.css"), ("corral.explore", "explore.css")],
    ),
    "/script.js": (
        "text/javascript",
        [("corral.report", "map.js"), ("corral.explore", "explore.js")],
    ),
}

Handler = Callable[[Request], Awaitable[Response]]


def make_app(
    session: Session,
    writer: Writer,
    opening: Opening,
    worker: Worker,
    pages: Pages,
    *,
    on_fault: Callable[[Exception], None],
) -> Starlette:
    """Return the application, without its guard.

    Parameters
    ----------
    session : Session
    writer : Writer
    opening : Opening
    worker : Worker
    pages : Pages
    on_fault : callable
        Gets errors that are corral's own fault.

    Returns
    -------
    app : Starlette
    """
    answers = _Answers(session, writer, opening, worker)
    routes = [Route(path, _serve(*content)) for path, content in _FILES.items()]
    routes += [
        Route("/opening", answers.open),
        Route("/view", _careful(answers.view, on_fault), methods=["POST"]),
        Route("/save", _careful(answers.save, on_fault), methods=["POST"]),
        Route("/pages", pages, methods=["GET"]),
    ]
    app = Starlette(routes=routes, exception_handlers={HTTPException: _say_status})
    app.router.redirect_slashes = False
    return app


class _Answers:
    """Answers with the content of the session."""

    def __init__(
        self, session: Session, writer: Writer, opening: Opening, worker: Worker
    ) -> None:
        self._session = session
        self._writer = writer
        self._opening = opening
        self._worker = worker

    async def open(self, request: Request) -> Response:
        """Answer with what the page needs once."""
        return JSONResponse(self._opening)

    async def view(self, request: Request) -> Response:
        """Answer with what was found for some numbers."""
        asked = _read(await request.body(), "n_clusters", "n_outliers")
        numbers = _read_numbers(asked)

        def work() -> Response:
            return JSONResponse(self._session.view(*numbers, self._writer.command))

        return await self._worker.run_newest(work)

    async def save(self, request: Request) -> Response:
        """Write the files."""
        names = ("n_clusters", "n_outliers", "name", "replace")
        asked = _read(await request.body(), *names)
        numbers = _read_numbers(asked)
        if not isinstance(asked["name"], str) or not isinstance(asked["replace"], bool):
            raise ValueError("name should be a text, and replace true or false.")

        def work() -> Response:
            return JSONResponse(
                self._writer.save(*numbers, asked["name"], replace=asked["replace"])
            )

        return await self._worker.run(work)


def _serve(kind: str, parts: list[tuple[str, str]]) -> Handler:
    """Return what answers with a file of the page."""
    texts = [
        files(home).joinpath("static", name).read_text("utf-8") for home, name in parts
    ]
    text = "\n".join(texts)
    if kind == "text/javascript":
        # Leaves no name behind.
        text = f'(() => {{\n"use strict";\n{text}}})();'

    async def serve(request: Request) -> Response:
        return Response(text, media_type=kind)

    return serve


def _careful(answer: Handler, on_fault: Callable[[Exception], None]) -> Handler:
    """Return a handler whose errors are sentences for the page."""

    async def respond(request: Request) -> Response:
        try:
            return await answer(request)
        except OutdatedError:
            return JSONResponse({"outdated": True}, 409)
        except FilesExistError as error:
            return JSONResponse({"exist": error.names}, 409)
        except (OSError, ValueError, MemoryError) as error:
            return JSONResponse({"error": sentence(error)}, 422)
        except Exception as error:
            on_fault(error)
            return JSONResponse({"error": sentence(error)}, 500)

    return respond


async def _say_status(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return JSONResponse({"error": error.detail}, error.status_code, error.headers)


def _read(body: bytes, *names: str) -> dict[str, Any]:
    """Return what a request holds, which is these names and no others."""
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ValueError("The request is not JSON.") from error
    if not isinstance(asked, dict) or set(asked) != set(names):
        raise ValueError(f"The request should have {', '.join(names)}, and no more.")
    return asked


def _read_numbers(asked: dict[str, Any]) -> tuple[int, int]:
    """Return the numbers of clusters and outliers."""
    found = []
    for name, least in (("n_clusters", 1), ("n_outliers", 0)):
        value = asked[name]
        if type(value) is not int or not least <= value <= _MAX_NUMBER:
            shown = str(value)[:30]
            raise ValueError(
                f"{name}={shown} should be a whole number from {least} on."
            )
        found.append(value)
    return found[0], found[1]
