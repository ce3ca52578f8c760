"""The catalog: registers, looks up and compiles playbooks in the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from streams.catalog.core import KIND, chosen, digest, entries_of, inline_content, newest_of_each
from streams.catalog.errors import TooLong, UnknownPath, UnknownVersion
from streams.catalog.port import CatalogEntry, CatalogEvents, Registered
from streams.clock import Clock
from streams.errors import Inconsistent
from streams.events.model import Event, NewEvent, PayloadRef, Root
from streams.events.types import CatalogRegistered
from streams.log.port import EventStore
from streams.payload.port import PayloadStore, Scope
from streams.playbook.model import Playbook
from streams.playbook.parse import parse

MEDIA_TYPE = "application/yaml"
INLINE_BYTES = 32 * 1024
"""Longer content goes to the payload store."""


class Catalog:
    """Versions of playbooks, each stored as an event of its path's root."""

    def __init__(
        self,
        store: EventStore,
        events: CatalogEvents,
        *,
        next_id: Callable[[], int],
        clock: Clock,
        payloads: PayloadStore | None = None,
    ) -> None:
        self._store, self._events, self._payloads = store, events, payloads
        self._next_id, self._clock = next_id, clock
        self._compiled: dict[tuple[int, int], Playbook] = {}

    async def register(
        self, scope: Scope, content: str, path: str | None = None, *, by: str | None = None
    ) -> Registered:
        """Register a playbook, by default under the path in its content.

        Content equal to the newest version creates no new one.

        Raises:
            BadPlaybook: it is invalid; all errors are listed.
            TooLong: it does not fit in an event, and there is no payload store.
            Unavailable: the log or the payload store cannot be reached.
        """
        playbook = parse(content, path or "playbook")
        path = path or playbook.path
        async with self._events.lock(scope, path):
            known = entries_of(await self._events.of_path(scope, path))
            if known and known[-1].content_sha256 == digest(content) and not known[-1].is_retired:
                return Registered(known[-1].catalog_id, known[-1].version, path)
            catalog_id = known[-1].catalog_id if known else self._next_id()
            version = known[-1].version + 1 if known else 1
            event = await self._registration(scope, catalog_id, version, path, content, by)
            await self._store.append([event])
        return Registered(catalog_id, version, path, is_new=True)

    async def _registration(
        self, scope: Scope, catalog_id: int, version: int, path: str, content: str, by: str | None
    ) -> NewEvent:
        reference = await self._externalized(scope, path, content)
        event = CatalogRegistered(
            path=path,
            version=version,
            kind=KIND,
            content_sha256=digest(content),
            by=by or None,
            content=None if reference else content,
            payload_ref=reference,
        )
        return NewEvent(
            root=Root("catalog", catalog_id),
            tenant_id=scope.tenant_id,
            organization_id=scope.organization_id,
            idempotency_key=f"catalog.registered/{version}",
            event_time=self._clock.now(),
            **event.columns(),
        )

    async def _externalized(self, scope: Scope, path: str, content: str) -> PayloadRef | None:
        data = content.encode()
        if len(data) <= INLINE_BYTES:
            return None
        if self._payloads is None:
            raise TooLong(path, len(data), INLINE_BYTES)
        return await self._payloads.put(scope, data, media_type=MEDIA_TYPE)

    async def resolve(
        self, tenant_id: str, organization_id: str, path: str, version: int | None = None
    ) -> tuple[int, int]:
        """Return the catalog id and version of a path; without a version, the newest.

        Raises:
            UnknownPath, UnknownVersion: no such version, or it is retired.
            Unavailable: the log cannot be reached.
        """
        entry = await self.find(Scope(tenant_id, organization_id), path, version)
        return entry.catalog_id, entry.version

    async def find(self, scope: Scope, path: str, version: int | None = None) -> CatalogEntry:
        """Return the version of a path; without a number, the newest.

        Raises:
            UnknownPath, UnknownVersion: no such version, or it is retired.
            Unavailable: the log cannot be reached.
        """
        known = entries_of(await self._events.of_path(scope, path))
        if not known:
            paths = {entry.path for entry in await self.list(scope)}
            raise UnknownPath(path, sorted(paths))
        return chosen(path, known, version)

    async def list(self, scope: Scope) -> Sequence[CatalogEntry]:
        """Return the newest version of every path, by path."""
        return newest_of_each(await self._events.of_scope(scope))

    async def get(self, catalog_id: int, version: int) -> Playbook:
        """Return the compiled playbook, cached without limit.

        Raises:
            UnknownVersion: there is none.
            BadPlaybook: the registered content no longer parses.
            Unavailable: the log or the payload store cannot be reached.
        """
        found = self._compiled.get((catalog_id, version))
        if found is None:
            name = f"catalog {catalog_id} version {version}"
            # A client library missing here may be installed on the worker.
            found = parse(await self.content(catalog_id, version), name, clients=False)
            self._compiled[catalog_id, version] = found
        return found

    async def content(self, catalog_id: int, version: int) -> str:
        """Return a version's content as registered.

        Raises:
            UnknownVersion: there is none.
            Unavailable: the log or the payload store cannot be reached.
        """
        versions: list[int] = []
        async for event in self._store.read_root(Root("catalog", catalog_id)):
            if event.type == CatalogRegistered.TYPE:
                versions.append(int(event.meta["version"]))
                if versions[-1] == version:
                    return await self._text(event)
        raise UnknownVersion(f"catalog {catalog_id}", version, versions)

    async def _text(self, event: Event) -> str:
        if (content := inline_content(event.context)) is not None:
            return content
        if event.payload_ref is None or self._payloads is None:
            raise Inconsistent(
                f"{event.root}: version {event.meta['version']} has its content outside the log, "
                "and no payload store is open; open the one it was registered with"
            )
        return (await self._payloads.get(event.payload_ref)).decode()
