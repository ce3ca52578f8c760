"""An API over a real log and real tables, whose projector runs when a test says so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import asyncpg
from aiohttp.test_utils import TestClient

from streams.api.postgres import PostgresProjectionReader
from streams.api.runtime import ApiRuntime
from streams.app import (
    Log,
    business_queries_of,
    credentials_of,
    forks_of,
    open_log,
    open_pool,
    organization_replay_of,
    producer,
    replay_of,
    subscriptions_of,
)
from streams.catalog.catalog import Catalog
from streams.catalog.postgres import PostgresCatalogEvents
from streams.catalog.texts import RegisteredTexts
from streams.clock import SystemClock
from streams.credential.keys import keys_from, new_key
from streams.credential.resolve import Resolver
from streams.credential.subscribed import SubscriptionSecrets
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import Scope
from streams.projector.business.declared import Declared
from streams.projector.heads import PostgresRootHeads
from streams.projector.postgres import PostgresProjections
from streams.projector.rebuild import rebuild
from streams.replay.business import BusinessReplay
from streams.replay.postgres import PostgresStoredLog
from streams.replay.verified import VerifiedLog
from streams.schema.registry import MemoryRegistry
from streams.settings import Settings
from streams.subscription.bodies import BodyReader
from streams.trigger.catalog import CatalogPlaybooks
from streams.trigger.entries import EntryPorts
from streams.trigger.postgres import PostgresTriggerLedger
from streams.trigger.subscriptions.starting import FixedTopicId
from streams.trigger.subscriptions.webhook import WebhookReceiver
from tests.support.log.databases import dsn, settled
from tests.support.projector.business import StoredTables
from tests.support.projector.executions import Story

Client = TestClient[Any, Any]
SCOPE = Scope("acme", "care")
KEYS = keys_from(new_key(), None)
OPERATOR_TOKEN = "the-operators"
WORKER_TOKEN = "only-for-workers"


PLAYBOOK = """\
apiVersion: noetl.io/v2
kind: Playbook
metadata: {name: load, path: examples/load}
workflow:
  - step: start
    tool: {kind: noop}
"""


@dataclass(frozen=True)
class Stand:
    """The API's ports, and a projector to call."""

    log: Log
    runtime: ApiRuntime
    projections: PostgresProjections
    reading: asyncpg.Pool

    async def project(self) -> None:
        """Fold what the log has into the tables."""
        await settled(self.reading)
        await rebuild(PostgresRootHeads(self.reading), self.log.store, self.projections)


@asynccontextmanager
async def open_stand(settings: Settings) -> AsyncIterator[Stand]:
    """Open everything an API needs, on the log that the settings name."""
    async with (
        open_log(settings, role="test") as log,
        open_pool(dsn(settings, "read")) as reading,
        open_pool(dsn(settings, "append")) as appending,
        open_pool(dsn(settings, "project")) as projecting,
    ):
        payloads = MemoryPayloadStore()
        catalog = Catalog(
            log.store,
            PostgresCatalogEvents(appending, log.codec),
            next_id=log.ids.next,
            clock=SystemClock(),
            payloads=payloads,
        )
        credentials = credentials_of(log, settings)
        ledger = PostgresTriggerLedger(
            appending,
            codec=log.codec,
            take_ids=log.ids.take,
            producer=producer(settings, "api"),
        )
        webhooks = WebhookReceiver(
            subscriptions_of(log, payloads),
            SubscriptionSecrets(credentials, KEYS, {}),
            ledger,
            EntryPorts(
                playbooks=CatalogPlaybooks(catalog),
                topic_ids=FixedTopicId("http"),
                payloads=payloads,
                take_ids=log.ids.take,
                clock=SystemClock(),
            ),
            BodyReader(MemoryRegistry()),
            inline_bytes=30_000,
        )
        runtime = ApiRuntime(
            log=log.store,
            projections=PostgresProjectionReader(reading),
            ledger=ledger,
            catalog=catalog,
            payloads=payloads,
            replay=replay_of(reading, log.codec, settings),
            organizations=organization_replay_of(reading, log.codec, settings),
            operator_token=OPERATOR_TOKEN,
            business_replay=BusinessReplay(
                replay_of(reading, log.codec, settings),
                VerifiedLog(PostgresStoredLog(reading), log.codec),
                Declared(RegisteredTexts(log.store, payloads)),
                StoredTables(payloads),
            ),
            business=business_queries_of(reading),
            forks=forks_of(reading, log.codec, catalog, payloads),
            next_id=log.ids.next,
            clock=SystemClock(),
            scope=SCOPE,
            credentials=credentials,
            keys=KEYS,
            resolver=Resolver(credentials, KEYS, catalog, {}),
            worker_token=WORKER_TOKEN,
            webhooks=webhooks,
        )
        yield Stand(log, runtime, PostgresProjections(projecting), reading)


async def post(client: Client, path: str, body: Any = None, **kw: Any) -> tuple[int, Any]:
    async with client.post(path, json=body, **kw) as answer:
        return answer.status, await answer.json(content_type=None)


async def get(client: Client, path: str, **kw: Any) -> tuple[int, Any]:
    async with client.get(path, **kw) as answer:
        return answer.status, await answer.json(content_type=None)


async def begun(stand: Stand, *, frames: int = 2) -> Story:
    """An execution whose stage has frames that wait, projected."""
    story = Story(stand.log.ids.take(100)[0])
    first = [story.began(), story.entered(), story.loop_started(), story.opened()]
    dispatched = [story.dispatched(number) for number in range(frames)]
    await stand.log.store.append([*first, *dispatched, story.issued(pool=f"p{story.root.id}")])
    await stand.project()
    return story
