"""Import of schema ids into Apicurio 2.x, as an archive.

Its Confluent-compatible interface (`/apis/ccompat/…`) has no IMPORT mode, but the ids there
are Apicurio's content ids, and the archive import of its core interface keeps those. That
import skips silently what collides, so everything that could collide is looked up first.
"""

from __future__ import annotations

import hashlib
import io
import time
import zipfile
from collections.abc import Mapping, Sequence

import orjson

from streams.errors import Refused
from streams.schema.registration import Registration
from streams.schema.registry_external import RegistryClient, RegistryRefused
from streams.schema.released import canonical

_COMPAT = "/apis/ccompat/"
_LEGACY_IDS = "registry.ccompat.legacy-id-mode.enabled"


class ApicurioImport:
    """Imports through `POST /apis/registry/v2/admin/import`."""

    def __init__(self, client: RegistryClient, core: str) -> None:
        self._client, self._core = client, core

    @classmethod
    async def detect(cls, client: RegistryClient) -> ApicurioImport | None:
        """Return the importer when the address is Apicurio's compatible interface."""
        server, found, _ = client.url.partition(_COMPAT)
        if not found:
            return None
        importer = cls(client, f"{server}/apis/registry/v2")
        status, info = await importer._get("/system/info")
        is_apicurio = isinstance(info, dict) and "apicurio" in str(info.get("name", ""))
        if status != 200 or not isinstance(info, dict) or not is_apicurio:
            return None
        if not str(info.get("version", "")).startswith("2."):
            raise Refused(
                f"schema registry {client.url}: Apicurio {info.get('version')} imports another "
                "archive than 2.x; use Apicurio 2.x, or a registry with Confluent's IMPORT mode"
            )
        return importer

    async def obstacles(self, wanted: Sequence[Registration]) -> Sequence[str]:
        """Return ids and contents that the import would silently skip."""
        reasons = []
        if await self._uses_global_ids():
            reasons.append(f"it has {_LEGACY_IDS}, so one schema has another id in each subject")
        for schema_id, schema in {one.schema_id: one.schema for one in wanted}.items():
            reason = await self._collision(schema_id, canonical(schema).encode())
            if reason:
                reasons.append(reason)
        return reasons

    async def load(self, wanted: Sequence[Registration], newest: Mapping[str, int]) -> None:
        """Send one archive with every schema and every subject's version."""
        status, answer = await self._client.send(
            "POST",
            f"{self._core}/admin/import",
            {
                "Content-Type": "application/zip",
                "X-Registry-Preserve-ContentId": "true",
                "X-Registry-Preserve-GlobalId": "false",
            },
            archive(wanted, newest, now_ms=time.time_ns() // 1_000_000),
        )
        if status >= 400:
            raise RegistryRefused(self._client.url, "admin/import", status, str(answer))

    async def _collision(self, schema_id: int, content: bytes) -> str | None:
        status, found = await self._get(f"/ids/contentIds/{schema_id}")
        if status == 200:
            if found == content.decode():
                return None
            return f"id {schema_id} is taken by another schema, perhaps a deleted one"
        digest = hashlib.sha256(content).hexdigest()
        status, _ = await self._get(f"/ids/contentHashes/{digest}")
        if status == 200:
            return f"the schema of id {schema_id} is there under another id: delete it there"
        return None

    async def _uses_global_ids(self) -> bool:
        status, setting = await self._get(f"/admin/config/properties/{_LEGACY_IDS}")
        return status == 200 and isinstance(setting, dict) and setting.get("value") == "true"

    async def _get(self, path: str) -> tuple[int, object]:
        return await self._client.send("GET", f"{self._core}{path}", {}, None)


def archive(wanted: Sequence[Registration], newest: Mapping[str, int], *, now_ms: int) -> bytes:
    """Return the archive that Apicurio's import reads: contents first, then versions."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as file:
        for schema_id, schema in {one.schema_id: one.schema for one in wanted}.items():
            _add_content(file, schema_id, canonical(schema).encode())
        for one in sorted(wanted, key=lambda each: each.version):
            _add_version(file, one, now_ms, is_newest=one.version == newest[one.subject])
    return out.getvalue()


def _add_content(file: zipfile.ZipFile, schema_id: int, content: bytes) -> None:
    """Add a content; its data must directly follow its description."""
    digest = hashlib.sha256(content).hexdigest()
    about = {"contentId": schema_id, "contentHash": digest, "artifactType": "AVRO"}
    file.writestr(f"content/{digest}.Content.json", orjson.dumps(about))
    file.writestr(f"content/{digest}.Content.data", content)


def _add_version(file: zipfile.ZipFile, one: Registration, now_ms: int, *, is_newest: bool) -> None:
    about = {
        "groupId": None,
        "artifactId": one.subject,
        "version": str(one.version),
        "versionId": one.version,
        "artifactType": "AVRO",
        "state": "ENABLED",
        "name": orjson.loads(one.schema)["name"],
        "createdBy": "",
        "createdOn": now_ms,
        "isLatest": is_newest,
        "contentId": one.schema_id,
        "globalId": -1,
    }
    path = f"groups/default/artifacts/{one.subject}/versions/{one.version}.ArtifactVersion.json"
    file.writestr(path, orjson.dumps(about))
