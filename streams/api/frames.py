"""Frame endpoints for workers in any language: claim, heartbeat, commit."""

from __future__ import annotations

from datetime import timedelta

from aiohttp import web

from streams.api.errors import BadRequest
from streams.api.event_json import RowJson
from streams.api.leases import append, end, held, own, read_frame, renew, version_before_end
from streams.api.port import Row
from streams.api.request_bodies import ClaimFrames, CommitFrame, Heartbeat, read
from streams.api.request_numbers import id_of
from streams.api.runtime import ApiRuntime
from streams.api.serializers import json_response, reference_with_url, row_json
from streams.events.model import Root
from streams.events.types import FrameCommitted, FrameFailed, StageOpened, typed
from streams.execution.attempts import FrameAttempt, FrameReport
from streams.execution.frame import Frame, FrameStatus
from streams.log.errors import RootEnded, VersionConflict


async def claim(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Claim waiting frames of a stage for a worker, each by compare-and-swap."""
    stage_id = id_of(request)
    stage = own(runtime, request, "stage", stage_id, await runtime.projections.stage(stage_id))
    asked = await read(request, ClaimFrames)
    held_now = await runtime.projections.held_frames(stage_id, asked.worker_id)
    want = min(asked.want, asked.max_inflight - held_now)
    if want <= 0:
        return json_response([])
    won: list[RowJson] = []
    # Some may be claimed already: the projection lags the log.
    for waiting in await runtime.projections.waiting_frames(stage_id, 2 * want):
        if len(won) < want and (one := await _claim(runtime, stage, waiting, asked.worker_id)):
            won.append(one)
    if not won:
        return json_response([])
    shared = await _shared(runtime, stage)
    return json_response([{**one, **shared} for one in won])


async def _claim(runtime: ApiRuntime, stage: Row, waiting: Row, worker: str) -> RowJson | None:
    frame_id = waiting["frame_id"]
    frame, last = await read_frame(runtime, stage["execution_id"], frame_id)
    if frame.status is not FrameStatus.PENDING:
        return None
    lease = runtime.lease_seconds
    try:
        stored = await append(
            runtime,
            stage,
            _attempt(frame, stage, worker).claimed(lease),
            key=f"http/frame/{frame_id}/claimed/{runtime.next_id()}",
            version=frame.version,
            cause_id=last,
        )
    except (VersionConflict, RootEnded):
        return None
    return {
        "frame_id": str(frame_id),
        "cursor": frame.cursor,
        **({} if frame.ctx is None else {"ctx": frame.ctx}),
        **({} if frame.ctx_ref is None else {"ctx_ref": reference_with_url(frame.ctx_ref)}),
        **({"ctx_elsewhere": frame.ctx_elsewhere} if frame.ctx_elsewhere else {}),
        "attempt": frame.attempt,
        "version": stored.stream_version,
        "shard_id": frame.shard_id,
        "lease_until": stored.ingest_time + timedelta(seconds=lease),
    }


async def _shared(runtime: ApiRuntime, stage: Row) -> RowJson:
    """Return the fields shared by all frames of a stage: step, policy, document."""
    root = Root("execution", stage["execution_id"])
    names = ("stage_id", "execution_id", "catalog_id", "catalog_version")
    shared = row_json({name: stage[name] for name in (*names, "dsl_ref", "frame_policy")})
    shared["step"] = stage["step_name"]
    async for event in runtime.log.read_stream(root, f"{root}/stage/{stage['stage_id']}"):
        if isinstance(opened := typed(event), StageOpened):
            if opened.document is not None:
                shared["document"] = opened.document
            elif opened.payload_ref is not None:
                shared["document_ref"] = reference_with_url(opened.payload_ref)
            break
    return shared


async def heartbeat(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Renew the lease."""
    frame_id = id_of(request)
    row = own(runtime, request, "frame", frame_id, await runtime.projections.frame(frame_id))
    beat = await read(request, Heartbeat)
    frame, last = await read_frame(runtime, row["execution_id"], frame_id)
    held(frame, "frame", frame_id, beat.worker_id, beat.attempt)
    report = _checkpoint(frame, beat)
    attempt, lease = _attempt(frame, row, beat.worker_id), runtime.lease_seconds
    event = attempt.heartbeat(lease) if report is None else attempt.checkpoint(lease, report)
    return await renew(
        runtime, row, "frame", frame_id, event, frame.version, last, checkpointed=report is not None
    )


def _checkpoint(frame: Frame, beat: Heartbeat) -> FrameReport | None:
    """Return the rows that a heartbeat reports as done; None: it only renews the lease.

    Raises:
        BadRequest: their number is missing, or does not match the cursor.
    """
    if not beat.output_ref or not beat.cursor:
        return None
    rows = beat.output_ref.row_count if beat.row_count is None else beat.row_count
    if rows is None:
        why = "row_count: how many rows the output of a checkpoint has; output_ref has no row_count"
        raise BadRequest((why,))
    before, after = frame.cursor, beat.cursor
    if before.get("kind") == "list":
        first, stop = int(before["from"]), before["to"]
        if (after.get("kind"), after.get("from"), after.get("to")) != ("list", first + rows, stop):
            wanted = {"kind": "list", "from": first + rows, "to": stop}
            why = f"cursor: {rows} rows after {dict(before)} end at {wanted}, not at {after}"
            raise BadRequest((why,))
    return FrameReport(
        rows=rows,
        failed_rows=beat.failed_rows,
        cursor=after,
        errors=list(beat.errors[:10]) or None,
        ctx=beat.ctx,
        payload_ref=beat.output_ref.ref(),
    )


async def commit(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Store a frame's outcome; resending the same commit returns the same response."""
    frame_id = id_of(request)
    row = own(runtime, request, "frame", frame_id, await runtime.projections.frame(frame_id))
    sent = await read(request, CommitFrame)
    frame, last = await read_frame(runtime, row["execution_id"], frame_id)
    has_ended = frame.status in (FrameStatus.COMMITTED, FrameStatus.FAILED)
    version = version_before_end(
        frame, "frame", frame_id, sent.worker_id, sent.attempt, has_ended=has_ended
    )
    event = _ending(_attempt(frame, row, sent.worker_id), sent)
    await end(runtime, row, "frame", frame_id, event, version, last)
    return json_response({"ok": True, "next_action": await _next(runtime, row)})


def _attempt(frame: Frame, row: Row, worker: str) -> FrameAttempt:
    return FrameAttempt(
        frame_id=frame.frame_id,
        stage_id=frame.stage_id,
        loop_id=frame.loop_id,
        attempt=frame.attempt,
        step=row["step_name"],
        worker=worker,
        shard_id=frame.shard_id,
    )


def _ending(attempt: FrameAttempt, sent: CommitFrame) -> FrameCommitted | FrameFailed:
    """Return the event that ends the attempt with the reported outcome."""
    report = FrameReport(
        rows=sent.row_count,
        failed_rows=sent.failed_rows,
        cursor=sent.cursor,
        exhausted=sent.exhausted,
        errors=list(sent.errors[:10]),
        ctx=sent.ctx,
        payload_ref=sent.output_ref.ref() if sent.output_ref else None,
    )
    if sent.status == "failed":
        return attempt.failed(sent.error or "the worker reported no error message", report)
    return attempt.committed(report, continues=sent.continues)


async def _next(runtime: ApiRuntime, row: Row) -> str:
    """Return what the worker should do next: claim, wait, or leave this stage."""
    stage = await runtime.projections.stage(row["stage_id"])
    if stage is None or stage["status"] != "OPEN":
        return "stop"
    waiting = await runtime.projections.waiting_frames(row["stage_id"], 2)
    return "claim" if any(one["frame_id"] != row["frame_id"] for one in waiting) else "wait"
