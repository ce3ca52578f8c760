"""Fold of a catalog entry's events into the rows of its versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from streams.errors import Inconsistent
from streams.events.model import Event
from streams.events.types import CatalogRegistered, CatalogRetired, typed
from streams.projector.rows import CatalogRow, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A catalog entry as of `seq`: its versions."""

    seq: int = 0
    versions: Mapping[int, CatalogRow] = field(default_factory=dict)


def absorb_resource(resource: Resource, event: Event) -> tuple[Resource, tuple[Row, ...]]:
    """Return the entry after `event` and the row it changed; idempotent."""
    if event.seq <= resource.seq:
        return resource, ()
    if event.seq != resource.seq + 1:
        why = f"event {event.seq} follows {resource.seq}; read the events between from the log"
        raise Inconsistent(f"{event.root}: {why}")
    row = _changed(resource, event)
    if row is None:
        return replace(resource, seq=event.seq), ()
    versions = {**resource.versions, row.version: row}
    return Resource(seq=event.seq, versions=versions), (row,)


def _changed(resource: Resource, event: Event) -> CatalogRow | None:
    known = typed(event)
    if isinstance(known, CatalogRegistered):
        return CatalogRow(
            catalog_id=event.root.id,
            version=known.version,
            tenant_id=event.tenant_id,
            organization_id=event.organization_id,
            path=known.path,
            kind=known.kind,
            content=known.content,
            content_ref=known.payload_ref,
            content_sha256=known.content_sha256,
            created_at=event.ingest_time,
            retired_at=None,
            last_seq=event.seq,
        )
    if isinstance(known, CatalogRetired) and (row := resource.versions.get(known.version)):
        return replace(row, retired_at=event.ingest_time, last_seq=event.seq)
    return None
