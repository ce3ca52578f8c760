"""What is asked for by an address: with a login for its own origin, and for no other."""

from __future__ import annotations

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.download import Downloads
from tests.support.worker.tool_calls import CALL

LOGINS = {"key": {"header": "X-Key", "value": "k"}, "api": {"token": "t"}}


@pytest.mark.parametrize("auth", LOGINS)
@pytest.mark.parametrize(("way", "arrives"), [("here", True), ("away", False), ("back", False)])
async def test_a_login_does_not_follow_a_redirect_to_another_origin(
    auth: str, way: str, arrives: bool
) -> None:
    async def serve(request: web.Request) -> web.Response:
        port = request.url.port
        match request.path:
            case "/here":
                raise web.HTTPFound("/end")
            case "/away":
                raise web.HTTPFound(f"http://localhost:{port}/end")
            case "/back":
                raise web.HTTPFound(f"http://localhost:{port}/home")
            case "/home":
                raise web.HTTPFound(f"http://127.0.0.1:{port}/end")
        return web.Response(text=" ".join({"X-Key", "Authorization"} & request.headers.keys()))

    app = web.Application()
    app.router.add_get("/{name}", serve)
    downloads = Downloads(ConfiguredCredentials(LOGINS, {}))
    async with TestServer(app) as server:
        config = {"url": str(server.make_url(f"/{way}")), "auth": auth}
        async with downloads.open(config, CALL) as source:
            content = b"".join([piece async for piece in source.pieces])
    await downloads.close()
    assert bool(content) is arrives
