"""The http tool against a real server on this machine."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from streams.clock import SettableClock
from streams.worker.attempt.secrets import LeasedCredentials, holding
from streams.worker.port import Outcome
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.http.tool import HttpTool
from tests.support.worker.tool_calls import CALL, ITEM

CREDENTIALS = ConfiguredCredentials(
    {
        "api": {"token": "abc"},
        "user": {"username": "u", "password": "p"},
        "key": {"header": "X-Key", "value": "k"},
    },
    {},
)


async def echo(request: web.Request) -> web.Response:
    return web.json_response(
        {
            "method": request.method,
            "query": [list(pair) for pair in request.query.items()],
            "headers": dict(request.headers),
            "body": await request.text(),
        }
    )


async def answer(request: web.Request) -> web.Response:
    query = request.query
    await asyncio.sleep(float(query.get("delay", 0)))
    headers = {"Content-Type": query.get("type", "text/plain")}
    body = bytes.fromhex(query.get("hex", "")) * int(query.get("times", 1))
    if "after" in query:
        headers["Retry-After"] = query["after"]
    if "gzip" in query:
        headers["Content-Encoding"] = "gzip"
        body = gzip.compress(body)
    return web.Response(status=int(query.get("status", 200)), body=body, headers=headers)


async def elsewhere(request: web.Request) -> web.Response:
    """Lead to the same server, or to it under another name, which is another origin."""
    where = "localhost" if "away" in request.query else "127.0.0.1"
    location = f"http://{where}:{request.url.port}/{request.query.get('to', 'echo')}"
    return web.Response(status=int(request.query["status"]), headers={"Location": location})


async def endless(request: web.Request) -> web.Response:
    raise web.HTTPFound(request.path)


async def quote(request: web.Request) -> web.Response:
    text = "x" * int(request.query["before"]) + request.headers["X-Key"]
    return web.Response(status=401, text=text)


@pytest.fixture(scope="module")
async def url() -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_route("*", "/echo", echo)
    app.router.add_get("/answer", answer)
    app.router.add_route("*", "/elsewhere", elsewhere)
    app.router.add_get("/endless", endless)
    app.router.add_get("/quote", quote)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    await runner.cleanup()


@pytest.fixture
async def tool() -> AsyncIterator[HttpTool]:
    made = HttpTool(CREDENTIALS, response_bytes=1000)
    yield made
    await made.close()


async def ask(tool: HttpTool, base: str, **query: Any) -> Outcome:
    params = {k: v.hex() if isinstance(v, bytes) else v for k, v in query.items()}
    return await tool.run({"url": f"{base}/answer", "params": params}, CALL)


def kind(outcome: Outcome) -> Any:
    assert outcome.status == "error"
    assert outcome.error is not None
    return outcome.error["kind"]


async def test_json_is_parsed_and_the_answer_is_told(tool: HttpTool, url: str) -> None:
    outcome = await ask(tool, url, type="application/json", hex=b'{"a": [1, "2"]}')
    assert (outcome.status, outcome.data) == ("success", {"a": [1, "2"]})
    response: Any = outcome.detail["http"]
    assert response["status"] == 200
    assert response["headers"]["content-type"] == "application/json"


async def test_text_stays_text_even_when_it_looks_like_a_number(tool: HttpTool, url: str) -> None:
    assert (await ask(tool, url, hex=b"1e5")).data == "1e5"


async def test_bytes_that_are_no_text_come_as_base64(tool: HttpTool, url: str) -> None:
    outcome = await ask(tool, url, type="image/png", hex=b"\xff\x00")
    assert (outcome.data, outcome.meta) == ("/wA=", {"encoding": "base64"})


async def test_the_query_carries_every_kind_of_value(tool: HttpTool, url: str) -> None:
    params = {"n": 5, "yes": True, "list": ["a", 1], "none": None, "text": "a b&c", "o": {"x": 1}}
    outcome = await tool.run({"url": f"{url}/echo?kept=1", "params": params}, CALL)
    data: Any = outcome.data
    assert sorted(map(tuple, data["query"])) == [
        ("kept", "1"),
        ("list", "1"),
        ("list", "a"),
        ("n", "5"),
        ("o", '{"x":1}'),
        ("text", "a b&c"),
        ("yes", "true"),
    ]


@pytest.mark.parametrize(
    ("body", "sent", "content_type"),
    [
        ({"json": {"a": 1}}, '{"a":1}', "application/json"),
        ({"payload": {"a": 1}}, '{"a":1}', "application/json"),
        ({"body": "<x/>", "headers": {"Content-Type": "text/xml"}}, "<x/>", "text/xml"),
        ({"data": {"a": 1, "b": "x y"}}, "a=1&b=x+y", "application/x-www-form-urlencoded"),
        ({"json": "text"}, '"text"', "application/json"),
    ],
)
async def test_bodies(
    tool: HttpTool, url: str, body: dict[str, Any], sent: str, content_type: str
) -> None:
    outcome = await tool.run({"url": f"{url}/echo", **body}, CALL)
    data: Any = outcome.data
    assert (data["method"], data["body"]) == ("POST", sent)
    assert data["headers"]["Content-Type"] == content_type


@pytest.mark.parametrize(
    ("auth", "header", "value"),
    [
        ("api", "Authorization", "Bearer abc"),
        ("user", "Authorization", "Basic dTpw"),
        ("key", "X-Key", "k"),
        ({"type": "bearer", "credential": "api"}, "Authorization", "Bearer abc"),
    ],
)
async def test_credentials(tool: HttpTool, url: str, auth: Any, header: str, value: str) -> None:
    outcome = await tool.run({"url": f"{url}/echo", "auth": auth}, CALL)
    data: Any = outcome.data
    assert data["headers"][header] == value


async def test_an_unknown_credential_is_an_error_that_names_it(tool: HttpTool, url: str) -> None:
    outcome = await tool.run({"url": f"{url}/echo", "auth": "apy"}, CALL)
    assert kind(outcome) == "http.config"
    assert "did you mean 'api'" in str(outcome.error)


async def test_a_bad_status_is_an_error_with_its_body(tool: HttpTool, url: str) -> None:
    outcome = await ask(tool, url, status=503, type="application/json", hex=b'{"wait": 1}')
    assert kind(outcome) == "http.status"
    response: Any = outcome.detail["http"]
    assert (response["status"], outcome.data) == (503, {"wait": 1})


async def test_slowness_is_a_timeout(tool: HttpTool, url: str) -> None:
    config = {"url": f"{url}/answer", "params": {"delay": 5}, "timeout": 0.05}
    assert kind(await tool.run(config, CALL)) == "http.timeout"


async def test_nobody_there_is_a_connection_error(tool: HttpTool) -> None:
    outcome = await tool.run({"url": "http://user:secret@127.0.0.1:9/x?key=secret"}, CALL)
    assert kind(outcome) == "http.connection"
    assert "secret" not in str(outcome.error)


@pytest.mark.parametrize("how", [{}, {"gzip": 1}])
async def test_an_answer_too_large_is_refused_not_cut(
    tool: HttpTool, url: str, how: dict[str, Any]
) -> None:
    outcome = await ask(tool, url, hex=b"x", times=1001, **how)
    assert kind(outcome) == "http.too_large"
    assert (await ask(tool, url, hex=b"x", times=1000, **how)).data == "x" * 1000


async def test_broken_json_is_an_error(tool: HttpTool, url: str) -> None:
    assert kind(await ask(tool, url, type="application/json", hex=b'{"a":')) == "http.json"


@pytest.mark.parametrize(
    "config", [{}, {"url": 5}, {"url": "nonsense"}, {"url": "http://x", "timeout": "soon"}]
)
async def test_a_bad_configuration_is_said(tool: HttpTool, config: dict[str, Any]) -> None:
    assert kind(await tool.run(config, CALL)) == "http.config"


@pytest.mark.parametrize("auth", ["api", "user", "key"])
async def test_a_login_does_not_follow_a_redirect_to_another_origin(
    tool: HttpTool, url: str, auth: str
) -> None:
    config = {"url": f"{url}/elsewhere", "auth": auth, "headers": {"X-Own": "kept"}}
    here: Any = (await tool.run({**config, "params": {"status": 302}}, CALL)).data
    away: Any = (await tool.run({**config, "params": {"status": 302, "away": 1}}, CALL)).data
    assert here["headers"].keys() & {"Authorization", "X-Key"}
    assert not away["headers"].keys() & {"Authorization", "X-Key"}
    assert here["headers"]["X-Own"] == away["headers"]["X-Own"] == "kept"


@pytest.mark.parametrize("auth", ["api", "key"])
@pytest.mark.parametrize(
    ("status", "method", "then", "body"),
    [
        (301, "POST", "GET", ""),
        (302, "POST", "GET", ""),
        (303, "PUT", "GET", ""),
        (307, "POST", "POST", "text"),
        (308, "PUT", "PUT", "text"),
    ],
)
async def test_every_login_is_redirected_alike(
    tool: HttpTool, url: str, auth: str, status: int, method: str, then: str, body: str
) -> None:
    config = {"url": f"{url}/elsewhere", "params": {"status": status}, "auth": auth}
    outcome = await tool.run({**config, "method": method, "body": "text"}, CALL)
    data: Any = outcome.data
    assert (data["method"], data["body"]) == (then, body)


@pytest.mark.parametrize("auth", ["api", "key"])
async def test_a_redirect_without_end_is_an_error(tool: HttpTool, url: str, auth: str) -> None:
    config = {"url": f"{url}/elsewhere?status=302&to=endless", "auth": auth}
    assert kind(await tool.run(config, CALL)) == "http.connection"


TOKEN = "c4nary-" + 40 * "t"


@pytest.mark.parametrize("before", [170, 195, 199])
async def test_a_message_is_shortened_when_the_secret_is_gone(url: str, before: int) -> None:
    own = ConfiguredCredentials({"long": {"header": "X-Key", "value": TOKEN}}, {})
    tool = HttpTool(LeasedCredentials(own, None, SettableClock()))  # type: ignore[arg-type]
    with holding(ITEM, "w/1", lambda: 60.0):
        config = {"url": f"{url}/quote", "params": {"before": before}, "auth": "long"}
        outcome = await tool.run(config, CALL)
    await tool.close()
    assert outcome.error is not None
    assert "c4n" not in str(outcome.error["message"])
    assert "xxx*" in str(outcome.error["message"])


@pytest.mark.parametrize("status", [429, 503])
async def test_a_host_that_asks_to_wait_is_not_asked_before(
    tool: HttpTool, url: str, status: int
) -> None:
    loop, released = asyncio.get_running_loop(), []

    @contextmanager
    def lane() -> Iterator[None]:
        released.append(loop.time())
        yield

    assert kind(await ask(tool, url, status=status, after="1")) == "http.status"
    limited_at = loop.time()
    other = url.replace("127.0.0.1", "localhost")
    assert (await ask(tool, other)).status == "success"
    assert loop.time() - limited_at < 0.5, "another host"
    config, call = {"url": f"{url}/answer"}, replace(CALL, released_lane=lane)
    answers = await asyncio.gather(*(tool.run(config, call) for _ in range(2)))
    assert [one.status for one in answers] == ["success", "success"]
    assert loop.time() - limited_at >= 0.99
    assert len(released) == 2, "they waited without a lane"


async def test_a_host_that_asks_to_wait_for_long_is_not_asked_at_all(
    tool: HttpTool, url: str
) -> None:
    assert kind(await ask(tool, url, status=503, after="3600")) == "http.status"
    outcome = await ask(tool, url)
    assert kind(outcome) == "http.paused"
    assert outcome.detail["http"] == {"status": 429, "headers": {"retry-after": "3600"}}
