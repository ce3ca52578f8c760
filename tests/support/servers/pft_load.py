"""The PFT playbook on a stack, again and again, while a test breaks things."""

from __future__ import annotations

from streams.dev.bench.mock_server import Mock, MockWorld
from streams.dev.bench.row_check import RowCheck
from tests.support.servers.runtime import FRAMES_ARE_OPEN_OR_ALL_IS_OVER, Runtime, pft

WORLD = MockWorld(facilities=2, patients=30, latency_ms=100)
ROWS = 60 * 12 + 24
DECISIONS = """
SELECT count(*), count(DISTINCT (meta->>'frame_id', meta->>'attempt')) FROM noetl.event
WHERE root_id = $1 AND event_type = 'frame.dispatched'"""


class PftLoad:
    """Starts the next execution when the last one has ended."""

    def __init__(self, runtime: Runtime, mock: Mock, name: str) -> None:
        self._runtime, self._mock, self._name = runtime, mock, name
        self.started: list[int] = []

    async def running(self) -> None:
        """Return once an execution is under way: one that is killed thrice is suspended."""
        if not self.started or await self._runtime.has_ended(self.started[-1]):
            workload = {"facilities": WORLD.facilities, "patients": WORLD.patients, "timeout_s": 5}
            schema = f"{self._name}_{len(self.started)}"
            self.started.append(
                await self._runtime.start(
                    pft(f"test/{self._name}", 5), api_url=self._mock.url, schema=schema, **workload
                )
            )
        await self._runtime.until(FRAMES_ARE_OPEN_OR_ALL_IS_OVER, self.started[-1])

    async def check(self) -> None:
        """Check the rows and decisions of everything that was started."""
        for number, execution_id in enumerate(self.started):
            ended = await self._runtime.finish(execution_id)
            assert ended.status == "COMPLETED"
            found = await self._runtime.check_rows(self._mock, f"{self._name}_{number}")
            assert found == RowCheck(expected=ROWS, saved=ROWS)
            row = await self._runtime.executions.connection.fetchrow(DECISIONS, execution_id)
            assert row is not None
            assert row[0] == row[1], "two planners decided the same"
