"""The ledger in Postgres: rows and first events in one transaction."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import asyncpg

from streams.events.catalogue import catalogue
from streams.events.codec import Codec
from streams.events.seal import Sealed, seal
from streams.log.append_connection import APPEND
from streams.log.errors import BadBatch, LogUnavailable
from streams.log.receipts import receipt
from streams.log.rows import new_event_row
from streams.postgres import queries, translated
from streams.trigger.port import Entered, LedgerEntry, Origin
from streams.trigger.settle import IdempotencyKey, created, settle, wanted_keys

query = queries("streams.trigger")


class PostgresTriggerLedger:
    """Enters a batch of records in one transaction with their first events."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        *,
        codec: Codec,
        take_ids: Callable[[int], Sequence[int]],
        producer: str,
    ) -> None:
        self._pool, self._codec, self._take_ids = pool, codec, take_ids
        self._producer = producer

    async def enter(self, entries: Sequence[LedgerEntry]) -> Sequence[Entered]:
        """Enter a batch; return the results in its order, once durable."""
        sealed = self._seal(entries)
        with translated(LogUnavailable, "enter triggers", refused=_bad_batch):
            async with self._pool.acquire(timeout=30) as connection, connection.transaction():
                return await _enter(connection, entries, sealed)

    async def next_offset(self, reader: str, topic_id: str, partition: int) -> int | None:
        """Return the offset after the reader's last record of a partition; None without any."""
        with translated(LogUnavailable, "read the ledger of triggers"):
            last: int | None = await self._pool.fetchval(
                query("last_offset"), topic_id, partition, reader
            )
        return None if last is None else last + 1

    async def open_executions(self, reader: str, limit: int) -> int:
        """Return how many executions of the reader have not ended, at most `limit`."""
        with translated(LogUnavailable, "read the ledger of triggers"):
            count: int = await self._pool.fetchval(query("open_executions"), reader, limit)
        return count

    def _seal(self, entries: Sequence[LedgerEntry]) -> dict[int, Sealed]:
        ids = self._take_ids(len(entries))
        return {
            entry.event.root.id: seal(
                entry.event,
                event_id=event_id,
                producer=self._producer,
                codec=self._codec,
                catalogue=catalogue(),
            )
            for entry, event_id in zip(entries, ids, strict=True)
        }


def _bad_batch(error: asyncpg.PostgresError) -> BadBatch | None:
    bad = isinstance(error, asyncpg.IntegrityConstraintViolationError | asyncpg.DataError)
    if not bad or "no partition" in str(error):
        return None
    return BadBatch(f"the database rejects the trigger: {error}")


async def _enter(
    connection: asyncpg.Connection, entries: Sequence[LedgerEntry], sealed: Mapping[int, Sealed]
) -> list[Entered]:
    partitions = sorted({(entry.origin.topic_id, entry.origin.partition) for entry in entries})
    await connection.execute(query("lock_partitions"), *_columns(partitions, 2))
    known = await _known(connection, entries)
    fresh = [entry for entry in entries if entry.origin not in known]
    answers = settle(entries, known, await _keys(connection, fresh))
    if made := created(entries, answers, known):
        await _append(connection, [sealed[entry.event.root.id] for entry in made])
    await _write(connection, entries, answers, known)
    return answers


async def _known(
    connection: asyncpg.Connection, entries: Sequence[LedgerEntry]
) -> dict[Origin, Entered]:
    by_place = {
        (one.origin.topic_id, one.origin.partition, one.origin.offset, one.origin.reader): (
            one.origin
        )
        for one in entries
    }
    rows = await connection.fetch(query("entered_records"), *_columns(list(by_place), 4))
    found = {}
    for row in rows:
        origin = by_place[row["topic_id"], row["partition"], row["record_offset"], row["reader"]]
        found[origin] = Entered(origin, row["execution_id"], row["rejected_id"])
    return found


async def _keys(
    connection: asyncpg.Connection, entries: Sequence[LedgerEntry]
) -> dict[IdempotencyKey, int]:
    wanted = wanted_keys(entries)
    lasting = {key: root for key, root in wanted.items() if not key.window_s}
    windowed = {key: root for key, root in wanted.items() if key.window_s}
    held: dict[IdempotencyKey, int] = {}
    if lasting:
        rows = [(key.owner, key.text, root) for key, root in lasting.items()]
        await connection.execute(query("take_keys"), *_columns(rows, 3))
        found = await connection.fetch(query("held_keys"), *_columns(rows, 2))
        held |= {
            IdempotencyKey(row["tenant_id"], row["trigger_key"]): row["execution_id"]
            for row in found
        }
    if windowed:
        held |= await _window_keys(connection, windowed)
    return held


async def _window_keys(
    connection: asyncpg.Connection, wanted: Mapping[IdempotencyKey, int]
) -> dict[IdempotencyKey, int]:
    readers = sorted({key.owner for key in wanted})
    await connection.execute(query("drop_expired_keys"), readers)
    rows = [(key.owner, key.text, root, key.window_s) for key, root in wanted.items()]
    await connection.execute(query("take_window_keys"), *_columns(rows, 4))
    found = await connection.fetch(query("held_window_keys"), *_columns(rows, 2))
    by_text = {(row["reader"], row["message_key"]): row["execution_id"] for row in found}
    return {key: by_text[key.owner, key.text] for key in wanted}


async def _append(connection: asyncpg.Connection, batch: Sequence[Sealed]) -> None:
    rows = [new_event_row(sealed, number) for number, sealed in enumerate(batch)]
    by_batch: dict[int, list[asyncpg.Record]] = {}
    for row in await connection.fetch(APPEND, rows):
        by_batch.setdefault(row["batch"], []).append(row)
    for number, sealed in enumerate(batch):
        receipt([sealed], by_batch[number])


async def _write(
    connection: asyncpg.Connection,
    entries: Sequence[LedgerEntry],
    answers: Sequence[Entered],
    known: Mapping[Origin, Entered],
) -> None:
    rows = {
        entry.origin: (
            entry.origin.topic_id,
            entry.origin.partition,
            entry.origin.offset,
            entry.origin.reader,
            entry.origin.topic,
            entry.event.tenant_id,
            entry.event.organization_id,
            entry.key if entry.key is not None else str(entry.origin),
            answer.execution_id,
            answer.rejected_id,
        )
        for entry, answer in zip(entries, answers, strict=True)
        if entry.origin not in known
    }
    if rows:
        await connection.execute(query("enter_records"), *_columns(list(rows.values()), 10))


def _columns(rows: Sequence[tuple[object, ...]], count: int) -> list[list[object]]:
    """Transpose rows into the arrays that a query unnests."""
    return [[row[number] for row in rows] for number in range(count)]
