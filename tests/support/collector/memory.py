"""A collector's world in memory: its ledger, its objects, a store and a clock."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from streams.clock import SettableClock
from streams.collector.collect import CollectionReport, collect
from streams.collector.core import EventExtract, Names, RootHolding, RootState, hold
from streams.collector.errors import LockLost
from streams.collector.port import NO_ENDS, CollectorPorts, Ends
from streams.events.model import PayloadRef
from streams.log.memory import MemoryEventStore
from streams.payload.objects.memory import MemoryObjects
from streams.payload.port import JSON, Compression, Scope
from streams.payload.store import ContentStore
from tests.support.events.examples import PRODUCER, codec

ACME = Scope("acme", "care")


@dataclass(slots=True)
class MemorySnapshot:
    """The roots as they are now."""

    now: datetime
    roots: Mapping[int, tuple[RootState, list[EventExtract]]]

    async def holdings(
        self, execution_ids: Collection[int] | None = None, ended: Ends = NO_ENDS
    ) -> AsyncIterator[RootHolding]:
        for root, extracts in self.roots.values():
            if execution_ids is None or root.id in execution_ids:
                yield hold(root, extracts, ended.get(root.id, ()))

    async def holding(self, execution_id: int, ended: Ends = NO_ENDS) -> RootHolding | None:
        return (
            hold(*self.roots[execution_id], ended.get(execution_id, ()))
            if execution_id in self.roots
            else None
        )

    async def perhaps_due(self, grace: timedelta) -> Collection[int]:
        return list(self.roots)

    async def open_since(self) -> Mapping[str, datetime]:
        return {}

    async def workflows_ended(self, execution_ids: Collection[int]) -> Mapping[int, datetime]:
        ended = {id_: self.roots[id_][0].ended_at for id_ in execution_ids if id_ in self.roots}
        return {id_: at for id_, at in ended.items() if at is not None}


@dataclass(slots=True)
class MemoryLedger:
    """Keeps what is remembered in a dictionary; its lock can be taken away."""

    clock: SettableClock
    roots: dict[int, tuple[RootState, list[EventExtract]]] = field(default_factory=dict)
    remembered: dict[str, Names] = field(default_factory=dict)
    checks_left: int | None = None
    swept_at: datetime | None = None

    @asynccontextmanager
    async def lock(self) -> AsyncIterator[None]:
        yield

    async def check_lock(self) -> None:
        if self.checks_left is not None:
            if not self.checks_left:
                raise LockLost
            self.checks_left -= 1

    async def log_id(self) -> str:
        return "this log"

    async def swept_ago(self) -> timedelta | None:
        return None if self.swept_at is None else self.clock.now() - self.swept_at

    async def mark_swept(self) -> None:
        self.swept_at = self.clock.now()

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[MemorySnapshot]:
        yield MemorySnapshot(self.clock.now(), self.roots)

    async def links(self, keys: Collection[str]) -> Mapping[str, Names]:
        return {key: self.remembered[key] for key in keys if key in self.remembered}

    async def store_links(self, links: Mapping[str, Names]) -> None:
        self.remembered.update(links)

    async def delete_links(self, keys: Collection[str]) -> None:
        for key in keys:
            self.remembered.pop(key, None)


class World:
    """Executions that name payloads, and a collector over them, at a time of the test's choice."""

    def __init__(
        self, kind: type[MemoryObjects] = MemoryObjects, compression: Compression = "none"
    ) -> None:
        self.clock = SettableClock(datetime(2026, 1, 1, tzinfo=UTC))
        self.ledger = MemoryLedger(self.clock)
        self.objects = kind(now=self.clock.now)
        self.store = ContentStore(self.objects, compression=compression, known_s=0)
        ids = count(1000)
        self.log = MemoryEventStore(
            codec=codec(), producer=PRODUCER, next_id=lambda: next(ids), clock=self.clock
        )
        self.ports = CollectorPorts(self.ledger, self.log, self.objects)

    async def put(self, data: bytes, scope: Scope = ACME) -> PayloadRef:
        return await self.store.put(scope, data, media_type=JSON)

    def name(self, *refs: PayloadRef, root_id: int = 7, scope: Scope = ACME) -> None:
        """Let the events of an execution that has ended carry these payloads."""
        digests = [(ref.sha256, frozenset([ref.sha256])) for ref in refs]
        self.ledger.roots[root_id] = (
            RootState(
                root_id, "execution", scope.tenant_id, scope.organization_id, self.clock.now()
            ),
            [
                EventExtract(seq, named, sure=named, own=digest)
                for seq, (digest, named) in enumerate(digests, 1)
            ],
        )

    async def collect(self, *, hours_later: float = 0.0, **options: Any) -> CollectionReport:
        self.clock.advance(3600 * hours_later)
        return await collect(self.ports, **{"claim": True, **options})
