"""Moments of an execution: the event, place, time or Kafka offset up to which it is replayed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

from streams.events.model import Root
from streams.replay.errors import BadCutoff
from streams.replay.port import LogHead, StoredLog

_OFFSET = re.compile(r"(?P<topic>[A-Za-z0-9._-]+):(?P<partition>\d{1,9}):(?P<offset>\d{1,18})")


@dataclass(frozen=True, slots=True)
class KafkaOffset:
    """A record of a mirrored topic."""

    topic: str
    partition: int
    offset: int

    @classmethod
    def parse(cls, text: str) -> KafkaOffset:
        """Read `TOPIC:PARTITION:OFFSET`.

        Raises:
            BadCutoff: it has another form.
        """
        found = _OFFSET.fullmatch(text)
        if found is None:
            raise BadCutoff(
                f"{text!r} is not an offset; write TOPIC:PARTITION:OFFSET, "
                "for example noetl.events.execution:3:1200"
            )
        return cls(found["topic"], int(found["partition"]), int(found["offset"]))

    def __str__(self) -> str:
        return f"{self.topic}:{self.partition}:{self.offset}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cutoff:
    """At most one is set; none means the newest event. The event named is included."""

    event_id: int | None = None
    seq: int | None = None
    time: datetime | None = None
    offset: KafkaOffset | None = None

    def __post_init__(self) -> None:
        given = [name for name in self.__slots__ if getattr(self, name) is not None]
        if len(given) > 1:
            raise BadCutoff(f"{' and '.join(given)} are given; a state is as of one of them")


class OffsetReader(Protocol):
    """Finds the place in a root that a consumer of a topic had reached."""

    async def seq_at_offset(self, root: Root, offset: KafkaOffset) -> int:
        """Return the last place of `root` at or below an offset of its partition.

        Raises:
            BadCutoff: the topic, partition or offset does not exist, or has none of this root.
            Unavailable: Kafka cannot be reached.
        """
        ...


def time_of(text: str) -> datetime:
    """Read a time in ISO 8601; one without a zone is UTC.

    Raises:
        BadCutoff: it is not a time.
    """
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise BadCutoff(
            f"{text!r} is not a time; write ISO 8601, for example 2026-11-18T12:00:00.250Z"
        ) from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


async def seq_of(
    cutoff: Cutoff, root: Root, head: LogHead, log: StoredLog, offsets: OffsetReader | None = None
) -> int:
    """Return the last place of a root that belongs to the state.

    Raises:
        BadCutoff: the moment is before the first event, or after the last.
        Unavailable: log or Kafka cannot be reached.
    """
    if cutoff.seq is not None:
        if not 1 <= cutoff.seq <= head.seq:
            raise BadCutoff(f"{root}: has the places 1 to {head.seq}, not {cutoff.seq}")
        return cutoff.seq
    if cutoff.event_id is not None:
        seq = await log.seq_of_event(root, cutoff.event_id)
        if seq is None:
            raise BadCutoff(f"{root}: has no event {cutoff.event_id}")
        return seq
    if cutoff.time is not None:
        seq = await log.seq_at_time(root, cutoff.time)
        if seq == 0:
            raise BadCutoff(f"{root}: its first event is later than {cutoff.time.isoformat()}")
        return seq
    if cutoff.offset is not None:
        if offsets is None:
            raise BadCutoff(f"{cutoff.offset}: this process cannot read Kafka")
        return await offsets.seq_at_offset(root, cutoff.offset)
    return head.seq
