"""Content addressing: references, keys and verification of payloads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from hashlib import sha256
from typing import Any, Unpack

from streams.events.limits import MAX_SEGMENT_CHARS
from streams.events.locator import SCHEME, BadLocator, Locator, parse
from streams.events.model import PayloadRef
from streams.payload.errors import PayloadCorrupt, PayloadForeign, PayloadMissing
from streams.payload.port import PayloadDescription, Scope


def describe(scope: Scope, data: bytes, **described: Unpack[PayloadDescription]) -> PayloadRef:
    """Return the reference of `data`; equal for equal bytes in the same scope."""
    return name(scope, sha256(data).hexdigest(), len(data), **described)


def name(
    scope: Scope,
    digest: str,
    byte_length: int,
    **described: Unpack[PayloadDescription],
) -> PayloadRef:
    """Return the reference of already hashed bytes.

    Raises:
        BadLocator: tenant or organization is not valid in a payload name.
    """
    uri = str(Locator.payload(scope.tenant_id, scope.organization_id, digest))
    _, tenant, _, organization, *_ = uri.removeprefix(SCHEME).split("/")
    if max(len(tenant), len(organization)) > MAX_SEGMENT_CHARS:
        longest = "tenant" if len(tenant) > MAX_SEGMENT_CHARS else "org"
        why = f"must have at most {MAX_SEGMENT_CHARS} characters once it is percent-encoded"
        raise BadLocator(longest, why, uri)
    compression = described.get("compression")
    return PayloadRef(
        uri=uri,
        sha256=digest,
        media_type=described["media_type"],
        byte_length=byte_length,
        row_count=described.get("row_count"),
        schema_digest=described.get("schema_digest"),
        compression=None if compression == "none" else compression,
    )


def check_owner(scope: Scope, ref: PayloadRef) -> PayloadRef:
    """Return `ref` if it belongs to this tenant and organization.

    Raises:
        BadLocator: it is not a payload, or does not match its digest.
        PayloadForeign: it belongs to another tenant or organization.
    """
    if ref.uri == str(Locator.payload(scope.tenant_id, scope.organization_id, ref.sha256)):
        return ref
    place = parse(ref.uri)
    if not isinstance(place, Locator) or place.kind != "payloads":
        raise BadLocator("kind", "must be payloads", ref.uri)
    if (place.tenant, place.org) == (scope.tenant_id, scope.organization_id):
        raise BadLocator("id", f"is not the digest of the reference, {ref.sha256}", ref.uri)
    raise PayloadForeign(ref.uri, scope)


def reference_json(ref: PayloadRef) -> dict[str, Any]:
    """Return a reference as JSON, without its hint, which is short-lived."""
    return {k: v for k, v in asdict(ref).items() if v is not None and k != "ipc"}


def reference_from(fields: Mapping[str, Any]) -> PayloadRef:
    """Parse a reference from JSON."""
    return PayloadRef(**{**fields, "ipc": None})


def key_of(ref: PayloadRef) -> str:
    """Return the object's key, `<tenant>/<org>/sha256/<digest>`.

    Names retain the locator's percent-encoding, so that tenants cannot leave their folder.

    Raises:
        BadLocator: the reference is not one of a payload.
        PayloadMissing: its digest and its name disagree, so it cannot exist.
    """
    place = parse(ref.uri)
    if not isinstance(place, Locator) or place.kind != "payloads" or place.id[1] != ref.sha256:
        raise PayloadMissing(ref.uri)
    return key_of_uri(ref.uri)


def key_of_uri(uri: str) -> str:
    """Return the object's key of a payload's locator."""
    _, tenant, _, organization, _, *rest = uri.removeprefix(SCHEME).split("/")
    return "/".join((tenant, organization, *rest))


def scope_of(ref: PayloadRef) -> Scope:
    """Return the owner of a reference that `key_of` has validated."""
    place = parse(ref.uri)
    assert isinstance(place, Locator)
    assert place.org is not None
    return Scope(place.tenant, place.org)


def trash_key(key: str) -> str:
    """Return the key of an unreferenced object in the trash."""
    return _in_folder(key, "trash")


def live_key(key: str) -> str:
    """Return the original key of an object in the trash."""
    return _in_folder(key, "sha256")


def _in_folder(key: str, folder: str) -> str:
    """Change the third part only: tenants and organizations may have any name."""
    tenant, organization, _, digest = key.split("/")
    return f"{tenant}/{organization}/{folder}/{digest}"


def check(ref: PayloadRef, data: bytes) -> bytes:
    """Return `data` if it matches `ref`.

    Raises:
        PayloadCorrupt: its length or digest differs.
    """
    if len(data) != ref.byte_length:
        raise PayloadCorrupt(
            ref.uri, f"the stored payload has {len(data)} bytes, not {ref.byte_length}"
        )
    if (found := sha256(data).hexdigest()) != ref.sha256:
        raise PayloadCorrupt(ref.uri, f"the stored payload has the digest {found}")
    return data
