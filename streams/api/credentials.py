"""Credential endpoints: set, list, remove, and resolve for a worker that holds a task."""

from __future__ import annotations

from dataclasses import asdict

from aiohttp import web

from streams.api.bearer import has_bearer
from streams.api.errors import NotAllowed
from streams.api.request_bodies import ResolveCredential, SetCredential, read
from streams.api.runtime import ApiRuntime
from streams.api.serializers import json_response, row_json
from streams.credential.fields import check_fields, check_name
from streams.credential.port import Claim, CredentialEntry
from streams.credential.seal import seal
from streams.redact import in_use


async def put(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Store a credential; the response contains no values, and what overrides it, if anything."""
    name, scope = check_name(request.match_info["name"]), runtime.scope_of(request)
    sent = await read(request, SetCredential)
    with in_use() as secrets:
        fields = check_fields(sent.fields)
        secrets.add(name, fields)
        sealed = seal(runtime.keys(), scope, name, fields)
        kind = check_name(sent.kind, "type")
        entry = await runtime.credentials.put(scope, name, kind, sorted(fields), sealed)
    stored = _entry_json(entry)
    if name in runtime.configured_credentials:
        stored["overridden_by"] = "settings"
    return json_response(stored, 201 if entry.revision == 1 else 200)


async def list_all(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """List credentials: names, types, field names and times."""
    entries = await runtime.credentials.list(runtime.scope_of(request))
    return json_response({"credentials": [_entry_json(entry) for entry in entries]})


async def remove(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Delete a credential."""
    name = check_name(request.match_info["name"])
    await runtime.credentials.remove(runtime.scope_of(request), name)
    return json_response({"removed": name})


async def resolve(runtime: ApiRuntime, request: web.Request) -> web.Response:
    """Decrypt a credential for a worker that holds an attempt whose step names it."""
    _check_token(runtime, request)
    asked = await read(request, ResolveCredential)
    claim = Claim(
        execution_id=int(asked.execution_id),
        entity=asked.entity,
        entity_id=int(asked.entity_id),
        attempt=asked.attempt,
        worker=asked.worker_id,
    )
    with in_use() as secrets:
        secret = await runtime.resolver.resolve(claim, asked.name)
        secrets.add(asked.name, secret.fields)
    resolved = {
        "name": asked.name,
        "kind": secret.kind,
        "fields": dict(secret.fields),
        "seconds_left": secret.seconds_left,
    }
    response = json_response(resolved)
    response.headers["Cache-Control"] = "no-store"
    return response


def _check_token(runtime: ApiRuntime, request: web.Request) -> None:
    if runtime.worker_token is None:
        raise NotAllowed(
            "resolving secrets is disabled: set credential_store.worker_token_file, "
            "the same for workers and API"
        )
    if not has_bearer(request, runtime.worker_token):
        raise NotAllowed("only workers may resolve secrets: send the worker token as bearer token")


def _entry_json(entry: CredentialEntry) -> dict[str, object]:
    return row_json(asdict(entry))
