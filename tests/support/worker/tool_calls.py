"""The call that tests make of a tool where it does not matter who calls."""

from __future__ import annotations

from streams.worker.port import Call

CALL = Call(
    tenant_id="acme",
    organization_id="care",
    execution_id=1,
    step="s",
    task="t",
    entity_id=2,
    attempt=1,
)
