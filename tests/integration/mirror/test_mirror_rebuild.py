"""Rebuilding the event topics from the log, undisturbed and disturbed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from uuid import uuid4

import pytest

from streams.app import Log
from streams.events.catalogue import catalogue
from streams.events.model import Root
from streams.kafka.event_reader import EventRecord, EventTopicReader
from streams.kafka.names import event_topic
from streams.mirror.guard import Guard
from streams.mirror.readings import AlarmName
from streams.mirror.rebuild import RebuildRunning, rebuild
from streams.mirror.refill import Progress, Report
from streams.mirror.watermark import Watermark
from streams.settings import Settings
from tests.conftest import NewEventFactory

pytestmark = pytest.mark.stack

TOPICS = [event_topic(root) for root in catalogue().roots]
EVENTS_COUNT, ROOTS_COUNT = 20_000, 40


class BrokenOff(Exception):
    """The process that rebuilt is gone."""


async def append(log: Log, new_event: NewEventFactory, roots: list[Root], count: int) -> None:
    """Append `count` events, spread over the roots, in batches."""
    for _ in range(count // 500):
        keys = (uuid4().hex for _ in range(500))
        await log.store.append(
            [
                new_event(roots[number % len(roots)].id, idempotency_key=key)
                for number, key in enumerate(keys)
            ]
        )


async def on_kafka(
    settings: Settings,
) -> Mapping[tuple[str, bytes | None, bytes | None], EventRecord]:
    """Return what the topics hold, by topic, key and seq; a second of the same would show."""
    found: dict[tuple[str, bytes | None, bytes | None], EventRecord] = {}
    async with EventTopicReader(settings.event_store.connection.url, TOPICS) as reader:
        async for batch in reader.to_end():
            for record in batch:
                place = (record.topic, record.key, dict(record.headers)["seq"])
                assert place not in found
                found[place] = record
    return found


def contents(record: EventRecord) -> object:
    """What readers see of a record, but for its place."""
    return record.value, sorted(record.headers), record.timestamp_ms


async def catch_up(settings: Settings) -> None:
    dsn = settings.event_store.canonical_connection.dsn("append")
    async with Watermark(dsn, settings.event_store.connection.url) as mark:
        await mark.catch_up()


def silent(_: Progress) -> None:
    """Nobody watches."""


async def test_refilled_topics_hold_the_same_records_as_streamed_ones(
    settings: Settings, log: Log, new_event: NewEventFactory
) -> None:
    await append(log, new_event, [Root("execution", log.ids.next()) for _ in range(3)], 500)
    await catch_up(settings)
    streamed = await on_kafka(settings)
    await rebuild(settings, silent)
    refilled = await on_kafka(settings)
    assert refilled.keys() == streamed.keys()
    for place, record in streamed.items():
        assert contents(refilled[place]) == contents(record)


@pytest.mark.parametrize(
    "step",
    [
        "deleting the event topics",
        "deleting the connector's offsets",
        "refilling",
    ],
)
async def test_a_rebuild_that_died_is_finished_by_the_next(settings: Settings, step: str) -> None:
    async with Guard(settings) as guard:
        with pytest.raises(BrokenOff):
            await rebuild(settings, _dies_at(step))
        if step != "refilling":  # from there on the connector needs nobody's help
            names = {alarm.name for alarm in await guard.check()}
            assert AlarmName.CONNECTOR_STOPPED in names
        done = await rebuild(settings, silent)
        assert done.verdict is not None
        assert done.verdict.is_clean
        assert await guard.check() == ()


async def test_two_rebuilds_at_once_are_one_too_many(settings: Settings) -> None:
    begun = asyncio.Event()
    first = asyncio.create_task(rebuild(settings, lambda _: begun.set()))
    try:
        await begun.wait()
        with pytest.raises(RebuildRunning):
            await rebuild(settings, silent)
        async with Guard(settings) as guard:
            readings = await guard.probe()
            assert readings.database is not None
            assert readings.database.is_rebuilding
    finally:
        done = await first
    assert done.verdict is not None
    assert done.verdict.is_clean


async def test_appends_during_a_rebuild_arrive_once_and_in_order(
    settings: Settings, log: Log, new_event: NewEventFactory
) -> None:
    roots = [Root("execution", log.ids.next()) for _ in range(ROOTS_COUNT)]
    await append(log, new_event, roots, EVENTS_COUNT)
    rebuilt = asyncio.Event()

    async def go_on() -> int:
        rounds = 0
        while not rebuilt.is_set():
            await append(log, new_event, roots, 500)
            rounds += 1
        return rounds

    appending = asyncio.create_task(go_on())
    reported: list[Progress] = []
    try:
        done = await rebuild(settings, reported.append)
    finally:
        rebuilt.set()
        rounds = await appending
    assert rounds > 1
    assert done.verdict is not None
    assert done.verdict.is_clean
    assert done.events_count >= EVENTS_COUNT
    assert reported[-1].mirrored_count >= reported[-1].total_count >= EVENTS_COUNT
    await catch_up(settings)
    arrived = [0] * len(roots)
    for topic, key, _ in await on_kafka(settings):
        if topic == TOPICS[0] and Root("execution", int(key or 0)) in roots:
            arrived[roots.index(Root("execution", int(key or 0)))] += 1
    assert sum(arrived) == EVENTS_COUNT + 500 * rounds


def _dies_at(step: str) -> Report:
    def report(progress: Progress) -> None:
        if progress.step == step:
            raise BrokenOff

    return report
