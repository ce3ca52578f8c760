"""The catalog: registers, looks up and compiles playbooks and subscriptions in the log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from cachetools import LRUCache

from streams.catalog.core import (
    PLAYBOOK,
    chosen,
    digest,
    entries_of,
    newest_of_each,
    of_kind,
)
from streams.catalog.errors import OtherKind, TakenWebhook, TooLong, UnknownPath
from streams.catalog.port import CatalogEntry, CatalogEvents, Registered
from streams.catalog.texts import RegisteredTexts
from streams.clock import Clock
from streams.events.model import NewEvent, PayloadRef, Root
from streams.events.types import CatalogRegistered
from streams.log.port import EventStore
from streams.payload.port import PayloadStore, Scope
from streams.playbook.model import Playbook
from streams.playbook.parse import parse
from streams.subscription.model import KIND as SUBSCRIPTION
from streams.subscription.parse import check_subscription, is_subscription, parse_subscription

MEDIA_TYPE = "application/yaml"
INLINE_BYTES = 32 * 1024
"""Longer content goes to the payload store."""
_MOST_COMPILED = 1024


class Catalog:
    """Versions of playbooks and subscriptions, each an event of its path's root."""

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
        self._texts = RegisteredTexts(store, payloads)
        self._next_id, self._clock = next_id, clock
        self._compiled: LRUCache[tuple[int, int], Playbook] = LRUCache(_MOST_COMPILED)

    async def register(
        self, scope: Scope, content: str, path: str | None = None, *, by: str | None = None
    ) -> Registered:
        """Register a playbook or subscription, by default under the path in its content.

        Content equal to the newest version creates no new one.

        Raises:
            BadPlaybook, BadSubscription: it is invalid; all errors are listed.
            OtherKind: the path belongs to an entry of another kind.
            TakenWebhook: another subscription has the gateway_path.
            TooLong: it does not fit in an event, and there is no payload store.
            Unavailable: the log or the payload store cannot be reached.
        """
        checked = _checked(content, path)
        kind, path = checked.kind, checked.path
        async with self._events.lock(scope, path):
            events = await self._events.of_path(scope, path)
            known = entries_of(events)
            if known and known[-1].kind != kind:
                raise OtherKind(path, known[-1].kind, kind)
            if known and known[-1].content_sha256 == digest(content) and not known[-1].is_retired:
                return Registered(known[-1].catalog_id, known[-1].version, path)
            await self._check_webhook(scope, checked)
            catalog_id = known[-1].catalog_id if known else self._next_id()
            version = known[-1].version + 1 if known else 1
            made = CatalogRegistered(
                path=path,
                version=version,
                kind=kind,
                content_sha256=digest(content),
                by=by or None,
                credential=checked.credential,
            )
            event = await self._registration(scope, catalog_id, made, content)
            cause_id = events[-1].event_id if known else None
            await self._store.append([replace(event, causation_id=cause_id)])
        return Registered(catalog_id, version, path, is_new=True)

    async def _check_webhook(self, scope: Scope, checked: _Checked) -> None:
        """Compare with the other webhooks; two registered at the same moment are not compared."""
        if checked.gateway_path is None:
            return
        for entry in await self.list(scope, kind=SUBSCRIPTION):
            if entry.path == checked.path or entry.is_retired:
                continue
            other, _ = check_subscription(await self.content(entry.catalog_id, entry.version))
            if other and other.ingress and other.ingress.path == checked.gateway_path:
                raise TakenWebhook(checked.path, checked.gateway_path, entry.path)

    async def _registration(
        self, scope: Scope, catalog_id: int, made: CatalogRegistered, content: str
    ) -> NewEvent:
        reference = await self._externalized(scope, made.path, content)
        event = replace(made, content=None if reference else content, payload_ref=reference)
        return NewEvent(
            root=Root("catalog", catalog_id),
            tenant_id=scope.tenant_id,
            organization_id=scope.organization_id,
            idempotency_key=f"catalog.registered/{event.version}",
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

    async def find(
        self, scope: Scope, path: str, version: int | None = None, *, kind: str | None = PLAYBOOK
    ) -> CatalogEntry:
        """Return the version of a path; without a number, the newest. `kind` None: any kind.

        Raises:
            UnknownPath, UnknownVersion: no such version, or it is retired.
            Unavailable: the log cannot be reached.
        """
        known = of_kind(entries_of(await self._events.of_path(scope, path)), kind)
        if not known:
            paths = {entry.path for entry in await self.list(scope, kind=kind)}
            raise UnknownPath(path, sorted(paths), kind)
        return chosen(path, known, version)

    async def list(self, scope: Scope, *, kind: str | None = None) -> Sequence[CatalogEntry]:
        """Return the newest version of every path, by path; `kind` None: of any kind."""
        return of_kind(newest_of_each(await self._events.of_scope(scope)), kind)

    async def get(self, catalog_id: int, version: int) -> Playbook:
        """Return the compiled playbook; those used last are cached.

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
        return await self._texts.content(catalog_id, version)


@dataclass(frozen=True, slots=True)
class _Checked:
    kind: str
    path: str
    credential: str | None = None
    gateway_path: str | None = None


def _checked(content: str, path: str | None) -> _Checked:
    """Check a document; return its kind, the given path or its own, and its credential."""
    if is_subscription(content):
        subscription = parse_subscription(content, path or "subscription")
        ingress = subscription.ingress
        gateway_path = None if ingress is None else ingress.path
        path = path or subscription.path
        return _Checked(SUBSCRIPTION, path, subscription.secret, gateway_path)
    playbook = parse(content, path or "playbook")
    return _Checked(PLAYBOOK, path or playbook.path)
