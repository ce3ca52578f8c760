"""An API over a real log and real tables, whose projector runs when a test says so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from hashlib import sha256

from streams.api.port import Registered
from streams.api.postgres import PostgresSeen
from streams.api.runtime import Runtime
from streams.app import Log, open_log, open_pool, producer
from streams.clock import SystemClock
from streams.envelope.model import NewEvent, Root
from streams.payload.memory import MemoryPayloadStore
from streams.payload.port import Scope
from streams.projector.postgres import PostgresProjections
from streams.projector.rebuild import rebuild
from streams.settings import Settings
from streams.trigger.memory import MemoryPlaybooks
from streams.trigger.port import Playbook
from streams.trigger.postgres import PostgresLedger
from tests.logs import dsn

SCOPE = Scope("acme", "care")


@dataclass(frozen=True)
class LogCatalog:
    """Registers straight into the log; the real catalog's rules are tested elsewhere."""

    log: Log

    async def register(self, scope: Scope, content: str, path: str | None) -> Registered:
        catalog_id = self.log.ids.next()
        meta = {"path": path or "a/b", "version": 1, "kind": "playbook"}
        event = NewEvent(
            type="catalog.registered",
            root=Root("catalog", catalog_id),
            tenant_id=scope.tenant_id,
            organization_id=scope.organization_id,
            idempotency_key="version/1",
            event_time=SystemClock().now(),
            meta={**meta, "content_sha256": sha256(content.encode()).hexdigest()},
            context={"content": content},
        )
        await self.log.store.append([event])
        return Registered(catalog_id, 1, path or "a/b")


@dataclass(frozen=True)
class Stand:
    """The API's ports, and a projector to call."""

    log: Log
    runtime: Runtime
    projections: PostgresProjections

    async def project(self) -> None:
        """Fold what the log has into the tables."""
        await rebuild(self.log.store, self.projections)


@asynccontextmanager
async def open_stand(settings: Settings) -> AsyncIterator[Stand]:
    """Open everything an API needs, on the log that the settings name."""
    async with (
        open_log(settings, role="test") as log,
        open_pool(dsn(settings, "read")) as reading,
        open_pool(dsn(settings, "append")) as appending,
        open_pool(dsn(settings, "project")) as projecting,
    ):
        runtime = Runtime(
            log=log.store,
            seen=PostgresSeen(reading),
            ledger=PostgresLedger(
                appending,
                codec=log.codec,
                take_ids=log.ids.take,
                producer=producer(settings, "api"),
            ),
            playbooks=MemoryPlaybooks({"examples/load": [Playbook(9, 1), Playbook(9, 2)]}),
            catalog=LogCatalog(log),
            payloads=MemoryPayloadStore(),
            next_id=log.ids.next,
            clock=SystemClock(),
            scope=SCOPE,
        )
        yield Stand(log, runtime, PostgresProjections(projecting))
