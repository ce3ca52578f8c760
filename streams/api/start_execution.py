"""The endpoint that starts an execution, through the same ledger as the trigger topic."""

from __future__ import annotations

from aiohttp import web

from streams.api.errors import BadRequest
from streams.api.runtime import ApiRuntime
from streams.api.serializers import json_response
from streams.kafka.feed.port import Record, TopicPartition
from streams.payload.port import Scope
from streams.results.oversized_events import spill_event
from streams.trigger.core import initialized
from streams.trigger.port import LedgerEntry, Origin, PlaybookVersion
from streams.trigger.record import KEY_HEADER, BadTrigger, Request, read_json, understand

_LANES = 1024
"""Concurrent starts: the ledger locks a partition while it enters its records."""


async def start(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Start a playbook: 201 for a new execution, 200 if the key already has one."""
    trigger = _parse(await request.read(), request, runtime.scope_of(request))
    scope = Scope(trigger.tenant, trigger.organization)
    found = await runtime.catalog.find(scope, trigger.path, trigger.version)
    execution_id = runtime.next_id()
    origin = Origin("http", execution_id % _LANES, execution_id, "http")
    playbook, now = PlaybookVersion(found.catalog_id, found.version), runtime.clock.now()
    event = initialized(trigger, playbook, origin, execution_id=execution_id, now=now)
    event = await spill_event(runtime.payloads, event, runtime.inline_bytes)
    (entered,) = await runtime.ledger.enter([LedgerEntry(origin, event, trigger.key)])
    body = {"execution_id": str(entered.execution_id), "path": trigger.path}
    return json_response({**body, "is_new": entered.is_new}, 201 if entered.is_new else 200)


def _parse(body: bytes, request: web.Request, scope: Scope) -> Request:
    """Parse the body like a trigger record's value; the key may also be in Idempotency-Key."""
    header = request.headers.get("Idempotency-Key")
    headers = () if header is None else ((KEY_HEADER, header.encode("utf-8", "replace")),)
    record = Record(TopicPartition("http", 0), 0, None, body, headers, 0)
    try:
        fields = read_json(body)
        for name in ("tenant", "organization"):
            if name in fields:
                raise ValueError(f"{name}: send the scope of a request in its headers")
        return understand(
            record, fields, tenant=scope.tenant_id, organization=scope.organization_id
        )
    except BadTrigger as error:
        raise BadRequest(error.problems) from error
    except ValueError as error:
        raise BadRequest((str(error),)) from error
