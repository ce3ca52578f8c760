"""The API counts requests by route, never by path."""

from __future__ import annotations

from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from streams.api.measured import RequestCounts
from streams.metrics.metric import Distribution


async def test_requests_are_counted_by_route_and_status() -> None:
    counts = RequestCounts(iter(float(n) for n in range(100)).__next__)
    app = web.Application(middlewares=[counts.middleware, _as_response])

    async def show(_: web.Request) -> web.Response:
        return web.Response()

    app.router.add_get("/things/{number}", show)
    async with TestClient(TestServer(app)) as client:
        for path in ("/things/1", "/things/2", "/no/such/1", "/no/such/2"):
            await client.get(path)
        await client.request("DELETE", "/things/1")

    found = {(one.metric.name, *one.labels): one.value for one in counts.samples()}
    times = {key: value for key, value in found.items() if isinstance(value, Distribution)}
    assert {key: value for key, value in found.items() if key not in times} == {
        ("noetl_http_requests_total", "GET", "/things/{number}", "200"): 2,
        ("noetl_http_requests_total", "other", "other", "404"): 2,
        ("noetl_http_requests_total", "other", "other", "405"): 1,
    }
    taken = times["noetl_http_request_seconds", "GET", "/things/{number}"]
    assert (sum(taken.counts), taken.total) == (2, 2.0)


@web.middleware
async def _as_response(request: web.Request, handler: object) -> web.StreamResponse:
    try:
        return await handler(request)  # type: ignore[no-any-return,operator]
    except web.HTTPException as error:
        return web.Response(status=error.status)
