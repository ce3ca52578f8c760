"""Cancellation of an execution by request, or because its caller ended. Pure."""

from __future__ import annotations

from datetime import datetime

from streams.events.model import NewEvent, Root
from streams.events.types import ExecutionCancelled
from streams.payload.port import Scope


def cancelled(
    root: Root,
    scope: Scope,
    *,
    by: str,
    reason: str | None,
    now: datetime,
    key: str,
    cause_id: int | None,
) -> NewEvent:
    """Return `execution.cancelled`; `key` identifies the requester, only the first succeeds."""
    return NewEvent(
        root=root,
        tenant_id=scope.tenant_id,
        organization_id=scope.organization_id,
        idempotency_key=f"cancel/{key}",
        event_time=now,
        causation_id=cause_id,
        **ExecutionCancelled(status="CANCELLED", error=reason, by=by).columns(),
    )


def orphaned(
    child: int, parent: int, scope: Scope, reason: str, *, now: datetime, cause_id: int | None
) -> NewEvent:
    """Return the cancellation of a child whose caller `parent` no longer waits for it."""
    return cancelled(
        Root("execution", child),
        scope,
        by=f"execution/{parent}",
        reason=reason,
        now=now,
        key=f"parent/{parent}",
        cause_id=cause_id,
    )
