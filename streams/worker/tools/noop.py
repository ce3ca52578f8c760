"""The tool that does nothing, for tasks that only have an `eval`."""

from __future__ import annotations

from streams.worker.port import Call, Config, Outcome

_NOTHING = Outcome(status="success")


class NoopTool:
    """Returns the task's `data`, if any."""

    async def run(self, config: Config, call: Call) -> Outcome:
        """Do nothing."""
        return Outcome(status="success", data=config["data"]) if "data" in config else _NOTHING

    async def close(self) -> None:
        """Do nothing."""
