"""From a catalog entry's events to the rows of its versions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from streams.errors import Inconsistent
from streams.events.event_fields import body, number, text
from streams.events.model import Event
from streams.projector.rows import CatalogRow, Row


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """A catalog entry as seen up to `seq`: its versions."""

    seq: int = 0
    versions: Mapping[int, CatalogRow] = field(default_factory=dict)


def absorb_resource(resource: Resource, event: Event) -> tuple[Resource, tuple[Row, ...]]:
    """Return the entry after `event` and the row it changed; one seen before changes nothing."""
    if event.seq <= resource.seq:
        return resource, ()
    if event.seq != resource.seq + 1:
        why = f"event {event.seq} comes after {resource.seq}; read what is between from the log"
        raise Inconsistent(f"{event.root}: {why}")
    row = _changed(resource, event)
    if row is None:
        return replace(resource, seq=event.seq), ()
    versions = {**resource.versions, row.version: row}
    return Resource(seq=event.seq, versions=versions), (row,)


def _changed(resource: Resource, event: Event) -> CatalogRow | None:
    version = number(event, "version")
    if event.type == "catalog.registered":
        content = body(event.context).get("content")
        return CatalogRow(
            catalog_id=event.root.id,
            version=version,
            tenant_id=event.tenant_id,
            organization_id=event.organization_id,
            path=text(event, "path") or "",
            kind=text(event, "kind") or "",
            content=content if isinstance(content, str) else None,
            content_ref=event.payload_ref,
            content_sha256=text(event, "content_sha256") or "",
            created_at=event.ingest_time,
            retired_at=None,
            last_seq=event.seq,
        )
    known = resource.versions.get(version)
    if event.type == "catalog.retired" and known is not None:
        return replace(known, retired_at=event.ingest_time, last_seq=event.seq)
    return None
