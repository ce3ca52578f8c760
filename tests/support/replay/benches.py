"""A log in memory with its payloads, as replay, audits and bundles read them."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable, Sequence
from dataclasses import replace
from pathlib import Path

from streams.clock import SystemClock
from streams.events.model import Event, NewEvent, PayloadRef, Root
from streams.log.memory import MemoryEventStore
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import JSON, Scope
from streams.projector.memory import MemoryProjections
from streams.projector.views import Views, by_root
from streams.replay.audit.execution import ExecutionAudit
from streams.replay.audit.memory import MemoryProjectedRows
from streams.replay.bundle.export import BundleExport, BundleSources
from streams.replay.bundle.manifest import Manifest
from streams.replay.memory import MemoryStoredLog
from streams.replay.payload_index import PayloadIndex
from streams.replay.state import Replay
from streams.replay.verified import VerifiedLog
from streams.resources import folder
from streams.schema.registry import FileRegistry
from tests.support.events.examples import codec
from tests.support.projector.executions import Story, memory_log, stored_events

SCOPE = Scope("acme", "care")


class ReplayBench:
    """A log, a payload store and replay of them."""

    def __init__(self) -> None:
        self.stored = MemoryStoredLog()
        self.payloads = MemoryPayloadStore()
        self.log: MemoryEventStore = memory_log(self.stored.mirror)
        self.verified = VerifiedLog(self.stored, codec())
        self.replay = Replay(self.stored, self.verified, SystemClock())
        self.children: dict[int, list[int]] = {}
        self.tables = MemoryProjections()
        self.rows = MemoryProjectedRows(self.tables)

    async def append(self, events: Sequence[NewEvent]) -> list[Event]:
        """Append events one by one; return all events of their root."""
        for event in events:
            await self.log.append([event])
        return await stored_events(self.log, events[0].root)

    async def with_payloads(self, execution_id: int) -> list[Event]:
        """Append an execution whose two commits refer to payloads."""
        return await self.append([await self._carried(one) for one in Story(execution_id).whole()])

    async def _carried(self, event: NewEvent) -> NewEvent:
        if event.type != "frame.committed":
            return event
        data = f'["rows of {event.idempotency_key}"]'.encode()
        return replace(event, payload_ref=await self.put(data))

    async def put(self, data: bytes) -> PayloadRef:
        """Store a payload."""
        return await self.payloads.put(SCOPE, data, media_type=JSON)

    async def project(self, events: Sequence[Event], *, snapshots: int | None = None) -> None:
        """Project events, in batches of three."""
        views = Views(self.log, snapshot_interval=snapshots)
        for begin in range(0, len(events), 3):
            folded = await views.fold(by_root(events[begin : begin + 3]))
            await self.tables.save(folded.changes, ())
            views.remember(folded)

    def audit(self, *, payloads: bool = True) -> ExecutionAudit:
        """Return an audit of all this."""
        store = self.payloads if payloads else None
        return ExecutionAudit(self.stored, self.verified, self.rows, store)

    async def children_of(self, execution_id: int) -> Sequence[int]:
        """Return the children that the test declared."""
        return self.children.get(execution_id, ())

    async def export(
        self,
        execution_id: int,
        file: Path,
        *,
        payloads: bool = True,
        children: bool = False,
        before_writing: Callable[[], None] = lambda: None,
    ) -> Manifest:
        """Write a bundle."""
        sources = BundleSources(
            self.stored,
            FileRegistry(folder("avro_schemas")),
            codec(),
            self.payloads if payloads else None,
            self if children else None,
        )
        with PayloadIndex() as index:
            export = BundleExport(sources, SCOPE, index)
            manifest = await export.prepare(execution_id)
            before_writing()
            write(file, await _joined(export.chunks(manifest)))
        return manifest


async def _joined(chunks: AsyncIterable[bytes]) -> bytes:
    return b"".join([chunk async for chunk in chunks])


def read(file: Path) -> bytes:
    """Return a file's bytes."""
    return file.read_bytes()


def write(file: Path, data: bytes) -> None:
    """Replace a file's bytes."""
    file.write_bytes(data)


def root_of(execution_id: int) -> Root:
    """Return the root of an execution."""
    return Root("execution", execution_id)
