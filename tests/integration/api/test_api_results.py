"""Results over HTTP and in the tables: by name, in parts, of one's own tenant only."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from urllib.parse import quote

import asyncpg
import orjson
import pytest

from streams.events.model import PayloadRef
from streams.payload.arrow.rows import decode_rows, encode_rows
from streams.payload.port import ARROW, JSON, Scope
from streams.results.reading import MANIFEST, RowsPart, encode_manifest
from streams.results.reference import ResultRef, result_uri
from streams.settings import Settings
from tests.support.api.server import SCOPE, Client, Stand
from tests.support.log.databases import dsn
from tests.support.projector.executions import Story

pytestmark = pytest.mark.stack
DATA = {"rows": list(range(1000))}


class Stored:
    """An execution with one result."""

    def __init__(self, stand: Stand, *, tenant: str = "acme") -> None:
        self.stand, self.scope = stand, Scope(tenant, "care")
        self.story = Story(stand.log.ids.take(100)[0], tenant=tenant)
        self.result_id = self.story.root.id + 50
        self.uri = result_uri(self.story.root.id, "load", "page", self.result_id)

    async def put(self, **meta: Any) -> Stored:
        payload = await self.stand.runtime.payloads.put(
            self.scope, orjson.dumps(DATA), media_type=JSON
        )
        self.ref = ResultRef.to_payload(self.uri, payload, store="kv", scope="execution").to_json()
        routing = {"result_id": str(self.result_id), "store": "kv", "scope": "execution"}
        stored = self.story.event(
            "result.stored",
            node_name="load",
            meta={**routing, "task": "page", **meta},
            result=self.ref,
            payload_ref=payload,
        )
        await self.stand.log.store.append([self.story.began(), stored])
        return self

    async def expire(self) -> None:
        meta = {"result_id": str(self.result_id), "reason": "ttl"}
        await self.stand.log.store.append([self.story.event("result.expired", meta=meta)])


def path(uri: str, more: str = "") -> str:
    return f"/api/result/resolve?ref={quote(uri, safe='')}{more}"


async def test_the_data_behind_a_name(client: Client, stand: Stand) -> None:
    stored = await Stored(stand).put()
    async with client.get(path(stored.uri)) as answer:
        assert (answer.status, answer.content_type) == (200, JSON)
        assert await answer.json() == DATA
    async with client.get(path(stored.uri, "&form=ref")) as answer:
        assert await answer.json() == stored.ref


@pytest.mark.parametrize(
    ("asked", "status", "part"),
    [
        ("bytes=0-9", 206, slice(0, 10)),
        ("bytes=100-", 206, slice(100, None)),
        ("bytes=-7", 206, slice(-7, None)),
        ("bytes=99999-", 416, None),
        ("rows=1-2", 200, slice(None)),
    ],
)
async def test_a_range_of_it(
    client: Client, stand: Stand, asked: str, status: int, part: slice | None
) -> None:
    stored, whole = await Stored(stand).put(), orjson.dumps(DATA)
    async with client.get(path(stored.uri), headers={"Range": asked}) as answer:
        assert answer.status == status
        got = await answer.read()
    assert got == (b"" if part is None else whole[part])


async def test_another_tenants_result_is_refused(client: Client, stand: Stand) -> None:
    foreign = await Stored(stand, tenant="globex").put()
    async with client.get(path(foreign.uri)) as answer:
        assert answer.status == 403
        assert "does not belong" in (await answer.json(content_type=None))["detail"]


@pytest.mark.parametrize(
    ("uri", "status"),
    [
        ("noetl://execution/1/step/a/task/b/7", 404),
        ("noetl://execution/1/step/a/task/b/x", 404),
        ("noetl://execution/1/step/../task/b/7", 422),
        ("noetl://execution/1/step/a%00/task/b/7", 422),
        ("noetl://tenant/globex/org/care/payloads/sha256/" + "0" * 64, 403),
        ("http://elsewhere", 422),
        ("", 422),
    ],
)
async def test_names_that_name_nothing(client: Client, uri: str, status: int) -> None:
    async with client.get(path(uri)) as answer:
        assert answer.status == status
        assert (await answer.json(content_type=None))["detail"]


async def test_a_result_that_has_expired_says_so(client: Client, stand: Stand) -> None:
    expired = await Stored(stand).put()
    await expired.expire()
    late = await Stored(stand).put(expires_at="2026-01-01T00:00:00.000Z")
    for stored in (expired, late):
        async with client.get(path(stored.uri)) as answer:
            assert answer.status == 410
        async with client.get(f"/api/executions/{stored.story.root.id}/results") as answer:
            assert (await answer.json())["results"] == []
    kept = await Stored(stand).put(expires_at="2999-01-01T00:00:00.000Z")
    async with client.get(f"/api/executions/{kept.story.root.id}/results?step=load") as answer:
        assert [one["ref"] for one in (await answer.json())["results"]] == [kept.uri]


async def test_a_loops_rows_and_their_rows_in_the_table(
    client: Client, stand: Stand, database: Settings
) -> None:
    story, payloads = Story(stand.log.ids.take(100)[0]), stand.runtime.payloads
    encoded = encode_rows([{"n": n} for n in range(5)])
    rows = await payloads.put(SCOPE, encoded.data, media_type=ARROW)
    manifest = await payloads.put(
        SCOPE, encode_manifest([RowsPart(5, rows), RowsPart(5, None)]), media_type=MANIFEST
    )
    uri = result_uri(story.root.id, "load", "load", story.loop_id)
    routing = {"result_id": str(story.loop_id), "store": "object", "scope": "permanent"}
    stored = story.event(
        "result.stored",
        node_name="load",
        meta={**routing, "task": "load"},
        result=ResultRef.to_payload(uri, manifest, store="object", scope="permanent").to_json(),
        payload_ref=manifest,
    )
    first = [story.began(), story.entered(), story.loop_started(), story.opened()]
    committed = replace(story.committed(0), payload_ref=rows)
    frame = [story.dispatched(0), story.claimed(0), committed]
    await stand.log.store.append([*first, *frame, stored])
    async with client.get(path(uri)) as answer:
        assert await answer.json() == [{"n": n} for n in range(5)] + [None] * 5
    async with client.get(path(uri), headers={"Accept": ARROW}) as answer:
        assert (answer.status, answer.content_type) == (200, ARROW)
        assert decode_rows(await answer.read()) == [{"n": n} for n in range(5)] + [None] * 5

    await stand.project()
    connection = await asyncpg.connect(dsn(database, "read"))
    try:
        found = await connection.fetch(
            "SELECT ref, parent_ref_id FROM noetl.result_ref WHERE execution_id = $1 ORDER BY 2",
            story.root.id,
        )
    finally:
        await connection.close()
    names = {row["ref"]: row["parent_ref_id"] for row in found}
    assert names[uri] is None
    (part,) = names.keys() - {uri}
    assert names[part] == story.loop_id
    async with client.get(path(part), headers={"Accept": "application/json"}) as answer:
        assert await answer.json() == [{"n": n} for n in range(5)]
    async with client.get(path(part)) as answer:
        assert (answer.content_type, await answer.read()) == (ARROW, encoded.data)


async def test_a_loops_name_ends_with_its_rows(client: Client, stand: Stand) -> None:
    row, payloads = await Stored(stand).put(), stand.runtime.payloads
    rows = await payloads.put(SCOPE, orjson.dumps([row.ref]), media_type=JSON)
    manifest = await payloads.put(SCOPE, encode_manifest([RowsPart(1, rows)]), media_type=MANIFEST)
    uri = await _stored_rows(stand, row.story, manifest)
    for accept in (JSON, ARROW):
        async with client.get(path(uri), headers={"Accept": accept}) as answer:
            assert answer.status == 200
    await row.expire()
    for accept in (JSON, ARROW):
        async with client.get(path(uri), headers={"Accept": accept}) as answer:
            assert answer.status == 410


async def test_a_manifest_with_another_tenants_part_is_refused(
    client: Client, stand: Stand
) -> None:
    payloads, story = stand.runtime.payloads, Story(stand.log.ids.take(100)[0])
    foreign = await payloads.put(Scope("globex", "care"), b"[1]", media_type=JSON)
    forged = await payloads.put(SCOPE, encode_manifest([RowsPart(1, foreign)]), media_type=MANIFEST)
    await stand.log.store.append([story.began()])
    async with client.get(path(await _stored_rows(stand, story, forged))) as answer:
        assert answer.status == 403


async def _stored_rows(stand: Stand, story: Story, manifest: PayloadRef) -> str:
    uri = result_uri(story.root.id, "load", "load", story.loop_id)
    routing = {"result_id": str(story.loop_id), "store": "object", "scope": "permanent"}
    stored = story.event(
        "result.stored",
        node_name="load",
        meta={**routing, "task": "load"},
        result=ResultRef.to_payload(uri, manifest, store="object", scope="permanent").to_json(),
        payload_ref=manifest,
    )
    await stand.log.store.append([stored])
    return uri


async def test_what_ends_is_marked_in_the_table(stand: Stand, database: Settings) -> None:
    stored = await Stored(stand).put()
    await stand.project()
    await stored.expire()
    await stand.project()
    connection = await asyncpg.connect(dsn(database, "read"))
    try:
        row = await connection.fetchrow("SELECT * FROM noetl.result_ref WHERE ref = $1", stored.uri)
    finally:
        await connection.close()
    assert row is not None
    assert (row["store_tier"], row["task_label"], row["step_name"]) == ("kv", "page", "load")
    assert row["expired_at"] is not None
