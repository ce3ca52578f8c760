"""Execution endpoints: list, show, cancel, suspend, resume, and their events."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from aiohttp import web

from streams.api.event_json import RowJson, event_json
from streams.api.request_bodies import Cancel, Resume, Suspend, read
from streams.api.request_numbers import id_of, number
from streams.api.runtime import ApiRuntime
from streams.api.serializers import json_response, row_json
from streams.api.suspension import Next, event_id_at, steer
from streams.collector.core import retained_id
from streams.events.model import Event, Json, NewEvent, Root
from streams.events.types import (
    ExecutionCancelled,
    ExecutionResumed,
    ExecutionSuspended,
    ResultExpired,
    typed,
)
from streams.execution.cancellation import cancelled
from streams.execution.suspension import resumed, suspended
from streams.log.errors import RootEnded
from streams.payload.content import reference_from, reference_json
from streams.payload.errors import PayloadMissing
from streams.payload.port import JSON
from streams.projector.core import View, absorb
from streams.results.envelope import Envelope
from streams.results.oversized_events import (
    Expired,
    absence,
    read_data,
    resolve_event,
    without_data,
)

CATCH_UP_LIMIT_S = 2.0
_PAUSE_S = 0.025
MAX_FOLDED_EVENTS = 20_000
"""Events that a request may fold; a longer execution is returned as projected."""
MAX_RESOLVED_BYTES = 1 << 20
"""Larger payloads are returned as references only."""
MAX_PAGE = 1000


async def show(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Return an execution, at least as new as the log at the time of the request."""
    execution_id = id_of(request)
    head = await runtime.head(request, execution_id)
    row = await _caught_up(runtime, execution_id, head.seq)
    if row is None:
        row = await _folded(runtime, execution_id)
    parts = await runtime.projections.parts(execution_id)
    children = {name: [row_json(one) for one in rows] for name, rows in parts.items()}
    if "resolve" in request.query:
        row |= {"result": await _result(runtime, execution_id, row)}
    return json_response({**row, "head_seq": head.seq, **children})


async def _result(runtime: ApiRuntime, execution_id: int, row: RowJson) -> Json:
    """Return an execution's result, with spilled data inline where it is available."""
    result: Json = row["result"]
    given = row.get("result_ref")
    ref = None if given is None else reference_from({k: v for k, v in given.items() if k != "url"})
    if ref is None or ref.media_type != JSON or ref.byte_length > MAX_RESOLVED_BYTES:
        return result
    expired = await _expired(runtime, Root("execution", execution_id), ref.sha256)
    try:
        data = await read_data(runtime.payloads, ref, expired)
    except PayloadMissing:
        data = absence(ref)
    return Envelope.parse(result).with_fields(data=data).to_json()


async def _caught_up(runtime: ApiRuntime, execution_id: int, seq: int) -> RowJson | None:
    """Return the row once projected up to `seq`; None on timeout if the log is short to fold."""
    deadline = runtime.clock.monotonic() + CATCH_UP_LIMIT_S
    while True:
        row = await runtime.projections.execution(execution_id)
        if row is not None and row["last_seq"] >= seq:
            return row_json(row)
        if runtime.clock.monotonic() >= deadline:
            return row_json(row) if row is not None and seq > MAX_FOLDED_EVENTS else None
        await asyncio.sleep(_PAUSE_S)


async def _folded(runtime: ApiRuntime, execution_id: int) -> RowJson:
    """Return the row that the projection will have, folded from the log."""
    view = View()
    async for event in runtime.log.read_root(Root("execution", execution_id)):
        view, _ = absorb(view, event)
    row = view.row
    fields = {name: getattr(row, name) for name in row.__slots__}
    if row.result_ref is not None:
        fields["result_ref"] = reference_json(row.result_ref)
    return row_json(
        {name: value for name, value in fields.items() if name not in _INTERNAL_COLUMNS}
    )


_INTERNAL_COLUMNS = ("created_at", "projection_version", "state_checksum")


