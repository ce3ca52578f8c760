"""Kafka clients have one place where they are made, and the settings that readers rely on."""

from __future__ import annotations

import ast
import asyncio
from pathlib import Path

import pytest

import streams
from streams.kafka import clients
from streams.kafka.transport.app import Membership, application

FACTORY = Path(clients.__file__)
CLIENTS = {
    "AIOKafkaAdminClient",
    "AIOKafkaClient",
    "AIOKafkaConsumer",
    "AIOKafkaProducer",
    "AdminClient",
    "Consumer",
    "DeserializingConsumer",
    "Producer",
    "SerializingProducer",
}


def constructed(source: str) -> list[str]:
    """Return the client classes that a module calls, or hides behind another name."""
    found: list[str] = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            called = node.func
            name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            found += [name] if name in CLIENTS else []
        elif isinstance(node, ast.ImportFrom):
            found += [one.name for one in node.names if one.name in CLIENTS and one.asname]
    return found


def test_only_the_factory_constructs_clients() -> None:
    package = Path(streams.__file__).parent
    others = [path for path in package.rglob("*.py") if path != FACTORY]
    found = {str(path.relative_to(package)): constructed(path.read_text()) for path in others}
    assert {path: names for path, names in found.items() if names} == {}
    assert set(constructed(FACTORY.read_text())) == {
        "AIOKafkaAdminClient",
        "AIOKafkaClient",
        "AIOKafkaConsumer",
        "AIOKafkaProducer",
        "AdminClient",
        "Consumer",
        "Producer",
    }


@pytest.mark.parametrize(
    "source",
    [
        "from aiokafka import AIOKafkaProducer\nAIOKafkaProducer()",
        "import confluent_kafka\nconfluent_kafka.Consumer({})",
        "from confluent_kafka import Consumer as Reader\nReader({})",
    ],
)
def test_a_client_constructed_elsewhere_is_found(source: str) -> None:
    assert constructed(source)


async def test_every_async_consumer_reads_committed_records_and_commits_by_hand(
    tmp_path: Path,
) -> None:
    member = Membership(
        bootstrap="absent:1", group="g", instance="i", topics=("t",), folder=tmp_path
    )
    app = application(member, loop=asyncio.get_running_loop())
    group = app.consumer._thread._create_worker_consumer(app.transport)
    for consumer in (group, clients.groupless_consumer("absent:1")):
        assert consumer._isolation_level == "read_committed"
        assert consumer._enable_auto_commit is False
        await consumer.stop()
    assert (group._client._client_id, group._session_timeout_ms) == ("g.i", 15_000)
    assert (group._group_instance_id, group._fetch_max_wait_ms) == ("i", 250)
    app.release()


async def test_a_client_that_does_not_start_is_closed() -> None:
    class Down:
        closed = False

        async def start(self) -> None:
            raise OSError("no broker")

        async def stop(self) -> None:
            self.closed = True

    client = Down()
    with pytest.raises(OSError, match="no broker"):
        await clients.started(client)
    assert client.closed
