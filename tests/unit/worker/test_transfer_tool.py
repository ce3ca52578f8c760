"""The time limit of a transfer."""

from __future__ import annotations

import asyncio

from streams.worker.port import Call, Config, Outcome
from streams.worker.tools.transfer import TransferTool, TransferTools
from tests.support.worker.memory import FakeTool


class Silent(FakeTool):
    """Never answers."""

    async def run(self, config: Config, call: Call) -> Outcome:
        await asyncio.sleep(60)
        raise AssertionError


async def test_a_transfer_that_takes_too_long_fails() -> None:
    tools = TransferTools(
        http=Silent(), postgres=FakeTool(), snowflake=lambda: FakeTool(), sink=FakeTool()
    )
    call = Call(
        tenant_id="t",
        organization_id="o",
        execution_id=1,
        step="s",
        task="t",
        entity_id=1,
        attempt=1,
    )
    config: Config = {
        "timeout": 0.01,
        "source": {"type": "http", "url": "http://127.0.0.1:9"},
        "target": {"type": "postgres", "auth": "a", "table": "t"},
    }
    outcome = await TransferTool(tools).run(config, call)
    assert outcome.error is not None
    assert outcome.error["kind"] == "transfer.timeout"
