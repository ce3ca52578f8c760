"""A paused server accepts and answers nothing; each call to it ends in time, as Unavailable."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager

import pytest
from aiokafka.errors import KafkaConnectionError, KafkaTimeoutError
from pydantic import SecretStr

from streams.app import open_pool
from streams.kafka import bounded_producer
from streams.kafka.bounded_producer import BoundedProducer, OutgoingRecord
from streams.kafka.dead_letters import DeadLettersUnavailable, KafkaDeadLetters
from streams.kafka.replies import KafkaReplies, ReplyUnavailable
from streams.kafka.work.queue import KafkaWorkQueue, WorkUnavailable
from streams.log.errors import LogUnavailable
from streams.payload.errors import PayloadUnavailable
from streams.payload.objects.buckets import s3_bucket
from streams.payload.objects.cloud import CloudObjects
from streams.settings.payload_store import PayloadConnection
from tests.support.servers.silent import silent_server

LIMIT_S = 0.5
RECORD = OutgoingRecord("topic", b"key", b"value")


@pytest.fixture
async def port() -> AsyncIterator[int]:
    async with silent_server() as found:
        yield found


@contextmanager
def soon() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < LIMIT_S + 3


async def test_postgres(port: int) -> None:
    dsn = f"postgresql://u:p@127.0.0.1:{port}/d?sslmode=disable"
    with soon(), pytest.raises(LogUnavailable):
        async with open_pool(dsn, limit_s=LIMIT_S):
            pass


@pytest.mark.parametrize(
    ("client", "error"),
    [
        (KafkaWorkQueue, WorkUnavailable),
        (KafkaReplies, ReplyUnavailable),
        (KafkaDeadLetters, DeadLettersUnavailable),
    ],
)
async def test_kafka(
    port: int,
    client: type[KafkaWorkQueue | KafkaReplies | KafkaDeadLetters],
    error: type[Exception],
) -> None:
    with soon(), pytest.raises(error):
        async with client(f"127.0.0.1:{port}", limit_s=LIMIT_S):
            pass


async def test_s3_reads_and_writes(port: int) -> None:
    place = PayloadConnection(
        endpoint=f"http://127.0.0.1:{port}",
        bucket="b",
        access_key=SecretStr("a"),
        secret_key=SecretStr("s"),
    )
    objects = CloudObjects(s3_bucket(place, limit_s=LIMIT_S))
    with soon(), pytest.raises(PayloadUnavailable):
        await objects.write("key", b"data")
    with soon(), pytest.raises(PayloadUnavailable):
        await objects.read("key", at_most=100)


class PausedProducer:
    """Stands for the driver's: what is sent is under way until `sent` is resolved."""

    def __init__(self) -> None:
        self.sent: list[asyncio.Future[object]] = []

    async def start(self) -> None: ...

    async def stop(self) -> None: ...

    async def send(self, *_: object, **__: object) -> asyncio.Future[object]:
        self.sent.append(asyncio.get_running_loop().create_future())
        return self.sent[-1]


@pytest.fixture
def driver(monkeypatch: pytest.MonkeyPatch) -> PausedProducer:
    made = PausedProducer()
    monkeypatch.setattr(bounded_producer, "idempotent_producer", lambda _: made)
    return made


async def test_a_record_under_way_is_not_sent_again(driver: PausedProducer) -> None:
    producer = BoundedProducer("nowhere", limit_s=0.05)
    for _ in range(3):
        with pytest.raises(KafkaTimeoutError):
            await producer.send([RECORD])
    assert producer.is_under_way(RECORD)
    (under_way,) = driver.sent
    again = asyncio.create_task(producer.send([RECORD]))
    await asyncio.sleep(0)
    under_way.set_result(None)
    await again
    assert not producer.is_under_way(RECORD)


async def test_a_record_that_arrived_or_failed_meanwhile_is_sent_again(
    driver: PausedProducer,
) -> None:
    producer = BoundedProducer("nowhere", limit_s=0.05)
    with pytest.raises(KafkaTimeoutError):
        await producer.send([RECORD])
    driver.sent[0].set_exception(KafkaConnectionError("gone"))
    await asyncio.sleep(0)
    again = asyncio.create_task(producer.send([RECORD]))
    await asyncio.sleep(0.01)
    driver.sent[1].set_result(None)
    await again
    assert len(driver.sent) == 2


async def test_an_error_of_the_driver_is_raised(driver: PausedProducer) -> None:
    producer = BoundedProducer("nowhere", limit_s=1)
    sending = asyncio.create_task(producer.send([RECORD]))
    await asyncio.sleep(0.01)
    driver.sent[0].set_exception(KafkaConnectionError("gone"))
    with pytest.raises(KafkaConnectionError):
        await sending
