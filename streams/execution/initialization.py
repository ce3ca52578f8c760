"""The first event of an execution, whoever starts it: a trigger, a step or a row."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from streams.events.model import Json, NewEvent, PayloadRef, Root
from streams.events.types import PlaybookInitialized
from streams.payload.port import Scope


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionStart:
    """A new execution: its playbook and its inputs, inline or in a payload."""

    execution_id: int
    scope: Scope
    catalog_id: int
    path: str
    version: int
    workload: dict[str, Json] | None = None
    payload_ref: PayloadRef | None = None
    is_detached: bool = False
    """Whether a child goes on when the execution that started it ends."""
    pool: str | None = None
    """The pool of steps that name none; None: the playbook's."""
    subscription: str | None = None
    """The subscription whose message started it."""
    fork_parts: int | None = None
    """How many `execution.forked` follow."""


def first_event(
    start: ExecutionStart,
    *,
    key: str,
    now: datetime,
    correlation_id: str | None = None,
    reply_to: str | None = None,
) -> NewEvent:
    """Return the first event of an execution that a trigger starts."""
    return _first(start, key, now, correlation_id, reply_to=reply_to)


def child_event(
    start: ExecutionStart,
    *,
    parent_execution_id: int,
    parent_step: str,
    parent_command_id: int | None = None,
    key: str,
    now: datetime,
) -> NewEvent:
    """Return the first event of a child, refused where its derived id is taken."""
    first = _first(
        start,
        key,
        now,
        str(parent_execution_id),
        parent_step=parent_step,
        parent_command_id=parent_command_id,
    )
    return replace(first, parent_execution_id=parent_execution_id, expected_version=0)


def _first(
    start: ExecutionStart,
    key: str,
    now: datetime,
    correlation_id: str | None,
    *,
    reply_to: str | None = None,
    parent_step: str | None = None,
    parent_command_id: int | None = None,
) -> NewEvent:
    event = PlaybookInitialized(
        path=start.path,
        version=start.version,
        reply_to=reply_to,
        parent_step=parent_step,
        parent_command_id=parent_command_id,
        workload=start.workload,
        payload_ref=start.payload_ref,
        detached=True if start.is_detached else None,
        pool=start.pool,
        subscription=start.subscription,
        fork_parts=start.fork_parts,
    )
    return NewEvent(
        root=Root("execution", start.execution_id),
        tenant_id=start.scope.tenant_id,
        organization_id=start.scope.organization_id,
        idempotency_key=key,
        event_time=now,
        correlation_id=correlation_id,
        catalog_id=start.catalog_id,
        **event.columns(),
    )
