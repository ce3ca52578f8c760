"""One record or key, one execution: over the ledger in memory and in Postgres."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from uuid import uuid4

import pytest

from streams.app import open_log, open_pool, producer
from streams.clock import SystemClock
from streams.events.model import Event, Root
from streams.ids import FixedWorkerId, Snowflakes
from streams.log.memory import MemoryEventStore
from streams.log.port import EventStore
from streams.settings import Settings
from streams.trigger.memory import MemoryLedger
from streams.trigger.port import LedgerEntry, PartlyEntered
from streams.trigger.postgres import PostgresTriggerLedger
from tests.support.events.examples import PRODUCER, codec
from tests.support.trigger.records import origin, refuse, start


@dataclass(frozen=True, slots=True)
class House:
    """A ledger, the log beside it, and ids that are new in both."""

    ledger: MemoryLedger | PostgresTriggerLedger
    log: EventStore
    id: Callable[[], int]

    async def events(self, root_id: int, type: str = "execution") -> list[Event]:
        return [event async for event in self.log.read_root(Root(type, root_id))]


@pytest.fixture
async def house(place: Settings | None) -> AsyncIterator[House]:
    if place is None:
        clock = SystemClock()
        ids = Snowflakes(clock, FixedWorkerId(1))
        log = MemoryEventStore(codec=codec(), next_id=ids.next, producer=PRODUCER, clock=clock)
        yield House(MemoryLedger(log), log, ids.next)
        return
    dsn = place.event_store.canonical_connection.dsn("append")
    async with open_log(place, role="triggers") as opened, open_pool(dsn) as pool:
        who = producer(place, "triggers")
        ledger = PostgresTriggerLedger(
            pool, codec=opened.codec, take_ids=opened.ids.take, producer=who
        )
        yield House(ledger, opened.store, opened.ids.next)


def topic() -> str:
    return uuid4().hex


async def test_a_new_record_starts_an_execution(house: House) -> None:
    wanted = start(house.id(), at=origin(topic()))
    (answer,) = await house.ledger.enter([wanted])
    assert (answer.execution_id, answer.is_new) == (wanted.event.root.id, True)
    (event,) = await house.events(wanted.event.root.id)
    assert (event.type, event.meta["version"]) == ("playbook.initialized", 2)


async def test_a_redelivered_record_is_the_same_execution(house: House) -> None:
    at = origin(topic())
    (first,) = await house.ledger.enter([start(house.id(), at=at)])
    again = start(house.id(), at=at)
    (second,) = await house.ledger.enter([again])
    assert (second.execution_id, second.is_new) == (first.execution_id, False)
    assert await house.events(again.event.root.id) == []


async def test_a_second_record_with_the_same_key_is_the_same_execution(house: House) -> None:
    name, key = topic(), topic()
    (first,) = await house.ledger.enter([start(house.id(), key, origin(name))])
    again = start(house.id(), key, origin(name))
    (second,) = await house.ledger.enter([again])
    assert second.execution_id == first.execution_id
    assert await house.events(again.event.root.id) == []


async def test_two_records_with_one_key_in_one_batch_are_one_execution(house: House) -> None:
    name, key = topic(), topic()
    entries = [start(house.id(), key, origin(name)) for _ in range(3)]
    answers = await house.ledger.enter(entries)
    assert {answer.execution_id for answer in answers} == {entries[0].event.root.id}
    assert [answer.is_new for answer in answers] == [True, False, False]


async def test_a_record_twice_in_one_batch_is_one_execution(house: House) -> None:
    at = origin(topic())
    entries = [start(house.id(), at=at), start(house.id(), at=at)]
    answers = await house.ledger.enter(entries)
    assert {answer.execution_id for answer in answers} == {entries[0].event.root.id}


async def test_keys_are_per_tenant(house: House) -> None:
    name, key = topic(), topic()
    entries = [start(house.id(), key, origin(name), tenant) for tenant in ("acme", "globex")]
    answers = await house.ledger.enter(entries)
    assert len({answer.execution_id for answer in answers}) == 2


async def test_records_without_a_key_are_told_apart_by_their_places(house: House) -> None:
    places = [origin("a" + topic(), 1), origin("b" + topic(), 1), origin(topic(), 1, 5)]
    answers = await house.ledger.enter([start(house.id(), at=at) for at in places])
    assert len({answer.execution_id for answer in answers}) == 3


async def test_a_rejected_record_is_an_event_of_its_own_root(house: House) -> None:
    wanted = refuse(house.id(), origin(topic()))
    (answer,) = await house.ledger.enter([wanted])
    assert (answer.rejected_id, answer.execution_id) == (wanted.event.root.id, None)
    (event,) = await house.events(wanted.event.root.id, "trigger")
    assert (event.type, event.error) == ("trigger.rejected", "not JSON")


async def test_what_was_rejected_once_stays_rejected(house: House) -> None:
    at = origin(topic())
    (first,) = await house.ledger.enter([refuse(house.id(), at)])
    better = start(house.id(), topic(), at)
    (second,) = await house.ledger.enter([better])
    assert (second.rejected_id, second.execution_id) == (first.rejected_id, None)
    assert await house.events(better.event.root.id) == []


async def test_good_and_bad_records_share_a_batch(house: House) -> None:
    name = topic()
    entries = [
        refuse(house.id(), origin(name)) if number % 3 == 0 else start(house.id(), at=origin(name))
        for number in range(9)
    ]
    answers = await house.ledger.enter(entries)
    assert [answer.rejected_id is not None for answer in answers] == [True, False, False] * 3


async def test_every_reader_of_a_record_starts_its_own_execution(house: House) -> None:
    at = origin(topic())
    places = [at, replace(at, reader="7"), replace(at, reader="7.1")]
    answers = await house.ledger.enter([start(house.id(), at=place) for place in places])
    assert len({answer.execution_id for answer in answers}) == 3
    again = await house.ledger.enter([start(house.id(), at=place) for place in places])
    assert [one.execution_id for one in again] == [one.execution_id for one in answers]


def windowed(house: House, key: str, reader: str, window_s: int = 300) -> LedgerEntry:
    at = replace(origin(reader), reader=reader)
    return replace(start(house.id(), key, at), window_s=window_s)


async def test_a_key_of_a_subscription_counts_for_its_window_only(house: House) -> None:
    reader, key = topic(), topic()
    (first,) = await house.ledger.enter([windowed(house, key, reader, 1)])
    (second,) = await house.ledger.enter([windowed(house, key, reader, 1)])
    assert (second.execution_id, second.is_new) == (first.execution_id, False)
    await asyncio.sleep(1.1)
    (third,) = await house.ledger.enter([windowed(house, key, reader, 1)])
    assert (third.execution_id != first.execution_id, third.is_new) == (True, True)


async def test_a_key_of_a_subscription_is_neither_anothers_nor_the_tenants(house: House) -> None:
    key, mine, other = topic(), topic(), topic()
    answers = await house.ledger.enter(
        [
            windowed(house, key, mine),
            windowed(house, key, other),
            start(house.id(), key, origin(topic())),
        ]
    )
    assert len({answer.execution_id for answer in answers}) == 3


async def test_records_with_one_event_start_one_execution(house: House) -> None:
    reader = topic()
    first = start(house.id(), at=replace(origin(reader), reader=reader))
    others = [replace(first, origin=replace(origin(reader), reader=reader)) for _ in range(4)]
    answers = await house.ledger.enter([first, *others])
    assert {answer.execution_id for answer in answers} == {first.event.root.id}
    assert len(await house.events(first.event.root.id)) == 1
    again = await house.ledger.enter([first, *others])
    assert {answer.execution_id for answer in again} == {first.event.root.id}
    assert len(await house.events(first.event.root.id)) == 1


async def test_a_batch_with_a_known_record_is_refused_whole(house: House) -> None:
    reader = topic()
    known = start(house.id(), at=replace(origin(reader), reader=reader))
    await house.ledger.enter([known])
    batch = start(house.id(), at=known.origin)
    fresh = replace(batch, origin=replace(origin(reader), reader=reader))
    with pytest.raises(PartlyEntered) as error:
        await house.ledger.enter([batch, fresh])
    assert error.value.known == {known.origin}
    assert await house.events(batch.event.root.id) == []
    (alone,) = await house.ledger.enter([fresh])
    assert alone.is_new


async def test_the_next_offset_is_after_a_readers_last_record(house: House) -> None:
    name = topic()
    assert await house.ledger.next_offset("7", name, 0) is None
    for offset in (3, 4, 9):
        await house.ledger.enter([start(house.id(), at=replace(origin(name, offset), reader="7"))])
    await house.ledger.enter([start(house.id(), at=replace(origin(name, 50), reader="8"))])
    assert await house.ledger.next_offset("7", name, 0) == 10
    assert await house.ledger.next_offset("7", name, 1) is None


async def test_processes_that_enter_the_same_at_once_agree(house: House) -> None:
    name, keys = topic(), [topic() for _ in range(20)]
    places = [origin(name) for _ in keys]

    async def enter(order: int) -> dict[str, int | None]:
        pairs = list(zip(keys, places, strict=True))[::order]
        entries = [start(house.id(), key, at) for key, at in pairs]
        answers = await house.ledger.enter(entries)
        return {key: one.execution_id for (key, _), one in zip(pairs, answers, strict=True)}

    async def enter_elsewhere(order: int) -> dict[str, int | None]:
        mine = topic()
        entries = [start(house.id(), key, origin(mine)) for key in keys[::order]]
        answers = await house.ledger.enter(entries)
        return {key: one.execution_id for key, one in zip(keys[::order], answers, strict=True)}

    first, *others = await asyncio.gather(
        enter(1), enter(-1), enter_elsewhere(1), enter_elsewhere(-1)
    )
    assert all(other == first for other in others)
    counts = [len(await house.events(one)) for one in first.values() if one is not None]
    assert counts == [1] * 20
