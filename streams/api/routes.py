"""The routes of the server and of its OpenAPI description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streams.api import (
    catalog,
    commands,
    credentials,
    executions,
    forks,
    frames,
    payloads,
    projections,
    replay,
    results,
    start_execution,
    webhooks,
)
from streams.api.request_bodies import (
    Cancel,
    ClaimCommands,
    ClaimFrames,
    CommitFrame,
    CompleteCommand,
    Fork,
    Heartbeat,
    Register,
    RenewLease,
    ResolveCredential,
    Resume,
    Sent,
    SetCredential,
    Start,
    Suspend,
)
from streams.api.runtime import Handler


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """A method and path with its handler. `{path:.+}` in a path matches slashes too."""

    method: str
    path: str
    handle: Handler
    summary: str
    body: type[Sent] | str | None = None
    """A body's class, or the media type of raw bytes."""
    query: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[int, str] = field(default_factory=lambda: {200: "done"})


_LEASED = {200: "the lease is renewed", 404: "not found", 409: "held by another worker"}
_ENDED = {
    200: "accepted",
    404: "not found",
    409: "held by another worker, or execution finished",
}
_RESOLVE = "include spilled data of up to 1 MiB; a tombstone if it expired"

ROUTES = (
    Route(
        method="POST",
        path="/api/executions",
        handle=start_execution.start,
        summary="Start a playbook",
        body=Start,
        answers={201: "started", 200: "the key has this execution already", 404: "no playbook"},
    ),
    Route(
        method="GET",
        path="/api/replay/state",
        handle=replay.show_state,
        summary="Return an execution, or all of an organization's, as of a moment",
        query={
            "tenant_id": "mandatory",
            "organization_id": "mandatory",
            "execution_id": "without it the whole organization; needs the operator token",
            "as_of_event_id": "up to this event",
            "as_of_position": "up to the execution's Nth event; of an organization, the log's",
            "as_of_time": "up to this time, in ISO 8601",
            "as_of_offset": "up to a record of its topic, TOPIC:PARTITION:OFFSET",
            "projection": "execution, loop, stage, frame, command, result_ref, all or "
            "business_object",
            "after": "executions above this id, of an organization",
            "limit": "executions on a page of an organization, at most 1000",
        },
        answers={
            200: "the state",
            401: "another tenant, or not an operator",
            404: "not found",
            422: "no such moment",
        },
    ),
    Route(
        method="GET",
        path="/api/projections",
        handle=projections.list_all,
        summary="List the business projections",
    ),
    Route(
        method="GET",
        path="/api/projections/{name}",
        handle=projections.show,
        summary="Return rows of a business projection by key, merged over all executions",
        query={
            "version": "default: the newest",
            "after": "only after this key; `next` of the previous page, as JSON",
            "limit": "page size, at most 1000",
            "COLUMN": "only this value of a column of the key",
        },
        answers={200: "rows", 404: "no such projection", 422: "not a column of the key"},
    ),
    Route(
        method="GET",
        path="/api/executions",
        handle=executions.list_all,
        summary="List executions, the newest first",
        query={
            "status": "only this status",
            "path": "only of this playbook",
            "before": "only with a lower id; `next` of the previous page",
            "limit": "page size, at most 1000",
        },
    ),
    Route(
        method="GET",
        path="/api/executions/{id}",
        handle=executions.show,
        summary="Show an execution, at least as new as the log",
        query={"resolve": _RESOLVE},
        answers={200: "the execution", 404: "not found"},
    ),
    Route(
        method="GET",
        path="/api/executions/{id}/events",
        handle=executions.events,
        summary="List the events of an execution, in order",
        query={
            "after": "only after this seq",
            "limit": "page size, at most 1000",
            "resolve": _RESOLVE,
        },
        answers={200: "events", 404: "not found"},
    ),
    Route(
        method="POST",
        path="/api/executions/{id}/cancel",
        handle=executions.cancel,
        summary="Cancel an execution",
        body=Cancel,
        answers={200: "cancelled", 404: "not found", 409: "already finished"},
    ),
    Route(
        method="POST",
        path="/api/executions/{id}/suspend",
        handle=executions.suspend,
        summary="Suspend dispatching of an execution",
        body=Suspend,
        answers={200: "suspended", 404: "not found", 409: "already suspended, or finished"},
    ),
    Route(
        method="POST",
        path="/api/executions/{id}/resume",
        handle=executions.resume,
        summary="Resume a suspended execution",
        body=Resume,
        answers={200: "resumed", 404: "not found", 409: "not suspended, or finished"},
    ),
    Route(
        method="POST",
        path="/api/executions/{id}/fork",
        handle=forks.fork,
        summary="Start an execution from a past state of another one",
        body=Fork,
        answers={
            201: "started",
            200: "what would be done",
            404: "not found",
            409: "side effects would be repeated, or the log was tampered with",
            422: "no such position, or no such value to set",
        },
    ),
    Route(
        method="POST",
        path="/api/catalog",
        handle=catalog.register,
        summary="Register a playbook",
        body=Register,
        answers={
            201: "registered",
            200: "already the newest version",
            409: "another subscription has the gateway_path",
            422: "invalid",
        },
    ),
    Route(
        method="GET",
        path="/api/catalog",
        handle=catalog.list_all,
        summary="List the newest version of every playbook",
    ),
    Route(
        method="GET",
        path="/api/catalog/{path:.+}",
        handle=catalog.show,
        summary="Show a playbook with its content",
        query={"version": "default: the newest"},
        answers={200: "the playbook", 404: "not found"},
    ),
    Route(
        method="POST",
        path="/api/stages/{id}/frames/claim",
        handle=frames.claim,
        summary="Claim waiting frames of a stage",
        body=ClaimFrames,
        answers={200: "the claimed items, possibly none", 404: "no such stage"},
    ),
    Route(
        method="POST",
        path="/api/frames/{id}/heartbeat",
        handle=frames.heartbeat,
        summary="Renew the lease of a frame",
        body=Heartbeat,
        answers=_LEASED,
    ),
    Route(
        method="POST",
        path="/api/frames/{id}/commit",
        handle=frames.commit,
        summary="Report the outcome of a frame",
        body=CommitFrame,
        answers=_ENDED,
    ),
    Route(
        method="POST",
        path="/api/commands/claim",
        handle=commands.claim,
        summary="Claim waiting commands of a pool",
        body=ClaimCommands,
        answers={200: "the claimed items, possibly none"},
    ),
    Route(
        method="POST",
        path="/api/commands/{id}/heartbeat",
        handle=commands.heartbeat,
        summary="Renew the lease of a command",
        body=RenewLease,
        answers=_LEASED,
    ),
    Route(
        method="POST",
        path="/api/commands/{id}/complete",
        handle=commands.complete,
        summary="Report the outcome of a command",
        body=CompleteCommand,
        answers=_ENDED,
    ),
    Route(
        method="POST",
        path="/api/payloads",
        handle=payloads.store,
        summary="Store a payload",
        body=payloads.OCTETS,
        query={"row_count": "rows in it", "schema_digest": "digest of their Arrow schema"},
        answers={201: "its reference", 413: "too large", 422: "the body ended early"},
    ),
    Route(
        method="GET",
        path="/api/payloads/{sha256}",
        handle=payloads.fetch,
        summary="Fetch a payload, or a range of its bytes",
        query={"byte_length": "its length, from the reference"},
        answers={
            200: "the bytes",
            206: "the requested range",
            404: "not found",
            416: "no such range",
            422: "damaged, or of another length",
        },
    ),
    Route(
        method="GET",
        path="/api/credentials",
        handle=credentials.list_all,
        summary="List credentials: names, types, field names and times, never values",
    ),
    Route(
        method="PUT",
        path="/api/credentials/{name}",
        handle=credentials.put,
        summary="Store a credential, or its next revision",
        body=SetCredential,
        answers={201: "stored", 200: "the next revision", 422: "invalid"},
    ),
    Route(
        method="DELETE",
        path="/api/credentials/{name}",
        handle=credentials.remove,
        summary="Remove a credential",
        answers={200: "removed", 404: "not found"},
    ),
    Route(
        method="POST",
        path="/api/credentials/resolve",
        handle=credentials.resolve,
        summary="Resolve a credential for a worker that holds a task which names it",
        body=ResolveCredential,
        answers={
            200: "the secret, for the lease",
            401: "not a worker's token",
            403: "the step does not name it",
            404: "not found",
            409: "the worker does not hold the task",
        },
    ),
    Route(
        method="POST",
        path="/ingress/{path:.+}",
        handle=webhooks.receive,
        summary="Start the playbook of a subscription with `source: webhook`",
        body=webhooks.ANY,
        answers={
            202: "started",
            200: "the idempotency key has this execution already",
            401: "the signature or token is missing or wrong",
            404: "no subscription has this path",
            409: "several subscriptions have this path",
            422: "it can never start the playbook",
            429: "the subscription is at a limit",
            503: "paused, or a dependency is unavailable",
        },
    ),
    Route(
        method="GET",
        path="/api/result/resolve",
        handle=results.resolve,
        summary="Fetch the data of a result, or a range of its bytes",
        query={
            "ref": "the name, noetl://execution/…",
            "form": "data (default), or ref: the reference itself",
        },
        answers={
            200: "the data",
            206: "the requested range",
            403: "another tenant's",
            404: "not found",
            410: "expired",
            416: "no such range",
        },
    ),
    Route(
        method="GET",
        path="/api/executions/{id}/results",
        handle=results.of_execution,
        summary="List the references of an execution's results",
        query={"step": "only of this step", "task": "only of this task"},
        answers={200: "references", 404: "not found"},
    ),
)
