"""Takes readings of the mirror from Postgres, Kafka and Connect."""

from __future__ import annotations

import asyncio
import math
from contextlib import AsyncExitStack
from dataclasses import replace

import asyncpg

from streams.errors import StreamsError
from streams.kafka.event_reader import EventTopicReader
from streams.kafka.names import event_topic
from streams.mirror.alarms import Alarm, Limits, judge
from streams.mirror.connect import ConnectClient
from streams.mirror.connect_errors import ConnectorUnknown
from streams.mirror.connector_status import ConnectorStatus
from streams.mirror.hanging import Lookout
from streams.mirror.readings import AlarmName, DatabaseReadings, Readings, Slot
from streams.mirror.setup import MIRROR
from streams.mirror.stored_offset import StoredOffset
from streams.mirror.watermark import MirrorBehind, Watermark
from streams.postgres import NO_ANSWER
from streams.resources import folder
from streams.settings import Settings
from streams.topology import load

SLOT = "noetl_mirror"
REBUILD_LOCK = (7237477, 1)
"""The advisory lock that a rebuild holds, so that everybody can see it."""

_TIMEOUT_S = 3.0

# The server, its bound on kept WAL, next month's partition, and whether a rebuild runs.
_SERVER = """
SELECT pg_current_wal_lsn() - '0/0'::pg_lsn AS lsn,
  (SELECT setting::bigint * 1048576 FROM pg_settings
    WHERE name = 'max_slot_wal_keep_size' AND setting <> '-1') AS keep_bytes,
  to_regclass('noetl.event_' || to_char((now() AT TIME ZONE 'UTC') + interval '1 month', 'YYYYMM'))
    IS NOT NULL AS has_next,
  EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND classid = $1::bigint::oid
    AND objid = $2::bigint::oid AND objsubid = 2) AS is_rebuilding
"""
_SLOT = """
SELECT active, confirmed_flush_lsn - '0/0'::pg_lsn AS confirmed, wal_status, safe_wal_size,
  invalidation_reason, coalesce(extract(epoch FROM now() - inactive_since), 0)::float8 AS inactive_s
FROM pg_replication_slots WHERE slot_name = $1
"""


