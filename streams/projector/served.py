"""The projector's table: the newest row of each execution, served without a database."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Set

import orjson

from streams.errors import Unavailable
from streams.kafka.tables.port import PartitionLost, RowNotHere, StateTables
from streams.log.port import EventStore, Frontier
from streams.projector.rows import PROJECTION_VERSION, Changes, ExecutionRow
from streams.projector.views import Views, by_root

_log = logging.getLogger(__name__)
EXECUTIONS = "executions"
TABLES = {EXECUTIONS: "the newest row of each execution"}
FORMAT = b"1"
"""First byte of each value; values of another format are ignored."""
MAX_VALUE_BYTES = 900_000
"""A larger row is not served: Kafka would refuse the record."""
_COMPLETE_KEY = b"\0complete"
"""Its value says that the partition has every execution of the log, in which format."""
_COMPLETE = FORMAT + orjson.dumps({"projection_version": PROJECTION_VERSION})
PartitionOf = Callable[[int], int]


class ServedExecutions:
    """Rows of executions by id. A row that is older than the stored one is not written."""

    def __init__(self, tables: StateTables, partition_of: PartitionOf) -> None:
        self._tables, self._partition_of = tables, partition_of
        self._writing = asyncio.Lock()

    async def save(self, changes: Changes, partitions: Set[int]) -> None:
        """Write the executions' rows that belong to `partitions`; return once durable.

        Raises:
            PartitionLost: a partition may have another owner; nothing of it was written.
            TablesUnavailable: the changelog cannot be written now.
        """
        by_partition: dict[int, list[ExecutionRow]] = {}
        for row in changes.of(ExecutionRow):
            assert isinstance(row, ExecutionRow)
            if (partition := self._partition_of(row.execution_id)) in partitions:
                by_partition.setdefault(partition, []).append(row)
        async with self._writing:
            results = await asyncio.gather(
                *(self._save(*one) for one in by_partition.items()), return_exceptions=True
            )
        for error in results:
            if error is not None:
                raise error

    async def _save(self, partition: int, rows: Iterable[ExecutionRow]) -> None:
        if partition not in self._tables.owned:
            raise PartitionLost(f"partition {partition} is not assigned")
        changed = {_key(row.execution_id): row for row in rows}
        stored = self._tables.read(partition, EXECUTIONS, list(changed))
        values = {
            key: _value(row)
            for (key, row), before in zip(changed.items(), stored, strict=True)
            if before is None or _age(before) < (row.projection_version, row.last_seq)
        }
        if values:
            await self._tables.write(partition, {EXECUTIONS: values})

    def get(self, execution_id: int) -> Mapping[str, object] | None:
        """Return an execution's row, its ids as text; None if there is none.

        Raises:
            RowNotHere: another projector has it.
        """
        partition = self._partition_of(execution_id)
        if partition not in self._tables.owned:
            raise RowNotHere(f"partition {partition} is not assigned here: ask another projector")
        (value,) = self._tables.read(partition, EXECUTIONS, [_key(execution_id)])
        if value is None or value[:1] != FORMAT:
            return None
        row = orjson.loads(value[1:])
        ids = {key: str(one) for key, one in row.items() if key.endswith("_id") and one is not None}
        return {**row, **ids}

    def incomplete(self) -> frozenset[int]:
        """Return the owned partitions that lack executions of the log."""
        return frozenset(
            one
            for one in self._tables.owned
            if self._tables.read(one, EXECUTIONS, [_COMPLETE_KEY]) != [_COMPLETE]
        )

    async def complete(self, partitions: Iterable[int]) -> None:
        """Record that partitions have every execution.

        Raises:
            PartitionLost: a partition may have another owner.
            TablesUnavailable: the changelog cannot be written now.
        """
        async with self._writing:
            values = {EXECUTIONS: {_COMPLETE_KEY: _COMPLETE}}
            await asyncio.gather(*(self._tables.write(one, values) for one in partitions))


class TableFill:
    """Fills partitions that lost their files and their changelog, from the log.

    It runs beside the projector, which writes newer rows meanwhile.
    """

    def __init__(self, served: ServedExecutions, log: EventStore) -> None:
        self._served, self._log = served, log
        self._assigned = asyncio.Event()

    def check(self) -> None:
        """Look for incomplete partitions: an assignment was made."""
        self._assigned.set()

    async def run(self) -> None:
        """Fill until cancelled.

        Raises:
            Unavailable: the log or the changelog cannot be reached; running again is safe.
        """
        while True:
            await self._assigned.wait()
            self._assigned.clear()  # before: an assignment during the fill counts
            try:
                if partitions := self._served.incomplete():
                    await self._fill(partitions)
            except PartitionLost:
                continue  # the next assignment sets it
            except Unavailable:
                self._assigned.set()
                raise

    async def _fill(self, partitions: frozenset[int]) -> None:
        views, frontier, events_read = Views(self._log), Frontier(), 0
        _log.info("table of executions: partitions %s are read from the log", sorted(partitions))
        while True:
            events, frontier = await self._log.read_log(frontier)
            if not events:
                break
            folded = await views.fold(by_root(events))
            await self._served.save(folded.changes, partitions)
            views.remember(folded)
            events_read += len(events)
        await self._served.complete(partitions)
        _log.info("table of executions: complete, %d events read", events_read)


def marks_complete(key: bytes, value: bytes | None) -> bool:
    """Return whether a changelog's record says that its partition is complete."""
    return (key, value) == (_COMPLETE_KEY, _COMPLETE)


def _key(execution_id: int) -> bytes:
    return str(execution_id).encode()


def _value(row: ExecutionRow) -> bytes | None:
    value = FORMAT + orjson.dumps(row)
    return value if len(value) <= MAX_VALUE_BYTES else None


def _age(value: bytes) -> tuple[int, int]:
    if value[:1] != FORMAT:
        return (0, 0)
    row = orjson.loads(value[1:])
    return (row["projection_version"], row["last_seq"])
