"""Construction and settings of all Kafka clients.

Each function imports its driver, so that a command loads only the one it uses.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal, TypeVar

if TYPE_CHECKING:
    from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
    from aiokafka.admin import AIOKafkaAdminClient
    from aiokafka.client import AIOKafkaClient
    from confluent_kafka import Consumer, KafkaException, Producer
    from confluent_kafka.admin import AdminClient

SESSION_TIMEOUT_MS = 15_000
FETCH_WAIT_MS = 500
"""The default of both drivers."""
ISOLATION = "read_committed"
BATCH_BYTES = 256 * 1024
"""Most bytes of a batch of changelog records, unless it is a single one."""

Setting = str | int | float | bool
# Callers report a broker that is down; aiokafka would also write to the terminal.
logging.getLogger("aiokafka").addHandler(logging.NullHandler())

AsyncClient = TypeVar("AsyncClient", "AIOKafkaConsumer", "AIOKafkaProducer")


# --- confluent-kafka: its calls block


def admin(bootstrap: str) -> AdminClient:
    """Return an administration client."""
    from confluent_kafka.admin import AdminClient

    return AdminClient(_librdkafka(bootstrap))


def single_send_producer(bootstrap: str, *, timeout_s: float) -> Producer:
    """Return an idempotent producer for few records; each must be durable in `timeout_s`."""
    from confluent_kafka import Producer

    more: dict[str, Setting] = {
        "enable.idempotence": True,
        # Java's partitioner, so that every writer puts a key on the same partition.
        "partitioner": "murmur2_random",
        "linger.ms": 0,
        "message.timeout.ms": int(timeout_s * 1000),
    }
    return Producer(_librdkafka(bootstrap) | more)


def transactional_producer(bootstrap: str, transactional_id: str) -> Producer:
    """Return a producer of transactions; one with the same id ends those of its predecessor."""
    from confluent_kafka import Producer

    more: dict[str, Setting] = {
        "transactional.id": transactional_id,
        "transaction.timeout.ms": 60_000,
        "linger.ms": 5,
    }
    return Producer(_librdkafka(bootstrap) | more)


def range_consumer(bootstrap: str, *, group: str, fetch_wait_ms: int = FETCH_WAIT_MS) -> Consumer:
    """Return a consumer of exactly the offsets it is assigned; it commits nothing.

    It reports the end of a partition, which is after a transaction's marker. A missing offset
    is an error. The group is not joined.
    """
    exactly: dict[str, Setting] = {
        "enable.auto.offset.store": False,
        "enable.partition.eof": True,
        "auto.offset.reset": "error",
    }
    return _consumer(bootstrap, group, fetch_wait_ms, exactly)


def peek_consumer(bootstrap: str, *, group: str, is_committed: bool) -> Consumer:
    """Return a consumer of the first records after the offsets it is assigned.

    `is_committed`: whether it skips aborted transactions and waits before open ones. It fetches
    little, reports the end of a partition, and begins at the first record if an offset is gone.
    """
    little: dict[str, Setting] = {
        "enable.partition.eof": True,
        "auto.offset.reset": "earliest",
        "isolation.level": ISOLATION if is_committed else "read_uncommitted",
        "fetch.message.max.bytes": 64 * 1024,
        "queued.min.messages": 1,
    }
    return _consumer(bootstrap, group, 10, little)


def tail_consumer(bootstrap: str, *, group: str, fetch_wait_ms: int = FETCH_WAIT_MS) -> Consumer:
    """Return a consumer that follows the end of the partitions it is assigned."""
    return _consumer(bootstrap, group, fetch_wait_ms, {})


def member_consumer(bootstrap: str, *, group: str) -> Consumer:
    """Return a consumer that joins a group, and begins at the first record."""
    return _consumer(bootstrap, group, FETCH_WAIT_MS, {"auto.offset.reset": "earliest"})


def reason(error: KafkaException) -> str:
    """Return what librdkafka reports, without its code and flags."""
    return str(error.args[0].str())


def _consumer(
    bootstrap: str, group: str, fetch_wait_ms: int, more: Mapping[str, Setting]
) -> Consumer:
    from confluent_kafka import Consumer

    common = {
        "group.id": group,
        "enable.auto.commit": False,
        "isolation.level": ISOLATION,
        "fetch.wait.max.ms": fetch_wait_ms,
    }
    return Consumer({**_librdkafka(bootstrap), **common, **more})


def _librdkafka(bootstrap: str) -> dict[str, Setting]:
    # By default librdkafka also prints to stderr what callers report.
    return {"bootstrap.servers": bootstrap, "log_level": 0}


# --- aiokafka


def async_admin(bootstrap: str) -> AIOKafkaAdminClient:
    """Return an administration client that is not started."""
    from aiokafka.admin import AIOKafkaAdminClient

    return AIOKafkaAdminClient(bootstrap_servers=bootstrap)


def protocol_client(bootstrap: str) -> AIOKafkaClient:
    """Return a client that sends single requests to single brokers."""
    from aiokafka.client import AIOKafkaClient

    return AIOKafkaClient(bootstrap_servers=bootstrap, client_id="streams-mirror")


def idempotent_producer(bootstrap: str) -> AIOKafkaProducer:
    """Return a producer, not started, with acks from all replicas.

    Without linger: callers already send batches.
    """
    from aiokafka import AIOKafkaProducer

    return AIOKafkaProducer(
        bootstrap_servers=bootstrap, acks="all", enable_idempotence=True, linger_ms=0
    )


def fenced_producer(bootstrap: str, transactional_id: str) -> AIOKafkaProducer:
    """Return a producer of transactions, not started; it ends those of its predecessor."""
    from aiokafka import AIOKafkaProducer

    return AIOKafkaProducer(
        bootstrap_servers=bootstrap,
        acks="all",
        enable_idempotence=True,
        linger_ms=0,
        max_batch_size=BATCH_BYTES,
        transactional_id=transactional_id,
        # A killed owner's transaction holds up readers of the changelog for so long at most.
        transaction_timeout_ms=10_000,
    )


def groupless_consumer(
    bootstrap: str,
    *topics: str,
    offset_reset: Literal["earliest", "none"] = "earliest",
    fetch_wait_ms: int = FETCH_WAIT_MS,
    is_committed: bool = True,
) -> AIOKafkaConsumer:
    """Return a consumer of all partitions of `topics`, not started; it commits nothing.

    Unless `is_committed`, records of open and aborted transactions are read and counted too.
    """
    from aiokafka import AIOKafkaConsumer

    return AIOKafkaConsumer(
        *topics,
        bootstrap_servers=bootstrap,
        isolation_level=ISOLATION if is_committed else "read_uncommitted",
        auto_offset_reset=offset_reset,
        enable_auto_commit=False,
        fetch_max_wait_ms=fetch_wait_ms,
    )


def polling_consumer(bootstrap: str, *, group: str) -> AIOKafkaConsumer:
    """Return a consumer of the partitions it is assigned, not started; it joins no group.

    It commits for `group` when asked to, which Kafka refuses while the group has members.
    """
    from aiokafka import AIOKafkaConsumer

    return AIOKafkaConsumer(
        bootstrap_servers=bootstrap,
        group_id=group,
        isolation_level=ISOLATION,
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=50,
    )


async def started(client: AsyncClient) -> AsyncClient:
    """Start a client and return it; close it if it does not start."""
    from aiokafka.errors import KafkaConnectionError

    try:
        await client.start()
    except BaseException as error:
        await client.stop()
        if isinstance(error, AssertionError):  # aiokafka's, of a broker that has just returned
            raise KafkaConnectionError(f"the broker lists no brokers yet: {error}") from error
        raise
    return client
