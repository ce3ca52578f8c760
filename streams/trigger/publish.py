"""Producer of single trigger records."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import orjson
from confluent_kafka import KafkaError, KafkaException, Message

from streams.events.model import Json
from streams.kafka.clients import single_send_producer
from streams.kafka.errors import FeedUnavailable
from streams.kafka.feed.port import TopicPartition

TOPIC = "noetl.triggers"


async def publish(
    bootstrap: str,
    fields: Mapping[str, Json],
    *,
    key: str | None = None,
    topic: str = TOPIC,
    timeout_s: float = 15.0,
) -> tuple[TopicPartition, int]:
    """Publish a JSON record and return its origin once it is durable.

    Raises:
        FeedUnavailable: the broker did not confirm it in time; it may or may not be stored.
    """
    value = orjson.dumps(dict(fields))
    return await asyncio.to_thread(_publish, bootstrap, topic, key, value, timeout_s)


def _publish(
    bootstrap: str, topic: str, key: str | None, value: bytes, timeout_s: float
) -> tuple[TopicPartition, int]:
    answers: list[tuple[KafkaError | None, Message]] = []
    producer = single_send_producer(bootstrap, timeout_s=timeout_s)
    try:
        producer.produce(topic, value, key, on_delivery=lambda *report: answers.append(report))
        producer.flush(timeout_s + 1)
    except (KafkaException, BufferError) as error:
        raise _failed(bootstrap, topic, str(error)) from error
    if not answers or answers[0][0] is not None:
        refusal = answers[0][0] if answers else None
        raise _failed(bootstrap, topic, refusal.str() if refusal else "no answer in time")
    message = answers[0][1]
    partition, offset = message.partition(), message.offset()
    assert partition is not None
    assert offset is not None
    return TopicPartition(topic, partition), offset


def _failed(bootstrap: str, topic: str, why: str) -> FeedUnavailable:
    return FeedUnavailable(
        f"{bootstrap}: {topic} did not accept the trigger: {why}; check that Kafka is up "
        "(`streams status`), then trigger again with the same --key"
    )
