"""Scope of a worker's templates, from the document of a frame or command."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TypeVar

from cachetools import LRUCache

from streams.events.model import Json, PayloadRef
from streams.events.reading import fields_of
from streams.kafka.work.item import BadWorkItem, WorkItem
from streams.payload.port import PayloadStore, Scope
from streams.playbook.plain_views import flat_scope
from streams.playbook.spelling import Spelling
from streams.results.copies.port import Copies
from streams.results.envelope import Envelope
from streams.results.resolve import (
    NeededPayload,
    Resolving,
    keys_from,
    names_read,
    resolve,
    resolve_groups,
    run_async,
)
from streams.results.spill import groups_of, merged
from streams.worker.attempt.reading import handed
from streams.worker.errors import VALUE_BYTES

CACHE_BYTES = 128 * 1024 * 1024
T = TypeVar("T")
_Ways = Collection[Sequence[str]]
_ReadPayloads = dict[tuple[PayloadRef, frozenset[int] | None], Json]


class Documents:
    """Reads payloads as values, with a cache: the frames of a stage share theirs.

    Returned values are shared and must not be modified.
    """

    def __init__(
        self,
        payloads: PayloadStore,
        *,
        copies: Copies | None = None,
        cache_bytes: int = CACHE_BYTES,
        value_bytes: int = VALUE_BYTES,
    ) -> None:
        self._payloads, self._value_bytes = payloads, value_bytes
        self._copies = copies or Copies()
        self._cached: LRUCache[str, tuple[Json, int]] = LRUCache(
            cache_bytes, getsizeof=lambda entry: entry[1]
        )

    async def read(
        self, ref: PayloadRef, store: str = "object", places: frozenset[int] | None = None
    ) -> Json:
        """Return the value behind `ref`, from its tier's copy if there is one.

        Of a loop's rows only those at `places` are needed.

        Raises:
            ValueTooLarge: it has more bytes than a task may be passed.
            PayloadMissing: the object does not exist.
            PayloadUnavailable: the store is down.
        """
        name = f"{ref.media_type} {ref.uri}"
        if places is not None and name not in self._cached:
            name += f" {sorted(places)}"
        if (cached := self._cached.get(name)) is not None:
            return cached[0]
        counted = _Counted(self._payloads, self._copies, store)
        value = await handed(counted, ref, self._value_bytes, places)
        self._cache(name, value, counted.byte_count)
        return value

    def _cache(self, name: str, value: Json, size: int) -> None:
        if size <= self._cached.maxsize and name not in self._cached:
            self._cached[name] = (value, size)

    async def document(self, item: WorkItem) -> Mapping[str, Json]:
        """Return the document of a work item, inline or from its payload.

        Raises:
            BadWorkItem: it has none.
        """
        if item.document is not None:
            return item.document
        if item.document_ref is None:
            return {}
        document = await self.read(item.document_ref)
        if not isinstance(document, dict):
            raise BadWorkItem(f"{item.document_ref.uri} is not the document of a work item")
        return document

    async def scope(
        self,
        item: WorkItem,
        document: Mapping[str, Json],
        ways: _Ways,
        spelling: Spelling = Spelling.SPEC,
    ) -> dict[str, object]:
        """Return the scope that all rows of the item share.

        Payloads of earlier results are read only if a template of the step accesses their data
        (`ways`).
        """
        given = fields_of(document.get("input"))
        owner = Scope(item.tenant_id, item.organization_id)
        steps = await self._steps(fields_of(given.get("steps")), ways, owner, spelling)
        workload = fields_of(given.get("workload"))
        later = item.ctx if item.ctx_ref is None else await self.read(item.ctx_ref)
        ctx, groups = merged(
            fields_of(given.get("ctx")),
            groups_of(given.get("ctx_elsewhere")),
            fields_of(later),
            groups_of(item.ctx_elsewhere),
        )
        own_id, is_flat = str(item.execution_id), spelling is Spelling.NOETL
        spilled = resolve_groups(groups, None if is_flat else names_read("ctx", ways), owner)
        ctx |= await self._resolved(spilled)
        if is_flat:
            return flat_scope(workload=workload, ctx=ctx, steps=steps, execution_id=own_id)
        args = await self._args(given, ways, owner)
        own = {"workload": workload, "ctx": ctx, "args": args, "iter": {}}
        own["vars"] = dict(item.vars or {})
        return {**args, **steps, **own, "execution_id": own_id}

    async def _args(self, given: Mapping[str, Json], ways: _Ways, owner: Scope) -> dict[str, Json]:
        """Return the arguments of the arc; of spilled ones those that templates read."""
        names = names_read("args", ways)
        names = None if names is None else names | {way[0] for way in ways}
        spilled = resolve_groups(groups_of(given.get("args_elsewhere")), names, owner)
        return {**fields_of(given.get("args")), **await self._resolved(spilled)}

    async def _steps(
        self, given: Mapping[str, Json], ways: _Ways, owner: Scope, spelling: Spelling
    ) -> dict[str, object]:
        """Return the views of earlier steps."""
        read: _ReadPayloads = {}
        views: dict[str, object] = {}
        for name, fields in given.items():
            if isinstance(fields, dict):
                whole = resolve(Envelope(fields), keys_from(name, ways), owner, spelling)
                views[name] = (await self._resolved(whole, read)).view(spelling)
        return views

    async def _resolved(self, resolving: Resolving[T], known: _ReadPayloads | None = None) -> T:
        """Return the result of `resolving`; payloads in `known` are not read again."""
        found = {} if known is None else known

        async def read(need: NeededPayload) -> Json:
            what = (need.ref, need.places)
            if what not in found:
                found[what] = await self.read(need.ref, need.store, need.places)
            return found[what]

        return await run_async(resolving, read)


class _Counted:
    """A source that tries a tier first, and counts the bytes read."""

    def __init__(self, payloads: PayloadStore, copies: Copies, store: str) -> None:
        self._payloads, self._copies, self._store = payloads, copies, store
        self.byte_count = 0

    async def get(self, ref: PayloadRef) -> bytes:
        data = await self._copies.get(self._store, ref)
        if data is None:
            data = await self._payloads.get(ref)
        self.byte_count += len(data)
        return data
