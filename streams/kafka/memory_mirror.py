"""The mirror of the log on memory topics, for the simulator and trial runs."""

from __future__ import annotations

import base64

from streams.events.canonical import millis
from streams.events.model import Event
from streams.kafka.feed.memory import MemoryTopics
from streams.kafka.names import event_topic


def write_event(topics: MemoryTopics, event: Event, envelope: bytes) -> None:
    """Write a stored event to its root's topic, as Debezium does."""
    headers = (
        ("seq", str(event.seq).encode()),
        ("position", str(event.position).encode()),
        ("stream_version", str(event.stream_version).encode()),
        ("chain", base64.b64encode(bytes.fromhex(event.chain))),
    )
    topics.write(
        event_topic(event.root.type),
        [envelope],
        key=str(event.root.id).encode(),
        partition=event.root.id % topics.partitions,
        headers=headers,
        timestamp_ms=millis(event.ingest_time),
    )
