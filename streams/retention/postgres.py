"""Archives and policies in Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import asyncpg
import orjson

from streams.collector.postgres import PostgresCollectorLog
from streams.log.errors import LogUnavailable
from streams.payload.content import reference_from
from streams.payload.port import Scope
from streams.postgres import connecting, queries, translated
from streams.retention.detach import Detachment
from streams.retention.errors import NoSuchPolicy, RetentionBusy, RetentionLate
from streams.retention.port import (
    Archive,
    ArchivedRoot,
    ExecutionFacts,
    LogPartition,
    PayloadNames,
    Piece,
    Policy,
    WrittenArchive,
)

query = queries("streams.retention")
_PAGE = 1000
_LOCK = "SELECT pg_try_advisory_lock(hashtext('noetl.retention'))"
_MARK = "SELECT pg_logical_emit_message(false, 'noetl.retention', '', true) - '0/0'::pg_lsn"
_CONFIRMED = """
SELECT confirmed_flush_lsn - '0/0'::pg_lsn FROM pg_replication_slots
WHERE slot_name = $1 AND database = current_database()"""
_POLL_S = 0.5


class PostgresArchiveIndex:
    """Finds archived executions through a pool."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def find(self, execution_id: int) -> ArchivedRoot | None:
        """Return where an execution's events are; None if it is not archived."""
        with translated(LogUnavailable, "read the archives"):
            row = await self._pool.fetchrow(query("archived_root"), execution_id)
        return None if row is None else _root(row)


class CollectorHoldings:
    """Payloads of executions, by the rules of the collector, which they must outlive."""

    def __init__(self, ledger: PostgresCollectorLog) -> None:
        self._ledger = ledger

    async def of(self, execution_ids: Collection[int]) -> Mapping[int, PayloadNames]:
        """Return them by execution; those without any are omitted."""
        with translated(LogUnavailable, "read the payloads of executions"):
            async with self._ledger.snapshot() as snapshot:
                return {
                    one.root.id: PayloadNames(one.live, one.sure, one.over)
                    async for one in snapshot.holdings(execution_ids)
                }


class PostgresRetentionLog:
    """Changes the log as its owner, through one connection."""

    def __init__(
        self, connection: asyncpg.Connection, *, slot: str, mirror_limit_s: float = 90.0
    ) -> None:
        """`slot`: the mirror's."""
        self._connection, self._slot, self._limit_s = connection, slot, mirror_limit_s

    async def policies(self) -> Sequence[Policy]:
        """Return all policies."""
        rows = await self._fetch(
            "SELECT tenant_id, keep_days FROM noetl.retention_policy ORDER BY tenant_id"
        )
        return [Policy(row["tenant_id"], row["keep_days"]) for row in rows]

    async def set_policy(self, policy: Policy) -> None:
        """Set the policy of a tenant."""
        await self._fetch(query("set_policy"), policy.tenant_id, policy.keep_days)

    async def remove_policy(self, tenant_id: str) -> None:
        """Remove the policy of a tenant: its executions stay.

        Raises:
            NoSuchPolicy: it has none.
        """
        if not await self._fetch(
            "DELETE FROM noetl.retention_policy WHERE tenant_id = $1 RETURNING 1", tenant_id
        ):
            raise NoSuchPolicy(tenant_id)

    async def now(self) -> datetime:
        """Return the database's time."""
        (row,) = await self._fetch("SELECT clock_timestamp() AS now")
        found: datetime = row["now"]
        return found

    async def partitions(self) -> Sequence[LogPartition]:
        """Return the partitions in which no new execution begins, oldest first."""
        rows = await self._fetch(query("partitions"))
        return [LogPartition(row["name"], row["low"], row["high"]) for row in rows]

    async def facts(self, partition: LogPartition) -> Sequence[ExecutionFacts]:
        """Return the executions in a partition, in order of their ids."""
        rows = await self._fetch(query("facts"), partition.low, partition.high)
        return [_facts(row) for row in rows]

    async def mirrored(self) -> None:
        """Return once everything that is committed now has been mirrored."""
        (mark,) = (await self._fetch(_MARK))[0]
        deadline = asyncio.get_running_loop().time() + self._limit_s
        while True:
            rows = await self._fetch(_CONFIRMED, self._slot)
            if not rows:
                raise RetentionLate(
                    f"the mirror's slot {self._slot} does not exist, so it is not known what "
                    "Kafka has; see `streams mirror check`"
                )
            if rows[0][0] is not None and rows[0][0] >= mark:
                return
            if asyncio.get_running_loop().time() > deadline:
                raise RetentionLate(
                    f"the mirror did not catch up within {self._limit_s:.0f} s; see `streams "
                    "mirror check`, then run it again"
                )
            await asyncio.sleep(_POLL_S)

    async def detach(
        self, partition: LogPartition, archives: Sequence[WrittenArchive]
    ) -> Sequence[int]:
        """Replace a partition by one without the archived executions."""
        with translated(LogUnavailable, f"detach {partition.name}"):
            return await Detachment(self._connection, partition, archives).run()

    async def archives(self) -> Sequence[Archive]:
        """Return all archives, oldest first."""
        return [_archive(row) for row in await self._fetch(query("archives"))]

    async def roots_of(self, archive_id: int) -> AsyncIterator[ArchivedRoot]:
        """Yield the executions of an archive."""
        after = -(2**63)
        while rows := await self._fetch(query("archived_roots"), archive_id, after, _PAGE):
            for row in rows:
                yield _root(row)
            after = rows[-1]["root_id"]

    async def drop(self, detached_table: str) -> None:
        """Drop a detached table; does nothing if it was dropped."""
        with translated(LogUnavailable, f"drop {detached_table}"):
            async with self._connection.transaction():
                await self._connection.execute(
                    f'DROP TABLE IF EXISTS noetl_detached."{detached_table}"'
                )
                await self._connection.execute(
                    "UPDATE noetl.archive SET dropped_at = now() "
                    "WHERE detached_table = $1 AND dropped_at IS NULL",
                    detached_table,
                )

    async def _fetch(self, text: str, *arguments: object) -> list[asyncpg.Record]:
        with translated(LogUnavailable, "read the log"):
            return list(await self._connection.fetch(text, *arguments))


