"""The reference of some bytes: known from the bytes alone, before anything is stored."""

from __future__ import annotations

import hashlib

from streams.envelope.locator import Locator
from streams.envelope.model import PayloadRef
from streams.payload.port import Scope


def reference_of(
    scope: Scope,
    data: bytes,
    *,
    media_type: str,
    row_count: int | None = None,
    schema_digest: str | None = None,
) -> PayloadRef:
    """Return the reference under which `data` is, or will be, stored."""
    digest = hashlib.sha256(data).hexdigest()
    return PayloadRef(
        uri=str(Locator.payload(scope.tenant_id, scope.organization_id, digest)),
        sha256=digest,
        media_type=media_type,
        byte_length=len(data),
        row_count=row_count,
        schema_digest=schema_digest,
    )
