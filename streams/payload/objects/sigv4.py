"""AWS's signature, version 4, for requests to an object store.

boto3 signs too, at 1 ms of processor time a request; this is the same arithmetic with the
day's key kept, at a twentieth of it. A test compares every header with botocore's.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from hashlib import sha256

_ALGORITHM = "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class Keys:
    """Whose signature it is."""

    access_key: str
    secret_key: str
    token: str | None = None


def sign(
    method: str,
    host: str,
    path: str,
    *,
    content_sha256: str,
    region: str,
    keys: Keys,
    now: datetime,
    headers: dict[str, str] | None = None,
) -> dict[str, str]:
    """Return the headers that authorize one request.

    `path` is as it goes over the wire, percent-encoded, without a query; `headers` are more
    headers to sign, with names in lower case.
    """
    stamp = now.strftime("%Y%m%dT%H%M%SZ")
    signed = {"host": host, "x-amz-content-sha256": content_sha256, "x-amz-date": stamp}
    signed |= headers or {}
    if keys.token is not None:
        signed["x-amz-security-token"] = keys.token
    names = sorted(signed)
    listed = ";".join(names)
    lines = "".join([f"{name}:{signed[name]}\n" for name in names])
    request = f"{method}\n{path}\n\n{lines}\n{listed}\n{content_sha256}"
    scope = f"{stamp[:8]}/{region}/s3/aws4_request"
    text = f"{_ALGORITHM}\n{stamp}\n{scope}\n{sha256(request.encode()).hexdigest()}"
    key = _day_key(keys.secret_key, stamp[:8], region)
    signature = hmac.digest(key, text.encode(), "sha256").hex()
    signed["authorization"] = (
        f"{_ALGORITHM} Credential={keys.access_key}/{scope}, "
        f"SignedHeaders={listed}, Signature={signature}"
    )
    return signed


@lru_cache(maxsize=8)
def _day_key(secret_key: str, day: str, region: str) -> bytes:
    key = b"AWS4" + secret_key.encode()
    for part in (day, region, "s3", "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
