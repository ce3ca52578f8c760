"""Credentials over HTTP: never returned by a list, and handed out to who holds the task."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import aiohttp
import pytest
from yarl import URL

from streams.api.server import serving
from streams.clock import SystemClock
from streams.errors import Refused
from streams.kafka.work.item import WorkItem
from streams.settings import Settings
from streams.worker.attempt.secret_api import ApiSecrets, SecretsUnavailable
from streams.worker.attempt.secrets import LeasedCredentials, holding
from streams.worker.errors import CredentialRefused, UnknownCredential
from streams.worker.tools.credentials import ConfiguredCredentials
from tests.support.api.server import SCOPE, WORKER_TOKEN, Stand, open_stand
from tests.support.log.databases import event

pytestmark = pytest.mark.stack
PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {path: uses/credentials}
credentials: [{name: pg_main, as: pg}]
workflow:
  - step: start
    tool: {kind: postgres, auth: pg, command: SELECT 1}
"""
SECRET = {"kind": "postgres", "fields": {"dsn": "postgresql://u:c4nary@h/db", "port": 5432}}
ALLOWED = {"Authorization": f"Bearer {WORKER_TOKEN}"}


@pytest.fixture
async def stand(database: Settings) -> AsyncIterator[Stand]:
    async with open_stand(database) as opened:
        yield opened


@pytest.fixture
async def client(stand: Stand) -> AsyncIterator[aiohttp.ClientSession]:
    async with serving(stand.runtime) as url, aiohttp.ClientSession(url) as session:
        yield session


async def said(call: Any) -> tuple[int, Any, str]:
    async with call as answer:
        return answer.status, await answer.json(content_type=None), await answer.text()


async def claimed(stand: Stand) -> dict[str, Any]:
    """Claim a command of the playbook as a worker does; return what it asks with."""
    made = await stand.runtime.catalog.register(SCOPE, PLAYBOOK)
    execution_id, command_id = stand.log.ids.take(2)
    whose = {"tenant_id": SCOPE.tenant_id, "organization_id": SCOPE.organization_id}
    names = {"command_id": str(command_id), "attempt": 1}
    given = {**whose, "node_name": "start", "expected_version": None, "payload_ref": None}
    first = event(
        execution_id,
        "playbook.initialized",
        meta={"path": made.path, "version": made.version},
        catalog_id=made.catalog_id,
        payload_ref=None,
        **whose,
    )
    held = {**names, "worker": "w/1", "lease_seconds": 60}
    await stand.log.store.append(
        [
            first,
            event(execution_id, "command.issued", meta=names, **given),
            event(execution_id, "command.claimed", meta=held, **given),
        ]
    )
    return {
        "execution_id": str(execution_id),
        "entity": "command",
        "entity_id": str(command_id),
        "attempt": 1,
        "worker_id": "w/1",
        "name": "pg_main",
    }


async def test_what_is_set_is_listed_without_its_values_and_removed(client) -> None:
    status, report, text = await said(client.put("/api/credentials/pg_main", json=SECRET))
    assert (status, report["revision"], report["fields"]) == (201, 1, ["dsn", "port"])
    assert "c4nary" not in text
    status, report, text = await said(client.put("/api/credentials/pg_main", json=SECRET))
    assert (status, report["revision"]) == (200, 2)
    status, report, text = await said(client.get("/api/credentials"))
    assert [one["name"] for one in report["credentials"]] == ["pg_main"]
    assert set(report["credentials"][0]) == {
        *("credential_id", "name", "kind", "revision", "key_id", "fields"),
        *("created_at", "updated_at"),
    }
    assert "c4nary" not in text
    other = {"Noetl-Organization": "labs"}
    assert (await said(client.get("/api/credentials", headers=other)))[1] == {"credentials": []}
    assert (await said(client.delete("/api/credentials/pg_main", headers=other)))[0] == 404
    assert (await said(client.delete("/api/credentials/pg_main")))[0] == 200
    assert (await said(client.delete("/api/credentials/pg_main")))[0] == 404


@pytest.mark.parametrize(
    "body",
    [
        {"kind": "postgres", "fields": {"dsn": ["c4nary"]}},
        {"kind": "postgres", "fields": {}},
        {"kind": "postgres", "fields": "c4nary"},
        {"kind": "c4 nary", "fields": {"dsn": "x"}},
        {"fields": {"dsn": "c4nary"}},
    ],
)
async def test_a_bad_one_is_refused_without_quoting_it(client, body: Any) -> None:
    status, _, text = await said(client.put("/api/credentials/pg_main", json=body))
    assert status == 422
    assert "c4nary" not in text


@pytest.mark.parametrize("tenant", [b"\xff", b"..", b"a" * 3000])
async def test_a_header_that_names_no_tenant_is_refused_everywhere(client, tenant: bytes) -> None:
    headers = {"Noetl-Tenant": tenant.decode("utf-8", "surrogateescape")}
    for path in ("credentials", "executions", "catalog"):
        status, body, _ = await said(client.get(f"/api/{path}", headers=headers))
        assert (status, body["title"]) == (422, "bad locator")


async def test_a_name_that_no_credential_can_have_is_refused(client) -> None:
    for name in ("%00", "..%2Fx"):
        status, body, _ = await said(client.delete(URL(f"/api/credentials/{name}", encoded=True)))
        assert (status, body["title"]) == (422, "bad credential")


