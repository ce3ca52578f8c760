"""The tool that does nothing: its task is there for the sake of its `eval`."""

from __future__ import annotations

from streams.worker.port import Call, Config, Outcome

_NOTHING = Outcome(status="success")


class NoopTool:
    """Answers with the task's `data`, if it has any."""

    async def run(self, config: Config, call: Call) -> Outcome:
        """Do nothing."""
        return Outcome(status="success", data=config["data"]) if "data" in config else _NOTHING

    async def close(self) -> None:
        """Hold nothing, let go of nothing."""
