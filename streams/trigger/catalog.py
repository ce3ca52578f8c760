"""Playbook lookup in the catalog."""

from __future__ import annotations

from streams.catalog.catalog import Catalog
from streams.catalog.errors import UnknownPath, UnknownVersion
from streams.payload.port import Scope
from streams.trigger.port import PlaybookVersion


class CatalogPlaybooks:
    """Queries the catalog, which reads the log, so new registrations are visible at once."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog

    async def find(self, scope: Scope, path: str, version: int | None) -> PlaybookVersion | None:
        """Return the playbook, the newest if `version` is None; None if it does not exist."""
        try:
            found = await self._catalog.resolve(
                scope.tenant_id, scope.organization_id, path, version
            )
        except (UnknownPath, UnknownVersion):
            return None
        return PlaybookVersion(*found)
