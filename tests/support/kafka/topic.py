"""A topic for one test: records in transactions, committed offsets and lag of its group."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AsyncExitStack
from typing import Any
from uuid import uuid4

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka import TopicPartition as KafkaPartition
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

PARTITIONS = 2


class KafkaTopic:
    """A topic of two partitions; the group that reads it has its name."""

    def __init__(self, bootstrap: str) -> None:
        self.name, self.bootstrap = f"noetl.test.{uuid4().hex}", bootstrap
        self.partitions = [KafkaPartition(self.name, number) for number in range(PARTITIONS)]
        self._stack = AsyncExitStack()

    async def open(self) -> None:
        self._admin = AIOKafkaAdminClient(bootstrap_servers=self.bootstrap)
        await self._admin.start()
        self._stack.push_async_callback(self._admin.close)
        await self.create()
        self._ends = await self._started(
            AIOKafkaConsumer(bootstrap_servers=self.bootstrap, isolation_level="read_committed")
        )
        self._plain = await self._started(AIOKafkaProducer(bootstrap_servers=self.bootstrap))
        self._transactional = await self._started(
            AIOKafkaProducer(bootstrap_servers=self.bootstrap, transactional_id=self.name)
        )

    async def create(self) -> None:
        await self._admin.create_topics([NewTopic(self.name, PARTITIONS, 1)])

    async def delete(self) -> None:
        await self._admin.delete_topics([self.name])

    async def _started(self, client: Any) -> Any:
        await client.start()
        self._stack.push_async_callback(client.stop)
        return client

    async def close(self) -> None:
        await self.delete()
        await self._stack.aclose()

    async def write(self, *values: str, partition: int = 0) -> None:
        """Write records; return once they are durable."""
        for value in values:
            await self._plain.send_and_wait(self.name, value.encode(), partition=partition)

    async def transaction(
        self, values: Iterable[tuple[int, str]], *, aborted: bool = False
    ) -> set[tuple[int, int]]:
        """Write records to partitions in a transaction; return their partitions and offsets."""
        await self._transactional.begin_transaction()
        sent = [
            await self._transactional.send(self.name, value.encode(), partition=partition)
            for partition, value in values
        ]
        await self._transactional.flush()
        if aborted:
            await self._transactional.abort_transaction()
        else:
            await self._transactional.commit_transaction()
        return {(found.partition, found.offset) for found in [await one for one in sent]}

    async def committed(self) -> Sequence[int]:
        """Return the committed offset of each partition; 0 for none."""
        found = await self._admin.list_consumer_group_offsets(self.name)
        return [max(0, found[one].offset) if one in found else 0 for one in self.partitions]

    async def has_committed(self, *offsets: int) -> bool:
        return list(await self.committed()) == list(offsets)

    async def lag(self) -> int:
        """Return the offsets between the committed ones and the last stable ones."""
        ends = await self._ends.end_offsets(self.partitions)
        return int(sum(ends.values())) - sum(await self.committed())
