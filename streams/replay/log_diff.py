"""One execution in two logs, or a log against its own content: the first event that differs."""

from __future__ import annotations

from dataclasses import dataclass, fields

from streams.errors import PoisonRecord
from streams.events.codec import Codec
from streams.events.model import Event, Root
from streams.payload.port import Scope
from streams.replay.chains import StoredChain, first_unequal, read_chains
from streams.replay.divergence import Bisection, first_divergence
from streams.replay.errors import NoSuchExecution, TamperedLog
from streams.replay.port import LogHead, StoredLog
from streams.replay.verified import VerifiedLog
from streams.schema.registry import UnknownSchemaId

_ASSIGNED_LOCALLY = ("position", "ingest_time", "chain")
"""Fields that two faithful copies of a log need not share."""


@dataclass(frozen=True, slots=True)
class NamedLog:
    """A log, and what reports call it."""

    name: str
    stored: StoredLog


@dataclass(frozen=True, slots=True)
class FieldDifference:
    """A field of an event that two logs have differently."""

    field: str
    a: str
    b: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDiff:
    """The first place where two chains of an execution differ."""

    execution_id: int
    a: str
    b: str
    events: tuple[int, int]
    """How many events each has."""
    seq: int | None = None
    """None: they are equal."""
    comparisons: int
    what: str | None = None
    differences: tuple[FieldDifference, ...] = ()

    @property
    def is_equal(self) -> bool:
        """Whether nothing differs."""
        return self.seq is None


class LogComparison:
    """Finds the first divergence by bisecting chains."""

    def __init__(self, codec: Codec, scope: Scope) -> None:
        self._codec, self._scope = codec, scope

    async def with_itself(self, log: NamedLog, execution_id: int) -> LogDiff:
        """Compare the stored chain of a log with the one computed from its envelopes.

        Raises:
            NoSuchExecution: there is none in this scope.
            Unavailable: the log cannot be read.
        """
        root = Root("execution", execution_id)
        head = await self._head(log, root)
        chains = await read_chains(log.stored, self._codec, root, head.seq)
        found = await first_divergence(chains.stored, chains.computed, head.seq)
        seq = found.seq or _lone_link(root, chains.stored.links[-32:], head)
        if seq is None:
            seq = first_unequal(chains.stored, chains.computed)
        what = None if seq is None else await self._defect(log, root, seq)
        return LogDiff(
            execution_id=execution_id,
            a=f"{log.name}, stored chain",
            b=f"{log.name}, chain of its content",
            events=(head.seq, head.seq),
            seq=seq,
            comparisons=found.comparisons,
            what=what,
        )

    async def between(self, a: NamedLog, b: NamedLog, execution_id: int) -> LogDiff:
        """Compare the stored chains of two logs; each comparison reads one event of each.

        Raises:
            NoSuchExecution: one of them has none in this scope.
            Unavailable: a log cannot be read.
        """
        root = Root("execution", execution_id)
        heads = await self._head(a, root), await self._head(b, root)
        shared = min(head.seq for head in heads)
        found = await self._bisected(a, b, root, shared)
        what, seq = None, found.seq
        differences: tuple[FieldDifference, ...] = ()
        if seq is not None:
            differences = await self._differences(a, b, root, seq)
            what = "the events differ" if differences else "only their chains differ"
        elif heads[0].seq != heads[1].seq:
            seq = shared + 1
            shorter = a.name if heads[0].seq == shared else b.name
            what = f"{shorter} ends at event {shared}"
        return LogDiff(
            execution_id=execution_id,
            a=a.name,
            b=b.name,
            events=(heads[0].seq, heads[1].seq),
            seq=seq,
            comparisons=found.comparisons,
            what=what,
            differences=differences,
        )

    async def _head(self, log: NamedLog, root: Root) -> LogHead:
        head = await log.stored.head(root)
        if head is None or head.scope != self._scope:
            scope = self._scope
            raise NoSuchExecution(root.id, scope.tenant_id, scope.organization_id, log.name)
        return head

    async def _bisected(self, a: NamedLog, b: NamedLog, root: Root, length: int) -> Bisection:
        return await first_divergence(
            StoredChain(a.stored, root), StoredChain(b.stored, root), length
        )

    async def _defect(self, log: NamedLog, root: Root, seq: int) -> str:
        """Return what is wrong with the first event whose chain is not that of its content."""
        try:
            await VerifiedLog(log.stored, self._codec).one(root, seq)
        except TamperedLog as error:
            return error.what
        return "its chain does not follow"

    async def _differences(
        self, a: NamedLog, b: NamedLog, root: Root, seq: int
    ) -> tuple[FieldDifference, ...]:
        found = [await self._fields(log, root, seq) for log in (a, b)]
        names = sorted(found[0].keys() | found[1].keys())
        pairs = [(name, found[0].get(name, ""), found[1].get(name, "")) for name in names]
        return tuple(FieldDifference(*pair) for pair in pairs if pair[1] != pair[2])

    async def _fields(self, log: NamedLog, root: Root, seq: int) -> dict[str, str]:
        (one,) = await log.stored.page(root, after_seq=seq - 1, through_seq=seq, limit=1)
        try:
            event = await VerifiedLog(log.stored, self._codec).one(root, seq)
        except (TamperedLog, PoisonRecord, UnknownSchemaId) as error:
            what = error.what if isinstance(error, TamperedLog) else str(error)
            return {"checksum": one.checksum.hex(), "integrity": what}
        return _shown(event)


def _lone_link(root: Root, last: bytes | bytearray, head: LogHead) -> int | None:
    return None if bytes(last) == head.chain else head.seq


def _shown(event: Event) -> dict[str, str]:
    names = (one.name for one in fields(event) if one.name not in _ASSIGNED_LOCALLY)
    return {name: str(value) for name in names if (value := getattr(event, name)) is not None}
