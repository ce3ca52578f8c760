"""A trial run: starts the playbook, waits for its end, returns its events and result."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from streams.events.catalogue import catalogue
from streams.events.model import Event, Json, PayloadRef
from streams.events.types import ExecutionSuspended, StepEnter
from streams.execution.initialization import ExecutionStart, first_event
from streams.payload.port import Scope
from streams.results.envelope import Envelope
from streams.results.oversized_events import spill_event
from streams.results.reading import PayloadSource, read_value
from streams.trial.deployment import Deployment, TrialOptions, Watch
from streams.trial.errors import TrialTimeout
from streams.trial.playbooks import FilePlaybooks
from streams.trigger.follow import status_of
from streams.worker.port import Tool

SCOPE = Scope("default", "default")
TIMEOUT_S = 300.0
COMPLETED = "COMPLETED"


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialResult:
    """How a trial run ended."""

    execution_id: int
    status: str
    result: Json
    error: str | None
    events: tuple[Event, ...]
    """Of all executions, in the order in which they were appended."""

    @property
    def steps(self) -> list[str]:
        """The steps of the tried playbook, in the order in which they were entered."""
        return [
            str(event.node_name)
            for event in self.events
            if event.type == StepEnter.TYPE and event.root.id == self.execution_id
        ]


class Trial:
    """One run of a playbook, with its own log."""

    def __init__(
        self, playbooks: FilePlaybooks, options: TrialOptions, watch: Watch = lambda _: None
    ) -> None:
        self._playbooks, self._watch = playbooks, watch
        self._events: list[Event] = []
        self._changed = asyncio.Event()
        self._deployment = Deployment(playbooks, options, self._note)
        self._id = self._deployment.ids.next()

    def tools(self) -> AbstractAsyncContextManager[dict[str, Tool]]:
        """Open the tools again, for queries after the run."""
        return self._deployment.tools()

    async def run(self, workload: Mapping[str, Json], timeout_s: float = TIMEOUT_S) -> TrialResult:
        """Run the playbook to its end, and to that of the executions it started.

        Raises:
            TrialTimeout: it did not end in time.
            Refused: an event cannot carry the workload.
        """
        async with self._deployment.tools() as tools:
            ending = await self._finished(workload, timeout_s, tools)
        return TrialResult(
            execution_id=self._id,
            status=_status(ending),
            result=await self._data(ending),
            error=ending.error,
            events=tuple(self._events),
        )

    async def _finished(
        self, workload: Mapping[str, Json], timeout_s: float, tools: dict[str, Tool]
    ) -> Event:
        stop = asyncio.Event()
        roles = [
            asyncio.ensure_future(self._deployment.run_planner(stop)),
            asyncio.ensure_future(self._deployment.run_worker(stop, tools)),
        ]
        ended = asyncio.ensure_future(self._ended())
        try:
            await self._start(workload)
            async with asyncio.timeout(timeout_s):
                done, _ = await asyncio.wait({ended, *roles}, return_when=asyncio.FIRST_COMPLETED)
            for one in done:
                one.result()  # raises the error that ended a role
            return ended.result()
        except TimeoutError:
            last = self._events[-1].type if self._events else "none"
            raise TrialTimeout(timeout_s, last) from None
        finally:
            stop.set()
            ended.cancel()
            await asyncio.gather(*roles, ended, return_exceptions=True)

    async def _start(self, workload: Mapping[str, Json]) -> None:
        path = self._playbooks.main.path
        catalog_id, version = await self._playbooks.resolve(
            SCOPE.tenant_id, SCOPE.organization_id, path
        )
        start = ExecutionStart(
            execution_id=self._id,
            scope=SCOPE,
            catalog_id=catalog_id,
            path=path,
            version=version,
            workload=dict(workload),
        )
        event = first_event(
            start,
            key="playbook.initialized/1",
            now=self._deployment.clock.now(),
        )
        spilled = await spill_event(self._deployment.payloads, event)
        await self._deployment.store.append([spilled])

    async def _ended(self) -> Event:
        """Wait until every execution has ended, and return the last event of ours."""
        while True:
            self._changed.clear()
            ending = next((event for event in self._events if self._is_ending(event)), None)
            if ending is not None:
                is_stuck = ending.type == ExecutionSuspended.TYPE
                if is_stuck or not await self._deployment.store.open_roots("execution"):
                    return ending
            await self._changed.wait()

    def _is_ending(self, event: Event) -> bool:
        ends = event.type in catalogue().endings or event.type == ExecutionSuspended.TYPE
        return ends and event.root.id == self._id

    def _note(self, event: Event) -> None:
        self._events.append(event)
        self._watch(event)
        self._changed.set()

    async def _data(self, ending: Event) -> Json:
        return await data_of(self._deployment.payloads, ending.result, ending.payload_ref)


async def data_of(payloads: PayloadSource, result: Json, ref: PayloadRef | None) -> Json:
    """Return the data of a result, inline or from its payload."""
    envelope = Envelope.parse(result)
    if envelope.has_data:
        return envelope.data
    found = ref or envelope.data_payload(SCOPE)
    return None if found is None else await read_value(payloads, found)


def _status(ending: Event) -> str:
    return "SUSPENDED" if ending.type == ExecutionSuspended.TYPE else status_of(ending)
