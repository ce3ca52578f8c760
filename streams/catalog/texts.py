"""The text of a registered version, from the log and the payload store."""

from __future__ import annotations

from streams.catalog.errors import UnknownVersion
from streams.errors import Inconsistent
from streams.events.model import Root
from streams.events.types import CatalogRegistered, typed
from streams.log.port import EventStore
from streams.payload.port import PayloadStore


class RegisteredTexts:
    """Reads the content of versions; a version never changes."""

    def __init__(self, store: EventStore, payloads: PayloadStore | None = None) -> None:
        self._store, self._payloads = store, payloads

    async def content(self, catalog_id: int, version: int) -> str:
        """Return a version's content as registered.

        Raises:
            UnknownVersion: there is none.
            Unavailable: the log or the payload store cannot be reached.
        """
        versions: list[int] = []
        async for event in self._store.read_root(Root("catalog", catalog_id)):
            known = typed(event)
            if isinstance(known, CatalogRegistered):
                versions.append(known.version)
                if known.version == version:
                    return await self._text(catalog_id, known)
        raise UnknownVersion(f"catalog {catalog_id}", version, versions)

    async def _text(self, catalog_id: int, event: CatalogRegistered) -> str:
        if event.content is not None:
            return event.content
        if event.payload_ref is None or self._payloads is None:
            raise Inconsistent(
                f"{Root('catalog', catalog_id)}: version {event.version} has its content outside "
                "the log, and no payload store is open; open the one it was registered with"
            )
        return (await self._payloads.get(event.payload_ref)).decode()
