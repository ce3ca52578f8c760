"""Projected rows in Postgres."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields

import asyncpg
import orjson
from pydantic import TypeAdapter

from streams.events.model import PayloadRef
from streams.payload.port import Scope
from streams.postgres import queries, translated
from streams.projector.port import ProjectionsUnavailable
from streams.projector.rows import (
    CommandRow,
    ExecutionRow,
    FrameRow,
    ResultRefRow,
    Row,
    SnapshotRow,
    StageRow,
    row_id,
)
from streams.replay.audit.port import ProjectedExecution, ProjectedRow, RowKey

query = queries("streams.replay.audit")
_TABLES: Mapping[type[Row], str] = {
    StageRow: "stage",
    FrameRow: "frame",
    CommandRow: "command",
    ResultRefRow: "result_ref",
}
_OPEN = (StageRow, FrameRow, CommandRow)
_JSON = frozenset({"state", "result", "frame_policy", "cursor", "extracted", "preview"})
_REFERENCES = frozenset({"result_ref", "output_ref"})
_REFERENCE = TypeAdapter(PayloadRef)


class PostgresProjectedRows:
    """Reads through a pool of the duty `read`."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    async def execution(self, execution_id: int) -> ProjectedExecution | None:
        """Return an execution, its rows of one moment."""
        with translated(ProjectionsUnavailable, "read projections"):
            async with (
                self._pool.acquire() as connection,
                connection.transaction(isolation="repeatable_read", readonly=True),
            ):
                own = await connection.fetchrow(query("execution"), execution_id)
                still_open: list[ProjectedRow] = []
                for kind in _OPEN:
                    sql = query(f"open_{_TABLES[kind]}")
                    still_open += [
                        _projected(kind, one) for one in await connection.fetch(sql, execution_id)
                    ]
        if own is None:
            return None
        row = _row(ExecutionRow, own)
        assert isinstance(row, ExecutionRow)
        return ProjectedExecution(row, own["checksum"], still_open)

    async def rows(self, kind: type[Row], keys: Sequence[int]) -> Mapping[int, ProjectedRow]:
        """Return rows by id."""
        rows = await self._fetch(f"rows_{_TABLES[kind]}", list(keys))
        return {row_id(one.row): one for one in (_projected(kind, row) for row in rows)}

    async def keys(
        self, kind: type[Row], execution_id: int, through_seq: int, *, after: int, limit: int
    ) -> Sequence[RowKey]:
        """Return the ids of an execution's rows, in order."""
        name = f"keys_{_TABLES[kind]}"
        rows = await self._fetch(name, execution_id, through_seq, after, limit)
        return [RowKey(*row) for row in rows]

    async def snapshot_after(self, execution_id: int, seq: int) -> SnapshotRow | None:
        """Return the first snapshot after a place."""
        rows = await self._fetch("snapshot_after", str(execution_id), seq)
        if not rows:
            return None
        found = dict(rows[0])
        for name in ("upcaster_versions", "encryption_context"):
            found[name] = orjson.loads(found[name]) if found[name] else {}
        return SnapshotRow(**found)

    async def executions(
        self, scope: Scope, *, only_finished: bool, before: int | None, limit: int
    ) -> Sequence[int]:
        """Return the executions of the log, the newest first."""
        owner = (scope.tenant_id, scope.organization_id)
        rows = await self._fetch("executions", *owner, only_finished, before, limit)
        return [row["execution_id"] for row in rows]

    async def _fetch(self, name: str, *arguments: object) -> list[asyncpg.Record]:
        with translated(ProjectionsUnavailable, "read projections"):
            return list(await self._pool.fetch(query(name), *arguments))


def _projected(kind: type[Row], record: asyncpg.Record) -> ProjectedRow:
    checksum, expired_at = record.get("checksum"), record.get("expired_at")
    return ProjectedRow(_row(kind, record), checksum, expired_at)


def _row(kind: type[Row], record: asyncpg.Record) -> Row:
    """Return the typed row of a record; a time of expiry becomes the text that events have."""
    values: dict[str, object] = {}
    for one in fields(kind):
        value = record[one.name]
        if value is None:
            pass
        elif one.name in _REFERENCES:
            value = _REFERENCE.validate_python(orjson.loads(value))
        elif one.name in _JSON:
            value = orjson.loads(value)
        elif one.name == "expires_at":
            value = value.isoformat()
        values[one.name] = value
    make: Callable[..., Row] = kind
    return make(**values)
