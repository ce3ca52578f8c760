"""Events on a topic in memory, as the mirror writes them."""

from __future__ import annotations

import base64
from collections.abc import Sequence

from streams.events.canonical import millis
from streams.events.model import Event, NewEvent
from streams.kafka.feed.memory import MemoryTopics
from tests.support.events.examples import sealed


def mirror(
    topics: MemoryTopics, topic: str, events: Sequence[Event], new: Sequence[NewEvent]
) -> None:
    """Write stored events, made from `new`, to a topic."""
    by_key = {one.idempotency_key: one for one in new}
    for event in events:
        made = sealed(by_key[event.idempotency_key], event.event_id)
        headers = (
            ("seq", str(event.seq).encode()),
            ("position", str(event.position).encode()),
            ("stream_version", str(event.stream_version).encode()),
            ("chain", base64.b64encode(bytes.fromhex(event.chain))),
        )
        topics.write(
            topic, [made.envelope], headers=headers, timestamp_ms=millis(event.ingest_time)
        )
