"""Looks at the mirror from all sides, once or for as long as one likes.

The rules are in `alarms`; here is only where the readings come from.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from typing import Literal

import asyncpg
import orjson

from streams.errors import StreamsError
from streams.kafka.event_reader import Reader
from streams.kafka.names import event_topic
from streams.mirror.alarms import Alarm, AlarmName, Database, Limits, Readings, Slot, judge
from streams.mirror.connect import Connect, ConnectorUnknown, Status
from streams.mirror.hanging import OFFSETS_TOPIC, Lookout
from streams.mirror.setup import MIRROR
from streams.mirror.watermark import MirrorBehind, Watermark
from streams.resources import folder
from streams.settings import Settings
from streams.topology import load

SLOT = "noetl_mirror"
REBUILD_LOCK = (7237477, 1)
"""The advisory lock that a rebuild holds, so that everybody can see it."""

INTERVAL_S = 2.0
_PATIENCE_S = 3.0
_GLANCE_S = 0.5
_SETTLE_COUNT, _SETTLE_S = 10, 0.1
_TAIL_COUNT = 2000
# These also come and go with a restart: worth a word only when they stay.
_PASSING = {
    AlarmName.CONNECT_UNREACHABLE,
    AlarmName.CONNECTOR_MISSING,
    AlarmName.KAFKA_UNREACHABLE,
    AlarmName.MIRROR_BEHIND,
    AlarmName.POSTGRES_UNREACHABLE,
}
_STAYS_COUNT = 2
_SILENCE = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError)

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


@dataclass(frozen=True, slots=True)
class Change:
    """What began and what ended since the last look, and all that is wrong now."""

    raised: tuple[Alarm, ...]
    cleared: tuple[Alarm, ...]
    alarms: tuple[Alarm, ...]


class Guard:
    """Takes readings of one mirror; use it as an async context manager."""

    def __init__(self, settings: Settings, limits: Limits | None = None) -> None:
        self._settings, self.limits = settings, limits or Limits()
        self._bootstrap = settings.event_store.connection.url
        self._offset = _StoredOffset(self._bootstrap)
        self._lookout = Lookout(self._bootstrap)
        self._mark: Watermark | None = None
        self._trip: asyncio.Task[float] | None = None
        self._trip_began = 0.0
        self._open = AsyncExitStack()

    async def __aenter__(self) -> Guard:
        self._connect = await self._open.enter_async_context(
            Connect(self._settings.connect.url, timeout_s=_PATIENCE_S)
        )
        self._open.push_async_callback(self._offset.close)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._stop_travelling()
        await self._open.aclose()

    async def check(self, *, patience_s: float | None = None) -> tuple[Alarm, ...]:
        """Name everything that is wrong now."""
        return judge(await self.probe(patience_s=patience_s), self.limits)

    async def probe(self, *, patience_s: float | None = None) -> Readings:
        """Look everywhere; what does not answer is part of the readings, never an error.

        A slow round trip is awaited for `patience_s`, by default until it is an alarm. Who
        looks again soon gives it less: the slot must not go unseen meanwhile.
        """
        patience_s = self.limits.lag_s + 1.0 if patience_s is None else patience_s
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
                readings, round_trip_s=await self._round_trip(unreachable, patience_s)
            )
        if not unreachable and (readings.round_trip_s or math.inf) > self.limits.lag_s:
            # What holds up readers of Kafka holds up Connect, too: it cannot read its offsets.
            with _Noting(unreachable, AlarmName.KAFKA_UNREACHABLE):
                return replace(readings, hanging=tuple(map(str, await self._lookout.look())))
        return readings

    async def _database(self, unreachable: dict[AlarmName, str]) -> Database | None:
        dsn = self._settings.event_store.canonical_connection.dsn("read")
        with _Noting(unreachable, AlarmName.POSTGRES_UNREACHABLE):
            async with asyncio.timeout(_PATIENCE_S):
                connection = await asyncpg.connect(dsn)
                try:
                    server = await connection.fetchrow(_SERVER, *REBUILD_LOCK)
                    slot = await connection.fetchrow(_SLOT, SLOT)
                finally:
                    await connection.close()
            return Database(
                current_lsn=int(server["lsn"]),
                slot=_slot(slot) if slot else None,
                wal_keep_bytes=server["keep_bytes"],
                has_next_partition=server["has_next"],
                is_rebuilding=server["is_rebuilding"],
            )
        return None

    async def _connector(self, unreachable: dict[AlarmName, str]) -> Status | None:
        with _Noting(unreachable, AlarmName.CONNECT_UNREACHABLE):
            try:
                return await self._connect.status(MIRROR)
            except ConnectorUnknown:
                return None
        return None

    async def _kafka(
        self, unreachable: dict[AlarmName, str], database: Database | None
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
        async with Reader(self._bootstrap, topics, start="end", timeout_s=_PATIENCE_S) as reader:
            return any((await reader.ends()).values())

    async def _round_trip(
        self, unreachable: dict[AlarmName, str], patience_s: float
    ) -> float | None:
        """Return how long a round trip takes, or how long one has been under way already."""
        loop = asyncio.get_running_loop()
        if self._trip is None:
            self._trip, self._trip_began = asyncio.create_task(self._travel()), loop.time()
        await asyncio.wait({self._trip}, timeout=patience_s)
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


class _StoredOffset:
    """Follows what Connect has stored for the mirror, without Connect: it may be down.

    Its REST interface would read the whole topic anew for each question, too.
    """

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._reader: Reader | None = None
        self.last: int | None = None

    async def reach(self, lsn: int | None) -> int | None:
        """Return the newest LSN that the mirror has stored, given a moment to reach `lsn`.

        Kafka acknowledges a transaction before its marker is written everywhere, so Postgres
        may know of an offset a little earlier than readers of its topic.
        """
        stored = await self.read()
        for _ in range(_SETTLE_COUNT):
            if stored is None or lsn is None or stored >= lsn:
                break
            await asyncio.sleep(_SETTLE_S)
            stored = await self.read()
        return stored

    async def read(self) -> int | None:
        """Return the newest LSN that the mirror has stored; None if there is none."""
        try:
            if self._reader is None:
                await self._open(start=_TAIL_COUNT)
                # The topic's others may have written since; then it is further up.
                if not await self._advance():
                    await self.close()
                    await self._open(start="beginning")
            await self._advance()
        except StreamsError:
            await self.close()
            raise
        return self.last

    async def close(self) -> None:
        if self._reader is not None:
            await self._reader.__aexit__()
            self._reader = None

    async def _open(self, *, start: int | Literal["beginning"]) -> None:
        reader = Reader(self._bootstrap, [OFFSETS_TOPIC], start=start, timeout_s=_PATIENCE_S)
        self._reader = await reader.__aenter__()

    async def _advance(self) -> bool:
        """Read on to the end; say whether there was anything of the mirror's."""
        assert self._reader is not None
        found = False
        async for batch in self._reader.to_end(timeout_s=_PATIENCE_S):
            for record in batch:
                if record.key and orjson.loads(record.key)[0] == MIRROR:
                    found = True
                    self.last = stored_lsn(record.value)
        return found


