"""The tool that does nothing, for tasks that only have an `eval`."""

from __future__ import annotations

from streams.playbook.spelling import Spelling
from streams.worker.port import Call, Config, Outcome

_NOTHING = Outcome(status="success")


class NoopTool:
    """Returns the task's `data`, if any; in NoETL's spelling `result`, else a status."""

    async def run(self, config: Config, call: Call) -> Outcome:
        """Do nothing."""
        if call.spelling is Spelling.NOETL:
            name = "result" if "result" in config else "data"
            return Outcome(status="success", data=config.get(name, {"status": "ok"}))
        return Outcome(status="success", data=config["data"]) if "data" in config else _NOTHING

    async def close(self) -> None:
        """Do nothing."""
