"""Comparison of the fact topics with a fold of the log."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterable
from dataclasses import dataclass, field

from streams.errors import Inconsistent
from streams.events.model import Root
from streams.facts.audit import audit_facts
from streams.facts.codec import FactCodec, UnreadableFact
from streams.facts.content import ContentSum, FactContent
from streams.facts.core import FactState, absorb
from streams.facts.loop import fact_records
from streams.facts.model import TOPICS, Fact, fact_topic
from streams.facts.port import FactRecord
from streams.log.port import EventStore
from streams.projector.heads import BEFORE_ALL, RootHeads, RootPlace

PAGE = 500
OnDifferences = Callable[[Root | None, list[FactRecord]], Awaitable[None]]
"""Given the records that would make the facts of a root equal; without a root, tombstones."""


@dataclass(slots=True)
class TopicFacts:
    """One topic and the facts that the log has for it."""

    topic: str
    facts: int = 0
    """Keys on the topic."""
    expected: int = 0
    """Facts of the log."""
    missing: int = 0
    older: int = 0
    """As of an earlier position: not published yet, or overwritten."""
    different: int = 0
    """As of the same position or a later one, but not what the log gives."""
    unknown: int = 0
    """Keys that the log does not have."""
    content: ContentSum = field(default_factory=ContentSum)
    log: ContentSum = field(default_factory=ContentSum)

    @property
    def is_equal(self) -> bool:
        """Whether the topic has exactly the facts of the log."""
        return self.content.hex() == self.log.hex()

    def as_json(self) -> dict[str, object]:
        """Return what commands print."""
        return {
            "topic": self.topic,
            "equal": self.is_equal,
            "facts": self.facts,
            "expected": self.expected,
            "missing": self.missing,
            "older": self.older,
            "different": self.different,
            "unknown": self.unknown,
            "checksum": self.content.hex(),
            "log_checksum": self.log.hex(),
        }


@dataclass(frozen=True, slots=True)
class FactComparison:
    """All topics, and the roots that cannot be folded to their end."""

    topics: tuple[TopicFacts, ...]
    events: int
    broken: tuple[str, ...]

    @property
    def is_equal(self) -> bool:
        """Whether every topic has exactly the facts of the log."""
        return all(one.is_equal for one in self.topics)


async def compare(
    content: FactContent,
    heads: RootHeads,
    log: EventStore,
    codec: FactCodec,
    *,
    only: Collection[Root] | None = None,
    on_differences: OnDifferences | None = None,
    on_events: Callable[[int], object] = lambda _: None,
) -> FactComparison:
    """Compare what was read of the topics with the log, which is read after it.

    `only` limits it to some roots; checksums and `unknown` are then of no use.

    Raises:
        Unavailable: the log cannot be read.
    """
    found = {topic: TopicFacts(topic) for topic in TOPICS}
    rest = {topic: set(values) for topic, values in content.values.items()}
    events, broken = 0, []
    async for place in _places(heads):
        if only is not None and place.root not in only:
            continue
        facts, is_whole = await _facts(place, log)
        if not is_whole:
            broken.append(str(place.root))
        wrong = [
            record
            for record in fact_records(facts, codec)
            if not await _is_equal(record, content, found[record.topic], codec)
        ]
        for fact in facts:
            rest[fact_topic(type(fact))].discard(fact.key.encode())
        if wrong and on_differences is not None:
            await on_differences(place.root, wrong)
        events += place.seq
        on_events(events)
    if only is None:
        await _add_content(found, content, rest, on_differences)
    return FactComparison(tuple(found.values()), events, tuple(broken))


async def _is_equal(
    record: FactRecord, content: FactContent, found: TopicFacts, codec: FactCodec
) -> bool:
    assert record.value is not None
    found.expected += 1
    found.log.add(record.key, record.value)
    there = content.values[record.topic].get(record.key)
    if there == record.value:
        return True
    if there is None:
        found.missing += 1
    elif await _is_older(record, there, codec):
        found.older += 1
    else:
        found.different += 1
    return False


async def _is_older(record: FactRecord, there: bytes, codec: FactCodec) -> bool:
    assert record.value is not None
    try:
        before = await codec.decode(record.topic, there)
    except UnreadableFact:
        return False
    return before.position < (await codec.decode(record.topic, record.value)).position


async def _add_content(
    found: dict[str, TopicFacts],
    content: FactContent,
    rest: dict[str, set[bytes]],
    on_differences: OnDifferences | None,
) -> None:
    """Add what the topics have; `rest` are the keys that the log does not."""
    for topic, keys in rest.items():
        values, tally = content.values[topic], found[topic]
        tally.facts, tally.unknown = len(values), len(keys)
        for key, value in values.items():
            tally.content.add(key, value)
        if keys and on_differences is not None:
            tombstones = [FactRecord(topic, key, None, None) for key in sorted(keys)]
            await on_differences(None, tombstones)


async def _places(heads: RootHeads) -> AsyncIterator[RootPlace]:
    after_id = BEFORE_ALL
    while page := await heads.page(after_id=after_id, limit=PAGE):
        for place in page:
            yield place
        after_id = page[-1].root.id


async def _facts(place: RootPlace, log: EventStore) -> tuple[Collection[Fact], bool]:
    """Return the last value of each fact of a root, and whether it was folded to its end."""
    facts: dict[tuple[str, str], Fact] = {}
    state = FactState()
    async for event in log.read_root(place.root, through_seq=place.seq):
        changed: Iterable[Fact]
        if place.root.type == "execution":
            try:
                state, changed = absorb(state, event)
            except Inconsistent:
                return facts.values(), False
        else:
            changed = audit_facts(event)
        for fact in changed:
            facts[fact.NAME, fact.key] = fact
    return facts.values(), True
