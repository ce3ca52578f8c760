"""Reads the records that groups consume next, from the topics themselves."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicPartition

from streams.kafka.clients import peek_consumer, reason
from streams.kafka.errors import BrokerUnavailable

Partition = tuple[str, int]
_TOOL_GROUP = "noetl.tools"
_TRANSIENT = {
    KafkaError._TRANSPORT,
    KafkaError._ALL_BROKERS_DOWN,
    KafkaError._RESOLVE,
    KafkaError._TIMED_OUT,
}


@dataclass(frozen=True, slots=True)
class NextRecord:
    """A record that a group has not consumed."""

    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    headers: Sequence[tuple[str, bytes | None]]


def next_records(
    bootstrap: str,
    positions: Mapping[Partition, int],
    *,
    is_committed: bool,
    most: int = 1,
    timeout_s: float = 15.0,
) -> dict[Partition, list[NextRecord]]:
    """Return up to `most` records of each partition from its position on; none at the end.

    Raises:
        BrokerUnavailable: a partition cannot be read in time.
    """
    found: dict[Partition, list[NextRecord]] = {one: [] for one in positions}
    if not positions:
        return found
    consumer = peek_consumer(bootstrap, group=_TOOL_GROUP, is_committed=is_committed)
    try:
        consumer.assign([TopicPartition(*one, offset) for one, offset in positions.items()])
        _fill(consumer, found, most, bootstrap, timeout_s)
    except KafkaException as error:
        raise BrokerUnavailable(f"{bootstrap}: cannot read: {reason(error)}") from error
    finally:
        consumer.close()
    return found


def _fill(
    consumer: Any,
    found: dict[Partition, list[NextRecord]],
    most: int,
    bootstrap: str,
    timeout_s: float,
) -> None:
    pending, deadline = set(found), time.monotonic() + timeout_s
    while pending:
        message = consumer.poll(0.2)
        if message is None:
            if time.monotonic() > deadline:
                raise BrokerUnavailable(
                    f"{bootstrap}: no response for {len(pending)} partitions, "
                    f"{'-'.join(map(str, min(pending)))} among them; check the brokers"
                )
            continue
        one = (message.topic(), message.partition())
        if (error := message.error()) is not None:
            if error.code() == KafkaError._PARTITION_EOF:
                pending.discard(one)
            elif error.code() not in _TRANSIENT:
                raise KafkaException(error)
            continue
        if one not in pending:
            continue
        found[one].append(
            NextRecord(
                message.offset(),
                message.timestamp()[1],
                message.key(),
                message.value(),
                message.headers() or (),
            )
        )
        if len(found[one]) >= most:
            pending.discard(one)
            consumer.pause([TopicPartition(*one)])
