"""The loop of the facts role: fold a batch, publish its facts, acknowledge."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping

from streams.errors import PoisonRecord
from streams.events.canonical import millis
from streams.events.codec import Codec
from streams.events.model import Event
from streams.facts.codec import FactCodec
from streams.facts.model import Fact, fact_topic
from streams.facts.port import FactRecord, FactWriter
from streams.facts.views import FactViews
from streams.kafka.feed.port import Feed, Record, TopicPartition
from streams.kafka.records import event_of_record
from streams.log.port import EventStore

logger = logging.getLogger(__name__)
SetAside = Callable[[Record, str], Awaitable[None]]


class FactsPublisher:
    """Publishes the facts of mirrored events. Driven by its feed."""

    def __init__(
        self,
        feed: Feed,
        log: EventStore,
        writer: FactWriter,
        codec: Codec,
        facts: FactCodec,
        *,
        set_aside: SetAside,
    ) -> None:
        self._feed, self._writer, self._codec, self._facts = feed, writer, codec, facts
        self._views, self._set_aside = FactViews(log), set_aside

    async def handle(self, batch: Mapping[TopicPartition, list[Record]]) -> None:
        """Publish the facts of a batch, partition by partition: fold, write, acknowledge.

        Raises:
            Unavailable: the log or Kafka cannot be reached; the same batch handled again
                publishes the same facts.
            WriterFenced: another process has the partition.
        """
        for source, records in batch.items():
            events = [event for record in records if (event := await self._event(record))]
            folded = await self._views.fold(events)
            await self._writer.write(source, fact_records(folded.facts.values(), self._facts))
            self._views.remember(folded)
            self._feed.acknowledge(records)

    async def _event(self, record: Record) -> Event | None:
        """Decode a record; a bad one is quarantined, since the log still has the event."""
        try:
            return await event_of_record(
                record.value, record.headers, record.timestamp_ms, self._codec
            )
        except PoisonRecord as error:
            logger.error("%s is quarantined: %s", record.address, error)
            await self._set_aside(record, str(error))
            return None


def fact_records(facts: Iterable[Fact], codec: FactCodec) -> list[FactRecord]:
    """Return the records of facts."""
    return [
        FactRecord(
            fact_topic(type(fact)),
            fact.key.encode(),
            codec.encode(fact),
            millis(fact.stored_at),
        )
        for fact in facts
    ]