def stored_lsn(value: bytes | None) -> int | None:
    """Return how far a stored offset of Debezium's has come; None where it was deleted."""
    if not value:
        return None
    offset = orjson.loads(value)
    places = [offset.get(key) for key in ("lsn", "lsn_proc", "lsn_commit")]
    return max((int(place) for place in places if place is not None), default=None)


async def watch(
    settings: Settings, *, limits: Limits | None = None, interval_s: float = INTERVAL_S
) -> AsyncGenerator[Change, None]:
    """Yield whenever an alarm begins or ends, for ever.

    With the usual interval a change is told within 10 s, also while a part is down.
    """
    told: dict[AlarmName, Alarm] = {}
    seen: Counter[AlarmName] = Counter()
    async with Guard(settings, limits) as guard:
        while True:
            alarms = await guard.check(patience_s=_GLANCE_S)
            found = {alarm.name: alarm for alarm in alarms}
            seen = Counter({name: seen[name] + 1 for name in found})
            now = {
                name: alarm
                for name, alarm in found.items()
                if name in told or name not in _PASSING or seen[name] >= _STAYS_COUNT
            }
            if now.keys() != told.keys():
                yield Change(
                    raised=tuple(now[name] for name in now if name not in told),
                    cleared=tuple(told[name] for name in told if name not in now),
                    alarms=tuple(now.values()),
                )
            told = now
            await asyncio.sleep(interval_s)


async def tell(settings: Settings, say: Callable[[str], None]) -> None:
    """Say each alarm as it begins and ends, until cancelled; made for a supervisor."""
    async with aclosing(watch(settings)) as changes:
        async for change in changes:
            for alarm in change.raised:
                say(f"mirror: ALARM {alarm}")
            for alarm in change.cleared:
                say(f"mirror: {alarm.name} is over")


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
        if isinstance(error, _SILENCE):
            self._unreachable[self._name] = f"no answer ({str(error) or type(error).__name__})"
            return True
        return False
