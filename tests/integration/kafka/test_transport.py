"""Guards of the transport on the real broker: exact offsets, back-pressure, rebalances, kills."""

from __future__ import annotations

import asyncio
import random
from functools import partial

import psutil
import pytest

from streams.kafka.transport import consumer
from streams.roles.application import watch_topics
from tests.support.kafka.reader_program import reader_program
from tests.support.servers.topic_reader import TopicReader
from tests.support.waiting import until

pytestmark = pytest.mark.stack


async def has_no_lag(topic) -> bool:
    return await topic.lag() == 0


# --- offsets


async def test_aborted_records_reach_no_agent_and_an_idle_group_has_no_lag(topic, tmp_path):
    reader = TopicReader(topic.bootstrap, topic.name, tmp_path)
    async with reader.running():
        for number in range(10):
            place = number % 2
            await topic.transaction([(place, f"committed-{number}"), (1 - place, f"{number}")])
            await topic.transaction([(place, f"aborted-{number}")], aborted=True)
        await until(lambda: has_no_lag(topic))
        assert len(reader.received) == 20
        assert not [value for value in reader.values if value.startswith("aborted")]
        assert reader.feed.standing().behind == 0


async def test_a_record_that_is_never_acknowledged_is_exactly_the_committed_offset(topic, tmp_path):
    reader = TopicReader(topic.bootstrap, topic.name, tmp_path)
    reader.acknowledges = False
    async with reader.running():
        await topic.transaction([(0, str(number)) for number in range(300)])
        await until(lambda: len(reader.received) == 300)
        records = list(reader.received)
        hole = records.pop(137)
        random.Random(7).shuffle(records)
        for start in range(0, len(records), 50):
            reader.feed.acknowledge(records[start : start + 50])
            await asyncio.sleep(consumer.COMMIT_EVERY_S)  # so that there are several commits
        # Its commit is made after the last acknowledgement of the other partition.
        await topic.write("last", partition=1)
        await until(lambda: len(reader.received) == 301)
        reader.feed.acknowledge(reader.received[-1:])
        await until(lambda: topic.has_committed(hole.offset, 1))
        reader.feed.acknowledge([hole])
        await until(lambda: has_no_lag(topic))


async def test_a_partition_without_acknowledgements_is_paused_after_its_span_and_continues(
    topic, tmp_path
):
    max_span, max_records = 50, 20
    reader = TopicReader(
        topic.bootstrap, topic.name, tmp_path, max_span=max_span, max_records=max_records
    )
    reader.acknowledges = False
    await topic.transaction([(0, str(number)) for number in range(500)])
    async with reader.running():
        await until(lambda: len(reader.received) >= max_span)
        # The other partition is still read, many times after the first reached its bound.
        for number in range(5):
            await topic.write(f"other-{number}", partition=1)
            await until(lambda number=number: f"other-{number}" in reader.values)
        held = [one for one in reader.received if one.topic_partition.partition == 0]
        assert max_span <= len(held) < max_span + max_records
        reader.acknowledges = True
        reader.feed.acknowledge(reader.received)
        await until(lambda: len(reader.received) == 505)
        await until(lambda: has_no_lag(topic))
        assert [one.offset for one in reader.received if one.topic_partition.partition == 0] == [
            *range(500)
        ]


# --- rebalances


async def test_a_topic_created_again_after_the_group_was_balanced_without_it_is_read(
    topic, tmp_path
):
    reader = TopicReader(topic.bootstrap, topic.name, tmp_path)
    reader.process.add_work(partial(watch_topics, reader.app, every_s=0.2))
    await topic.write("before")
    async with reader.running():
        await until(lambda: reader.values == ["before"])
        await topic.delete()
        reader.app.consumer.rejoin()
        await until(lambda: not reader.feed.partitions)
        await topic.create()
        await topic.write("after")
        await until(lambda: reader.values == ["before", "after"])


@pytest.fixture
async def readers(topic, tmp_path) -> tuple[TopicReader, TopicReader]:
    """Two members of one group; the batches of the first are of all partitions."""
    first = TopicReader(topic.bootstrap, topic.name, tmp_path / "one", gather_s=0.3)
    return first, TopicReader(topic.bootstrap, topic.name, tmp_path / "two", instance="two")


