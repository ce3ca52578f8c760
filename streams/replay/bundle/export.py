"""Export of a bundle: the log is verified and folded first, then written as it is stored."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, replace
from typing import Protocol

from streams.events.codec import Codec, schema_id_of
from streams.events.errors import UndecodableEvent
from streams.events.model import Event, Root
from streams.events.upcast import UPCASTERS
from streams.payload.errors import PayloadMissing
from streams.payload.port import PayloadStore, Scope
from streams.projector.core import View, checksums
from streams.projector.rows import PROJECTION_VERSION
from streams.projector.snapshots import code_digest
from streams.replay.bundle.archive import END, entry, entry_header, padding
from streams.replay.bundle.errors import PayloadNotStored
from streams.replay.bundle.manifest import (
    DIGESTS,
    MANIFEST,
    BundledExecution,
    BundledPayloads,
    FoldCode,
    Manifest,
    manifest_bytes,
    payload_name,
    schema_name,
    sealed_json,
    segment_name,
)
from streams.replay.bundle.records import record_bytes
from streams.replay.errors import NoSuchExecution, TamperedLog
from streams.replay.payload_index import IndexedPayload, PayloadIndex
from streams.replay.port import LogHead, StoredEvent, StoredLog
from streams.replay.state import folded
from streams.replay.verified import VerifiedLog
from streams.schema.registry import SchemaRegistry

SEGMENT_BYTES = 1 << 20
_PAGE = 500
OnFolded = Callable[[int, int], None]
"""Called with the events of an execution verified so far, and all of them."""


class ChildExecutions(Protocol):
    """Finds the executions that one started."""

    async def children_of(self, execution_id: int) -> Sequence[int]:
        """Return the ids of its direct children, in order.

        Raises:
            Unavailable: the log cannot be read.
        """
        ...


@dataclass(frozen=True, slots=True)
class BundleSources:
    """Where export reads; without `payloads` the bundle has none."""

    log: StoredLog
    registry: SchemaRegistry
    codec: Codec
    payloads: PayloadStore | None = None
    children: ChildExecutions | None = None


class _SeenSchemas:
    """Pages of a log, which records the ids of the schemas that its events need."""

    def __init__(self, log: StoredLog) -> None:
        self._log = log
        self.ids: set[int] = set()

    async def page(
        self, root: Root, *, after_seq: int, through_seq: int, limit: int
    ) -> Sequence[StoredEvent]:
        found = await self._log.page(
            root, after_seq=after_seq, through_seq=through_seq, limit=limit
        )
        for one in found:
            with suppress(UndecodableEvent):  # reported when it is verified
                self.ids.add(schema_id_of(one.envelope))
        return found


class BundleExport:
    """One export: `prepare`, then `chunks`."""

    def __init__(
        self,
        sources: BundleSources,
        scope: Scope,
        index: PayloadIndex,
        on_progress: OnFolded | None = None,
    ) -> None:
        self._sources, self._scope, self._index = sources, scope, index
        self._on_progress = on_progress
        self._pages = _SeenSchemas(sources.log)

    async def prepare(self, execution_id: int) -> Manifest:
        """Verify and fold the execution and its children; return the bundle's manifest.

        Raises:
            NoSuchExecution: there is none in this scope.
            TamperedLog: an event is not what was appended.
            PayloadNotStored: an object is missing that no event expired.
            Unavailable: log or payload store cannot be reached; retrying is safe.
        """
        found = [await self._execution(one) for one in await self._family(execution_id)]
        return Manifest(
            scope=self._scope,
            executions=tuple(found),
            fold=FoldCode(
                projection_version=PROJECTION_VERSION,
                code_digest=code_digest(),
                upcaster_versions=UPCASTERS.versions(),
            ),
            schema_ids=tuple(sorted(self._pages.ids)),
            payloads=await self._payloads(),
        )

    async def chunks(self, manifest: Manifest) -> AsyncIterator[bytes]:
        """Yield the file.

        Raises:
            PayloadCorrupt: an object is not what was stored; discard the file.
            PayloadNotStored, Unavailable: as for `prepare`.
        """
        digests: dict[str, str] = {}

        def digested(name: str, data: bytes) -> bytes:
            digests[name] = hashlib.sha256(data).hexdigest()
            return entry(name, data)

        yield digested(MANIFEST, manifest_bytes(manifest))
        for schema_id in manifest.schema_ids:
            text = await self._sources.registry.schema(schema_id)
            yield digested(schema_name(schema_id), text.encode())
        for one in manifest.executions:
            async with aclosing(self._segments(one)) as segments:
                async for name, data in segments:
                    yield digested(name, data)
        if (store := self._sources.payloads) is not None:
            for payload in self._index.payloads():
                if self._index.is_marked(payload.sha256):
                    async with aclosing(self._payload(store, payload)) as pieces:
                        async for piece in pieces:
                            yield piece
        yield entry(DIGESTS, sealed_json(digests))
        yield END

    async def _family(self, execution_id: int) -> list[int]:
        """Return the execution, then its children and theirs."""
        found = [execution_id]
        if self._sources.children is not None:
            for one in found:
                found.extend(await self._sources.children.children_of(one))
        return found

    async def _execution(self, execution_id: int) -> BundledExecution:
        root = Root("execution", execution_id)
        head = await self._sources.log.head(root)
        if head is None or head.scope != self._scope:
            raise NoSuchExecution(execution_id, self._scope.tenant_id, self._scope.organization_id)
        view, last = await self._folded(root, head)
        if last.chain != head.chain.hex():
            raise TamperedLog(root, last.seq, last.position, "its chain is not that of the head")
        return BundledExecution(
            execution_id=execution_id,
            parent_execution_id=view.row.parent_execution_id,
            seq=last.seq,
            chain=last.chain,
            checksums=checksums(view),
            payload_references=view.payloads.length,
            payload_root=view.payloads.digest,
        )

    async def _folded(self, root: Root, head: LogHead) -> tuple[View, Event]:
        view, last = View(), None
        verified = VerifiedLog(self._pages, self._sources.codec)
        async for events in verified.pages(root, through_seq=head.seq):
            self._index.add(events)
            view, last = folded(view, events), events[-1]
            if self._on_progress is not None:
                self._on_progress(last.seq, head.seq)
        assert last is not None, "a root with a head has a first event"
        return view, last

    async def _payloads(self) -> BundledPayloads:
        """Mark the payloads that the store has."""
        found = BundledPayloads(included=False, count=0, byte_length=0, expired=0)
        store = self._sources.payloads
        if store is None:
            return found
        for one in self._index.payloads():
            if await store.exists(one.ref):
                self._index.mark(one.sha256)
                total = found.byte_length + one.byte_length
                found = replace(found, count=found.count + 1, byte_length=total)
            elif self._index.is_expired(one):
                found = replace(found, expired=found.expired + 1)
            else:
                raise PayloadNotStored(one.uri, one.event)
        return replace(found, included=True)

    async def _segments(self, one: BundledExecution) -> AsyncGenerator[tuple[str, bytes], None]:
        """Yield the entries of an execution's events, of about a megabyte each."""
        root, after, first, segment = Root("execution", one.execution_id), 0, 1, bytearray()
        while after < one.seq:
            page = await self._sources.log.page(
                root, after_seq=after, through_seq=one.seq, limit=_PAGE
            )
            if not page:
                raise TamperedLog(root, after + 1, None, "the event is missing")
            for event in page:
                segment += record_bytes(event)
                after = event.seq
                if len(segment) >= SEGMENT_BYTES:
                    yield segment_name(one.execution_id, first), bytes(segment)
                    first, segment = after + 1, bytearray()
        if segment:
            yield segment_name(one.execution_id, first), bytes(segment)

    async def _payload(
        self, store: PayloadStore, one: IndexedPayload
    ) -> AsyncGenerator[bytes, None]:
        yield entry_header(payload_name(one.sha256), one.byte_length)
        try:
            async for piece in store.fetch(one.ref):
                yield piece
        except PayloadMissing as error:
            raise PayloadNotStored(one.uri, one.event) from error
        yield padding(one.byte_length)
