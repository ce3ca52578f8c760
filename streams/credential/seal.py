"""Encryption of credentials: AES-256-GCM, bound to scope and name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from secrets import token_bytes

import orjson

from streams.credential.errors import NotOpened
from streams.credential.keys import KeyRing
from streams.payload.port import Scope

NONCE_BYTES = 12


@dataclass(frozen=True, slots=True)
class SealedFields:
    """A credential's fields as stored."""

    key_id: str
    nonce: bytes = field(repr=False)
    ciphertext: bytes = field(repr=False)


def seal(keys: KeyRing, scope: Scope, name: str, fields: Mapping[str, str]) -> SealedFields:
    """Encrypt fields with the current key and a random nonce."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # 6 MB most roles do not need

    nonce = token_bytes(NONCE_BYTES)
    plain = orjson.dumps(dict(fields), option=orjson.OPT_SORT_KEYS)
    ciphertext = AESGCM(keys.current.secret).encrypt(nonce, plain, _bound_to(scope, name))
    return SealedFields(keys.current.id, nonce, ciphertext)


def unseal(keys: KeyRing, scope: Scope, name: str, sealed: SealedFields) -> dict[str, str]:
    """Decrypt the fields.

    Raises:
        NotOpened: the key is not configured, or the scope, name or ciphertext differs.
    """
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    if (key := keys.get(sealed.key_id)) is None:
        raise NotOpened(name, f"its key {sealed.key_id} is not configured")
    try:
        plain = AESGCM(key.secret).decrypt(sealed.nonce, sealed.ciphertext, _bound_to(scope, name))
    except (InvalidTag, ValueError):
        why = "it was encrypted for another scope or name, or was changed since"
        raise NotOpened(name, why) from None
    fields: dict[str, str] = orjson.loads(plain)
    return fields


def _bound_to(scope: Scope, name: str) -> bytes:
    """Return the associated data; a list, so that scopes and names stay separate."""
    return orjson.dumps(["noetl.credential", scope.tenant_id, scope.organization_id, name])
