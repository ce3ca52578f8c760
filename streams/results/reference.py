"""Result references: JSON for results whose data is in a payload."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeGuard, get_args

from streams.events.locator import Locator, ResultUri
from streams.events.model import Json, PayloadRef
from streams.events.types import ResultStored, ResultStoredScope
from streams.payload.errors import PayloadMissing
from streams.payload.port import JSON, Scope

KIND = "result_ref"
_SCOPES: dict[str, ResultStoredScope] = {one: one for one in get_args(ResultStoredScope)}


@dataclass(frozen=True, slots=True)
class ResultRef:
    """A result reference as events and templates carry it.

    `fields` is its JSON, unchanged: other workers may have written it, and unknown fields are
    passed on.
    """

    fields: Mapping[str, Json]

    @classmethod
    def to_payload(
        cls,
        uri: str,
        payload: PayloadRef,
        *,
        store: str,
        scope: str,
        expires_at: datetime | None = None,
        extracted: Mapping[str, Json] | None = None,
        preview: Json = None,
    ) -> ResultRef:
        """Return the reference of a result that `payload` holds."""
        meta: dict[str, Json] = {
            "content_type": payload.media_type,
            "bytes": payload.byte_length,
            "sha256": payload.sha256,
        }
        if payload.compression is not None:
            meta["compression"] = payload.compression
        return cls(
            {
                "kind": KIND,
                "ref": uri,
                "store": store,
                "scope": scope,
                "expires_at": None if expires_at is None else time_text(expires_at),
                "meta": meta,
                "extracted": dict(extracted or {}),
                "preview": preview,
            }
        )

    @classmethod
    def to_rows(cls, execution_id: int, step: str, loop_id: int, manifest: PayloadRef) -> ResultRef:
        """Return the reference of a loop's rows."""
        uri = result_uri(execution_id, step, step, loop_id)
        return cls.to_payload(uri, manifest, store="object", scope="permanent")

    @classmethod
    def parse(cls, value: Json) -> ResultRef | None:
        """Parse a JSON object; None if the value is not a reference."""
        return cls(value) if isinstance(value, dict) else None

    @property
    def uri(self) -> str | None:
        """The name under which the result can be requested."""
        return _text(self.fields.get("ref"))

    @property
    def store(self) -> str:
        """The tier that has a copy of the data."""
        return str(self.fields.get("store", "object"))

    @property
    def scope(self) -> str | None:
        """How long the result is retained: `execution`, `workflow`, `permanent`."""
        return _text(self.fields.get("scope"))

    @property
    def expires_at(self) -> str | None:
        """When it expires, as text; None: no time to live."""
        return _text(self.fields.get("expires_at"))

    @property
    def is_permanent(self) -> bool:
        """Whether the result never expires."""
        return self.scope == "permanent" and self.fields.get("expires_at") is None

    @property
    def extracted(self) -> Json:
        """The fields selected by `spec.result`."""
        return self.fields.get("extracted")

    @property
    def preview(self) -> Json:
        """A short preview of the data."""
        return self.fields.get("preview")

    @property
    def meta(self) -> Mapping[str, Json]:
        """Size, digest, media type and compression of the payload."""
        meta = self.fields.get("meta")
        return meta if isinstance(meta, dict) else {}

    @property
    def compression(self) -> str | None:
        """The requested compression of the payload."""
        return _text(self.meta.get("compression"))

    @property
    def byte_length(self) -> int:
        """The size of the data; 0 if unknown."""
        found = self.meta.get("bytes")
        return found if isinstance(found, int) else 0

    def payload(self, owner: Scope) -> PayloadRef:
        """Return its payload, which always belongs to the owner.

        Raises:
            PayloadMissing: the reference does not identify a payload.
            BadLocator: its digest is not valid.
        """
        size = self.meta.get("bytes")
        if not isinstance(size, int):
            raise PayloadMissing(str(self.fields.get("ref")))
        digest = str(self.meta.get("sha256"))
        return PayloadRef(
            uri=str(Locator.payload(owner.tenant_id, owner.organization_id, digest)),
            sha256=digest,
            media_type=str(self.meta.get("content_type", JSON)),
            byte_length=size,
        )

    def slim(self) -> ResultRef:
        """Return it without preview and selected fields, which `result.stored` has too."""
        return ResultRef({**self.fields, "preview": None, "extracted": {}})

    def to_json(self) -> dict[str, Json]:
        """Return its JSON, as events carry it."""
        return dict(self.fields)


def stored_result(
    result_id: int, step: str, task: str, reference: ResultRef, payload: PayloadRef
) -> ResultStored:
    """Return the event of a result that a payload holds, with its reference's retention."""
    return ResultStored(
        node_name=step,
        result_id=result_id,
        store=reference.store,
        scope=_SCOPES[reference.scope or ""],
        task=task,
        expires_at=reference.expires_at,
        result=reference.to_json(),
        payload_ref=payload,
    )


def result_uri(execution_id: int, step: str, task: str, result_id: int) -> str:
    """Return the name under which a result can be requested."""
    return str(ResultUri(execution_id, step, task, str(result_id)))


def results_of(execution_id: int, step: str) -> str:
    """Return the prefix of the names of a step's results."""
    return result_uri(execution_id, step, "-", 0).removesuffix("-/0")


def time_text(at: datetime) -> str:
    """Return a time as ISO text with milliseconds."""
    return at.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def is_reference(value: object) -> TypeGuard[dict[str, Json]]:
    """Whether a value is the JSON of a result reference."""
    return isinstance(value, dict) and value.get("kind") == KIND and "meta" in value


def _text(value: Json) -> str | None:
    return None if value is None else str(value)
