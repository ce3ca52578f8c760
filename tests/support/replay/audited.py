"""An execution of a running stack, audited by the commands that an operator would use."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import orjson
from click.testing import CliRunner

from streams.cli import cli
from tests.support.servers.runtime import Runtime

PROJECTED = "SELECT last_seq >= $2 FROM noetl.execution WHERE execution_id = $1"


async def assert_it_can_be_proven(runtime: Runtime, execution_id: int, folder: Path) -> None:
    """Fail unless parity, replay verify and a bundle prove an execution that has ended."""
    seq = await runtime.seq(execution_id)
    await runtime.until(PROJECTED, execution_id, seq)
    of_stack = ("--data", str(runtime.data), "--json")

    parity = await _run("parity", str(execution_id), *of_stack)
    assert (parity["executions"], parity["events"]) == (1, seq)
    found = {one["name"]: one["status"] for one in parity["checks"]}
    for name in ("1 envelopes", "3 replay", "4 state", "5 business", "7 hints", "8 keys"):
        assert found[name] == "passed", parity

    audit = await _run("replay", "verify", str(execution_id), "--payloads", *of_stack)
    details = {one["name"]: one["detail"] for one in audit["checks"]}
    assert audit["is_equal"], audit
    assert details["execution"] == "1 row equal"
    assert " objects, " in details["payloads"]

    file = folder / "run.bundle"
    exported = await _run("bundle", "export", str(execution_id), "--out", str(file), *of_stack)
    proven = await _run("bundle", "verify", str(file), "--chain", exported["chain"], "--json")
    assert proven["is_proven"], proven
    shown = await _run("bundle", "show", str(file), "--at", str(seq), "--json")
    assert shown["checksum"] == exported["checksum"]
    assert exported["payloads"]["count"] > 0


async def _run(*words: str) -> Mapping[str, Any]:
    """Run a command, which starts an event loop of its own."""
    done = await asyncio.to_thread(CliRunner().invoke, cli, list(words))
    assert done.exit_code == 0, (words, done.output, done.exception)
    found: Mapping[str, Any] = orjson.loads(done.stdout)
    return found
