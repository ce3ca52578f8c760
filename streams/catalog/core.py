"""Rules of the catalog: versions, retirement, selection. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from hashlib import sha256

from streams.catalog.errors import UnknownVersion
from streams.catalog.port import CatalogEntry
from streams.events.model import Event
from streams.events.types import CatalogRegistered, CatalogRetired, typed

KIND = "playbook"


def entries_of(events: Iterable[Event]) -> list[CatalogEntry]:
    """Return the versions that a path's events register, oldest first."""
    found: dict[tuple[int, int], CatalogEntry] = {}
    for event in events:
        known = typed(event)
        if isinstance(known, CatalogRegistered):
            found[event.root.id, known.version] = CatalogEntry(
                catalog_id=event.root.id,
                version=known.version,
                path=known.path,
                kind=known.kind,
                content_sha256=known.content_sha256,
                registered_at=event.ingest_time,
            )
        elif isinstance(known, CatalogRetired):
            key = (event.root.id, known.version)
            if key in found:
                found[key] = replace(found[key], is_retired=True)
    return sorted(found.values(), key=lambda entry: entry.version)


def chosen(path: str, entries: Sequence[CatalogEntry], version: int | None) -> CatalogEntry:
    """Return the version to start; None: the newest that is not retired.

    Raises:
        UnknownVersion: there is none.
    """
    active = [entry for entry in entries if not entry.is_retired]
    matching = [entry for entry in active if version in (None, entry.version)]
    if not matching:
        raise UnknownVersion(path, version, [entry.version for entry in active])
    return matching[-1]


def newest_of_each(events: Iterable[Event]) -> list[CatalogEntry]:
    """Return the newest version of every path, by path."""
    by_path: dict[str, list[Event]] = {}
    for event in events:
        by_path.setdefault(str(event.meta["path"]), []).append(event)
    return [entries_of(by_path[path])[-1] for path in sorted(by_path)]


def digest(content: str) -> str:
    """Return the SHA-256 of a content, in hex."""
    return sha256(content.encode()).hexdigest()


def inline_content(context: object) -> str | None:
    """Return an event's inline content, if any."""
    content = context.get("content") if isinstance(context, Mapping) else None
    return content if isinstance(content, str) else None
