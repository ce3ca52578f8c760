"""Publishing, comparing and rebuilding facts over memory ports."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from streams.events.model import Event, NewEvent
from streams.facts.codec import FactCodec, UnreadableFact, fact_schema
from streams.facts.comparison import FactComparison, compare
from streams.facts.content import FactContent
from streams.facts.loop import FactsPublisher
from streams.facts.model import KINDS, TOPICS, ExecutionFact, fact_topic
from streams.facts.port import FactRecord, FactsUnavailable
from streams.facts.rebuild import FactsUnsettled, RebuiltFacts, rebuild_facts
from streams.facts.views import ROOTS
from streams.kafka.event_reader import EventTopicReader
from streams.kafka.feed.memory import MemoryFeed, MemoryTopics
from streams.kafka.feed.port import Record, TopicPartition
from streams.log.memory import MemoryEventStore
from streams.projector.heads import ScannedRootHeads
from streams.schema.registry import MemoryRegistry
from tests.support.events.examples import codec
from tests.support.kafka.mirrored import mirror
from tests.support.projector.executions import Story, memory_log, stored_events

TOPIC = "noetl.events.execution"


@dataclass
class Topics:
    """The fact topics: every record in order, compacted on reading."""

    records: list[FactRecord] = field(default_factory=list)
    is_down: bool = False
    overtake: list[FactRecord] = field(default_factory=list)
    """Written after the next transaction, as by a role that is faster or slower."""

    async def write(self, _: TopicPartition, records: Sequence[FactRecord]) -> None:
        if self.is_down:
            raise FactsUnavailable("down")
        self.records += records
        self.records += self.overtake
        self.overtake = []


class Content(FactContent):
    """The compacted content of topics in memory."""

    def __init__(self, topics: Topics) -> None:
        super().__init__(EventTopicReader("nowhere", ()), tuple(TOPICS))
        self._topics = topics

    async def read(self) -> None:
        for topic in self.values:
            self.values[topic] = {}
        for one in self._topics.records:
            if one.value is None:
                self.values[one.topic].pop(one.key, None)
            else:
                self.values[one.topic][one.key] = one.value


class Stand:
    """A log, its mirrored topic, and a role that publishes facts of it."""

    def __init__(self, facts: FactCodec) -> None:
        self.log: MemoryEventStore = memory_log()
        self.mirrored, self.topics, self.facts = MemoryTopics(), Topics(), facts
        self.set_aside: list[Record] = []
        self.start()

    def start(self) -> None:
        """Start the role, as after a crash."""
        self.feed = MemoryFeed(self.mirrored, [TOPIC], group="facts")
        self.publisher = FactsPublisher(
            self.feed, self.log, self.topics, codec(), self.facts, set_aside=self._put_aside
        )

    async def append(self, *new: NewEvent) -> list[Event]:
        """Append events, and mirror them."""
        for one in new:
            await self.log.append([one])
        events = await stored_events(self.log, new[0].root)
        mirror(self.mirrored, TOPIC, events[-len(new) :], new)
        return events

    async def publish(self) -> None:
        """Publish until the topic has no more."""
        while batch := await self.feed.next_batch():
            await self.publisher.handle(batch)

    async def compared(self) -> FactComparison:
        """Compare the topics with the log."""
        content = Content(self.topics)
        await content.read()
        return await compare(content, self.heads, self.log, self.facts)

    async def rebuilt(self) -> RebuiltFacts:
        """Make the topics equal to the log."""
        content = Content(self.topics)
        return await rebuild_facts(content, self.heads, self.log, self.facts, self.topics)

    @property
    def heads(self) -> ScannedRootHeads:
        return ScannedRootHeads(self.log, types=ROOTS)

    async def _put_aside(self, record: Record, _: str) -> None:
        self.set_aside.append(record)


@pytest.fixture
async def stand() -> Stand:
    return Stand(await FactCodec.open(MemoryRegistry()))


async def test_published_facts_equal_those_of_the_log(stand: Stand) -> None:
    await stand.append(*Story(1000).whole())
    await stand.append(*Story(2000).whole()[:8])
    await stand.publish()

    found = await stand.compared()

    assert found.is_equal
    assert [(one.topic, one.facts) for one in found.topics] == [
        ("noetl.facts.execution", 2),
        ("noetl.facts.stage", 2),
        ("noetl.facts.frame", 4),
        ("noetl.facts.billing", 1),
        ("noetl.facts.audit", 2),
    ]
    assert stand.mirrored.lag("facts", TOPIC) == 0


async def test_a_repeat_after_a_crash_writes_the_same_bytes(stand: Stand) -> None:
    story = Story(1000).whole()
    await stand.append(*story[:9])
    await stand.publish()
    await stand.append(*story[9:])
    await stand.publish()
    before = await stand.compared()
    again = Stand(stand.facts)
    again.log, again.mirrored, again.topics = stand.log, stand.mirrored, stand.topics
    again.feed = MemoryFeed(again.mirrored, [TOPIC], group="another")
    again.publisher = FactsPublisher(
        again.feed, again.log, again.topics, codec(), again.facts, set_aside=again._put_aside
    )
    await again.publish()

    after = await again.compared()
    assert after.is_equal
    assert [one.content.hex() for one in after.topics] == [
        one.content.hex() for one in before.topics
    ]
    values: dict[tuple[str, bytes, int], set[bytes]] = {}
    for one in again.topics.records:
        assert one.value is not None
        fact = await again.facts.decode(one.topic, one.value)
        values.setdefault((one.topic, one.key, fact.position), set()).add(one.value)
    assert all(len(found) == 1 for found in values.values())


async def test_a_role_that_starts_in_the_middle_reads_the_beginning_from_the_log(
    stand: Stand,
) -> None:
    story = Story(1000).whole()
    await stand.append(*story[:9])
    await stand.publish()
    stand.start()
    await stand.append(*story[9:])
    await stand.publish()
    assert (await stand.compared()).is_equal


async def test_nothing_is_acknowledged_while_the_topics_are_down(stand: Stand) -> None:
    await stand.append(*Story(1000).whole())
    stand.topics.is_down = True
    batch = await stand.feed.next_batch()
    with pytest.raises(FactsUnavailable):
        await stand.publisher.handle(batch)
    assert stand.mirrored.lag("facts", TOPIC) == 19

    stand.topics.is_down = False
    await stand.publisher.handle(batch)
    assert stand.mirrored.lag("facts", TOPIC) == 0
    assert (await stand.compared()).is_equal


async def test_lost_wrong_and_unknown_facts_are_counted_and_rebuilt(stand: Stand) -> None:
    await stand.append(*Story(1000).whole())
    await stand.publish()
    before = await stand.compared()
    execution = fact_topic(ExecutionFact)
    value = next(one.value for one in stand.topics.records if one.topic == execution)
    assert value is not None
    fact = await stand.facts.decode(execution, value)
    assert isinstance(fact, ExecutionFact)
    wrong = stand.facts.encode(replace(fact, status="RUNNING"))
    frame = next(one for one in stand.topics.records if one.topic == "noetl.facts.frame")
    stand.topics.records += [
        FactRecord(execution, b"1000", wrong, 0),
        FactRecord(execution, b"7", value, 0),
        frame._replace(value=None),
    ]

    found = {one.topic: one for one in (await stand.compared()).topics}
    assert (found[execution].different, found[execution].unknown) == (1, 1)
    assert found["noetl.facts.frame"].missing == 1
    assert not found[execution].is_equal

    done = await stand.rebuilt()
    assert (done.written, done.deleted, done.broken) == (2, 1, ())
    after = await stand.compared()
    assert after.is_equal
    assert [one.content.hex() for one in after.topics] == [
        one.content.hex() for one in before.topics
    ]


async def test_everything_is_rebuilt_from_nothing(stand: Stand) -> None:
    await stand.append(*Story(1000).whole())
    await stand.publish()
    before = await stand.compared()
    stand.topics.records.clear()
    done = await stand.rebuilt()
    after = await stand.compared()
    assert done.written == sum(one.expected for one in before.topics)
    assert [one.content.hex() for one in after.topics] == [
        one.content.hex() for one in before.topics
    ]


async def test_a_fact_that_was_overwritten_by_an_older_one_is_written_again(stand: Stand) -> None:
    await stand.append(*Story(1000).whole()[:9])
    await stand.publish()
    old = list(stand.topics.records)
    await stand.append(*Story(1000).whole()[9:])
    await stand.publish()
    stand.topics.records.clear()
    stand.topics.overtake = old

    await stand.rebuilt()
    assert (await stand.compared()).is_equal


async def test_a_rebuild_that_is_always_overtaken_gives_up(stand: Stand) -> None:
    await stand.append(*Story(1000).whole()[:9])
    await stand.publish()
    old = list(stand.topics.records)
    await stand.append(*Story(1000).whole()[9:])

    class Overtaken(Topics):
        async def write(self, _: TopicPartition, records: Sequence[FactRecord]) -> None:
            self.records += [*records, *old]

    stand.topics = Overtaken()
    with pytest.raises(FactsUnsettled, match="run it again"):
        await stand.rebuilt()


@pytest.mark.parametrize("data", [b"", b"\x01abcdef", b"\x00\x00\x00\x00\x01\x02"])
async def test_what_is_no_fact_is_refused(stand: Stand, data: bytes) -> None:
    with pytest.raises(UnreadableFact, match="run `streams rebuild facts`"):
        await stand.facts.decode("noetl.facts.execution", data)


async def test_a_changed_fact_does_not_match_its_checksum(stand: Stand) -> None:
    await stand.append(*Story(1000).whole())
    await stand.publish()
    first = stand.topics.records[0]
    assert first.value is not None
    with pytest.raises(UnreadableFact, match="does not match its checksum"):
        await stand.facts.decode(first.topic, first.value.replace(b"acme", b"acne"))


async def test_schemas_are_registered_under_the_subjects_of_their_topics() -> None:
    registry = MemoryRegistry()
    await FactCodec.open(registry)
    found = {one.subject: one.schema for one in await registry.list()}
    assert found == {f"{fact_topic(kind)}-value": fact_schema(kind) for kind in KINDS}
