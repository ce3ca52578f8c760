"""Projections in memory, for unit tests."""

from __future__ import annotations

from collections.abc import Sequence

from streams.payload.port import Scope
from streams.projector.stores.port import ErasedRecords, Pagination
from streams.projector.stores.records import SealedRecord


class MemoryRecords:
    """Stores records in a dictionary."""

    def __init__(self) -> None:
        self.records: dict[str, SealedRecord] = {}

    async def write(self, records: Sequence[SealedRecord], erased: ErasedRecords | None) -> None:
        """Delete and write."""
        if erased is not None:
            self.records = {
                key: one for key, one in self.records.items() if not is_erased(one, erased)
            }
        for record in records:
            if record.replaces(self.records.get(record.projection_id)):
                self.records[record.projection_id] = record

    async def read(self, projection_ids: Sequence[str]) -> Sequence[SealedRecord]:
        """Return the records that exist."""
        return [self.records[one] for one in projection_ids if one in self.records]

    async def of_executions(
        self, execution_ids: Sequence[int], projection_type: str
    ) -> Sequence[SealedRecord]:
        """Return the records of a type that executions have."""
        wanted = frozenset(execution_ids)
        return [
            one
            for one in self.records.values()
            if one.execution_id in wanted and one.projection_type == projection_type
        ]

    async def page(
        self, scope: Scope, projection_type: str, labels: Sequence[str], page: Pagination
    ) -> Sequence[SealedRecord]:
        """Return records that have all labels."""
        found = [
            one
            for one in self.records.values()
            if (one.tenant_id, one.organization_id) == (scope.tenant_id, scope.organization_id)
            and one.projection_type == projection_type
            and (page.after is None or one.at > page.after)
            and set(labels) <= set(one.labels)
        ]
        return sorted(found, key=lambda one: one.at)[: page.limit]


def is_erased(record: SealedRecord, erased: ErasedRecords) -> bool:
    """Return whether a save deletes a record first."""
    if erased.execution_id is None:
        return True
    through = erased.through_version
    is_old = through is None or record.version <= through
    return record.execution_id == erased.execution_id and is_old
