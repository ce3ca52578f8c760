"""The tool that puts a value into the payload store, and gets one by its reference."""

from __future__ import annotations

from typing import Any

import orjson

from streams.envelope.locator import BadLocator, Locator
from streams.envelope.model import Json, PayloadRef
from streams.payload.content import reference_json
from streams.payload.errors import PayloadCorrupt, PayloadMissing
from streams.payload.port import ARROW, JSON, PayloadStore, Scope
from streams.payload.rows import decode_rows
from streams.worker.errors import BadConfig
from streams.worker.port import Call, Config, Outcome
from streams.worker.tools.failure import failed, mapping

TEXT = "text/plain; charset=utf-8"


class ArtifactTool:
    """`action: put` stores `data` and answers {"ref": ...}; `action: get` wants that `ref`.

    A reference of another tenant or organization is refused.
    """

    def __init__(self, payloads: PayloadStore) -> None:
        self._payloads = payloads

    async def run(self, config: Config, call: Call) -> Outcome:
        """Put or get one value.

        Raises:
            PayloadUnavailable: the store is down.
        """
        scope = Scope(call.tenant_id, call.organization_id)
        action = config.get("action", "get")
        try:
            if action == "put":
                return await self._put(config, scope)
            if action == "get":
                return await self._get(_reference(config, scope))
            raise BadConfig(f"'action' must be get or put, not {action!r}")
        except BadConfig as error:
            return failed("artifact.config", str(error))
        except PayloadMissing as error:
            return failed("artifact.missing", str(error))
        except PayloadCorrupt as error:
            return failed("artifact.corrupt", str(error))

    async def close(self) -> None:
        """Leave the store open: it is not this tool's own."""

    async def _put(self, config: Config, scope: Scope) -> Outcome:
        if "data" not in config:
            raise BadConfig("'data' is missing: the value to put")
        value = config["data"]
        if isinstance(value, str):
            ref = await self._payloads.put(scope, value.encode(), media_type=TEXT)
        else:
            ref = await self._payloads.put(scope, orjson.dumps(value), media_type=JSON)
        told: Json = reference_json(ref)
        return Outcome(status="success", data={"ref": told})

    async def _get(self, ref: PayloadRef) -> Outcome:
        content = await self._payloads.get(ref)
        meta: dict[str, Json] = {"media_type": ref.media_type, "byte_length": ref.byte_length}
        if ref.media_type == ARROW:
            return Outcome(status="success", data=decode_rows(content), meta=meta)
        value: Any = orjson.loads(content) if ref.media_type == JSON else content.decode()
        return Outcome(status="success", data=value, meta=meta)


def _reference(config: Config, scope: Scope) -> PayloadRef:
    fields = mapping(config, "ref")
    names = ("uri", "sha256", "media_type", "byte_length")
    if missing := [name for name in names if name not in fields]:
        raise BadConfig(
            f"'ref' has no {missing[0]!r}; give the whole reference that a put answered"
        )
    ref = PayloadRef(**{name: fields[name] for name in names})
    try:
        ours = Locator.payload(scope.tenant_id, scope.organization_id, str(ref.sha256))
    except BadLocator as error:
        raise BadConfig(f"'ref' names no payload: {error}") from error
    if ref.uri != str(ours):
        raise BadConfig(f"{ref.uri} does not belong to this tenant and organization")
    return ref
