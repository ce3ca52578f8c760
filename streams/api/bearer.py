"""Bearer tokens of requests."""

from __future__ import annotations

from hmac import compare_digest

from aiohttp import web


def has_bearer(request: web.Request, token: str) -> bool:
    """Return whether a request has this bearer token; takes the same time for any other."""
    # aiohttp decodes header bytes that are not UTF-8 as surrogates.
    given = request.headers.get("Authorization", "").encode("utf-8", "surrogateescape")
    return compare_digest(given, f"Bearer {token}".encode())
