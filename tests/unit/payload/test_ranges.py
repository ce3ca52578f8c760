"""Objects read range by range: by a slow reader, and while they change."""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from obstore.store import S3Store

from streams.payload.errors import PayloadUnavailable
from streams.payload.objects.cloud import CloudObjects
from streams.payload.objects.port import Objects, ObjectTooLarge
from streams.payload.objects.ranges import RANGE_BYTES, Range, pieces

KEY = "acme/care/sha256/x"
LARGE = bytes(range(256)) * (40 << 12)


class Server:
    """Serves one object, and knows what it is sending."""

    def __init__(self) -> None:
        self.data: bytes | None = LARGE
        self.tag, self.partial, self.heeds_tags = '"one"', 206, True
        self.sending, self.asked = 0, list[str]()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        asked = request.headers.get("Range")
        self.asked.append(asked or "all")
        if self.data is None:
            return web.Response(status=404)
        if not self.data:
            return web.Response(status=416 if asked else 200)
        if self.heeds_tags and request.headers.get("If-Match", self.tag) != self.tag:
            return web.Response(status=412)
        first, data = request.http_range.start or 0, self.data[request.http_range]
        headers = {"ETag": self.tag, "Last-Modified": "Thu, 01 Jan 2026 00:00:00 GMT"}
        if asked:
            last = first + len(data) - 1
            headers["Content-Range"] = f"bytes {first}-{last}/{len(self.data)}"
        response = web.StreamResponse(status=self.partial if asked else 200, headers=headers)
        response.content_length = len(data)
        self.sending += 1
        try:
            await response.prepare(request)
            await response.write(data)
        finally:
            self.sending -= 1
        return response


@pytest.fixture
def server() -> Server:
    return Server()


@pytest.fixture(params=[206, 200])
async def objects(request: pytest.FixtureRequest, server: Server) -> AsyncIterator[Objects]:
    """A client of a server that answers a range with this status; rclone says 200."""
    server.partial = request.param
    async with _listening(server) as url:
        yield CloudObjects(
            S3Store(
                "bucket",
                config={"endpoint": url, "access_key_id": "a", "secret_access_key": "b"},
                client_options={"allow_http": True},
            )
        )


@asynccontextmanager
async def _listening(server: Server) -> AsyncIterator[str]:
    app = web.Application()
    app.router.add_get("/{tail:.*}", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_a_reader_that_waits_keeps_no_request_open(server: Server, objects: Objects) -> None:
    found = bytearray()
    async for piece in objects.stream(KEY):
        found += piece
        if len(found) < RANGE_BYTES:
            await asyncio.sleep(0.05)
            assert server.sending == 0
    assert found == LARGE
    assert len(set(server.asked)) == -(-len(LARGE) // RANGE_BYTES)


@pytest.mark.parametrize(
    "size", [0, 1, RANGE_BYTES - 1, RANGE_BYTES, RANGE_BYTES + 1, 2 * RANGE_BYTES]
)
async def test_ranges_add_up_to_the_object(server: Server, objects: Objects, size: int) -> None:
    server.data = LARGE[:size]
    assert b"".join([piece async for piece in objects.stream(KEY)]) == server.data
    assert await objects.read(KEY, at_most=len(LARGE)) == server.data


async def test_an_object_that_is_too_large_is_not_read(server: Server, objects: Objects) -> None:
    with pytest.raises(ObjectTooLarge):
        await objects.read(KEY, at_most=len(LARGE) - 1)
    assert len(server.asked) == 1


@pytest.mark.parametrize(
    ("data", "heeds_tags"), [(LARGE, True), (LARGE, False), (b"less", False), (None, False)]
)
async def test_what_is_replaced_while_it_is_read_is_to_be_read_again(
    server: Server, objects: Objects, data: bytes | None, heeds_tags: bool
) -> None:
    """Whether or not the server compares tags: two objects are never mixed."""
    pieces = objects.stream(KEY)
    await anext(pieces)
    server.data, server.tag, server.heeds_tags = data, '"two"', heeds_tags
    with pytest.raises(PayloadUnavailable):
        await _to_the_end(pieces)


async def _to_the_end(pieces: AsyncIterator[bytes]) -> None:
    async for _ in pieces:
        pass


async def test_a_range_is_let_go_before_the_next_one_is_asked_for() -> None:
    seen: list[weakref.ref[memoryview]] = []

    async def ask(_start: int, _tag: str | None) -> Range:
        assert not [one for one in seen if one() is not None]
        data = memoryview(b"x" * 10)
        seen.append(weakref.ref(data))
        return Range(data, 40, "tag")

    assert b"".join([piece async for piece in pieces("k", ask)]) == b"x" * 40
    assert len(seen) == 4
