"""Child executions that tasks start, once per call however often it is retried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import orjson
from blake3 import blake3

from streams.clock import Clock
from streams.errors import Refused
from streams.events.model import Event, Json, Root
from streams.events.types import CommandCompleted
from streams.execution.cancellation import orphaned
from streams.execution.initialization import ExecutionStart, child_event
from streams.ids import derive_root_id
from streams.kafka.work.item import INLINE_DOCUMENT_BYTES
from streams.log.errors import ForeignRoot, IdempotencyConflict, RootEnded, VersionConflict
from streams.log.port import EventStore
from streams.payload.port import PayloadStore, Scope
from streams.results.oversized_events import spill_event
from streams.worker.port import Call

_TAKEN = (VersionConflict, IdempotencyConflict, RootEnded, ForeignRoot)
_PROBES = 100


class Paths(Protocol):
    """Resolves paths in the catalog."""

    async def resolve(
        self, tenant_id: str, organization_id: str, path: str, version: int | None = None
    ) -> tuple[int, int]:
        """Return the catalog id and version of a path; by default the newest version.

        Raises:
            Refused: the path or version does not exist.
            Unavailable: the catalog cannot be reached.
        """
        ...


@dataclass(frozen=True, slots=True)
class Called:
    """The playbook a task calls, and its inputs."""

    path: str
    version: int | None
    workload: Mapping[str, Json]
    detached: bool = False
    """Whether the execution outlives the calling one, which does not wait for it."""


class Children:
    """Starts executions on behalf of a call.

    A child's name derives from the frame or command, the task, the row, the try and the inputs:
    a second attempt at a frame finds the children of the first, but never the result of other
    inputs.
    """

    def __init__(
        self,
        log: EventStore,
        paths: Paths,
        payloads: PayloadStore,
        clock: Clock,
        *,
        inline_bytes: int = INLINE_DOCUMENT_BYTES,
    ) -> None:
        self._log, self._paths, self._payloads, self._clock = log, paths, payloads, clock
        self._inline_bytes = min(inline_bytes, INLINE_DOCUMENT_BYTES)

    async def start(self, call: Call, called: Called) -> int:
        """Return the execution of this call, starting it if there is none.

        Raises:
            Refused: the playbook does not exist, or an event cannot carry its inputs.
            Unavailable: the log, the catalog or the payload store is down; retrying is safe.
        """
        given = {"workload": called.workload}
        workload = orjson.dumps(given, default=str, option=orjson.OPT_SORT_KEYS)
        name = _name(call, called, workload)
        key = f"playbook.initialized/{name}"
        # Ids of children have only 22 bits: another root may have the id already.
        for probe in range(_PROBES):
            child = Root("execution", derive_root_id(call.execution_id, probe, name))
            first = await self._first(child)
            if first is None:
                if await self._begin(child, key, call, called, workload):
                    return child.id
                first = await self._first(child)
            if first is not None and first.idempotency_key == key:
                return child.id
        raise Refused(f"{call.task}: no free id for the execution of {called.path}")

    async def cancel(self, child: int, call: Call, reason: str) -> None:
        """Cancel a child, unless it has ended."""
        scope = Scope(call.tenant_id, call.organization_id)
        now = self._clock.now()
        try:
            await self._log.append(
                [
                    orphaned(
                        child,
                        call.execution_id,
                        scope,
                        reason,
                        now=now,
                        cause_id=call.cause_id,
                    )
                ]
            )
        except Refused:
            return

    async def step_end(self, child: int, step: str) -> Event | None:
        """Return the last completion of a step's command in a child; None: it has none.

        Raises:
            Unavailable: the log is down.
        """
        found = None
        async for event in self._log.read_root(Root("execution", child)):
            if event.type == CommandCompleted.TYPE and event.node_name == step:
                found = event
        return found

    async def _first(self, child: Root) -> Event | None:
        async for event in self._log.read_root(child, through_seq=1):
            return event
        return None

    async def _begin(
        self, child: Root, key: str, call: Call, called: Called, workload: bytes
    ) -> bool:
        """Append the child's first event; False if the id is taken by now."""
        catalog_id, version = await self._paths.resolve(
            call.tenant_id, call.organization_id, called.path, called.version
        )
        start = ExecutionStart(
            execution_id=child.id,
            scope=Scope(call.tenant_id, call.organization_id),
            catalog_id=catalog_id,
            path=called.path,
            version=version,
            workload=orjson.loads(workload)["workload"],
            is_detached=called.detached,
        )
        event = child_event(
            start,
            parent_execution_id=call.execution_id,
            parent_step=call.step,
            key=key,
            now=self._clock.now(),
        )
        event = await spill_event(self._payloads, event, self._inline_bytes)
        try:
            await self._log.append([event])
        except _TAKEN:
            return False
        return True


def _name(call: Call, called: Called, workload: bytes) -> str:
    given = orjson.dumps([called.path, called.version]) + workload
    digest = blake3(given).hexdigest(length=16)
    return f"call/{call.entity_id}/{call.task}/{call.partition}.{call.tries}/{digest}"
