"""Lag of a sink: what its topics have beyond its committed offsets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import uuid4

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # it lacks an __all__
    AdminClient,
    OffsetSpec,
)

from streams.analytics.sinks import AnalyticsSink
from streams.kafka.clients import admin, range_consumer, reason
from streams.kafka.errors import BrokerUnavailable

_PROBE_S = 5.0
_FETCH_WAIT_MS = 10
_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]


@dataclass(frozen=True, slots=True)
class SinkPartition:
    """One partition: its first and last offset, and the sink's; None if it has none yet."""

    topic: str
    partition: int
    first: int
    end: int
    committed: int | None

    @property
    def next(self) -> int:
        """The offset that the sink reads next."""
        return max(self.first, self.committed or 0)

    @property
    def behind(self) -> int:
        """Offsets not read yet: records, and markers of transactions."""
        return max(0, self.end - self.next)


@dataclass(frozen=True, slots=True)
class SinkLag:
    """Lag of a sink, and the number of its dead letters."""

    sink: str
    partitions: tuple[SinkPartition, ...]
    dead_letters: int

    @property
    def behind(self) -> int:
        """Offsets not read yet, in all partitions."""
        return sum(one.behind for one in self.partitions)

    @property
    def trimmed(self) -> tuple[str, ...]:
        """Topics that no longer begin at their first record."""
        return tuple(dict.fromkeys(one.topic for one in self.partitions if one.first > 0))


class LagReader:
    """Reads lags from one Kafka cluster; its calls block."""

    def __init__(self, bootstrap: str, *, timeout_s: float = 15.0) -> None:
        self._bootstrap, self._timeout_s = bootstrap, timeout_s
        self._admin: AdminClient = admin(bootstrap)

    def read(self, sink: AnalyticsSink) -> SinkLag:
        """Return the lag of a sink.

        A transaction ends with a marker, which is an offset but no record, and no sink commits
        beyond it. Partitions in which only markers remain have no lag.

        Raises:
            BrokerUnavailable: Kafka does not answer.
        """
        try:
            partitions = self._partitions(sink)
            (dead,) = self._ends([TopicPartition(sink.dead_letters, 0)], _LATEST)
            (dead_first,) = self._ends([TopicPartition(sink.dead_letters, 0)], _EARLIEST)
        except KafkaException as error:
            raise BrokerUnavailable(
                f"{self._bootstrap}: {reason(error)}; see that Kafka is up and that "
                "`streams topics apply` has created the topics"
            ) from error
        return SinkLag(sink.name, tuple(partitions), dead - dead_first)

    def _partitions(self, sink: AnalyticsSink) -> list[SinkPartition]:
        found = self._admin.list_topics(timeout=self._timeout_s).topics
        places = [
            TopicPartition(topic, number)
            for topic in sink.topics
            if topic in found
            for number in sorted(found[topic].partitions)
        ]
        committed = self._committed(sink.group, places)
        lags = [
            SinkPartition(place.topic, place.partition, first, end, at)
            for place, first, end, at in zip(
                places,
                self._ends(places, _EARLIEST),
                self._ends(places, _LATEST),
                committed,
                strict=True,
            )
        ]
        return self._without_markers(lags)

    def _committed(self, group: str, places: Sequence[TopicPartition]) -> list[int | None]:
        asked = [ConsumerGroupTopicPartitions(group, list(places))]
        (future,) = self._admin.list_consumer_group_offsets(asked).values()
        answer = future.result(timeout=self._timeout_s).topic_partitions
        known = {(one.topic, one.partition): one.offset for one in answer}
        offsets = [known.get((place.topic, place.partition), -1) for place in places]
        return [offset if offset >= 0 else None for offset in offsets]

    def _ends(self, places: Sequence[TopicPartition], spec: OffsetSpec) -> list[int]:
        answers = self._admin.list_offsets(
            dict.fromkeys(places, spec),
            isolation_level=IsolationLevel.READ_COMMITTED,
            request_timeout=self._timeout_s,
        )
        found = {
            (place.topic, place.partition): future.result(timeout=self._timeout_s).offset
            for place, future in answers.items()
        }
        return [found[place.topic, place.partition] for place in places]

    def _without_markers(self, lags: Sequence[SinkPartition]) -> list[SinkPartition]:
        behind = [one for one in lags if one.behind]
        with_records = self._with_records(behind) if behind else set()
        return [
            one if (one.topic, one.partition) in with_records else replace(one, committed=one.end)
            for one in lags
        ]

    def _with_records(self, lags: Sequence[SinkPartition]) -> set[tuple[str, int]]:
        """Return the partitions with a record beyond the committed offset."""
        found: set[tuple[str, int]] = set()
        waiting = {(one.topic, one.partition) for one in lags}
        consumer = range_consumer(
            self._bootstrap, group=f"noetl.lag.{uuid4().hex}", fetch_wait_ms=_FETCH_WAIT_MS
        )
        try:
            consumer.assign([TopicPartition(one.topic, one.partition, one.next) for one in lags])
            while waiting:
                message = consumer.poll(_PROBE_S)
                if message is None:
                    return found | waiting  # no answer: as far behind as the offsets say
                place = (str(message.topic()), _number(message))
                error = message.error()
                if error is None:
                    found.add(place)
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                if place in waiting:
                    waiting.remove(place)
                    consumer.incremental_unassign([TopicPartition(*place)])
            return found
        finally:
            consumer.close()


def _number(message: Message) -> int:
    partition = message.partition()
    assert partition is not None
    return partition
