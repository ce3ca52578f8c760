"""Payloads through the API: in pieces both ways, in ranges, and never wrong bytes."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from hashlib import sha256
from typing import Any, cast
from urllib.parse import quote

import orjson
import pytest
from aiohttp import ClientPayloadError, ClientResponse, web
from aiohttp.test_utils import TestClient, TestServer, make_mocked_request

from streams.api.payload_streaming import received
from streams.api.runtime import ApiRuntime
from streams.api.server import make_app
from streams.payload.content import describe, key_of
from streams.payload.objects.blocks import NoCipher, pack
from streams.payload.port import JSON, Scope
from streams.playbook.model import Step
from streams.worker.attempt.command import CommandRunner
from tests.support.worker.memory import FakeTool, World, ok, task

Client = TestClient[Any, Any]
ACME = Scope("acme", "care")
LARGE = os.urandom(1 << 20) * 5 + b"the end"
PAGE = {"rows": list(range(20_000))}


class Stand:
    """An API over a log and payloads in memory, in which a command has stored one result."""

    def __init__(self) -> None:
        spec = {"result": {"store": {"kind": "object"}}}
        step = Step(name="once", tasks=(task("page", "t", {}, spec=spec),))
        self.world = World(step, {"t": FakeTool(lambda *_: ok(PAGE))})
        self.payloads = self.world.payloads
        none = cast(Any, None)
        self.runtime = ApiRuntime(
            log=self.world.log,
            projections=none,
            ledger=none,
            catalog=none,
            payloads=self.payloads,
            replay=none,
            organizations=none,
            business_replay=none,
            business=none,
            forks=none,
            next_id=none,
            clock=self.world.clock,
            scope=ACME,
            credentials=none,
            keys=none,
            resolver=none,
            webhooks=none,
        )

    async def result(self) -> tuple[str, str]:
        """Store it; return where it is asked for, and the key of its object."""
        await CommandRunner(self.world.ports, self.world.options()).run(await self.world.command())
        (stored,) = await self.world.events("result.")
        assert stored.payload_ref is not None
        path = f"/api/result/resolve?ref={quote(stored.result['ref'], safe='')}"
        return path, key_of(stored.payload_ref)


@pytest.fixture
async def stand() -> Stand:
    return Stand()


@pytest.fixture
async def client(stand: Stand) -> AsyncIterator[Client]:
    async with TestClient(TestServer(make_app(stand.runtime))) as opened:
        yield opened


async def in_pieces(data: bytes) -> AsyncIterator[bytes]:
    for at in range(0, len(data), 1 << 18):
        yield data[at : at + (1 << 18)]


async def put(client: Client, data: bytes, **headers: str) -> dict[str, Any]:
    async with client.post("/api/payloads", data=in_pieces(data), headers=headers) as answer:
        assert answer.status == 201, await answer.text()
        return cast(dict[str, Any], await answer.json())


async def problem(answer: ClientResponse) -> str:
    assert answer.content_type == "application/problem+json"
    report = orjson.loads(await answer.read())
    return str(report["type"]).rpartition(":")[2]


async def test_a_large_body_goes_in_and_out(client: Client) -> None:
    ref = await put(client, LARGE, **{"Content-Type": "image/png"})
    assert ref["sha256"] == sha256(LARGE).hexdigest()
    assert (ref["byte_length"], ref["media_type"]) == (len(LARGE), "image/png")
    async with client.get(ref["url"]) as answer:
        assert (answer.status, answer.content_length) == (200, len(LARGE))
        assert await answer.read() == LARGE


@pytest.mark.parametrize("data", [b"", b"x"])
async def test_the_smallest_bodies(client: Client, data: bytes) -> None:
    ref = await put(client, data)
    async with client.get(ref["url"]) as answer:
        assert (answer.status, await answer.read()) == (200, data)


@pytest.mark.parametrize(
    ("asked", "part"),
    [
        ("bytes=0-9", slice(0, 10)),
        ("bytes=1048570-2097160", slice(1048570, 2097161)),
        ("bytes=5242880-", slice(5242880, None)),
        ("bytes=-3", slice(-3, None)),
        ("bytes=-99999999", slice(None)),
    ],
)
async def test_a_range_of_a_payload(client: Client, asked: str, part: slice) -> None:
    ref = await put(client, LARGE)
    async with client.get(ref["url"], headers={"Range": asked}) as answer:
        assert answer.status == 206
        assert answer.headers["Content-Range"].endswith(f"/{len(LARGE)}")
        assert await answer.read() == LARGE[part]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Range": "bytes=99999999-"}, 416),
        ({"Range": "bytes=-0"}, 416),
        ({"Range": "bytes=9-1"}, 416),
        ({"Range": f"bytes={'9' * 5000}-"}, 200),
        ({"Range": "bytes=--5"}, 200),
        ({"Range": "bytes=0-1,5-6"}, 200),
        ({"Range": "rows=1-2"}, 200),
        ({"Range": "bytes=0-1", "If-Range": '"another"'}, 200),
        ({"If-None-Match": f'"{sha256(b"data").hexdigest()}"'}, 304),
    ],
)
async def test_ranges_that_are_none(client: Client, headers: dict[str, str], status: int) -> None:
    ref = await put(client, b"data")
    async with client.get(ref["url"], headers=headers) as answer:
        assert answer.status == status
        assert await answer.read() == (b"data" if status == 200 else b"")


async def test_a_damaged_end_is_never_sent(client: Client, stand: Stand) -> None:
    ref = await put(client, LARGE)
    (key,) = stand.payloads.objects
    stand.payloads.objects[key] = LARGE[:-1] + b"!"
    for headers in ({}, {"Range": "bytes=0-5242880"}):
        async with client.get(ref["url"], headers=headers) as answer:
            assert answer.status in (200, 206)
            with pytest.raises((ClientPayloadError, ConnectionError)):
                await answer.read()
    async with client.get("/healthz") as answer:
        assert answer.status == 500  # it still serves: there is no database behind this one


@pytest.mark.parametrize(
    ("stored", "name"),
    [
        (b"tampered", "payload-corrupt"),
        (b"right", "payload-corrupt"),
        (pack(ACME, bytes(64 << 20), "zstd", NoCipher()), "payload-bomb"),
    ],
)
async def test_what_is_not_what_was_stored_is_a_problem(
    client: Client, stand: Stand, stored: bytes, name: str
) -> None:
    ref = await put(client, b"original")
    path, result_key = await stand.result()
    for key in stand.payloads.objects:
        stand.payloads.objects[key] = stored
    assert result_key in stand.payloads.objects
    for place in (ref["url"], path):
        async with client.get(place) as answer:
            assert (answer.status, await problem(answer)) == (422, name)


async def test_a_length_that_is_not_the_payloads(client: Client) -> None:
    ref = await put(client, b"original")
    for length, name in ((3, "payload-bomb"), (9, "payload-corrupt")):
        path = f"/api/payloads/{ref['sha256']}?byte_length={length}"
        async with client.get(path) as answer:
            assert (answer.status, await problem(answer)) == (422, name)


async def test_what_is_gone_or_anothers_is_not_found(client: Client, stand: Stand) -> None:
    ref = await put(client, b"ours")
    path, _ = await stand.result()
    theirs = {"Noetl-Tenant": "globex"}
    async with client.get(ref["url"], headers=theirs) as answer:
        assert (answer.status, await problem(answer)) == (404, "payload-missing")
    async with client.get(path, headers=theirs) as answer:
        assert (answer.status, await problem(answer)) == (403, "foreign-result")
    stand.payloads.objects.clear()
    for place in (ref["url"], path):
        async with client.get(place) as answer:
            assert (answer.status, await problem(answer)) == (404, "payload-missing")


@pytest.mark.parametrize(
    "path",
    [
        "/api/payloads/" + "A" * 64 + "?byte_length=1",
        "/api/payloads/" + "0" * 63 + "?byte_length=1",
        "/api/payloads/..%2F..%2Fetc%2Fpasswd?byte_length=1",
        "/api/payloads/" + "0" * 63 + "%00?byte_length=1",
        "/api/payloads/" + "0" * 64,
        "/api/payloads/" + "0" * 64 + "?byte_length=-1",
        "/api/payloads/" + "0" * 64 + "?byte_length=" + "9" * 5000,
        "/api/result/resolve?ref=noetl://execution/1/step/../task/b/7",
        "/api/result/resolve?ref=noetl://execution/1/step/a%00/task/b/7",
        "/api/result/resolve?ref=noetl://tenant/acme/org/care/payloads/sha256/../x",
    ],
)
async def test_names_that_are_none(client: Client, path: str) -> None:
    async with client.get(path) as answer:
        assert answer.status == 422
        assert await problem(answer) in ("bad-request", "bad-locator")


@pytest.mark.parametrize("tenant", ["../globex", "a/b", "%2e%2e"])
async def test_a_tenants_name_leads_into_no_other_folder(
    client: Client, stand: Stand, tenant: str
) -> None:
    headers = {"Noetl-Tenant": tenant}
    ref = await put(client, b"mine", **headers)
    (key,) = stand.payloads.objects
    assert key.count("/") == 3
    assert ".." not in key.split("/")
    async with client.get(ref["url"], headers=headers) as answer:
        assert await answer.read() == b"mine"


async def test_a_results_content_type_and_range(client: Client, stand: Stand) -> None:
    path, _ = await stand.result()
    whole = orjson.dumps(PAGE)
    async with client.get(path) as answer:
        assert (answer.content_type, await answer.read()) == (JSON, whole)
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    async with client.get(path, headers={"Range": "bytes=-4"}) as answer:
        assert (answer.status, await answer.read()) == (206, whole[-4:])


async def test_a_body_that_ends_early_stores_nothing(client: Client, stand: Stand) -> None:
    host, port = client.server.host, client.server.port
    reader, writer = await asyncio.open_connection(host, port)
    head = f"POST /api/payloads HTTP/1.1\r\nHost: {host}\r\nContent-Length: 5000000\r\n\r\n"
    writer.write(head.encode() + b"only this")
    writer.write_eof()
    await reader.read()
    writer.close()
    assert stand.payloads.objects == {}


async def test_a_reader_who_leaves_lets_go_of_the_store(client: Client, stand: Stand) -> None:
    ref, closed = await put(client, LARGE), asyncio.Event()
    stream = stand.payloads.shelves.stream

    async def endless(key: str) -> AsyncIterator[bytes]:
        try:
            async for piece in stream(key):
                for _ in range(1000):
                    yield piece
        finally:
            closed.set()

    stand.payloads.shelves.stream = endless  # type: ignore[assignment,method-assign]
    path = f"/api/payloads/{ref['sha256']}?byte_length={2**40}"
    async with client.get(path) as answer:
        await answer.content.readexactly(100)
        answer.close()
    await asyncio.wait_for(closed.wait(), 30)


async def test_a_body_beyond_the_cap_is_refused() -> None:
    request = make_mocked_request("POST", "/api/payloads", headers={"Content-Length": "101"})
    with pytest.raises(web.HTTPRequestEntityTooLarge):
        await anext(aiter(received(request, 100)))


async def test_a_content_type_that_no_reference_can_hold(client: Client) -> None:
    headers = {"Content-Type": "text/" + "x" * 300}
    async with client.post("/api/payloads", data=b"x", headers=headers) as answer:
        assert (answer.status, await problem(answer)) == (422, "bad-request")


async def test_a_payload_of_another_scope_has_another_name(client: Client) -> None:
    ours = await put(client, b"same")
    theirs = await put(client, b"same", **{"Noetl-Organization": "labs"})
    assert ours["sha256"] == theirs["sha256"] == describe(ACME, b"same", media_type=JSON).sha256
    assert ours["uri"] != theirs["uri"]
