"""The trigger's loop over ports in memory: it acknowledges last, and holds what must wait."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import pytest

from streams.clock import SettableClock
from streams.errors import Refused
from streams.events.model import Event
from streams.ids import FixedWorkerId, Snowflakes
from streams.kafka.dead_letters import MemoryDeadLetters
from streams.kafka.feed.memory import MemoryFeed, MemoryTopics
from streams.kafka.feed.port import Record, TopicPartition
from streams.log.memory import MemoryEventStore
from streams.log.port import Frontier
from streams.payload.objects.local import LocalObjects
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import Scope
from streams.payload.store import ContentStore
from streams.schema.registry import MemoryRegistry
from streams.trigger.avro import TriggerReader
from streams.trigger.entries import ReaderIdentity
from streams.trigger.interpreter import Asked, TriggerRecords
from streams.trigger.loop import Trigger, TriggerPorts
from streams.trigger.memory import FixedTopicIds, MemoryLedger, MemoryPlaybookVersions
from streams.trigger.port import Entered, LedgerEntry
from tests.support.events.examples import PRODUCER, codec
from tests.support.trigger.records import HELLO

TOPIC = "noetl.triggers"
SCOPE = Scope("acme", "care")


class House:
    """A trigger process without servers."""

    def __init__(self) -> None:
        clock = SettableClock()
        ids = Snowflakes(clock, FixedWorkerId(1))
        self.log = MemoryEventStore(codec=codec(), next_id=ids.next, producer=PRODUCER, clock=clock)
        self.topics = MemoryTopics(partitions=2)
        self.ports: dict[str, Any] = {
            "feed": MemoryFeed(self.topics, [TOPIC], group="t"),
            "ledger": MemoryLedger(self.log),
            "playbooks": MemoryPlaybookVersions({"examples/hello": [HELLO]}),
            "topic_ids": FixedTopicIds(),
            "payloads": MemoryPayloadStore(),
            "dead_letters": MemoryDeadLetters(),
            "interpreter": TriggerRecords(TriggerReader(MemoryRegistry()), SCOPE),
            "take_ids": ids.take,
            "clock": clock,
        }

    def trigger(self, **others: Any) -> Trigger:
        ports = TriggerPorts(**{**self.ports, **others})
        return Trigger(ports, ReaderIdentity(scope=SCOPE))

    async def step(self, **others: Any) -> int:
        """Take one batch; return how many records it had."""
        batch = await self.ports["feed"].next_batch()
        await self.trigger(**others).take(batch)
        return sum(map(len, batch.values()))

    def write(self, *bodies: Any, **where: Any) -> None:
        self.topics.write(TOPIC, [orjson.dumps(body) for body in bodies], **where)

    async def events(self) -> Sequence[Event]:
        return (await self.log.read_log(Frontier()))[0]


@pytest.fixture
def house() -> House:
    return House()


def hello(**more: Any) -> dict[str, Any]:
    return {"path": "examples/hello", **more}


async def test_a_batch_of_records_becomes_executions_and_is_acknowledged(house: House) -> None:
    house.write(hello(workload={"n": 1}), hello(workload={"n": 2}))
    house.write(hello(workload={"n": 3}), partition=1)
    assert await house.step() == 3
    events = await house.events()
    assert [event.context for event in events] == [{"workload": {"n": n}} for n in (1, 2, 3)]
    assert house.topics.lag("t", TOPIC) == 0


async def test_a_record_delivered_again_after_a_crash_starts_nothing_new(house: House) -> None:
    class Crash(Exception):
        pass

    class DyingDeadLetters:
        async def put(self, record: Record, reason: str, *, kind: str) -> None:
            raise Crash

    house.write(hello(), {"no": "path"}, hello())
    with pytest.raises(Crash):
        await house.step(dead_letters=DyingDeadLetters())
    assert house.topics.lag("t", TOPIC) == 3
    house.ports["feed"] = MemoryFeed(house.topics, [TOPIC], group="t")
    await house.step()
    assert [event.type for event in await house.events()] == [
        "playbook.initialized", "trigger.rejected", "playbook.initialized",
    ]  # fmt: skip
    (letter,) = house.ports["dead_letters"].letters
    assert (letter.record.offset, letter.kind) == (1, "trigger")
    assert house.topics.lag("t", TOPIC) == 0


@pytest.mark.parametrize("name", ["病" * 29, "..", ".", "a\x85b"])
@pytest.mark.parametrize("field", ["tenant", "organization"])
@pytest.mark.parametrize("path", ["nope", "examples/hello"])
async def test_a_record_whose_owner_can_own_nothing_is_set_aside_and_the_next_one_starts(
    house: House, tmp_path: Path, name: str, field: str, path: str
) -> None:
    house.ports["payloads"] = ContentStore(LocalObjects(tmp_path))
    house.write({"path": path, field: name}, hello())
    async with asyncio.timeout(5):
        assert await house.step() == 2
    rejected, started = await house.events()
    assert (rejected.type, rejected.tenant_id) == ("trigger.rejected", "acme")
    assert field in (rejected.error or "")
    assert started.type == "playbook.initialized"
    (letter,) = house.ports["dead_letters"].letters
    assert field in letter.reason
    assert house.topics.lag("t", TOPIC) == 0


async def test_what_the_database_refuses_is_rejected_alone(house: House) -> None:
    class Picky:
        async def enter(self, entries: Sequence[LedgerEntry]) -> Sequence[Entered]:
            if any(entry.event.context == {"workload": {"n": 2}} for entry in entries):
                raise Refused("cannot take it")
            found: Sequence[Entered] = await house.ports["ledger"].enter(entries)
            return found

    house.write(*[hello(workload={"n": n}) for n in (1, 2, 3)])
    await house.step(ledger=Picky())
    assert [event.type for event in await house.events()] == [
        "playbook.initialized", "trigger.rejected", "playbook.initialized",
    ]  # fmt: skip
    (letter,) = house.ports["dead_letters"].letters
    assert letter.reason == "cannot take it"


async def test_bad_records_are_stored_and_published_several_at_a_time(house: House) -> None:
    class Counting:
        """Counts the calls that are under way."""

        def __init__(self, inner: Any) -> None:
            self._inner, self._now, self.most = inner, 0, 0

        async def put(self, *arguments: Any, **options: Any) -> Any:
            self._now += 1
            self.most = max(self.most, self._now)
            await asyncio.sleep(0)
            self._now -= 1
            return await self._inner.put(*arguments, **options)

    letters, payloads = (Counting(house.ports[name]) for name in ("dead_letters", "payloads"))
    house.write(*[{"no": "path"}] * 40)
    await house.step(dead_letters=letters, payloads=payloads)
    assert (letters.most, payloads.most) == (16, 16)
    stored = house.ports["dead_letters"].letters
    assert [letter.record.offset for letter in stored] == list(range(40))


async def test_a_refused_batch_is_entered_in_the_order_of_its_records(house: House) -> None:
    """A subscription goes on after its last record in the ledger: a crash must leave no gap."""
    entered: list[int] = []

    class Picky:
        async def enter(self, entries: Sequence[LedgerEntry]) -> Sequence[Entered]:
            if len(entries) > 1:
                raise Refused("cannot take it")
            entered.extend(entry.origin.offset for entry in entries)
            found: Sequence[Entered] = await house.ports["ledger"].enter(entries)
            return found

    class Backwards:
        async def interpret(self, records: Sequence[Record]) -> Sequence[Asked]:
            return list(reversed(await house.ports["interpreter"].interpret(records)))

    bad = {"no": "path"}
    house.write(hello(), hello(), bad, hello(), hello(), bad, hello())
    await house.step(ledger=Picky(), interpreter=Backwards())
    assert entered == list(range(7))


async def test_offsets_that_go_back_make_it_ask_for_the_topics_id_again(house: House) -> None:
    class Renewed:
        name = "first"

        async def topic_id(self, topic: str) -> str:
            return self.name

        def forget(self) -> None:
            self.name = "second"

    class Again:
        """Delivers the same offset of the same topic as often as it is asked."""

        async def next_batch(self) -> dict[TopicPartition, list[Record]]:
            value = orjson.dumps(hello())
            return {
                TopicPartition(TOPIC, 0): [Record(TopicPartition(TOPIC, 0), 0, None, value, (), 0)]
            }

        def acknowledge(self, records: Sequence[Record]) -> None:
            pass

    again = Again()
    trigger = house.trigger(feed=again, topic_ids=Renewed())
    for _ in range(3):
        await trigger.take(await again.next_batch())
    assert len(await house.events()) == 2


async def test_a_record_that_is_set_aside_is_rejected_with_the_reason(house: House) -> None:
    house.write(hello(key="k"))
    (records,) = (await house.ports["feed"].next_batch()).values()
    await house.trigger().set_aside(records[0], "ended the process too often")
    (event,) = await house.events()
    assert (event.type, event.error) == ("trigger.rejected", "ended the process too often")
    (letter,) = house.ports["dead_letters"].letters
    assert letter.reason == "ended the process too often"
    await house.trigger().handle(records)
    assert len(await house.events()) == 1
