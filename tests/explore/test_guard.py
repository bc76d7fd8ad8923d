"""Only the page itself is answered."""

import asyncio

import pytest

from corral.explore._guard import MAX_BODY, MAX_HEAD, list_hosts, make_token
from tests.explore.conftest import HOST, PORT, TOKEN

PATHS = ("", "style.css", "script.js", "opening", "view", "save", "pages", "none")

NUMBERS = {"n_clusters": 3, "n_outliers": 3}


def test_the_page_and_its_files_are_served(client):
    page = client.get(f"/{TOKEN}/")
    assert page.status_code == 200
    assert "text/html" in page.headers["content-type"]
    assert "<title>corral explore</title>" in page.text
    assert "class RowMap" in client.get(f"/{TOKEN}/script.js").text
    assert ".corral-explore" in client.get(f"/{TOKEN}/style.css").text


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "before", ["/", "/wrong/", f"/{TOKEN}x/", f"/{TOKEN[:-1]}/", f"//{TOKEN}/", "/%00/"]
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_every_path_needs_the_token(client, before, path, method):
    json = NUMBERS if method == "POST" else None
    answer = client.request(method, f"{before}{path}", json=json)
    assert answer.status_code == 403
    assert TOKEN not in answer.text


def test_the_token_without_its_slash_and_in_the_query_is_not_enough(client):
    for path in (f"/{TOKEN}", f"/?token={TOKEN}", f"/opening?token={TOKEN}"):
        assert client.get(path).status_code == 403


@pytest.mark.parametrize(
    "host",
    ["evil.example", f"evil.example:{PORT}", f"127.0.0.1:{PORT + 1}", "127.0.0.1", ""],
)
def test_foreign_hosts_are_refused(client, host):
    # A foreign name may lead to this machine; the token would not be known, but still.
    answer = client.get(f"/{TOKEN}/opening", headers={"Host": host})
    assert answer.status_code == 403


def test_localhost_is_a_name_of_this_machine(client):
    host = f"localhost:{PORT}"
    headers = {"Host": host, "Origin": f"http://{host}"}
    assert client.get(f"/{TOKEN}/opening", headers=headers).status_code == 200
    assert "127.0.0.1" in list_hosts(80)
    assert "127.0.0.1" not in list_hosts(PORT)


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"https://{HOST}"},
        {"Origin": f"http://{HOST}.evil.example"},
        {"Origin": f"http://127.0.0.1:{PORT + 1}"},
        {"Origin": HOST},
        {"Origin": ""},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
    ],
    ids=str,
)
def test_other_pages_cannot_ask(client, headers):
    answer = client.post(f"/{TOKEN}/view", json=NUMBERS, headers=headers)
    assert answer.status_code == 403
    assert "Another page asked" in answer.text


def test_a_request_that_changes_things_needs_its_origin(client):
    del client.headers["Origin"]
    assert client.post(f"/{TOKEN}/view", json=NUMBERS).status_code == 403
    assert client.get(f"/{TOKEN}/opening").status_code == 200


def test_a_link_on_another_page_opens_this_one_but_loads_no_part_of_it(client):
    del client.headers["Origin"]
    far = {"Sec-Fetch-Site": "cross-site"}
    visit = far | {"Sec-Fetch-Mode": "navigate"}
    assert client.get(f"/{TOKEN}/", headers=visit).status_code == 200
    load = far | {"Sec-Fetch-Mode": "no-cors"}
    assert client.get(f"/{TOKEN}/script.js", headers=load).status_code == 403
    for place in ("iframe", "frame", "embed", "object"):
        frame = visit | {"Sec-Fetch-Dest": place}
        assert client.get(f"/{TOKEN}/", headers=frame).status_code == 403


# The line to the page, which is not answered to the end, is in test_process.py.
@pytest.mark.parametrize("path", sorted({*PATHS} - {"pages"}))
def test_every_answer_has_the_headers(client, path):
    for answer in (client.get(f"/{TOKEN}/{path}"), client.get(f"/{path}")):
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["cache-control"] == "no-store"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in answer.headers
        assert "server" not in answer.headers


def test_another_origin_is_not_allowed_by_a_question_before(client):
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    answer = client.options(f"/{TOKEN}/view", headers=headers)
    assert answer.status_code == 403
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize(
    "path",
    [
        "../../../etc/passwd",
        "..%2f..%2fetc%2fpasswd",
        "static/page.html",
        "/style.css",
        "style.css/",
        "explore.js",
        "style.css%00",
        "%2e%2e/style.css",
        "C:\\windows",
    ],
)
def test_tricks_with_paths_find_nothing(client, path):
    assert client.get(f"/{TOKEN}/{path}").status_code in (403, 404)


def test_bytes_that_are_no_letters_lead_nowhere(client):
    # Clients that follow the standards do not send them.
    answers = []

    async def send(message):
        answers.append(message)

    scope = {
        "type": "http",
        "method": "GET",
        "raw_path": f"/{TOKEN}/".encode() + b"\xff",
        "headers": [(b"host", HOST.encode())],
    }
    asyncio.run(client.app(scope, None, send))
    assert answers[0]["status"] == 404
    assert answers[1]["body"] == b"Nothing is served here.\n"


def test_sockets_of_the_web_are_not_served(client):
    with (
        pytest.raises(ValueError, match="of the type 'websocket' is not known"),
        client.websocket_connect(f"/{TOKEN}/pages"),
    ):
        pass


@pytest.mark.parametrize("chunked", [False, True])
def test_long_bodies_are_refused(client, chunked):
    # Whether or not their length is told before.
    body = b"{" + b" " * MAX_BODY + b"}"
    content = iter([body[:100], body[100:]]) if chunked else body
    answer = client.post(
        f"/{TOKEN}/view", content=content, headers={"Content-Type": "application/json"}
    )
    assert answer.status_code == 413


@pytest.mark.parametrize(("n_bytes", "code"), [(MAX_HEAD - 500, 200), (MAX_HEAD, 431)])
def test_long_heads_are_refused(client, n_bytes, code):
    headers = {"X-Long": "a" * n_bytes}
    assert client.get(f"/{TOKEN}/opening", headers=headers).status_code == code
    # Before anything else is looked at.
    refused = 431 if code == 431 else 403
    assert client.get("/opening", headers=headers).status_code == refused


def test_only_json_is_read(client):
    # What a form of another page could send.
    for kind in (
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data",
    ):
        answer = client.post(
            f"/{TOKEN}/view", content=b"{}", headers={"Content-Type": kind}
        )
        assert answer.status_code == 415


def test_methods_that_are_not_offered_are_refused(client):
    assert client.get(f"/{TOKEN}/save").status_code == 405
    assert client.post(f"/{TOKEN}/opening", json={}).status_code == 405
    assert client.put(f"/{TOKEN}/view", json=NUMBERS).status_code == 405


def test_tokens_are_long_and_new_each_time():
    tokens = {make_token() for _ in range(100)}
    assert len(tokens) == 100
    assert min(map(len, tokens)) >= 43
