"""Sinks as the worker runs them, each write twice: an attempt may come again."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import orjson

from streams.playbook.parse import parse
from streams.worker.port import Call, Outcome
from streams.worker.sinks.port import SinkEnvironment
from streams.worker.sinks.tool import SinkTool
from streams.worker.tools.credentials import ConfiguredCredentials

_ids = count(1)
ROWS = [{"id": 1, "v": "1e5"}, {"id": 2, "v": {"a": [1]}}]


def call(**changes: Any) -> Call:
    """A call that no other write has made."""
    made = Call(
        tenant_id="acme",
        organization_id="care",
        execution_id=7,
        step="load",
        task="sink",
        entity_id=next(_ids),
        attempt=1,
        partition="0.1",
    )
    return replace(made, **changes)


class Sinks:
    """A sink's task, run as the worker does: compiled from its block, then twice."""

    def __init__(self, folder: Path, credentials: dict[str, dict[str, str]] | None = None) -> None:
        known = ConfiguredCredentials(credentials or {}, {})
        self.tool = SinkTool(SinkEnvironment(credentials=known, deployment="test", folder=folder))

    async def once(self, block: dict[str, Any], at: Call | None = None, **scope: Any) -> Outcome:
        text = {
            "apiVersion": "noetl.io/v2",
            "kind": "Playbook",
            "metadata": {"path": "t"},
            "workflow": [{"step": "load", "tool": {"kind": "noop"}, "sink": block}],
        }
        task = parse(orjson.dumps(text).decode()).steps["load"].tasks[-1]
        config: Any = task.config.render({"execution_id": "7", "result": None, **scope})
        assert task.kind == "sink"
        return await self.tool.run(config, at or call())

    async def twice(self, block: dict[str, Any], **scope: Any) -> dict[str, Any]:
        at = call()
        first = await self.once(block, at, **scope)
        again = await self.once(block, replace(at, attempt=2), **scope)
        assert first.status == "success", first.error
        assert again == first
        data: Any = first.data
        return dict(data)


def kind(outcome: Outcome) -> Any:
    assert outcome.error is not None
    return outcome.error["kind"]
