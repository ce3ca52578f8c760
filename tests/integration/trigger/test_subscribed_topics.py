"""Subscriptions on a real Kafka and Postgres: each record once, whatever happens."""

from __future__ import annotations

import io

import fastavro
import orjson
import pytest
from aiokafka import AIOKafkaProducer
from confluent_kafka.admin import AdminClient, NewTopic

from streams.app import subscriptions_of
from tests.support.subscription.memory import SCOPE
from tests.support.subscription.process import SubscribedHouse, send_records
from tests.support.trigger.process import make_topic, read_all
from tests.support.waiting import until

pytestmark = pytest.mark.stack
SCHEMA = {"type": "record", "name": "Order", "fields": [{"name": "n", "type": "long"}]}


async def avro(subscribed: SubscribedHouse, number: int) -> bytes:
    schema_id = await subscribed.registry.id_for("orders-value", orjson.dumps(SCHEMA).decode())
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(SCHEMA), {"n": number})
    return b"\x00" + schema_id.to_bytes(4, "big") + out.getvalue()


# A consumer that is cancelled while it connects, as a kill would, leaves its connection open.
@pytest.mark.filterwarnings("ignore:.*AIOKafkaConnection")
async def test_records_in_transactions_start_one_execution_each_over_killed_processes(
    subscribed: SubscribedHouse, bootstrap: str
) -> None:
    topic = make_topic(bootstrap, "orders", 2)
    await subscribed.register(topic, {"runtime": {"batch": 20}})
    sender = AIOKafkaProducer(bootstrap_servers=bootstrap, transactional_id=topic)
    async with sender:
        for part in range(10):
            await sender.begin_transaction()
            for number in range(part * 20, part * 20 + 20):
                value = await avro(subscribed, number)
                await sender.send(topic, value, partition=number % 2)
            await (sender.abort_transaction() if part % 3 == 1 else sender.commit_transaction())
    for _ in range(3):
        async with subscribed.running():
            before = len(await subscribed.rows())
            await until(
                lambda before=before: _more(subscribed, before + 20), within_s=90, every_s=0.1
            )
    async with subscribed.running():
        await subscribed.until_rows(140)
        await subscribed.until_caught_up()
    wanted = [n for n in range(200) if (n // 20) % 3 != 1]
    assert sorted(one["n"] for one in await subscribed.workloads()) == wanted
    assert len({row["root_id"] for row in await subscribed.rows()}) == 140
    state, reader, ledger = await subscribed.topic()
    report = await reader.reconcile(state, ledger)
    assert (report.is_whole, report.waiting, report.missing) == (True, 0, 0)


async def _more(subscribed: SubscribedHouse, count: int) -> bool:
    return len(await subscribed.rows()) >= min(count, 140)


async def test_odd_records_have_their_answers(subscribed: SubscribedHouse, bootstrap: str) -> None:
    topic = make_topic(bootstrap, "odd")
    await subscribed.register(topic)
    large = orjson.dumps({"n": 3, "text": "x" * 1_000_000})
    await send_records(
        bootstrap,
        topic,
        {"key": b"k", "value": None},
        {"value": b'{"n": 1}', "headers": [("empty", None), ("A", b"1")]},
        {"value": b"{", "headers": [("empty", None)]},
        {"value": large},
    )
    async with subscribed.running():
        await subscribed.until_rows(4)
        await subscribed.until_caught_up()
    tombstone, headed, rejected, spilled = await subscribed.rows()
    assert orjson.loads(tombstone["context"])["workload"]["message"]["metadata"]["tombstone"]
    message = orjson.loads(headed["context"])["workload"]["message"]
    assert message["headers"] == {"empty": None, "a": "1"}
    assert message["metadata"]["key"] is None
    assert rejected["event_type"] == "trigger.rejected"
    assert rejected["error"].startswith("the body is not JSON")
    (letter,) = await read_all(bootstrap, subscribed.dead_letters._topic)
    assert letter.headers[0] == ("empty", None)
    assert dict(letter.headers)["dead-letter-kind"] == b"subscription"
    assert spilled["context"] is None
    workload = orjson.loads(max(subscribed.payloads.objects.values(), key=len))["workload"]
    assert len(workload["text"]) == 1_000_000


async def test_a_topic_that_is_deleted_and_made_again_is_read_from_its_first_record(
    subscribed: SubscribedHouse, bootstrap: str
) -> None:
    topic = make_topic(bootstrap, "again")
    await subscribed.register(topic)
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    await send_records(bootstrap, topic, *({"value": b'{"n": %d}' % n} for n in range(3)))
    async with subscribed.running():
        await subscribed.until_rows(3)
        admin.delete_topics([topic])[topic].result(10)
        await until(lambda: topic not in admin.list_topics(timeout=5).topics, every_s=0.2)
        admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(10)
        await send_records(bootstrap, topic, *({"value": b'{"n": %d}' % n} for n in range(10, 16)))
        await subscribed.until_rows(9)
        await subscribed.until_caught_up()
    assert sorted(one["n"] for one in await subscribed.workloads()) == [0, 1, 2, *range(10, 16)]
    state, reader, ledger = await subscribed.topic()
    assert (await reader.reconcile(state, ledger)).is_whole


async def test_a_replay_starts_its_range_once_more(
    subscribed: SubscribedHouse, bootstrap: str
) -> None:
    topic = make_topic(bootstrap, "replayed")
    await subscribed.register(topic)
    await send_records(bootstrap, topic, *({"value": b'{"n": %d}' % n} for n in range(5)))
    async with subscribed.running():
        await subscribed.until_rows(5)
        state, reader, ledger = await subscribed.topic()
        (wanted,) = await reader.replays(state, ledger, 2, [])
        assert (wanted.from_offset, wanted.until_offset) == (2, 5)
        await subscriptions_of(subscribed.log).replay(SCOPE, subscribed.path, wanted)
        await subscribed.until_rows(8)
    assert sorted(one["n"] for one in await subscribed.workloads()) == [0, 1, 2, 2, 3, 3, 4, 4]
    assert (await reader.reconcile(state, ledger)).is_whole