async def test_a_rebalance_waits_for_the_batch_in_hand_and_its_records_are_not_repeated(
    topic, readers
):
    first, second = readers
    await topic.write("a", "b")
    await topic.write("c", "d", partition=1)

    async def work_into_the_rebalance(_: object) -> None:
        await until(lambda: first.app.rebalancing_count == 2)
        await asyncio.sleep(1.5)

    first.before = work_into_the_rebalance
    async with first.running():
        await until(lambda: len(first.received) == 4)
        async with second.running():
            assert await topic.has_committed(2, 2)
            for partition in range(2):
                await topic.write(f"new-{partition}", partition=partition)
            await until(lambda: len(first.values + second.values) >= 6)
            assert sorted(first.values) == ["a", "b", "c", "d", f"new-{number_of(first)}"]
            assert second.values == [f"new-{number_of(second)}"]


async def test_a_rebalance_does_not_wait_for_a_batch_beyond_its_bound_and_no_record_is_lost(
    topic, readers, monkeypatch
):
    monkeypatch.setattr(consumer, "IN_HAND_S", 0.5)
    first, second = readers
    await topic.write("a", "b")
    await topic.write("c", "d", partition=1)
    is_rebalanced = asyncio.Event()
    first.before = lambda _: is_rebalanced.wait()
    async with first.running():
        await until(lambda: len(first.received) == 4)
        async with second.running():
            again = ["a", "b"] if number_of(second) == 0 else ["c", "d"]
            await until(lambda: len(second.values) == 2)
            assert second.values == again
            is_rebalanced.set()
            await until(lambda: has_no_lag(topic))
            await until(lambda: len(first.values) == 6)
            assert sorted(first.values[4:] + again) == ["a", "b", "c", "d"]


async def test_no_batch_of_a_lost_partition_is_handled_after_the_rebalance(
    topic, readers, monkeypatch
):
    monkeypatch.setattr(consumer, "IN_HAND_S", 0.5)
    first, second = readers
    steps: asyncio.Queue[None] = asyncio.Queue()
    first.before = lambda _: steps.get()
    await topic.transaction([(number % 2, "first") for number in range(2000)])
    async with first.running():
        await until(lambda: len(first.received) == 500)  # of 2000 that wait
        await topic.transaction([(number % 2, "second") for number in range(2000)])
        async with second.running():
            lost = number_of(second)
            for _ in range(20):
                steps.put_nowait(None)
            await until(lambda: has_no_lag(topic))
            late = [one for one in first.received[500:] if one.topic_partition.partition == lost]
            assert late == []


def number_of(reader: TopicReader) -> int:
    """Return the only partition of a reader."""
    (partition,) = reader.feed.partitions
    return partition.partition


# --- processes


async def test_an_idle_process_costs_little(topic, tmp_path):
    async with reader_program(topic, tmp_path) as reader:
        await topic.transaction([(0, "a"), (1, "b")])
        await until(lambda: has_no_lag(topic))
        process = psutil.Process(reader.process.pid)
        before = process.cpu_times()
        await asyncio.sleep(3.0)
        after = process.cpu_times()
        assert after.user + after.system - before.user - before.system < 0.15


async def test_no_committed_record_is_lost_and_no_aborted_one_handled_over_three_kills(
    topic, tmp_path
):
    committed: set[tuple[int, int]] = set()
    aborted: set[tuple[int, int]] = set()
    for number in range(40):
        values = [(each % 2, str(number)) for each in range(500)]
        committed |= await topic.transaction(values)
        if number % 4 == 0:
            aborted |= await topic.transaction(values, aborted=True)
    options = {"max_records": 100, "pause_s": 0.003}
    for kill_at in (3_000, 9_000, 15_000):
        async with reader_program(topic, tmp_path, **options) as reader:
            await until(lambda reader=reader, at=kill_at: len(reader.handled) >= at)
            reader.process.kill()
            await reader.process.wait()
    async with reader_program(topic, tmp_path, **options) as reader:
        await until(lambda: has_no_lag(topic))
        handled = {(partition, offset) for partition, offset, _ in reader.handled}
        assert len(committed) == 20_000
        assert handled == committed
        assert not handled & aborted
