"""Comparison of an execution's events on Kafka with the log."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass

from streams.app import Log
from streams.events.model import Event, Root
from streams.kafka.event_reader import EventTopicReader

WITHIN_S = 30.0


@dataclass(frozen=True, slots=True)
class MirrorCheck:
    """The events of one root in the log, and faults of their mirror."""

    events: tuple[Event, ...]
    verified: int
    """Envelopes from Kafka with a verified checksum."""
    faults: tuple[str, ...]


async def check_mirror(
    log: Log, reader: EventTopicReader, root: Root, *, within_s: float = WITHIN_S
) -> MirrorCheck:
    """Read the root from the log and from `reader`, positioned before its first event."""
    in_log = [event async for event in log.store.read_root(root)]
    on_kafka: list[Event] = []
    verified = 0
    until = time.monotonic() + within_s
    while len(on_kafka) < len(in_log) and time.monotonic() < until:
        for record in await reader.batch():
            event = await record.event(log.codec)
            if event.root == root:
                on_kafka.append(event)
                verified += log.codec.verify(record.value or b"")
    faults = differences(in_log, on_kafka)
    if verified != len(on_kafka):
        faults.append(f"mirror: {len(on_kafka) - verified} envelopes have a wrong checksum")
    return MirrorCheck(tuple(in_log), verified, tuple(faults))


def differences(in_log: Sequence[Event], on_kafka: Sequence[Event]) -> list[str]:
    """Return faults of the mirror, and of the log's `seq` and chain."""
    found = []
    if len(on_kafka) != len(in_log):
        found.append(f"mirror: Kafka has {len(on_kafka)} events, the log has {len(in_log)}")
    elif list(on_kafka) != list(in_log):
        found.append("mirror: Kafka differs from the log")
    chain = bytes(32)
    for place, event in enumerate(in_log, start=1):
        chain = hashlib.sha256(chain + bytes.fromhex(event.checksum)).digest()
        if (event.seq, event.chain) != (place, chain.hex()):
            return [*found, f"log: event {place} breaks the chain"]
    return found
