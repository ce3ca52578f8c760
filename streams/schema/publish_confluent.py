"""Import of schema ids into a registry with Confluent's modes.

A subject in IMPORT mode accepts a schema together with its id and version. The mode is set
for our subjects only, and always restored.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from urllib.parse import quote

from streams.errors import Refused
from streams.schema.registration import Registration
from streams.schema.registry_external import RegistryClient, RegistryRefused
from streams.schema.released import canonical


class ConfluentImport:
    """Imports through `PUT /mode/{subject}` and registrations that carry an id."""

    def __init__(self, client: RegistryClient) -> None:
        self._client = client

    @classmethod
    async def detect(cls, client: RegistryClient) -> ConfluentImport | None:
        """Return the importer if the registry supports modes."""
        answer = await client.call("GET", "/mode", absent={404, 405, 501})
        return cls(client) if isinstance(answer, dict) and "mode" in answer else None

    async def obstacles(self, wanted: Sequence[Registration]) -> Sequence[str]:
        """Report a read-only registry; whether it allows IMPORT shows only on trying."""
        answer = await self._client.call("GET", "/mode")
        mode = answer.get("mode") if isinstance(answer, dict) else None
        if mode in ("READONLY", "READONLY_OVERRIDE"):
            return [f"its mode is {mode}: set it to READWRITE for the time of the import"]
        return []

    async def load(self, wanted: Sequence[Registration], newest: Mapping[str, int]) -> None:
        """Register everything in the order of versions, with every subject in IMPORT mode."""
        del newest  # Confluent knows the newest version by itself.
        async with self._import_mode(list(dict.fromkeys(one.subject for one in wanted))):
            for one in sorted(wanted, key=lambda each: each.version):
                await self._client.register(
                    one.subject,
                    schema=canonical(one.schema),
                    schemaType="AVRO",
                    id=one.schema_id,
                    version=one.version,
                )

    @asynccontextmanager
    async def _import_mode(self, subjects: Sequence[str]) -> AsyncIterator[None]:
        """Set all subjects to IMPORT mode before the first registration, and restore them."""
        changed: dict[str, object] = {}
        try:
            for subject in subjects:
                path = f"/mode/{quote(subject, safe='')}"
                before = await self._client.call("GET", path, absent={404})
                await self._to_import(path)
                changed[path] = before.get("mode") if isinstance(before, dict) else None
            yield
        finally:
            for path, mode in changed.items():
                if mode is None:
                    await self._client.call("DELETE", path)
                else:
                    await self._client.call("PUT", f"{path}?force=true", {"mode": mode})

    async def _to_import(self, path: str) -> None:
        try:
            await self._client.call("PUT", f"{path}?force=true", {"mode": "IMPORT"})
        except RegistryRefused as error:
            raise Refused(
                f"{error}; ids can only be taken over in IMPORT mode: allow it there "
                "(mode.mutability) or use a registry that has it. No schema was registered"
            ) from error
