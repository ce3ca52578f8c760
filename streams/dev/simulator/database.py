"""The simulated author's database, and a flaky source of rows."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from streams.dev.simulator.faults import Faults, Process
from streams.playbook.spelling import Spelling
from streams.worker.port import Call, Config, Fence, Outcome, Saved


@dataclass(slots=True)
class Database:
    """Rows and fences; code without an await is a transaction."""

    rows: dict[tuple[str, int], int] = field(default_factory=dict)
    """How often each (execution, row) was saved."""
    fences: dict[Fence, Saved] = field(default_factory=dict)
    has_fences: bool = True
    doubled: list[str] = field(default_factory=list)

    def write(
        self, batches: Sequence[tuple[Fence, Sequence[Config]]], saved: Saved
    ) -> dict[Fence, Saved]:
        """Write unfenced rows, and their fences."""
        found: dict[Fence, Saved] = {}
        for fence, configs in batches:
            if self.has_fences and fence in self.fences:
                found[fence] = self.fences[fence]
                continue
            for config in configs:
                key = (str(config["execution"]), int(str(config["row"])))
                self.rows[key] = self.rows.get(key, 0) + 1
                if self.rows[key] > 1:
                    self.doubled.append(f"execution {key[0]}: row {key[1]} was saved twice")
            self.fences[fence] = saved
        return found


class FaultySaver:
    """One process's connection to the database."""

    def __init__(self, database: Database, faults: Faults, process: Process) -> None:
        self._database, self._faults, self._process = database, faults, process

    async def run(self, config: Config, call: Call) -> Outcome:
        """Return the response of a command that saves nothing."""
        self._process.check()
        return Outcome(status="success", data={"rows": []})

    async def close(self) -> None:
        """Do nothing."""

    def target(self, config: Config) -> str:
        """Return the name of the only database."""
        return "only"

    async def find(self, config: Config, fences: Sequence[Fence]) -> Mapping[Fence, Saved]:
        """Return the stored fences."""

        async def look() -> Mapping[Fence, Saved]:
            known = self._database.fences if self._database.has_fences else {}
            return {fence: known[fence] for fence in fences if fence in known}

        return await self._faults.read(self._process, look)

    async def save(
        self,
        batches: Sequence[tuple[Fence, Sequence[Config]]],
        saved: Saved,
        spelling: Spelling = Spelling.SPEC,
    ) -> Mapping[Fence, Saved]:
        """Save, unless the request or response is lost."""

        async def write() -> Mapping[Fence, Saved]:
            return self._database.write(batches, saved)

        return await self._faults.write(self._process, write)


class RowSource:
    """The source of rows: some attempts fail, and bad rows always fail."""

    def __init__(self, faults: Faults, process: Process) -> None:
        self._faults, self._process = faults, process

    async def run(self, config: Config, call: Call) -> Outcome:
        """Fetch one row."""
        await asyncio.sleep(self._faults.random.uniform(0.0, 1.0))
        self._process.check()
        if config.get("bad"):
            return Outcome(status="error", error={"kind": "bad", "message": "never works"})
        if self._faults.happens("fetch failed", 0.1):
            return Outcome(status="error", error={"kind": "busy", "message": "try again"})
        return Outcome(status="success", data={"row": config.get("row")})

    async def close(self) -> None:
        """Do nothing."""
