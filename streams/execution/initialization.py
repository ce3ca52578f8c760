"""The first event of an execution, whoever starts it: a trigger, a step or a row."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from streams.events.model import NewEvent, Root
from streams.events.types import PlaybookInitialized
from streams.payload.port import Scope


def first_event(
    event: PlaybookInitialized,
    *,
    execution_id: int,
    scope: Scope,
    catalog_id: int,
    key: str,
    now: datetime,
    correlation_id: str | None = None,
) -> NewEvent:
    """Return `event` as the first of an execution that a trigger starts."""
    return NewEvent(
        root=Root("execution", execution_id),
        tenant_id=scope.tenant_id,
        organization_id=scope.organization_id,
        idempotency_key=key,
        event_time=now,
        correlation_id=correlation_id,
        catalog_id=catalog_id,
        **event.columns(),
    )


def child_event(
    event: PlaybookInitialized,
    *,
    execution_id: int,
    parent_execution_id: int,
    scope: Scope,
    catalog_id: int,
    key: str,
    now: datetime,
) -> NewEvent:
    """Return `event` as the first of a child, refused where its derived id is taken."""
    first = first_event(
        event,
        execution_id=execution_id,
        scope=scope,
        catalog_id=catalog_id,
        key=key,
        now=now,
        correlation_id=str(parent_execution_id),
    )
    return replace(first, parent_execution_id=parent_execution_id, expected_version=0)
