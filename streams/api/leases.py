"""Lookup, lease checks and appends shared by frames and commands."""

from __future__ import annotations

from typing import Protocol

from aiohttp import web

from streams.api.errors import NotFound, NotYours
from streams.api.port import Row
from streams.api.runtime import ApiRuntime
from streams.events.model import NewEvent, Root
from streams.events.types import CommandEvent, FrameEvent, typed
from streams.execution.attempts import AttemptEvent
from streams.execution.command import Command, absorb_command
from streams.execution.frame import Frame, absorb_frame
from streams.execution.lease import Lease
from streams.log.port import Appended
from streams.payload.port import Scope
from streams.playbook.result_policy import INLINE_BYTES
from streams.results.oversized_events import spill_event


class Entity(Protocol):
    """The fields that a frame and a command share."""

    @property
    def attempt(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def step(self) -> str: ...
    @property
    def lease(self) -> Lease | None: ...


def own(runtime: ApiRuntime, request: web.Request, kind: str, name: int, row: Row | None) -> Row:
    """Return the row if it is in the caller's scope.

    Raises:
        NotFound: there is none, or it was not projected yet.
    """
    scope = runtime.scope_of(request)
    if row is None or Scope(row["tenant_id"], row["organization_id"]) != scope:
        raise NotFound(kind, name, "if it is new, it may not be projected yet: retry")
    return row


async def read_frame(runtime: ApiRuntime, execution_id: int, frame_id: int) -> Frame:
    """Return a frame folded from the log.

    Raises:
        NotFound: the log has no such frame.
    """
    root, frame = Root("execution", execution_id), None
    async for event in runtime.log.read_stream(root, f"{root}/frame/{frame_id}"):
        if isinstance(one := typed(event), FrameEvent):
            frame = absorb_frame(frame, one, event.ingest_time)
    if frame is None:
        raise NotFound("frame", frame_id)
    return frame


async def read_command(runtime: ApiRuntime, execution_id: int, command_id: int) -> Command:
    """Return a command folded from the log.

    Raises:
        NotFound: the log has no such command.
    """
    root, command = Root("execution", execution_id), None
    async for event in runtime.log.read_stream(root, f"{root}/command/{command_id}"):
        if isinstance(one := typed(event), CommandEvent):
            command = absorb_command(command, one, event.ingest_time)
    if command is None:
        raise NotFound("command", command_id)
    return command


def held(state: Entity, entity: str, name: int, worker: str, attempt: int | None) -> Lease:
    """Return the worker's lease.

    Raises:
        NotYours: it has none, or only for another attempt.
    """
    lease = state.lease
    if lease is None or lease.owner != worker:
        holder = f"{lease.owner} holds it" if lease else "nobody holds it any more"
        raise NotYours(f"{entity} {name} is not {worker}'s: {holder}; drop the work and claim anew")
    if attempt is not None and attempt != state.attempt:
        why = f"attempt {attempt} is over, it is at {state.attempt}"
        raise NotYours(f"{entity} {name}: {why}; drop the work")
    return lease


async def append(
    runtime: ApiRuntime, row: Row, event: AttemptEvent, *, key: str, version: int
) -> Appended:
    """Append an event of a frame or command if it is still at `version`; spill large data.

    Raises:
        VersionConflict: another writer appended first.
        RootEnded: its execution has ended.
    """
    new = NewEvent(
        root=Root("execution", row["execution_id"]),
        tenant_id=row["tenant_id"],
        organization_id=row["organization_id"],
        idempotency_key=key,
        event_time=runtime.clock.now(),
        expected_version=version,
        **event.columns(),
    )
    inline_bytes = min(runtime.inline_bytes, INLINE_BYTES)
    new = await spill_event(runtime.payloads, new, inline_bytes)
    receipt = await runtime.log.append([new])
    return receipt.events[0]
