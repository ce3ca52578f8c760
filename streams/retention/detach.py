"""Replacement of a partition by one without the archived executions.

What stays is copied before the log is locked. Under the lock only events that were appended
since are copied, and the two tables change places, together with the rows that say where the
archives are: a crash leaves either all of it or nothing but a copy, which the next run drops.

The copy is not part of the publication while it is filled, so the mirror does not publish it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import asyncpg
import orjson

from streams.payload.content import reference_json
from streams.postgres import queries
from streams.retention.errors import NotArchivable, RetentionLate
from streams.retention.port import ArchivedRoot, LogPartition, WrittenArchive

query = queries("streams.retention")
LOCK_LIMIT = "2s"
_LEFT_OVER = """
SELECT c.relname AS name FROM pg_class c
WHERE c.relnamespace = 'noetl_detached'::regnamespace AND c.relkind = 'r'
  AND NOT EXISTS (SELECT FROM noetl.archive a WHERE a.detached_table = c.relname)"""
_IS_STAYING = "NOT EXISTS (SELECT FROM leaving l WHERE l.root_id = e.root_id)"
_COLUMNS = """
SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
WHERE attrelid = 'noetl.event'::regclass AND attnum > 0 AND NOT attisdropped
  AND attgenerated = ''"""
_ROOT_COLUMNS = [
    "root_id",
    "archive_id",
    "parent_execution_id",
    "seq",
    "chain",
    "pieces",
    "payloads",
    "expired",
]


class _Copied(NamedTuple):
    """What was copied without a lock."""

    table: str
    columns: str
    since_xid: str
    """Transactions from this one on were perhaps not copied."""


class Detachment:
    """One replacement."""

    def __init__(
        self,
        connection: asyncpg.Connection,
        partition: LogPartition,
        archives: Sequence[WrittenArchive],
    ) -> None:
        self._connection, self._partition, self._archives = connection, partition, archives
        self._table = f'noetl."{partition.name}"'
        self._roots = [root for archive in archives for root in archive.roots]

    async def run(self) -> Sequence[int]:
        """Copy, lock, swap; return the numbers of the archives.

        Raises:
            NotArchivable: an execution got events since it was written.
            RetentionLate: the log is in use.
        """
        async with self._connection.transaction(isolation="repeatable_read"):
            copied = await self._copy()
        try:
            async with self._connection.transaction():
                return await self._swap(copied)
        except asyncpg.LockNotAvailableError as error:
            raise RetentionLate(
                f"the log was in use for over {LOCK_LIMIT}, so {self._partition.name} was not "
                "detached; run it again"
            ) from error

    async def _copy(self) -> _Copied:
        execute, value = self._connection.execute, self._connection.fetchval
        columns = await value(_COLUMNS)
        since = await value("SELECT pg_snapshot_xmin(pg_current_snapshot())::text")
        await execute("DROP TABLE IF EXISTS leaving")
        await execute(
            "CREATE TEMP TABLE leaving (root_id bigint PRIMARY KEY, seq bigint, chain bytea)"
        )
        await self._connection.copy_records_to_table(
            "leaving", records=[(one.execution_id, one.seq, one.chain) for one in self._roots]
        )
        for row in await self._connection.fetch(_LEFT_OVER):
            await execute(f'DROP TABLE noetl_detached."{row["name"]}"')
        # Names of indexes are made from the table's, and must differ from those of other copies.
        table = f"{self._partition.name}_{since}"
        copy = f'noetl_detached."{table}"'
        await execute(
            f"CREATE TABLE {copy} (LIKE {self._table} INCLUDING ALL EXCLUDING IDENTITY) "
            "WITH (toast_tuple_target = 8160)"
        )
        await execute(
            f"INSERT INTO {copy} ({columns}) "  # noqa: S608 - names from the catalog
            f"SELECT {columns} FROM {self._table} e WHERE {_IS_STAYING}"
        )
        all_rows = await value(f"SELECT count(*) FROM {self._table}")  # noqa: S608
        kept = await value(f"SELECT count(*) FROM {copy}")  # noqa: S608
        leaving = sum(one.seq for one in self._roots)
        if all_rows != kept + leaving:
            raise NotArchivable(
                f"{self._partition.name} has {all_rows} events, not the {leaving} that were "
                f"archived and the {kept} that stay; run it again"
            )
        return _Copied(table, columns, since)

    async def _swap(self, copied: _Copied) -> list[int]:
        execute, value = self._connection.execute, self._connection.fetchval
        await execute(f"SET LOCAL lock_timeout = '{LOCK_LIMIT}'")
        await execute("LOCK TABLE noetl.event IN ACCESS EXCLUSIVE MODE")
        if await value(query("unchanged")) != len(self._roots):
            raise NotArchivable(
                f"an execution of {self._partition.name} got events while it was archived; "
                "run it again"
            )
        await execute(
            f'INSERT INTO noetl_detached."{copied.table}" ({copied.columns}) '  # noqa: S608 - names from the catalog
            f"SELECT {copied.columns} FROM {self._table} e "
            f"WHERE e.xid >= '{copied.since_xid}'::xid8 AND {_IS_STAYING} "
            "ON CONFLICT (root_id, seq) DO NOTHING"
        )
        numbers = [await self._save(archive) for archive in self._archives]
        detached = f"{self._partition.name}_{numbers[0]}"
        await execute(
            "UPDATE noetl.archive SET detached_table = $1 WHERE archive_id = ANY ($2)",
            detached,
            numbers,
        )
        await self._exchange(copied.table, detached)
        return numbers

    async def _exchange(self, copy: str, detached: str) -> None:
        name, low, high = self._partition
        begin = "MINVALUE" if low == -(2**63) else str(low)
        await self._connection.execute(
            f"""
            ALTER TABLE noetl.event DETACH PARTITION {self._table};
            ALTER TABLE {self._table} SET SCHEMA noetl_detached;
            ALTER TABLE noetl_detached."{name}" RENAME TO "{detached}";
            ALTER TABLE noetl_detached."{copy}" RENAME TO "{name}";
            ALTER TABLE noetl_detached."{name}" SET SCHEMA noetl;
            ALTER TABLE noetl.event ATTACH PARTITION {self._table}
              FOR VALUES FROM ({begin}) TO ({high});
            CREATE TRIGGER refuse_archived BEFORE INSERT ON {self._table}
              FOR EACH ROW EXECUTE FUNCTION noetl.refuse_archived();
            """
        )

    async def _save(self, archive: WrittenArchive) -> int:
        objects = "\n".join(one.uri for one in (archive.manifest, *archive.segments))
        number: int = await self._connection.fetchval(
            query("save_archive"),
            self._partition.name,
            archive.scope.tenant_id,
            archive.scope.organization_id,
            len(archive.roots),
            archive.events,
            archive.byte_length,
            orjson.dumps(reference_json(archive.manifest)).decode(),
            objects,
        )
        await self._connection.copy_records_to_table(
            "archived_root",
            schema_name="noetl",
            columns=_ROOT_COLUMNS,
            records=[_record(number, one) for one in archive.roots],
        )
        return number


def _record(archive_id: int, one: ArchivedRoot) -> tuple[object, ...]:
    pieces = orjson.dumps([list(piece) for piece in one.pieces]).decode()
    place = (one.execution_id, archive_id, one.parent_id, one.seq, one.chain)
    return (*place, pieces, one.payloads, one.expired)
