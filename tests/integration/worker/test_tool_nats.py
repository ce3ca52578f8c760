"""The nats tool on a NATS server of the test's own."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import nats
import pytest
from nats.js import JetStreamContext
from nats.js.api import KeyValueConfig

from streams.worker.errors import TargetUnavailable
from streams.worker.port import Outcome
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.kv.port import MemoryKv
from streams.worker.tools.kv.tool import NatsTool
from tests.support.servers.nats import nats_server
from tests.support.worker.tool_calls import CALL

Login = dict[str, str]


@pytest.fixture(scope="module")
async def login(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Login]:
    async with nats_server(tmp_path_factory.mktemp("nats")) as made:
        yield made


@pytest.fixture
async def jetstream(login: Login) -> AsyncIterator[JetStreamContext]:
    async with connected(login) as context:
        yield context


@pytest.fixture
async def tool(login: Login) -> AsyncIterator[NatsTool]:
    made = tool_for(login)
    yield made
    await made.close()


@asynccontextmanager
async def connected(login: Login) -> AsyncIterator[JetStreamContext]:
    client = await nats.connect(
        login["nats_url"], user=login["nats_user"], password=login["nats_password"]
    )
    try:
        yield client.jetstream()
    finally:
        await client.close()


def tool_for(login: Login) -> NatsTool:
    wrong = {**login, "nats_password": "wrong"}
    away = {**login, "nats_url": "nats://127.0.0.1:9"}
    short = {
        "url": login["nats_url"],
        "user": login["nats_user"],
        "password": login["nats_password"],
    }
    logins = {"nats": login, "wrong": wrong, "away": away, "short": short}
    return NatsTool(MemoryKv(), ConfiguredCredentials(logins, {}))


async def run(tool: NatsTool, operation: str, **config: Any) -> dict[str, Any]:
    call = config.pop("call", CALL)
    outcome = await tool.run({"auth": "nats", "operation": operation, **config}, call)
    assert outcome.status == "success", outcome.error
    assert isinstance(outcome.data, dict)
    return outcome.data


def error(outcome: Outcome) -> tuple[Any, str]:
    assert outcome.error is not None, outcome.data
    return outcome.error["kind"], str(outcome.error["message"])


async def test_a_value_is_put_got_listed_and_deleted_on_the_server(
    tool: NatsTool, jetstream: JetStreamContext
) -> None:
    bucket = await jetstream.create_key_value(KeyValueConfig(bucket="sessions"))
    value = {"user": 1, "name": "ü", "roles": ["a", None]}
    put = await run(tool, "kv_put", bucket="sessions", key="s.1", value=value, auth="short")
    entry = await bucket.get("s.1")
    assert entry.revision == put["revision"]
    got = await run(tool, "kv_get", bucket="sessions", key="s.1")
    assert (got["value"], got["found"], got["revision"]) == (value, True, put["revision"])
    await bucket.put("s.2", b"plain text")
    await bucket.put("odd", b"\xff\x00")
    assert (await run(tool, "kv_get", bucket="sessions", key="s.2"))["value"] == "plain text"
    odd = (await run(tool, "kv_get", bucket="sessions", key="odd"))["value"]
    assert odd == {"encoding": "base64", "data": "/wA="}
    assert (await run(tool, "kv_keys", bucket="sessions", pattern="s.*"))["keys"] == ["s.1", "s.2"]
    assert (await run(tool, "kv_delete", bucket="sessions", key="s.1"))["deleted"] is True
    assert (await run(tool, "kv_delete", bucket="sessions", key="s.1"))["deleted"] is False
    assert (await run(tool, "kv_get", bucket="sessions", key="s.1"))["found"] is False
    await run(tool, "kv_purge", bucket="sessions", key="s.2")
    assert (await run(tool, "kv_keys", bucket="sessions"))["keys"] == ["odd"]


async def test_a_later_attempt_does_not_write_again(
    tool: NatsTool, jetstream: JetStreamContext
) -> None:
    bucket = await jetstream.create_key_value(KeyValueConfig(bucket="once", history=5))
    first = await run(tool, "kv_put", bucket="once", key="k", value=1)
    await bucket.put("k", b"2")
    again = await run(
        tool, "kv_put", bucket="once", key="k", value=1, call=replace(CALL, attempt=2)
    )
    assert again["revision"] == first["revision"]
    assert (await run(tool, "kv_get", bucket="once", key="k"))["value"] == 2
    other = await run(tool, "kv_put", bucket="once", key="k", value=3, call=replace(CALL, tries=2))
    assert other["revision"] > first["revision"]


async def test_a_ttl_acts_or_is_refused(tool: NatsTool, jetstream: JetStreamContext) -> None:
    await jetstream.create_key_value(KeyValueConfig(bucket="brief", limit_marker_ttl=1.0))
    await run(tool, "kv_put", bucket="brief", key="k", value="x", ttl=1)
    assert (await run(tool, "kv_get", bucket="brief", key="k"))["found"] is True
    await asyncio.sleep(3)
    assert (await run(tool, "kv_get", bucket="brief", key="k"))["found"] is False
    await jetstream.add_stream(name="KV_endless", subjects=["$KV.endless.>"])
    task = {"auth": "nats", "bucket": "endless", "operation": "kv_put", "key": "k", "ttl": 1}
    kind, message = error(await tool.run(task, CALL))
    assert (kind, "TTL" in message) == ("nats.refused", True)


async def test_messages_are_published_once_and_read(
    tool: NatsTool, jetstream: JetStreamContext
) -> None:
    await jetstream.add_stream(name="orders", subjects=["orders.>"])
    task = {"subject": "orders.new", "data": {"n": 1}, "headers": {"x": 1}, "stream": "orders"}
    done = await run(tool, "js_publish", **task)
    assert (done["stream"], done["seq"], done["duplicate"]) == ("orders", 1, False)
    again = await run(tool, "js_publish", **task, call=replace(CALL, attempt=2))
    assert (again["seq"], again["duplicate"]) == (1, True)
    for asked in ({"seq": 1}, {"subject": "orders.new"}, {"last": True}):
        found = await run(tool, "js_get_msg", stream="orders", **asked)
        assert (found["data"], found["headers"]["x"]) == ({"n": 1}, "1")
    info = await run(tool, "js_stream_info", stream="orders")
    assert (info["state"]["messages"], info["config"]["subjects"]) == (1, ["orders.>"])


async def test_objects_are_stored_described_and_deleted(
    tool: NatsTool, jetstream: JetStreamContext
) -> None:
    await jetstream.create_object_store("files")
    assert (await run(tool, "object_list", bucket="files"))["count"] == 0
    await run(tool, "object_put", bucket="files", name="a.txt", data="text")
    await run(tool, "object_put", bucket="files", name="b", data="/wA=", encoding="base64")
    assert (await run(tool, "object_get", bucket="files", name="a.txt"))["data"] == "text"
    binary = await run(tool, "object_get", bucket="files", name="b", encoding="base64")
    assert (binary["data"], binary["size"]) == ("/wA=", 2)
    assert (await run(tool, "object_info", bucket="files", name="b"))["size"] == 2
    assert (await run(tool, "object_list", bucket="files"))["count"] == 2
    assert (await run(tool, "object_delete", bucket="files", name="b"))["deleted"] is True
    assert (await run(tool, "object_delete", bucket="files", name="b"))["deleted"] is False
    task = {"auth": "nats", "operation": "object_get", "bucket": "files", "name": "b"}
    assert error(await tool.run(task, CALL))[0] == "nats.notfound"


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({"operation": "kv_get", "bucket": "none", "key": "k"}, "nats.notfound"),
        ({"operation": "kv_put", "bucket": "none", "key": "k", "value": 1}, "nats.notfound"),
        ({"operation": "kv_keys", "bucket": "none"}, "nats.notfound"),
        ({"operation": "js_publish", "subject": "nobody", "data": 1}, "nats.notfound"),
        ({"operation": "kv_get", "bucket": "a b", "key": "k"}, "nats.config"),
        ({"operation": "kv_get", "bucket": "b", "key": ".k"}, "nats.config"),
        ({"operation": "js_get_msg", "stream": "s"}, "nats.config"),
        ({"operation": "object_put", "bucket": "b", "name": "n", "encoding": "x"}, "nats.config"),
        ({"operation": "kv_get", "bucket": "b", "key": "k", "auth": "wrong"}, "nats.auth"),
    ],
)
async def test_what_the_server_or_the_task_forbids_fails(
    tool: NatsTool, config: dict[str, Any], kind: str
) -> None:
    found, message = error(await tool.run({"auth": "nats", **config}, CALL))
    assert found == kind, message
    assert "a word" not in message


async def test_a_server_that_is_away_is_unavailable(tool: NatsTool) -> None:
    with pytest.raises(TargetUnavailable, match=r"127\.0\.0\.1:9"):
        await tool.run({"auth": "away", "operation": "kv_get", "bucket": "b", "key": "k"}, CALL)


async def test_a_call_after_a_restart_of_the_server_reconnects(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"bucket": "kept", "key": "k"}
    async with nats_server(tmp_path) as login:
        async with connected(login) as jetstream:
            await jetstream.create_key_value(KeyValueConfig(bucket="kept"))
        tool = tool_for(login)
        await run(tool, "kv_put", **asked, value=1)
    with pytest.raises(TargetUnavailable):
        await run(tool, "kv_get", **asked)
    port = int(login["nats_url"].rsplit(":", 1)[1])
    async with nats_server(tmp_path, port=port):
        assert (await run(tool, "kv_get", **asked))["value"] == 1
    await tool.close()
