"""Executions whose frames return rows, and projections of these rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pyarrow as pa

from streams.clock import SystemClock
from streams.events.model import Event, Json, NewEvent, PayloadRef
from streams.log.memory import MemoryEventStore
from streams.payload.arrow.rows import encode_rows, read_table
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import ARROW, Scope
from streams.projector.business.core import checksum_of
from streams.projector.business.declared import Declared, MemoryTexts
from streams.projector.business.fold import BusinessFolds
from streams.projector.business.memory import MemoryBusiness
from streams.projector.business.plugins import PluginFold
from streams.projector.business.port import BusinessStates
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
from streams.projector.memory import MemoryProjections
from streams.projector.outputs import Outputs
from streams.projector.views import Views, by_root
from streams.replay.business import BusinessReplay
from streams.replay.memory import MemoryStoredLog
from streams.replay.state import Replay
from streams.replay.verified import VerifiedLog
from tests.support.events.examples import codec
from tests.support.projector.executions import Story, memory_log, stored_events

CARE = Scope("acme", "care")
CATALOG_ID = 9
PLAYBOOK = """
apiVersion: noetl.io/v2
kind: Playbook
metadata: {path: examples/load}
workflow:
  - step: load
    loop: {in: "{{ workload.list }}", iterator: row}
    tool: {kind: noop}
projections:
  - name: patients
    source: {step: load}
    key: facility
    aggregates:
      patients: {distinct: patient}
      rows: {count: "*"}
      scores: {sum: score}
      least: {min: score}
      most: {max: score}
      latest: {last: score}
    where: {kind: [mds, vital]}
  - name: frames
    source: {event: frame.committed}
    key: [node_name, status]
    aggregates: {frames: {count: "*"}, rows: {sum: rows}}
"""


class StoredTables:
    """Reads the rows of payloads in memory, and counts how often."""

    def __init__(self, payloads: MemoryPayloadStore) -> None:
        self._payloads = payloads
        self.reads: list[str] = []

    async def table(self, ref: PayloadRef) -> pa.Table:
        """Return the rows behind `ref`."""
        self.reads.append(ref.uri)
        return read_table(await self._payloads.get(ref), ref.uri)


class BusinessBench:
    """A log, payloads, and what a projector of business projections needs."""

    def __init__(self, text: str = PLAYBOOK, plugins: Sequence[PluginFold] = ()) -> None:
        self.stored = MemoryStoredLog()
        self.log: MemoryEventStore = memory_log(self.stored.mirror)
        self.payloads = MemoryPayloadStore()
        self.tables = StoredTables(self.payloads)
        self.store = MemoryProjections()
        self.texts = {(CATALOG_ID, 1): text}
        versions = MemoryBusiness(self.store)
        self.declared = Declared(MemoryTexts(self.texts), plugins, versions)

    def folds(self, store: MemoryProjections | None = None) -> BusinessFolds:
        """Return the live fold over a store."""
        return self.folds_of(MemoryBusiness(store or self.store))

    def folds_of(self, states: BusinessStates) -> BusinessFolds:
        """Return the live fold over any states."""
        return BusinessFolds(self.log, Outputs(self.tables), self.declared, states)

    def replay(self) -> BusinessReplay:
        """Return the replay of the log."""
        events = VerifiedLog(self.stored, codec())
        replay = Replay(self.stored, events, SystemClock())
        return BusinessReplay(replay, events, self.declared, self.tables)

    async def put(self, rows: Sequence[Json]) -> PayloadRef:
        """Store the rows of a frame."""
        encoded = encode_rows(rows)
        return await self.payloads.put(
            CARE,
            encoded.data,
            media_type=ARROW,
            row_count=encoded.row_count,
            schema_digest=encoded.schema_digest,
        )

    async def run(self, execution_id: int, *frames: Sequence[Json]) -> list[Event]:
        """Append an execution whose frames return these rows; the first one has a checkpoint."""
        story = Story(execution_id, catalog_id=CATALOG_ID)
        events = [story.began(), story.entered(), story.loop_started(), story.opened()]
        for ordinal, rows in enumerate(frames):
            events += [story.dispatched(ordinal), story.claimed(ordinal)]
            if ordinal == 0 and len(rows) > 1:
                events.append(replace(checkpoint(story, 1), payload_ref=await self.put(rows[:1])))
                # The owner fell silent: the next attempt goes on after the checkpoint.
                events += [story.expired(0), story.dispatched(0, 2), story.claimed(0, 2)]
                rows = rows[1:]
            attempt = 2 if ordinal == 0 and len(frames[0]) > 1 else 1
            ref = await self.put(rows) if rows else None
            events.append(replace(story.committed(ordinal, attempt), payload_ref=ref))
        return await self.append(*events, story.closed(), story.ended())

    async def append(self, *events: NewEvent) -> list[Event]:
        """Append events of one execution, and return them as stored."""
        for event in events:
            await self.log.append([event])
        return await stored_events(self.log, events[0].root)

    async def project(
        self, batches: Sequence[Sequence[Event]], store: MemoryProjections | None = None
    ) -> None:
        """Project batches one after the other."""
        into = store or self.store
        views, folds = Views(self.log), self.folds(into)
        for batch in batches:
            folded = await views.fold(by_root(batch))
            folded.changes.add(await folds.rows(batch, folded.states))
            await into.save(folded.changes, ())
            views.remember(folded)


def checkpoint(story: Story, rows: int) -> NewEvent:
    """Rows of the first frame are durable before its commit."""
    meta = {"frame_id": str(story.frame_id(0)), "stage_id": str(story.stage_id), "attempt": 1}
    meta |= {"worker": "w-1", "lease_seconds": 60, "rows": rows, "failed_rows": 0}
    cursor = {"kind": "list", "from": rows, "to": 5}
    return story.event("frame.heartbeat", node_name="load", meta=meta, context={"cursor": cursor})


def states_in(store: MemoryProjections) -> list[BusinessStateRow]:
    """Return the stored states."""
    return [one for one in store.of(BusinessStateRow) if isinstance(one, BusinessStateRow)]


def progress_in(store: MemoryProjections) -> list[BusinessProgressRow]:
    """Return the stored progress."""
    return [one for one in store.of(BusinessProgressRow) if isinstance(one, BusinessProgressRow)]


def checksums_in(store: MemoryProjections) -> Mapping[tuple[int | str, ...], str]:
    """Return the checksum of each projection of each execution."""
    states = states_in(store)
    return {
        one.key: checksum_of(one, [s for s in states if s.key[:3] == one.key])
        for one in progress_in(store)
    }
