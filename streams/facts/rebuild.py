"""Rebuild of the facts: what is missing on the topics, or not what the log gives, is published.

The facts role may go on. What it publishes while an older value is on its way here would be
overwritten, so the roots that were written are compared again until nothing differs.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from streams.errors import Unavailable
from streams.events.model import Root
from streams.facts.codec import FactCodec
from streams.facts.comparison import compare
from streams.facts.content import FactContent
from streams.facts.port import FactRecord, FactWriter
from streams.kafka.feed.port import TopicPartition
from streams.log.port import EventStore
from streams.projector.heads import RootHeads

CHUNK = 5000
PASSES = 20
SOURCE = TopicPartition("log", 0)


class FactsUnsettled(Unavailable):
    """Facts of executions that change all the time were overwritten in every pass."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuiltFacts:
    """The outcome of a rebuild."""

    events: int
    written: int
    """Facts published, or published again."""
    deleted: int
    """Facts that the log does not have."""
    broken: tuple[str, ...]
    seconds: float


async def rebuild_facts(
    content: FactContent,
    heads: RootHeads,
    log: EventStore,
    codec: FactCodec,
    writer: FactWriter,
    on_events: Callable[[int], object] = lambda _: None,
) -> RebuiltFacts:
    """Make the topics equal to the log; return what was done.

    Raises:
        FactsUnsettled: after many passes, running executions still overtake it; run it again.
        Unavailable: the log or Kafka cannot be reached; run it again.
    """
    started_at = time.monotonic()
    done = _Written(writer)
    await content.read()
    found = await compare(
        content, heads, log, codec, on_differences=done.write, on_events=on_events
    )
    for _ in range(PASSES):
        if not done.roots:
            break
        only, done.roots = done.roots, set()
        await content.read()
        await compare(content, heads, log, codec, only=only, on_differences=done.write)
    else:
        raise FactsUnsettled(
            f"facts of {len(done.roots)} running executions were overtaken in {PASSES} passes; "
            "run it again when less is running"
        )
    seconds = time.monotonic() - started_at
    return RebuiltFacts(
        events=found.events,
        written=done.written,
        deleted=done.deleted,
        broken=found.broken,
        seconds=seconds,
    )


class _Written:
    """Publishes differences, and notes their roots."""

    def __init__(self, writer: FactWriter) -> None:
        self._writer = writer
        self.roots: set[Root] = set()
        self.written = self.deleted = 0

    async def write(self, root: Root | None, records: list[FactRecord]) -> None:
        """Publish records that make the facts of a root equal."""
        for start in range(0, len(records), CHUNK):
            await self._writer.write(SOURCE, records[start : start + CHUNK])
        if root is None:
            self.deleted += len(records)
        else:
            self.written += len(records)
            self.roots.add(root)
