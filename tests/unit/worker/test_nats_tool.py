"""Key-value operations of `kind: nats`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from streams.worker.port import Call, Outcome
from streams.worker.tools.credentials import ConfiguredCredentials
from streams.worker.tools.kv.port import MemoryKv
from streams.worker.tools.kv.tool import NatsTool
from tests.support.worker.tool_calls import CALL

LOGINS = {"nats": {"nats_url": "nats://x"}, "kv": {"nats_user": "u"}}


@pytest.fixture
def tool() -> NatsTool:
    return NatsTool(MemoryKv(), ConfiguredCredentials(LOGINS, {}))


async def run(tool: NatsTool, operation: str, call: Call = CALL, **config: Any) -> dict[str, Any]:
    asked = {"operation": operation, "bucket": "b", "auth": "none", **config}
    outcome = await tool.run(asked, call)
    assert outcome.status == "success", outcome.error
    assert isinstance(outcome.data, dict)
    return outcome.data


def error(outcome: Outcome) -> str:
    assert outcome.error is not None
    return str(outcome.error["message"])


async def test_a_value_is_put_got_listed_and_deleted(tool: NatsTool) -> None:
    value = {"a": [1, None]}
    assert (await run(tool, "kv_put", key="k", value=value))["revision"] == 1
    found = await run(tool, "kv_get", key="k", auth="kv")
    assert (found["status"], found["value"], found["found"]) == ("success", value, True)
    assert (await run(tool, "kv_keys"))["keys"] == ["k"]
    assert (await run(tool, "kv_keys", pattern="j*"))["keys"] == []
    assert (await run(tool, "kv_delete", key="k"))["deleted"] is True
    gone = await run(tool, "kv_get", key="k")
    assert (gone["value"], gone["found"]) == (None, False)


async def test_a_bucket_belongs_to_its_tenant(tool: NatsTool) -> None:
    await run(tool, "kv_put", key="k", value=1)
    other = replace(CALL, tenant_id="other")
    assert (await run(tool, "kv_get", other, key="k"))["found"] is False


async def test_a_retried_put_does_not_undo_a_later_one(tool: NatsTool) -> None:
    await run(tool, "kv_put", key="k", value=1)
    later = replace(CALL, entity_id=99)
    assert (await run(tool, "kv_put", later, key="k", value=2))["revision"] == 2
    again = await run(tool, "kv_put", replace(later, attempt=2), key="k", value=2)
    assert again["revision"] == 2


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"operation": "publish", "key": "k"}, "'operation' is 'publish', not one of kv_get"),
        ({"operation": "kv_get"}, "'key' is missing"),
        ({"operation": "kv_put", "key": "k", "ttl": "soon"}, "'ttl' must be a number"),
        ({"operation": "js_publish", "subject": "s"}, "js_publish needs a NATS server"),
    ],
)
async def test_what_cannot_be_done_is_refused(
    tool: NatsTool, config: dict[str, Any], why: str
) -> None:
    assert why in error(await tool.run({"bucket": "b", **config}, CALL))


async def test_a_server_needs_the_client_package(
    tool: NatsTool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("streams.worker.tools.nats.login.find_spec", lambda _: None)
    asked = {"bucket": "b", "operation": "kv_get", "key": "k", "auth": "nats"}
    assert "noetl-streams[nats]" in error(await tool.run(asked, CALL))
