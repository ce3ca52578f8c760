"""The projector's loop: fold a batch, save its rows, serve them, acknowledge."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping

from streams.errors import PoisonRecord
from streams.events.codec import Codec
from streams.events.model import Event
from streams.kafka.feed.port import Feed, Record, TopicPartition
from streams.kafka.names import event_topic
from streams.kafka.records import event_of_record
from streams.kafka.tables.port import PartitionLost
from streams.log.port import EventStore
from streams.projector.business.fold import BusinessFolds
from streams.projector.outputs import Outputs
from streams.projector.port import Checkpoint, ProjectionWriter
from streams.projector.served import ServedExecutions
from streams.projector.views import Views, by_root

logger = logging.getLogger(__name__)
PROJECTION = "seen"
EXECUTION_TOPIC = event_topic("execution")
SetAside = Callable[[Record, str], Awaitable[None]]


class Projector:
    """Projects the mirrored events of executions and of the catalog. Driven by its feed."""

    def __init__(
        self,
        feed: Feed,
        log: EventStore,
        store: ProjectionWriter,
        codec: Codec,
        *,
        shard_id: str,
        topic_ids: Mapping[str, str],
        set_aside: SetAside | None = None,
        outputs: Outputs | None = None,
        business: BusinessFolds | None = None,
        served: ServedExecutions | None = None,
        snapshot_interval: int | None = None,
    ) -> None:
        """`business` reads the outputs of frames itself; without it, `outputs` does.

        `snapshot_interval`: events between two snapshots of an execution; None: none.
        """
        self._feed, self._store, self._codec = feed, store, codec
        self._views = Views(log, snapshot_interval=snapshot_interval)
        self._shard_id, self._topic_ids = shard_id, topic_ids
        self._set_aside, self._outputs, self._served = set_aside, outputs, served
        self._business = business

    async def handle(self, batch: Mapping[TopicPartition, list[Record]]) -> None:
        """Project one batch: decode, fold, save, remember, acknowledge, in that order.

        Raises:
            Unavailable: log, tables or payloads cannot be reached; nothing was done, and the
                same batch handled again gives the same rows.
        """
        events: list[Event] = []
        checkpoints = []
        for partition, records in batch.items():
            found = [event for record in records if (event := await self._event(record))]
            position = found[-1].position if found else 0
            checkpoints.append(self._checkpoint(partition, records[-1].offset + 1, position))
            events += found
        folded = await self._views.fold(by_root(events))
        if self._business is not None:
            folded.changes.add(await self._business.rows(events, folded.states))
        elif self._outputs is not None:
            folded.changes.add(await self._outputs.rows(events))
        await self._store.save(folded.changes, checkpoints)
        if self._served is not None:
            try:
                partitions = {one.partition for one in batch if one.topic == EXECUTION_TOPIC}
                await self._served.save(folded.changes, partitions)
            except PartitionLost as error:
                logger.info("%s: these records are projected again", error)
                return
        self._views.remember(folded)
        self._feed.acknowledge(record for records in batch.values() for record in records)

    async def _event(self, record: Record) -> Event | None:
        """Decode the record; a bad one is quarantined, since the log still has the event."""
        try:
            return await event_of_record(
                record.value, record.headers, record.timestamp_ms, self._codec
            )
        except PoisonRecord as error:
            logger.error("%s is quarantined: %s", record.address, error)
            if self._set_aside is not None:
                await self._set_aside(record, str(error))
            return None

    def _checkpoint(self, partition: TopicPartition, next_offset: int, position: int) -> Checkpoint:
        return Checkpoint(
            projection=PROJECTION,
            shard_id=self._shard_id,
            topic=partition.topic,
            topic_id=self._topic_ids.get(partition.topic, ""),
            partition=partition.partition,
            next_offset=next_offset,
            last_position=position,
        )
