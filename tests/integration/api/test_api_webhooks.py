"""Webhooks on the real log: a stored secret, one execution for each key, limits, pauses."""

from __future__ import annotations

import asyncio

import pytest

from streams.app import subscriptions_of
from tests.support.api.server import SCOPE, Client, Stand
from tests.support.log.databases import root_events
from tests.support.subscription.webhooks import SECRET, deliver, signed, webhook

pytestmark = pytest.mark.stack
BODY = b'{"order_id": "o-1"}'


async def register(client: Client, name: str, **limits: int) -> None:
    """Store the secret and register a webhook, both over HTTP."""
    credential = {"kind": "secret", "fields": {"secret": SECRET}}
    async with client.put("/api/credentials/hook_secret", json=credential) as answer:
        assert answer.status in (200, 201)
    spec = {"dispatch": {"playbook": "examples/load"}, "limits": limits}
    text = webhook(spec if limits else {"dispatch": spec["dispatch"]}, at=f"/ingress/{name}")
    async with client.post("/api/catalog", json={"content": text, "path": f"shop/{name}"}) as made:
        assert made.status == 201, await made.text()


async def test_a_key_is_one_execution_however_often_and_at_once_it_is_sent(
    client: Client, stand: Stand
) -> None:
    await register(client, "keyed")
    sent = [{**signed(BODY), "Idempotency-Key": f"k-{number % 4}"} for number in range(40)]
    answers = await asyncio.gather(*(deliver(client, BODY, one, "keyed") for one in sent))
    assert sorted(status for status, _, _ in answers) == [200] * 36 + [202] * 4
    ids = {made["execution_id"] for _, made, _ in answers}
    assert len(ids) == 4
    for execution_id in ids:
        (event,) = await root_events(stand.log.store, int(execution_id))
        assert (event.type, event.meta["subscription"]) == ("playbook.initialized", "shop/keyed")
        assert SECRET not in str(event)


async def test_a_large_body_is_stored_as_a_payload(client: Client, stand: Stand) -> None:
    await register(client, "large")
    body = b'{"text": "%s"}' % (b"x" * 1_000_000)
    status, made, _ = await deliver(client, body, at="large")
    assert status == 202
    (event,) = await root_events(stand.log.store, int(made["execution_id"]))
    assert event.context is None
    assert event.payload_ref is not None
    assert b"x" * 1_000_000 in await stand.runtime.payloads.get(event.payload_ref)


async def test_limit_pause_and_a_secret_of_another_are_answered(
    client: Client, stand: Stand
) -> None:
    await register(client, "limited", max_in_flight=2)
    statuses = [(await deliver(client, BODY, at="limited"))[0] for _ in range(3)]
    assert statuses == [202, 202, 429]
    assert (await deliver(client, BODY, signed(BODY, "wrong"), "limited"))[0] == 401
    await subscriptions_of(stand.log).pause(SCOPE, "shop/limited")
    status, _, headers = await deliver(client, BODY, at="limited")
    assert (status, headers["Retry-After"]) == (503, "60")
    async with client.delete("/api/credentials/hook_secret") as answer:
        assert answer.status == 200
    assert (await deliver(client, BODY, at="limited"))[0] == 503
