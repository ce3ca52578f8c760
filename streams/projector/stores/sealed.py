"""The projection store over any adapter: seals what is written, checks what is read."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence

from streams.payload.port import Scope
from streams.projector.stores.port import (
    DamagedProjection,
    ErasedRecords,
    Pagination,
    RecordStore,
    StoredSnapshot,
    UnknownStoredProjection,
)
from streams.projector.stores.records import (
    Lineage,
    ProjectionRecord,
    SealedRecord,
    checksum_of_record,
    labels_of,
    seal,
    unsealed,
)

_LAST = 2**63 - 1


class SealedProjections:
    """Implements the port; snapshots are records whose places put the newest first."""

    def __init__(self, records: RecordStore) -> None:
        self._records = records

    async def save_projection(
        self, records: Sequence[ProjectionRecord], *, erased: ErasedRecords | None = None
    ) -> None:
        """Write states in one transaction, after deleting others."""
        newest: dict[str, ProjectionRecord] = {}
        for one in records:
            known = newest.get(one.projection_id)
            if known is None or one.version > known.version:
                newest[one.projection_id] = one
        if newest or erased is not None:
            # One order for all writers, so that none waits for another in a circle.
            await self._records.write([seal(newest[key]) for key in sorted(newest)], erased)

    async def load_projection(
        self, projection_ids: Sequence[str], *, scope: Scope | None = None
    ) -> Sequence[ProjectionRecord]:
        """Return the states that exist."""
        if not projection_ids:
            return []
        found = map(_checked, await self._records.read(projection_ids))
        return [one for one in found if scope is None or one.lineage.scope == scope]

    async def load_executions(
        self, execution_ids: Sequence[int], projection_type: str
    ) -> Sequence[ProjectionRecord]:
        """Return the states of a type that executions have, by id."""
        if not execution_ids:
            return []
        found = await self._records.of_executions(execution_ids, projection_type)
        return [_checked(one) for one in sorted(found)]

    async def save_snapshot(self, snapshot: StoredSnapshot) -> None:
        """Write a snapshot; one of the same version stays."""
        kind = _snapshot_type(snapshot.aggregate_type, snapshot.aggregate_id)
        scope = snapshot.scope
        record = ProjectionRecord(
            projection_id=f"{kind}/{scope.tenant_id}/{scope.organization_id}/{snapshot.version}",
            projection_type=kind,
            version=snapshot.version,
            place=_newest_first(snapshot.version),
            state=snapshot.snapshot,
            lineage=Lineage(
                tenant_id=scope.tenant_id,
                organization_id=scope.organization_id,
                execution_id=None,
                first_position=snapshot.position,
                last_position=snapshot.position,
                projection_version=snapshot.projection_version,
            ),
        )
        await self._records.write([seal(record)], None)

    async def load_snapshot(
        self,
        scope: Scope,
        aggregate_type: str,
        aggregate_id: str,
        *,
        through_version: int | None = None,
    ) -> StoredSnapshot | None:
        """Return the newest snapshot at or below a version."""
        after = None if through_version is None else (_newest_first(through_version), "")
        kind = _snapshot_type(aggregate_type, aggregate_id)
        for found in await self._records.page(scope, kind, (), Pagination(after, 1)):
            record = _checked(found)
            return StoredSnapshot(
                aggregate_type=aggregate_type,
                aggregate_id=aggregate_id,
                scope=record.lineage.scope,
                version=record.version,
                position=record.lineage.last_position,
                projection_version=record.lineage.projection_version,
                snapshot=record.state,
            )
        return None

    async def query(
        self,
        scope: Scope,
        projection_type: str,
        filters: Mapping[str, str],
        pagination: Pagination,
    ) -> AsyncIterator[ProjectionRecord]:
        """Yield a page of states."""
        found = await self._records.page(scope, projection_type, labels_of(filters), pagination)
        if not found and not await self._records.page(
            scope, projection_type, (), Pagination(limit=1)
        ):
            raise UnknownStoredProjection(scope, projection_type)
        for one in found:
            yield _checked(one)


def _checked(sealed: SealedRecord) -> ProjectionRecord:
    if checksum_of_record(sealed) != sealed.checksum:
        raise DamagedProjection(sealed.projection_id)
    return unsealed(sealed)


def _snapshot_type(aggregate_type: str, aggregate_id: str) -> str:
    return f"snapshot/{aggregate_type}/{aggregate_id}"


def _newest_first(version: int) -> str:
    return f"{_LAST - version:019d}"
