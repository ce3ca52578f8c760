"""A time limit for tools that have none of their own."""

from __future__ import annotations

import asyncio

from streams.worker.port import Call, Config, Outcome, Tool
from streams.worker.tools.task_config import failed


class LimitedTool:
    """Ends calls that take longer than the task's `spec.timeout_s`."""

    def __init__(self, kind: str, tool: Tool) -> None:
        self._kind, self._tool = kind, tool

    async def run(self, config: Config, call: Call) -> Outcome:
        """Run the task once, for a limited time."""
        try:
            async with asyncio.timeout(call.timeout_s) as limit:
                return await self._tool.run(config, call)
        except TimeoutError:
            if not limit.expired():
                raise
            message = f"did not end within {call.timeout_s:g} s (`spec.timeout_s`)"
            return failed(f"{self._kind}.timeout", message)

    async def close(self) -> None:
        """Close the tool."""
        await self._tool.close()
