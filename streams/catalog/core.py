"""Rules of the catalog: versions, retirement, selection. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from hashlib import sha256

from streams.catalog.errors import UnknownVersion
from streams.catalog.port import CatalogEntry
from streams.events.model import Event
from streams.events.types import (
    CatalogRegistered,
    CatalogRetired,
    SubscriptionPaused,
    SubscriptionReplayed,
    SubscriptionResumed,
    typed,
)

PLAYBOOK = "playbook"
"""The kind of most entries; `subscription` is the other one."""


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


def path_of(event: Event) -> str | None:
    """Return the path that a catalog event is about; None for an event of another kind."""
    match typed(event):
        case CatalogRegistered(path=path) | CatalogRetired(path=path):
            return path
        case SubscriptionPaused(path=path) | SubscriptionResumed(path=path):
            return path
        case SubscriptionReplayed(path=path):
            return path
    return None


def newest_of_each(events: Iterable[Event]) -> list[CatalogEntry]:
    """Return the newest version of every path, by path."""
    by_path: dict[str, list[Event]] = {}
    for event in events:
        if (path := path_of(event)) is not None:
            by_path.setdefault(path, []).append(event)
    found = (entries_of(by_path[path]) for path in sorted(by_path))
    return [entries[-1] for entries in found if entries]


def of_kind(entries: Iterable[CatalogEntry], kind: str | None) -> list[CatalogEntry]:
    """Return the entries of a kind; None: all."""
    return [entry for entry in entries if kind in (None, entry.kind)]


def digest(content: str) -> str:
    """Return the SHA-256 of a content, in hex."""
    return sha256(content.encode()).hexdigest()
