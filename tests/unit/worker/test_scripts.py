"""Scripts of tasks that a server holds: by URL, and as an object in S3."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import BaseTestServer, TestServer

from streams.worker.errors import BadConfig
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.download import SourceUnavailable
from streams.worker.tools.script import SCRIPT_BYTES, Scripts
from tests.support.worker.tool_calls import CALL

MADE = "Fri, 02 Jan 2026 00:00:00 GMT"


@pytest.fixture
async def server() -> AsyncIterator[BaseTestServer]:
    async def serve(request: web.Request) -> web.Response:
        if request.path.endswith("none.py"):
            raise web.HTTPNotFound
        if request.path.endswith("large.py"):
            return web.Response(body=b"#" * (SCRIPT_BYTES + 1), headers=headers)
        login = request.headers.get("Authorization", "").partition(" ")[0]
        return web.Response(text=f"{request.method} {request.path} {login}", headers=headers)

    headers = {"ETag": '"1"', "Last-Modified": MADE}
    app = web.Application()
    app.router.add_route("*", "/{name:.*}", serve)
    async with TestServer(app) as opened:
        yield opened


async def read(server: BaseTestServer, script: dict[str, Any]) -> str:
    s3 = {"endpoint": str(server.make_url("")), "access_key": "a", "secret_key": "b"}
    scripts = Scripts(ConfiguredCredentials({"s3": s3, "api": {"token": "t"}}, {}))
    try:
        return await scripts.read({"script": script}, CALL)
    finally:
        await scripts.close()


async def test_an_endpoint_is_the_script_or_with_a_slash_its_folder(server: BaseTestServer) -> None:
    whole: dict[str, Any] = {
        "type": "http",
        "endpoint": str(server.make_url("/a/whole.py")),
        "auth": "api",
    }
    assert await read(server, {"uri": "one.py", "source": whole}) == "GET /a/whole.py Bearer"
    folder: dict[str, Any] = {
        "type": "http",
        "endpoint": str(server.make_url("/a/")),
        "method": "post",
    }
    assert await read(server, {"uri": "one.py", "source": folder}) == "POST /a/one.py "
    assert await read(server, {"uri": str(server.make_url("/b.py"))}) == "GET /b.py "


async def test_an_object_is_read_with_the_credential(server: BaseTestServer) -> None:
    source: dict[str, Any] = {"type": "s3", "region": "eu-west-1", "auth": "s3"}
    script: dict[str, Any] = {"uri": "s3://bucket/a/one.sql", "source": dict(source)}
    assert await read(server, script) == "GET /bucket/a/one.sql AWS4-HMAC-SHA256"
    with pytest.raises(BadConfig, match=r"none\.py does not exist"):
        await read(server, {"uri": "s3://bucket/none.py", "source": dict(source)})


async def test_what_is_missing_or_too_large_is_refused(server: BaseTestServer) -> None:
    with pytest.raises(SourceUnavailable, match="answered 404"):
        await read(server, {"uri": str(server.make_url("/none.py"))})
    with pytest.raises(BadConfig, match="has more than"):
        await read(server, {"uri": str(server.make_url("/large.py"))})
    source: dict[str, Any] = {"type": "s3", "auth": "s3"}
    with pytest.raises(BadConfig, match=f"more than {SCRIPT_BYTES}"):
        await read(server, {"uri": "s3://bucket/large.py", "source": dict(source)})
