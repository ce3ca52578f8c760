"""Ports of projection stores: what the projector and readers call, and what an adapter does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from streams.errors import Inconsistent, Refused, Unavailable
from streams.payload.port import Scope
from streams.projector.stores.records import ProjectionRecord, SealedRecord


class ProjectionStoreUnavailable(Unavailable):
    """A projection store cannot be reached or written."""

    dependency = "a projection store"


class UnknownStoredProjection(Refused):
    """A store has no projection of this type in the scope."""

    def __init__(self, scope: Scope, projection_type: str) -> None:
        super().__init__(
            f"projection {projection_type!r} does not exist in {scope.tenant_id}/"
            f"{scope.organization_id}; check its name, or whether events were projected yet"
        )


class DamagedProjection(Inconsistent):
    """A stored projection does not match its checksum."""

    def __init__(self, projection_id: str) -> None:
        super().__init__(
            f"stored projection {projection_id!r} does not match its checksum: it was changed "
            "outside of the projector; run `streams rebuild projections`"
        )


class Pagination(NamedTuple):
    """Which page of a query: records after a place (`ProjectionRecord.at`), and how many."""

    after: tuple[str, str] | None = None
    limit: int = 100


class ErasedRecords(NamedTuple):
    """Records that a save deletes first: of one execution, or all of them."""

    execution_id: int | None = None
    through_version: int | None = None
    """Newer ones stay: another writer has seen more of the execution."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSnapshot:
    """The state of an aggregate as of a version; it makes reading faster, no more."""

    aggregate_type: str
    aggregate_id: str
    scope: Scope
    version: int
    position: int
    projection_version: int
    snapshot: bytes


class ProjectionStorePort(Protocol):
    """Stores states of projections with lineage and checksum.

    A redelivery changes nothing: a state of an equal or older version is not written, nor one
    whose id another tenant or organization has. All methods raise ProjectionStoreUnavailable
    if the store cannot be reached; then nothing was written, and retrying is safe.
    """

    async def save_projection(
        self, records: Sequence[ProjectionRecord], *, erased: ErasedRecords | None = None
    ) -> None:
        """Write states in one transaction, after deleting others."""
        ...

    async def load_projection(
        self, projection_ids: Sequence[str], *, scope: Scope | None = None
    ) -> Sequence[ProjectionRecord]:
        """Return the states that exist; without a scope, of any, as projectors need.

        Raises:
            DamagedProjection: one does not match its checksum.
        """
        ...

    async def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        """Write a snapshot; one of the same version stays."""
        ...

    async def load_snapshot(
        self,
        scope: Scope,
        aggregate_type: str,
        aggregate_id: str,
        *,
        through_version: int | None = None,
    ) -> StoredSnapshot | None:
        """Return the newest snapshot at or below a version.

        Raises:
            DamagedProjection: it does not match its checksum.
        """
        ...

    def query(
        self,
        scope: Scope,
        projection_type: str,
        filters: Mapping[str, str],
        pagination: Pagination,
    ) -> AsyncIterator[ProjectionRecord]:
        """Yield a page of states whose columns have these values, in the order of places.

        Raises:
            UnknownStoredProjection: the scope has no state of this type.
            DamagedProjection: one does not match its checksum.
        """
        ...


class ExecutionRecords(Protocol):
    """Finds states by the execution that they come from, for projectors."""

    async def load_executions(
        self, execution_ids: Sequence[int], projection_type: str
    ) -> Sequence[ProjectionRecord]:
        """Return the states of a type that executions have, by id.

        Raises:
            DamagedProjection: one does not match its checksum.
            ProjectionStoreUnavailable: the store cannot be reached.
        """
        ...


class RecordStore(Protocol):
    """What an adapter does; checksums, snapshots and unknown types are not its concern.

    All methods raise ProjectionStoreUnavailable if the store cannot be reached.
    """

    async def write(self, records: Sequence[SealedRecord], erased: ErasedRecords | None) -> None:
        """Delete and write in one transaction; see `SealedRecord.replaces`."""
        ...

    async def read(self, projection_ids: Sequence[str]) -> Sequence[SealedRecord]:
        """Return the records that exist."""
        ...

    async def of_executions(
        self, execution_ids: Sequence[int], projection_type: str
    ) -> Sequence[SealedRecord]:
        """Return the records of a type that executions have."""
        ...

    async def page(
        self, scope: Scope, projection_type: str, labels: Sequence[str], page: Pagination
    ) -> Sequence[SealedRecord]:
        """Return records that have all labels, in the order of (place, projection_id)."""
        ...
