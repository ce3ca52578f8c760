"""Result references: small JSON that stands for a result kept elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import orjson

from streams.events.locator import Locator, ResultUri
from streams.events.model import Json, PayloadRef
from streams.payload.content import reference_from
from streams.payload.errors import PayloadMissing
from streams.payload.port import JSON, Scope

KIND = "result_ref"
_SAMPLE_TEXT = 80


def result_uri(execution_id: int, step: str, task: str, result_id: int) -> str:
    """Return the name of a result, under which it can be asked for."""
    return str(ResultUri(execution_id, step, task, str(result_id)))


def results_of(execution_id: int, step: str) -> str:
    """Return how the names of a step's results begin."""
    return result_uri(execution_id, step, "-", 0).removesuffix("-/0")


def result_reference(
    uri: str,
    payload: PayloadRef,
    *,
    store: str,
    scope: str,
    expires_at: datetime | None = None,
    extracted: Mapping[str, Json] | None = None,
    preview: Json = None,
) -> dict[str, Any]:
    """Return the reference as events and templates carry it."""
    meta: dict[str, Any] = {
        "content_type": payload.media_type,
        "bytes": payload.byte_length,
        "sha256": payload.sha256,
    }
    if payload.compression is not None:
        meta["compression"] = payload.compression
    return {
        "kind": KIND,
        "ref": uri,
        "store": store,
        "scope": scope,
        "expires_at": None if expires_at is None else time_text(expires_at),
        "meta": meta,
        "extracted": dict(extracted or {}),
        "preview": preview,
    }


def rows_reference(
    execution_id: int, step: str, loop_id: int, manifest: PayloadRef
) -> dict[str, Any]:
    """Return the reference of a loop's rows."""
    uri = result_uri(execution_id, step, step, loop_id)
    return result_reference(uri, manifest, store="object", scope="permanent")


def time_text(at: datetime) -> str:
    """Return a time in its one spelling."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def is_reference(value: Any) -> bool:
    """Say whether a value is a result reference."""
    return isinstance(value, dict) and value.get("kind") == KIND and "meta" in value


def payload_of(ref: Mapping[str, Any], scope: Scope) -> PayloadRef:
    """Return the payload behind a result reference, which is always the scope's own.

    Raises:
        PayloadMissing: the reference does not say which payload it means.
        BadLocator: its digest is none.
    """
    meta = ref.get("meta")
    if not isinstance(meta, Mapping) or not isinstance(meta.get("bytes"), int):
        raise PayloadMissing(str(ref.get("ref")))
    digest = str(meta.get("sha256"))
    return PayloadRef(
        uri=str(Locator.payload(scope.tenant_id, scope.organization_id, digest)),
        sha256=digest,
        media_type=str(meta.get("content_type", JSON)),
        byte_length=meta["bytes"],
    )


def data_of(envelope: Mapping[str, Any], scope: Scope) -> PayloadRef | None:
    """Return where the data of a result envelope is; None where the envelope has it."""
    if "data" in envelope:
        return None
    if (found := envelope.get("_ref")) is not None:
        return reference_from(found)
    ref = envelope.get("ref")
    return payload_of(ref, scope) if isinstance(ref, Mapping) else None


def preview_of(value: Json, limit: int) -> Json:
    """Return a first look at a value, of at most about `limit` bytes; None where none fits."""
    if isinstance(value, list):
        sample: list[Json] = []
        look: dict[str, Json] = {"_items": len(value), "_sample": sample}
        for item in value[:10]:
            sample.append(_short(item))
            if len(_dumps(look)) > limit:
                sample.pop()
                break
        return look if len(_dumps(look)) <= limit else None
    if isinstance(value, dict):
        shown: dict[str, Json] = {}
        for key, item in list(value.items())[:50]:
            shown[str(key)] = _short(item)
            if len(_dumps(shown)) > limit:
                del shown[str(key)]
                break
        return shown or None
    if isinstance(value, str):
        return {"_characters": len(value), "_sample": _clean(value[: max(0, limit // 8)])}
    return value


def _short(value: Json) -> Json:
    if isinstance(value, str):
        return _clean(_cut(value))
    if isinstance(value, list) and len(_dumps(value)) > _SAMPLE_TEXT:
        return {"_items": len(value)}
    if isinstance(value, dict) and len(_dumps(value)) > 4 * _SAMPLE_TEXT:
        return {"_keys": [_clean(_cut(str(key))) for key in list(value)[:10]]}
    return value


def _cut(text: str) -> str:
    return text if len(text) <= _SAMPLE_TEXT else f"{text[:_SAMPLE_TEXT]}…"


def _clean(text: str) -> str:
    return text.replace("\x00", "\N{REPLACEMENT CHARACTER}")


def _dumps(value: object) -> bytes:
    return orjson.dumps(value, default=str)
