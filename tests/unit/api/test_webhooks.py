"""Webhooks over HTTP: who may start executions, how often, and what the playbook sees."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from streams.catalog.catalog import Catalog
from streams.catalog.errors import TakenWebhook
from streams.payload.port import Scope
from tests.support.subscription.memory import SCOPE
from tests.support.subscription.webhooks import (
    BEARER,
    SECRET,
    Client,
    WebhookShop,
    deliver,
    signed,
    webhook,
)

BODY = b'{"order_id": "o-1", "amount": 5}'


@pytest.fixture
def shop() -> WebhookShop:
    return WebhookShop()


@pytest.fixture
async def client(shop: WebhookShop) -> AsyncIterator[Client]:
    async with shop.client() as opened:
        yield opened


async def test_a_signed_request_starts_an_execution_with_its_body(
    shop: WebhookShop, client: Client
) -> None:
    await shop.register_hook(webhook())
    status, made, _ = await deliver(
        client, BODY, {**signed(BODY), "X-Kind": "new", "Cookie": "session=1"}, "orders?try=2"
    )
    assert (status, made["is_new"], made["subscription"]) == (202, True, "shop/hook")
    (event,) = await shop.started()
    assert str(event.root.id) == made["execution_id"]
    (workload,) = await shop.workloads()
    assert (workload["order_id"], workload["amount"]) == ("o-1", 5)
    assert (workload["subscription"], workload["source"]) == ("shop/hook", "webhook")
    message = workload["message"]
    assert message["metadata"] == {"path": "/ingress/orders", "query": {"try": "2"}}
    assert message["headers"]["x-kind"] == "new"
    assert not {"x-signature", "cookie", "authorization"} & set(message["headers"])
    assert {"X-Signature", "Cookie"}.isdisjoint(message["attributes"])


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"X-Signature": "sha256=00"},
        {"X-Signature": ""},
        {"X-Signature": "é"},
        signed(BODY, "another secret"),
        signed(b"another body"),
        {"Authorization": f"Bearer {SECRET}"},
    ],
)
async def test_a_request_without_a_valid_signature_starts_nothing(
    shop: WebhookShop, client: Client, headers: dict[str, str]
) -> None:
    await shop.register_hook(webhook())
    status, problem, _ = await deliver(client, BODY, headers)
    assert (status, problem["type"]) == (401, "urn:noetl:problem:not-verified")
    assert await shop.started() == []


@pytest.mark.parametrize(
    ("header", "value", "status"),
    [
        ("Authorization", f"Bearer {SECRET}", 202),
        ("Authorization", f"bearer  {SECRET}", 202),
        ("Authorization", f"Bearer {SECRET}x", 401),
        ("Authorization", "Bearer", 401),
        ("X-Token", SECRET, 401),
    ],
)
async def test_a_bearer_token_is_compared(
    shop: WebhookShop, client: Client, header: str, value: str, status: int
) -> None:
    await shop.register_hook(webhook(verify=BEARER))
    assert (await deliver(client, BODY, {header: value}))[0] == status


async def test_the_token_may_be_in_another_header(shop: WebhookShop, client: Client) -> None:
    await shop.register_hook(webhook(verify={**BEARER, "header": "X-Token"}))
    assert (await deliver(client, BODY, {"X-Token": SECRET}))[0] == 202
    (workload,) = await shop.workloads()
    assert "x-token" not in workload["message"]["headers"]


async def test_requests_with_one_key_start_one_execution(shop: WebhookShop, client: Client) -> None:
    await shop.register_hook(webhook())
    headers = {**signed(BODY), "Idempotency-Key": "o-1"}
    answers = [await deliver(client, BODY, headers) for _ in range(3)]
    assert [status for status, _, _ in answers] == [202, 200, 200]
    assert len({made["execution_id"] for _, made, _ in answers}) == 1
    assert len(await shop.started()) == 1
    (workload,) = await shop.workloads()
    assert workload["message"]["id"] == "o-1"


async def test_the_key_of_a_directive_wins_and_without_one_each_request_starts(
    shop: WebhookShop, client: Client
) -> None:
    directive = {"header": "x-order", "controls": "idempotency_key"}
    await shop.register_hook(webhook({"headers": {"directives": [directive]}}))
    one = {**signed(BODY), "X-Order": "7", "Idempotency-Key": "a"}
    other = {**signed(BODY), "X-Order": "7", "Idempotency-Key": "b"}
    assert [(await deliver(client, BODY, sent))[0] for sent in (one, other)] == [202, 200]
    assert [(await deliver(client, BODY))[0] for _ in range(2)] == [202, 202]
    assert len(await shop.started()) == 3


async def test_directives_choose_the_playbook_among_the_allowed_ones(
    shop: WebhookShop, client: Client
) -> None:
    directive = {
        "header": "x-route",
        "controls": "dispatch.playbook",
        "allowed": ["shop/order", "shop/return"],
    }
    await shop.register_hook(webhook({"headers": {"directives": [directive]}}))
    status, _, _ = await deliver(client, BODY, {**signed(BODY), "X-Route": "shop/return"})
    assert status == 202
    (event,) = await shop.started()
    assert event.meta["path"] == "shop/return"
    status, problem, _ = await deliver(client, BODY, {**signed(BODY), "X-Route": "shop/steal"})
    assert (status, problem["type"]) == (422, "urn:noetl:problem:unusable-message")
    assert "not allowed" in problem["detail"]


async def test_a_paused_webhook_asks_to_come_again(shop: WebhookShop, client: Client) -> None:
    await shop.register_hook(webhook())
    await shop.subscriptions.pause(SCOPE, "shop/hook")
    status, problem, headers = await deliver(client, BODY)
    assert (status, problem["type"]) == (503, "urn:noetl:problem:webhook-paused")
    assert headers["Retry-After"] == "60"
    assert (await deliver(client, BODY, {}))[0] == 401
    await shop.subscriptions.resume(SCOPE, "shop/hook")
    assert (await deliver(client, BODY))[0] == 202


async def test_limits_refuse_what_is_above_them(shop: WebhookShop, client: Client) -> None:
    await shop.register_hook(webhook({"limits": {"max_in_flight": 2}}))
    answers = [await deliver(client, BODY) for _ in range(3)]
    assert [status for status, _, _ in answers] == [202, 202, 429]
    assert "max_in_flight is 2" in answers[2][1]["detail"]
    assert int(answers[2][2]["Retry-After"]) > 0
    await shop.register_hook(webhook({"limits": {"max_dispatch_per_sec": 1}}))
    assert [(await deliver(client, BODY))[0] for _ in range(2)] == [202, 429]
    await asyncio.sleep(1.05)
    assert (await deliver(client, BODY))[0] == 202


@pytest.mark.parametrize(
    ("body", "detail"),
    [(b"{", "the body is not JSON"), (b"", "the body is not JSON"), (b"\x00\x01", "not Avro")],
)
async def test_a_body_that_cannot_be_used_is_refused(
    shop: WebhookShop, client: Client, body: bytes, detail: str
) -> None:
    await shop.register_hook(webhook())
    status, problem, _ = await deliver(client, body)
    assert status == 422
    assert detail in problem["detail"]
    assert await shop.started() == []


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [("message.body", {"body": "plain text"}), ("message.attributes", {"X-Kind": "new"})],
)
async def test_payload_from_chooses_the_top_of_the_workload(
    shop: WebhookShop, client: Client, chosen: str, expected: dict[str, Any]
) -> None:
    dispatch = {"playbook": "shop/order", "payload_from": chosen}
    await shop.register_hook(webhook({"dispatch": dispatch}))
    body = b"plain text"
    status, _, _ = await deliver(client, body, {**signed(body), "X-Kind": "new"})
    assert status == 202
    (workload,) = await shop.workloads()
    assert expected.items() <= workload.items()


async def test_a_path_that_is_not_one_webhooks_is_refused(
    shop: WebhookShop, client: Client
) -> None:
    assert (await deliver(client, BODY))[0] == 404
    await shop.register_hook(webhook())
    elsewhere = {**signed(BODY), "Noetl-Tenant": "globex"}
    assert (await deliver(client, BODY, elsewhere))[0] == 404
    await shop.catalog.register(Scope("globex", "care"), webhook())
    assert [(await deliver(client, BODY, sent))[0] for sent in (elsewhere, None)] == [202, 202]


async def test_a_gateway_path_belongs_to_one_subscription(
    shop: WebhookShop, client: Client
) -> None:
    await shop.register_hook(webhook())
    with pytest.raises(TakenWebhook, match="/ingress/orders belongs to the subscription shop/hook"):
        await shop.register_hook(webhook(path="shop/second"))
    await shop.register_hook(webhook(verify=BEARER))
    await shop.register_hook(webhook(path="shop/second", at="/ingress/others"))
    assert (await deliver(client, BODY, {"Authorization": f"Bearer {SECRET}"}))[0] == 202


async def test_webhooks_that_were_registered_at_once_under_one_path_are_refused(
    shop: WebhookShop, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def unchecked(*_: object) -> None:
        return None

    monkeypatch.setattr(Catalog, "_check_webhook", unchecked)
    await shop.register_hook(webhook())
    await shop.register_hook(webhook(path="shop/second"))
    status, problem, _ = await deliver(client, BODY)
    assert (status, problem["type"]) == (409, "urn:noetl:problem:shared-path")


async def test_an_unknown_playbook_is_named(shop: WebhookShop, client: Client) -> None:
    await shop.register_hook(webhook({"dispatch": {"playbook": "shop/none"}}))
    status, problem, _ = await deliver(client, BODY)
    assert (status, problem["type"]) == (422, "urn:noetl:problem:bad-trigger")
    assert "no playbook shop/none is registered" in problem["detail"]


async def test_a_missing_secret_is_not_named_to_the_sender(
    shop: WebhookShop, client: Client
) -> None:
    await shop.register_hook(webhook())
    shop.secrets.credentials = {"hook_secret": {"token": "x"}}
    first = await deliver(client, BODY)
    shop.secrets.credentials = {}
    for status, problem, _ in (first, await deliver(client, BODY)):
        assert (status, problem["type"]) == (503, "urn:noetl:problem:secret-unavailable")
        assert "hook_secret" not in str(problem)
