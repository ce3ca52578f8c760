"""The projector's loop over memory ports: what arrives twice, late, broken or not at all."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from streams.events.model import Event, NewEvent
from streams.kafka.feed.memory import MemoryFeed, MemoryTopics
from streams.kafka.feed.port import Record
from streams.log.memory import MemoryEventStore
from streams.projector.heads import ScannedRootHeads
from streams.projector.loop import Projector
from streams.projector.memory import MemoryProjections
from streams.projector.port import Checkpoint, ProjectionsUnavailable
from streams.projector.rebuild import rebuild
from streams.projector.rows import Changes, ExecutionRow, FrameRow
from tests.support.events.examples import codec
from tests.support.kafka.mirrored import mirror
from tests.support.projector.executions import Story, memory_log, stored_events

TOPIC = "noetl.events.execution"


class Stand:
    """A log, its mirrored topic, and a projector that reads it."""

    def __init__(self, store: MemoryProjections | None = None) -> None:
        self.log: MemoryEventStore = memory_log()
        self.topics = MemoryTopics()
        self.store = store or MemoryProjections()
        self.set_aside: list[Record] = []
        self.start()

    def start(self) -> None:
        """Start a projector, as after a crash."""
        self.feed = MemoryFeed(self.topics, [TOPIC], group="projector")
        self.projector = Projector(
            self.feed,
            self.log,
            self.store,
            codec(),
            shard_id="p-0",
            topic_ids={TOPIC: "t-1"},
            set_aside=self._put_aside,
        )

    async def append(self, *events: NewEvent) -> list[Event]:
        """Append to the log only, and return what it has now of that root."""
        for event in events:
            await self.log.append([event])
        return await stored_events(self.log, events[0].root)

    def mirror(self, events: Sequence[Event], new: Sequence[NewEvent]) -> None:
        """Write the events to the topic as the mirror would."""
        mirror(self.topics, TOPIC, events, new)

    async def project(self) -> None:
        """Read until the topic has no more."""
        while batch := await self.feed.next_batch():
            await self.projector.handle(batch)

    async def _put_aside(self, record: Record, reason: str) -> None:
        self.set_aside.append(record)


@pytest.fixture
def stand() -> Stand:
    return Stand()


async def test_what_is_mirrored_is_seen_and_acknowledged(stand: Stand) -> None:
    new = Story(1000).whole()
    stand.mirror(await stand.append(*new), new)

    await stand.project()

    (row,) = stand.store.of(ExecutionRow)
    assert row.status == "COMPLETED"  # type: ignore[union-attr]
    assert stand.topics.lag("projector", TOPIC) == 0
    (checkpoint,) = stand.store.checkpoints.values()
    assert checkpoint == Checkpoint(
        projection="seen",
        shard_id="p-0",
        topic=TOPIC,
        topic_id="t-1",
        partition=0,
        next_offset=len(new),
        last_position=len(new),
    )


async def test_what_arrives_again_after_a_crash_changes_nothing(stand: Stand) -> None:
    new = Story(1000).whole()
    stand.mirror(await stand.append(*new), new)
    await stand.project()
    before = dict(stand.store.rows)

    stand.topics.committed.clear()
    stand.start()
    await stand.project()

    assert stand.store.rows == before


async def test_events_that_the_topic_lacks_are_read_from_the_log(stand: Stand) -> None:
    new = Story(1000).whole()
    events = await stand.append(*new)
    stand.mirror([*events[:3], *events[-2:]], new)

    await stand.project()

    assert [row.status for row in stand.store.of(FrameRow)] == ["COMMITTED"] * 2


async def test_rows_that_were_lost_come_back_when_an_unknown_root_is_seen(stand: Stand) -> None:
    new = Story(1000).whole()
    events = await stand.append(*new)
    stand.mirror(events[:-1], new)
    await stand.project()

    await stand.store.clear()
    stand.start()
    stand.mirror(events[-1:], new)
    await stand.project()

    assert len(stand.store.of(FrameRow)) == 2


async def test_dropped_and_rebuilt_equals_live(stand: Stand) -> None:
    for number in (1000, 2000):
        new = Story(number).whole()
        stand.mirror(await stand.append(*new), new)
    await stand.project()
    live = dict(stand.store.rows)

    await rebuild(ScannedRootHeads(stand.log), stand.log, stand.store)

    assert stand.store.rows == live


async def test_a_record_that_is_no_event_is_set_aside_and_its_neighbours_go_on(
    stand: Stand,
) -> None:
    new = [Story(1000).began()]
    stand.topics.write(TOPIC, [b"not an event"])
    stand.mirror(await stand.append(*new), new)

    await stand.project()

    assert [record.value for record in stand.set_aside] == [b"not an event"]
    assert len(stand.store.of(ExecutionRow)) == 1


async def test_an_execution_that_cannot_be_folded_holds_up_no_other(
    stand: Stand, caplog: pytest.LogCaptureFixture
) -> None:
    odd = [Story(1000).entered()]
    good = [Story(2000).began()]
    stand.mirror(await stand.append(*odd), odd)
    stand.mirror(await stand.append(*good), good)

    await stand.project()

    assert [row.key for row in stand.store.of(ExecutionRow)] == [(2000,)]
    assert "execution/1000 is not projected" in caplog.text


class Stumbling(MemoryProjections):
    """Cannot be reached for the first calls."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures

    async def save(self, changes: Changes, checkpoints: Sequence[Checkpoint]) -> None:
        if self.failures:
            self.failures -= 1
            raise ProjectionsUnavailable("not now")
        await super().save(changes, checkpoints)


async def test_a_batch_that_the_tables_did_not_take_is_not_lost_when_it_is_handled_again() -> None:
    stand = Stand(Stumbling(1))
    new = Story(1000).whole()
    stand.mirror(await stand.append(*new), new)
    batch = await stand.feed.next_batch()

    with pytest.raises(ProjectionsUnavailable):
        await stand.projector.handle(batch)
    assert stand.topics.lag("projector", TOPIC) == len(new)
    await stand.projector.handle(batch)

    assert len(stand.store.of(FrameRow)) == 2
    assert stand.topics.lag("projector", TOPIC) == 0
