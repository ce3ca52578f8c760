"""Projections in Postgres: one statement per table, one transaction per batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeAlias

import asyncpg
import orjson
from blake3 import blake3

from streams.events.model import Root
from streams.metrics.declared import PROJECTED_ROWS
from streams.metrics.metric import Sample
from streams.payload.content import key_of_uri
from streams.postgres import queries, translated
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
from streams.projector.digests import row_bytes
from streams.projector.port import Checkpoint, ProjectionsUnavailable
from streams.projector.rows import (
    CatalogRow,
    Changes,
    CommandRow,
    ExecutionRow,
    FrameRow,
    OutputRow,
    ResultEndRow,
    ResultRefRow,
    Row,
    SnapshotRow,
    StageRow,
)

query = queries("streams.projector")
_Statement: TypeAlias = tuple[str, tuple[object, ...]]
_STATEMENTS: tuple[tuple[type[Row], str], ...] = (
    (CatalogRow, "save_catalog"),
    (ExecutionRow, "save_execution"),
    (StageRow, "save_stage"),
    (FrameRow, "save_frame"),
    (OutputRow, "save_frame_output"),
    (CommandRow, "save_command"),
    (ResultRefRow, "save_result_ref"),
    (ResultRefRow, "save_result_parts"),
    (ResultEndRow, "save_result_end"),
    (ResultEndRow, "drop_result_data"),
    (SnapshotRow, "save_snapshot"),
    (BusinessStateRow, "save_business_state"),
    (BusinessProgressRow, "save_business_progress"),
)

_TABLES: dict[type[Row], str] = {
    kind: name.removeprefix("save_")
    for kind, name in reversed(_STATEMENTS)
    if name.startswith("save_")
}


def _json(rows: Sequence[Row]) -> str:
    """Return rows as a JSON list; each has its checksum."""
    if isinstance(rows[0], SnapshotRow):  # its checksum is that of its state
        return orjson.dumps(rows).decode()
    texts = [row_bytes(row) for row in rows]
    return "[{}]".format(
        ",".join(f'{{"checksum":"{blake3(text).hexdigest()}",{text[1:].decode()}' for text in texts)
    )


class PostgresProjections:
    """Writes as the duty `project`, the only one that may change these tables.

    `location` is the prefix of the payload store's objects, such as `s3://bucket/`; without it,
    results are located by the names of their payloads.
    """

    def __init__(self, pool: asyncpg.Pool, location: str | None = None) -> None:
        self._pool, self._location = pool, location
        self._written: Counter[str] = Counter()

    async def save(self, changes: Changes, checkpoints: Sequence[Checkpoint]) -> None:
        """Write rows and checkpoints in one transaction; newer rows are not overwritten."""
        texts = self._writes(changes)
        if checkpoints:
            rows = orjson.dumps(list(checkpoints)).decode()
            texts.append((query("save_checkpoint"), (rows,)))
        if texts:
            await self._transact(texts)
            for kind, table in _TABLES.items():
                if count := changes.count(kind):
                    self._written[table] += count

    def samples(self) -> Iterator[Sample]:
        """Yield how many rows were written, by table."""
        for table, count in self._written.items():
            yield Sample(PROJECTED_ROWS, count, (table,))

    async def replace(self, root: Root, through_seq: int, changes: Changes) -> None:
        """Delete a root's rows as of a place or before, and write others."""
        delete = (query("delete_root"), (root.id, through_seq))
        await self._transact([delete, *self._writes(changes)])

    async def replace_business(self, execution_id: int, through_seq: int, changes: Changes) -> None:
        """Delete an execution's business projections as of a place or before, and write others."""
        delete = (query("delete_business"), (execution_id, through_seq))
        await self._transact([delete, *self._writes(changes)])

    async def delete_unknown(self) -> None:
        """Delete the rows of roots that the log does not have."""
        await self._transact([(query("delete_unknown"), ())])

    def _writes(self, changes: Changes) -> list[_Statement]:
        rows_of = {kind: self._located(changes.of(kind)) for kind, _ in _STATEMENTS}
        writes = [(query(name), rows_of[kind]) for kind, name in _STATEMENTS if rows_of[kind]]
        return [(sql, (_json(rows),)) for sql, rows in writes]

    def _located(self, rows: Sequence[Row]) -> list[Row]:
        """Return rows in which the location of a result is the object that holds its bytes."""
        if self._location is None:
            return list(rows)
        return [
            replace(row, physical_uri=f"{self._location}{key_of_uri(row.physical_uri)}")
            if isinstance(row, ResultRefRow) and row.physical_uri is not None
            else row
            for row in rows
        ]

    async def clear(self) -> None:
        """Delete every row and checkpoint."""
        await self._transact([(query("clear"), ())])

    async def _transact(self, statements: Sequence[_Statement]) -> None:
        with translated(ProjectionsUnavailable, "write projections"):
            async with self._pool.acquire() as connection, connection.transaction():
                for sql, arguments in statements:
                    await connection.execute(sql, *arguments)
