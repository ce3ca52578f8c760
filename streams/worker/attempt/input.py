"""What a worker's templates can see: the document of a frame or command, made into a scope."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from streams.events.model import PayloadRef
from streams.kafka.work.item import BadWorkItem, WorkItem
from streams.payload.port import PayloadStore, Scope
from streams.playbook.views import result_view
from streams.results.copies.port import Copies
from streams.results.resolve import filled, keys_from, missing, tasks_sought, with_tasks
from streams.results.spilled import merged, names_read, sought
from streams.worker.attempt.reading import handed
from streams.worker.errors import VALUE_BYTES

CACHE_BYTES = 128 * 1024 * 1024


class Documents:
    """Reads payloads as values, and keeps the last ones: the frames of a stage share theirs.

    What it returns is shared; nobody may change it.
    """

    def __init__(
        self,
        payloads: PayloadStore,
        *,
        copies: Copies | None = None,
        cache_bytes: int = CACHE_BYTES,
        value_bytes: int = VALUE_BYTES,
    ) -> None:
        self._payloads, self._room, self._value_bytes = payloads, cache_bytes, value_bytes
        self._copies = copies or Copies()
        self._kept: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    async def read(
        self, ref: PayloadRef, store: str = "object", places: frozenset[int] | None = None
    ) -> Any:
        """Return the value behind `ref`, from its tier's copy where there is one.

        Of a loop's rows only those at `places` need be there.

        Raises:
            TooLargeAValue: it has more bytes than a task is handed.
            PayloadMissing: there is no such object.
            PayloadUnavailable: the store is down.
        """
        name = f"{ref.media_type} {ref.uri}"
        if places is not None and name not in self._kept:
            name += f" {sorted(places)}"
        if (kept := self._kept.get(name)) is not None:
            self._kept.move_to_end(name)
            return kept[0]
        counted = _Counted(self._payloads, self._copies, store)
        value = await handed(counted, ref, self._value_bytes, places)
        self._keep(name, value, counted.byte_count)
        return value

    def _keep(self, name: str, value: Any, size: int) -> None:
        if size > self._room or name in self._kept:
            return
        self._kept[name] = (value, size)
        self._bytes += size
        while self._bytes > self._room:
            _, (_, freed) = self._kept.popitem(last=False)
            self._bytes -= freed

    async def document(self, item: WorkItem) -> Mapping[str, Any]:
        """Return the document of a work item, wherever it is.

        Raises:
            BadWorkItem: it has none.
        """
        if item.document is not None:
            return item.document
        if item.document_ref is None:
            return {}
        document = await self.read(item.document_ref)
        if not isinstance(document, dict):
            raise BadWorkItem(f"{item.document_ref.uri}: is no document of a work item")
        return document

    async def scope(
        self, item: WorkItem, document: Mapping[str, Any], ways: Collection[Sequence[str]]
    ) -> dict[str, Any]:
        """Return the names that all rows of the item share.

        Results of earlier steps that are elsewhere are read here, where a template of the
        step goes into their data (`ways`), so that they look as if they had always been at
        hand. Of the others nothing is fetched.
        """
        given = document.get("input") or {}
        owner = Scope(item.tenant_id, item.organization_id)
        names = names_read("args", ways)
        names = None if names is None else names | {way[0] for way in ways}
        moved = sought(given.get("args_elsewhere") or (), names, owner)
        args = {**(given.get("args") or {}), **await self._found(moved)}
        scope: dict[str, Any] = dict(args)
        read: dict[tuple[PayloadRef, frozenset[int] | None], Any] = {}
        for name, told in (given.get("steps") or {}).items():
            if isinstance(told, dict):
                found: dict[str | None, Any] = {}
                keys = keys_from(name, ways)
                tasks = await self._found(tasks_sought(told, keys, owner))
                envelope = with_tasks(told, tasks)
                for gap in missing(envelope, keys, owner):
                    if (what := (gap.ref, gap.places)) not in read:
                        read[what] = await self.read(gap.ref, gap.store, gap.places)
                    found[gap.task] = read[what]
                scope[name] = result_view(filled(envelope, found))
        scope["workload"] = given.get("workload") or {}
        later = item.ctx if item.ctx_ref is None else await self.read(item.ctx_ref)
        ctx, groups = merged(
            given.get("ctx") or {},
            given.get("ctx_elsewhere") or (),
            later or {},
            item.ctx_elsewhere or (),
        )
        scope["ctx"] = ctx | await self._found(sought(groups, names_read("ctx", ways), owner))
        scope["args"] = args
        scope["vars"] = {}
        scope["iter"] = {}
        scope["execution_id"] = str(item.execution_id)
        return scope

    async def _found(self, groups: Iterable[tuple[list[str], PayloadRef]]) -> dict[str, Any]:
        """Return values that no event could carry."""
        found: dict[str, Any] = {}
        for names, ref in groups:
            values = await self.read(ref)
            found |= {name: values[name] for name in names}
        return found


class _Counted:
    """A source that looks into a tier first, and counts the bytes it gave."""

    def __init__(self, payloads: PayloadStore, copies: Copies, store: str) -> None:
        self._payloads, self._copies, self._store = payloads, copies, store
        self.byte_count = 0

    async def get(self, ref: PayloadRef) -> bytes:
        data = await self._copies.get(self._store, ref)
        if data is None:
            data = await self._payloads.get(ref)
        self.byte_count += len(data)
        return data
