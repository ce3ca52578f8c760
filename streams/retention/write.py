"""Writing of archives: verified events into segments, and a manifest that lists them."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace

import orjson

from streams.events.codec import Codec
from streams.events.locator import Locator
from streams.events.model import PayloadRef, Root
from streams.payload.content import name, reference_json
from streams.payload.port import JSON, PayloadStore, Scope
from streams.replay.bundle.records import record_bytes
from streams.replay.errors import TamperedLog
from streams.replay.port import StoredEvent, StoredPages
from streams.replay.verified import VerifiedLog
from streams.retention.errors import NotArchivable
from streams.retention.port import (
    SEGMENT_TYPE,
    ArchivedRoot,
    ExecutionFacts,
    Holdings,
    PayloadNames,
    Piece,
    WrittenArchive,
)

SEGMENT_BYTES = 8 << 20
MANIFEST_VERSION = 1
_ASK_AT_ONCE = 32
_HOLDINGS_AT_ONCE = 500
_NOTHING = PayloadNames(frozenset(), frozenset())
OnWritten = Callable[[int], None]
"""Called with the number of executions written so far."""


class _SeenPages:
    """Pages of a log, which are also queued as stored until they are verified."""

    def __init__(self, log: StoredPages) -> None:
        self._log = log
        self.pages: deque[Sequence[StoredEvent]] = deque()

    async def page(
        self, root: Root, *, after_seq: int, through_seq: int, limit: int
    ) -> Sequence[StoredEvent]:
        found = await self._log.page(
            root, after_seq=after_seq, through_seq=through_seq, limit=limit
        )
        self.pages.append(found)
        return found


class _Segments:
    """Cuts records into segments; a piece gets its segment's name once that is stored."""

    def __init__(self, scope: Scope, store: PayloadStore, segment_bytes: int) -> None:
        self._scope, self._store, self._limit = scope, store, segment_bytes
        self._buffer = bytearray()
        self._pending: list[tuple[int, Piece]] = []
        self.stored: list[PayloadRef] = []
        self.pieces: dict[int, list[Piece]] = {}

    async def add(self, execution_id: int, one: StoredEvent) -> None:
        """Add an event; those of one execution come in order."""
        record = record_bytes(one)
        last = self._pending[-1] if self._pending else None
        if last is not None and last[0] == execution_id:
            piece = last[1]
            grown = piece._replace(byte_length=piece.byte_length + len(record))
            self._pending[-1] = (execution_id, grown)
        else:
            piece = Piece("", 0, len(self._buffer), len(record), one.seq)
            self._pending.append((execution_id, piece))
        self._buffer += record
        if len(self._buffer) >= self._limit:
            await self.flush()

    async def flush(self) -> None:
        """Store the segment so far."""
        if not self._buffer:
            return
        ref = await self._store.put(self._scope, bytes(self._buffer), media_type=SEGMENT_TYPE)
        self.stored.append(ref)
        for execution_id, piece in self._pending:
            named = piece._replace(segment=ref.sha256, segment_bytes=ref.byte_length)
            self.pieces.setdefault(execution_id, []).append(named)
        self._buffer, self._pending = bytearray(), []


class ArchiveWriter:
    """Writes archives; the same executions give the same objects under the same names."""

    def __init__(
        self,
        log: StoredPages,
        codec: Codec,
        store: PayloadStore,
        holdings: Holdings,
        *,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self._log, self._codec, self._store = log, codec, store
        self._holdings, self._segment_bytes = holdings, segment_bytes

    async def write(
        self, partition: str, scope: Scope, leaving: Sequence[ExecutionFacts], report: OnWritten
    ) -> WrittenArchive:
        """Verify the executions of one organization and store them.

        Raises:
            TamperedLog: an event is not what was appended.
            NotArchivable: a payload that an event refers to is not in the store.
            Unavailable: log or payload store cannot be reached; running again is safe.
        """
        segments = _Segments(scope, self._store, self._segment_bytes)
        roots: list[ArchivedRoot] = []
        for begin in range(0, len(leaving), _HOLDINGS_AT_ONCE):
            some = leaving[begin : begin + _HOLDINGS_AT_ONCE]
            held = await self._holdings.of([one.execution_id for one in some])
            for one in some:
                names = held.get(one.execution_id, _NOTHING)
                await self._check_payloads(one, names.sure)
                await self._events(one, segments)
                roots.append(_root(one, names))
                report(len(roots))
        await segments.flush()
        placed = tuple(
            replace(one, pieces=tuple(segments.pieces[one.execution_id])) for one in roots
        )
        manifest = await self._store.put(
            scope, _manifest(partition, scope, placed, segments.stored), media_type=JSON
        )
        return WrittenArchive(
            scope=scope, roots=placed, segments=tuple(segments.stored), manifest=manifest
        )

    async def _events(self, one: ExecutionFacts, segments: _Segments) -> None:
        root, seen = Root("execution", one.execution_id), _SeenPages(self._log)
        last = None
        async for _ in VerifiedLog(seen, self._codec).pages(root, through_seq=one.seq):
            for last in seen.pages.popleft():
                await segments.add(one.execution_id, last)
        assert last is not None, "an execution has a first event"
        if last.chain != one.chain:
            raise TamperedLog(root, last.seq, last.position, "its chain is not that of the head")

    async def _check_payloads(self, one: ExecutionFacts, digests: Collection[str]) -> None:
        refs = [
            name(one.scope, digest, 0, media_type="application/octet-stream")
            for digest in sorted(digests)
        ]
        for begin in range(0, len(refs), _ASK_AT_ONCE):
            some = refs[begin : begin + _ASK_AT_ONCE]
            for ref, exists in zip(
                some, await asyncio.gather(*map(self._store.exists, some)), strict=True
            ):
                if not exists:
                    raise NotArchivable(
                        f"execution {one.execution_id}: its payload {ref.uri} is not in the "
                        "store; restore it from a backup of the bucket, or expire it with "
                        f"`streams payloads expire --execution {one.execution_id}`"
                    )


def _root(one: ExecutionFacts, names: PayloadNames) -> ArchivedRoot:
    tenant, organization = one.scope.tenant_id, one.scope.organization_id
    texts = [str(Locator.payload(tenant, organization, digest)) for digest in sorted(names.sure)]
    if others := names.digests - names.sure:
        texts.append(_digests(others))
    return ArchivedRoot(
        execution_id=one.execution_id,
        scope=one.scope,
        parent_id=one.parent_id,
        seq=one.seq,
        chain=one.chain,
        pieces=(),
        payloads="\n".join(texts),
        expired=_digests(names.expired),
    )


def _digests(found: Collection[str]) -> str:
    """Return digests as a text in which the collector finds them."""
    return " ".join(("sha256", *sorted(found))) if found else ""


def _manifest(
    partition: str, scope: Scope, roots: Sequence[ArchivedRoot], segments: Sequence[PayloadRef]
) -> bytes:
    """Return what is enough to find every event again without a database."""
    document = {
        "version": MANIFEST_VERSION,
        "partition": partition,
        "tenant_id": scope.tenant_id,
        "organization_id": scope.organization_id,
        "segments": [reference_json(one) for one in segments],
        "executions": [
            {
                "execution_id": str(one.execution_id),
                "parent_execution_id": None if one.parent_id is None else str(one.parent_id),
                "seq": one.seq,
                "chain": one.chain.hex(),
                "pieces": [piece._asdict() for piece in one.pieces],
                "payloads": one.payloads.split("\n") if one.payloads else [],
            }
            for one in roots
        ],
    }
    return orjson.dumps(document, option=orjson.OPT_SORT_KEYS)
