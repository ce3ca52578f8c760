"""Values and ports of retention."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple, Protocol

from streams.events.model import PayloadRef
from streams.payload.port import PayloadStore, Scope

OpenStore = Callable[[], AbstractAsyncContextManager[PayloadStore]]
"""Opens the payload store when an archive is read."""
SEGMENT_TYPE = "application/vnd.noetl.log-segment"
"""Media type of a segment: records of events, as bundles have them."""


@dataclass(frozen=True, slots=True)
class Policy:
    """How long ended executions of a tenant stay in the log."""

    tenant_id: str
    keep_days: int


class LogPartition(NamedTuple):
    """A partition of the log, and the ids of roots in it: from `low` to below `high`."""

    name: str
    low: int
    high: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutionFacts:
    """What the log knows of an execution, for the rules."""

    execution_id: int
    scope: Scope
    seq: int
    chain: bytes
    is_ended: bool
    last_at: datetime
    """When its newest event was stored."""
    parent_id: int | None
    is_parent_open: bool
    projected_seq: int


class Piece(NamedTuple):
    """Consecutive events of an execution in a segment."""

    segment: str
    """The segment's SHA-256."""
    segment_bytes: int
    offset: int
    byte_length: int
    first_seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ArchivedRoot:
    """Where the events of an archived execution are."""

    execution_id: int
    scope: Scope
    parent_id: int | None
    seq: int
    chain: bytes
    pieces: tuple[Piece, ...]
    payloads: str = ""
    """Digests and locators of the payloads that it refers to, for the collector."""
    expired: str = ""
    """Digests of those that expired."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenArchive:
    """An archive whose objects are stored; the log does not know it yet."""

    scope: Scope
    roots: tuple[ArchivedRoot, ...]
    segments: tuple[PayloadRef, ...]
    manifest: PayloadRef

    @property
    def events(self) -> int:
        """Number of its events."""
        return sum(one.seq for one in self.roots)

    @property
    def byte_length(self) -> int:
        """Size of its objects before compression."""
        return self.manifest.byte_length + sum(one.byte_length for one in self.segments)


@dataclass(frozen=True, slots=True, kw_only=True)
class Archive:
    """An archive that the log knows."""

    archive_id: int
    partition: str
    scope: Scope
    executions: int
    events: int
    byte_length: int
    manifest: PayloadRef
    detached_table: str
    archived_at: datetime
    dropped_at: datetime | None


class ArchiveIndex(Protocol):
    """Finds archived executions; raises Unavailable when the log cannot be reached."""

    async def find(self, execution_id: int) -> ArchivedRoot | None:
        """Return where an execution's events are; None if it is not archived."""
        ...


class PayloadNames(NamedTuple):
    """The payloads that an execution still refers to."""

    digests: frozenset[str]
    sure: frozenset[str]
    """Those that are certainly payloads."""
    expired: frozenset[str] = frozenset()
    """Those that its events name although they expired."""


class Holdings(Protocol):
    """Finds the payloads that executions refer to."""

    async def of(self, execution_ids: Collection[int]) -> Mapping[int, PayloadNames]:
        """Return them by execution; those without any are omitted."""
        ...


class RetentionLog(Protocol):
    """The log as retention changes it. Every method raises Unavailable if it is down."""

    async def policies(self) -> Sequence[Policy]:
        """Return all policies."""
        ...

    async def partitions(self) -> Sequence[LogPartition]:
        """Return the partitions in which no new execution begins, oldest first."""
        ...

    async def facts(self, partition: LogPartition) -> Sequence[ExecutionFacts]:
        """Return the executions in a partition, in order of their ids."""
        ...

    async def mirrored(self) -> None:
        """Return once everything that is committed now has been mirrored.

        Raises:
            RetentionLate: it takes too long.
        """
        ...

    async def detach(
        self, partition: LogPartition, archives: Sequence[WrittenArchive]
    ) -> Sequence[int]:
        """Replace a partition by one without these executions, in one transaction.

        The old one is moved to the schema noetl_detached. Returns the archives' numbers.

        Raises:
            NotArchivable: an execution got events since it was written.
            RetentionLate: the log is in use.
        """
        ...

    async def archives(self) -> Sequence[Archive]:
        """Return all archives, oldest first."""
        ...

    def roots_of(self, archive_id: int) -> AsyncIterator[ArchivedRoot]:
        """Yield the executions of an archive."""
        ...

    async def drop(self, detached_table: str) -> None:
        """Drop a detached table; does nothing if it was dropped."""
        ...
