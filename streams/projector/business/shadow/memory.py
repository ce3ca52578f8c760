"""Versions of projections in memory, for unit tests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from streams.payload.port import Scope
from streams.projector.business.memory import MemoryBusiness
from streams.projector.business.rows import BusinessProgressRow, BusinessStateRow
from streams.projector.business.shadow.core import VersionChange
from streams.projector.business.shadow.port import check_unchanged, switched
from streams.projector.business.versions import ProjectionVersion
from streams.projector.memory import MemoryProjections


class MemoryVersions:
    """Stores versions beside the rows."""

    def __init__(self, store: MemoryProjections) -> None:
        self._store, self._business = store, MemoryBusiness(store)

    async def versions(self, scopes: Iterable[Scope]) -> Sequence[ProjectionVersion]:
        """Return the versions of scopes."""
        return await self._business.versions(scopes)

    async def change(self, change: VersionChange) -> Sequence[ProjectionVersion]:
        """Apply a decision."""
        found = await self.versions([change.scope])
        check_unchanged(change, [one for one in found if one.projection == change.projection])
        after = change.after
        if (switch := change.switch) is not None:
            names = (change.scope, change.projection, switch.serving, switch.other)
            after = switched(change, switch, await self._business.places(*names))
        for one in after:
            self._store.versions[one.scope, one.projection, one.version] = one
        if change.dropped is not None:
            self._delete(change, change.dropped)
        return after

    def _delete(self, change: VersionChange, version: int) -> None:
        scope = change.scope
        wanted = (scope.tenant_id, scope.organization_id, change.projection, version)
        for key, row in list(self._store.rows.items()):
            if isinstance(row, BusinessStateRow | BusinessProgressRow) and wanted == (
                row.tenant_id,
                row.organization_id,
                row.projection,
                row.version,
            ):
                del self._store.rows[key]
