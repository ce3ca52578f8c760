"""An API over a real log and real tables, whose projector runs when a test says so."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from streams.api.postgres import PostgresSeen
from streams.api.runtime import Runtime
from streams.app import Log, credentials_of, open_log, open_pool, producer
from streams.catalog.catalog import Catalog
from streams.catalog.postgres import PostgresCatalogEvents
from streams.clock import SystemClock
from streams.credential.keys import keys_from, new_key
from streams.credential.resolve import Resolver
from streams.payload.memory import MemoryPayloadStore
from streams.payload.port import Scope
from streams.projector.postgres import PostgresProjections
from streams.projector.rebuild import rebuild
from streams.settings import Settings
from streams.trigger.postgres import PostgresLedger
from tests.logs import dsn

SCOPE = Scope("acme", "care")
KEYS = keys_from(new_key(), None)
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
        payloads = MemoryPayloadStore()
        catalog = Catalog(
            log.store,
            PostgresCatalogEvents(appending, log.codec),
            next_id=log.ids.next,
            clock=SystemClock(),
            payloads=payloads,
        )
        credentials = credentials_of(log, settings)
        runtime = Runtime(
            log=log.store,
            seen=PostgresSeen(reading),
            ledger=PostgresLedger(
                appending,
                codec=log.codec,
                take_ids=log.ids.take,
                producer=producer(settings, "api"),
            ),
            catalog=catalog,
            payloads=payloads,
            next_id=log.ids.next,
            clock=SystemClock(),
            scope=SCOPE,
            credentials=credentials,
            keys=KEYS,
            resolver=Resolver(credentials, KEYS, catalog, {}),
            worker_token=WORKER_TOKEN,
        )
        yield Stand(log, runtime, PostgresProjections(projecting))
