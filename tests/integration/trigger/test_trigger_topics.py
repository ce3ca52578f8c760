"""What can be known of triggers afterwards: gaps, topics made anew, and how an execution ended."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewTopic

from streams.app import open_log, open_pool
from streams.clock import SystemClock
from streams.kafka.errors import FeedUnavailable
from streams.kafka.replies import KafkaReplies, ReplyRefused
from streams.settings import Settings
from streams.trigger.follow import Follower, NotYet, RejectedTrigger
from streams.trigger.kafka import KafkaTopicIds
from streams.trigger.lookup import LedgerReader
from streams.trigger.port import Origin
from streams.trigger.publish import publish
from tests.support.log.databases import dsn, event
from tests.support.trigger.process import House, check, drain, feeding, hello, send

pytestmark = pytest.mark.stack


async def test_reconciling_names_a_planted_gap_and_no_transaction_marker(
    house: House, database: Settings, bootstrap: str, topic: str
) -> None:
    sender = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
    async with sender:
        for ends_well in (True, False, True):
            await sender.begin_transaction()
            for _ in range(4):
                await sender.send_and_wait(topic, hello(), partition=0)
            await (sender.commit_transaction() if ends_well else sender.abort_transaction())
    async with feeding(bootstrap, topic) as feed:
        await drain(house.trigger(feed), feed, 8)
    assert (await check(bootstrap, topic, house)).missing == 0
    async with open_pool(dsn(database)) as owner:
        await owner.execute(
            "DELETE FROM noetl.trigger_ledger WHERE topic = $1 AND record_offset IN (1, 2, 10)",
            topic,
        )
    await send(bootstrap, topic, [(None, hello())] * 2, partition=0)
    report = await check(bootstrap, topic, house)
    gaps = [(gap.first, gap.last, gap.records, gap.state) for gap in report.sides[0].gaps]
    assert gaps == [
        (1, 2, 2, "missing"),
        (10, 10, 1, "missing"),
        (15, 16, 2, "waiting"),
    ]
    assert (report.missing, report.waiting) == (3, 2)
    assert report.sides[1].gaps == ()


async def test_a_topic_made_anew_has_another_id_once_it_is_asked_for_again(
    bootstrap: str, topic: str
) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    ids = KafkaTopicIds(bootstrap, SystemClock())
    before = await ids.topic_id(topic)
    admin.delete_topics([topic])[topic].result(10)
    assert await ids.topic_id(topic) == before
    async with asyncio.timeout(20):
        while await made_again(admin, topic, ids) in (None, before):  # noqa: ASYNC110
            await asyncio.sleep(0.1)


async def made_again(admin: AdminClient, topic: str, ids: KafkaTopicIds) -> str | None:
    """Make a topic and return its new id; None while the broker is not ready for it."""
    ids.forget()
    try:
        with suppress(KafkaException):  # it is there already, old or new
            admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(10)
        return await ids.topic_id(topic)
    except FeedUnavailable:
        return None


async def test_a_published_trigger_tells_where_it_stands(bootstrap: str, topic: str) -> None:
    first = await publish(bootstrap, {"path": "examples/hello"}, key="k", topic=topic)
    second = await publish(bootstrap, {"path": "examples/hello"}, key="k", topic=topic)
    assert first[0] == second[0]
    assert (first[1], second[1]) == (0, 1)


@pytest.mark.parametrize(
    ("ending", "columns", "status"),
    [
        ("playbook.completed", {"status": "COMPLETED", "result": {"n": 7}}, "COMPLETED"),
        ("playbook.failed", {"status": "FAILED", "error": "step load: no such table"}, "FAILED"),
        ("execution.cancelled", {"status": "CANCELLED", "meta": {"by": "Ada"}}, "CANCELLED"),
    ],
)
async def test_whoever_waits_is_told_how_the_execution_ended(
    house: House,
    database: Settings,
    bootstrap: str,
    topic: str,
    ending: str,
    columns: dict[str, Any],
    status: str,
) -> None:
    place, offset = await publish(bootstrap, {"path": "examples/hello"}, topic=topic)
    topic_id = await house.others["topic_ids"].topic_id(topic)
    origin = Origin(topic_id, place.partition, offset, topic)
    async with open_log(database, role="planner") as log:
        follower = Follower(LedgerReader(house.pool), log.store, SystemClock(), timeout_s=20)
        waiting = asyncio.create_task(follower.execution(origin))
        async with feeding(bootstrap, topic) as feed:
            await drain(house.trigger(feed), feed, 1)
        execution_id = await waiting
        fields = {"meta": {}, "result": None, "error": None, "payload_ref": None, **columns}
        await log.store.append([replace(event(execution_id, ending), tenant_id="acme", **fields)])
        found = await follower.end(execution_id)
    assert (found.status, found.is_well) == (status, status == "COMPLETED")
    assert (found.event.result, found.event.error) == (columns.get("result"), columns.get("error"))


async def test_whoever_waits_is_told_that_it_was_rejected_or_never_judged(
    house: House, database: Settings, bootstrap: str, topic: str
) -> None:
    place, offset = await publish(bootstrap, {"path": "examples/unknown"}, topic=topic)
    topic_id = await house.others["topic_ids"].topic_id(topic)
    async with open_log(database, role="planner") as log:

        async def follow(offset: int) -> int:
            ledger = LedgerReader(house.pool)
            follower = Follower(ledger, log.store, SystemClock(), timeout_s=0.1)
            return await follower.execution(Origin(topic_id, place.partition, offset, topic))

        with pytest.raises(NotYet, match="was not processed within"):
            await follow(offset)
        async with feeding(bootstrap, topic) as feed:
            await drain(house.trigger(feed), feed, 1)
        with pytest.raises(RejectedTrigger, match="no playbook examples/unknown is registered"):
            await follow(offset)


async def test_a_reply_to_a_topic_that_nobody_made_is_refused_at_once(bootstrap: str) -> None:
    async with KafkaReplies(bootstrap) as replies, asyncio.timeout(5):
        with pytest.raises(ReplyRefused, match="create the topic"):
            await replies.send("test.nobody.made.it", 41, {})