@asynccontextmanager
async def open_retention_log(
    dsn: str, *, slot: str, exclusive: bool = False, mirror_limit_s: float = 90.0
) -> AsyncIterator[PostgresRetentionLog]:
    """Connect as the owner of the log; `exclusive`: for changes, one at a time.

    Raises:
        LogUnavailable: Postgres cannot be reached, or is not migrated.
        RetentionBusy: another run is archiving.
    """
    with connecting(LogUnavailable):
        connection = await asyncpg.connect(dsn, timeout=10)
    try:
        if exclusive and not await connection.fetchval(_LOCK):
            raise RetentionBusy
        yield PostgresRetentionLog(connection, slot=slot, mirror_limit_s=mirror_limit_s)
    finally:
        await connection.close(timeout=10)


def _facts(row: asyncpg.Record) -> ExecutionFacts:
    return ExecutionFacts(
        execution_id=row["root_id"],
        scope=Scope(row["tenant_id"], row["organization_id"]),
        seq=row["seq"],
        chain=row["chain"],
        is_ended=row["terminal"],
        last_at=row["last_at"].astimezone(UTC),
        parent_id=row["parent_execution_id"],
        is_parent_open=row["is_parent_open"],
        projected_seq=row["projected_seq"],
    )


def _root(row: asyncpg.Record) -> ArchivedRoot:
    return ArchivedRoot(
        execution_id=row["root_id"],
        scope=Scope(row["tenant_id"], row["organization_id"]),
        parent_id=row["parent_execution_id"],
        seq=row["seq"],
        chain=row["chain"],
        pieces=tuple(Piece(*one) for one in orjson.loads(row["pieces"])),
    )


def _archive(row: asyncpg.Record) -> Archive:
    return Archive(
        archive_id=row["archive_id"],
        partition=row["partition"],
        scope=Scope(row["tenant_id"], row["organization_id"]),
        executions=row["executions"],
        events=row["events"],
        byte_length=row["byte_length"],
        manifest=reference_from(orjson.loads(row["manifest"])),
        detached_table=row["detached_table"],
        archived_at=row["archived_at"],
        dropped_at=row["dropped_at"],
    )
