"""Faust's manager of tables: changelogs first, then files, in one step each.

The changelogs are fenced: each owned partition has a transactional producer, and its next owner
ends the transactions of the former one before it reads where the changelogs end.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aiokafka.errors import KafkaError
from faust.tables.manager import TableManager as FaustTableManager
from faust.types import TP

from streams.kafka.clients import fenced_producer
from streams.kafka.clients import started as client_started
from streams.kafka.errors import ChangelogFailed
from streams.kafka.tables.port import Changes, PartitionLost
from streams.kafka.transport.delivery import FAUST_LOG
from streams.kafka.transport.recovery import Recovery
from streams.kafka.transport.store import ByteTable

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer

_log = logging.getLogger(__name__)
RETRY_S = 0.5
MOST_FAILURES = 5
"""Failed writes, one after another, until the process exits."""


class TableManager(FaustTableManager):
    """Faust's manager of tables, with a fenced writer for each owned partition."""

    app: Any
    logger = FAUST_LOG

    def __init__(self, app: Any, **options: Any) -> None:
        super().__init__(app, **options)
        self._writers: dict[int, AIOKafkaProducer] = {}
        self._opened: list[AIOKafkaProducer] = []
        self._is_refused = False
        """Whether a write failed since the last assignment: files can be read, not written."""
        self._failures = 0

    @property
    def recovery(self) -> Recovery:
        """The recovery of changelogs."""
        if self._recovery is None:
            self._recovery = Recovery(self.app, self, beacon=self.beacon, loop=self.loop)
        assert isinstance(self._recovery, Recovery)
        return self._recovery

    async def on_start(self) -> None:
        """Register the tables, without the second that Faust waits for late ones."""
        if not self.should_stop:
            await self._update_channels()
            await self.recovery.start()

    async def on_stop(self) -> None:
        """Close the writers, then the tables."""
        await self.unfence()
        await super().on_stop()

    async def fence(self, partitions: set[int]) -> None:
        """Open a writer for each partition; those of earlier owners are refused from now on."""
        await self.unfence()
        opened = await asyncio.gather(*(self._open_writer(one) for one in partitions))
        self._writers = dict(zip(partitions, opened, strict=True))
        self._opened, self._is_refused = list(opened), False

    async def unfence(self) -> None:
        """Close all writers: partitions are revoked, or the process stops."""
        self._writers = {}
        opened, self._opened = self._opened, []
        await asyncio.gather(*(_closed(one) for one in opened))

    async def check_files(self, changelogs: set[TP]) -> None:
        """Recreate files whose changelog is not the one they were written with."""
        for one in changelogs:
            table = self.recovery.tp_to_table[one]
            assert isinstance(table, ByteTable)
            topic_id = await self.app.topic_ids.topic_id(one.topic)
            if not table.data.belongs_to(one.partition, topic_id):
                if table.data.persisted_offset(one) is not None:
                    _log.warning("%s of %s is of another changelog: recreated", table.name, one)
                table.data.recreate(one.partition, topic_id)

    def check_offsets(self, ends: Mapping[TP, int]) -> None:
        """Recreate files that are ahead of their changelog, which lost records."""
        for one, end in ends.items():
            table = self.recovery.tp_to_table[one]
            assert isinstance(table, ByteTable)
            if (table.data.persisted_offset(one) or -1) > end:
                _log.warning("%s is ahead of changelog %s: recreated", table.name, one)
                table.data.recreate(one.partition)

    @property
    def owned(self) -> frozenset[int]:
        """The partitions that can be written."""
        return frozenset(self._writers)

    @property
    def can_write(self) -> bool:
        """Whether no write failed since the last assignment."""
        return bool(self._writers) and not self._is_refused

    async def write(self, partition: int, changes: Changes) -> None:
        """Write changes of a partition: one transaction over its changelogs, then the files.

        Only the group knows whether the partition is still ours when a transaction fails: a
        former owner is refused, and so is one whose transaction timed out. Joining again answers
        it, and what was not written is read from the log.
        """
        if (writer := self._writers.get(partition)) is None or self._is_refused:
            raise PartitionLost(f"partition {partition} is not assigned")
        # Now: a recovery that is about to end may read what is written next.
        before = {name: self._last_offset(name, partition) for name in changes}
        try:
            async with writer.transaction():
                offsets = {
                    name: await self._send(writer, name, partition, values)
                    for name, values in changes.items()
                    if values
                }
        except KafkaError as error:
            self._fail(partition, writer, error)
            raise PartitionLost(f"partition {partition}: {error!r}") from error
        if self._writers.get(partition) is not writer:
            raise PartitionLost(f"partition {partition} was revoked")
        self._failures = 0
        if any(offset <= before[name] for name, offset in offsets.items()):
            self.read_again()
            raise PartitionLost(f"the changelogs of partition {partition} were replaced")
        for name, last_offset in offsets.items():
            self._table(name).data.apply(partition, changes[name].items(), last_offset)

    def _last_offset(self, table: str, partition: int) -> int:
        found = self._table(table)
        last_offset = found.persisted_offset(TP(found.changelog_topic_name, partition))
        return -1 if last_offset is None else last_offset

    def has_files_of(self, changelog: str, topic_id: str) -> bool:
        """Return whether the files of all owned partitions were written with this topic."""
        table = next(one for one in self.values() if one.changelog_topic_name == changelog)
        assert isinstance(table, ByteTable)
        return all(table.data.belongs_to(one, topic_id) for one in self._writers)

    def read_again(self) -> None:
        """Join the group again: a changelog was replaced, and its files must be recreated."""
        _log.warning("a changelog was replaced; joining the group again")
        self._is_refused = True
        self.app.consumer.rejoin()

    def _fail(self, partition: int, writer: AIOKafkaProducer, error: KafkaError) -> None:
        """Join the group again, unless the partition was revoked anyway.

        Raises:
            ChangelogFailed: it failed too often.
        """
        if self._writers.get(partition) is not writer or self._is_refused:
            return
        self._failures += 1
        if self._failures > MOST_FAILURES:
            raise ChangelogFailed(self.app.membership.group, partition, error)
        _log.warning("changelogs of partition %d: %r; joining the group again", partition, error)
        self._is_refused = True
        self.app.consumer.rejoin()

    def read(self, partition: int, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """Return the values of keys."""
        return self._table(table).data.read(partition, keys)

    def scan(self, partition: int, table: str) -> Iterator[tuple[bytes, bytes]]:
        """Yield every key and value of a partition."""
        return self._table(table).data.scan(partition)

    async def _send(
        self,
        writer: AIOKafkaProducer,
        table: str,
        partition: int,
        values: Mapping[bytes, bytes | None],
    ) -> int:
        """Send values in as few batches as they fit; return the last offset."""
        topic = self._table(table).changelog_topic_name
        sent, batch = [], writer.create_batch()
        for key, value in values.items():
            if batch.append(key=key, value=value, timestamp=None) is None:
                batch.close()
                sent.append((batch, await writer.send_batch(batch, topic, partition=partition)))
                batch = writer.create_batch()
                batch.append(key=key, value=value, timestamp=None)
        batch.close()
        sent.append((batch, await writer.send_batch(batch, topic, partition=partition)))
        last_offset = -1
        for batch, stored in sent:
            last_offset = int((await stored).offset) + batch.record_count() - 1
        return last_offset

    async def _open_writer(self, partition: int) -> AIOKafkaProducer:
        member = self.app.membership
        transactional_id = f"{member.group}-{partition}"
        while True:
            try:
                writer = await client_started(fenced_producer(member.bootstrap, transactional_id))
                break
            except KafkaError as error:
                if not error.retriable:
                    raise
                _log.warning("changelogs of partition %d: %r; retrying", partition, error)
                await asyncio.sleep(RETRY_S)
        # Started means connected: the id, which ends earlier transactions, is asked for later.
        await writer._txn_manager.wait_for_pid()
        return writer

    def _table(self, name: str) -> ByteTable:
        table = self[name]
        assert isinstance(table, ByteTable)
        return table


async def _closed(writer: AIOKafkaProducer) -> None:
    """Stop a writer; one that was refused raises before it closes its connections."""
    with suppress(KafkaError, TimeoutError):
        async with asyncio.timeout(3.0):
            await writer.stop()
    await writer.client.close()
