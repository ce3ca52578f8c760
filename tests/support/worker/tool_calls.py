"""A call of a tool, and the work item it is made for, where it does not matter which."""

from __future__ import annotations

from streams.kafka.work.item import WorkItem
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
ITEM = WorkItem(
    kind="frame",
    tenant_id="acme",
    organization_id="care",
    execution_id=1,
    entity_id=2,
    attempt=1,
    version=1,
    step="load",
    pool="default",
    catalog_id=3,
    catalog_version=1,
)
