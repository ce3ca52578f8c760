"""What arrives on Kafka is what the log holds."""

from __future__ import annotations

from dataclasses import replace
from uuid import uuid4

import pytest

from streams.app import Log
from streams.events.catalogue import catalogue
from streams.events.model import Event, Root
from streams.kafka.event_reader import EventRecord, EventTopicReader, MirrorStalled
from streams.kafka.names import event_topic
from streams.mirror.watermark import Watermark
from streams.settings import Settings
from tests.conftest import NewEventFactory
from tests.support.events.examples import TYPES, example

pytestmark = pytest.mark.stack

TOPICS = [event_topic(root) for root in catalogue().roots]


async def read_to_end(reader: EventTopicReader) -> list[EventRecord]:
    return [record async for batch in reader.to_end() for record in batch]


def watermark(settings: Settings) -> Watermark:
    dsn = settings.event_store.canonical_connection.dsn("append")
    return Watermark(dsn, settings.event_store.connection.url)


async def test_every_type_of_event_arrives_as_the_log_tells_it(
    settings: Settings, log: Log
) -> None:
    roots = [Root(catalogue().types[type].root, log.ids.next()) for type in TYPES]
    async with (
        EventTopicReader(settings.event_store.connection.url, TOPICS, start="end") as reader,
        watermark(settings) as mark,
    ):
        for type, root in zip(TYPES, roots, strict=True):
            event = replace(example(type), root=root, idempotency_key=uuid4().hex)
            await log.store.append([event])
        await mark.catch_up()
        records = [record for record in await read_to_end(reader) if _root(record) in roots]
    for record in records:
        event = await record.event(log.codec)
        assert [event] == [stored async for stored in log.store.read_root(event.root)]
    assert {_root(record) for record in records} == set(roots)
    assert len(records) == len(roots)
    assert {root.type for root in roots} == set(catalogue().roots)


async def test_a_record_carries_what_a_reader_needs_without_decoding_it(
    settings: Settings, log: Log, new_event: NewEventFactory
) -> None:
    root_id = log.ids.next()
    async with (
        EventTopicReader(settings.event_store.connection.url, TOPICS, start="end") as reader,
        watermark(settings) as mark,
    ):
        (stored,) = (await log.store.append([new_event(root_id)])).events
        await mark.catch_up()
        (record,) = [one for one in await read_to_end(reader) if one.key == str(root_id).encode()]
    headers = dict(record.headers)
    assert record.topic == "noetl.events.execution"
    assert record.timestamp_ms == round(stored.ingest_time.timestamp() * 1000)
    assert headers["id"] == str(stored.event_id).encode()
    assert headers["seq"] == b"1"
    assert headers["event_type"] == b"playbook.initialized"
    assert headers["tenant_id"] == b"acme"
    assert headers["organization_id"] == b"care"


async def test_what_was_appended_before_a_watermark_can_be_read_after_it(
    settings: Settings, log: Log, new_event: NewEventFactory
) -> None:
    async with (
        EventTopicReader(settings.event_store.connection.url, TOPICS, start="end") as reader,
        watermark(settings) as mark,
    ):
        for _ in range(5):
            root_id = log.ids.next()
            await log.store.append([new_event(root_id) for _ in range(100)])
            await mark.catch_up()
            seqs = [
                dict(record.headers)["seq"]
                for record in await read_to_end(reader)
                if record.key == str(root_id).encode()
            ]
            assert seqs == [str(seq).encode() for seq in range(1, 101)]


async def test_a_reader_at_the_end_has_no_lag_though_transactions_leave_markers(
    settings: Settings, log: Log, new_event: NewEventFactory
) -> None:
    async with (
        EventTopicReader(settings.event_store.connection.url, TOPICS) as reader,
        watermark(settings) as mark,
    ):
        await log.store.append([new_event(log.ids.next())])
        await mark.catch_up()
        assert sum((await reader.lag()).values()) > 0
        newest: dict[tuple[str, int], int] = {}
        for record in await read_to_end(reader):
            newest[record.topic, record.partition] = record.offset
        assert set((await reader.lag()).values()) == {0}
        # Markers there are: some partition ends beyond the place after its newest record.
        ends = await reader.ends()
        assert any(ends[place] > offset + 1 for place, offset in newest.items())


async def test_a_reader_says_so_when_what_it_waits_for_does_not_come(settings: Settings) -> None:
    async with EventTopicReader(settings.event_store.connection.url, TOPICS, start="end") as reader:
        with pytest.raises(MirrorStalled, match="did not arrive within 0 s"):
            async for _ in reader.until(lambda _: False, timeout_s=0.3):
                pass


async def test_a_reader_stops_at_the_record_it_waits_for(
    settings: Settings, log: Log, new_event: NewEventFactory
) -> None:
    root_id = log.ids.next()
    async with EventTopicReader(settings.event_store.connection.url, TOPICS, start="end") as reader:
        await log.store.append([new_event(root_id) for _ in range(3)])
        seen: list[Event] = []
        async for record in reader.until(lambda one: dict(one.headers)["seq"] == b"2"):
            seen.append(await record.event(log.codec))
    assert [(event.root.id, event.seq) for event in seen] == [(root_id, 1), (root_id, 2)]


def _root(record: EventRecord) -> Root:
    return Root(record.topic.rpartition(".")[2], int(record.key or b"0"))
