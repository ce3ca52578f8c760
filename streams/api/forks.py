"""The endpoint that forks an execution."""

from __future__ import annotations

from aiohttp import web

from streams.api.request_bodies import Fork, read
from streams.api.request_numbers import id_of
from streams.api.runtime import ApiRuntime
from streams.api.serializers import json_response
from streams.ids import derive_root_id
from streams.replay.fork.errors import WouldRepeat
from streams.replay.fork.fork_json import fork_json


async def fork(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Start an execution from a past state of another one; 200 for what would be done."""
    source_id, asked = id_of(request), await read(request, Fork)
    scope = runtime.scope_of(request)
    found = await runtime.forks.prepare(source_id, scope, asked.position, asked.set)
    if asked.dry_run:
        return json_response(fork_json(found, None))
    if found.effects and not asked.repeat_effects:
        named = ", ".join(f"{one.step}.{one.task} ({one.kind})" for one in found.effects)
        raise WouldRepeat(
            f"execution {source_id}: its fork would repeat {named}; "
            "send repeat_effects: true to allow that"
        )
    new_id = runtime.next_id()
    if asked.key is not None:
        new_id = derive_root_id(source_id, 0, f"fork/{asked.key}")
    await runtime.forks.start(
        found, new_id, by=asked.by, into=runtime.log, inline_bytes=runtime.inline_bytes
    )
    return json_response(fork_json(found, new_id), 201)
