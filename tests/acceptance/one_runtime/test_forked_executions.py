"""A failed execution, forked at its failed step with a corrected input; the source stays."""

from __future__ import annotations

import asyncio
import sys
from typing import Any

import aiohttp
import asyncpg
import orjson
import pytest

from tests.support.servers.runtime import Runtime, playbook

pytestmark = [pytest.mark.stack, pytest.mark.timeout(600)]

CHECK = """
def main(days):
    if days < 1:
        raise ValueError(f"{days} days cannot be loaded")
    return days
"""
HEADS = "SELECT root_id, seq, chain FROM noetl.root_head WHERE root_type = 'execution'"


def checked() -> dict[str, Any]:
    """Return a playbook whose second step fails for a bad value of the workload."""
    check = {"kind": "python", "code": CHECK, "args": {"days": "{{ workload.days }}"}}
    found = playbook(
        {
            "step": "first",
            "tool": {"kind": "noop", "data": {"n": 41}},
            "next": [{"step": "second"}],
        },
        {"step": "second", "tool": check, "next": [{"step": "last"}]},
        {"step": "last", "tool": {"kind": "noop", "data": "{{ first.n + second.data }}"}},
    )
    return {**found, "workload": {"days": 7}, "return": "{{ last.data }}"}


async def streams(runtime: Runtime, *arguments: str) -> tuple[int, Any]:
    """Run a command on the stack; return its exit code and its JSON."""
    command = ("-m", "streams", *arguments, "--json", "--data", str(runtime.data))
    process = await asyncio.create_subprocess_exec(
        sys.executable, *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    output, errors = await process.communicate()
    return process.returncode or 0, orjson.loads(output) if output else errors.decode()


async def heads(runtime: Runtime) -> dict[int, asyncpg.Record]:
    return {row["root_id"]: row for row in await runtime.executions.connection.fetch(HEADS)}


async def test_a_fork_at_the_failed_step_with_a_corrected_value_completes(
    runtime: Runtime,
) -> None:
    failed = await runtime.run(checked(), days=0)
    assert failed.status == "FAILED"
    source, before = failed.execution_id, await heads(runtime)
    arguments = ("execution", "fork", str(source), "--at", str(before[source]["seq"]))

    code, found = await streams(runtime, *arguments, "--set-json", "days=1", "--dry-run")
    assert (code, found["execution_id"]) == (0, None), found
    assert found["entered_again"] == [{"step": "second", "activation": 1}]
    assert found["repeated_effects"] == []
    assert (await heads(runtime)).keys() == before.keys()

    code, found = await streams(runtime, *arguments, "--set-json", "days=1", "--yes")
    assert code == 0, found
    ended = await runtime.finish(int(found["execution_id"]))
    assert ended.status == "COMPLETED", ended.error
    (completed,) = await runtime.events(ended.execution_id, "playbook.completed")
    assert isinstance(completed.result, dict)
    assert completed.result["data"] == 42
    commands = await runtime.events(ended.execution_id, "command.issued")
    assert [event.node_name for event in commands] == ["second", "last"]
    assert (await heads(runtime))[source] == before[source]

    code, found = await streams(runtime, "replay", "diff", str(source))
    assert (code, found["equal"]) == (0, True), found
    await forked_by_the_api(runtime, source)


async def forked_by_the_api(runtime: Runtime, source: int) -> None:
    """Fork over HTTP: a key starts one execution, and a bad position is named."""
    url = f"{runtime.api()}/api/executions/{source}/fork"
    async with aiohttp.ClientSession() as client:
        body = {"position": 1, "set": {"days": 2}, "key": "again"}
        ids = set()
        for _ in range(2):
            async with client.post(url, json=body) as answer:
                assert answer.status == 201, await answer.text()
                ids.add((await answer.json())["execution_id"])
        async with client.post(url, json={"position": 10_000}) as answer:
            assert answer.status == 422
            assert "has the places 1 to" in await answer.text()
    (forked,) = ids
    assert (await runtime.finish(int(forked))).status == "COMPLETED"
