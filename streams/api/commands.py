"""Command endpoints: claim, heartbeat, complete."""

from __future__ import annotations

from datetime import timedelta

from aiohttp import web

from streams.api.event_json import RowJson
from streams.api.leases import append, end, held, own, read_command, renew, version_before_end
from streams.api.port import Row
from streams.api.request_bodies import ClaimCommands, CompleteCommand, RenewLease, read
from streams.api.request_numbers import id_of
from streams.api.runtime import ApiRuntime
from streams.api.serializers import json_response, reference_with_url, row_json
from streams.events.types import CommandCompleted, CommandFailed, ResultEnvelope
from streams.execution.attempts import CommandAttempt
from streams.execution.command import Command
from streams.log.errors import RootEnded, VersionConflict


async def claim(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Claim waiting commands of a pool for a worker, each by compare-and-swap."""
    asked = await read(request, ClaimCommands)
    scope = runtime.scope_of(request)
    won: list[RowJson] = []
    rows = await runtime.projections.waiting_commands(
        scope, asked.pool, asked.tools, 2 * asked.want
    )
    for row in rows:
        if len(won) < asked.want and (one := await _claim(runtime, row, asked.worker_id)):
            won.append(one)
    return json_response(won)


async def _claim(runtime: ApiRuntime, row: Row, worker: str) -> RowJson | None:
    command_id, execution_id = row["command_id"], row["execution_id"]
    command, last = await read_command(runtime, execution_id, command_id)
    if not command.waits:
        return None
    lease = runtime.lease_seconds
    try:
        stored = await append(
            runtime,
            row,
            _attempt(command, command.step, worker).claimed(lease),
            key=f"http/command/{command_id}/claimed/{runtime.next_id()}",
            version=command.version,
            cause_id=last,
        )
    except (VersionConflict, RootEnded):
        return None
    names = ("command_id", "execution_id", "catalog_id", "catalog_version")
    claimed = {
        **row_json({name: row[name] for name in names}),
        "step": command.step,
        "tool": command.tool,
        "attempt": command.attempt,
        "version": stored.stream_version,
        "lease_until": stored.ingest_time + timedelta(seconds=lease),
    }
    if command.document_ref is not None:
        return {**claimed, "document_ref": reference_with_url(command.document_ref)}
    return {**claimed, "document": command.document}


async def heartbeat(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Renew the lease."""
    command_id = id_of(request)
    row = own(
        runtime, request, "command", command_id, await runtime.projections.command(command_id)
    )
    beat = await read(request, RenewLease)
    command, last = await read_command(runtime, row["execution_id"], command_id)
    held(command, "command", command_id, beat.worker_id, beat.attempt)
    attempt = _attempt(command, row["step_name"], beat.worker_id)
    event = attempt.heartbeat(runtime.lease_seconds)
    return await renew(runtime, row, "command", command_id, event, command.version, last)


async def complete(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Store a command's outcome; resending the same outcome returns the same response."""
    command_id = id_of(request)
    row = own(
        runtime, request, "command", command_id, await runtime.projections.command(command_id)
    )
    sent = await read(request, CompleteCommand)
    command, last = await read_command(runtime, row["execution_id"], command_id)
    version = version_before_end(
        command, "command", command_id, sent.worker_id, sent.attempt, has_ended=command.has_ended
    )
    event = _ending(_attempt(command, row["step_name"], sent.worker_id), sent)
    await end(runtime, row, "command", command_id, event, version, last)
    return json_response({"ok": True})


def _attempt(command: Command, step: str, worker: str) -> CommandAttempt:
    return CommandAttempt(
        command_id=command.command_id, attempt=command.attempt, step=step, worker=worker
    )


def _ending(attempt: CommandAttempt, sent: CompleteCommand) -> CommandCompleted | CommandFailed:
    """Return the event that ends the command with the reported outcome."""
    result: ResultEnvelope = {"status": sent.status, "meta": sent.meta}
    if sent.ctx is not None:
        result["ctx"] = sent.ctx
    ref = sent.output_ref.ref() if sent.output_ref else None
    if sent.status == "error":
        why = sent.error or "the worker reported no error message"
        result["error"] = {"kind": "worker", "message": why, "task": None}
        return attempt.failed(why, result, ref)
    if ref is None:
        result["data"] = sent.data
    return attempt.completed(result, ref)
