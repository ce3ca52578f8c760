"""Lookup, lease checks and appends shared by frames and commands."""

from __future__ import annotations

from datetime import timedelta
from typing import Protocol

from aiohttp import web

from streams.api.errors import NotFound, NotYours
from streams.api.port import Row
from streams.api.runtime import ApiRuntime
from streams.api.serializers import json_response
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


async def read_frame(runtime: ApiRuntime, execution_id: int, frame_id: int) -> tuple[Frame, int]:
    """Return a frame folded from the log, and the id of its last event.

    Raises:
        NotFound: the log has no such frame.
    """
    root, frame, last = Root("execution", execution_id), None, 0
    async for event in runtime.log.read_stream(root, f"{root}/frame/{frame_id}"):
        if isinstance(one := typed(event), FrameEvent):
            frame, last = absorb_frame(frame, one, event.ingest_time), event.event_id
    if frame is None:
        raise NotFound("frame", frame_id)
    return frame, last


async def read_command(
    runtime: ApiRuntime, execution_id: int, command_id: int
) -> tuple[Command, int]:
    """Return a command folded from the log, and the id of its last event.

    Raises:
        NotFound: the log has no such command.
    """
    root, command, last = Root("execution", execution_id), None, 0
    async for event in runtime.log.read_stream(root, f"{root}/command/{command_id}"):
        if isinstance(one := typed(event), CommandEvent):
            command, last = absorb_command(command, one, event.ingest_time), event.event_id
    if command is None:
        raise NotFound("command", command_id)
    return command, last


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
    runtime: ApiRuntime, row: Row, event: AttemptEvent, *, key: str, version: int, cause_id: int
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
        causation_id=cause_id,
        expected_version=version,
        **event.columns(),
    )
    inline_bytes = min(runtime.inline_bytes, INLINE_BYTES)
    new = await spill_event(runtime.payloads, new, inline_bytes)
    receipt = await runtime.log.append([new])
    return receipt.events[0]


async def renew(
    runtime: ApiRuntime,
    row: Row,
    entity: str,
    name: int,
    event: AttemptEvent,
    version: int,
    cause_id: int,
    **more: bool,
) -> web.Response:
    """Append a heartbeat, and respond with the end of the renewed lease."""
    key = f"http/{entity}/{name}/heartbeat/{runtime.next_id()}"
    stored = await append(runtime, row, event, key=key, version=version, cause_id=cause_id)
    until = stored.ingest_time + timedelta(seconds=runtime.lease_seconds)
    return json_response({"lease_until": until, "version": stored.stream_version, **more})


async def end(
    runtime: ApiRuntime,
    row: Row,
    entity: str,
    name: int,
    event: AttemptEvent,
    version: int,
    cause_id: int,
) -> None:
    """Append the outcome of an attempt; `version` is that before the outcome."""
    kind, attempt = event.TYPE.removeprefix(f"{entity}."), event.attempt
    key = f"http/{entity}/{name}/{kind}/{attempt}/{event.worker}"
    await append(runtime, row, event, key=key, version=version, cause_id=cause_id)


def version_before_end(
    state: Entity, entity: str, name: int, worker: str, attempt: int | None, *, has_ended: bool
) -> int:
    """Return the version that an outcome expects.

    The same outcome, sent again, is deduplicated by its key; any other conflicts.

    Raises:
        NotYours: it has not ended, and the worker has no lease.
    """
    if has_ended:
        return state.version - 1
    held(state, entity, name, worker, attempt)
    return state.version
