"""Webhooks over a log in memory: documents, signatures, and a client of the API."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, cast

import yaml
from aiohttp.test_utils import TestClient, TestServer

from streams.api.runtime import ApiRuntime
from streams.api.server import make_app
from streams.credential.errors import NoCredential
from streams.payload.port import Scope
from streams.subscription.bodies import BodyReader
from streams.trigger.entries import EntryPorts
from streams.trigger.subscriptions.starting import FixedTopicId
from streams.trigger.subscriptions.webhook import WebhookReceiver
from tests.support.subscription.memory import SCOPE, Shop

Client = TestClient[Any, Any]
SECRET = "whsec_test_key"
HMAC = {"type": "hmac_sha256", "secret": "hook_secret"}
BEARER = {"type": "bearer", "secret": "hook_secret"}


def webhook(
    spec: dict[str, Any] | None = None,
    *,
    verify: dict[str, Any] = HMAC,
    at: str = "/ingress/orders",
    path: str = "shop/hook",
) -> str:
    whole = {
        "apiVersion": "noetl.io/v1",
        "kind": "Subscription",
        "metadata": {"name": "hook", "path": path},
        "spec": {
            "source": "webhook",
            "mode": "push",
            "ingress": {"gateway_path": at, "verify": verify},
            "dispatch": {"playbook": "shop/order"},
            **(spec or {}),
        },
    }
    return yaml.safe_dump(whole, sort_keys=False)


def signed(body: bytes, secret: str = SECRET) -> dict[str, str]:
    """Return the header that proves the sender of a body."""
    return {"X-Signature": "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()}


class KnownSecrets:
    """Credentials that subscriptions may name."""

    def __init__(self, fields: Mapping[str, Mapping[str, str]]) -> None:
        self.credentials = dict(fields)

    async def fields(self, scope: Scope, catalog_id: int, name: str) -> Mapping[str, str]:
        if name not in self.credentials:
            raise NoCredential(name)
        return self.credentials[name]


class WebhookShop(Shop):
    """A shop whose API takes webhooks."""

    def __init__(self) -> None:
        super().__init__()
        self.secrets = KnownSecrets({"hook_secret": {"secret": SECRET}})

    async def register_hook(self, text: str) -> None:
        await self.catalog.register(SCOPE, text)

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        none, ports = cast(Any, None), self.ports
        entries = EntryPorts(
            playbooks=ports.playbooks,
            topic_ids=FixedTopicId("http"),
            payloads=ports.payloads,
            take_ids=ports.take_ids,
            clock=ports.clock,
        )
        receiver = WebhookReceiver(
            self.subscriptions,
            cast(Any, self.secrets),
            self.ledger,
            entries,
            BodyReader(self.registry),
            inline_bytes=30_000,
        )
        runtime = ApiRuntime(
            log=self.log,
            projections=none,
            ledger=self.ledger,
            catalog=self.catalog,
            payloads=ports.payloads,
            replay=none,
            organizations=none,
            business_replay=none,
            business=none,
            forks=none,
            next_id=none,
            clock=ports.clock,
            scope=SCOPE,
            credentials=none,
            keys=none,
            resolver=none,
            webhooks=receiver,
        )
        async with TestClient(TestServer(make_app(runtime))) as opened:
            yield opened


async def deliver(
    client: Client, body: bytes, headers: Mapping[str, str] | None = None, at: str = "orders"
) -> tuple[int, Any, Mapping[str, str]]:
    """Post a body, signed unless headers are given; return status, answer and headers."""
    sent = signed(body) if headers is None else headers
    async with client.post(f"/ingress/{at}", data=body, headers=sent) as answer:
        return answer.status, await answer.json(content_type=None), answer.headers