async def test_the_holder_of_the_task_is_given_its_secret(stand, client) -> None:
    await said(client.put("/api/credentials/pg_main", json=SECRET))
    await said(client.put("/api/credentials/other", json=SECRET))
    asked = await claimed(stand)
    async with client.post("/api/credentials/resolve", json=asked, headers=ALLOWED) as answer:
        secret = await answer.json()
        assert answer.headers["Cache-Control"] == "no-store"
    assert secret["fields"] == {"dsn": "postgresql://u:c4nary@h/db", "port": "5432"}
    assert 0 < secret["seconds_left"] <= 60
    for change, wanted in (
        ({"worker_id": "w/2"}, 409),
        ({"attempt": 2}, 409),
        ({"entity": "frame"}, 409),
        ({"name": "other"}, 403),
        ({"name": "env:HOME"}, 403),
        ({"name": "pg\0main"}, 422),
        ({"worker_id": "w/\0"}, 422),
        ({"entity_id": "x"}, 422),
        ({"entity_id": str(2**63 - 1)}, 409),
        ({"entity_id": str(2**63)}, 422),
    ):
        body = {**asked, **change}
        status, _, text = await said(
            client.post("/api/credentials/resolve", json=body, headers=ALLOWED)
        )
        assert (change, status) == (change, wanted)
        assert "c4nary" not in text
    await said(client.delete("/api/credentials/pg_main"))
    asking = client.post("/api/credentials/resolve", json=asked, headers=ALLOWED)
    assert (await said(asking))[0] == 404


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer wrong"}])
async def test_only_workers_may_ask(stand, client, headers: dict[str, str]) -> None:
    await said(client.put("/api/credentials/pg_main", json=SECRET))
    asking = client.post("/api/credentials/resolve", json=await claimed(stand), headers=headers)
    status, _, text = await said(asking)
    assert status == 401
    assert "c4nary" not in text
    assert WORKER_TOKEN not in text


async def test_a_token_that_is_no_text_is_a_wrong_one(stand) -> None:
    async with serving(stand.runtime) as url:
        reader, writer = await asyncio.open_connection(URL(url).host, URL(url).port)
        # By hand: the client sends no such header.
        head = b"POST /api/credentials/resolve HTTP/1.1\r\nHost: h\r\nConnection: close\r\n"
        writer.write(head + b"Authorization: Bearer \xff\r\nContent-Length: 0\r\n\r\n")
        assert (await reader.readline()).split()[1] == b"401"
        writer.close()


async def test_without_a_token_nothing_is_handed_out(stand) -> None:
    closed = replace(stand.runtime, worker_token=None)
    async with serving(closed) as url, aiohttp.ClientSession(url) as session:
        asking = session.post(
            "/api/credentials/resolve",
            json=await claimed(stand),
            headers={"Authorization": "Bearer None"},
        )
        assert (await said(asking))[0] == 401


def item_of(asked: dict[str, Any]) -> WorkItem:
    return WorkItem(
        kind="command",
        tenant_id=SCOPE.tenant_id,
        organization_id=SCOPE.organization_id,
        execution_id=int(asked["execution_id"]),
        entity_id=int(asked["entity_id"]),
        attempt=1,
        version=1,
        step="start",
        pool="default",
        catalog_id=1,
        catalog_version=1,
    )


async def test_a_worker_asks_in_the_name_of_what_it_holds(stand: Stand) -> None:
    clock = SystemClock()
    async with serving(stand.runtime) as url, aiohttp.ClientSession(url) as session:
        await said(session.put("/api/credentials/pg_main", json=SECRET))
        item = item_of(await claimed(stand))
        server = ApiSecrets(lambda: url, WORKER_TOKEN)
        found = LeasedCredentials(ConfiguredCredentials({}, {}), server, clock)
        try:
            with holding(item, "w/1", lambda: clock.monotonic() + 60):
                fields = await found.find("acme", "care", "pg_main")
                assert fields["dsn"] == "postgresql://u:c4nary@h/db"
                with pytest.raises(CredentialRefused, match="does not name"):
                    await found.find("acme", "care", "unnamed")
            with (
                holding(replace(item, step="lost"), "w/2", lambda: clock.monotonic() + 60),
                pytest.raises(SecretsUnavailable, match="claim anew"),
            ):
                await found.find("acme", "care", "pg_main")
            with holding(item, "w/1", lambda: clock.monotonic() + 60):
                await said(session.delete("/api/credentials/pg_main"))
                assert await found.find("acme", "care", "pg_main") == fields  # for the lease
            with (
                holding(replace(item, step="again"), "w/1", lambda: clock.monotonic() + 60),
                pytest.raises(UnknownCredential),
            ):
                await found.find("acme", "care", "pg_main")
        finally:
            await server.aclose()


@pytest.mark.parametrize(
    ("where", "token", "raised"),
    [
        (None, "t", SecretsUnavailable),
        ("http://127.0.0.1:1", "t", SecretsUnavailable),
        ("http://127.0.0.1:1", None, CredentialRefused),
    ],
)
async def test_an_api_that_is_not_there_is_said_so(where, token, raised) -> None:
    asked = {"execution_id": "1", "entity_id": "2"}
    server = ApiSecrets(lambda: where, token)
    with (
        holding(item_of(asked), "w/1", lambda: 0.0) as held,
        pytest.raises(raised) as caught,
    ):
        await server.resolve(held, "pg")
    await server.aclose()
    assert isinstance(caught.value, (Refused, SecretsUnavailable))
    assert "pg" in str(caught.value) or "does not answer" in str(caught.value)
