"""Verification of webhook requests: HMAC signatures and bearer tokens. Pure."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping

from streams.subscription.model import WebhookIngress

HMAC, BEARER = "hmac_sha256", "bearer"
_NOT_HANDED_ON = frozenset({"authorization", "proxy-authorization", "cookie"})


def is_genuine(
    ingress: WebhookIngress, secret: str, headers: Mapping[str, str], body: bytes
) -> bool:
    """Return whether a request proves that its sender knows the secret.

    `hmac_sha256`: the header has the hexadecimal HMAC of the body, maybe after `sha256=`.
    `bearer`: it has the secret, maybe after `Bearer`. `headers` have lower-case names.
    """
    given = headers.get(ingress.header.lower(), "").strip()
    if ingress.verify == HMAC:
        wanted = hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        given = given.removeprefix("sha256=").lower()
    else:
        wanted = secret
        scheme, _, rest = given.partition(" ")
        given = rest.strip() if scheme.lower() == BEARER else given
    return hmac.compare_digest(given.encode(), wanted.encode())


def is_secret_header(ingress: WebhookIngress, name: str) -> bool:
    """Return whether a header proves the sender's identity; playbooks do not see those."""
    return name.lower() in _NOT_HANDED_ON or name.lower() == ingress.header.lower()
