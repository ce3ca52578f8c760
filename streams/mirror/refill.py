"""Progress and verification of a refill of the event topics."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import asyncpg

from streams.errors import Unavailable
from streams.events.model import Root
from streams.kafka.event_reader import EventRecord, EventTopicReader
from streams.kafka.names import EVENTS_PREFIX
from streams.mirror.connect import ConnectClient
from streams.mirror.connect_errors import ConnectorFailed, ConnectorUnknown, ConnectUnavailable
from streams.mirror.guard import SLOT
from streams.mirror.setup import MIRROR
from streams.mirror.tally import MirrorTally, MirrorVerdict
from streams.mirror.watermark import MirrorBehind, Watermark
from streams.resources import folder
from streams.settings import Settings
from streams.topology import load

_PAUSE_S = 0.1
_REPORT_S = 1.0
TOTAL = """
SELECT (SELECT coalesce(sum(seq), 0) FROM noetl.root_head)::bigint
  - (SELECT coalesce(sum(seq), 0) FROM noetl.archived_root)::bigint"""
_HEADS = """
SELECT h.root_type, h.root_id, h.seq, h.ingest_time, a.root_id IS NOT NULL AS is_archived
FROM noetl.root_head h LEFT JOIN noetl.archived_root a USING (root_id)
WHERE h.seq > 0"""
_INGESTED = "SELECT ingest_time FROM noetl.event WHERE root_id = $1 AND seq = $2"
_SLOT_READY = (
    "SELECT confirmed_flush_lsn IS NOT NULL FROM pg_replication_slots WHERE slot_name = $1"
)


class RebuildStalled(Unavailable):
    """The refill makes no progress."""


@dataclass(frozen=True, slots=True)
class Progress:
    """A started step, or the progress of the refill."""

    step: str
    mirrored_count: int = 0
    total_count: int = 0

    def __str__(self) -> str:
        if not self.total_count:
            return self.step
        return f"{self.step}: {self.mirrored_count:,} of {self.total_count:,} events"


Report = Callable[[Progress], None]


class Refill:
    """Reads the topics while they fill, for progress and verification in one pass."""

    def __init__(
        self,
        settings: Settings,
        database: asyncpg.Connection,
        connect: ConnectClient,
        topics: tuple[str, ...],
        report: Report,
        stall_s: float,
    ) -> None:
        self._settings, self._database, self._connect = settings, database, connect
        self._topics, self._report, self._stall_s = topics, report, stall_s
        self._tally = MirrorTally()
        self._moved_at = time.monotonic()

    async def run(self, *, verify: bool) -> tuple[MirrorTally, MirrorVerdict | None]:
        """Read until the topics caught up with the log; with `verify` also compare them."""
        bootstrap = self._settings.event_store.connection.url
        dsn = self._settings.event_store.canonical_connection.dsn("append")
        total = await self._database.fetchval(TOTAL)
        async with (
            EventTopicReader(bootstrap, self._topics) as reader,
            Watermark(dsn, bootstrap) as mark,
        ):
            level = asyncio.create_task(self._level(mark))
            try:
                await self._follow(reader, level, total)
            finally:
                level.cancel()
                await asyncio.gather(level, return_exceptions=True)
            if not verify:
                return self._tally, None
            # Includes events appended during the refill.
            heads = await self._database.fetch(_HEADS)
            await mark.catch_up(timeout_s=self._stall_s)
            async for batch in reader.to_end():
                self._count(batch)
        return self._tally, await self._compare(heads)

    async def _follow(
        self, reader: EventTopicReader, level: asyncio.Task[None], total: int
    ) -> None:
        """Count records until the mirror caught up with the log, and then to the end."""
        reported_at = time.monotonic()
        while not level.done():
            self._count(await reader.batch())
            if time.monotonic() - reported_at >= _REPORT_S:
                reported_at = time.monotonic()
                self._report_progress(total)
            if time.monotonic() - self._moved_at > self._stall_s:
                raise RebuildStalled(
                    f"nothing has been mirrored for {self._stall_s:.0f} s "
                    f"({self._tally.records_count:,} of {total:,} events); "
                    "see `streams mirror check`, then run it again"
                )
        level.result()
        async for batch in reader.to_end():
            self._count(batch)
        self._report_progress(total)

    def _report_progress(self, total: int) -> None:
        self._report(Progress("refilling", self._tally.records_count, total))

    def _count(self, batch: list[EventRecord]) -> None:
        for record in batch:
            self._tally.add(*_root_and_seq(record))
            self._moved_at = time.monotonic()

    async def _level(self, mark: Watermark) -> None:
        """Return once a watermark written after the refill has been mirrored."""
        while True:
            # A mark written before the slot exists would never be mirrored.
            if not await self._database.fetchval(_SLOT_READY, SLOT):
                await asyncio.sleep(_PAUSE_S)
                continue
            try:
                await mark.catch_up(timeout_s=10.0)
            except MirrorBehind:
                await self._check_connector()
            else:
                return

    async def _check_connector(self) -> None:
        """Raise if the connector failed; tolerate a restart of Connect."""
        with suppress(ConnectUnavailable, ConnectorUnknown):
            failure = (await self._connect.status(MIRROR)).failure
            if failure is not None:
                raise ConnectorFailed(
                    f"the refill failed: {failure}; correct the cause, then run it again"
                )

    async def _compare(self, heads: list[asyncpg.Record]) -> MirrorVerdict:
        newest = {Root(row["root_type"], row["root_id"]): row["seq"] for row in heads}
        times = {Root(row["root_type"], row["root_id"]): row["ingest_time"] for row in heads}
        retained_since = {
            topic.name.removeprefix(EVENTS_PREFIX): _now() - _retention(topic.retention_ms)
            for topic in load(folder("topics")).topics
            if topic.name in self._topics and topic.retention_ms >= 0
        }
        # A topic from before an archive still has its events; a new one does not.
        archived = {Root(row["root_type"], row["root_id"]) for row in heads if row["is_archived"]}
        expired = {root: newest[root] for root in archived}
        for root, seq in newest.items():
            since = retained_since.get(root.type)
            if since is None or root in archived:
                continue
            if times[root] < since:
                # All of it may have expired; the rest only has to be in order.
                expired[root] = seq
            elif (start := self._tally.truncated.get(root)) is not None:
                ingested_at = await self._database.fetchval(_INGESTED, root.id, start - 1)
                expired[root] = start - 1 if ingested_at is not None and ingested_at < since else 0
        return self._tally.against(newest, expired)


def _root_and_seq(record: EventRecord) -> tuple[Root, int]:
    """Return a record's root and `seq`, without decoding its value."""
    headers = dict(record.headers)
    root = Root(record.topic.removeprefix(EVENTS_PREFIX), int(record.key or b"0"))
    return root, int(headers.get("seq") or b"0")


def _now() -> datetime:
    return datetime.now(UTC).replace(tzinfo=None)


def _retention(retention_ms: int) -> timedelta:
    return timedelta(milliseconds=retention_ms)
