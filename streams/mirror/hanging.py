"""Detection and abort of hanging Kafka transactions.

A killed broker may lose a transaction's state but keep its records. Nothing then ends it: its
producer has a new epoch, its coordinator does not know it, and read_committed consumers,
Connect included, wait before it. Only an abort marker written by an admin ends it, as with
`kafka-transactions abort`. The mirror's producers have a transaction timeout of 10 s, so one
that is open for much longer hangs.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

from aiokafka.errors import KafkaError
from aiokafka.structs import TopicPartition

from streams.errors import StreamsError
from streams.kafka.clients import protocol_client
from streams.kafka.errors import BrokerUnavailable
from streams.kafka.names import event_topic
from streams.kafka.transaction_requests import AbortMarkers, DescribeProducers
from streams.resources import folder
from streams.topology import load

OFFSETS_TOPIC = "noetl.connect.offsets"
HANGS_AFTER_S = 40.0
_INTERVAL_S = 10.0


def written_topics() -> tuple[str, ...]:
    """Return the topics that the mirror writes in transactions."""
    return (*(event_topic(root) for root in load(folder("topics")).roots), OFFSETS_TOPIC)


@dataclass(frozen=True, slots=True)
class Hanging:
    """A hanging transaction on one partition."""

    topic: str
    partition: int
    offset: int
    """The last stable offset: read_committed consumers wait here."""
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int

    def __str__(self) -> str:
        where = f"{self.topic}-{self.partition} at offset {self.offset}"
        return f"a transaction of producer {self.producer_id} hangs on {where}"


class Lookout:
    """Detects hanging transactions: those observed open for longer than the timeout.

    The age that the broker reports is that of the records' timestamps, which are old while the
    mirror catches up. So a single observation never suffices.
    """

    def __init__(
        self,
        bootstrap: str,
        topics: Iterable[str] | None = None,
        *,
        after_s: float = HANGS_AFTER_S,
    ) -> None:
        self._bootstrap, self._after_s = bootstrap, after_s
        self._topics = set(written_topics() if topics is None else topics)
        self._since: dict[Hanging, float] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether transactions were open at the last observation: some of them may hang."""
        return bool(self._since)

    async def look(self) -> tuple[Hanging, ...]:
        """Observe open transactions and return those that hang.

        Raises:
            BrokerUnavailable: a broker does not respond.
        """
        now, found = time.monotonic(), await self._open()
        self._since = {one: self._since.get(one, now) for one in found}
        return tuple(one for one, since in self._since.items() if now - since >= self._after_s)

    async def _open(self) -> list[Hanging]:
        async with _client(self._bootstrap) as client:
            found: list[Hanging] = []
            for node, partitions in (await _leaders(client, self._topics)).items():
                found += _in_transaction(await client.send(node, DescribeProducers(partitions)))
            return found


async def end_hanging(bootstrap: str, hanging: Sequence[Hanging]) -> None:
    """Write an abort marker for each; consumers skip the records.

    Raises:
        BrokerUnavailable: a broker does not respond, or refuses.
    """
    async with _client(bootstrap) as client:
        leaders = await _leaders(client, {one.topic for one in hanging})
        for one in hanging:
            topic_partition = TopicPartition(one.topic, one.partition)
            node = next(
                node for node, partitions in leaders.items() if topic_partition in partitions
            )
            epochs = one.producer_epoch, one.coordinator_epoch
            answer = await client.send(
                node, AbortMarkers(topic_partition, one.producer_id, *epochs)
            )
            [(_, [(_, [(_, error, *_)], *_)], *_)] = answer.markers
            if error:
                raise BrokerUnavailable(f"{one} and cannot be aborted: Kafka reports error {error}")


@asynccontextmanager
async def _client(bootstrap: str) -> AsyncIterator[Any]:
    client = protocol_client(bootstrap)
    try:
        await client.bootstrap()
        yield client
    except (KafkaError, OSError) as error:
        raise BrokerUnavailable(f"{bootstrap}: {error}") from error
    finally:
        await client.close()


async def _leaders(client: Any, topics: set[str]) -> dict[int, list[TopicPartition]]:
    cluster = await client.fetch_all_metadata()
    leaders: dict[int, list[TopicPartition]] = {}
    for topic in sorted(topics & cluster.topics(exclude_internal_topics=False)):
        for partition in sorted(cluster.partitions_for_topic(topic) or ()):
            topic_partition = TopicPartition(topic, partition)
            if (node := cluster.leader_for_partition(topic_partition)) not in (None, -1):
                leaders.setdefault(node, []).append(topic_partition)
    return leaders


def _in_transaction(answer: Any) -> Iterable[Hanging]:
    for topic, partitions, _ in answer.topics:
        for partition, _error, _message, producers, _ in partitions:
            for producer, epoch, _sequence, _at_ms, coordinator, offset, _ in producers or ():
                if offset >= 0:
                    yield Hanging(
                        topic=topic,
                        partition=partition,
                        offset=offset,
                        producer_id=producer,
                        producer_epoch=epoch,
                        coordinator_epoch=max(coordinator, 0),
                    )


async def look_twice(bootstrap: str, before_waiting: Callable[[], None]) -> tuple[Hanging, ...]:
    """Return what hangs; where a transaction is open, wait as long as one may be and look again."""
    lookout = Lookout(bootstrap)
    await lookout.look()
    if not lookout.is_waiting:
        return ()
    before_waiting()
    await asyncio.sleep(HANGS_AFTER_S)
    return await lookout.look()


async def keep_ending(bootstrap: str, report: Callable[[str], None]) -> None:
    """End transactions that hang since Kafka was killed, until cancelled."""
    lookout = Lookout(bootstrap)
    while True:
        await asyncio.sleep(_INTERVAL_S)
        with suppress(StreamsError):  # Kafka is down: nothing can be ended before it is back
            if found := await lookout.look():
                await end_hanging(bootstrap, found)
                for one in found:
                    report(f"mirror: {one}; it was ended")
