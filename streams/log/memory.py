"""The log in memory, for unit tests and the simulator: same rules, no durability."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from streams.clock import Clock
from streams.events.canonical import from_millis, millis
from streams.events.catalogue import catalogue
from streams.events.codec import Codec, event_of
from streams.events.model import Assigned, Event, NewEvent, Root
from streams.events.seal import Sealed
from streams.events.sealer import Sealer
from streams.events.types import ExecutionResumed, ExecutionSuspended
from streams.ids import siblings_of
from streams.log.port import Appended, AppendOutcome, Frontier, Receipt
from streams.log.receipts import check_batch, refusal

_NO_CHAIN = bytes(32)


@dataclass(slots=True)
class _RootState:
    type: str
    scope: tuple[str, str]
    stored: list[tuple[Event, bytes]] = field(default_factory=list)
    by_key: dict[str, int] = field(default_factory=dict)
    claims: dict[str, int] = field(default_factory=dict)
    versions: dict[str, int] = field(default_factory=dict)
    chain: bytes = _NO_CHAIN
    terminal: bool = False


@dataclass(slots=True)
class _Pending:
    """Pending changes of the events of a batch checked so far."""

    versions: dict[str, int] = field(default_factory=dict)
    terminal: dict[int, bool] = field(default_factory=dict)
    roots: dict[int, _RootState] = field(default_factory=dict)


class MemoryEventStore:
    """Stores every root's events in a list."""

    def __init__(
        self,
        *,
        codec: Codec,
        next_id: Callable[[], int],
        producer: str,
        clock: Clock,
        mirror: Callable[[Event, bytes], None] | None = None,
    ) -> None:
        """`mirror` receives each event stored, with its envelope's bytes."""
        self._next_id, self._clock = next_id, clock
        self._seal = Sealer(producer=producer, codec=codec, catalogue=catalogue())
        self._mirror = mirror
        self._roots: dict[int, _RootState] = {}
        self._log: list[tuple[Event, Frontier]] = []
        self._xid = 0
        self._grown = asyncio.Event()

    async def append(self, batch: Sequence[NewEvent]) -> Receipt:
        """Append a batch atomically."""
        sealed = [self._seal(event, self._next_id()) for event in batch]
        check_batch(sealed)
        pending = _Pending()
        for one in sealed:
            holder = self._check(one, pending)
            if holder is not None:
                return Receipt((), claimed_by=holder)
        self._xid += 1
        receipt = Receipt(tuple(self._store(one) for one in sealed))
        self._grown.set()
        self._grown = asyncio.Event()
        return receipt

    def _check(self, one: Sealed, pending: _Pending) -> int | None:
        """Return the holder of the claim in `one`, if any; raise if a rule forbids the event."""
        record, kind = one.record, one.kind
        stream, root_id = record["stream_id"], record["root_id"]
        root = self._roots.get(root_id) or pending.roots.setdefault(
            root_id, _RootState(record["root_type"], _scope(one))
        )
        index = root.by_key.get(record["idempotency_key"])
        if index is not None:
            event, digest = root.stored[index]
            if digest != one.digest:
                raise refusal(one, "idempotency", str(event.event_id))
            return None
        if root.type != record["root_type"]:
            raise refusal(one, "root_type", root.type)
        if root.scope != _scope(one):
            raise refusal(one, "scope", None)
        if pending.terminal.get(root_id, root.terminal) and not kind.after_end:
            raise refusal(one, "terminal", None)
        version = root.versions.get(stream, 0) + pending.versions.get(stream, 0)
        if one.expected_version not in (None, version):
            raise refusal(one, "version", str(version))
        if one.claim is not None and one.claim in root.claims:
            return root.claims[one.claim]
        pending.versions[stream] = pending.versions.get(stream, 0) + 1
        if kind.ends or kind.reopens:
            pending.terminal[root_id] = kind.ends
        return None

    def _store(self, one: Sealed) -> Appended:
        record, kind = one.record, one.kind
        root = self._roots.setdefault(
            record["root_id"], _RootState(record["root_type"], _scope(one))
        )
        key = record["idempotency_key"]
        if key in root.by_key:
            return _appended(root.stored[root.by_key[key]][0], AppendOutcome.DUPLICATE)
        root.chain = hashlib.sha256(root.chain + bytes.fromhex(record["checksum"])).digest()
        version = root.versions.get(record["stream_id"], 0) + 1
        position = len(self._log) + 1
        assigned = Assigned(
            seq=len(root.stored) + 1,
            position=position,
            stream_version=version,
            ingest_time=self._ingest_time(root),
            chain=root.chain.hex(),
        )
        event = event_of(record, assigned)
        root.versions[record["stream_id"]] = version
        root.by_key[key] = len(root.stored)
        root.stored.append((event, one.digest))
        if one.claim is not None:
            root.claims[one.claim] = event.event_id
        if kind.ends or kind.reopens:
            root.terminal = kind.ends
        self._log.append((event, Frontier(self._xid, position)))
        if self._mirror is not None:
            self._mirror(event, one.envelope)
        return _appended(event, AppendOutcome.APPENDED)

    def _ingest_time(self, root: _RootState) -> datetime:
        now = from_millis(millis(self._clock.now()))
        return max(now, root.stored[-1][0].ingest_time) if root.stored else now

    async def open_roots(self, root_type: str) -> Mapping[int, int]:
        """Return the roots of this type that have not ended, with their last `seq`."""
        return {
            key: state.stored[-1][0].seq
            for key, state in sorted(self._roots.items())
            if state.type == root_type and not state.terminal and state.stored
        }

    async def suspended_executions(self, among: Collection[int] | None = None) -> Mapping[int, int]:
        """Return the suspended executions, of all or `among` some, and since which `seq`."""
        found: dict[int, int] = {}
        wanted = None if among is None else set(among)
        for key in await self.open_roots("execution"):
            if wanted is not None and key not in wanted:
                continue
            for event, _ in self._roots[key].stored:
                if event.type == ExecutionSuspended.TYPE:
                    found[key] = event.seq
                elif event.type == ExecutionResumed.TYPE:
                    found.pop(key, None)
        return found

    async def open_children(self, execution_id: int) -> Sequence[int]:
        """Return the executions that this one started, that are open and not detached."""
        lowest, highest = siblings_of(execution_id)
        return [
            key
            for key, state in sorted(self._roots.items())
            if lowest <= key <= highest
            and state.type == "execution"
            and not state.terminal
            and state.stored[0][0].parent_execution_id == execution_id
            and not state.stored[0][0].meta.get("detached")
        ]

    async def endings(self, execution_ids: Sequence[int]) -> Mapping[int, Event]:
        """Return the event that ended each of these."""
        endings = catalogue().endings
        found = {key: self._roots.get(key) for key in execution_ids}
        return {
            key: next(event for event, _ in reversed(state.stored) if event.type in endings)
            for key, state in found.items()
            if state is not None and state.terminal
        }

    async def read_root(
        self, root: Root, *, after_seq: int = 0, through_seq: int | None = None
    ) -> AsyncIterator[Event]:
        """Yield a root's events in `seq` order."""
        state = self._roots.get(root.id)
        if state is not None and state.type == root.type:
            for event, _ in state.stored[after_seq:through_seq]:
                yield event

    async def read_stream(
        self, root: Root, stream_id: str, *, after_version: int = 0
    ) -> AsyncIterator[Event]:
        """Yield a stream's events in version order."""
        async for event in self.read_root(root):
            if event.stream_id == stream_id and event.stream_version > after_version:
                yield event

    async def read_log(
        self, after: Frontier, *, limit: int = 1000
    ) -> tuple[Sequence[Event], Frontier]:
        """Return events after `after` across all roots, and the new frontier."""
        found = self._log[after.position : after.position + limit]
        return [event for event, _ in found], found[-1][1] if found else after

    async def follow(self, after: Frontier) -> AsyncIterator[tuple[Event, Frontier]]:
        """Yield events of all roots after `after`, and wait for more at the end."""
        while True:
            grown = self._grown
            for event, frontier in self._log[after.position :]:
                after = frontier
                yield event, frontier
            if after.position == len(self._log):
                await grown.wait()


def _scope(one: Sealed) -> tuple[str, str]:
    return one.record["tenant_id"], one.record["organization_id"]


def _appended(event: Event, outcome: AppendOutcome) -> Appended:
    return Appended(
        event_id=event.event_id,
        outcome=outcome,
        seq=event.seq,
        position=event.position,
        stream_version=event.stream_version,
        ingest_time=event.ingest_time,
        chain=event.chain,
    )
