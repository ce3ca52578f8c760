"""Every route, for the server and for the OpenAPI description."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from streams.api import (
    catalog,
    commands,
    credentials,
    executions,
    frames,
    payloads,
    results,
    start_execution,
)
from streams.api.request_bodies import (
    Cancel,
    ClaimCommands,
    ClaimFrames,
    CommitFrame,
    CompleteCommand,
    Heartbeat,
    Register,
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
    """A method and path with its handler. `{path:.+}` in a path takes slashes too."""

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
_RESOLVE = "with data of up to 1 MiB that is elsewhere; a tombstone where it expired"

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
        path="/api/executions",
        handle=executions.list_all,
        summary="List executions, the newest first",
        query={
            "status": "only this status",
            "path": "only of this playbook",
            "before": "only older ones than this id; `next` of the page before",
            "limit": "how many, at most 1000",
        },
    ),
    Route(
        method="GET",
        path="/api/executions/{id}",
        handle=executions.show,
        summary="Show an execution, no older than the log is now",
        query={"resolve": _RESOLVE},
        answers={200: "the execution", 404: "not found"},
    ),
    Route(
        method="GET",
        path="/api/executions/{id}/events",
        handle=executions.events,
        summary="List the events of an execution, in order",
        query={
            "after": "only later ones than this seq",
            "limit": "how many, at most 1000",
            "resolve": _RESOLVE,
        },
        answers={200: "events", 404: "not found"},
    ),
    Route(
        method="POST",
        path="/api/executions/{id}/cancel",
        handle=executions.cancel,
        summary="End an execution",
        body=Cancel,
        answers={200: "cancelled", 404: "not found", 409: "already finished"},
    ),
    Route(
        method="POST",
        path="/api/executions/{id}/suspend",
        handle=executions.suspend,
        summary="Dispatch nothing new of an execution until it is resumed",
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
        path="/api/catalog",
        handle=catalog.register,
        summary="Register a playbook",
        body=Register,
        answers={201: "registered", 200: "already the newest version", 422: "invalid"},
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
        query={"version": "this version instead of the newest"},
        answers={200: "the playbook", 404: "not found"},
    ),
    Route(
        method="POST",
        path="/api/stages/{id}/frames/claim",
        handle=frames.claim,
        summary="Claim waiting frames of a stage",
        body=ClaimFrames,
        answers={200: "what was claimed, perhaps nothing", 404: "no such stage"},
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
        answers={200: "what was claimed, perhaps nothing"},
    ),
    Route(
        method="POST",
        path="/api/commands/{id}/heartbeat",
        handle=commands.heartbeat,
        summary="Renew the lease of a command",
        body=Heartbeat,
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
        query={"byte_length": "its length, as its reference has it"},
        answers={
            200: "the bytes",
            206: "the range asked for",
            404: "not found",
            416: "no such range",
            422: "it is damaged, or has another length",
        },
    ),
    Route(
        method="GET",
        path="/api/credentials",
        handle=credentials.list_all,
        summary="List credentials: names, types, names of fields and times, never a value",
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
        summary="Open a credential for a worker that holds a task which names it",
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
        method="GET",
        path="/api/result/resolve",
        handle=results.resolve,
        summary="Fetch the data behind a result's name, or a range of its bytes",
        query={
            "ref": "the name, noetl://execution/…",
            "form": "data (default), or ref: the reference itself",
        },
        answers={
            200: "the data",
            206: "the range asked for",
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