class Guard:
    """Takes readings of one mirror; use it as an async context manager."""

    def __init__(self, settings: Settings, limits: Limits | None = None) -> None:
        self._settings, self.limits = settings, limits or Limits()
        self._bootstrap = settings.event_store.connection.url
        self._offset = StoredOffset(self._bootstrap)
        self._lookout = Lookout(self._bootstrap)
        self._mark: Watermark | None = None
        self._trip: asyncio.Task[float] | None = None
        self._trip_began = 0.0
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Guard:
        self._connect = await self._open.enter_async_context(
            ConnectClient(self._settings.connect.url, timeout_s=_TIMEOUT_S)
        )
        self._open.push_async_callback(self._offset.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop_travelling()
        await self._open.aclose()

    async def check(self, *, timeout_s: float | None = None) -> tuple[Alarm, ...]:
        """Name everything that is wrong now."""
        return judge(await self.probe(timeout_s=timeout_s), self.limits)

    async def probe(self, *, timeout_s: float | None = None) -> Readings:
        """Look everywhere; what does not answer is part of the readings, never an error.

        A slow round trip is awaited for `timeout_s`, by default until it is an alarm. Who
        looks again soon gives it less: the slot must not go unseen meanwhile.
        """
        timeout_s = self.limits.lag_s + 1.0 if timeout_s is None else timeout_s
        unreachable: dict[AlarmName, str] = {}
        connector_task = asyncio.create_task(self._connector(unreachable))
        database = await self._database(unreachable)
        # Behind the database, or a mirror at work would look like one that lost its slot.
        stored, written = await self._kafka(unreachable, database)
        readings = Readings(
            database=database,
            connector=await connector_task,
            stored_lsn=stored,
            topics_written=written,
            unreachable=unreachable,
        )
        if not unreachable and _is_at_work(readings):
            readings = replace(
                readings, round_trip_s=await self._round_trip(unreachable, timeout_s)
            )
        if not unreachable and (readings.round_trip_s or math.inf) > self.limits.lag_s:
            # What holds up readers of Kafka holds up Connect, too: it cannot read its offsets.
            with _Noting(unreachable, AlarmName.KAFKA_UNREACHABLE):
                return replace(readings, hanging=tuple(map(str, await self._lookout.look())))
        return readings

    async def _database(self, unreachable: dict[AlarmName, str]) -> DatabaseReadings | None:
        dsn = self._settings.event_store.canonical_connection.dsn("read")
        with _Noting(unreachable, AlarmName.POSTGRES_UNREACHABLE):
            async with asyncio.timeout(_TIMEOUT_S):
                connection = await asyncpg.connect(dsn)
                try:
                    server = await connection.fetchrow(_SERVER, *REBUILD_LOCK)
                    slot = await connection.fetchrow(_SLOT, SLOT)
                finally:
                    await connection.close()
            return DatabaseReadings(
                current_lsn=int(server["lsn"]),
                slot=_slot(slot) if slot else None,
                wal_keep_bytes=server["keep_bytes"],
                has_next_partition=server["has_next"],
                is_rebuilding=server["is_rebuilding"],
            )
        return None

    async def _connector(self, unreachable: dict[AlarmName, str]) -> ConnectorStatus | None:
        with _Noting(unreachable, AlarmName.CONNECT_UNREACHABLE):
            try:
                return await self._connect.status(MIRROR)
            except ConnectorUnknown:
                return None
        return None

    async def _kafka(
        self, unreachable: dict[AlarmName, str], database: DatabaseReadings | None
    ) -> tuple[int | None, bool]:
        slot = database.slot if database else None
        with _Noting(unreachable, AlarmName.KAFKA_UNREACHABLE):
            stored = await self._offset.reach(slot.confirmed_lsn if slot else None)
            if stored is not None or database is None:
                return stored, False
            return None, await self._topics_written()
        # What was stored last is as good: it only ever grows.
        return self._offset.last, False

    async def _topics_written(self) -> bool:
        topics = [event_topic(root) for root in load(folder("topics")).roots]
        async with EventTopicReader(
            self._bootstrap, topics, start="end", timeout_s=_TIMEOUT_S
        ) as reader:
            return any((await reader.ends()).values())

    async def _round_trip(
        self, unreachable: dict[AlarmName, str], timeout_s: float
    ) -> float | None:
        """Return how long a round trip takes, or how long one has been under way already."""
        loop = asyncio.get_running_loop()
        if self._trip is None:
            self._trip, self._trip_began = asyncio.create_task(self._travel()), loop.time()
        await asyncio.wait({self._trip}, timeout=timeout_s)
        if not self._trip.done():
            return loop.time() - self._trip_began
        trip, self._trip = self._trip, None
        with _Noting(unreachable, AlarmName.KAFKA_UNREACHABLE):
            return trip.result()
        return None

    async def _travel(self) -> float:
        if self._mark is None:
            dsn = self._settings.event_store.canonical_connection.dsn("append")
            mark = Watermark(dsn, self._bootstrap)
            self._mark = await self._open.enter_async_context(mark)
        try:
            return await self._mark.round_trip(timeout_s=self.limits.lag_s)
        except MirrorBehind:
            return math.inf

    async def _stop_travelling(self) -> None:
        if self._trip is not None:
            self._trip.cancel()
            await asyncio.gather(self._trip, return_exceptions=True)


def _is_at_work(readings: Readings) -> bool:
    slot = readings.database.slot if readings.database else None
    status = readings.connector
    return slot is not None and slot.is_active and status is not None and status.running


def _slot(row: asyncpg.Record) -> Slot:
    return Slot(
        is_active=row["active"],
        inactive_s=0.0 if row["active"] else row["inactive_s"],
        confirmed_lsn=None if row["confirmed"] is None else int(row["confirmed"]),
        wal_status=row["wal_status"],
        safe_wal_bytes=row["safe_wal_size"],
        invalidation=row["invalidation_reason"],
    )


class _Noting:
    """Turns the silence of a part into a reading."""

    def __init__(self, unreachable: dict[AlarmName, str], name: AlarmName) -> None:
        self._unreachable, self._name = unreachable, name

    def __enter__(self) -> None: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> bool:
        if isinstance(error, StreamsError):
            self._unreachable[self._name] = str(error)
            return True
        if isinstance(error, NO_ANSWER):
            self._unreachable[self._name] = f"no answer ({str(error) or type(error).__name__})"
            return True
        return False