async def list_all(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """List executions, the newest first."""
    limit = number(request, "limit", 50, most=MAX_PAGE)
    rows = await runtime.projections.executions(
        runtime.scope_of(request),
        status=request.query.get("status"),
        path=request.query.get("path"),
        before=number(request, "before", 2**63 - 1),
        limit=limit,
    )
    last = str(rows[-1]["execution_id"]) if len(rows) == limit and rows else None
    return json_response({"executions": [row_json(row) for row in rows], "next": last})


async def events(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Return the events of an execution, in order, from the log."""
    execution_id = id_of(request)
    head = await runtime.head(request, execution_id)
    after = number(request, "after", 0)
    limit = number(request, "limit", 200, most=MAX_PAGE)
    root = Root("execution", execution_id)
    found = runtime.log.read_root(root, after_seq=after, through_seq=after + limit)
    page = [event_json(await _resolved(runtime, request, event)) async for event in found]
    last_seq = page[-1]["seq"] if page else after
    return json_response({"events": page, "next": last_seq if last_seq < head.seq else None})


async def _resolved(runtime: ApiRuntime, request: web.Request, event: Event) -> Event:
    """Return the event, with spilled data inline where requested and available."""
    ref = event.payload_ref
    if "resolve" not in request.query or ref is None or ref.byte_length > MAX_RESOLVED_BYTES:
        return event
    expired = await _expired(runtime, event.root, ref.sha256)
    try:
        return await resolve_event(runtime.payloads, event, expired=expired)
    except PayloadMissing:
        return without_data(event)


async def _expired(runtime: ApiRuntime, root: Root, digest: str) -> dict[str, Expired]:
    """Return the expiry of a payload that an event of this root references, if it expired.

    Such a payload outlives the results that reference it: it expires under its own id.
    """
    stream = f"{root}/result/{retained_id(root.id, digest)}"
    async for event in runtime.log.read_stream(root, stream):
        known = typed(event)
        if isinstance(known, ResultExpired):
            return {digest: Expired(event.ingest_time, known.reason)}
    return {}


async def cancel(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Cancel an execution; later reports of its workers are rejected."""
    execution_id = id_of(request)
    head = await runtime.head(request, execution_id)
    body = await read(request, Cancel)
    root = Root("execution", execution_id)
    if head.has_ended:
        raise RootEnded(root, ExecutionCancelled.TYPE)
    event = cancelled(
        root,
        head.scope,
        by=body.by,
        reason=body.reason,
        now=runtime.clock.now(),
        key=str(runtime.next_id()),
        cause_id=await event_id_at(runtime.log, root, head.seq),
    )
    receipt = await runtime.log.append([event])
    state = {"execution_id": str(execution_id), "status": "CANCELLED"}
    return json_response({**state, "seq": receipt.events[0].seq})


async def suspend(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Suspend dispatching; running frames and commands may still commit."""
    body = await read(request, Suspend)

    def next_of(own: Sequence[Event]) -> NewEvent:
        return suspended(own, by=body.by, reason=body.reason, now=runtime.clock.now())

    return await _append_next(runtime, request, ExecutionSuspended.TYPE, next_of, "SUSPENDED")


async def resume(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Resume an execution from the end of its log."""
    body = await read(request, Resume)

    def next_of(own: Sequence[Event]) -> NewEvent:
        return resumed(own, by=body.by, now=runtime.clock.now())

    return await _append_next(runtime, request, ExecutionResumed.TYPE, next_of, "RUNNING")


async def _append_next(
    runtime: ApiRuntime, request: web.Request, type: str, next_of: Next, status: str
) -> web.Response:
    execution_id = id_of(request)
    head = await runtime.head(request, execution_id)
    root = Root("execution", execution_id)
    if head.has_ended:
        raise RootEnded(root, type)
    seq = await steer(runtime.log, root, next_of)
    return json_response({"execution_id": str(execution_id), "status": status, "seq": seq})
