"""The smaller tools: duckdb, kafka, artifact, noop; and the registry of all."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient, NewTopic

from streams.clock import SystemClock
from streams.errors import Refused
from streams.kafka.errors import BrokerUnavailable
from streams.log.memory import MemoryEventStore
from streams.payload.arrow.rows import encode_rows
from streams.payload.objects.memory import MemoryPayloadStore
from streams.payload.port import ARROW, Scope
from streams.settings import Settings
from streams.worker.attempt.children import Children
from streams.worker.await_executions import EndedExecutions
from streams.worker.errors import BadConfig, UnknownTool
from streams.worker.port import Config, Outcome, Tool
from streams.worker.tools.artifact import ArtifactTool
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.duckdb import DuckdbTool
from streams.worker.tools.kafka import KafkaTool
from streams.worker.tools.noop import NoopTool
from streams.worker.tools.registry import ToolEnvironment, open_tools, tool_of
from tests.support.events.examples import PRODUCER, codec
from tests.support.worker.tool_calls import CALL


async def run(tool: Tool, **config: Any) -> Outcome:
    return await tool.run(config, CALL)


def kind(outcome: Outcome) -> Any:
    assert outcome.error is not None
    return outcome.error["kind"]


# ---------------------------------------------------------------- noop


async def test_noop_does_nothing_and_says_its_data() -> None:
    assert await run(NoopTool()) == Outcome(status="success")
    assert (await run(NoopTool(), data=[1])).data == [1]


# ---------------------------------------------------------------- duckdb


async def test_duckdb_answers_rows_as_json() -> None:
    command = "SELECT :a AS a, DATE '2026-01-31' AS d, 1.10::DECIMAL(5,2) AS n, [1, 2] AS l, "
    command += "[170141183460469231731687303715884105727] AS h"
    outcome = await run(DuckdbTool(), command=command, params={"a": "1e5"})
    assert outcome.data == {
        "rows": [{"a": "1e5", "d": "2026-01-31", "n": "1.10", "l": [1, 2], "h": [str(2**127 - 1)]}],
        "row_count": 1,
    }


async def test_duckdb_keeps_a_file_between_calls(tmp_path: Path) -> None:
    tool, place = DuckdbTool(), str(tmp_path / "x.duckdb")
    command = "CREATE TABLE t (a INT); INSERT INTO t VALUES (1), (2)"
    expected = {"store": "duckdb", "key": "t", "range": "rows:2"}
    put = await run(tool, command=command, database=place)
    assert put.data == {"rows": [], "row_count": 2, **expected}
    command = "INSERT INTO t VALUES (5), (7) RETURNING a"
    put = await run(tool, command=command, database=str(tmp_path / "x.duckdb"))
    assert put.data == {"rows": [{"a": 5}, {"a": 7}], "row_count": 2, **expected, "range": "a:5-7"}
    found = await run(
        tool, query="SELECT sum(a)::INT AS s FROM t WHERE a > ?", params=[0], database=place
    )
    assert found.data == {"rows": [{"s": 15}], "row_count": 1}


async def test_duckdb_names_what_is_wrong() -> None:
    assert kind(await run(DuckdbTool(), command="SELECT * FROM nowhere")) == "duckdb.catalog"
    assert kind(await run(DuckdbTool(), command="SELECT :a", params={"b": 1})) == "duckdb.config"
    assert kind(await run(DuckdbTool())) == "duckdb.config"


async def test_duckdb_is_stopped_when_its_time_is_up() -> None:
    command = (
        "SELECT count(*) FROM range(100000000) a, range(100000000) b WHERE a.range = -b.range - 1"
    )
    assert kind(await run(DuckdbTool(), command=command, timeout=0.2)) == "duckdb.timeout"


# ---------------------------------------------------------------- artifact


@pytest.fixture
def payloads() -> MemoryPayloadStore:
    return MemoryPayloadStore()


@pytest.mark.parametrize("value", [{"a": [1, "2"]}, "plain text", None])
async def test_an_artifact_comes_back(payloads: MemoryPayloadStore, value: Any) -> None:
    tool = ArtifactTool(payloads)
    put: Any = (await run(tool, action="put", data=value)).data
    assert (await run(tool, action="get", ref=put["ref"])).data == value


async def test_a_frames_output_comes_back_as_rows(payloads: MemoryPayloadStore) -> None:
    rows: list[Any] = [{"a": 1}, {"a": 2}]
    ref = await payloads.put(Scope("acme", "care"), encode_rows(rows).data, media_type=ARROW)
    fields = {n: getattr(ref, n) for n in ("uri", "sha256", "media_type", "byte_length")}
    assert (await run(ArtifactTool(payloads), ref=fields)).data == rows


async def test_a_reference_of_another_tenant_is_refused(payloads: MemoryPayloadStore) -> None:
    ref = await payloads.put(Scope("other", "care"), b"1", media_type="application/json")
    fields = {n: getattr(ref, n) for n in ("uri", "sha256", "media_type", "byte_length")}
    assert kind(await run(ArtifactTool(payloads), ref=fields)) == "artifact.refused"


async def test_a_missing_artifact_is_said(payloads: MemoryPayloadStore) -> None:
    tool = ArtifactTool(payloads)
    put: Any = (await run(tool, action="put", data=1)).data
    payloads.objects.clear()
    assert kind(await run(tool, ref=put["ref"])) == "artifact.missing"
    assert kind(await run(tool, ref={})) == "artifact.config"
    assert kind(await run(tool, action="burn")) == "artifact.config"


# ---------------------------------------------------------------- kafka


@pytest.fixture
async def kafka(settings: Settings) -> AsyncIterator[KafkaTool]:
    tool = KafkaTool(settings.event_store.connection.url)
    yield tool
    await tool.close()


async def new_topic(settings: Settings) -> str:
    name = f"tool-test-{uuid4().hex}"
    admin = AIOKafkaAdminClient(bootstrap_servers=settings.event_store.connection.url)
    await admin.start()
    try:
        await admin.create_topics([NewTopic(name, num_partitions=1, replication_factor=1)])
    finally:
        await admin.close()
    return name


@pytest.mark.stack
async def test_a_topic_that_is_not_there_is_said(kafka: KafkaTool) -> None:
    outcome = await run(kafka, topic=f"tool-test-{uuid4().hex}", value=1, timeout=0.3)
    assert kind(outcome) == "kafka.timeout"
    assert "does the topic exist" in str(outcome.error)


@pytest.mark.stack
async def test_a_record_arrives_as_it_was_sent(settings: Settings, kafka: KafkaTool) -> None:
    topic = await new_topic(settings)
    consumer = AIOKafkaConsumer(
        bootstrap_servers=settings.event_store.connection.url, auto_offset_reset="earliest"
    )
    await consumer.start()
    try:
        outcome = await run(kafka, topic=topic, key="k", value={"a": 1}, headers={"h": "x"})
        assert outcome.data == {"topic": topic, "record_count": 1, "partition": 0, "offset": 0}
        await run(kafka, topic=topic, records=[{"value": "1e5"}, {"key": 5}])
        consumer.subscribe([topic])
        found = [await consumer.getone() for _ in range(3)]
    finally:
        await consumer.stop()
    assert [(one.key, one.value) for one in found] == [
        (b"k", b'{"a":1}'),
        (None, b"1e5"),
        (b"5", None),
    ]
    assert list(found[0].headers) == [("h", b"x")]


async def test_topics_of_the_system_are_refused() -> None:
    tool = KafkaTool("127.0.0.1:9")
    for topic in ("noetl.events.execution", "__consumer_offsets"):
        assert kind(await run(tool, topic=topic, value=1)) == "kafka.config"


async def test_a_broker_that_is_down_is_unavailable() -> None:
    with pytest.raises(BrokerUnavailable):
        await run(KafkaTool("127.0.0.1:9"), topic="t", value=1)


# ---------------------------------------------------------------- registry


class NoPlaybooks:
    async def resolve(
        self, tenant_id: str, organization_id: str, path: str, version: int | None = None
    ) -> tuple[int, int]:
        raise Refused(f"no playbook {path}")


LOG = MemoryEventStore(
    codec=codec(), next_id=count(1).__next__, producer=PRODUCER, clock=SystemClock()
)


def surroundings(payloads: MemoryPayloadStore) -> ToolEnvironment:
    return ToolEnvironment(
        credentials=ConfiguredCredentials({}, {}),
        payloads=payloads,
        deployment="test",
        bootstrap="127.0.0.1:9",
        children=Children(LOG, NoPlaybooks(), payloads, SystemClock()),
        ended_executions=EndedExecutions(LOG),
    )


async def test_every_kind_is_there_and_another_is_named(payloads: MemoryPayloadStore) -> None:
    async with open_tools(surroundings(payloads)) as tools:
        assert set(tools) >= {"http", "postgres", "python", "duckdb", "kafka", "noop", "artifact"}
        assert isinstance(tool_of(tools, "noop"), NoopTool)
        with pytest.raises(UnknownTool, match="did you mean 'postgres'"):
            tool_of(tools, "postgress")


async def test_a_package_can_add_a_tool_but_not_replace_one(
    payloads: MemoryPayloadStore, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A plug-in is an installed package: here one on the path, with its entry point."""
    (tmp_path / "plugin.py").write_text(
        "class Shout:\n"
        "    def __init__(self, around): pass\n"
        "    async def run(self, config, call): return config['text'].upper()\n"
        "    async def close(self): pass\n"
    )
    info = tmp_path / "plugin-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1\n")
    points = info / "entry_points.txt"
    points.write_text("[streams.tools]\nshout = plugin:Shout\n")
    monkeypatch.syspath_prepend(tmp_path)
    async with open_tools(surroundings(payloads)) as tools:
        config: Config = {"text": "hi"}
        assert str(await tools["shout"].run(config, CALL)) == "HI"
    points.write_text("[streams.tools]\nhttp = plugin:Shout\n")
    importlib.invalidate_caches()
    with pytest.raises(BadConfig, match="taken"):
        async with open_tools(surroundings(payloads)):
            pass
