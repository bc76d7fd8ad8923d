"""Who may ask: whoever has the token, from this machine, and from no other page."""

import secrets
from collections.abc import Collection
from typing import Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The page sends a few numbers and a name.
MAX_BODY = 4096

# A browser sends the cookies of all servers of this machine.
MAX_HEAD = 2**14

# What the page asks with.
_METHODS = ("GET", "POST")

# The page loads its own files and nothing else, and stands in no frame.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)

_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Refusal(Exception):
    """A request that gets no answer.

    Parameters
    ----------
    status : int
    message : str
        One sentence.
    """

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


def make_token() -> str:
    """Return a word that nobody can guess.

    Returns
    -------
    token : str
    """
    return secrets.token_urlsafe(32)


def list_hosts(port: int) -> set[str]:
    """Return the names by which a browser may ask for this server.

    Parameters
    ----------
    port : int

    Returns
    -------
    hosts : set of str
    """
    hosts = {f"{name}:{port}" for name in ("127.0.0.1", "localhost")}
    # Browsers leave out the port that is usual.
    return hosts | ({"127.0.0.1", "localhost"} if port == 80 else set())


class Guard:
    """Lets only those requests through that the page itself makes.

    Every path begins with the token. The names of hosts are checked, because a foreign
    name may lead to this machine; origins, because other pages can send requests, too.

    Parameters
    ----------
    app : ASGI application
        Gets paths without the token.
    token : str
    hosts : collection of str
        Allowed values of the header Host.
    """

    def __init__(self, app: ASGIApp, *, token: str, hosts: Collection[str]) -> None:
        self._app = app
        self._token = token.encode()
        self._hosts = set(hosts)
        self._origins = {f"http://{host}" for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise ValueError(f"A request of the type {scope['type']!r} is not known.")
        send = _add_headers(send)
        try:
            inner = self._check(scope)
            body = await _read_body(scope, receive)
        except Refusal as refusal:
            response = PlainTextResponse(f"{refusal}\n", refusal.status)
            await response(scope, receive, send)
            return
        await self._app(inner, _replay(body, receive), send)

    def _check(self, scope: Scope) -> Scope:
        """Return the scope as the application gets it, or refuse."""
        if _weigh_head(scope) > MAX_HEAD:
            raise Refusal(431, f"The head has more than {MAX_HEAD:,} bytes.")
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0].lower() not in self._hosts:
            raise Refusal(403, "This address is not served here.")
        # As it was sent: the page has no escapes in its paths, and so needs none.
        token, inner = _cut_path(scope["raw_path"].partition(b"?")[0])
        if not secrets.compare_digest(token, self._token) or not inner:
            raise Refusal(403, "The token is missing. Open the address as it was told.")
        self._check_origin(scope, headers)
        if scope["method"] not in _METHODS:
            raise Refusal(405, f"The method should be {' or '.join(_METHODS)}.")
        if not inner.isascii():
            raise Refusal(404, "Nothing is served here.")
        return {**scope, "path": inner.decode(), "raw_path": inner, "root_path": ""}

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        """Refuse what another page sends; to open the page itself is free."""
        origins = headers.getlist("origin")
        is_own = all(each in self._origins for each in origins)
        needs_origin = scope["method"] != "GET"
        if not is_own or (needs_origin and len(origins) != 1):
            raise Refusal(403, "Another page asked. Only this server's own page may.")
        is_visit = (
            headers.get("sec-fetch-mode") == "navigate"
            # And not into a frame.
            and headers.get("sec-fetch-dest", "document") == "document"
            and not needs_origin
        )
        site = headers.get("sec-fetch-site", "same-origin")
        if site not in ("same-origin", "none") and not is_visit:
            raise Refusal(403, "Another page asked. Only this server's own page may.")


def _weigh_head(scope: Scope) -> int:
    """Return the bytes of the first line and the headers, less blanks around them."""
    address = len(scope["raw_path"]) + len(scope.get("query_string", b""))
    # Between and behind name and value stand a colon, a blank and the end of the line.
    fields = sum(len(name) + len(value) + 4 for name, value in scope["headers"])
    return len(scope["method"]) + address + fields


def _cut_path(path: bytes) -> tuple[bytes, bytes]:
    """Return the token and the rest of /token/rest, which begins with a slash."""
    start, _, rest = path.partition(b"/")
    token, slash, inner = rest.partition(b"/")
    return (b"", b"") if start else (token, slash + inner)


async def _read_body(scope: Scope, receive: Receive) -> bytes:
    """Read the body of a request, as long as it is short."""
    if scope["method"] == "GET":
        return b""
    headers = Headers(scope=scope)
    kind = headers.get("content-type", "")
    if kind.partition(";")[0].strip().lower() != "application/json":
        raise Refusal(415, f"The content type is {kind[:50]!r}; it should be JSON.")
    told = headers.get("content-length", "0")
    if not told.isdecimal() or int(told[:20]) > MAX_BODY:
        raise _too_long()
    body = b""
    while True:
        message = await receive()
        if message["type"] != "http.request":
            raise Refusal(400, "The request ended early.")
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            raise _too_long()
        if not message.get("more_body", False):
            return body


def _too_long() -> Refusal:
    return Refusal(413, f"The request has more than {MAX_BODY:,} bytes.")


def _replay(body: bytes, receive: Receive) -> Receive:
    """Return what gives the body that was read, and then what comes."""
    messages: list[Message] = [{"type": "http.request", "body": body}]

    async def replay() -> Message:
        return messages.pop() if messages else await receive()

    return replay


def _add_headers(send: Send) -> Send:
    """Return a sender that adds the headers of every answer."""

    async def send_more(message: Any) -> None:
        if message["type"] == "http.response.start":
            MutableHeaders(scope=message).update(_HEADERS)
        await send(message)

    return send_more
