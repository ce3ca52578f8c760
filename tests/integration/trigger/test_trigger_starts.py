"""Trigger records on a real Kafka and Postgres: one execution each, whatever happens."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import orjson
import pytest

from streams.kafka.feed.port import Record, TopicPartition
from streams.trigger.postgres import PostgresTriggerLedger
from tests.support.trigger.process import (
    House,
    Value,
    check,
    drain,
    feeding,
    hello,
    read_all,
    send,
    step,
)
from tests.support.trigger.records import HELLO

pytestmark = pytest.mark.stack


class Killed(Exception):
    """The process is gone, in the middle of something."""


class DyingLedger:
    """Enters some batches; then the process is killed right after a commit."""

    def __init__(self, inner: PostgresTriggerLedger, batches: int) -> None:
        self._inner, self._left = inner, batches

    async def enter(self, entries: Sequence[Any]) -> Any:
        answers = await self._inner.enter(entries)
        self._left -= 1
        if self._left == 0:
            raise Killed
        return answers


async def test_triggers_sent_twice_with_a_kill_between_start_one_execution_each(
    house: House, bootstrap: str, topic: str
) -> None:
    wanted = [(f"order-{topic}-{n}".encode(), hello(workload={"n": n})) for n in range(200)]
    await send(bootstrap, topic, wanted)
    await send(bootstrap, topic, wanted[::-1])
    async with feeding(bootstrap, topic, max_records=40) as feed:
        with pytest.raises(Killed):
            await drain(house.trigger(feed, DyingLedger(house.ledger, 4)), feed, 400)
    async with feeding(bootstrap, topic) as feed:
        trigger = house.trigger(feed)
        async with asyncio.timeout(60):
            while (await check(bootstrap, topic, house)).waiting:
                await step(trigger, feed)
    starts = await house.starts(topic)
    assert len(starts) == 200
    assert {orjson.loads(row["context"])["workload"]["n"] for row in starts} == set(range(200))
    keys = await house.pool.fetchval(
        "SELECT count(DISTINCT execution_id) FROM noetl.trigger_ledger WHERE topic = $1", topic
    )
    rows = await house.pool.fetchval(
        "SELECT count(*) FROM noetl.trigger_ledger WHERE topic = $1", topic
    )
    assert (keys, rows) == (200, 400)
    report = await check(bootstrap, topic, house)
    assert (report.missing, report.waiting, report.beyond) == (0, 0, 0)


async def test_a_first_event_says_all_that_was_asked(
    house: House, bootstrap: str, topic: str
) -> None:
    big = {"text": "1e5" * 1000}
    body = hello(version=2, workload=big, tenant="globex", reply_to="answers", correlation_id="c7")
    await send(bootstrap, topic, [(None, body)])
    async with feeding(bootstrap, topic) as feed:
        await drain(house.trigger(feed), feed, 1)
    (row,) = await house.starts(topic)
    assert (row["tenant_id"], row["organization_id"]) == ("globex", "care")
    assert (row["catalog_id"], row["correlation_id"]) == (HELLO.catalog_id, "c7")
    meta = {"path": "examples/hello", "version": 2, "reply_to": "answers"}
    assert orjson.loads(row["meta"]) == meta
    assert row["context"] is None
    (stored,) = house.payloads.objects.values()
    assert orjson.loads(stored) == {"workload": big}


async def test_bad_records_reach_the_dead_letters_and_the_partition_moves_on(
    house: House, bootstrap: str, topic: str
) -> None:
    bad: list[Value] = [
        (b"k1", b"{"),
        (b"k2", orjson.dumps({"path": "examples/unknown"})),
        (b"k3", hello(reply_to="noetl.triggers", workload=[])),
        (b"k4", hello(workload={"nul": "a\0b"})),
        (b"k5", None),
    ]
    values = [one for pair in zip(bad, [(None, hello())] * 5, strict=True) for one in pair]
    await send(bootstrap, topic, values, partition=1)
    await send(bootstrap, topic, [(None, hello())], partition=0)
    async with feeding(bootstrap, topic) as feed:
        await drain(house.trigger(feed), feed, 11)
    letters = await read_all(bootstrap, house.others["dead_letters"]._topic)
    assert [(one.key, one.value) for one in letters] == bad
    headers = [{name: value.decode() for name, value in one.headers} for one in letters]
    assert [one["dead-letter-offset"] for one in headers] == ["0", "2", "4", "6", "8"]
    assert {(one["dead-letter-topic"], one["dead-letter-partition"]) for one in headers} == {
        (topic, "1")
    }
    reasons = [one["dead-letter-reason"] for one in headers]
    assert reasons[0].startswith("the value is not JSON")
    assert reasons[1] == "path: no playbook examples/unknown is registered"
    assert "workload: " in reasons[2]
    assert "reply_to: " in reasons[2]
    assert "nul" in reasons[3]
    rows = await house.starts(topic)
    errors = sorted(row["error"] for row in rows if row["event_type"] == "trigger.rejected")
    assert errors == sorted(reasons)
    assert sum(row["event_type"] == "playbook.initialized" for row in rows) == 6
    stored = [orjson.loads(one) for one in house.payloads.objects.values()]
    assert {one["offset"] for one in stored} == {0, 2, 4, 6, 8}
    assert (await check(bootstrap, topic, house)).missing == 0


async def test_a_record_without_anything_and_one_as_large_as_can_be_are_dead_letters(
    house: House, bootstrap: str
) -> None:
    letters = house.others["dead_letters"]
    partition = TopicPartition("somewhere", 3)
    await letters.put(Record(partition, 1, None, None, (), 0), "empty", kind="work")
    await letters.put(Record(partition, 2, b"k", bytes(1_048_500), (), 0), "large", kind="work")
    empty, large = await read_all(bootstrap, letters._topic)
    assert ("dead-letter-value-was-null", b"true") in empty.headers
    assert ("dead-letter-value-omitted-bytes", b"1048500") in large.headers
    assert ("dead-letter-reason", b"large") in large.headers
