"""Publishing one trigger record, as any program could."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import orjson
from confluent_kafka import KafkaError, KafkaException, Message, Producer

from streams.events.model import Json
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
    """Publish a JSON record and return where it stands once it is durable.

    Raises:
        FeedUnavailable: the broker did not take it in time; whether it has it is not known.
    """
    value = orjson.dumps(dict(fields))
    return await asyncio.to_thread(_publish, bootstrap, topic, key, value, timeout_s)


def _publish(
    bootstrap: str, topic: str, key: str | None, value: bytes, timeout_s: float
) -> tuple[TopicPartition, int]:
    answers: list[tuple[KafkaError | None, Message]] = []
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "enable.idempotence": True,
        # As Java's clients do: every writer puts a key on the same partition.
        "partitioner": "murmur2_random",
        "linger.ms": 0,
        "message.timeout.ms": int(timeout_s * 1000),
        "log_level": 0,
    }
    producer = Producer(settings)
    try:
        producer.produce(topic, value, key, on_delivery=lambda *told: answers.append(told))
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
        f"{bootstrap}: {topic} did not take the trigger: {why}; see that Kafka is up "
        "(`streams status`), then trigger again with the same --key"
    )
