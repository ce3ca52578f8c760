"""The event that ends an execution because someone wanted it. Pure."""

from __future__ import annotations

from datetime import datetime

from streams.envelope.model import NewEvent, Root
from streams.payload.port import Scope


def cancelled(
    root: Root, scope: Scope, *, by: str, reason: str | None, now: datetime, nonce: int
) -> NewEvent:
    """Return `execution.cancelled`; each attempt has a key of its own, and only one succeeds."""
    return NewEvent(
        type="execution.cancelled",
        root=root,
        tenant_id=scope.tenant_id,
        organization_id=scope.organization_id,
        idempotency_key=f"cancel/{nonce}",
        event_time=now,
        status="CANCELLED",
        error=reason,
        meta={"by": by},
    )
