"""Masking of secrets when settings are shown."""

from __future__ import annotations

import re

from streams.settings.layers import Path

HIDDEN = "***"
_SECRET_KEYS = frozenset({"password", "secret_key", "access_key", "worker_token"})

# user:password@ of an address; the password may itself hold '@', '/' or ':'.
_USER_AND_PASSWORD = re.compile(
    r"(?P<scheme>[A-Za-z][\w+.-]*://)(?P<user>[^:/@\s]*):(?P<rest>\S*)@"
)
# token@ of an address; a Postgres user without a password is not secret.
_TOKEN = re.compile(r"(?P<scheme>\b(?!postgres)[A-Za-z][\w+.-]*://)[^:/@\s]+@")
# password=... of a key=value connection string, or of a query.
_PASSWORD_WORD = re.compile(
    r"(?P<word>\b(?:password|passwd|pwd|secret|secret_key|access_key|token)\s*=\s*)"
    r"(?:'(?:[^'\\]|\\.)*'|[^\s&;]+)",
    re.IGNORECASE,
)


def is_secret(path: Path) -> bool:
    """Return whether the whole value at `path` is secret."""
    if path[:1] == ("credentials",):
        return len(path) > 1
    if path == ("credential_store", "key"):
        return True
    return bool(path) and path[-1] in _SECRET_KEYS


def mask_text(text: str) -> str:
    """Mask the credentials in an address or a connection string."""
    text = _USER_AND_PASSWORD.sub(rf"\g<scheme>\g<user>:{HIDDEN}@", text)
    text = _TOKEN.sub(rf"\g<scheme>{HIDDEN}@", text)
    return _PASSWORD_WORD.sub(rf"\g<word>{HIDDEN}", text)


def masked(path: Path, value: object) -> object:
    """Return `value` masked; an empty secret stays visibly empty."""
    if is_secret(path):
        return HIDDEN if value not in (None, "") else value
    if isinstance(value, str):
        return mask_text(value)
    if isinstance(value, (list, tuple)):
        return [masked(path, item) for item in value]
    return value
