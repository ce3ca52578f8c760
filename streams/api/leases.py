"""What frames and commands have in common: found, folded from the log, held by one worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Protocol, TypeVar

from aiohttp import web

from streams.api.errors import NotFound, NotYours
from streams.api.port import Row
from streams.api.runtime import ApiRuntime
from streams.events.model import Event, NewEvent, Root, Routing
from streams.execution.lease import Lease
from streams.log.port import Appended
from streams.payload.port import Scope
from streams.playbook.result_policy import INLINE_BYTES
from streams.results.oversized_events import spill_event


class Entity(Protocol):
    """What a frame and a command both have."""

    @property
    def attempt(self) -> int: ...
    @property
    def version(self) -> int: ...
    @property
    def step(self) -> str: ...
    @property
    def lease(self) -> Lease | None: ...


Folded = TypeVar("Folded", bound=Entity)
Fold = Callable[[Folded | None, Event, datetime], Folded]


def own(runtime: ApiRuntime, request: web.Request, kind: str, name: int, row: Row | None) -> Row:
    """Return the row if it is of the caller's scope.

    Raises:
        NotFound: there is none, or it was not projected yet.
    """
    scope = runtime.scope_of(request)
    if row is None or Scope(row["tenant_id"], row["organization_id"]) != scope:
        raise NotFound(kind, name, "what was made just now may take a moment to be seen")
    return row


async def folded(
    runtime: ApiRuntime, execution_id: int, entity: str, entity_id: int, fold: Fold[Folded]
) -> Folded:
    """Return a frame or a command exactly as the log has it."""
    root = Root("execution", execution_id)
    state: Folded | None = None
    async for event in runtime.log.read_stream(root, f"{root}/{entity}/{entity_id}"):
        state = fold(state, event, event.ingest_time)
    if state is None:
        raise NotFound(entity, entity_id)
    return state


def held(state: Entity, entity: str, name: int, worker: str, attempt: int | None) -> Lease:
    """Return the worker's lease.

    Raises:
        NotYours: it has none, or this attempt has none any more.
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
    runtime: ApiRuntime,
    row: Row,
    type: str,
    *,
    key: str,
    version: int,
    meta: Mapping[str, Routing],
    **fields: Any,
) -> Appended:
    """Append an event of a frame or command, if it is still at `version`; large data apart.

    Raises:
        VersionConflict: somebody else was first.
        RootEnded: its execution has ended.
    """
    event = NewEvent(
        type=type,
        root=Root("execution", row["execution_id"]),
        tenant_id=row["tenant_id"],
        organization_id=row["organization_id"],
        idempotency_key=key,
        event_time=runtime.clock.now(),
        node_name=row["step_name"],
        meta=meta,
        expected_version=version,
        **fields,
    )
    room = min(runtime.inline_bytes, INLINE_BYTES)
    event = await spill_event(runtime.payloads, event, room)
    receipt = await runtime.log.append([event])
    return receipt.events[0]
