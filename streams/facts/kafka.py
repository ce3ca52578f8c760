"""Publishing of facts: one transactional producer for each partition of events.

A producer ends those of earlier owners of its partition when it opens, which is before its
first record: a process that was frozen cannot publish old facts after newer ones.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING

from aiokafka.errors import InvalidProducerEpoch, KafkaError, ProducerFenced

from streams.facts.port import FactRecord, FactsUnavailable, WriterFenced
from streams.kafka.clients import fenced_producer, started
from streams.kafka.feed.port import TopicPartition
from streams.retry import CALL_LIMIT_S

if TYPE_CHECKING:
    from aiokafka import AIOKafkaProducer

_STOP_S = 3.0


class KafkaFacts:
    """Publishes facts; use it as an async context manager. `name` begins its transactional ids."""

    def __init__(
        self, bootstrap: str, *, name: str = "noetl.facts", limit_s: float = CALL_LIMIT_S
    ) -> None:
        self._bootstrap, self._name, self._limit_s = bootstrap, name, limit_s
        self._producers: dict[TopicPartition, AIOKafkaProducer] = {}

    async def __aenter__(self) -> KafkaFacts:
        return self

    async def __aexit__(
        self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None
    ) -> None:
        await self.keep(frozenset())

    async def keep(self, assigned: frozenset[TopicPartition]) -> None:
        """Close the producers of other partitions."""
        for source in self._producers.keys() - assigned:
            await self._close(source)

    async def write(self, source: TopicPartition, records: Sequence[FactRecord]) -> None:
        """Publish records in one transaction."""
        if not records:
            return
        try:
            async with asyncio.timeout(self._limit_s):
                producer = self._producers.get(source) or await self._open(source)
                async with producer.transaction():
                    sent = [
                        await producer.send(
                            one.topic, one.value, key=one.key, timestamp_ms=one.timestamp_ms
                        )
                        for one in records
                    ]
                    await asyncio.gather(*sent)
        except (ProducerFenced, InvalidProducerEpoch) as error:
            await self._close(source)
            raise WriterFenced(str(source)) from error
        except (KafkaError, TimeoutError) as error:
            await self._close(source)
            raise FactsUnavailable(
                f"{self._bootstrap}: facts cannot be published: {error!r}; check that Kafka is up "
                "(`streams status`) and has the topics (`streams topics apply`)"
            ) from error

    async def _open(self, source: TopicPartition) -> AIOKafkaProducer:
        transactional_id = f"{self._name}-{source.topic}-{source.partition}"
        producer = await started(fenced_producer(self._bootstrap, transactional_id))
        self._producers[source] = producer
        return producer

    async def _close(self, source: TopicPartition) -> None:
        """Stop a producer; one that failed raises before it closes its connections."""
        if (producer := self._producers.pop(source, None)) is None:
            return
        with suppress(KafkaError, TimeoutError):
            async with asyncio.timeout(_STOP_S):
                await producer.stop()
        await producer.client.close()
